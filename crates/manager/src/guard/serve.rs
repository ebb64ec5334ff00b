//! The guard's own process.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal as Number, getpid, getppid, kill_process_group, pidfd_open,
    set_child_subreaper, setpgid, setsid,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use titin_os::folder_lock;

use super::lines::Lines;
use super::mpi_files::MpiFiles;
use super::{Launch, Order, Report};
use crate::directory::remove_connection;
use crate::event::Signal;
use crate::tree::{self, Look};

/// From SIGTERM to SIGKILL for what is left at the end.
const GRACE: Duration = Duration::from_secs(2);

/// How long a manager that is gone may take to end.
const ENDED: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Runs the guard until the manager says that it is enough, or is gone. The connection file, which may not be there yet, and
/// the meeting place are removed at the end; so is `scratch`, a folder that the manager has claimed, if that has left it behind.
///
/// # Errors
/// If standard input is no socket, or the system refuses what a guard needs.
pub fn serve(connection: &Path, meeting_place: &Path, scratch: Option<&Path>) -> io::Result<()> {
    let socket = inherited_socket()?;
    // Handled, not ignored: programs would inherit that they are ignored.
    let ignored = Arc::new(AtomicBool::new(false));
    // A log that may not grow is no reason to leave programs behind.
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(signal, ignored.clone())?;
    }
    // A session of our own: Ctrl-C and a closed terminal are the manager's business. The manager has put us into a
    // group of our own for that until now; but whoever leads a group cannot begin a session.
    let manager = getppid().map_or(0, |manager| manager.as_raw_nonzero().get().unsigned_abs());
    if let Some(group) = tree::group(manager) {
        let _ = setpgid(None, i32::try_from(group).ok().and_then(Pid::from_raw));
    }
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let (children, ended) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, ended)?;
    let guard = Serving {
        socket,
        children,
        lines: Lines::default(),
        running: HashMap::new(),
        shim: std::env::current_exe()?,
        manager_lives: true,
        paused: None,
        mpi_files: MpiFiles::watch().ok(),
    };
    let _claim = folder_lock::join(meeting_place);
    let process = getppid().and_then(|manager| pidfd_open(manager, PidfdFlags::empty()).ok());
    let lives = guard.run();
    remove_connection(connection, meeting_place);
    if let Some(scratch) = scratch {
        // Who is killed lets go of the socket first, and of what it has claimed a moment later.
        if let Some(process) = process.filter(|_| !lives) {
            let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&ENDED));
        }
        folder_lock::remove_unused(scratch);
    }
    Ok(())
}

/// Takes the socket out of standard input, so that no program inherits it.
fn inherited_socket() -> io::Result<UnixStream> {
    let socket: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let socket = UnixStream::from(socket);
    socket
        .peer_addr()
        .map_err(|_| io::Error::other("the guard is started by the manager, not by hand"))?;
    Ok(socket)
}

struct Serving {
    socket: UnixStream,
    /// Readable when a child has ended.
    children: UnixStream,
    lines: Lines,
    /// Processes that were started and have not ended, with their numbers.
    running: HashMap<u32, u32>,
    shim: PathBuf,
    manager_lives: bool,
    /// While all are stopped: the processes that somebody else had stopped before, which stay so.
    paused: Option<HashSet<u32>>,
    /// None if the system does not tell of files.
    mpi_files: Option<MpiFiles>,
}

impl Serving {
    /// Until the manager says that it is enough, or is gone; whether it lives.
    fn run(mut self) -> bool {
        while self.manager_lives {
            self.wait(None);
            self.report_ended();
            let orders = self.read_orders();
            if self.obey_all(orders) {
                break;
            }
        }
        let lives = self.manager_lives;
        self.sweep();
        lives
    }

    /// Does as told; true if that was the last order. Signals that follow each other share one look at the processes,
    /// since there may be thousands of both.
    fn obey_all(&mut self, orders: Vec<Order>) -> bool {
        let mut look = None;
        for order in orders {
            if let Order::Signal { id, signal } = order {
                let started = self
                    .running
                    .iter()
                    .find(|(_, of)| **of == id)
                    .map(|(pid, _)| *pid);
                if let Some(pid) = started {
                    send(pid, signal, look.get_or_insert_with(Look::take));
                }
                continue;
            }
            look = None;
            if self.obey(order) {
                return true;
            }
        }
        false
    }

    /// Waits until the manager or a child has news, or files were made; signals only wake it up.
    fn wait(&mut self, limit: Option<Duration>) {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let socket = self
            .manager_lives
            .then(|| PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN));
        let mut ready = vec![PollFd::from_borrowed_fd(
            self.children.as_fd(),
            PollFlags::IN,
        )];
        ready.extend(socket);
        ready.extend(
            self.mpi_files
                .as_ref()
                .map(|files| PollFd::from_borrowed_fd(files.events(), PollFlags::IN)),
        );
        let _ = poll(&mut ready, limit.as_ref());
        // Before orders, which may be to end those that have the files.
        if let Some(files) = &mut self.mpi_files {
            files.look();
        }
        let _ = (&self.children).read(&mut [0; 512]);
    }

    /// Complete orders that have come in; notes if the manager is gone, or says what cannot be read.
    fn read_orders(&mut self) -> Vec<Order> {
        let mut ready = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if !matches!(poll(&mut ready, Some(&at_once)), Ok(1..)) {
            return Vec::new();
        }
        let (mut bytes, mut orders) = (vec![0; 1 << 16], Vec::new());
        match self.socket.read(&mut bytes) {
            Ok(0) => self.manager_lives = false,
            Ok(count) => {
                if let Err(why) = self.lines.take(&bytes[..count], |order| orders.push(order)) {
                    let _ = writeln!(
                        io::stderr(),
                        "titin guard: the manager says what cannot be read: {why}"
                    );
                    self.manager_lives = false;
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(_) => self.manager_lives = false,
        }
        orders
    }

    /// Does as told; true if that was the last order.
    fn obey(&mut self, order: Order) -> bool {
        match order {
            Order::Start { id, launch } => match self.start(&launch) {
                Ok(pid) => {
                    self.running.insert(pid, id);
                    if self.paused.is_some() {
                        tree::stop_descendants();
                    }
                    self.tell(&Report::Started { id, pid });
                }
                Err(why) => self.tell(&Report::NotStarted { id, why }),
            },
            Order::Signal { .. } => unreachable!("signals are sent together"),
            Order::Pause => {
                let before = tree::stop_descendants();
                self.paused.get_or_insert(before);
            }
            Order::Resume => {
                if let Some(before) = self.paused.take() {
                    tree::resume_descendants(&before);
                }
            }
            Order::Finish => return true,
        }
        false
    }

    fn start(&self, launch: &Launch) -> Result<u32, String> {
        let open = |path: &Path| {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o644)
                .open(path);
            file.map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut command = Command::new(&self.shim);
        command
            .arg("guard")
            .arg("--run")
            .arg(std::process::id().to_string())
            .arg("--");
        command.arg(&launch.program).args(&launch.args);
        if launch.clear {
            command.env_clear();
        }
        launch.unset.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(launch.set.iter().map(|(name, value)| (name, value)));
        command.current_dir(&launch.directory).stdin(Stdio::null());
        command
            .stdout(open(&launch.stdout)?)
            .stderr(open(&launch.stderr)?);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start a process: {error}"))?;
        Ok(child.id())
    }

    fn report_ended(&mut self) {
        while let Some((pid, exit)) = tree::reap() {
            // Others are orphans of programs: theirs to have cared for.
            if let Some(id) = self.running.remove(&pid) {
                self.tell(&Report::Ended { id, exit });
            }
        }
    }

    fn tell(&mut self, report: &Report) {
        let mut line = serde_json::to_vec(report).expect("plain data");
        line.push(b'\n');
        if self.socket.write_all(&line).is_err() {
            self.manager_lives = false;
        }
    }

    /// Ends all that is left.
    fn sweep(mut self) {
        if !self.manager_lives {
            // Standard error is the run's log.
            // One that cannot be written to is no reason to leave programs behind.
            let _ = writeln!(
                io::stderr(),
                "titin guard: the manager is gone; ending what it had started"
            );
        }
        let mut ended = Vec::new();
        let (left, stuck) = tree::end_descendants(
            GRACE,
            |limit| self.wait(Some(limit)),
            |pid, exit| ended.push((pid, exit)),
        );
        for (pid, exit) in ended {
            if let Some(id) = self.running.remove(&pid) {
                self.tell(&Report::Ended { id, exit });
            }
        }
        if let Some(files) = self.mpi_files.take() {
            files.remove();
        }
        let names =
            |processes: Vec<tree::Descendant>| processes.iter().map(ToString::to_string).collect();
        let report = Report::Swept {
            left: names(left),
            stuck: names(stuck),
        };
        if !self.manager_lives {
            let _ = writeln!(io::stderr(), "titin guard: {report:?}");
        }
        self.tell(&report);
    }
}

/// Sends a signal to a program with all that it has started, and to the group that it leads.
fn send(pid: u32, signal: Signal, look: &Look) {
    let number = match signal {
        Signal::Terminate => Number::TERM,
        Signal::Kill => Number::KILL,
    };
    let below = look.below(pid);
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, number);
    }
    for pid in std::iter::once(pid).chain(below.into_iter().map(|process| process.pid)) {
        tree::signal(pid, number);
        tree::signal(pid, Number::CONT);
    }
}
