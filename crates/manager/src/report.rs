//! The page that a failed run ends with: who failed first and how, its last words, who was affected, where the files
//! are, and what to do next.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::event::Exit;
use crate::launch::quote;
use crate::log::is_command;
use crate::plan::{InstanceId, Planned, Start, What};
use crate::state::{Cause, Failure, Fault, Manager};

/// Lines that are shown of an output, and of standard output where there is something on standard error too.
const TAIL: usize = 12;
const BESIDE: usize = 6;

/// Letters of a line; what is longer goes on in the next.
const WIDTH: usize = 160;

/// Lines that are shown of what was one, the last with its end, where the advice is.
const ROWS: usize = 4;

/// How Python ends that does not find the package.
const NO_TITIN: &str = "No module named 'titin'";

/// How Python's debugger ends that has no terminal.
const QUIT: &str = "bdb.BdbQuit";

/// What the system's loader says before the name of a library.
const NO_LIBRARY: &str = "error while loading shared libraries: ";

/// How programs say that there is no such file.
const MISSING: [&str; 5] = [
    "o such file",
    "annot open",
    "not found",
    "does not exist",
    "ould not open",
];

/// Instances that are listed.
const MOST: usize = 12;

/// What there is to say about a failed run.
#[derive(Debug, Clone, Serialize)]
pub struct Story {
    /// The model.
    pub model: String,
    /// Seconds from the start to the failure.
    pub seconds: f64,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// Whether it is a deadlock, whose cause tells who waits for what.
    pub deadlock: bool,
    /// The first failure, in full.
    pub cause: String,
    /// The instance that failed first, if one did, or the host whose process did.
    pub culprit: Option<String>,
    /// Its program, in words.
    pub program: Option<String>,
    /// Its last log records.
    pub records: Vec<String>,
    /// The last lines of its standard error and its standard output, with the files, without what says nothing of this failure.
    pub output: Vec<(PathBuf, Vec<String>)>,
    /// Who was affected, and how.
    pub affected: Vec<(String, String)>,
    /// Who waited for what when it happened.
    pub waits: Vec<String>,
    /// Who was in its own code then, if the user ended it.
    pub computing: Vec<String>,
    /// The run directory.
    pub directory: PathBuf,
    /// What to do next.
    pub advice: Vec<String>,
}

impl Story {
    /// Puts together what is known. `folder` gives the folder of an instance, `titin` is this command.
    pub fn tell(
        manager: &Manager,
        failure: &Failure,
        directory: &Path,
        folder: impl Fn(&str) -> PathBuf,
        titin: &Path,
    ) -> Self {
        let plan = manager.plan();
        let culprits = manager.culprits(&failure.cause);
        // Of the instances of a process, the one that stands for it.
        let culprit = culprits.first().copied();
        let name = |id: InstanceId| plan.instances[id].name.clone();
        let place = |id: InstanceId| folder(plan.instances[id].folder());
        let output = culprit.map(|id| outputs(&place(id))).unwrap_or_default();
        let program = culprit.map(|id| match &plan.instances[id].start {
            Start::Program(program) => format!("program {}", program.name),
            Start::ByHand(_) => "started by hand".to_owned(),
            Start::Hosted => "run by the calling process".to_owned(),
            Start::Guest(_) => format!("run by host {}", plan.instances[id].folder()),
        });
        let program = match (culprit.and_then(|id| plan.hosting(id)), &culprits[..]) {
            (Some(host), [_]) => Some(format!("run by host {}", host.name)),
            (Some(_), all) => Some(format!("it ran {}", some(all.iter().map(|id| name(*id))))),
            (None, _) => program,
        };
        let printed: Vec<&str> = output
            .iter()
            .flat_map(|(_, lines)| lines)
            .map(String::as_str)
            .collect();
        let advice =
            told_by_output(&printed, culprit.map(name).as_deref(), titin).unwrap_or_else(|| {
                let lost = match &failure.cause {
                    Cause::Instance(id, fault) if fault.may_miss_a_file() => {
                        lost_file(&plan.instances[*id], &place(*id).join("workdir"), &printed)
                    }
                    _ => None,
                };
                lost.into_iter()
                    .flatten()
                    .chain(advice(manager, failure))
                    .collect()
            });
        Story {
            model: plan.model.clone(),
            seconds: failure.at.as_secs_f64(),
            interrupted: failure.is_wished(),
            deadlock: matches!(failure.cause, Cause::Deadlock { .. }),
            cause: manager.line(failure),
            culprit: culprit.map(|_| manager.told(&failure.cause).0),
            program,
            records: match culprits[..] {
                // What an instance was warned of that has closed a port too early.
                [one] if !manager.enders(one).is_empty() => {
                    last_of_each(manager, &[&[one][..], &manager.enders(one)].concat())
                }
                [one] => manager.recent(one),
                _ => last_of_each(manager, &culprits),
            },
            output,
            affected: manager
                .affected(&culprits)
                .into_iter()
                .map(|(id, how)| (name(id), how))
                .collect(),
            waits: failure
                .waits
                .iter()
                .map(|(id, wait)| format!("{} {wait}", name(*id)))
                .collect(),
            computing: if failure.is_wished() {
                failure.computing.iter().map(|id| name(*id)).collect()
            } else {
                Vec::new()
            },
            directory: directory.to_owned(),
            advice,
        }
    }

    /// What there is to say when not an instance but the manager failed.
    pub fn of_manager(model: &str, seconds: f64, cause: String, directory: &Path) -> Self {
        Story {
            model: model.to_owned(),
            seconds,
            interrupted: false,
            deadlock: false,
            cause,
            culprit: None,
            program: None,
            records: Vec::new(),
            output: Vec::new(),
            affected: Vec::new(),
            waits: Vec::new(),
            computing: Vec::new(),
            directory: directory.to_owned(),
            advice: Vec::new(),
        }
    }

    /// The page. With `colour`, headings and the cause stand out on a terminal.
    pub fn page(&self, colour: bool) -> String {
        let paint = |code: &str, text: &str| match colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        };
        let mut page = String::new();
        let how = if self.interrupted {
            "was ended"
        } else {
            "failed"
        };
        let title = format!(
            "The run of {} {how} after {:.1} s.",
            self.model, self.seconds
        );
        let _ = writeln!(page, "{}\n", paint("1;31", &title));
        let mut section = |heading: &str, lines: Vec<String>| {
            for (number, line) in lines.iter().enumerate() {
                // Most of it comes from programs, and is shown at a terminal.
                for (row, text) in wrapped(&clean(line)).iter().enumerate() {
                    let text = if (number, heading) == (0, "First:") {
                        paint("31", text)
                    } else {
                        text.clone()
                    };
                    let heading = if (number, row) == (0, 0) { heading } else { "" };
                    let _ = writeln!(page, "{} {text}", paint("1", &format!("{heading:<9}")));
                }
            }
        };
        let mut cause: Vec<String> = self.cause.lines().map(str::to_owned).collect();
        cause.extend(self.program.iter().map(|program| format!("({program})")));
        section("First:", cause);
        section("Last:", self.last_words());
        section(
            "Affected:",
            listed(
                self.affected
                    .iter()
                    .map(|(name, how)| format!("{name}: {how}"))
                    .collect(),
            ),
        );
        if !self.deadlock {
            section("Waiting:", listed(self.waits.clone()));
        }
        if !self.computing.is_empty() {
            section("At work:", vec![some(self.computing.iter().cloned())]);
        }
        let mut files = vec![self.directory.display().to_string()];
        files.push("titin_manager.log, instances/*/stderr.txt and stdout.txt".into());
        section("Files:", files);
        section("Next:", self.advice.clone());
        page
    }

    /// What the culprit logged and printed last; each line once, though many programs print what they log.
    fn last_words(&self) -> Vec<String> {
        let told = |line: &&String| {
            let line = line.trim();
            let mut printed = self.output.iter().flat_map(|(_, lines)| lines);
            self.cause.contains(line) || printed.any(|printed| printed.contains(line))
        };
        let logged: Vec<&String> = self.records.iter().filter(|line| !told(line)).collect();
        let mut words = Vec::new();
        if !logged.is_empty() {
            words.push("of its log:".to_owned());
            words.extend(logged.iter().map(|line| format!("| {line}")));
        }
        for (file, lines) in &self.output {
            words.push(format!("of {}:", self.short(file)));
            words.extend(lines.iter().map(|line| format!("| {line}")));
        }
        words
    }

    /// A path as seen from the run directory.
    fn short(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// Names, of which some are left out where they are many.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let left = names.len().saturating_sub(MOST);
    let shown: Vec<String> = names.take(MOST).collect();
    match left {
        0 => shown.join(", "),
        _ => format!("{} and {left} more", shown.join(", ")),
    }
}

/// What instances of one process logged last, each with its name.
fn last_of_each(manager: &Manager, ids: &[InstanceId]) -> Vec<String> {
    let last = |id: &InstanceId| {
        let line = manager.recent(*id).pop()?;
        Some(format!("{}: {line}", manager.plan().instances[*id].name))
    };
    ids.iter().filter_map(last).take(MOST).collect()
}

fn listed(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST {
        let more = lines.len() - MOST + 1;
        lines.truncate(MOST - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// A line in rows. Very long ones would push the rest off the page, so they lose what is between their beginning and
/// their end.
fn wrapped(line: &str) -> Vec<String> {
    // What is quoted goes on as a quotation.
    let margin = if line.starts_with("| ") { "|   " } else { "" };
    let mut rows = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(WIDTH - margin.len()) {
        let between_words = |&at: &usize| rest[at..].starts_with(' ');
        let at = (end / 2..=end)
            .rev()
            .filter(|&at| rest.is_char_boundary(at))
            .find(between_words)
            .unwrap_or(end);
        rows.push(&rest[..at]);
        rest = rest[at..].trim_start();
    }
    rows.push(rest);
    let (first, last) = (ROWS / 2, rows.len().saturating_sub(ROWS / 2));
    let mut shown = Vec::new();
    for (number, row) in rows
        .iter()
        .enumerate()
        .filter(|(number, _)| *number < first || *number >= last)
    {
        let gap = if number == last && last > first {
            "… "
        } else {
            ""
        };
        shown.push(format!(
            "{}{gap}{row}",
            if number > 0 { margin } else { "" }
        ));
    }
    shown
}

/// A line without letters that would move the cursor, or worse.
fn clean(line: &str) -> String {
    line.chars()
        .filter(|c| !is_command(*c) || *c == '\t')
        .collect()
}

/// The last lines of what an instance has printed that are its own: its errors may be on either. What a launcher says, or a backtrace
/// without names, is shown where there is nothing else.
fn outputs(folder: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let files = ["stderr.txt", "stdout.txt"].map(|file| folder.join(file));
    let all = files.map(|file| (tail(&file), file));
    let mut shown: Vec<_> = all
        .iter()
        .map(|(lines, file)| (file.clone(), without_noise(lines)))
        .filter(|(_, own)| !own.is_empty())
        .collect();
    if shown.is_empty() {
        shown.extend(
            all.into_iter()
                .map(|(lines, file)| (file, lines))
                .find(|(_, lines)| !lines.is_empty()),
        );
    }
    for (number, (_, lines)) in shown.iter_mut().enumerate() {
        let most = if number == 0 { TAIL } else { BESIDE };
        lines.drain(..lines.len().saturating_sub(most));
    }
    shown
}

/// The lines at the end of a file.
fn tail(file: &Path) -> Vec<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    const BYTES: u64 = 16 << 10;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    text.lines()
        .map(clean)
        .filter(|line| !line.trim().is_empty())
        .collect()
}

fn without_noise(lines: &[String]) -> Vec<String> {
    without_launcher(lines)
        .into_iter()
        .filter(|line| !is_frame(line))
        .cloned()
        .collect()
}

/// Whether a line is that of a backtrace which names no place in a program's source: as gfortran writes them
/// (`#3  0x7f2b in ???`) and Open MPI (`[node:12] [ 3] /lib/libc.so.6(+0x3c050)[0x7f2b]`).
fn is_frame(line: &str) -> bool {
    let line = line.trim();
    let gfortran = line.strip_prefix('#').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.contains(" 0x")
            && rest.ends_with("in ???")
    });
    let open_mpi = || {
        let number = line
            .split_once("] [")
            .and_then(|(_, rest)| rest.split_once(']'));
        let is_number = |(number, _): (&str, &str)| number.trim().parse::<u32>().is_ok();
        line.starts_with('[')
            && number.is_some_and(is_number)
            && line.ends_with(']')
            && line.contains("[0x")
    };
    const AROUND: [&str; 3] = [
        "Error termination. Backtrace:",
        "*** Process received signal ***",
        "*** End of error message ***",
    ];
    gfortran || open_mpi() || AROUND.iter().any(|around| line.ends_with(around))
}

/// Without what launchers of Open MPI and MPICH say of every program that fails, in a frame that a line of dashes or the like
/// begins and ends, and behind it. What they say of this one stays: of which rank, with which exit code or by which signal.
fn without_launcher(lines: &[String]) -> Vec<&String> {
    const IN_FRAME: [&str; 4] = [
        "MPI_ABORT was invoked on",
        "Primary job  terminated normally",
        "detected that one or more processes exited with non-zero status",
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    ];
    const TELLING: [&str; 7] = [
        "MPI_ABORT was invoked on",
        "errorcode",
        "Process name",
        "Exit code",
        "RUNNING AT",
        "EXIT CODE",
        "SIGNAL",
    ];
    const BEHIND: [&str; 2] = [
        "This typically refers to a problem with your application",
        "Please see the FAQ page for debugging suggestions",
    ];
    let has = |line: &str, marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    let is_edge = |line: &String| {
        line.len() > 20
            && line
                .bytes()
                .all(|c| c == line.as_bytes()[0] && b"-=".contains(&c))
    };
    let mut own = Vec::new();
    let mut rest = lines;
    while let [line, after @ ..] = rest {
        let frame = is_edge(line)
            .then(|| after.iter().position(is_edge))
            .flatten();
        match frame.map(|length| after.split_at(length)) {
            Some((inside, behind)) if inside.iter().any(|line| has(line, &IN_FRAME)) => {
                own.extend(inside.iter().filter(|line| has(line, &TELLING)));
                rest = &behind[1..];
            }
            _ => {
                own.extend(Some(line).filter(|line| !has(line, &BEHIND)));
                rest = after;
            }
        }
    }
    own
}

/// What somebody should do whose program says itself what is wrong with how it was started.
fn told_by_output(printed: &[&str], instance: Option<&str>, titin: &Path) -> Option<Vec<String>> {
    if printed.iter().any(|line| line.ends_with(NO_TITIN)) {
        return Some(another_python(titin));
    }
    if let Some(name) = instance.filter(|_| printed.iter().any(|line| line.starts_with(QUIT))) {
        return Some(vec![
            format!(
                "breakpoint() needs a terminal: `titin run --by-hand {} ...` starts the rest, and prints",
                quote(name)
            ),
            "how to start this one in yours.".into(),
        ]);
    }
    let library = printed
        .iter()
        .find_map(|line| line.split_once(NO_LIBRARY)?.1.split_once(": cannot open"));
    library.map(|(library, _)| {
        vec![
            format!("The shared library {library} is not found: name its folder in the program's entry,"),
            "`env: {+LD_LIBRARY_PATH: ':/its/folder'}`, or load the module that brings it (`modules`)."
                .into(),
        ]
    })
}

/// What somebody should do whose program was run by a Python without titin. The environment of this command is most
/// likely meant, but who has another one active may want that, so programs are not given it unasked.
fn another_python(titin: &Path) -> Vec<String> {
    let beside = titin.parent().and_then(Path::parent);
    match beside.filter(|folder| folder.join("pyvenv.cfg").exists()) {
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

/// What to do where a program was given a file that is not in its work directory, but stands beside the description; or has
/// named such a file in what it has printed.
fn lost_file(planned: &Planned, workdir: &Path, printed: &[&str]) -> Option<Vec<String>> {
    let Start::Program(program) = &planned.start else {
        return None;
    };
    let words: Vec<&str> = match &program.what {
        What::Executable { args, .. } => args.iter().map(String::as_str).collect(),
        What::Script(text) => text.split_whitespace().collect(),
        What::BuiltIn { .. } | What::Host(_) => Vec::new(),
    };
    let is_lost = |word: &&str| {
        // Nobody knows what others stand for.
        let named = Path::new(word).is_relative() && !word.starts_with('-');
        named && program.folder.join(word).is_file() && !workdir.join(word).exists()
    };
    let lines = printed
        .iter()
        .filter(|line| MISSING.iter().any(|words| line.contains(words)));
    let named = lines.flat_map(|line| {
        line.split(|c: char| c.is_whitespace() || "'\"`:;,()[]<>".contains(c))
            .filter(|word| !word.is_empty())
    });
    let lost = words.into_iter().chain(named).find(is_lost)?;
    let file = Path::new(lost).file_name()?.display();
    let full: PathBuf = program.folder.join(lost).components().collect();
    Some(vec![
        format!(
            "{} runs in its work directory, where there is no {lost}: write {},",
            planned.name,
            full.display()
        ),
        format!(
            "or have it copied there: `titin: {{stage: {{{}: {{in: [{lost}]}}}}}}`, and write {file}.",
            planned.component
        ),
    ])
}

/// What somebody with this failure should do.
fn advice(manager: &Manager, failure: &Failure) -> Vec<String> {
    let plan = manager.plan();
    let lines: Vec<String> = match &failure.cause {
        Cause::Instance(id, fault) => {
            let name = &plan.instances[*id].name;
            match fault.of_all() {
                Fault::NotStarted(_) => vec!["Correct the program's entry in the description.".into()],
                Fault::NotStaged(_) => {
                    vec!["Correct what stands under `titin: stage` in the description, or its files.".into()]
                }
                Fault::BeforeJoining(Exit::Code(0)) => {
                    vec!["Does the program open an instance? In Python: titin.Instance(...).".into()]
                }
                Fault::BeforeJoining(_) => {
                    vec!["It failed on its own, not in the coupling: its output says why. Try it by itself.".into()]
                }
                Fault::Gone if matches!(fault, Fault::AfterRank { .. }) => {
                    vec!["Its launcher's last words may tell how: by a signal, for instance.".into()]
                }
                Fault::WithoutClosing(Exit::Code(0)) | Fault::Gone => vec![
                    "Close the instance before the program ends (`with titin.Instance(...)`, titin_close), also".into(),
                    "where it returns early; or call reuse() until it is false.".into(),
                ],
                Fault::WithoutClosing(Exit::Signal(9, _)) => vec![
                    "If nobody killed it, the host was out of memory: see `dmesg`. Use fewer instances, or a".into(),
                    "smaller problem, or a larger host.".into(),
                ],
                Fault::WithoutClosing(Exit::Signal(..)) => vec![
                    format!(
                        "Run it in a debugger: `titin run --by-hand {} ...` starts the rest, and prints how to",
                        quote(name)
                    ),
                    "start this one.".into(),
                ],
                Fault::WithoutClosing(Exit::Code(_)) | Fault::AfterDone(_) | Fault::Said(_) => {
                    vec![format!("See what {name} reports above, and its files.")]
                }
                Fault::Missed(_) => vec!["Does it leave its loop, close, or withdraw a field before it has sent what the use is for?".into()],
                Fault::AfterEnd { .. } => vec![
                    "One side makes more steps than the other: compare how often each of them sends, receives and".into(),
                    "calls reuse().".into(),
                ],
                Fault::Refused(_) => vec!["Make the program and the description agree.".into()],
                Fault::LinkLost(_) | Fault::Silent(_) => {
                    vec!["Is its host up, and the network between?".into()]
                }
                Fault::Late(_) | Fault::Stopped | Fault::AfterRank { .. } | Fault::AfterRefusal { .. } => {
                    vec!["See its output for what it was doing.".into()]
                }
            }
        }
        Cause::Deadlock { undeclared: true, .. } => vec![
            "Declare the field at both ends, and all fields before the first call that waits for something."
                .into(),
        ],
        Cause::Deadlock { .. } => vec![
            "Each of them must send before the other can go on: compare the order of sends and receives in"
                .into(),
            "the programs with the description; `titin plot` draws it.".into(),
        ],
        Cause::Guard(_) => {
            vec!["Something killed the guard, a process of titin's: was the host out of memory?".into()]
        }
        Cause::Trouble(_) | Cause::Interrupted(_) => Vec::new(),
    };
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Program;

    fn story() -> Story {
        Story {
            model: "demo".into(),
            seconds: 12.34,
            interrupted: false,
            deadlock: false,
            cause: "macro was ended by SIGSEGV".into(),
            culprit: Some("macro".into()),
            program: Some("program solver".into()),
            records: vec!["logged".into()],
            output: vec![(
                "/runs/r/instances/macro/stderr.txt".into(),
                vec!["negative depth".into()],
            )],
            affected: (0..40)
                .map(|i| (format!("micro[{i}]"), "lost macro".into()))
                .collect(),
            waits: vec!["micro[0] waits to receive message 4 on in, for macro.out".into()],
            computing: Vec::new(),
            directory: "/runs/r".into(),
            advice: vec!["Run it in a debugger.".into()],
        }
    }

    #[test]
    fn what_launchers_always_say_is_left_out() {
        let (single, double) = ("-".repeat(74), "=".repeat(83));
        let kept = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            without_launcher(&lines)
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        let own = [&*single, "negative depth in cell 7", &single];
        assert_eq!(kept(&own), own, "a frame of the program's");
        let open_mpi = [
            &*single,
            "Primary job  terminated normally, but 1 process returned",
            "a non-zero exit code. Per user-direction, the job has been aborted.",
            &single,
            &single,
            "mpirun detected that one or more processes exited with non-zero status, thus causing",
            "the job to be terminated. The first process to do so was:",
            "  Process name: [[5399,1],2]",
            "  Exit code:    9",
            &single,
        ];
        assert_eq!(
            kept(&open_mpi),
            ["  Process name: [[5399,1],2]", "  Exit code:    9"]
        );
        let abort = [
            &*single,
            "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
            "with errorcode 7.",
            "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.",
            &single,
        ];
        assert_eq!(kept(&abort), abort[1..3]);
        let mpich = [
            &*double,
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   PID 12 RUNNING AT vm",
            "=   EXIT CODE: 9",
            "=   CLEANING UP REMAINING PROCESSES",
            &double,
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            "This typically refers to a problem with your application.",
        ];
        assert_eq!(kept(&mpich), [mpich[2], mpich[3], mpich[6]]);
        let intel = [
            &*double,
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   RANK 6 PID 12 RUNNING AT vm",
            "=   KILLED BY SIGNAL: 9 (Killed)",
            &double,
        ];
        assert_eq!(kept(&intel), intel[2..4]);
    }

    #[test]
    fn the_page_has_everything_on_it_and_is_one_page() {
        let page = story().page(false);
        let expected = "The run of demo failed after 12.3 s.\n\n\
                        First:    macro was ended by SIGSEGV\n          (program solver)\n\
                        Last:     of its log:\n          | logged\n          \
                        of instances/macro/stderr.txt:\n          | negative depth\n\
                        Affected: micro[0]: lost macro\n";
        assert!(page.starts_with(expected), "{page}");
        assert!(
            page.contains("and 29 more\nWaiting:  micro[0] waits to receive"),
            "{page}"
        );
        assert!(
            page.ends_with("Next:     Run it in a debugger.\n"),
            "{page}"
        );
        assert!(page.lines().count() < 40);
        assert!(!page.contains('\x1b'));
        assert!(story().page(true).starts_with("\x1b[1;31mThe run of demo"));
    }

    #[test]
    fn a_file_beside_the_description_is_no_file_of_the_work_directory() {
        let folder = tempfile::tempdir().unwrap();
        let workdir = folder.path().join("workdir");
        std::fs::create_dir_all(folder.path().join("code")).unwrap();
        std::fs::create_dir_all(&workdir).unwrap();
        for file in ["code/a.py", "both.txt", "workdir/both.txt"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let advice = |what| {
            let program = Program {
                what,
                folder: folder.path().into(),
                ..Program::default()
            };
            let start = Start::Program(program);
            lost_file(
                &Planned {
                    name: "m[1]".into(),
                    component: "m".into(),
                    start,
                    ..Planned::default()
                },
                &workdir,
                &[],
            )
        };
        let run = |args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            advice(What::Executable {
                path: "python3".into(),
                args,
            })
        };
        assert_eq!(
            run(&["-v", "both.txt", "none.txt", "/etc/passwd", ""]),
            None
        );
        let told = run(&["-u", "code/a.py"]).unwrap().join(" ");
        assert!(
            told.starts_with(
                "m[1] runs in its work directory, where there is no code/a.py: write /"
            ),
            "{told}"
        );
        assert!(
            told.ends_with("`titin: {stage: {m: {in: [code/a.py]}}}`, and write a.py."),
            "{told}"
        );
        assert!(advice(What::Script("exec python3 ./code/a.py".into())).is_some());
    }

    #[test]
    fn a_file_that_a_program_says_it_misses_may_be_beside_the_description() {
        let folder = tempfile::tempdir().unwrap();
        let workdir = folder.path().join("workdir");
        std::fs::create_dir_all(&workdir).unwrap();
        std::fs::write(folder.path().join("data.csv"), "").unwrap();
        let told = |line: &str| {
            let program = Program {
                folder: folder.path().into(),
                ..Program::default()
            };
            let start = Start::Program(program);
            let planned = Planned {
                name: "m".into(),
                component: "m".into(),
                start,
                ..Planned::default()
            };
            lost_file(&planned, &workdir, &[line])
        };
        for line in [
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
            "Fortran runtime error: Cannot open file 'data.csv': No such file or directory",
            "ERROR: cannot open data.csv",
        ] {
            let advice = told(line).unwrap().join(" ");
            assert!(
                advice.contains("there is no data.csv: write /")
                    && advice.contains("{in: [data.csv]}"),
                "{advice}"
            );
        }
        assert_eq!(told("reading data.csv"), None);
        assert_eq!(told("No such file or directory: 'other.csv'"), None);
    }

    #[test]
    fn a_program_that_says_what_is_wrong_with_its_start_is_listened_to() {
        let told = |line| {
            told_by_output(&[line], Some("m[1]"), Path::new("/bin/titin"))
                .map(|told| told.join(" "))
        };
        assert!(
            told("bdb.BdbQuit")
                .unwrap()
                .contains("`titin run --by-hand 'm[1]' ...`")
        );
        let line = "./m: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file";
        assert!(
            told(line)
                .unwrap()
                .starts_with("The shared library libx.so.1 is not found")
        );
        assert_eq!(told("ValueError"), None);
    }

    #[test]
    fn an_error_is_shown_whichever_output_it_is_on() {
        let folder = tempfile::tempdir().unwrap();
        let shown = |err: &str, out: &str| {
            std::fs::write(folder.path().join("stderr.txt"), err).unwrap();
            std::fs::write(folder.path().join("stdout.txt"), out).unwrap();
            let shown = outputs(folder.path()).into_iter();
            shown
                .map(|(file, lines)| {
                    (
                        file.file_name().unwrap().to_str().unwrap().to_owned(),
                        lines,
                    )
                })
                .collect::<Vec<_>>()
        };
        let edge = "-".repeat(74);
        let filler = format!(
            "{edge}\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n{edge}\n"
        );
        // LAMMPS.
        let found = shown(
            &filler,
            "step 1\nERROR: Unknown command: fxi (src/input.cpp:314)\n",
        );
        let error = "ERROR: Unknown command: fxi (src/input.cpp:314)".to_owned();
        assert_eq!(
            found,
            [("stdout.txt".to_owned(), vec!["step 1".to_owned(), error])]
        );
        // gfortran, and Open MPI's own handler of signals.
        let trace = "At line 3 of file m.f90\nFortran runtime error: End of file\n\nError termination. Backtrace:\n#0  0x7f2b8d45e51f \
                     in ???\n#3  0x55 in ???\n#4  0x56 in solve_\n[vm:12] *** Process received signal ***\n[vm:12] Signal: \
                     Segmentation fault (11)\n[vm:12] [ 0] /lib/libc.so.6(+0x3c050)[0x7f2b8d45e050]\n[vm:12] *** End of \
                     error message ***\n";
        let found = shown(trace, "done 1\n");
        let own = [
            "At line 3 of file m.f90",
            "Fortran runtime error: End of file",
            "#4  0x56 in solve_",
            "[vm:12] Signal: Segmentation fault (11)",
        ];
        assert_eq!(
            found[0],
            ("stderr.txt".to_owned(), own.map(str::to_owned).to_vec())
        );
        assert_eq!(
            found[1],
            ("stdout.txt".to_owned(), vec!["done 1".to_owned()])
        );
        // Of what a program prints in each step some is enough beside an error.
        let steps: String = (0..90).map(|step| format!("step {step}\n")).collect();
        let found = shown("ValueError\n", &steps);
        assert_eq!(
            (found[1].1.len(), found[1].1.last().unwrap().as_str()),
            (BESIDE, "step 89")
        );
        assert_eq!(shown("", &steps)[0].1.len(), TAIL);
        // Better filler than nothing.
        assert!(
            shown(&filler, "")
                .iter()
                .flat_map(|(_, lines)| lines)
                .any(|line| line.contains("Primary job"))
        );
        assert!(shown("", "").is_empty());
    }

    #[test]
    fn who_was_at_work_is_told_to_a_user_who_ends_a_run() {
        let page = Story {
            interrupted: true,
            computing: vec!["meso".into(), "micro[1]".into()],
            ..story()
        }
        .page(false);
        assert!(page.contains("\nAt work:  meso, micro[1]\n"), "{page}");
        assert!(!story().page(false).contains("At work"));
    }

    #[test]
    fn a_python_without_titin_is_told_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let titin = folder.path().join("bin/titin");
        assert!(another_python(&titin).join(" ").contains("virtual_env"));
        std::fs::write(folder.path().join("pyvenv.cfg"), "").unwrap();
        let advice = another_python(&titin).join("\n");
        assert!(
            advice.contains(&format!(
                "source {}/bin/activate\n",
                folder.path().display()
            )),
            "{advice}"
        );
    }

    #[test]
    fn what_it_logged_is_shown_beside_what_it_printed_and_nothing_twice() {
        let records = [
            "pressure is rising",
            "negative depth",
            "was ended by SIGSEGV",
        ]
        .map(str::to_owned);
        let page = Story {
            records: records.into(),
            ..story()
        }
        .page(false);
        assert!(
            page.contains("of its log:\n          | pressure is rising\n          of instances/"),
            "{page}"
        );
        assert_eq!(page.matches("negative depth").count(), 1, "{page}");
        assert_eq!(page.matches("SIGSEGV").count(), 1, "{page}");
    }

    #[test]
    fn who_waited_is_shown_whatever_the_culprit_is_called() {
        let cause = "deadlock_finder ended with exit code 3".to_owned();
        let page = Story {
            cause: cause.clone(),
            ..story()
        }
        .page(false);
        assert!(page.contains("Waiting:  micro[0]"), "{page}");
        let page = Story {
            cause,
            deadlock: true,
            ..story()
        }
        .page(false);
        assert!(!page.contains("Waiting:"), "{page}");
    }

    #[test]
    fn nothing_on_the_page_is_obeyed_by_a_terminal() {
        let bad = || "bell\x07 and \x1b]0;\u{202e}title".to_owned();
        let story = Story {
            cause: bad(),
            records: vec![bad()],
            output: vec![("/r/stderr.txt".into(), vec![bad()])],
            affected: vec![("micro".into(), bad())],
            waits: vec![bad()],
            program: Some(bad()),
            ..story()
        };
        let page = story.page(false);
        assert!(
            !page.chars().any(|c| is_command(c) && c != '\n'),
            "{page:?}"
        );
        assert!(
            story
                .page(true)
                .contains("\x1b[31mbell and ]0;title\x1b[0m\n"),
            "{page:?}"
        );
    }

    #[test]
    fn tails_are_short_clean_and_never_fail() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stderr.txt");
        assert!(tail(&file).is_empty());
        let mut text: String = (0..9000).map(|i| format!("line {i}\n")).collect();
        text.push_str("\x1b[31mred\x07\n\n\n");
        std::fs::write(&file, [text.as_bytes(), &[0xff, 0xfe]].concat()).unwrap();
        let lines = &outputs(folder.path())[0].1;
        assert_eq!(lines.len(), TAIL);
        assert!(
            lines.contains(&"line 8999".to_owned()) && lines.contains(&"[31mred".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn long_lines_keep_their_ends_where_the_advice_is() {
        assert_eq!(wrapped("short"), ["short"]);
        let words = "word ".repeat(60);
        let rows = wrapped(&format!("| {words}do this"));
        assert_eq!(rows.len(), 2);
        assert!(
            rows[0].starts_with("| word") && rows[1].starts_with("|   word"),
            "{rows:?}"
        );
        assert!(rows[1].ends_with("do this"), "{rows:?}");
        let rows = wrapped(&format!("{}do this", "é".repeat(5000)));
        assert_eq!(rows.len(), ROWS);
        assert!(
            rows[2].starts_with("… é") && rows[3].ends_with("do this"),
            "{rows:?}"
        );
        assert!(
            rows.iter().all(|row| row.chars().count() <= WIDTH + 2),
            "{rows:?}"
        );
    }
}
