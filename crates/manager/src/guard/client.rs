//! The manager's end of its guard.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::json_lines::JsonLines;
use super::{GuardOrder, GuardReport, Launch};
use crate::event::{Exit, RunEvent, Signal, signal_name};
use crate::plan::InstanceId;
use crate::process_tree;

/// How long a guard may take to go that has said its last word.
const LEAVES: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// What the guard has to say.
#[derive(Debug, Clone)]
pub enum GuardEvent {
    /// Something that the state machine must know.
    Run(RunEvent),
    /// It has ended everything: what was left at the end, and what could not be ended.
    Swept {
        /// Names of processes that were still there.
        left: Vec<String>,
        /// Those that survived.
        stuck: Vec<String>,
    },
    /// It has gone, as it was told to.
    Ended,
}

/// A guard that runs.
#[derive(Debug)]
pub struct Guard {
    /// Orders come from several threads, and each is one line.
    socket: Mutex<UnixStream>,
    /// Its number, as long as it cannot be another's.
    pid: Arc<Mutex<Option<u32>>>,
}

impl Guard {
    /// Starts a guard. `program` is this same binary; `log` gets what the guard has to say when the manager is gone. The
    /// connection file and the meeting place are removed at the end, and `scratch` if the manager is gone.
    /// A thread hands its news to `heard` until it has ended.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        program: &OsStr,
        connection: &Path,
        meeting_place: &Path,
        scratch: Option<&Path>,
        log: File,
        heard: impl FnMut(GuardEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut guard = Command::new(program);
        // Ctrl-C must not reach it before it has a session of its own. To begin that it joins our group again, which it
        // cannot where that is outside of our namespace of processes; no terminal's Ctrl-C is for us then.
        if process_tree::group(process_tree::own_pid()).is_some() {
            guard.process_group(0);
        }
        let child = guard
            .arg("guard")
            .args([connection, meeting_place])
            .args(scratch)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let reading = socket.try_clone()?;
        let pid = Arc::new(Mutex::new(Some(child.id())));
        let lives = pid.clone();
        std::thread::Builder::new()
            .name("guard".into())
            .spawn(move || listen(reading, child, &lives, heard))?;
        Ok(Guard {
            socket: Mutex::new(socket),
            pid,
        })
    }

    /// Starts a program.
    pub fn launch(&self, id: InstanceId, launch: Launch) {
        self.order(&GuardOrder::Start { id: id.0, launch });
    }

    /// Sends a signal to a program and all that it has started.
    pub fn signal(&self, id: InstanceId, signal: Signal) {
        self.wake();
        self.order(&GuardOrder::Signal { id: id.0, signal });
    }

    /// Stops every program.
    pub fn pause(&self) {
        self.order(&GuardOrder::Pause);
    }

    /// Has every program that was stopped go on.
    pub fn resume(&self) {
        self.order(&GuardOrder::Resume);
    }

    /// Has the guard end what is left and go.
    pub fn finish(&self) {
        self.wake();
        self.order(&GuardOrder::Finish);
    }

    /// Kills the guard itself; the system and the manager end what it leaves.
    pub fn kill(&self) {
        self.send(Number::KILL);
    }

    /// Has it go on if somebody has stopped it: it would hear no order, and so nothing would end.
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
        // That it is gone is heard by the other thread.
        let _ = self
            .socket
            .lock()
            .expect("nobody panics while writing")
            .write_all(&line);
    }
}

fn listen(
    mut socket: UnixStream,
    mut child: Child,
    pid: &Mutex<Option<u32>>,
    mut heard: impl FnMut(GuardEvent),
) {
    let (mut lines, mut bytes, swept) = (JsonLines::default(), vec![0; 1 << 16], Cell::new(false));
    let mut hear = |report| {
        heard(match report {
            GuardReport::Started { id, pid } => {
                GuardEvent::Run(RunEvent::ProcessStarted(InstanceId(id), pid))
            }
            GuardReport::NotStarted { id, why } => {
                GuardEvent::Run(RunEvent::StartFailed(InstanceId(id), why))
            }
            GuardReport::Ended { id, exit } => {
                GuardEvent::Run(RunEvent::ProcessEnded(InstanceId(id), exit))
            }
            GuardReport::Swept { left, stuck } => {
                swept.set(true);
                GuardEvent::Swept { left, stuck }
            }
        });
    };
    let broken = loop {
        match socket.read(&mut bytes) {
            Ok(0) => break None,
            Ok(count) => {
                if let Err(why) = lines.take(&bytes[..count], &mut hear) {
                    break Some(format!("said what cannot be read ({why}), and was ended"));
                }
                if swept.get() {
                    break None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break None,
        }
    };
    // One that cannot be understood is of no use; one that has said its last word, or can say none, is about to go.
    if broken.is_some() || !ends(&child) {
        let _ = child.kill();
    }
    *pid.lock().expect("nobody panics meanwhile") = None;
    let status = child.wait();
    if swept.get() && broken.is_none() {
        heard(GuardEvent::Ended);
    } else {
        // It handles these as soon as it can, so it was hit in its first moment, as this process was.
        let wish = status.as_ref().ok().and_then(ExitStatus::signal);
        if let Some(number) = wish.filter(|number| [SIGINT, SIGTERM, SIGHUP].contains(number)) {
            heard(GuardEvent::Run(RunEvent::Interrupted(
                signal_name(number).unwrap_or("a signal").to_owned(),
            )));
        }
        let how = broken.unwrap_or_else(|| match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code).to_string(),
                (None, signal) => {
                    Exit::Signal(signal.unwrap_or(0), status.core_dumped()).to_string()
                }
            },
            Err(_) => "ended".to_owned(),
        });
        heard(GuardEvent::Run(RunEvent::GuardLost(how)));
    }
}

/// Whether a guard that has said its last word goes within the time that it may take.
fn ends(child: &Child) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return true;
    };
    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&LEAVES)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard of a guard that says this and no more, and lives until it is killed.
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
                GuardEvent::Run(RunEvent::ProcessStarted(InstanceId(3), 4711)),
                GuardEvent::Run(RunEvent::GuardLost(how)),
            ] = &heard(&said)[..]
            else {
                panic!("{:?}", heard(&said));
            };
            assert!(how.starts_with("said what cannot be read ("), "{how}");
        }
    }
}
