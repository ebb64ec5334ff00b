//! Runs that fail: their reports, and that no process or file is left.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::*;

#[test]
fn every_death_in_the_middle_is_named_first_and_its_peer_second() {
    for (fault, told) in [
        ("middle:kill", "macro was ended by SIGKILL"),
        ("middle:forkkill", "macro was ended by SIGKILL"),
        ("middle:abort", "macro was ended by SIGABRT"),
        ("middle:exit3", "macro ended with exit code 3"),
        (
            "middle:exit0",
            "macro ended with exit code 0, but without closing its instance",
        ),
        ("middle:panic", "macro reported an error: "),
    ] {
        let stage = Stage::pair(&format!("macro, '{fault}'"), "micro", "");
        let done = stage.run();
        done.assert_failed(told);
        assert!(
            done.err
                .contains("Affected: micro: the run has failed because of macro"),
            "{fault}: {}",
            done.err
        );
        assert!(
            done.err.contains("| about to: ") || fault.ends_with("panic"),
            "{}",
            done.err
        );
        let stderr = fs::read_to_string(stage.instance("micro", "stderr.txt")).unwrap();
        assert!(
            stderr.contains("macro"),
            "{fault}: the peer's own error names the culprit: {stderr}"
        );
    }
}

#[test]
fn who_leaves_in_the_middle_of_a_use_is_named_first_and_not_who_waits_for_it() {
    let quiet = "settings: {muscle_remote_log_level: ERROR}";
    for more in ["", quiet] {
        let done = Stage::pair("macro", "leaver", more).run();
        done.assert_failed(
            "micro left its peers waiting: a use has ended in which nothing was sent on O_F port",
        );
        assert!(done.err.contains("Affected: macro: "), "{}", done.err);
        assert!(
            !done.err.contains("of its log:"),
            "the warning is told once: {}",
            done.err
        );
    }
}

#[test]
fn a_death_before_joining_or_after_the_coupling_is_told_as_such() {
    for (fault, told) in [
        (
            "before:exit0",
            "micro ended with exit code 0 before it had joined the run",
        ),
        ("before:kill", "micro was ended by SIGKILL"),
        ("before:abort", "micro was ended by SIGABRT"),
        (
            "after:exit3",
            "micro ended with exit code 3 after it had finished its coupling",
        ),
    ] {
        Stage::pair("macro", &format!("micro, '{fault}'"), "")
            .run()
            .assert_failed(told);
    }
}

#[test]
fn a_program_that_cannot_be_started_is_explained() {
    let stage = Stage::programs(
        "{executable: ./missing}",
        "{executable: sh, args: [-c, 'exec sleep 1000']}",
        "",
    );
    let done = stage.run();
    done.assert_failed("macro could not be started: ");
    assert!(
        done.err.contains("relative paths begin at the description"),
        "{}",
        done.err
    );
    assert!(
        done.err
            .contains("Affected: micro: was not started any more"),
        "{}",
        done.err
    );
    assert!(!stage.instance("micro", "").exists());
}

#[test]
fn a_program_that_never_calls_titin_is_noticed() {
    let stage = Stage::programs("{executable: 'true'}", "{executable: 'true'}", "");
    let done = stage.run();
    assert!(
        done.err.contains("before it had joined the run"),
        "{}",
        done.err
    );
    let hangs = "{executable: sleep, args: ['1000']}";
    let stage = Stage::programs(
        hangs,
        hangs,
        "titin: {register_timeout: 300 ms, grace: 100 ms}",
    );
    let done = stage.run();
    assert!(
        done.err.contains("did not join the run within 0.3 s"),
        "{}",
        done.err
    );
}

#[test]
fn a_port_misspelt_in_the_program_is_told_with_both_names() {
    let done = Stage::pair("misspelt", "micro", "").run();
    done.assert_failed("macro was not let in: the description connects macro.out");
    assert!(done.err.contains("it has uot"), "{}", done.err);
}

#[test]
fn whoever_is_in_its_own_code_gets_the_grace_period_and_no_more() {
    let stage = Stage::pair(
        "macro, 'before:hang'",
        "micro, 'joined:kill'",
        "titin: {grace: 200 ms}",
    );
    let done = stage.run();
    done.assert_failed("micro was ended by SIGKILL");
    assert!(
        done.err.contains("Affected: macro: was made to end"),
        "{}",
        done.err
    );
}

#[test]
fn ctrl_c_ends_the_run_with_its_own_code() {
    for signal in ["INT", "TERM", "HUP"] {
        let stage = Stage::pair("macro, 'middle:hang'", "micro", "titin: {grace: 100 ms}");
        let child = stage.start(&["run"]);
        stage.wait_for(&stage.instance("macro", "stderr.txt"));
        kill(signal, &child.pid());
        let done = finish(child);
        assert_eq!(done.code(), Some(130), "{}", done.err);
        assert!(
            done.err
                .contains(&format!("the user ended the run (SIG{signal})")),
            "{}",
            done.err
        );
        stage.assert_nothing_left();
    }
}

/// Interrupts again and again until the run ends, as an impatient user does.
fn interrupt_until_it_ends(mut child: Running) -> Done {
    wait_until("it has ended", || {
        kill("INT", &child.pid());
        child.0.try_wait().expect("it is a child").map(|_| ())
    });
    finish(child)
}

#[test]
fn ctrl_c_twice_does_not_wait() {
    let stage = Stage::pair("macro, 'middle:hang'", "micro", "titin: {grace: 1000 s}");
    let child = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    assert_eq!(interrupt_until_it_ends(child).code(), Some(130));
    stage.assert_nothing_left();
}

/// Writes a file so large that the test notices the copy before the copy ends. A hole would be copied at once.
fn write_huge(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    for _ in 0..512 {
        file.write_all(&[1; 1 << 20]).unwrap();
    }
}

#[test]
fn ctrl_c_ends_the_copying_of_what_goes_in() {
    let stage = Stage::pair("macro", "micro", "titin: {stage: {macro: {in: [huge]}}}");
    write_huge(&stage.path().join("huge"));
    let child = stage.start(&["run"]);
    let copy = stage.instance("macro", "workdir/huge");
    wait_until("it is being copied", || copy.exists().then_some(()));
    kill("INT", &child.pid());
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{}", done.err);
    assert!(
        done.err.contains("macro: was not started any more"),
        "{}",
        done.err
    );
    assert!(!copy.exists(), "half of it is left");
    stage.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_the_copying_of_results_and_says_what_is_left_out() {
    let stage = Stage::pair(
        "macro, 'middle:wait'",
        "micro",
        "titin: {stage: {macro: {out: [result.txt, huge]}, micro: {out: [result.txt]}}}",
    );
    let child = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    write_huge(&stage.instance("macro", "workdir/huge"));
    fs::write(stage.instance("macro", "workdir/go"), "").unwrap();
    let copy = stage.run_dir().join("results/macro/huge");
    wait_until("it is being copied", || copy.exists().then_some(()));
    kill("TERM", &child.pid());
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{}", done.err);
    assert!(
        done.err
            .contains("(SIGTERM); left out: \"huge of macro\" and \"result.txt of micro\""),
        "{}",
        done.err
    );
    assert_eq!(stage.read("results/macro/result.txt"), "macro");
    assert!(!copy.exists() && !stage.run_dir().join("results/micro").exists());
    stage.assert_nothing_left();
}

#[test]
fn a_pipe_is_no_file_to_stage() {
    let stage = Stage::pair("macro", "micro", "titin: {stage: {macro: {in: [pipe]}}}");
    let made = Command::new("mkfifo")
        .arg(stage.path().join("pipe"))
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    let done = stage.run();
    done.assert_failed("macro could not be started: cannot copy ");
    let report = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("pipe is neither a file nor a folder"),
        "{}",
        done.err
    );
}

#[test]
fn a_killed_manager_leaves_nothing_behind() {
    for fault in ["middle:hang", "before:hang"] {
        let stage = Stage::pair(&format!("macro, '{fault}'"), "micro", "");
        let child = stage.start(&["run"]);
        stage.wait_for(&stage.instance("macro", "stderr.txt"));
        child.kill();
        stage.assert_nothing_left_soon();
        wait_until("the guard says so", || {
            stage
                .read("titin_manager.log")
                .contains("the process that has started this guard is gone")
                .then_some(())
        });
    }
}

#[test]
fn a_killed_manager_leaves_nothing_behind_of_scripts_and_sessions_either() {
    let script = "{script: \"setsid sleep 1000 & \\n echo up \\n setsid --wait sleep 1000\"}";
    let stage = Stage::programs(script, script, "");
    let child = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stdout.txt"));
    stage.wait_for(&stage.instance("micro", "stdout.txt"));
    child.kill();
    stage.assert_nothing_left_soon();
}

#[test]
fn a_killed_guard_ends_the_run_and_leaves_nothing_behind() {
    let script = "{script: \"setsid sleep 1000 & \\n echo up \\n setsid --wait sleep 1000\"}";
    let micro = format!("{{executable: {}, args: [micro]}}", actor().display());
    let stage = Stage::programs(script, &micro, "");
    let child = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stdout.txt"));
    let (titin, guard) = (child.pid(), "guard");
    let children = Command::new("pgrep")
        .args(["-P", &titin, "-f", guard])
        .output()
        .unwrap();
    kill("KILL", String::from_utf8(children.stdout).unwrap().trim());
    let done = finish(child);
    done.assert_failed("the guard was ended by SIGKILL");
    assert!(
        done.err.contains("ended what programs had left behind"),
        "{}",
        done.err
    );
    stage.assert_nothing_left();
}

#[test]
fn a_full_disk_ends_the_run_with_a_clear_error() {
    for (file, told) in [
        (
            "titin_manager.log",
            "titin_manager.log: No space left on device",
        ),
        (
            "performance.sqlite",
            "all instances are done, but not all could be kept",
        ),
    ] {
        let stage = Stage::pair("macro", "micro", "");
        fs::create_dir(stage.run_dir()).unwrap();
        std::os::unix::fs::symlink("/dev/full", stage.run_dir().join(file)).unwrap();
        let done = stage.run();
        assert_eq!(done.code(), Some(1), "{}", done.err);
        assert!(done.err.contains(told), "{}", done.err);
        assert!(!done.err.contains("panicked"), "{}", done.err);
    }
}

#[test]
fn results_that_cannot_be_kept_fail_the_run() {
    let stage = Stage::pair(
        "macro",
        "micro",
        "titin: {stage: {macro: {out: [result.txt]}}}",
    );
    fs::create_dir(stage.run_dir()).unwrap();
    fs::write(stage.run_dir().join("results"), "in the way").unwrap();
    let done = stage.run();
    done.assert_failed("all instances are done, but not all could be kept: cannot copy ");
}

#[test]
fn a_run_that_cannot_begin_leaves_no_secret() {
    let stage = Stage::pair("macro", "micro", "");
    fs::create_dir_all(stage.run_dir().join("titin_manager.log")).unwrap();
    let done = stage.run();
    assert_eq!(done.code(), Some(2), "{}", done.err);
    assert!(done.err.contains("titin_manager.log"), "{}", done.err);
    stage.assert_nothing_left();
}

#[test]
fn what_has_a_name_that_is_not_text_is_ended_too() {
    // The operating system keeps 15 bytes of a process name. Here the 15 bytes end in the middle of
    // a letter.
    let script = "{script: \"cp $(command -v sleep) ./abcdefghijklmné; setsid ./abcdefghijklmné 1000 & \n exec true\"}";
    let stage = Stage::programs(script, script, "");
    let done = stage.run();
    assert!(
        done.err.contains("ended what programs had left behind: "),
        "{}",
        done.err
    );
    stage.assert_nothing_left();
}

#[test]
fn a_deadlock_is_shown_as_a_cycle_with_ports() {
    let stage = Stage::pair("deaf", "micro", "");
    let done = stage.run();
    done.assert_failed("deadlock: 2 instances wait for each other in a cycle");
    assert!(
        done.err
            .contains("macro waits to receive message 1 on back, for micro.final"),
        "{}",
        done.err
    );
    assert!(
        done.err
            .contains("micro waits to receive message 1 on in, for macro.out"),
        "{}",
        done.err
    );
}

#[test]
fn a_guard_that_somebody_has_stopped_still_ends_the_run() {
    let stage = Stage::pair("macro, 'middle:hang'", "micro", "titin: {grace: 100 ms}");
    let run = stage.start(&["run"]);
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    let guard = Command::new("pgrep")
        .args(["-P", &run.pid()])
        .output()
        .expect("pgrep runs")
        .stdout;
    let guard = String::from_utf8(guard)
        .expect("a number")
        .trim()
        .to_owned();
    kill("STOP", &guard);
    wait_until("it is stopped", || is_stopped(&guard).then_some(()));
    kill("INT", &run.pid());
    let done = finish(run);
    assert_eq!(done.code(), Some(130), "{}", done.err);
    assert!(!done.err.contains("nobody has seen it end"), "{}", done.err);
    stage.assert_nothing_left();
}

#[test]
fn ctrl_c_at_the_very_beginning_leaves_nothing() {
    for _ in 0..5 {
        let stage = Stage::pair("macro", "micro, 'joined:hang'", "titin: {grace: 100 ms}");
        let mut command = stage.command(&["run"]);
        let run = Running(command.process_group(0).spawn().expect("titin starts"));
        while !stage.run_dir().exists() {
            std::thread::yield_now();
        }
        // A terminal sends the signal to the whole process group.
        kill("INT", &format!("-{}", run.pid()));
        let done = finish(run);
        assert_eq!(done.code(), Some(130), "{}", done.err);
        stage.assert_nothing_left();
    }
}

#[test]
fn a_manager_killed_in_the_moment_in_which_there_is_a_secret_leaves_none() {
    // Not every try hits the moment, so the test tries several times.
    for _ in 0..8 {
        let stage = Stage::pair("macro", "micro", "");
        let running = stage.start(&["run"]);
        let files =
            ["connection.json.new", "connection.json"].map(|file| stage.run_dir().join(file));
        let is_there = || files.iter().any(|file| file.exists());
        // The loop makes no pause. The guard, which removes the file, must run before the file
        // exists.
        let begun = std::time::Instant::now();
        while !is_there() {
            assert!(begun.elapsed() < WATCHDOG, "the run does not begin");
        }
        running.kill();
        wait_until("the secret is gone", || (!is_there()).then_some(()));
        stage.assert_nothing_left_soon();
    }
}
