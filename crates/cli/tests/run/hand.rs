//! Programs that are started by hand or hosted, strangers that connect, and the secret.

use std::io::Write as _;
use std::net::TcpStream;

use crate::*;

impl Stage {
    /// Starts the actor by hand, as a user does.
    fn by_hand(&self, role: &str, instance: &str) -> Running {
        let mut command = Command::new(actor());
        command.arg(role);
        self.spawn_by_hand(command, instance)
    }

    fn spawn_by_hand(&self, mut command: Command, instance: &str) -> Running {
        command.current_dir(self.path());
        command
            .env("TITIN_MANAGER", self.run_dir().join("connection.json"))
            .env("TITIN_INSTANCE", instance);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running(command.spawn().expect("the actor starts"))
    }

    /// Waits for the run's connection file, and returns its content.
    fn connection(&self) -> serde_json::Value {
        let path = self.run_dir().join("connection.json");
        wait_until("the connection file is there", || {
            serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()
        })
    }

    fn address(&self) -> String {
        self.connection()["addresses"][0]
            .as_str()
            .unwrap()
            .trim_start_matches("tcp:")
            .to_owned()
    }
}

#[test]
fn programs_are_started_by_hand_in_either_order() {
    for order in [["macro", "micro"], ["micro", "macro"]] {
        let stage = Stage::pair("macro", "micro", "");
        let manager = stage.start(&["manager"]);
        stage.connection();
        let programs = order.map(|role| {
            let child = stage.by_hand(role, role);
            wait_until("it has joined", || {
                stage
                    .read("titin_manager.log")
                    .contains(&format!("{role}    joined"))
                    .then_some(())
            });
            child
        });
        for program in programs {
            let done = finish(program);
            assert_eq!(done.code(), Some(0), "{}", done.err);
        }
        let done = finish(manager);
        assert_eq!(done.code(), Some(0), "{}", done.err);
        let exports = format!(
            "export TITIN_MANAGER={}/connection.json\n",
            stage.run_dir().display()
        );
        assert!(
            done.err.contains(&exports) && done.err.contains("TITIN_INSTANCE=macro"),
            "{}",
            done.err
        );
        stage.assert_nothing_left();
    }
}

#[test]
fn a_manager_writes_its_location_where_it_is_told_to() {
    let stage = Stage::pair("macro", "micro", "");
    let manager = stage.start(&["manager", "--location-file", "where"]);
    let location = stage.wait_for(&stage.path().join("where"));
    assert_eq!(
        location,
        format!("{}/connection.json", stage.run_dir().display())
    );
    for role in ["macro", "micro"] {
        let mut command = Command::new(actor());
        command.arg(role).env("TITIN_MANAGER", &location);
        command
            .current_dir(stage.path())
            .env("TITIN_INSTANCE", role);
        assert!(
            role == "macro" || command.status().is_ok_and(|status| status.success()),
            "{role}"
        );
        if role == "macro" {
            std::thread::spawn(move || command.status());
        }
    }
    let done = finish(manager);
    assert_eq!(done.code(), Some(0), "{}", done.err);

    let stage = Stage::pair("macro", "micro", "");
    let done = finish(stage.start(&["manager", "--location-file", "no/such/folder"]));
    stage.assert_nothing_left_soon();
    assert_eq!(done.code(), Some(2), "{}", done.err);
    assert!(
        done.err
            .contains("cannot write the location to no/such/folder"),
        "{}",
        done.err
    );
}

#[test]
fn wrong_ports_end_a_run_that_starts_nothing() {
    let stage = Stage::pair("macro", "micro", "");
    let manager = stage.start(&["manager"]);
    stage.connection();
    let waiting = stage.by_hand("macro", "macro");
    let refused = finish(stage.by_hand("misspelt", "micro"));
    assert_ne!(refused.code(), Some(0));
    let done = finish(manager);
    done.assert_failed("micro was not let in: ");
    assert_ne!(finish(waiting).code(), Some(0));
    stage.assert_nothing_left();
}

#[test]
fn what_is_printed_can_be_pasted_and_files_are_staged_as_for_others() {
    let stage = Stage::pair(
        "macro",
        "micro",
        "titin: {stage: {micro: {in: [mesh.txt], out: [result.txt]}}}",
    );
    fs::write(stage.path().join("mesh.txt"), "points").unwrap();
    let told = stage.path().join("told");
    let mut command = stage.command(&["run", "--by-hand", "micro"]);
    command.stderr(fs::File::create(&told).unwrap());
    let mut run = Running(command.spawn().expect("titin starts"));
    let text = wait_until("it is told how", || {
        fs::read_to_string(&told)
            .ok()
            .filter(|text| text.contains("\n# in a debugger: gdb --args "))
    });
    let lines = text
        .split_once("# micro\n")
        .and_then(|(_, rest)| rest.split_once("# in a debugger"));
    let (lines, _) = lines.expect("a part for micro");
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", lines])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(Running(shell.spawn().expect("a shell starts")));
    assert_eq!(done.code(), Some(0), "{lines}\n{}", done.err);
    let status = wait_until("the run ends", || run.0.try_wait().expect("it is a child"));
    assert_eq!(
        status.code(),
        Some(0),
        "{}",
        fs::read_to_string(&told).unwrap()
    );
    assert_eq!(
        fs::read_to_string(stage.instance("micro", "workdir/mesh.txt")).unwrap(),
        "points"
    );
    assert_eq!(stage.read("results/micro/result.txt"), "micro");
    stage.assert_nothing_left();
}

#[test]
fn one_of_them_is_started_by_hand_and_dies() {
    // Before Linux 5.3 the manager has to look whether a process lives. The second round plays such
    // a system.
    for old_system in [false, true] {
        let stage = Stage::pair("macro, 'middle:hang'", "micro", "titin: {grace: 100 ms}");
        let mut command = stage.command(&["run", "--by-hand", "micro"]);
        if old_system {
            command.env("TITIN_OLD_SYSTEM", "1");
        }
        let run = Running(command.spawn().expect("titin starts"));
        stage.connection();
        let program = stage.by_hand("micro", "micro");
        stage.wait_for(&stage.instance("macro", "stderr.txt"));
        program.kill();
        let done = finish(run);
        done.assert_failed("micro ended (how is not known) without closing its instance");
        stage.assert_nothing_left();
    }
}

// The heartbeat is 2 s in these tests. With a shorter heartbeat programs might give up, because a
// busy machine may keep the manager from running for some tenths of a second.

#[test]
fn a_silent_program_is_waited_for_while_its_process_is_seen_to_live() {
    let stage = Stage::pair(
        "macro, 'middle:hang'",
        "micro",
        "titin: {heartbeat: 2 s, grace: 100 ms}",
    );
    let run = stage.start(&["run", "--by-hand", "micro"]);
    stage.connection();
    let program = stage.by_hand("micro", "micro");
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    kill("STOP", &program.pid());
    wait_until("it is told", || {
        stage
            .read("titin_manager.log")
            .contains("but its process lives; waiting")
            .then_some(())
    });
    program.kill();
    finish(run).assert_failed("micro ended");
    stage.assert_nothing_left();
}

#[test]
fn a_silent_program_that_cannot_be_seen_fails_the_run() {
    let stage = Stage::pair(
        "macro, 'middle:hang'",
        "micro",
        "titin: {heartbeat: 2 s, grace: 100 ms}",
    );
    // In another process namespace, as in a container or on another host, a process id tells
    // nothing.
    let Some(mut apart) = in_process_namespace(&[]) else {
        return;
    };
    let run = stage.start(&["run", "--by-hand", "micro"]);
    stage.connection();
    apart.arg(actor()).arg("micro");
    let program = stage.spawn_by_hand(apart, "micro");
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    let inside = Command::new("pgrep")
        .args(["-P", &program.pid()])
        .output()
        .unwrap();
    kill("STOP", String::from_utf8(inside.stdout).unwrap().trim());
    finish(run).assert_failed("micro was silent for ");
    drop(program);
    stage.assert_nothing_left_soon();
}

#[test]
fn a_run_is_reached_from_other_hosts_where_that_is_asked_for() {
    for (words, nodes, beyond) in [
        (&["manager"][..], "1", false),
        (&["manager"], "2", true),
        (&["manager", "--listen", "all"], "1", true),
        (&["manager", "--listen", "127.0.0.1"], "2", false),
    ] {
        let stage = Stage::pair("macro", "micro", "");
        let mut command = stage.command(words);
        let manager = Running(
            command
                .env("SLURM_JOB_NUM_NODES", nodes)
                .spawn()
                .expect("titin starts"),
        );
        let connection = stage.connection();
        let addresses = connection["addresses"].as_array().unwrap();
        let loopback = addresses
            .iter()
            .all(|address| address.as_str().unwrap().starts_with("tcp:127."));
        // A machine without a network has only loopback addresses.
        assert!(
            loopback != beyond || loopback && addresses.len() == 1,
            "{words:?}: {connection}"
        );
        assert_eq!(
            connection["spans_hosts"],
            beyond || words.contains(&"127.0.0.1"),
            "{words:?}: {connection}"
        );
        for program in ["macro", "micro"].map(|role| stage.by_hand(role, role)) {
            let done = finish(program);
            assert_eq!(done.code(), Some(0), "{}", done.err);
        }
        finish(manager);
        stage.assert_nothing_left();
    }
    for wrong in ["no.such.host.invalid", "0.0.0.0", "localhost", "192.0.2.1"] {
        let stage = Stage::pair("macro", "micro", "");
        let refused = stage.run_with(&["manager", "--listen", wrong]);
        assert_eq!(refused.code(), Some(2));
        assert!(
            refused.err.contains(&format!("--listen {wrong}")),
            "{}",
            refused.err
        );
        assert!(
            refused
                .err
                .contains("give a name or an address of this host"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_program_does_not_wait_for_a_silent_manager() {
    let stage = Stage::pair("deaf", "micro", "titin: {heartbeat: 200 ms}");
    let manager = stage.start(&["manager"]);
    stage.connection();
    let programs = ["macro", "micro"].map(|name| stage.by_hand(name, name));
    wait_until("both have joined", || {
        let log = stage.read("titin_manager.log");
        (log.contains("macro    joined") && log.contains("micro    joined")).then_some(())
    });
    kill("STOP", &manager.pid());
    for program in programs {
        let done = finish(program);
        assert!(
            done.code() == Some(0) || done.err.contains("no sign of life"),
            "{}",
            done.err
        );
    }
    kill("CONT", &manager.pid());
    finish(manager);
    stage.assert_nothing_left();
}

#[test]
fn hosted_instances_take_part_and_their_host_is_not_outlived() {
    let stage = Stage::pair("macro", "micro", "");
    let run = stage.start(&["run", "--hosted", "macro"]);
    stage.connection();
    let program = finish(stage.by_hand("macro", "macro"));
    assert_eq!(program.code(), Some(0), "{}", program.err);
    assert_eq!(finish(run).code(), Some(0));
    stage.assert_nothing_left();

    // The host process is a shell, which starts a run and is killed.
    let stage = Stage::pair("macro", "micro", "");
    let titin = env!("CARGO_BIN_EXE_titin");
    let script = format!("{titin} run --hosted macro model.ymmsl --run-dir run & wait");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(stage.path())
        .stderr(Stdio::null());
    let shell = Running(shell.spawn().unwrap());
    wait_until("micro has joined", || {
        stage
            .read("titin_manager.log")
            .contains("micro    joined")
            .then_some(())
    });
    shell.kill();
    stage.assert_nothing_left_soon();
    wait_until("it is told", || {
        stage
            .read("titin_manager.log")
            .contains("which had begun the run")
            .then_some(())
    });
}

#[test]
fn the_end_is_told_to_machines_also_when_programs_are_started_by_hand() {
    let stage = Stage::pair("macro", "micro", "");
    let run = stage.start(&["run", "--json", "--by-hand", "micro"]);
    stage.connection();
    assert_eq!(finish(stage.by_hand("micro", "micro")).code(), Some(0));
    let done = finish(run);
    let ending: serde_json::Value = serde_json::from_str(&done.out).expect("JSON and nothing else");
    assert_eq!(ending["outcome"], "done");
}

#[test]
fn strangers_change_nothing() {
    let stage = Stage::pair("macro", "micro", "");
    let manager = stage.start(&["manager"]);
    let address = stage.address();
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 100_000],
        b"TITIN\r\n\0",
        b"",
    ] {
        let mut stranger = TcpStream::connect(&address).unwrap();
        let _ = stranger.write_all(garbage);
    }
    // A program with the connection file of another run.
    let mut connection = stage.connection();
    connection["secret"] = "00".repeat(32).into();
    connection.as_object_mut().unwrap().remove("run");
    let other = stage.path().join("other.json");
    fs::write(&other, connection.to_string()).unwrap();
    let mut command = Command::new(actor());
    command
        .arg("macro")
        .current_dir(stage.path())
        .env("TITIN_MANAGER", other)
        .env("TITIN_INSTANCE", "macro");
    let stranger = Running(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let done = finish(stranger);
    assert_eq!(done.code(), Some(1));
    assert!(done.err.contains("secret"), "{}", done.err);

    let programs = ["macro", "micro"].map(|role| stage.by_hand(role, role));
    for program in programs {
        assert_eq!(finish(program).code(), Some(0));
    }
    assert_eq!(finish(manager).code(), Some(0));
}

#[test]
fn a_wrong_name_is_refused_and_the_right_one_is_still_free() {
    let stage = Stage::pair("macro", "micro", "");
    let manager = stage.start(&["manager"]);
    stage.connection();
    let wrong = finish(stage.by_hand("macro", "marco"));
    assert_eq!(wrong.code(), Some(1));
    assert!(
        wrong.err.contains("no instance marco; did you mean macro?"),
        "{}",
        wrong.err
    );
    let programs = ["macro", "micro"].map(|role| stage.by_hand(role, role));
    for program in programs {
        assert_eq!(finish(program).code(), Some(0));
    }
    assert_eq!(finish(manager).code(), Some(0));
}

#[test]
fn the_secret_is_in_the_connection_file_only() {
    let stage = Stage::pair("macro, 'middle:hang'", "micro", "titin: {grace: 100 ms}");
    let run = stage.start(&["run", "-v", "--trace"]);
    let secret = stage.connection()["secret"].as_str().unwrap().to_owned();
    stage.wait_for(&stage.instance("macro", "stderr.txt"));
    for process in fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(process.path().join(file)).unwrap_or_default();
            assert!(
                !holds(&bytes, &secret),
                "the secret is in {}",
                process.path().join(file).display()
            );
        }
    }
    kill("INT", &run.pid());
    let done = finish(run);
    assert!(!done.out.contains(&secret) && !done.err.contains(&secret));
    let mut folders = vec![stage.run_dir()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                assert!(
                    !holds(&fs::read(entry.path()).unwrap(), &secret),
                    "{}",
                    entry.path().display()
                );
            }
        }
    }
    assert!(files > 4);
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}
