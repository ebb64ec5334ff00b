//! The guard's own process.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal as Number, getpid, getppid, kill_process_group, pidfd_open,
    set_child_subreaper, setpgid, setsid,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use titin_os::folder_lock;
use titin_os::time::timespec;

use super::json_lines::JsonLines;
use super::mpi_files::MpiFiles;
use super::{GuardOrder, GuardReport, Launch, Leftovers};
use crate::directory::remove_connection;
use crate::event::{Exit, Signal};
use crate::process_tree::{self, ProcessSnapshot, StoppedBefore};

/// From SIGTERM to SIGKILL for processes left at the end.
const GRACE: Duration = Duration::from_secs(2);

/// After the manager's socket has closed: the time for the manager to end.
const MANAGER_EXIT_TIME: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Runs the guard until the manager says that the run is over, or the manager is gone. At the end the
/// guard removes `leftovers`.
///
/// # Errors
/// If standard input is no socket, or the system refuses something that a guard needs.
pub fn serve(leftovers: &Leftovers<'_>) -> io::Result<()> {
    let socket = inherited_socket()?;
    survive_signals()?;
    begin_session();
    set_child_subreaper(Some(getpid()))?;
    let (children, ended) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, ended)?;
    let guard = GuardProcess {
        socket,
        children,
        lines: JsonLines::default(),
        running: HashMap::new(),
        shim: std::env::current_exe()?,
        manager_lives: true,
        paused: None,
        mpi_files: MpiFiles::watch().ok(),
    };
    let _lock = folder_lock::join(leftovers.own);
    let manager = getppid().and_then(|manager| pidfd_open(manager, PidfdFlags::empty()).ok());
    let manager_lives = guard.run();
    if let Some(connection) = leftovers.connection {
        remove_connection(connection);
    }
    let _ = fs::remove_dir_all(leftovers.own);
    if let Some(shared) = leftovers.shared {
        if let Some(manager) = manager.filter(|_| !manager_lives) {
            await_exit(&manager);
        }
        folder_lock::remove_unused(shared);
    }
    Ok(())
}

/// Waits for the end of the manager. A killed process closes its socket first, and unlocks its
/// folders a moment later.
fn await_exit(manager: &OwnedFd) {
    let ended = PollFd::new(manager, PollFlags::IN);
    let _ = poll(&mut [ended], Some(&MANAGER_EXIT_TIME));
}

/// Takes the socket out of standard input, so that no program inherits the socket.
fn inherited_socket() -> io::Result<UnixStream> {
    let socket: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let socket = UnixStream::from(socket);
    socket
        .peer_addr()
        .map_err(|_| io::Error::other("the guard is started by the manager, not by hand"))?;
    Ok(socket)
}

/// Keeps signals from ending the guard: signals of users, and SIGXFSZ, about a log that may not
/// grow. The guard handles the signals and does not ignore them, because programs would inherit
/// ignored signals.
fn survive_signals() -> io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(signal, unused.clone())?;
    }
    Ok(())
}

/// Begins a new session, so that Ctrl-C and a closed terminal reach only the manager. The manager
/// has started the guard as the leader of a group. A leader cannot begin a session, so the guard
/// joins the manager's group first.
fn begin_session() {
    let manager = getppid().map_or(0, |manager| manager.as_raw_nonzero().get().unsigned_abs());
    if let Some(group) = process_tree::group(manager) {
        let _ = setpgid(None, i32::try_from(group).ok().and_then(Pid::from_raw));
    }
    let _ = setsid();
}

struct GuardProcess {
    socket: UnixStream,
    /// Readable when a child has ended.
    children: UnixStream,
    lines: JsonLines,
    /// The running processes, each with the number of its program.
    running: HashMap<u32, u32>,
    /// The path of the command `titin`. A process of the command becomes the program.
    shim: PathBuf,
    manager_lives: bool,
    /// While the run is paused: the processes that another process had stopped before.
    paused: Option<StoppedBefore>,
    /// `None` if the system does not report new files.
    mpi_files: Option<MpiFiles>,
}

impl GuardProcess {
    /// Serves until the manager says that the run is over, or the manager is gone. Returns whether
    /// the manager lives.
    fn run(mut self) -> bool {
        while self.manager_lives {
            self.wait(None);
            self.report_ended();
            let orders = self.read_orders();
            if self.obey_all(orders) {
                break;
            }
        }
        let manager_lives = self.manager_lives;
        self.sweep();
        manager_lives
    }

    /// Obeys orders. True after the last order. Successive signals share one snapshot of the
    /// processes, because there may be thousands of signals and processes.
    fn obey_all(&mut self, orders: Vec<GuardOrder>) -> bool {
        let mut snapshot = None;
        for order in orders {
            if let GuardOrder::Signal { id, signal } = order {
                let mut running = self.running.iter();
                if let Some((pid, _)) = running.find(|(_, number)| **number == id) {
                    let snapshot = snapshot.get_or_insert_with(ProcessSnapshot::take);
                    signal_program(*pid, signal, snapshot);
                }
                continue;
            }
            snapshot = None;
            if self.obey(order) {
                return true;
            }
        }
        false
    }

    /// Waits for the manager, for the end of a child, or for new files. Other signals only end the
    /// wait.
    fn wait(&mut self, limit: Option<Duration>) {
        let limit = limit.map(timespec);
        let mut ready = vec![PollFd::from_borrowed_fd(
            self.children.as_fd(),
            PollFlags::IN,
        )];
        if self.manager_lives {
            ready.push(PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN));
        }
        if let Some(files) = &self.mpi_files {
            ready.push(PollFd::from_borrowed_fd(files.events(), PollFlags::IN));
        }
        let _ = poll(&mut ready, limit.as_ref());
        // Files come before orders: an order may end the process that has made a file.
        if let Some(files) = &mut self.mpi_files {
            files.look();
        }
        let _ = (&self.children).read(&mut [0; 512]);
    }

    /// The complete orders so far. Notes the manager's end, or unreadable bytes.
    fn read_orders(&mut self) -> Vec<GuardOrder> {
        let mut orders = Vec::new();
        if !self.is_socket_readable() {
            return orders;
        }
        let mut bytes = vec![0; 1 << 16];
        match self.socket.read(&mut bytes) {
            Ok(0) => self.manager_lives = false,
            Ok(count) => {
                if let Err(why) = self.lines.take(&bytes[..count], |order| orders.push(order)) {
                    warn(&format!("the manager says what cannot be read: {why}"));
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

    fn is_socket_readable(&self) -> bool {
        let mut ready = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut ready, Some(&at_once)), Ok(1..))
    }

    /// Obeys an order. True after the last order.
    fn obey(&mut self, order: GuardOrder) -> bool {
        match order {
            GuardOrder::Start { id, launch } => self.start_instance(id, &launch),
            GuardOrder::Signal { .. } => unreachable!("signals are sent together"),
            GuardOrder::Pause => {
                let before = process_tree::stop_descendants();
                self.paused.get_or_insert(before);
            }
            GuardOrder::Resume => {
                if let Some(before) = self.paused.take() {
                    process_tree::resume_descendants(&before);
                }
            }
            GuardOrder::Finish => return true,
        }
        false
    }

    fn start_instance(&mut self, id: u32, launch: &Launch) {
        match self.start(launch) {
            Ok(pid) => {
                self.running.insert(pid, id);
                if self.paused.is_some() {
                    process_tree::stop_descendants();
                }
                self.tell(&GuardReport::Started { id, pid });
            }
            Err(error) => {
                let why = error.to_string();
                self.tell(&GuardReport::NotStarted { id, why });
            }
        }
    }

    /// Starts a program, and returns its process.
    fn start(&self, launch: &Launch) -> Result<u32, SpawnError> {
        let mut command = Command::new(&self.shim);
        let own_pid = std::process::id().to_string();
        command.args(["guard", "--run", &own_pid, "--"]);
        command.arg(&launch.program).args(&launch.args);
        if launch.clear {
            command.env_clear();
        }
        for name in &launch.unset {
            command.env_remove(name);
        }
        command.envs(launch.set.iter().map(|(name, value)| (name, value)));
        command.current_dir(&launch.directory);
        command.stdin(match &launch.input {
            None => Stdio::null(),
            Some(text) => readable(text).map_err(SpawnError::Input)?,
        });
        command.stdout(open_output(&launch.stdout)?);
        command.stderr(open_output(&launch.stderr)?);
        let child = command.spawn().map_err(SpawnError::Process)?;
        Ok(child.id())
    }

    /// Reports programs that have ended.
    fn report_ended(&mut self) {
        while let Some((pid, exit)) = process_tree::reap() {
            self.report_exit(pid, exit);
        }
    }

    /// Reports the end of a process, if the process is a program. Other processes are orphans of
    /// programs.
    fn report_exit(&mut self, pid: u32, exit: Exit) {
        if let Some(id) = self.running.remove(&pid) {
            self.tell(&GuardReport::Ended { id, exit });
        }
    }

    fn tell(&mut self, report: &GuardReport) {
        let mut line = serde_json::to_vec(report).expect("plain data");
        line.push(b'\n');
        if self.socket.write_all(&line).is_err() {
            self.manager_lives = false;
        }
    }

    /// Ends all processes that are left.
    fn sweep(mut self) {
        if !self.manager_lives {
            warn("the process that has started this guard is gone; ending its programs");
        }
        let mut ended = Vec::new();
        let (left, stuck) = process_tree::end_descendants(
            GRACE,
            |limit| self.wait(Some(limit)),
            |pid, exit| ended.push((pid, exit)),
        );
        for (pid, exit) in ended {
            self.report_exit(pid, exit);
        }
        if let Some(files) = self.mpi_files.take() {
            files.remove();
        }
        let names = |processes: Vec<process_tree::Descendant>| {
            processes.iter().map(ToString::to_string).collect()
        };
        let report = GuardReport::Swept {
            left: names(left),
            stuck: names(stuck),
        };
        if !self.manager_lives {
            warn(&format!("{report:?}"));
        }
        self.tell(&report);
    }
}

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
enum SpawnError {
    #[error("cannot write {}: {source}", .path.display())]
    Output { path: PathBuf, source: io::Error },
    #[error("cannot make its standard input: {0}")]
    Input(io::Error),
    #[error("cannot start a process: {0}")]
    Process(io::Error),
}

/// A file in memory with a text, for a program to read. Nobody else can open the file.
fn readable(text: &str) -> io::Result<Stdio> {
    let file = memfd_create("input", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Opens a file for the output of a program.
fn open_output(path: &Path) -> Result<File, SpawnError> {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o644).open(path);
    file.map_err(|source| SpawnError::Output {
        path: path.to_owned(),
        source,
    })
}

/// Writes to standard error, the log of the run. The guard passes over errors here: an unwritable
/// log is no reason to leave programs behind.
fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "titin guard: {text}");
}

/// Sends a signal to a program, to all processes below the program, and to the program's group.
fn signal_program(pid: u32, signal: Signal, snapshot: &ProcessSnapshot) {
    let number = signal.number();
    let below = snapshot.below(pid);
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, number);
    }
    let below = below.into_iter().map(|process| process.pid);
    for pid in std::iter::once(pid).chain(below) {
        process_tree::signal(pid, number);
        process_tree::signal(pid, Number::CONT);
    }
}
