//! The pump: the one thread of a process that moves bytes between the sockets of links and the
//! segment files. The thread starts at first need.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use titin_os::Descriptor;
use titin_os::time::timespec;

use super::folder::{ConnectionFolder, ListenerFolder, PeerPresence, PeerState, Presence};
use super::notices::{Changes, LookPauses, Notices, WatchNumber};
use super::segments::{ReadProgress, SEGMENT, SegmentReader, SegmentWriter};
use crate::error::LinkError;
use crate::pump::{PumpHandle, PumpOrder, PumpShared, ReadyConnections, new_listener, socket_pair};

/// How often the pump looks whether the process at the other end lives.
const PRESENCE_CHECK: Duration = Duration::from_secs(1);

/// How long the pump tries again to write a segment while the disk is full, or while the process has
/// no free descriptors: the other end may be about to delete the segments that it has read.
const RETRY_TIME: Duration = Duration::from_secs(5);

/// How long the end of the process waits for the last bytes to be written.
const FINISH: Duration = Duration::from_secs(10);

/// The pump, for the reactor and its callers.
pub(super) type FilePump = PumpHandle<PumpCommand>;

pub(super) enum PumpCommand {
    Listen(Box<Listening>),
    Connect(Box<Connection>),
    Finish {
        /// Whether all links are closed, so that no more bytes come from links.
        links_are_closed: bool,
    },
}

impl PumpOrder for PumpCommand {
    const THREAD: &'static str = "titin-file";

    fn finish(waits: Option<Duration>) -> Self {
        PumpCommand::Finish {
            links_are_closed: waits.is_some(),
        }
    }

    fn run(shared: Arc<PumpShared<Self>>) {
        Pump::new(shared).run();
    }
}

impl FilePump {
    /// Starts to take connections in a folder. The returned descriptor is readable when there are
    /// new connections.
    pub(super) fn listen(&self, folder: ListenerFolder) -> io::Result<Descriptor> {
        let (listener, ready) = new_listener()?;
        self.shared()?
            .command(PumpCommand::Listen(Box::new(Listening {
                folder,
                ready,
                watch: None,
            })));
        Ok(listener)
    }

    /// Begins a connection to the process that listens in a folder. Returns the link's end of the
    /// socket.
    ///
    /// # Errors
    /// If nothing listens there, or the process cannot write there.
    pub(super) fn dial(&self, listener: &Path) -> io::Result<Descriptor> {
        let shared = self.shared()?;
        let folder = ConnectionFolder::create(listener)?;
        let (connection, socket) = Connection::new(folder).map_err(|(folder, why)| {
            folder.remove_unread();
            why
        })?;
        shared.command(PumpCommand::Connect(Box::new(connection)));
        Ok(socket)
    }
}

/// A folder in which this process takes connections.
pub(super) struct Listening {
    folder: ListenerFolder,
    ready: ReadyConnections,
    watch: Option<WatchNumber>,
}

impl Listening {
    /// The connections that other processes have made, with the links' ends of the sockets.
    fn open_new(&mut self) -> Vec<(Connection, Descriptor)> {
        // A folder that is gone brings no connections: the run is over.
        let folders = self.folder.new_connections().unwrap_or_default();
        let open = |folder| match Connection::new(folder) {
            Ok(opened) => Some(opened),
            Err((folder, why)) => {
                match why.kind() {
                    // The dialling process has left again.
                    io::ErrorKind::NotFound => folder.remove_unread(),
                    _ => self.folder.put_back(&folder),
                }
                None
            }
        };
        folders.into_iter().filter_map(open).collect()
    }
}

/// One end of a connection.
pub(super) struct Connection {
    folder: ConnectionFolder,
    peer: PeerPresence,
    /// The pump's end of the socket.
    socket: Descriptor,
    /// The id of the link's end.
    link: u64,
    incoming: SegmentReader,
    outgoing: SegmentWriter,
    /// Bytes of the link that are not in a segment yet.
    gathered: Vec<u8>,
    /// Whether the link sends no more.
    link_has_ended: bool,
    /// Whether the link has closed the socket, and so takes no more bytes either.
    link_is_closed: bool,
    /// Whether the socket takes no more bytes for now.
    is_blocked: bool,
    /// Since when segments cannot be written, for a reason that may pass.
    refused_since: Option<Instant>,
    arrivals: Option<WatchNumber>,
    deletions: Option<WatchNumber>,
    /// Whether notices have told of the last segment.
    has_notices: bool,
    next_check: Instant,
}

/// The result of a look at a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionProgress {
    Idle,
    /// Bytes have moved.
    Moved,
    /// Both directions are over.
    Over,
    /// The process at the other end has ended.
    Abandoned,
}

impl Connection {
    /// The connection, and the link's end of the socket.
    ///
    /// # Errors
    /// The folder and the error, if the folder is not complete or the system has no descriptors
    /// left.
    fn new(folder: ConnectionFolder) -> Result<(Self, Descriptor), (ConnectionFolder, io::Error)> {
        let open = || {
            let incoming = SegmentReader::open(folder.incoming())?;
            let outgoing = SegmentWriter::open(folder.outgoing())?;
            io::Result::Ok((incoming, outgoing, socket_pair()?))
        };
        let (incoming, outgoing, [link, socket]) = match open() {
            Ok(opened) => opened,
            Err(why) => return Err((folder, why)),
        };
        let connection = Connection {
            peer: folder.peer_presence(),
            folder,
            socket,
            link: link.id(),
            incoming,
            outgoing,
            gathered: Vec::new(),
            link_has_ended: false,
            link_is_closed: false,
            is_blocked: false,
            refused_since: None,
            arrivals: None,
            deletions: None,
            has_notices: false,
            next_check: Instant::now() + PRESENCE_CHECK,
        };
        Ok((connection, link))
    }

    /// The events of the socket for which the pump waits.
    fn wanted(&self) -> PollFlags {
        let mut wanted = PollFlags::empty();
        let takes_more = !self.outgoing.has_ended() && self.gathered.len() < SEGMENT;
        wanted.set(PollFlags::IN, !self.link_has_ended && takes_more);
        wanted.set(PollFlags::OUT, self.is_blocked);
        wanted
    }

    /// Moves bytes both ways. If `sends_only`, the connection is over once the last bytes of the
    /// link are written. `afresh` asks a network file system for changes by other hosts.
    fn advance(&mut self, sends_only: bool, afresh: bool) -> Result<ConnectionProgress, LinkError> {
        let sent = self.send(afresh)?;
        if sends_only && self.outgoing.has_ended() {
            return Ok(ConnectionProgress::Over);
        }
        if afresh && !self.is_blocked && !self.incoming.has_ended() {
            self.incoming.refresh()?;
        }
        let before = self.incoming.next();
        let read = self.incoming.advance(&self.socket)?;
        self.is_blocked = read == ReadProgress::Blocked;
        let is_read = matches!(read, ReadProgress::Ended | ReadProgress::Unwanted);
        if is_read && self.outgoing.has_ended() {
            return Ok(ConnectionProgress::Over);
        }
        // While the link takes no more bytes, segments of the other end are still to be read.
        if afresh && !self.is_blocked && self.check_peer()? {
            return Ok(ConnectionProgress::Abandoned);
        }
        if sent || self.incoming.next() != before {
            return Ok(ConnectionProgress::Moved);
        }
        Ok(ConnectionProgress::Idle)
    }

    /// Looks once in a while whether the process at the other end has ended, and reads what the
    /// process has written. True once the process has ended, and all that the process has written is
    /// read.
    fn check_peer(&mut self) -> Result<bool, LinkError> {
        let now = Instant::now();
        if now < self.next_check {
            return Ok(false);
        }
        self.next_check = now + PRESENCE_CHECK;
        let state = self.peer.state();
        if state != PeerState::Lives && !self.incoming.has_ended() {
            // The segments of the other end were read a moment ago. Segments written since then are
            // still to be read.
            self.incoming.refresh()?;
        }
        let read = self.incoming.advance(&self.socket)?;
        self.is_blocked = read == ReadProgress::Blocked;
        if read == ReadProgress::Waits && state != PeerState::Killed {
            self.incoming.check_missing(state == PeerState::Left)?;
            return Ok(false);
        }
        Ok(!self.is_blocked && state != PeerState::Lives)
    }

    /// Moves bytes of the link to segments. Whether some have moved. If the other end reads no more,
    /// the stream is over: what the other end has written is still to be read.
    fn send(&mut self, afresh: bool) -> Result<bool, LinkError> {
        let sent = self.send_all(afresh);
        if sent == Err(LinkError::Closed) {
            self.outgoing.end();
            self.gathered = Vec::new();
            return Ok(true);
        }
        sent
    }

    fn send_all(&mut self, afresh: bool) -> Result<bool, LinkError> {
        let mut moved = false;
        while !self.outgoing.has_ended() {
            self.gather()?;
            self.outgoing.note_read(afresh)?;
            let length = self.gathered.len().min(SEGMENT);
            let is_last = self.link_has_ended && length == self.gathered.len();
            // The last bytes do not wait: this process may be about to end.
            if !self.link_has_ended && !self.outgoing.takes(length) {
                break;
            }
            if let Some(why) = self.outgoing.write(&self.gathered[..length], is_last)? {
                let since = *self.refused_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= RETRY_TIME {
                    return Err(self.outgoing.lost(why));
                }
                break;
            }
            self.refused_since = None;
            self.gathered.drain(..length);
            moved = true;
        }
        let is_quiet = self.gathered.is_empty() && Instant::now() >= self.next_check;
        if afresh && is_quiet && self.outgoing.wants_empty() {
            moved |= self.outgoing.write(&[], false)?.is_none();
        }
        Ok(moved)
    }

    /// Takes bytes out of the socket, up to a segment.
    fn gather(&mut self) -> Result<(), LinkError> {
        while !self.link_has_ended && self.gathered.len() < SEGMENT {
            let missing = SEGMENT - self.gathered.len();
            self.gathered.reserve_exact(missing);
            let space = rustix::buffer::spare_capacity(&mut self.gathered);
            match rustix::io::read(&self.socket, space) {
                Ok(0) | Err(Errno::CONNRESET) => self.link_has_ended = true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The state of the pump's thread.
struct Pump {
    shared: Arc<PumpShared<PumpCommand>>,
    notices: Notices,
    pauses: LookPauses,
    listening: Vec<Listening>,
    connections: Vec<Connection>,
    /// The presence files of connections that this process has given up. They stay locked, so that
    /// the other end hears of the failure from the manager, and not as the end of this process.
    presences: Vec<Presence>,
    /// When to end even if bytes are left.
    until: Option<Instant>,
}

impl Pump {
    fn new(shared: Arc<PumpShared<PumpCommand>>) -> Self {
        Pump {
            shared,
            notices: Notices::new(),
            pauses: LookPauses::default(),
            listening: Vec::new(),
            connections: Vec::new(),
            presences: Vec::new(),
            until: None,
        }
    }

    fn run(mut self) {
        let mut next_look = Instant::now();
        while !self.is_over() {
            let events = self.wait(next_look);
            let changes = self.notices.take();
            let now = Instant::now();
            let afresh = now >= next_look;
            let has_moved = self.advance(&events, &changes, afresh);
            let has_more = self.run_commands() | self.take_connections(&changes, afresh);
            if has_moved || has_more {
                self.pauses.shorten();
            }
            if has_moved || has_more || afresh {
                let have_notices = self.connections.iter().all(|end| end.has_notices);
                next_look = now + self.pauses.next(have_notices);
            }
        }
        for listening in &self.listening {
            listening.folder.remove_if_read();
        }
    }

    /// Waits for commands, notices and sockets until the time of the next look. Returns the events
    /// of the socket of each connection.
    fn wait(&self, next_look: Instant) -> Vec<PollFlags> {
        let pause = next_look.saturating_duration_since(Instant::now());
        let limit = timespec(pause);
        let mut descriptors = vec![PollFd::new(self.shared.wake(), PollFlags::IN)];
        let notices = self.notices.descriptor();
        descriptors.extend(notices.map(|notices| PollFd::new(notices, PollFlags::IN)));
        let others = descriptors.len();
        // A closed socket would end each wait at once.
        let open = self.connections.iter().filter(|end| !end.link_is_closed);
        descriptors.extend(open.map(|end| PollFd::new(&end.socket, end.wanted())));
        let _ = poll(&mut descriptors, Some(&limit));
        let mut open = descriptors[others..].iter().map(PollFd::revents);
        self.connections
            .iter()
            .map(|end| match end.link_is_closed {
                true => PollFlags::empty(),
                false => open.next().unwrap_or_else(PollFlags::empty),
            })
            .collect()
    }

    /// Carries out the commands of other threads. True if there were some.
    fn run_commands(&mut self) -> bool {
        let commands = self.shared.take_commands();
        let some = !commands.is_empty();
        for command in commands {
            match command {
                PumpCommand::Listen(mut listening) => {
                    listening.watch = self.notices.watch_arrivals(listening.folder.path());
                    self.listening.push(*listening);
                }
                PumpCommand::Connect(connection) => self.add(*connection),
                PumpCommand::Finish { links_are_closed } => self.begin_end(links_are_closed),
            }
        }
        some
    }

    /// Takes no more connections, and waits for the last bytes of links.
    fn begin_end(&mut self, links_are_closed: bool) {
        self.until = Some(Instant::now() + FINISH);
        self.shared.drop_accepted();
        if links_are_closed {
            // Bytes in the socket can still be read.
            for connection in &self.connections {
                let _ = shutdown(&connection.socket, Shutdown::Read);
            }
        }
    }

    fn add(&mut self, mut connection: Connection) {
        let folder = &connection.folder;
        connection.arrivals = self.notices.watch_arrivals(&folder.incoming());
        connection.deletions = self.notices.watch_deletions(&folder.outgoing());
        self.connections.push(connection);
    }

    /// Whether the pump has been told to end, and has done so.
    fn is_over(&self) -> bool {
        self.until
            .is_some_and(|until| self.connections.is_empty() || Instant::now() >= until)
    }

    /// Takes the connections that other processes have made. True if there were some.
    fn take_connections(&mut self, changes: &Changes, afresh: bool) -> bool {
        let mut new = Vec::new();
        for listening in &mut self.listening {
            if self.until.is_some() || !afresh && !changes.has(listening.watch) {
                continue;
            }
            for (connection, socket) in listening.open_new() {
                self.shared.accepted(&listening.ready, socket);
                new.push(connection);
            }
        }
        let some = !new.is_empty();
        new.into_iter().for_each(|connection| self.add(connection));
        some
    }

    /// Moves bytes of the connections with something to do, and of all connections if `afresh`.
    /// True if bytes have moved.
    fn advance(&mut self, events: &[PollFlags], changes: &Changes, afresh: bool) -> bool {
        let mut has_moved = false;
        let connections = std::mem::take(&mut self.connections);
        for (mut connection, events) in connections.into_iter().zip(events) {
            let is_noticed = changes.has(connection.arrivals);
            let is_ready = !events.is_empty() || changes.has(connection.deletions);
            if !afresh && !is_ready && !is_noticed {
                self.connections.push(connection);
                continue;
            }
            let before = connection.incoming.next();
            connection.link_is_closed |= events.contains(PollFlags::HUP);
            // A link that is closed takes no more bytes. Nor does this process at its end.
            let sends_only = connection.link_is_closed || self.until.is_some();
            let progress = connection.advance(sends_only, afresh);
            if connection.incoming.next() != before {
                connection.has_notices = is_noticed || connection.has_notices && !afresh;
            }
            match progress {
                Ok(ConnectionProgress::Idle) => self.connections.push(connection),
                Ok(ConnectionProgress::Moved) => {
                    has_moved = true;
                    self.connections.push(connection);
                }
                Ok(ConnectionProgress::Over) => self.forget(connection).leave(),
                Ok(ConnectionProgress::Abandoned) => self.forget(connection).remove_unread(),
                Err(why) => {
                    self.shared.note_fault(connection.link, why);
                    let presence = self.forget(connection).into_presence();
                    self.presences.extend(presence);
                }
            }
        }
        has_moved
    }

    /// Closes the socket of a connection. Returns the folder.
    fn forget(&self, connection: Connection) -> ConnectionFolder {
        let watches = [connection.arrivals, connection.deletions];
        for watch in watches.into_iter().flatten() {
            self.notices.forget(watch);
        }
        connection.folder
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::pump::FAULTS;

    fn run_folder() -> TempDir {
        let private = Permissions::from_mode(0o700);
        tempfile::Builder::new()
            .permissions(private)
            .tempdir()
            .unwrap()
    }

    /// Listens in a new folder below `run`. Returns the listener and the folder.
    fn listen(pump: &FilePump, run: &Path) -> (Descriptor, PathBuf) {
        let folder = ListenerFolder::create(run).unwrap();
        let path = folder.path().to_owned();
        (pump.listen(folder).unwrap(), path)
    }

    fn wait_for(descriptor: &Descriptor, event: PollFlags) {
        poll(&mut [PollFd::new(descriptor, event)], None).unwrap();
    }

    fn read(socket: &Descriptor) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        let count = rustix::io::read(socket, &mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn a_listener_gets_no_connection_of_a_listener_before_it() {
        let (pump, run) = (FilePump::default(), run_folder());
        let dial = |listener: &Descriptor, path: &Path, text: &[u8]| {
            let dialled = pump.dial(path).unwrap();
            rustix::io::write(&dialled, text).unwrap();
            wait_for(listener, PollFlags::IN);
            dialled
        };
        let (listener, path) = listen(&pump, run.path());
        let _first = dial(&listener, &path, b"first");
        // The next descriptor gets the number of this one, unless another thread is faster.
        drop(listener);
        let (listener, path) = listen(&pump, run.path());
        let _second = dial(&listener, &path, b"second");
        let accepted = pump.accept(&listener).unwrap();
        wait_for(&accepted, PollFlags::IN);
        assert_eq!(read(&accepted), b"second");
    }

    #[test]
    fn the_end_waits_for_no_socket_that_nobody_closes_and_nothing_begins_after_it() {
        let (pump, run) = (FilePump::default(), run_folder());
        let (listener, path) = listen(&pump, run.path());
        let _open = pump.dial(&path).unwrap();
        wait_for(&listener, PollFlags::IN);
        let begun = Instant::now();
        pump.finish(Some(Duration::ZERO));
        assert!(begun.elapsed() < FINISH);
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);

        let again = ListenerFolder::create(run.path()).unwrap();
        let path = again.path().to_owned();
        for refused in [pump.dial(&path), pump.listen(again)] {
            assert!(refused.unwrap_err().to_string().contains("has left"));
        }
        pump.finish(Some(Duration::ZERO));
    }

    #[test]
    fn the_reason_of_a_closed_socket_is_known_after_the_end() {
        let (pump, run) = (FilePump::default(), run_folder());
        let (_listener, path) = listen(&pump, run.path());
        let socket = pump.dial(&path).unwrap();
        let mut folders = fs::read_dir(&path).unwrap().flatten();
        let connection = folders.find(|entry| entry.path().is_dir()).unwrap().path();
        fs::write(run.path().join("odd"), "something else").unwrap();
        fs::rename(
            run.path().join("odd"),
            connection.join(format!("back/{:016x}", 0)),
        )
        .unwrap();
        wait_for(&socket, PollFlags::HUP);
        // The reasons of links that this process has closed are never asked for.
        let shared = pump.shared().unwrap();
        (0..FAULTS - 1).for_each(|_| shared.note_fault(u64::MAX, LinkError::Closed));
        pump.finish(Some(Duration::ZERO));
        let why = pump.fault(&socket);
        assert!(matches!(why, Some(LinkError::Malformed(_))), "{why:?}");
        shared.note_fault(socket.id(), LinkError::Closed);
        (0..FAULTS).for_each(|_| shared.note_fault(u64::MAX, LinkError::Closed));
        assert_eq!(pump.fault(&socket), None);
    }

    #[test]
    fn a_connection_that_was_put_back_comes_again() {
        let run = run_folder();
        let mut listener = ListenerFolder::create(run.path()).unwrap();
        let _dialled = ConnectionFolder::create(listener.path()).unwrap();
        let connection = listener.new_connections().unwrap().remove(0);
        assert!(listener.new_connections().unwrap().is_empty());
        listener.put_back(&connection);
        assert_eq!(listener.new_connections().unwrap().len(), 1);
    }

    #[test]
    fn a_killed_process_is_noticed_as_soon_as_its_last_bytes_are_read() {
        let run = run_folder();
        let mut listener = ListenerFolder::create(run.path()).unwrap();
        let killed = ConnectionFolder::create(listener.path()).unwrap();
        let mut writer = SegmentWriter::open(killed.outgoing()).unwrap();
        assert_eq!(writer.write(&[1; SEGMENT], false), Ok(None));
        let folder = listener.new_connections().unwrap().remove(0);
        let Ok((mut connection, link)) = Connection::new(folder) else {
            panic!("the folder is complete");
        };
        drop(killed);

        connection.next_check = Instant::now();
        let begun = connection.advance(false, true).unwrap();
        assert_eq!(begun, ConnectionProgress::Idle);
        assert!(connection.is_blocked);
        let mut received = 0;
        while received < SEGMENT {
            received += read(&link).len();
            connection.advance(false, false).unwrap();
        }
        let end = connection.advance(false, true).unwrap();
        assert_eq!(end, ConnectionProgress::Abandoned);
    }
}
