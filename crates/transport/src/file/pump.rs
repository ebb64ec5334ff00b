//! The pump: the one thread of a process that moves bytes between the sockets of links and the
//! segment files. The thread starts at first need.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::fstat;
use rustix::io::Errno;
use titin_os::{Descriptor, threads};

use super::folder::{ConnectionFolder, ListenerFolder, PeerPresence, Presence};
use super::notices::{Changes, LookPauses, Notices, WatchNumber};
use super::segments::{ReadProgress, SEGMENT, SegmentReader, SegmentWriter};
use super::socket_pair;
use crate::error::Lost;

/// How often the pump looks whether the process at the other end lives.
const PRESENCE_CHECK: Duration = Duration::from_secs(1);

/// How long a disk may be full: the other end may be about to delete what it has read.
const FULL: Duration = Duration::from_secs(5);

/// How long the end of the process waits for the last bytes to be written.
const FINISH: Duration = Duration::from_secs(10);

/// The most faults kept for the reactor, which usually asks at once.
const FAULTS: usize = 1024;

/// The pump, for the reactor and its callers.
#[derive(Default)]
pub(super) struct PumpHandle(Mutex<HandleState>);

#[derive(Default)]
struct HandleState {
    /// `None` before the first need, and after the end.
    pump: Option<RunningPump>,
}

struct RunningPump {
    shared: Arc<PumpShared>,
    thread: JoinHandle<()>,
}

/// What the pump shares with other threads.
struct PumpShared {
    wake: Descriptor,
    state: Mutex<SharedState>,
}

#[derive(Default)]
struct SharedState {
    commands: Vec<PumpCommand>,
    /// The links' ends of the sockets of new connections, by the listener.
    accepted: HashMap<RawFd, VecDeque<Descriptor>>,
    /// Why sockets were closed, by the file number of the link's end.
    faults: HashMap<u64, Lost>,
}

enum PumpCommand {
    Listen(Box<Listening>),
    Connect(Box<Connection>),
    Finish,
}

impl PumpHandle {
    /// Starts to take connections in a folder. The returned descriptor is readable when there are
    /// new connections.
    pub(super) fn listen(&self, folder: ListenerFolder) -> io::Result<Descriptor> {
        let shared = self.shared()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let listener = eventfd(0, flags)?;
        let ready = rustix::io::fcntl_dupfd_cloexec(&listener, 0)?.into();
        let listener = Descriptor::from(listener);
        shared.command(PumpCommand::Listen(Box::new(Listening {
            folder,
            listener: listener.as_raw_fd(),
            ready,
            watch: None,
        })));
        Ok(listener)
    }

    /// Takes a new connection.
    pub(super) fn accept(&self, listener: &Descriptor) -> Result<Descriptor, Errno> {
        rustix::io::read(listener, &mut [0; 8])?;
        let shared = self.shared().map_err(|_| Errno::AGAIN)?;
        let mut state = shared.lock();
        let accepted = state.accepted.get_mut(&listener.as_raw_fd());
        accepted.and_then(VecDeque::pop_front).ok_or(Errno::AGAIN)
    }

    /// Begins a connection to the process that listens in a folder. Returns the link's end of the
    /// socket.
    pub(super) fn dial(&self, listener: &Path) -> Result<Descriptor, Errno> {
        let errno = |why: io::Error| Errno::from_io_error(&why).unwrap_or(Errno::ACCESS);
        let shared = self.shared().map_err(errno)?;
        let folder = ConnectionFolder::create(listener).map_err(errno)?;
        let (connection, socket) = Connection::new(folder).map_err(errno)?;
        shared.command(PumpCommand::Connect(Box::new(connection)));
        Ok(socket)
    }

    /// Why the pump has closed the socket of a link, if there is a reason.
    pub(super) fn fault(&self, socket: &Descriptor) -> Option<Lost> {
        let state = self.lock();
        let shared = &state.pump.as_ref()?.shared;
        let number = fstat(socket).ok()?.st_ino;
        shared.lock().faults.remove(&number)
    }

    /// Ends the pump once the last bytes of all links are written, as far as the links are closed.
    /// Waits for the end if `waits`.
    pub(super) fn finish(&self, waits: bool) {
        let Some(RunningPump { shared, thread }) = self.lock().pump.take() else {
            return;
        };
        shared.command(PumpCommand::Finish);
        if waits {
            let _ = thread.join();
        }
    }

    fn shared(&self) -> io::Result<Arc<PumpShared>> {
        let mut state = self.lock();
        if let Some(running) = &state.pump {
            return Ok(running.shared.clone());
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(PumpShared {
            wake: eventfd(0, flags)?.into(),
            state: Mutex::default(),
        });
        let pump = Pump::new(shared.clone());
        let thread = threads::spawn_without_signals("titin-file", move || pump.run())?;
        state.pump = Some(RunningPump {
            shared: shared.clone(),
            thread,
        });
        Ok(shared)
    }

    fn lock(&self) -> MutexGuard<'_, HandleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PumpHandle {
    fn drop(&mut self) {
        self.finish(false);
    }
}

impl PumpShared {
    fn command(&self, command: PumpCommand) {
        self.lock().commands.push(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why a socket is about to be closed.
    fn note_fault(&self, number: u64, why: Lost) {
        let mut state = self.lock();
        if state.faults.len() < FAULTS {
            state.faults.insert(number, why);
        }
    }
}

/// A folder in which this process takes connections.
struct Listening {
    folder: ListenerFolder,
    /// The number of the reactor's descriptor.
    listener: RawFd,
    /// As the reactor's descriptor: this one counts the new connections.
    ready: Descriptor,
    watch: Option<WatchNumber>,
}

/// One end of a connection.
struct Connection {
    folder: ConnectionFolder,
    peer: PeerPresence,
    /// The pump's end of the socket.
    socket: Descriptor,
    /// The file number of the link's end.
    number: u64,
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
    /// Since when the disk has been full.
    full_since: Option<Instant>,
    arrivals: Option<WatchNumber>,
    deletions: Option<WatchNumber>,
    /// Whether notices have told of the last segment.
    has_notices: bool,
    next_check: Instant,
}

/// What a look at a connection has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionProgress {
    Idle,
    /// Bytes have moved.
    Moved,
    /// Both directions are over.
    Over,
    /// The process at the other end has ended, or the folder is gone.
    Abandoned,
}

impl Connection {
    /// The connection, and the link's end of the socket.
    fn new(folder: ConnectionFolder) -> io::Result<(Self, Descriptor)> {
        let open = || {
            let [link, socket] = socket_pair()?;
            let incoming = SegmentReader::open(folder.incoming()).map_err(io::Error::other)?;
            let outgoing = SegmentWriter::open(folder.outgoing()).map_err(io::Error::other)?;
            let number = fstat(&link)?.st_ino;
            io::Result::Ok((link, socket, incoming, outgoing, number))
        };
        let (link, socket, incoming, outgoing, number) = match open() {
            Ok(opened) => opened,
            Err(why) => {
                folder.remove_unread();
                return Err(why);
            }
        };
        let connection = Connection {
            peer: folder.peer_presence(),
            folder,
            socket,
            number,
            incoming,
            outgoing,
            gathered: Vec::new(),
            link_has_ended: false,
            link_is_closed: false,
            is_blocked: false,
            full_since: None,
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
    /// link are written. `afresh` asks a network file system for what other hosts have done.
    fn advance(&mut self, sends_only: bool, afresh: bool) -> Result<ConnectionProgress, Lost> {
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
        let now = Instant::now();
        if afresh && now >= self.next_check {
            self.next_check = now + PRESENCE_CHECK;
            // The last segments of the other end were read a moment ago, but for those written
            // since.
            if read != ReadProgress::Blocked && self.peer.has_ended() {
                self.incoming.refresh()?;
                self.is_blocked = self.incoming.advance(&self.socket)? == ReadProgress::Blocked;
                if !self.is_blocked {
                    return Ok(ConnectionProgress::Abandoned);
                }
            }
        }
        if sent || self.incoming.next() != before {
            return Ok(ConnectionProgress::Moved);
        }
        Ok(ConnectionProgress::Idle)
    }

    /// Moves bytes of the link to segments. Whether some have moved. If the other end reads no more,
    /// the stream is over: what the other end has written is still to be read.
    fn send(&mut self, afresh: bool) -> Result<bool, Lost> {
        let sent = self.send_all(afresh);
        if sent == Err(Lost::Closed) {
            self.outgoing.end();
            self.gathered = Vec::new();
            return Ok(true);
        }
        sent
    }

    fn send_all(&mut self, afresh: bool) -> Result<bool, Lost> {
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
            if !self.outgoing.write(&self.gathered[..length], is_last)? {
                let since = *self.full_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= FULL {
                    return Err(self.outgoing.full());
                }
                break;
            }
            self.full_since = None;
            self.gathered.drain(..length);
            moved = true;
        }
        Ok(moved)
    }

    /// Takes bytes out of the socket, up to a segment.
    fn gather(&mut self) -> Result<(), Lost> {
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
    shared: Arc<PumpShared>,
    notices: Notices,
    pauses: LookPauses,
    listening: Vec<Listening>,
    connections: Vec<Connection>,
    /// Of connections that this process has given up. The other end hears of the failure from the
    /// manager, and not as the end of this process.
    presences: Vec<Presence>,
    /// When to end even if bytes are left.
    until: Option<Instant>,
}

impl Pump {
    fn new(shared: Arc<PumpShared>) -> Self {
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
            let has_more = self.obey() | self.take_connections(&changes, afresh);
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
        let limit = Timespec {
            tv_sec: pause.as_secs() as i64,
            tv_nsec: pause.subsec_nanos().into(),
        };
        let mut descriptors = vec![PollFd::new(&self.shared.wake, PollFlags::IN)];
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
    fn obey(&mut self) -> bool {
        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        let commands = std::mem::take(&mut self.shared.lock().commands);
        let some = !commands.is_empty();
        for command in commands {
            match command {
                PumpCommand::Listen(mut listening) => {
                    listening.watch = self.notices.watch_arrivals(listening.folder.path());
                    self.listening.push(*listening);
                }
                PumpCommand::Connect(connection) => self.add(*connection),
                PumpCommand::Finish => self.until = Some(Instant::now() + FINISH),
            }
        }
        some
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
            if !afresh && !changes.has(listening.watch) {
                continue;
            }
            // A folder that is gone brings no connections: the run is over.
            for folder in listening.folder.new_connections().unwrap_or_default() {
                let Ok((connection, socket)) = Connection::new(folder) else {
                    continue;
                };
                let mut state = self.shared.lock();
                let accepted = state.accepted.entry(listening.listener).or_default();
                accepted.push_back(socket);
                drop(state);
                let _ = rustix::io::write(&listening.ready, &1u64.to_ne_bytes());
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
                Ok(ConnectionProgress::Abandoned) | Err(Lost::Closed) => {
                    self.forget(connection).remove_unread();
                }
                Err(why) => {
                    self.shared.note_fault(connection.number, why);
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
