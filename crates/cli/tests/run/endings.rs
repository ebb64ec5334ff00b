//! Runs that end well, and the files that they leave.

use crate::*;

#[test]
fn a_pair_runs_and_leaves_its_files_in_their_places() {
    let stage = Stage::pair("macro", "micro", "settings: {dt: 0.5}");
    let done = stage.run();
    assert_eq!(done.code(), Some(0), "{}", done.err);
    assert!(done.out.starts_with("pair: done in "), "{}", done.out);
    assert!(done.out.contains(" 12 messages; "), "{}", done.out);
    assert_eq!(
        fs::read_to_string(stage.instance("micro", "stdout.txt")).unwrap(),
        "called 6 times\n"
    );
    assert_eq!(
        fs::read_to_string(stage.instance("macro", "workdir/result.txt")).unwrap(),
        "macro"
    );
    assert!(
        stage
            .read("configuration.ymmsl")
            .contains("macro.out: micro.in")
    );
    let log = stage.read("titin_manager.log");
    assert!(log.contains("INFO     macro    off we go"), "{log}");
    let database = fs::read(stage.run_dir().join("performance.sqlite")).unwrap();
    assert!(database.starts_with(b"SQLite format 3"));

    let again = stage.run();
    assert_eq!(again.code(), Some(2));
    assert!(again.err.contains("holds an earlier run"), "{}", again.err);
}

#[test]
fn what_was_run_can_be_run_again_from_the_run_directory() {
    let program = |role: &str| format!("{{executable: ./actor, args: [{role}]}}");
    let stage = Stage::programs(
        &program("macro"),
        &program("micro"),
        "titin: {stage: {macro: {in: [mesh.txt]}}}",
    );
    std::os::unix::fs::symlink(actor(), stage.path().join("actor")).unwrap();
    fs::write(stage.path().join("mesh.txt"), "points").unwrap();
    assert_eq!(stage.run().code(), Some(0));
    let mut again = Command::new(env!("CARGO_BIN_EXE_titin"));
    again
        .args(["run", "configuration.ymmsl", "--run-dir", "again"])
        .current_dir(stage.run_dir());
    again
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(Running(again.spawn().expect("titin starts")));
    assert_eq!(done.code(), Some(0), "{}", done.err);
    assert_eq!(
        stage.read("again/instances/macro/workdir/mesh.txt"),
        "points"
    );
}

#[test]
fn the_end_is_told_to_machines_too() {
    let done = Stage::pair("macro", "micro", "").run_with(&["run", "--json"]);
    let ending: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(ending["outcome"], "done", "{}", done.err);
    assert_eq!(ending["instances"][1]["name"], "micro");
    assert_eq!(ending["instances"][1]["process"], "ended with exit code 0");
    let done = Stage::pair("macro, 'middle:exit3'", "micro", "").run_with(&["run", "--json"]);
    let ending: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(
        (&ending["outcome"], &ending["story"]["culprit"]),
        (&"failed".into(), &"macro".into())
    );
    let done = Stage::pair("macro", "micro", "setings: {}").run_with(&["run", "--json"]);
    let refused: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(refused["problems"][0]["hint"], "did you mean \"settings\"?");
}

#[test]
fn a_bad_description_starts_nothing() {
    let stage = Stage::pair("macro", "micro", "setings: {}");
    let done = stage.run();
    assert_eq!(done.code(), Some(2));
    assert!(
        done.err.contains("did you mean \"settings\"?"),
        "{}",
        done.err
    );
    assert!(!stage.run_dir().exists());
}

#[test]
fn files_are_staged_in_and_results_out() {
    let more = "titin: {stage: {macro: {in: [mesh.txt], out: [result.txt, nothing.txt]}}}";
    let stage = Stage::pair("macro", "micro", more);
    fs::write(stage.path().join("mesh.txt"), "points").unwrap();
    let done = stage.run();
    assert_eq!(done.code(), Some(0), "{}", done.err);
    assert_eq!(
        fs::read_to_string(stage.instance("macro", "workdir/mesh.txt")).unwrap(),
        "points"
    );
    assert_eq!(stage.read("results/macro/result.txt"), "macro");
    assert!(done.err.contains("there is no nothing.txt"), "{}", done.err);
    let stage = Stage::pair("macro", "micro", more);
    stage
        .run()
        .assert_failed("macro could not be started: there is no mesh.txt to stage in");
}

#[test]
fn programs_are_started_by_scripts_and_in_other_sessions() {
    for launcher in ["exec", "setsid --wait", ""] {
        let actor = actor();
        let script = format!("{{script: \"{launcher} {} micro\"}}", actor.display());
        let stage = Stage::programs(
            &format!("{{executable: {}, args: [macro]}}", actor.display()),
            &script,
            "",
        );
        let done = stage.run();
        assert_eq!(done.code(), Some(0), "{launcher}: {}", done.err);
    }
}

#[test]
fn mpirun_starts_a_program_whose_root_takes_part() {
    if Command::new("mpirun").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("CI").is_none(),
            "there is no mpirun here; make test-rust installs one"
        );
        eprintln!("not tried: there is no mpirun here");
        return;
    }
    let actor = actor();
    let script = format!(
        "{{script: \"export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\\nmpirun -n 1 {} micro\"}}",
        actor.display()
    );
    let stage = Stage::programs(
        &format!("{{executable: {}, args: [macro]}}", actor.display()),
        &script,
        "",
    );
    let done = stage.run();
    assert_eq!(
        done.code(),
        Some(0),
        "{}\n{}",
        done.err,
        stage.read("instances/micro/stderr.txt")
    );
}

#[test]
fn what_programs_leave_behind_is_ended() {
    let stage = Stage::pair("macro, 'after:fork'", "micro", "");
    let done = stage.run();
    assert_eq!(done.code(), Some(0), "{}", done.err);
    assert!(stage.instance("macro", "workdir/child.pid").exists());
    assert!(
        done.err.contains("ended what programs had left behind: s"),
        "{}",
        done.err
    );
}

#[test]
fn what_begins_anew_and_ends_all_the_time_is_ended_too() {
    let stage = Stage::pair("macro, 'after:chain'", "micro", "");
    let done = finish(stage.start(&["run"]));
    assert_eq!(done.code(), Some(0), "{}", done.err);
    // One look at the processes may miss a link of the chain, so the test looks several times.
    (0..20).for_each(|_| stage.assert_nothing_left());
}

#[test]
fn a_run_that_is_stopped_for_a_while_goes_on_whole() {
    let stage = Stage::pair(
        "macro, 'middle:wait'",
        "micro",
        "titin: {heartbeat: 500 ms}",
    );
    let run = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    let log = stage.read("titin_manager.log");
    let programs: Vec<&str> = log
        .split("joined: process ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    assert_eq!(programs.len(), 2, "{log}");
    let stopped = |pid: &str| wait_until("it is stopped", || is_stopped(pid).then_some(()));
    kill("TSTP", &run.pid());
    programs.iter().copied().for_each(stopped);
    stopped(&run.pid());
    // Longer than titin waits for a sign of life.
    let begun = std::time::Instant::now();
    wait_until("time has passed", || {
        (begun.elapsed() > Duration::from_millis(1500)).then_some(())
    });
    kill("CONT", &run.pid());
    wait_until("macro goes on", || (!is_stopped(programs[0])).then_some(()));
    fs::write(stage.instance("macro", "workdir/go"), "").unwrap();
    let done = finish(run);
    assert_eq!(done.code(), Some(0), "{}", done.err);
    assert!(
        done.err.contains("and its programs with it"),
        "{}",
        done.err
    );
    stage.assert_nothing_left();
}

#[test]
fn what_begins_anew_and_ends_all_the_time_is_stopped_too() {
    let stage = Stage::pair("macro, 'middle:chainwait'", "micro", "");
    let run = stage.start(&["run"]);
    wait_until("the chain has begun", || {
        let told = fs::read_to_string(stage.instance("macro", "stderr.txt")).ok()?;
        told.contains("about to: wait").then_some(())
    });
    kill("TSTP", &run.pid());
    // One look may miss a process that is not stopped, here and in the guard. The guard's look may
    // miss a link of the chain, and then the chain runs to its end.
    let links = wait_until("all are stopped", || {
        (0..10).try_fold(0, |_, _| {
            let processes = stage.processes();
            let runs = |stat: &&String| !stat.contains("(titin) ") && !stat.contains(") T ");
            let links = processes
                .iter()
                .filter(|stat| stat.contains("(sh) "))
                .count();
            processes.iter().find(runs).is_none().then_some(links)
        })
    });
    assert!(links > 0, "the chain has come to its end");
    kill("CONT", &run.pid());
    fs::write(stage.instance("macro", "workdir/go"), "").unwrap();
    let done = finish(run);
    assert_eq!(done.code(), Some(0), "{}", done.err);
    stage.assert_nothing_left();
}

#[test]
fn a_stopped_run_can_be_killed() {
    let stage = Stage::pair("macro, 'middle:wait'", "micro", "");
    let run = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    kill("TSTP", &run.pid());
    wait_until("it is stopped", || is_stopped(&run.pid()).then_some(()));
    run.kill();
    stage.assert_nothing_left_soon();
}

#[test]
fn at_a_terminal_each_instance_has_a_line() {
    let more = "settings: {t_end: 6.0}\ntitin: {progress: {macro: t_end}}";
    let stage = Stage::pair("macro", "micro", more);
    // `script` gives titin a terminal, and passes the terminal's output on to the test.
    let titin = env!("CARGO_BIN_EXE_titin");
    let mut command = Command::new("script");
    command.args([
        "-qec",
        &format!("{titin} run model.ymmsl --run-dir run"),
        "/dev/null",
    ]);
    command
        .current_dir(stage.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(Running(command.spawn().expect("script starts")));
    assert_eq!(done.code(), Some(0), "{}", done.out);
    let plain = anstream::adapter::strip_str(&done.out).to_string();
    assert!(plain.len() < done.out.len(), "colours: {:?}", done.out);
    assert!(plain.contains("macro done     t = 5"), "{plain:?}");
    assert!(plain.contains("micro done"), "{plain:?}");
    assert!(
        plain.contains(" 100 %"),
        "the time against the end: {plain:?}"
    );
    assert!(plain.contains("pair: done in"), "{plain:?}");
}

#[test]
fn a_run_goes_well_where_its_process_group_is_out_of_sight() {
    // In a container that was entered from outside, the leader of the process group has no process
    // id.
    let Some(mut apart) = in_process_namespace(&["--mount-proc"]) else {
        return;
    };
    let stage = Stage::pair("macro", "micro", "");
    apart
        .arg(env!("CARGO_BIN_EXE_titin"))
        .args(["run", "model.ymmsl", "--run-dir", "run"]);
    apart
        .current_dir(stage.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(Running(apart.spawn().expect("unshare starts")));
    assert_eq!(done.code(), Some(0), "{}", done.err);
}
