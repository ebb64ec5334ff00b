//! All sockets of a process, and the one background thread that reads them.
//!
//! The thread blocks every signal, sleeps when nothing comes in, and never calls a user's code. A listener gives
//! strangers a bounded number of places and of seconds: nothing of what they send is parsed but the handshake.

mod dial;
mod gathering;
mod pending;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit};
use titin_wire::connection::PATIENCE;
use titin_wire::handshake::{Agreement, Handshake, Purpose};
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings, Secret};

use crate::tcp::{Link, LinkId, Sinks};
use crate::{Exchange, Lost};
use dial::{Dialled, Next, Target};
use gathering::{Gathering, Gatherings};
use pending::{Pending, Standing, Step, Wish};
use titin_os::{Descriptor, threads};

/// How long a stranger has to prove itself where there are places enough: it may be starved of its core.
const STRANGER_TIME: Duration = Duration::from_secs(30);

/// How many strangers may be about it at once, at most: as many as come together to a large run, or as the streams of a link.
const STRANGER_PLACES: usize = 1024;

/// How many are let in before others have their turn.
const AT_ONCE: usize = 64;

/// How many connections the system may keep for a listener until it lets them in.
const BACKLOG: i32 = 4096;

/// How long no more strangers are let in when the system has no descriptors for them.
const STARVED_TIME: Duration = Duration::from_millis(100);

const WAKE: u64 = 0;

/// Told what happens on a reactor's links. Calls come on the reactor's thread, or on that of a caller that reads a link
/// while it waits, and must not block.
pub trait Handler: Send + Sync {
    /// A link is up: both ends have proved themselves.
    fn opened(&self, link: &Arc<Link>, agreement: Agreement);

    /// A control message came in.
    fn control(&self, link: &Arc<Link>, body: &[u8]);

    /// A link is down, by the other end or by an error. Not called for links that we closed.
    fn lost(&self, link: &Arc<Link>, why: Lost);

    /// The first message of a conduit has come that nobody in this process has asked for, by this link if it still stands. It may be
    /// asked for yet. Called by whoever takes it in, who is not to be held up.
    fn stray(&self, link: Option<LinkId>, conduit: ConduitId) {
        let _ = (link, conduit);
    }

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
    epoll: Arc<Descriptor>,
    wake: Descriptor,
    secret: Secret,
    /// The id by which peers know the process.
    own: OnceLock<EndpointId>,
    /// How long programs may take to reach each other.
    patience: Duration,
    commands: Mutex<Vec<Command>>,
    next: AtomicU64,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

enum Command {
    /// Take up a listener, of processes of this host if it shares memory.
    Listen(u64, Descriptor, bool),
    Dial(Box<Dialled>),
    Tick,
    Stop,
}

impl Reactor {
    /// Starts the background thread of a process without conduits of its own (a manager).
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn start(secret: Secret, handler: Arc<dyn Handler>) -> io::Result<Arc<Self>> {
        Self::begin(secret, handler, None, PATIENCE)
    }

    /// Starts the background thread of a process whose messages go to and come from this exchange. A link that another
    /// process makes has so long to come about, `patience`, once that has proved itself.
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn with_exchange(
        secret: Secret,
        handler: Arc<dyn Handler>,
        exchange: Arc<Exchange>,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        Self::begin(secret, handler, Some(exchange), patience)
    }

    fn begin(
        secret: Secret,
        handler: Arc<dyn Handler>,
        exchange: Option<Arc<Exchange>>,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        let reactor = Arc::new(Reactor {
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?.into()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into(),
            secret,
            own: OnceLock::new(),
            patience,
            commands: Mutex::default(),
            next: AtomicU64::new(WAKE + 1),
            thread: Mutex::default(),
        });
        epoll::add(
            &reactor.epoll,
            &reactor.wake,
            epoll::EventData::new_u64(WAKE),
            epoll::EventFlags::IN,
        )?;
        let worker = Worker {
            reactor: reactor.clone(),
            sinks: Arc::new(Sinks {
                handler: handler.clone(),
                exchange,
            }),
            pending: HashMap::new(),
            // The program needs descriptors, too.
            places: STRANGER_PLACES
                .min(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) as usize / 2),
            gatherings: Gatherings::default(),
            links: HashMap::new(),
            listeners: HashMap::new(),
            pauses: Vec::new(),
            doubts: HashMap::new(),
            rests: None,
            next_tick: Some(Instant::now()),
        };
        let thread = threads::spawn_without_signals("titin", move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.run())) {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                handler.broken(
                    text.or_else(|| panic.downcast_ref().cloned())
                        .unwrap_or_default(),
                );
            }
        })?;
        *reactor.thread.lock().expect("never poisoned") = Some(thread);
        Ok(reactor)
    }

    /// Has listeners say from now on that this is the process with that id.
    pub fn introduce(&self, own: EndpointId) {
        let _ = self.own.set(own);
    }

    /// Listens on a port that the system chooses. Whoever comes must prove that it knows the secret.
    ///
    /// # Errors
    /// If the system refuses the socket or the address.
    pub fn listen(&self, ip: IpAddr) -> io::Result<Address> {
        let family = if ip.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let socket = net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        net::bind(&socket, &SocketAddr::new(ip, 0))?;
        net::listen(&socket, BACKLOG)?;
        let bound = SocketAddr::try_from(net::getsockname(&socket)?)?;
        self.take_up(socket.into(), false);
        Ok(Address::Tcp(bound.ip().to_string(), bound.port()))
    }

    /// Listens at a file that is made for it, for processes of this host, and shares memory with those that come. They
    /// must prove that they know the secret. Who removes the file is the caller's business.
    ///
    /// # Errors
    /// If the system refuses the socket or the file.
    pub fn listen_shm(&self, path: &str) -> io::Result<Address> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        net::listen(&socket, BACKLOG)?;
        self.take_up(socket.into(), true);
        Ok(Address::Shm(path.to_owned()))
    }

    fn take_up(&self, socket: Descriptor, shares: bool) {
        self.command(Command::Listen(
            self.next.fetch_add(1, Ordering::Relaxed),
            socket,
            shares,
        ));
    }

    /// Connects to the first of these addresses that answers as a titin of this run, and as the process that is meant if that is known,
    /// trying one after the other. Those
    /// that answer late or hang up are tried again until the time is over. If the link comes to be by tcp it has these
    /// settings. Waits for no answer: [`Handler::opened`] is called with a link that bears the tag, or
    /// [`Handler::unreachable`]. Only host names are looked up here, on the caller's thread.
    ///
    /// # Errors
    /// [`Lost::Unreachable`] if none of the addresses is one that this release can dial.
    pub fn dial(
        &self,
        addresses: &[Address],
        purpose: Purpose,
        tag: u128,
        meant: Option<EndpointId>,
        settings: LinkSettings,
        patience: Duration,
    ) -> Result<(), Lost> {
        let mut found = Vec::new();
        for address in addresses {
            match address {
                Address::Tcp(host, port) => {
                    let resolved =
                        std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), *port));
                    found.extend(resolved.into_iter().flatten().map(Target::Tcp));
                }
                Address::Shm(path) => found.push(Target::Shm(path.clone())),
                Address::Other(_) => {}
            }
        }
        if found.is_empty() {
            let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            return Err(Lost::Unreachable(format!(
                "any of the addresses [{}]",
                list.join(", ")
            )));
        }
        let dialled = Dialled::new(found, purpose, tag, meant, settings, patience);
        self.command(Command::Dial(dialled.into()));
        Ok(())
    }

    /// Has [`Handler::tick`] called soon.
    pub fn tick(&self) {
        self.command(Command::Tick);
    }

    /// Ends the background thread and waits for it, unless called from it. All links are closed with it.
    pub fn stop(&self) {
        self.command(Command::Stop);
        let thread = self.thread.lock().expect("never poisoned").take();
        if let Some(thread) =
            thread.filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
        }
    }

    fn command(&self, command: Command) {
        self.commands.lock().expect("never poisoned").push(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// What the background thread owns.
struct Worker {
    reactor: Arc<Reactor>,
    sinks: Arc<Sinks>,
    pending: HashMap<u64, Pending>,
    /// How many strangers may be among them.
    places: usize,
    gatherings: Gatherings,
    links: HashMap<u64, Arc<Link>>,
    listeners: HashMap<u64, Listener>,
    /// What is to be dialled again, and when.
    pauses: Vec<(Instant, Dialled)>,
    /// Links to read again at these times, though nothing may come.
    doubts: HashMap<u64, Instant>,
    /// When to let strangers in again, after there were no descriptors for them.
    rests: Option<Instant>,
    next_tick: Option<Instant>,
}

struct Listener {
    socket: Descriptor,
    shares: bool,
    admits: bool,
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
                Err(error) => {
                    return self
                        .sinks
                        .handler
                        .broken(format!("waiting for sockets failed: {error}"));
                }
            }
            for event in &events {
                let token = event.data.u64();
                if self.links.contains_key(&token) {
                    self.serve(token, event.flags);
                } else if self.pending.contains_key(&token) {
                    self.advance(token);
                } else if self.listeners.contains_key(&token) {
                    self.accept(token);
                } else if self.gatherings.contains(token) {
                    // Nothing else is waited for there.
                    self.scatter(token, None, Lost::Closed);
                } else if token == WAKE && self.obey() {
                    self.links.values().for_each(|link| link.close());
                    return;
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
                Command::Listen(token, socket, shares) => {
                    self.register(token, &socket, epoll::EventFlags::IN);
                    self.listeners.insert(
                        token,
                        Listener {
                            socket,
                            shares,
                            admits: true,
                        },
                    );
                }
                Command::Dial(dialled) => self.dial(*dialled),
                Command::Tick => self.next_tick = Some(Instant::now()),
                Command::Stop => return true,
            }
        }
        false
    }

    fn register(&self, token: u64, socket: &Descriptor, flags: epoll::EventFlags) {
        let _ = epoll::add(
            &self.reactor.epoll,
            socket,
            epoll::EventData::new_u64(token),
            flags,
        );
    }

    fn await_events(&self, token: u64, socket: &Descriptor, flags: epoll::EventFlags) {
        let _ = epoll::modify(
            &self.reactor.epoll,
            socket,
            epoll::EventData::new_u64(token),
            flags,
        );
    }

    /// Takes a socket out, since closing it is not enough: a forked child may still hold it.
    fn unregister(&self, socket: &Descriptor) {
        let _ = epoll::delete(&self.reactor.epoll, socket);
    }

    fn token(&self) -> u64 {
        self.reactor.next.fetch_add(1, Ordering::Relaxed)
    }

    fn dial(&mut self, dialled: Dialled) {
        match dialled.next(Instant::now()) {
            Next::Connect(socket, attempt) => {
                let token = self.token();
                self.register(token, &socket, epoll::EventFlags::OUT);
                self.pending
                    .insert(token, Pending::dialled(socket, attempt));
            }
            Next::Pause(until, dialled) => self.pauses.push((until, dialled)),
            Next::Fail(tag, why) => self.sinks.handler.unreachable(tag, why),
        }
    }

    /// Lets in the connections that wait for it, and others have their turn after so many. Strangers are taken in at once and thinned out
    /// afterwards: a friend may stand behind thousands of them in the listener's queue.
    fn accept(&mut self, listener: u64) {
        for _ in 0..AT_ONCE {
            let Listener { socket, shares, .. } = &self.listeners[&listener];
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match net::accept_with(socket, flags) {
                Ok(socket) => {
                    let shake = Handshake::listen(self.reactor.secret.clone());
                    let shake = self
                        .reactor
                        .own
                        .get()
                        .copied()
                        .into_iter()
                        .fold(shake, Handshake::of);
                    let pending = Pending::accepted(socket.into(), *shares, shake, STRANGER_TIME);
                    let token = self.token();
                    self.register(token, &pending.socket, epoll::EventFlags::IN);
                    self.pending.insert(token, pending);
                    // A process of this run has mostly greeted by now.
                    self.advance(token);
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // Whoever waits to be let in would wake us again and again.
                    if !self.thin_out(self.pending.len() / 2) {
                        return self.rest(STARVED_TIME);
                    }
                }
                Err(_) => break,
            }
        }
        self.thin_out(self.places);
    }

    /// Has strangers go until so many are left, first those for which the least speaks; whether some went.
    fn thin_out(&mut self, most: usize) -> bool {
        if self.pending.len() <= most {
            return false;
        }
        let strangers = self
            .pending
            .iter()
            .filter_map(|(token, pending)| Some((pending.standing()?, *token)));
        let mut strangers: Vec<(Standing, u64)> = strangers.collect();
        strangers.sort_unstable();
        let surplus = strangers.len().saturating_sub(most);
        strangers[..surplus]
            .iter()
            .for_each(|(_, token)| self.give_up(*token, Lost::Closed));
        surplus > 0
    }

    /// Lets nobody in for so long.
    fn rest(&mut self, time: Duration) {
        self.rests = Some(Instant::now() + time);
        self.admit(false);
    }

    /// Has the listeners taken up again, or left alone while there are no descriptors.
    fn admit(&mut self, wanted: bool) {
        let flags = if wanted {
            epoll::EventFlags::IN
        } else {
            epoll::EventFlags::empty()
        };
        for (token, listener) in &mut self.listeners {
            if listener.admits != wanted {
                listener.admits = wanted;
                let data = epoll::EventData::new_u64(*token);
                let _ = epoll::modify(&self.reactor.epoll, &listener.socket, data, flags);
            }
        }
    }

    /// Goes on with the handshake of a pending connection.
    fn advance(&mut self, token: u64) {
        let pending = self
            .pending
            .get_mut(&token)
            .expect("only called for those that pend");
        match pending.advance(&self.reactor.secret) {
            Ok(Step::Wait) => {
                self.await_events(token, &self.pending[&token].socket, epoll::EventFlags::IN)
            }
            Ok(Step::Agreed(agreement)) => {
                let Some(pending) = self.pending.remove(&token) else {
                    return;
                };
                self.open(token, pending, Vec::new(), agreement);
            }
            Ok(Step::Gather(wish)) => self.gather(token, wish),
            Ok(Step::Join(key, number)) => match self.gatherings.named(key) {
                Some(link) => self.join(token, link, number),
                None => self.give_up(token, Lost::Closed),
            },
            Ok(Step::Joined(joining)) => self.join(token, joining.token, joining.number),
            Err(why) => self.give_up(token, why),
        }
    }

    fn open(&mut self, token: u64, first: Pending, further: Vec<Pending>, agreement: Agreement) {
        let link = match first.open(further, LinkId(token), &self.reactor.epoll, &self.sinks) {
            Ok(link) => link,
            // Who dialled sees it closed, and who listened has heard of nobody.
            Err((tag, why)) => {
                tag.inspect(|tag| self.sinks.handler.unreachable(*tag, why));
                return;
            }
        };
        self.await_events(token, link.socket(), epoll::EventFlags::IN);
        link.bundle()
            .inspect(|bundle| self.register(token, bundle, epoll::EventFlags::IN));
        self.sinks.handler.opened(
            &link,
            Agreement {
                purpose: agreement.purpose.of_link(),
                ..agreement
            },
        );
        self.links.insert(token, link);
        // Frames may have come in behind the handshake; no further event announces them.
        self.serve(token, epoll::EventFlags::IN);
    }

    /// Waits for the further streams of a link, which whoever dialled opens.
    fn gather(&mut self, token: u64, wish: Wish) {
        let Some(first) = self.pending.remove(&token) else {
            return;
        };
        if first.stranger() && self.gatherings.named(wish.key).is_some() {
            return self.unregister(&first.socket);
        }
        self.await_events(token, &first.socket, epoll::EventFlags::empty());
        let gathering = Gathering::new(first, wish, self.reactor.patience);
        if gathering.is_whole() {
            return self.assemble(token, gathering);
        }
        let dialled = !gathering.first.stranger();
        for joining in gathering.joining(token).filter(|_| dialled) {
            match gathering.first.further(joining) {
                Ok(pending) => {
                    let token = self.token();
                    self.register(token, &pending.socket, epoll::EventFlags::OUT);
                    self.pending.insert(token, pending);
                }
                Err(why) => {
                    self.gatherings.insert(token, gathering);
                    return self.scatter(token, Some(joining.number), why);
                }
            }
        }
        self.gatherings.insert(token, gathering);
    }

    /// Adds a stream to its link.
    fn join(&mut self, token: u64, link: u64, number: u64) {
        let Some(stream) = self.pending.remove(&token) else {
            return;
        };
        // From here on the link's bundle watches it.
        self.unregister(&stream.socket);
        match self.gatherings.join(link, number, stream) {
            Ok(None) => {}
            Ok(Some(gathering)) => self.assemble(link, gathering),
            Err(why) => self.scatter(link, Some(number), why),
        }
    }

    fn assemble(&mut self, token: u64, gathering: Gathering) {
        let agreement = gathering.wish.agreement;
        let (first, further) = gathering.finish();
        self.open(token, first, further, agreement);
    }

    /// Gives a link up whose streams do not all come; because of the one with this number, or of the first.
    fn scatter(&mut self, token: u64, stream: Option<u64>, why: Lost) {
        let Some(gathering) = self.gatherings.take(token) else {
            return;
        };
        let joins = |pending: &Pending| pending.joins.is_some_and(|joining| joining.token == token);
        let tokens: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| joins(pending))
            .map(|(token, _)| *token)
            .collect();
        for token in tokens {
            self.pending
                .remove(&token)
                .inspect(|pending| self.unregister(&pending.socket));
        }
        let (first, _) = gathering.finish();
        self.unregister(&first.socket);
        if let Some(dialled) = first.give_up(stream, why) {
            self.dial(dialled);
        }
    }

    fn give_up(&mut self, token: u64, why: Lost) {
        let Some(pending) = self.pending.remove(&token) else {
            return;
        };
        self.unregister(&pending.socket);
        if let Some(joining) = pending.joins {
            return self.scatter(joining.token, Some(joining.number), why);
        }
        if let Some(dialled) = pending.give_up(None, why) {
            self.dial(dialled);
        }
    }

    fn serve(&mut self, token: u64, flags: epoll::EventFlags) {
        let Some(link) = self.links.get(&token) else {
            return;
        };
        if flags.contains(epoll::EventFlags::OUT) {
            link.flush();
        }
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(readable) {
            match link.read() {
                Ok(again) => drop(again.map(|at| self.doubts.insert(token, at))),
                Err(why) => self.drop_link(token, why),
            }
        }
    }

    fn drop_link(&mut self, token: u64, why: Lost) {
        let Some(link) = self.links.remove(&token) else {
            return;
        };
        self.doubts.remove(&token);
        self.unregister(link.socket());
        link.bundle().inspect(|bundle| self.unregister(bundle));
        let shared = link.shared();
        shared.inspect(|shared| shared.leave());
        if !link.closed() {
            // What it has put in last may say more than that it has gone.
            let why = shared.and_then(|shared| shared.lost()).unwrap_or(why);
            self.sinks.handler.lost(&link, why);
        }
        link.close();
    }

    /// Ends handshakes that take too long, and links in doubt.
    fn expire(&mut self) {
        if !self.doubts.is_empty() {
            let now = Instant::now();
            let due: Vec<u64> = self
                .doubts
                .extract_if(|_, at| *at <= now)
                .map(|(token, _)| token)
                .collect();
            due.into_iter()
                .for_each(|token| self.serve(token, epoll::EventFlags::IN));
        }
        let idle = self.pending.is_empty() && self.gatherings.is_empty() && self.pauses.is_empty();
        if idle && self.rests.is_none() {
            return;
        }
        let now = Instant::now();
        let late = |(token, pending): (&u64, &Pending)| {
            (pending.deadline <= now).then(|| (*token, pending.late()))
        };
        let late: Vec<(u64, Lost)> = self.pending.iter().filter_map(late).collect();
        late.into_iter()
            .for_each(|(token, why)| self.give_up(token, why));
        self.gatherings
            .late(now)
            .into_iter()
            .for_each(|token| self.scatter(token, None, Lost::Unanswered));
        let due: Vec<_> = self
            .pauses
            .extract_if(.., |(until, _)| *until <= now)
            .collect();
        due.into_iter().for_each(|(_, dialled)| self.dial(dialled));
        if self.rests.is_some_and(|until| until <= now) {
            self.rests = None;
            self.admit(true);
        }
    }

    fn tick(&mut self) {
        if self.next_tick.is_some_and(|at| at <= Instant::now()) {
            self.next_tick = self
                .sinks
                .handler
                .tick()
                .map(|after| Instant::now() + after);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let deadlines = self.pending.values().map(|pending| pending.deadline);
        let deadlines = deadlines
            .chain(self.gatherings.deadlines())
            .chain(self.doubts.values().copied());
        let deadlines = deadlines.chain(self.pauses.iter().map(|(until, _)| *until));
        let next = deadlines.chain(self.next_tick).chain(self.rests).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }
}
