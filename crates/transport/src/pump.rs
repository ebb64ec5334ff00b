//! The thread of a medium that moves the bytes between links and something that is no socket of a
//! peer: the **pump**.
//!
//! The link above the medium has one end of a socket pair, the pump has the other end. The pump
//! starts at first need, and there is one for each medium of a process.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use titin_os::{Descriptor, threads};

use crate::error::LinkError;

/// The most faults kept for the reactor, the newest ones. The reactor asks for a fault as soon as
/// the socket closes; older faults belong to links that this process has closed itself, and are not
/// asked for.
pub(crate) const FAULTS: usize = 1024;

/// What other threads tell a pump.
pub(crate) trait PumpOrder: Send + Sized + 'static {
    /// The name of the pump's thread.
    const THREAD: &'static str;

    /// The order to end once the last bytes of all links are passed on. With a time, all links are
    /// closed, and the caller waits about so long for the other ends.
    fn finish(waits: Option<Duration>) -> Self;

    /// The work of the thread.
    fn run(shared: Arc<PumpShared<Self>>);
}

/// A pump, for the reactor and its callers.
pub(crate) struct PumpHandle<O: PumpOrder>(Mutex<HandleState<O>>);

struct HandleState<O> {
    /// `None` before the first need.
    shared: Option<Arc<PumpShared<O>>>,
    /// `None` before the first need, and after the end.
    thread: Option<JoinHandle<()>>,
    has_ended: bool,
}

/// The state that a pump shares with other threads.
pub(crate) struct PumpShared<O> {
    wake: Descriptor,
    state: Mutex<SharedState<O>>,
}

struct SharedState<O> {
    orders: Vec<O>,
    /// The links' ends of the sockets of new connections, by the listener's id.
    accepted: HashMap<u64, VecDeque<Descriptor>>,
    /// Why sockets were closed, by the id of the link's end. The newest comes last.
    faults: VecDeque<(u64, LinkError)>,
    /// Why connections have not come about yet, by the id of the link's end.
    obstacles: HashMap<u64, LinkError>,
}

/// The pump's side of a listener.
pub(crate) struct ReadyConnections {
    /// The id of the reactor's descriptor.
    listener: u64,
    /// A copy of the reactor's descriptor, which counts the new connections.
    count: Descriptor,
}

/// A listener: the reactor's descriptor, readable when there are new connections, and the pump's
/// side.
///
/// # Errors
/// If the system has no descriptors left.
pub(crate) fn new_listener() -> io::Result<(Descriptor, ReadyConnections)> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
    let listener = eventfd(0, flags)?;
    let count = rustix::io::fcntl_dupfd_cloexec(&listener, 0)?.into();
    let listener = Descriptor::from(listener);
    let ready = ReadyConnections {
        listener: listener.id(),
        count,
    };
    Ok((listener, ready))
}

/// The two ends of a socket in this process: the end of the link, and the end of the pump. No end
/// waits.
///
/// # Errors
/// If the system has no descriptors left.
pub(crate) fn socket_pair() -> io::Result<[Descriptor; 2]> {
    let (link, pump) = UnixStream::pair()?;
    for end in [&link, &pump] {
        end.set_nonblocking(true)?;
    }
    Ok([link, pump].map(|end| OwnedFd::from(end).into()))
}

impl<O: PumpOrder> Default for PumpHandle<O> {
    fn default() -> Self {
        PumpHandle(Mutex::new(HandleState {
            shared: None,
            thread: None,
            has_ended: false,
        }))
    }
}

impl<O: PumpOrder> PumpHandle<O> {
    /// Takes a new connection.
    pub(crate) fn accept(&self, listener: &Descriptor) -> Result<Descriptor, Errno> {
        rustix::io::read(listener, &mut [0; 8])?;
        let shared = self.lock().shared.clone().ok_or(Errno::AGAIN)?;
        let mut state = shared.lock();
        let accepted = state.accepted.get_mut(&listener.id());
        accepted.and_then(VecDeque::pop_front).ok_or(Errno::AGAIN)
    }

    /// Why the pump has closed the socket of a link, if there is a reason.
    pub(crate) fn fault(&self, socket: &Descriptor) -> Option<LinkError> {
        let shared = self.lock().shared.clone()?;
        let mut state = shared.lock();
        let mut faults = state.faults.iter();
        let place = faults.position(|(link, _)| *link == socket.id())?;
        state.faults.remove(place).map(|(_, why)| why)
    }

    /// Why the connection of a link has not come about yet, if it is not up and there is a reason.
    pub(crate) fn obstacle(&self, socket: &Descriptor) -> Option<LinkError> {
        let shared = self.lock().shared.clone()?;
        let state = shared.lock();
        state.obstacles.get(&socket.id()).cloned()
    }

    /// Ends the pump once the last bytes of all links are passed on. With a time, the links are
    /// closed, and the call waits for the end.
    pub(crate) fn finish(&self, waits: Option<Duration>) {
        let mut state = self.lock();
        state.has_ended = true;
        let (Some(shared), Some(thread)) = (state.shared.clone(), state.thread.take()) else {
            return;
        };
        drop(state);
        shared.command(O::finish(waits));
        if waits.is_some() {
            let _ = thread.join();
        }
    }

    /// The state of the pump, which is started if need be.
    ///
    /// # Errors
    /// If the process has left the run, or the system refuses a descriptor or a thread.
    pub(crate) fn shared(&self) -> io::Result<Arc<PumpShared<O>>> {
        let mut state = self.lock();
        if state.has_ended {
            return Err(io::Error::other("this process has left the run"));
        }
        if let Some(shared) = &state.shared {
            return Ok(shared.clone());
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(PumpShared {
            wake: eventfd(0, flags)?.into(),
            state: Mutex::new(SharedState {
                orders: Vec::new(),
                accepted: HashMap::new(),
                faults: VecDeque::new(),
                obstacles: HashMap::new(),
            }),
        });
        let pumps = shared.clone();
        let thread = threads::spawn_without_signals(O::THREAD, move || O::run(pumps))?;
        state.thread = Some(thread);
        Ok(state.shared.insert(shared).clone())
    }

    fn lock(&self) -> MutexGuard<'_, HandleState<O>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: PumpOrder> Drop for PumpHandle<O> {
    fn drop(&mut self) {
        self.finish(None);
    }
}

impl<O> PumpShared<O> {
    /// Tells the pump.
    pub(crate) fn command(&self, order: O) {
        self.lock().orders.push(order);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// The descriptor that is readable when there are orders.
    pub(crate) fn wake(&self) -> &Descriptor {
        &self.wake
    }

    /// Takes the orders.
    pub(crate) fn take_commands(&self) -> Vec<O> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut self.lock().orders)
    }

    /// Hands the link's end of a new connection to the reactor.
    pub(crate) fn accepted(&self, ready: &ReadyConnections, socket: Descriptor) {
        let mut state = self.lock();
        let accepted = state.accepted.entry(ready.listener).or_default();
        accepted.push_back(socket);
        drop(state);
        let _ = rustix::io::write(&ready.count, &1u64.to_ne_bytes());
    }

    /// Drops the sockets that the reactor has not accepted.
    pub(crate) fn drop_accepted(&self) {
        self.lock().accepted.clear();
    }

    /// Notes why a socket is about to be closed.
    pub(crate) fn note_fault(&self, link: u64, why: LinkError) {
        let faults = &mut self.lock().faults;
        faults.push_back((link, why));
        if faults.len() > FAULTS {
            faults.pop_front();
        }
    }

    /// Notes why a connection has not come about yet; `None` once it has, or once it is given up.
    pub(crate) fn note_obstacle(&self, link: u64, why: Option<LinkError>) {
        let obstacles = &mut self.lock().obstacles;
        match why {
            Some(why) => drop(obstacles.insert(link, why)),
            None => drop(obstacles.remove(&link)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SharedState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
