//! The manager's end of its guard.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::json_lines::JsonLines;
use super::{GuardOrder, GuardReport, Launch, Leftovers};
use crate::event::{Exit, Signal, signal_name};
use crate::plan::InstanceId;
use crate::process_tree;

/// After the guard's last report: the time for the guard to end.
const EXIT_TIME: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// An event from a guard.
#[derive(Debug, Clone)]
pub enum GuardEvent {
    /// A report about a program, or about all processes at the end.
    Report(GuardReport),
    /// A signal of the user's, of this name, has ended the guard at its start.
    Interrupted(String),
    /// The guard has ended too soon, in the given way.
    Lost(String),
    /// The guard has ended in good order.
    Ended,
}

/// A guard that runs.
#[derive(Debug)]
pub struct Guard {
    /// Several threads send orders. Each order is one line.
    socket: Mutex<UnixStream>,
    /// The guard's process number, until another process may have the number.
    pid: Arc<Mutex<Option<u32>>>,
}

impl Guard {
    /// Starts a guard. `program` is the path of the command `titin`. The guard writes to `log`
    /// after the end of the manager. At the end the guard removes `leftovers`. A thread hands the guard's events to `handle`.
    ///
    /// # Errors
    /// If the guard cannot be started.
    pub fn start(
        program: &OsStr,
        leftovers: &Leftovers<'_>,
        log: File,
        handle: impl FnMut(GuardEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut guard = Command::new(program);
        guard.arg("guard");
        if let Some(connection) = leftovers.connection {
            guard.arg("--connection").arg(connection);
        }
        guard.arg(leftovers.own).args(leftovers.shared);
        guard.stdin(OwnedFd::from(theirs));
        guard.stdout(Stdio::null()).stderr(log);
        begin_group(&mut guard);
        let child = guard.spawn()?;
        let reading = socket.try_clone()?;
        let pid = Arc::new(Mutex::new(Some(child.id())));
        let lives = pid.clone();
        std::thread::Builder::new()
            .name("guard".into())
            .spawn(move || listen(reading, child, &lives, handle))?;
        Ok(Guard {
            socket: Mutex::new(socket),
            pid,
        })
    }

    /// Starts a program.
    pub fn launch(&self, id: InstanceId, launch: Launch) {
        self.order(&GuardOrder::Start { id: id.0, launch });
    }

    /// Sends a signal to a program and all processes below.
    pub fn signal(&self, id: InstanceId, signal: Signal) {
        self.wake();
        self.order(&GuardOrder::Signal { id: id.0, signal });
    }

    /// Stops every program.
    pub fn pause(&self) {
        self.order(&GuardOrder::Pause);
    }

    /// Lets every stopped program go on.
    pub fn resume(&self) {
        self.order(&GuardOrder::Resume);
    }

    /// Orders the guard to end all processes, and then to end.
    pub fn finish(&self) {
        self.wake();
        self.order(&GuardOrder::Finish);
    }

    /// Kills the guard. The system and the manager end the guard's processes.
    pub fn kill(&self) {
        self.send(Number::KILL);
    }

    /// Lets a stopped guard go on: a stopped guard reads no orders, so nothing would end.
    fn wake(&self) {
        self.send(Number::CONT);
    }

    fn send(&self, number: Number) {
        if let Some(pid) = *self.pid.lock().expect("nobody panics meanwhile") {
            process_tree::signal(pid, number);
        }
    }

    fn order(&self, order: &GuardOrder) {
        let mut line = serde_json::to_vec(order).expect("plain data");
        line.push(b'\n');
        // If the guard is gone, the listening thread says so.
        let _ = self
            .socket
            .lock()
            .expect("nobody panics while writing")
            .write_all(&line);
    }
}

/// Has the guard start in a new process group, because Ctrl-C must not reach the guard before the
/// guard has its own session. To begin the session, the guard joins the manager's group again. The
/// guard cannot join a group outside of this process's PID namespace. But then no terminal sends
/// Ctrl-C here.
fn begin_group(guard: &mut Command) {
    if process_tree::group(process_tree::own_pid()).is_some() {
        guard.process_group(0);
    }
}

/// The end of a guard's reports.
enum LastReport {
    /// The guard has reported that all processes are ended.
    Swept,
    /// The socket has ended.
    SocketEnded,
    /// A report cannot be read, for the given reason.
    Unreadable(String),
}

/// Hands a guard's reports to `handle`, and at last the way in which the guard ended.
fn listen(
    mut socket: UnixStream,
    mut child: Child,
    pid: &Mutex<Option<u32>>,
    mut handle: impl FnMut(GuardEvent),
) {
    let last = read_reports(&mut socket, &mut handle);
    // A guard with unreadable reports is of no use. After the last report a guard ends by itself.
    if matches!(last, LastReport::Unreadable(_)) || !ends_in_time(&child) {
        let _ = child.kill();
    }
    *pid.lock().expect("nobody panics meanwhile") = None;
    let status = child.wait();
    if let LastReport::Swept = last {
        return handle(GuardEvent::Ended);
    }
    if let Some(signal) = status.as_ref().ok().and_then(interrupt) {
        handle(GuardEvent::Interrupted(signal));
    }
    let how = match last {
        LastReport::Unreadable(why) => format!("said what cannot be read ({why}), and was ended"),
        _ => status.map_or("ended".to_owned(), exit_text),
    };
    handle(GuardEvent::Lost(how));
}

fn read_reports(socket: &mut UnixStream, handle: &mut impl FnMut(GuardEvent)) -> LastReport {
    let (mut lines, mut bytes, mut swept) = (JsonLines::default(), vec![0; 1 << 16], false);
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return LastReport::SocketEnded,
            Ok(count) => {
                let read = lines.take(&bytes[..count], |report| {
                    swept |= matches!(report, GuardReport::Swept { .. });
                    handle(GuardEvent::Report(report));
                });
                match read {
                    Err(why) => return LastReport::Unreadable(why.to_string()),
                    Ok(()) if swept => return LastReport::Swept,
                    Ok(()) => {}
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return LastReport::SocketEnded,
        }
    }
}

/// The name of the signal that has ended a guard, if the signal is an interrupt: SIGINT, SIGTERM or
/// SIGHUP. Soon after its start the guard handles interrupts. So the signal came before, and has
/// reached the manager too.
fn interrupt(status: &ExitStatus) -> Option<String> {
    let number = status.signal()?;
    let is_interrupt = [SIGINT, SIGTERM, SIGHUP].contains(&number);
    is_interrupt.then(|| signal_name(number).unwrap_or("a signal").to_owned())
}

fn exit_text(status: ExitStatus) -> String {
    let exit = match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap_or(0), status.core_dumped()),
    };
    exit.to_string()
}

/// Whether a guard ends by itself in time after the last report.
fn ends_in_time(child: &Child) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return true;
    };
    loop {
        let ended = PollFd::new(&process, PollFlags::IN);
        match poll(&mut [ended], Some(&EXIT_TIME)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a guard that writes nothing but `said`, and lives until it is killed.
    fn heard(said: &[u8]) -> Vec<GuardEvent> {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Mutex::new(Some(child.id()));
        theirs.write_all(said).unwrap();
        let mut news = Vec::new();
        listen(ours, child, &pid, |heard| news.push(heard));
        assert_eq!(*pid.lock().unwrap(), None);
        news
    }

    #[test]
    fn a_guard_that_cannot_be_understood_is_ended_and_told() {
        for junk in [
            &b"nonsense\n"[..],
            b"\n",
            b"{\"Started\":{\"id\":-1,\"pid\":0}}\n",
            b"\xff\xff\n",
        ] {
            let said = [b"{\"Started\":{\"id\":3,\"pid\":4711}}\n", junk].concat();
            let [
                GuardEvent::Report(GuardReport::Started { id: 3, pid: 4711 }),
                GuardEvent::Lost(how),
            ] = &heard(&said)[..]
            else {
                panic!("{:?}", heard(&said));
            };
            assert!(how.starts_with("said what cannot be read ("), "{how}");
        }
    }
}
