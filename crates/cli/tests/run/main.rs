//! `titin run` with real programs that behave well or badly.

mod endings;
mod faults;
mod habits;
mod hand;

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest time of a test. After this time the test's processes are killed, and the test fails.
const WATCHDOG: Duration = Duration::from_secs(120);

/// The pause between two looks at something that will happen.
const LOOK: Duration = Duration::from_millis(5);

/// A folder with a model of two components, for one run.
struct Stage {
    folder: tempfile::TempDir,
}

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

/// The exit status and the output of a run.
struct Done {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Done {
    fn code(&self) -> Option<i32> {
        self.status.code()
    }

    fn assert_failed(&self, first: &str) {
        assert_eq!(self.code(), Some(1), "{}", self.err);
        let (lines, report) = self.err.split_once("First:    ").expect("a report");
        assert!(report.starts_with(first), "expected {first}\n{}", self.err);
        assert!(
            !lines.contains(first),
            "the cause is in the report alone\n{}",
            self.err
        );
    }
}

/// The program that plays both sides.
fn actor() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_titin"))
        .with_file_name("examples")
        .join("actor")
}

/// A command that runs a program in a process namespace of its own; `None` if this system does not
/// let us make a process namespace.
fn in_process_namespace(options: &[&str]) -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork"]);
        command.arg("--kill-child").args(options);
        command
    };
    let tried = command().arg("true").status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("not tried: this system does not let us make a process namespace");
        return None;
    }
    Some(command())
}

impl Stage {
    /// The classic pair. Each program is the actor with these arguments.
    fn pair(macro_words: &str, micro_words: &str, more: &str) -> Self {
        let program =
            |words: &str| format!("{{executable: {}, args: [{words}]}}", actor().display());
        Self::programs(&program(macro_words), &program(micro_words), more)
    }

    /// The classic pair with these programs, as YAML.
    fn programs(macro_program: &str, micro_program: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = format!(
            "ymmsl_version: v0.2\nmodels:\n  pair:\n    components:\n      \
             macro: {{description: calls, ports: {{o_i: out, s: back}}, implementation: macro}}\n      \
             micro: {{description: is called, ports: {{f_init: in, o_f: final}}, implementation: micro}}\n    \
             conduits:\n      macro.out: micro.in\n      micro.final: macro.back\n\
             programs:\n  macro: {macro_program}\n  micro: {micro_program}\n{more}\n"
        );
        fs::write(folder.path().join("model.ymmsl"), text).expect("a file");
        Stage { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The run directory.
    fn run_dir(&self) -> PathBuf {
        self.path().join("run")
    }

    fn instance(&self, name: &str, file: &str) -> PathBuf {
        self.run_dir().join("instances").join(name).join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.run_dir().join(file)).unwrap_or_default()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_titin"));
        command
            .args(words)
            .args(["model.ymmsl", "--run-dir", "run"])
            .current_dir(self.path());
        for name in [
            "TITIN_MANAGER",
            "TITIN_INSTANCE",
            "CLICOLOR_FORCE",
            "RUST_BACKTRACE",
        ] {
            command.env_remove(name);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a run.
    fn start(&self, words: &[&str]) -> Running {
        Running(self.command(words).spawn().expect("titin starts"))
    }

    /// Runs to the end.
    fn run(&self) -> Done {
        self.run_with(&["run"])
    }

    fn run_with(&self, words: &[&str]) -> Done {
        let done = finish(self.start(words));
        self.assert_nothing_left();
        done
    }

    /// Waits for a file of the run to appear and be written.
    fn wait_for(&self, file: &Path) -> String {
        wait_until(&format!("{} appears", file.display()), || {
            fs::read_to_string(file)
                .ok()
                .filter(|text| !text.is_empty())
        })
    }

    /// Waits until every process and the connection file of the run are gone.
    fn assert_nothing_left_soon(&self) {
        let gone =
            || self.processes().is_empty() && !self.run_dir().join("connection.json").exists();
        wait_until("everything is gone", || gone().then_some(()));
        self.assert_nothing_left();
    }

    /// Asserts that no process and no connection file of the run are left.
    fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), Vec::<String>::new(), "processes are left");
        assert!(
            !self.run_dir().join("connection.json").exists(),
            "the connection file is left"
        );
    }

    /// Returns the processes of this run. Programs name the run in their environment, and the guard
    /// names the run in its command line.
    fn processes(&self) -> Vec<String> {
        let own = format!("{}/connection.json", self.run_dir().display());
        let names_run = |pid: &OsString| {
            ["environ", "cmdline"].into_iter().any(|file| {
                let bytes = fs::read(Path::new("/proc").join(pid).join(file)).unwrap_or_default();
                bytes
                    .split(|&byte| byte == 0)
                    .any(|word| word.ends_with(own.as_bytes()))
            })
        };
        let all = fs::read_dir("/proc")
            .expect("Linux")
            .flatten()
            .map(|entry| entry.file_name());
        let ours = all.filter(|pid| {
            pid.to_str().is_some_and(|pid| pid.parse::<u32>().is_ok()) && names_run(pid)
        });
        ours.map(|pid| {
            fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default()
        })
        .collect()
    }
}

/// Whether a process is stopped.
fn is_stopped(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).expect("it runs");
    stat.rsplit_once(") ").expect("a name").1.starts_with('T')
}

/// Waits for a process, and kills it if it hangs.
fn finish(mut running: Running) -> Done {
    let (pid, child) = (running.pid(), &mut running.0);
    let (ended, watch) = channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watch.recv_timeout(WATCHDOG) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            kill("KILL", &pid);
        }
    });
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = from.read_to_string(&mut text);
            text
        })
    };
    let out = read(Box::new(child.stdout.take().expect("piped")));
    let err = read(Box::new(child.stderr.take().expect("piped")));
    let status = child.wait().expect("it ends");
    drop(ended);
    watchdog.join().expect("the watchdog does not panic");
    let done = Done {
        status,
        out: out.join().expect("text"),
        err: err.join().expect("text"),
    };
    assert_ne!(
        done.status.signal(),
        Some(9),
        "it was killed, perhaps since it hung:\n{}",
        done.err
    );
    done
}

/// Calls `look` until `look` returns a value.
fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < WATCHDOG, "waited in vain until {what}");
        std::thread::park_timeout(LOOK);
    }
}

fn kill(signal: &str, pid: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), "--", pid])
        .status()
        .expect("kill runs");
    assert!(status.success(), "kill -{signal} {pid}");
}
