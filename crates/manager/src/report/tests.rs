//! Reports of made-up failures.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use titin_model::quantity;

use super::advice::{
    Culprit, advice_for_fault, advice_for_missing_file, advice_for_other_python, advice_for_output,
};
use super::output::{TAIL, TAIL_OF_SECOND, last_outputs, tail, without_launcher};
use super::page::{ROWS, WIDTH, wrapped};
use super::*;
use crate::event::RunEvent;
use crate::host::HostId;
use crate::log::is_command;
use crate::plan::{
    AgentStart, BatchJob, PlannedCommand, PlannedHost, PlannedInstance, PlannedProgram, PlannedSite,
};
use crate::state::{Cause, Fault, RunOutcome};

/// A culprit with a printed output.
fn culprit<'a>(workdir: &'a Path, printed: &'a [&'a str]) -> Culprit<'a> {
    Culprit {
        name: "m[1]",
        workdir,
        is_elsewhere: false,
        printed,
    }
}

fn report() -> Report {
    Report {
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
        members: Vec::new(),
        affected: (0..40)
            .map(|i| (format!("micro[{i}]"), "lost macro".into()))
            .collect(),
        waits: vec!["micro[0] waits to receive message 4 on in, for macro.out".into()],
        computing: Vec::new(),
        directory: "/runs/r".into(),
        logs: "titin_manager.log, instances/*/stderr.txt and stdout.txt".into(),
        missing: Vec::new(),
        unreached: Vec::new(),
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
    let page = report().page(false);
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
    assert!(report().page(true).starts_with("\x1b[1;31mThe run of demo"));
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
    let advice = |command| {
        let program = PlannedProgram {
            command,
            folder: folder.path().into(),
            ..PlannedProgram::default()
        };
        let start = StartMode::Program(program);
        advice_for_missing_file(
            &PlannedInstance {
                name: "m[1]".into(),
                component: "m".into(),
                start,
                ..PlannedInstance::default()
            },
            &culprit(&workdir, &[]),
        )
    };
    let run = |args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        advice(PlannedCommand::Executable {
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
        told.starts_with("m[1] runs in its work directory, where there is no code/a.py: write /"),
        "{told}"
    );
    assert!(
        told.ends_with("`titin: {stage: {m: {in: [code/a.py]}}}`, and write a.py."),
        "{told}"
    );
    assert!(advice(PlannedCommand::Script("exec python3 ./code/a.py".into())).is_some());
}

#[test]
fn a_file_that_a_program_says_it_misses_may_be_beside_the_description() {
    let folder = tempfile::tempdir().unwrap();
    let workdir = folder.path().join("workdir");
    std::fs::create_dir_all(&workdir).unwrap();
    std::fs::write(folder.path().join("data.csv"), "").unwrap();
    let told = |line: &str| {
        let program = PlannedProgram {
            folder: folder.path().into(),
            ..PlannedProgram::default()
        };
        let start = StartMode::Program(program);
        let planned = PlannedInstance {
            name: "m".into(),
            component: "m".into(),
            start,
            ..PlannedInstance::default()
        };
        advice_for_missing_file(&planned, &culprit(&workdir, &[line]))
    };
    for line in [
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
        "Fortran runtime error: Cannot open file 'data.csv': No such file or directory",
        "ERROR: cannot open data.csv",
    ] {
        let advice = told(line).unwrap().join(" ");
        assert!(
            advice.contains("there is no data.csv: write /") && advice.contains("{in: [data.csv]}"),
            "{advice}"
        );
    }
    assert_eq!(told("reading data.csv"), None);
    assert_eq!(told("No such file or directory: 'other.csv'"), None);
}

#[test]
fn a_program_that_says_what_is_wrong_with_its_start_is_listened_to() {
    let told = |line| {
        advice_for_output(&culprit(Path::new("/"), &[line]), Path::new("/bin/titin"))
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
    let line = "  File \"/venv/libmuscle/mcp/tcp_transport_client.py\", line 249, in _connect";
    assert!(
        told(line)
            .unwrap()
            .contains("MUSCLE3's own library, which cannot join")
    );
    assert_eq!(told("ValueError"), None);
}

#[test]
fn an_error_is_shown_whichever_output_it_is_on() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |err: &str, out: &str| {
        std::fs::write(folder.path().join("stderr.txt"), err).unwrap();
        std::fs::write(folder.path().join("stdout.txt"), out).unwrap();
        let shown = last_outputs(folder.path()).into_iter();
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
    // The output of LAMMPS.
    let found = shown(
        &filler,
        "step 1\nERROR: Unknown command: fxi (src/input.cpp:314)\n",
    );
    let error = "ERROR: Unknown command: fxi (src/input.cpp:314)".to_owned();
    assert_eq!(
        found,
        [("stdout.txt".to_owned(), vec!["step 1".to_owned(), error])]
    );
    // The output of gfortran, and of Open MPI's own signal handler.
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
    // Beside an error, a few lines of a program's output about its steps are enough.
    let steps: String = (0..90).map(|step| format!("step {step}\n")).collect();
    let found = shown("ValueError\n", &steps);
    assert_eq!(
        (found[1].1.len(), found[1].1.last().unwrap().as_str()),
        (TAIL_OF_SECOND, "step 89")
    );
    assert_eq!(shown("", &steps)[0].1.len(), TAIL);
    // Without other output, the launcher's text is better than nothing.
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
    let page = Report {
        interrupted: true,
        computing: vec!["meso".into(), "micro[1]".into()],
        ..report()
    }
    .page(false);
    assert!(page.contains("\nAt work:  meso, micro[1]\n"), "{page}");
    assert!(!report().page(false).contains("At work"));
}

#[test]
fn a_python_without_titin_is_told_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let titin = folder.path().join("bin/titin");
    assert!(
        advice_for_other_python(&titin)
            .join(" ")
            .contains("virtual_env")
    );
    std::fs::write(folder.path().join("pyvenv.cfg"), "").unwrap();
    let advice = advice_for_other_python(&titin).join("\n");
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
    let page = Report {
        records: records.into(),
        ..report()
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
    let page = Report {
        cause: cause.clone(),
        ..report()
    }
    .page(false);
    assert!(page.contains("Waiting:  micro[0]"), "{page}");
    let page = Report {
        cause,
        deadlock: true,
        ..report()
    }
    .page(false);
    assert!(!page.contains("Waiting:"), "{page}");
}

#[test]
fn a_culprit_waits_no_more() {
    let named = |name: &str| PlannedInstance {
        name: name.into(),
        ..PlannedInstance::default()
    };
    let plan = Plan {
        instances: [named("macro"), named("micro")].into_iter().collect(),
        ..Plan::default()
    };
    let manager = Manager::new(Arc::new(plan), "here");
    let (first, second) = (InstanceId(0), InstanceId(1));
    let wait = || "waits to receive message 4 on in, for the other".to_owned();
    let failure = Failure {
        at: Duration::ZERO,
        cause: Cause::Instance(first, Fault::Silent(Duration::from_secs(10))),
        waits: vec![(first, wait()), (second, wait())],
        computing: Vec::new(),
        missing_hosts: Vec::new(),
    };
    let folder = Path::new("/runs/r");
    let folder_of = |name: &str| folder.join(name);
    let report = Report::new(&manager, &failure, folder, folder_of, Path::new("titin"));
    assert_eq!(report.waits, [format!("micro {}", wait())]);
}

/// The page of a run whose hosts, `box` by hand, `far` by ssh and `job` by a batch job, come to nothing by
/// an event at a time.
fn page_of_hosts(at: Duration, event: RunEvent, directory: &Path) -> String {
    let host = |name: &str, start, site| PlannedHost {
        name: name.into(),
        start,
        site,
        ..PlannedHost::default()
    };
    let job = BatchJob {
        system: "slurm".into(),
        time: quantity::parse("2 h").unwrap(),
        nodes: None,
        cores_per_node: None,
        queue: None,
        account: None,
        options: [].into(),
        via: Vec::new(),
    };
    let plan = Plan {
        hosts: vec![
            host("box", AgentStart::ByHand, None),
            host("far", AgentStart::Ssh, Some(0)),
            host("job", AgentStart::Batch(Box::new(job)), None),
        ],
        sites: vec![PlannedSite {
            name: "south".into(),
            relay: "login:4710".into(),
        }],
        instances: vec![PlannedInstance::default()].into_iter().collect(),
        ..Plan::default()
    };
    let mut manager = Manager::new(Arc::new(plan), "here").with_hosts(["box", "far", "job"]);
    manager.begin(Duration::ZERO);
    manager.handle(at, event);
    let Some(RunOutcome::Failed(failure)) = manager.outcome() else {
        panic!("the run goes on");
    };
    let folder = |name: &str| directory.join(name);
    Report::new(&manager, failure, directory, folder, Path::new("titin")).page(false)
}

#[test]
fn hosts_that_are_late_have_their_last_words_and_advice_for_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    let said = "error: cannot reach north: refused\n";
    std::fs::write(folder.path().join("agents/far.txt"), said).unwrap();
    let page = page_of_hosts(Duration::from_secs(300), RunEvent::Tick, folder.path());
    assert!(
        page.contains("First:    hosts box, far, job have no agent after 300 s")
            && page
                .contains("of agents/far.txt:\n          | error: cannot reach north: refused\n"),
        "{page}"
    );
    assert!(
        page.contains("Nobody has used the line that the run has printed for \"box\" within 300 s")
            && page.contains("No agent has come from the job of \"job\" within 300 s")
            && page.contains("Files under agents/"),
        "{page}"
    );
    let interrupt = RunEvent::Interrupted("SIGINT".to_owned());
    let page = page_of_hosts(Duration::ZERO, interrupt, folder.path());
    assert!(
        page.contains("of agents/far.txt:\n          | error: cannot reach north: refused\n"),
        "{page}"
    );
}

#[test]
fn a_job_that_fails_is_told_from_a_command_that_starts_an_agent() {
    let event = RunEvent::AgentFailed(HostId(3), "could not be started: sh".to_owned());
    let page = page_of_hosts(Duration::ZERO, event, Path::new("/runs/r"));
    assert!(
        page.contains("The job was not submitted, or the job has failed")
            && !page.contains("Try the command by"),
        "{page}"
    );
}

#[test]
fn a_full_disk_is_told_as_such() {
    let why = || "cannot make /x: No space left on device (os error 28)".to_owned();
    let events = [
        RunEvent::HostUnfit(HostId(2), why()),
        RunEvent::AgentFailed(HostId(2), why()),
        RunEvent::ManagerFailed(why()),
    ];
    for event in events {
        let page = page_of_hosts(Duration::ZERO, event, Path::new("/runs/r"));
        assert!(
            page.contains("Next:     The disk is full: make room"),
            "{page}"
        );
    }
    let advice = |fault: Fault, place: &str| advice_for_fault(&fault, "a", place).join(" ");
    // The manager stages files for other hosts, too.
    for here in [
        advice(Fault::StartFailed(why()), ""),
        advice(Fault::StagingFailed(why()), " on host n2"),
    ] {
        assert!(here.contains("`--run-dir`"), "{here}");
    }
    let there = advice(Fault::StartFailed(why()), " on host n2");
    assert!(there.contains("The disk on host n2 is full"), "{there}");
}

#[test]
fn an_agent_that_does_not_start_is_no_host_that_is_away() {
    let how = "could not be started: ssh n9: Could not resolve hostname n9".to_owned();
    let event = RunEvent::AgentFailed(HostId(2), how);
    let page = page_of_hosts(Duration::ZERO, event, Path::new("/runs/r"));
    assert!(page.contains("Could not resolve hostname"), "{page}");
    assert!(
        page.contains("Try the command by") && !page.contains("Did the host go down"),
        "{page}"
    );
    let event = RunEvent::HostLost(HostId(2), "has ended".into());
    let page = page_of_hosts(Duration::ZERO, event, Path::new("/runs/r"));
    assert!(
        page.contains("Did the host go down") && page.contains("`titin relay status`"),
        "{page}"
    );
}

#[test]
fn nothing_on_the_page_is_obeyed_by_a_terminal() {
    let bad = || "bell\x07 and \x1b]0;\u{202e}title".to_owned();
    let report = Report {
        cause: bad(),
        records: vec![bad()],
        output: vec![("/r/stderr.txt".into(), vec![bad()])],
        affected: vec![("micro".into(), bad())],
        waits: vec![bad()],
        program: Some(bad()),
        ..report()
    };
    let page = report.page(false);
    assert!(
        !page.chars().any(|c| is_command(c) && c != '\n'),
        "{page:?}"
    );
    assert!(
        report
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
    let lines = &last_outputs(folder.path())[0].1;
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
