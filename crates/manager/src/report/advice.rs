//! Advice for the user after a failure.

use std::path::{Path, PathBuf};

use crate::event::Exit;
use crate::host::HostId;
use crate::plan::{Plan, PlannedCommand, PlannedInstance, StartMode};
use crate::shell::quote;
use crate::state::{Cause, Deadlock, DeadlockAdvice, Failure, Fault, Manager};

/// The text of a Python without the package.
const NO_TITIN: &str = "No module named 'titin'";

/// Files of MUSCLE3's own library in a Python traceback of a program that cannot join a run.
const MUSCLE3_CLIENT: [&str; 2] = [
    "libmuscle/mmp_client.py",
    "libmuscle/mcp/tcp_transport_client.py",
];

/// The text of Python's debugger without a terminal.
const NO_TERMINAL: &str = "bdb.BdbQuit";

/// The text of the system's loader before the name of a missing library.
const NO_LIBRARY: &str = "error while loading shared libraries: ";

/// Texts of the system about a disk without room.
const NO_ROOM: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// What to do about the disk of the run directory.
const FULL_DISK: &str =
    "The disk is full: make room, or put the run directory on another one (`--run-dir`).";

/// What to do about the disk of the folder of a host.
const FULL_FOLDER: [&str; 2] = [
    "The disk is full: make room there, or name a folder on another one,",
    "`titin: {hosts: {NAME: {folder: /its/folder}}}`.",
];

/// Texts of programs about a missing file.
const NO_FILE: [&str; 5] = [
    "o such file",
    "annot open",
    "not found",
    "does not exist",
    "ould not open",
];

/// The facts about the culprit for advice.
pub(super) struct Culprit<'a> {
    pub(super) name: &'a str,
    pub(super) workdir: &'a Path,
    /// Whether the program is on another host than the manager.
    pub(super) is_elsewhere: bool,
    /// The last printed lines.
    pub(super) printed: &'a [&'a str],
}

/// Advice for a failure, in lines. `titin` is the path of the command.
pub(super) fn advice(
    manager: &Manager,
    failure: &Failure,
    culprit: Option<&Culprit<'_>>,
    titin: &Path,
) -> Vec<String> {
    let Some(culprit) = culprit else {
        return advice_for_cause(manager, failure);
    };
    if let Some(advice) = advice_for_output(culprit, titin) {
        return advice;
    }
    let mut advice = match &failure.cause {
        Cause::Instance(id, fault) if fault.may_miss_a_file() => {
            advice_for_missing_file(&manager.plan().instances[*id], culprit)
        }
        _ => None,
    }
    .unwrap_or_default();
    advice.extend(advice_for_cause(manager, failure));
    advice
}

/// Advice from the program's own output about the start.
pub(super) fn advice_for_output(culprit: &Culprit<'_>, titin: &Path) -> Option<Vec<String>> {
    let printed = culprit.printed;
    if printed.iter().any(|line| line.ends_with(NO_TITIN)) {
        return Some(match culprit.is_elsewhere {
            true => owned(&[
                "Its Python there is another than the one that has titin: name the environment that has it in the program's",
                "entry, `virtual_env: /its/folder`, or let a login shell find it, `base_env: login`.",
            ]),
            false => advice_for_other_python(titin),
        });
    }
    if printed.iter().any(|line| is_of_muscle3_client(line)) {
        return Some(owned(&[
            "The program runs with MUSCLE3's own library, which cannot join a run of titin's: start it with an environment that",
            "has titin-muscle3 in the place of muscle3. The program itself stays as it is.",
        ]));
    }
    if printed.iter().any(|line| lacks_room(line)) {
        return Some(match culprit.is_elsewhere {
            true => owned(&FULL_FOLDER),
            false => owned(&[FULL_DISK]),
        });
    }
    if printed.iter().any(|line| line.starts_with(NO_TERMINAL)) {
        return Some(vec![
            format!(
                "breakpoint() needs a terminal: `titin run --by-hand {} ...` starts the rest, and prints",
                quote(culprit.name)
            ),
            "how to start this one in yours.".into(),
        ]);
    }
    let mut named = printed
        .iter()
        .filter_map(|line| line.split_once(NO_LIBRARY));
    let (library, _) = named.find_map(|(_, rest)| rest.split_once(": cannot open"))?;
    Some(vec![
        format!(
            "The shared library {library} is not found: name its folder in the program's entry,"
        ),
        "`env: {+LD_LIBRARY_PATH: ':/its/folder'}`, or load the module that brings it (`modules`)."
            .into(),
    ])
}

/// Advice if a Python without titin ran the program. Most likely the user wants the environment of
/// the command `titin`. But a user with another active environment may want the active environment,
/// so programs do not get the command's environment by themselves.
pub(super) fn advice_for_other_python(titin: &Path) -> Vec<String> {
    let folder = titin.parent().and_then(Path::parent);
    match folder.filter(|folder| folder.join("pyvenv.cfg").exists()) {
        Some(venv) => vec![
            "Its Python is another than the one that has titin. Before titin run, activate that one:".into(),
            format!("    source {}/bin/activate", venv.display()),
            format!("or write into the program's entry: virtual_env: {}", venv.display()),
        ],
        None => vec![
            "Its Python is another than the one that has titin: activate the environment that has it before"
                .into(),
            "titin run, or name it in the program's entry under virtual_env.".into(),
        ],
    }
}

/// Advice about a file among the program's arguments or in its output: the file is not in the work
/// directory, but lies beside the description.
pub(super) fn advice_for_missing_file(
    planned: &PlannedInstance,
    culprit: &Culprit<'_>,
) -> Option<Vec<String>> {
    let StartMode::Program(program) = &planned.start else {
        return None;
    };
    let is_missing = |word: &&str| {
        Path::new(word).is_relative()
            // The meaning of options is not known.
            && !word.starts_with('-')
            && program.folder.join(word).is_file()
            && !culprit.workdir.join(word).exists()
    };
    let given = arguments(&program.command).into_iter();
    let missing = given
        .chain(words_of_missing_files(culprit.printed))
        .find(is_missing)?;
    let file = Path::new(missing).file_name()?.display();
    let full: PathBuf = program.folder.join(missing).components().collect();
    Some(vec![
        format!(
            "{} runs in its work directory, where there is no {missing}: write {},",
            planned.name,
            full.display()
        ),
        format!(
            "or have it copied there: `titin: {{stage: {{{}: {{in: [{missing}]}}}}}}`, and write {file}.",
            planned.component
        ),
    ])
}

/// The words of a program's command.
fn arguments(command: &PlannedCommand) -> Vec<&str> {
    match command {
        PlannedCommand::Executable { args, .. } => args.iter().map(String::as_str).collect(),
        PlannedCommand::Script(text) => text.split_whitespace().collect(),
        PlannedCommand::BuiltIn { .. } | PlannedCommand::Host(_) => Vec::new(),
    }
}

/// The words in lines about missing files.
fn words_of_missing_files<'l>(printed: &[&'l str]) -> impl Iterator<Item = &'l str> {
    let is_separator = |c: char| c.is_whitespace() || "'\"`:;,()[]<>".contains(c);
    let is_about_files = |line: &&str| NO_FILE.iter().any(|text| line.contains(text));
    let lines = printed.iter().copied().filter(is_about_files);
    let words = lines.flat_map(move |line| line.split(is_separator));
    words.filter(|word| !word.is_empty())
}

/// Advice that depends on the cause alone.
fn advice_for_cause(manager: &Manager, failure: &Failure) -> Vec<String> {
    let lines: &[&str] = match &failure.cause {
        Cause::Instance(id, fault) => {
            let name = &manager.plan().instances[*id].name;
            return advice_for_fault(fault, name, &manager.place_text(*id));
        }
        Cause::Deadlock(deadlock) => advice_for_deadlock(deadlock),
        Cause::GuardLost(_) => {
            &["Something killed the guard, a process of titin's: was the host out of memory?"]
        }
        Cause::HostLost(id, _) | Cause::HostSilent(id, _) => match manager.plan().other_site(*id) {
            Some(_) => &[
                "Did the host go down, or something end the agent there? Does `titin relay status` show the link at both sites? Do the",
                "logs of the relays say that they refuse something, such as a key that is trusted no more?",
                "If the line was away: `titin: {patience: ...}` sets for how long a run waits for it.",
            ],
            None => &[
                "Did the host go down, run out of memory, or lose its network? Did something end the agent there?",
            ],
        },
        Cause::HostUnfit(_, why) | Cause::AgentFailed(_, why) if lacks_room(why) => &FULL_FOLDER,
        Cause::ManagerFailed(why) if lacks_room(why) => &[FULL_DISK],
        Cause::AgentFailed(id, _) if manager.plan().is_batch_job(*id) => &[
            "The job was not submitted, or the job has failed, or its agent: the text says why. All that was printed is",
            "under agents/ in the run directory.",
        ],
        Cause::AgentFailed(_, how) if how.contains("titin: not found") => &[
            "The shell there finds no titin: name its path in the host's entry, `titin: {hosts: {NAME: {titin: /its/path}}}`.",
        ],
        Cause::AgentFailed(..) => &[
            "The command that starts the agent has failed, or the agent itself: the text says why. Try the command by",
            "hand; its output is under agents/ in the run directory.",
        ],
        Cause::HostUnfit(..) => &[
            "That host is not as its programs need it: the text says why. Correct it there, or the host's entry under",
            "`titin: hosts`.",
        ],
        Cause::HostsLate(late, _) => return advice_for_late_hosts(manager.plan(), late),
        Cause::ManagerFailed(_) | Cause::Interrupted(_) => &[],
    };
    owned(lines)
}

/// Advice if the agents of hosts have not come in time.
fn advice_for_late_hosts(plan: &Plan, late: &[HostId]) -> Vec<String> {
    let mut advice = Vec::new();
    let names = |hosts: Vec<&HostId>| {
        let hosts = hosts.into_iter().filter_map(|id| plan.further_host(*id));
        titin_model::listing(hosts.map(|host| host.name.as_str()))
    };
    let (by_hand, started): (Vec<&HostId>, Vec<&HostId>) =
        late.iter().partition(|id| plan.is_by_hand(**id));
    let in_jobs = started.iter().copied();
    let in_jobs: Vec<&HostId> = in_jobs.filter(|id| plan.is_batch_job(**id)).collect();
    let seconds = plan.options.patience.as_secs_f64();
    if !by_hand.is_empty() {
        let names = names(by_hand);
        advice.push(format!(
            "Nobody has used the line that the run has printed for {names} within {seconds} s, or the agent has not"
        ));
        advice.push(
            "reached the manager: the shell there says why. `titin: {register_timeout: ...}` sets the time."
                .to_owned(),
        );
    }
    if !in_jobs.is_empty() {
        let names = names(in_jobs);
        advice.push(format!(
            "No agent has come from the job of {names} within {seconds} s: the job is still queued, or its submission (`via`)"
        ));
        advice.push(
            "has not answered. `titin: {register_timeout: ...}` sets the time for which the run waits."
                .to_owned(),
        );
    }
    if !started.is_empty() {
        advice.push(
            "Files under agents/ in the run directory have what the commands printed that start the agents."
                .to_owned(),
        );
    }
    advice
}

fn advice_for_deadlock(deadlock: &Deadlock) -> &'static [&'static str] {
    match deadlock.advice {
        DeadlockAdvice::DeclareFields => &[
            "Declare the field at both ends, and all fields before the first call that waits for something.",
        ],
        DeadlockAdvice::RaiseAtOnce => &[
            "Members that run wait for the instance that waits for members not yet started: raise `at_once`",
            "under `titin: ensemble`, or choose a smaller `multiplicity` and send each member several messages.",
        ],
        DeadlockAdvice::ReorderCalls => &[
            "Each of them must send before the other can go on: compare the order of sends and receives in",
            "the programs with the description; `titin plot` draws it.",
        ],
    }
}

/// Advice for the fault of an instance. `place` is the host, behind a blank, if it is not the manager's.
pub(super) fn advice_for_fault(fault: &Fault, name: &str, place: &str) -> Vec<String> {
    match fault.underlying() {
        // The manager stages files for other hosts, too.
        Fault::StagingFailed(why) if lacks_room(why) => owned(&[FULL_DISK]),
        Fault::StartFailed(why) if lacks_room(why) => match place {
            "" => owned(&[FULL_DISK]),
            place => vec![
                format!(
                    "The disk{place} is full: make room there, or name a folder on another one,"
                ),
                FULL_FOLDER[1].into(),
            ],
        },
        Fault::StartFailed(_) if !place.is_empty() => owned(&[
            "Correct the program's entry in the description. A program that `stage` brings lies in the work directory there:",
            "`script: ./its_name` starts it.",
        ]),
        Fault::ProcessGone if matches!(fault, Fault::AfterRank { .. }) => {
            owned(&["Its launcher's last words may tell how: by a signal, for instance."])
        }
        Fault::WithoutClosing(Exit::Signal(number, _)) if *number != 9 => vec![
            format!(
                "Run it in a debugger: `titin run --by-hand {} ...` starts the rest, and prints how to",
                quote(name)
            ),
            "start this one.".into(),
        ],
        Fault::WithoutClosing(Exit::Signal(..)) => vec![
            format!(
                "If nobody killed it, the host was out of memory: see `dmesg`{place}. Use fewer instances,"
            ),
            "or a smaller problem, or a larger host.".into(),
        ],
        Fault::WithoutClosing(Exit::Code(1.. | ..=-1))
        | Fault::AfterDone(_)
        | Fault::Reported(_) => vec![format!("See what {name} reports above, and its files.")],
        fault => owned(fixed_advice(fault)),
    }
}

/// Advice about files that are not in the run directory, for the given reasons.
pub(crate) fn advice_for_lost_files(reasons: &[String]) -> Option<String> {
    let lack_room = reasons.iter().any(|why| lacks_room(why));
    lack_room.then(|| FULL_DISK.to_owned())
}

/// Whether a line of a traceback names the part of MUSCLE3's library that talks to a manager.
fn is_of_muscle3_client(line: &str) -> bool {
    MUSCLE3_CLIENT.iter().any(|file| line.contains(file))
}

/// Whether an error is about a disk without room.
fn lacks_room(why: &str) -> bool {
    NO_ROOM.iter().any(|text| why.contains(text))
}

/// Advice for a fault that names neither the instance nor its files.
fn fixed_advice(fault: &Fault) -> &'static [&'static str] {
    match fault {
        Fault::StartFailed(_) => &["Correct the program's entry in the description."],
        Fault::StagingFailed(_) => {
            &["Correct what stands under `titin: stage` in the description, or its files."]
        }
        Fault::BeforeJoining(Exit::Code(0)) => {
            &["Does the program open an instance? In Python: titin.Instance(...)."]
        }
        Fault::BeforeJoining(_) => &[
            "Its output says why. If that is not about titin or the run, try the program by itself.",
        ],
        Fault::WithoutClosing(_) | Fault::ProcessGone => &[
            "Close the instance before the program ends (`with titin.Instance(...)`, titin_close), also",
            "where it returns early; or call reuse() until it is false.",
        ],
        Fault::OmittedMessage(_) => &[
            "Does it leave its loop, close, or withdraw a field before it has sent what the use is for?",
        ],
        Fault::ReportedAfterEnd { .. } => &[
            "One side makes more steps than the other: compare how often each of them sends, receives and",
            "calls reuse().",
        ],
        Fault::Refused(_) => &["Make the program and the description agree."],
        Fault::LinkLost(_) | Fault::Silent(_) => &["Is its host up, and the network between?"],
        _ => &["See its output for what it was doing."],
    }
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
