//! All sockets of a process, and the one background thread that reads them.
//!
//! The thread blocks every signal, sleeps when nothing comes in, and never calls a user's code. A listener gives
//! strangers a bounded number of places and of seconds: nothing of what they send is parsed but the handshake.

mod connection;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::{Address, Secret};

use crate::tcp::{Link, LinkId, Reader, Received};
use crate::{Exchange, Lost, descriptors};
use connection::{Connection, Pending, Step};

/// How long a stranger has to prove itself, and how many may be about it at once.
const STRANGER_TIME: Duration = Duration::from_secs(5);
const STRANGER_PLACES: usize = 64;

/// What is read from one link before others get their turn.
const TURN: usize = 4 << 20;

const WAKE: u64 = 0;

/// Told what happens on a reactor's links. Calls come on the reactor's thread and must not block.
pub trait Handler: Send + Sync {
    /// A link is up: both ends have proved themselves.
    fn opened(&self, link: &Arc<Link>, agreement: Agreement);

    /// A control message came in.
    fn control(&self, link: &Arc<Link>, body: &[u8]);

    /// A link is down, by the other end or by an error. Not called for links that we closed.
    fn lost(&self, link: &Arc<Link>, why: Lost);

    /// None of the addresses that were dialled with this tag answered as a titin of this run.
    fn unreachable(&self, tag: u128, why: Lost) {
        let _ = (tag, why);
    }

    /// Called when the time that the last call returned is over, and once at the start; `None` is not again.
    fn tick(&self) -> Option<Duration> {
        None
    }

    /// The reactor's thread has ended by an internal error; nothing comes in any more.
    fn broken(&self, text: String) {
        let _ = text;
    }
}

/// The sockets of a process.
pub struct Reactor {
    epoll: Arc<OwnedFd>,
    wake: OwnedFd,
    secret: Secret,
    exchange: Option<Arc<Exchange>>,
    commands: Mutex<Vec<Command>>,
    next: AtomicU64,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

enum Command {
    Listen(u64, OwnedFd),
    Dial { addresses: Vec<SocketAddr>, purpose: Purpose, tag: u128 },
    Tick,
    Stop,
}

impl Reactor {
    /// Starts the background thread of a process without conduits of its own (a manager).
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn start(secret: Secret, handler: Arc<dyn Handler>) -> io::Result<Arc<Self>> {
        Self::begin(secret, handler, None)
    }

    /// Starts the background thread of a process whose messages go to and come from this exchange.
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn with_exchange(
        secret: Secret,
        handler: Arc<dyn Handler>,
        exchange: Arc<Exchange>,
    ) -> io::Result<Arc<Self>> {
        Self::begin(secret, handler, Some(exchange))
    }

    fn begin(
        secret: Secret,
        handler: Arc<dyn Handler>,
        exchange: Option<Arc<Exchange>>,
    ) -> io::Result<Arc<Self>> {
        let reactor = Arc::new(Reactor {
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            secret,
            exchange,
            commands: Mutex::default(),
            next: AtomicU64::new(WAKE + 1),
            thread: Mutex::default(),
        });
        descriptors::note(&reactor.epoll);
        descriptors::note(&reactor.wake);
        epoll::add(&reactor.epoll, &reactor.wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let worker = Worker {
            reactor: reactor.clone(),
            handler: handler.clone(),
            connections: HashMap::new(),
            listeners: HashMap::new(),
            next_tick: Some(Instant::now()),
            received: Vec::new(),
        };
        // The mask is inherited, so the thread never runs a host program's signal handler.
        let mask = nix::sys::signal::SigSet::all();
        let before = mask.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
        let thread = std::thread::Builder::new().name("titin".into()).spawn(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.run())) {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                handler.broken(text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_default());
            }
        });
        before.thread_set_mask()?;
        *reactor.thread.lock().expect("never poisoned") = Some(thread?);
        Ok(reactor)
    }

    /// Listens on a port that the system chooses. Whoever comes must prove that it knows the secret.
    ///
    /// # Errors
    /// If the system refuses the socket or the address.
    pub fn listen(&self, ip: IpAddr) -> io::Result<Address> {
        let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket =
            net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        net::bind(&socket, &SocketAddr::new(ip, 0))?;
        net::listen(&socket, 1024)?;
        let bound = SocketAddr::try_from(net::getsockname(&socket)?)?;
        self.command(Command::Listen(self.next.fetch_add(1, Ordering::Relaxed), socket));
        Ok(Address::Tcp(bound.ip().to_string(), bound.port()))
    }

    /// Connects to the first of these addresses that answers. Does not wait: [`Handler::opened`] is called with a
    /// link that bears the tag, or [`Handler::unreachable`].
    ///
    /// # Errors
    /// [`Lost::Unreachable`] if none of the addresses is one that this release can dial.
    pub fn dial(&self, addresses: &[Address], purpose: Purpose, tag: u128) -> Result<(), Lost> {
        let mut found = Vec::new();
        for address in addresses {
            if let Address::Tcp(host, port) = address {
                let resolved = std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), *port));
                found.extend(resolved.into_iter().flatten());
            }
        }
        if found.is_empty() {
            let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            return Err(Lost::Unreachable(format!("any of the addresses [{}]", list.join(", "))));
        }
        self.command(Command::Dial { addresses: found, purpose, tag });
        Ok(())
    }

    /// Has [`Handler::tick`] called soon.
    pub fn tick(&self) {
        self.command(Command::Tick);
    }

    /// Ends the background thread and waits for it, unless called from it. Links are dropped with it.
    pub fn stop(&self) {
        self.command(Command::Stop);
        let thread = self.thread.lock().expect("never poisoned").take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }

    fn command(&self, command: Command) {
        self.commands.lock().expect("never poisoned").push(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        descriptors::forget(&self.epoll);
        descriptors::forget(&self.wake);
    }
}

/// What the background thread owns.
struct Worker {
    reactor: Arc<Reactor>,
    handler: Arc<dyn Handler>,
    connections: HashMap<u64, Connection>,
    listeners: HashMap<u64, (OwnedFd, bool)>,
    next_tick: Option<Instant>,
    received: Vec<Received>,
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        loop {
            self.tick();
            events.clear();
            let limit = self.timeout().map(|limit| Timespec {
                tv_sec: limit.as_secs() as i64,
                tv_nsec: limit.subsec_nanos().into(),
            });
            match epoll::wait(
                &self.reactor.epoll,
                rustix::buffer::spare_capacity(&mut events),
                limit.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return self.handler.broken(format!("waiting for sockets failed: {error}")),
            }
            for event in &events {
                let token = event.data.u64();
                if token == WAKE {
                    if self.obey() {
                        return;
                    }
                } else if self.listeners.contains_key(&token) {
                    self.accept(token);
                } else {
                    self.ready(token, event.flags);
                }
            }
            self.expire();
        }
    }

    /// Runs commands from other threads; true if told to stop.
    fn obey(&mut self) -> bool {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.reactor.wake, &mut count);
        let commands = std::mem::take(&mut *self.reactor.commands.lock().expect("never poisoned"));
        for command in commands {
            match command {
                Command::Listen(token, socket) => {
                    descriptors::note(&socket);
                    self.register(token, &socket, epoll::EventFlags::IN);
                    self.listeners.insert(token, (socket, true));
                }
                Command::Dial { addresses, purpose, tag } => self.dial(addresses, purpose, tag),
                Command::Tick => self.next_tick = Some(Instant::now()),
                Command::Stop => return true,
            }
        }
        false
    }

    fn register(&self, token: u64, socket: &OwnedFd, flags: epoll::EventFlags) {
        let _ = epoll::add(&self.reactor.epoll, socket, epoll::EventData::new_u64(token), flags);
    }

    fn token(&self) -> u64 {
        self.reactor.next.fetch_add(1, Ordering::Relaxed)
    }

    fn dial(&mut self, addresses: Vec<SocketAddr>, purpose: Purpose, tag: u128) {
        match Pending::dial(addresses, purpose, tag) {
            Ok(pending) => self.await_connect(pending),
            Err(why) => self.handler.unreachable(tag, why),
        }
    }

    fn await_connect(&mut self, pending: Pending) {
        let token = self.token();
        self.register(token, &pending.socket, epoll::EventFlags::OUT);
        self.connections.insert(token, Connection::Pending(Box::new(pending)));
    }

    fn accept(&mut self, listener: u64) {
        while self.strangers() < STRANGER_PLACES {
            let (socket, _) = &self.listeners[&listener];
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match net::accept_with(socket, flags) {
                Ok(socket) => {
                    let deadline = Instant::now() + STRANGER_TIME;
                    let pending = Pending::accepted(socket, &self.reactor.secret, deadline);
                    let token = self.token();
                    self.register(token, &pending.socket, epoll::EventFlags::IN);
                    self.connections.insert(token, Connection::Pending(Box::new(pending)));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return,
            }
        }
        self.admit(false);
    }

    fn strangers(&self) -> usize {
        let stranger =
            |connection: &&Connection| matches!(connection, Connection::Pending(p) if p.stranger());
        self.connections.values().filter(stranger).count()
    }

    /// Has the listeners taken up again, or left alone while all places of strangers are taken.
    fn admit(&mut self, wanted: bool) {
        for (token, (socket, admits)) in &mut self.listeners {
            if *admits != wanted {
                *admits = wanted;
                let flags = if wanted { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
                let _ =
                    epoll::modify(&self.reactor.epoll, &*socket, epoll::EventData::new_u64(*token), flags);
            }
        }
    }

    fn ready(&mut self, token: u64, flags: epoll::EventFlags) {
        match self.connections.remove(&token) {
            Some(Connection::Pending(pending)) => self.advance(token, *pending),
            Some(Connection::Open(link, reader)) => self.serve(token, link, reader, flags),
            None => {}
        }
    }

    fn advance(&mut self, token: u64, mut pending: Pending) {
        match pending.advance(&self.reactor.secret) {
            Ok(Step::Wait) => {
                let data = epoll::EventData::new_u64(token);
                let _ = epoll::modify(&self.reactor.epoll, &pending.socket, data, epoll::EventFlags::IN);
                self.connections.insert(token, Connection::Pending(Box::new(pending)));
            }
            Ok(Step::Redial) => self.await_connect(pending),
            Ok(Step::Agreed(agreement)) => {
                let (link, reader) = pending.open(LinkId(token), &self.reactor.epoll);
                descriptors::note(link.socket());
                self.handler.opened(&link, agreement);
                self.admit(true);
                // Frames may have come in behind the handshake; no further event announces them.
                self.serve(token, link, reader, epoll::EventFlags::IN);
            }
            Err(why) => {
                if let Some(tag) = pending.tag() {
                    self.handler.unreachable(tag, why);
                }
                drop(pending);
                self.admit(true);
            }
        }
    }

    fn serve(&mut self, token: u64, link: Arc<Link>, mut reader: Box<Reader>, flags: epoll::EventFlags) {
        if flags.contains(epoll::EventFlags::OUT) {
            link.flush();
        }
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let outcome = if flags.intersects(readable) { self.pour(&link, &mut reader) } else { Ok(()) };
        match outcome {
            Ok(()) => drop(self.connections.insert(token, Connection::Open(link, reader))),
            Err(why) => self.drop_link(&link, why),
        }
    }

    /// Reads from a link and hands on what is complete.
    fn pour(&mut self, link: &Arc<Link>, reader: &mut Reader) -> Result<(), Lost> {
        let mut turn = 0;
        loop {
            let mut received = std::mem::take(&mut self.received);
            let count = reader.read(link.socket(), &mut received);
            let outcome = received.drain(..).try_for_each(|item| self.hand_on(link, item));
            self.received = received;
            outcome?;
            let count = count?;
            turn += count;
            if count == 0 || turn > TURN {
                return Ok(());
            }
        }
    }

    fn hand_on(&self, link: &Arc<Link>, received: Received) -> Result<(), Lost> {
        if let Received::Control(body) = received {
            self.handler.control(link, &body);
            return Ok(());
        }
        let Some(exchange) = &self.reactor.exchange else {
            return Err(titin_wire::Malformed::new("frame", "data on a link that carries none").into());
        };
        match received {
            Received::Message(message) => exchange.inbox(message.head.conduit).deliver(message)?,
            Received::Ended(conduit, sent) => exchange.inbox(conduit).end(sent),
            Received::Acknowledged(conduit, ack) => {
                exchange.window(conduit).inspect(|window| window.acknowledged(ack));
            }
            Received::Control(_) => {}
        }
        Ok(())
    }

    fn drop_link(&mut self, link: &Arc<Link>, why: Lost) {
        let _ = epoll::delete(&self.reactor.epoll, link.socket());
        if !link.closed() {
            self.handler.lost(link, why);
        }
        link.close();
    }

    /// Ends handshakes that take too long.
    fn expire(&mut self) {
        let now = Instant::now();
        let late = |connection: &Connection| connection.deadline().is_some_and(|deadline| deadline <= now);
        let tokens: Vec<u64> =
            self.connections.iter().filter(|(_, c)| late(c)).map(|(token, _)| *token).collect();
        for token in &tokens {
            if let Some(Connection::Pending(pending)) = self.connections.remove(token)
                && let Some(tag) = pending.tag()
            {
                self.handler.unreachable(tag, Lost::Silent);
            }
        }
        if !tokens.is_empty() {
            self.admit(true);
        }
    }

    fn tick(&mut self) {
        if self.next_tick.is_some_and(|at| at <= Instant::now()) {
            self.next_tick = self.handler.tick().map(|after| Instant::now() + after);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let deadlines = self.connections.values().filter_map(Connection::deadline);
        let next = deadlines.chain(self.next_tick).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }
}
