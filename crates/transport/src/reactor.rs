//! All sockets of a process, and the background thread that reads them.
//!
//! The thread blocks every signal, sleeps when nothing comes in, and never calls a user's code. A
//! connection without a proof, a stranger, takes one of a bounded number of places for a bounded
//! time. Of a stranger's bytes only the handshake is parsed.

mod dial;
mod gathering;
mod growing;
mod pending;

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use titin_wire::connection::SiteAccess;
use titin_wire::frame::Frame;
use titin_wire::handshake::{Agreement, Handshake, Purpose};
use titin_wire::token::TokenRequest;
use titin_wire::{Address, EndpointId, LinkSettings, Secret};

use crate::carrier::Medium;
use crate::conduit_table::ConduitTable;
use crate::error::LinkError;
use crate::link::{Handler, Link, LinkId, Receivers};
use crate::medium::SocketMedium;
use crate::stream_growth::StreamRequest;
use dial::{DialStep, Dialling, Target};
use gathering::{IncompleteLink, IncompleteLinks};
use growing::{GrowingLink, GrowingLinks};
use pending::{HandshakeStep, Pending, StrangerRank, StreamsRequest};
use titin_os::time::timespec;
use titin_os::{Descriptor, threads};

/// How long a stranger has for its proof while there are places: the stranger may be short of
/// cores.
const STRANGER_TIME: Duration = Duration::from_secs(30);

/// How long a process that ends waits for other sites to acknowledge its last bytes.
const FINISH: Duration = Duration::from_secs(1);

/// The most strangers at a time: as many as dial together in a large run, or as the streams of a
/// link.
const STRANGER_PLACES: usize = 1024;

/// How many connections are accepted before other sockets have their turn.
const ACCEPTED_AT_ONCE: usize = 64;

/// How long no connections are accepted when the system has no descriptors for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The token of the event descriptor that wakes the thread.
const WAKE: u64 = 0;

/// The sockets of a process.
pub struct Reactor {
    epoll: Arc<Descriptor>,
    wake: Descriptor,
    secret: Secret,
    /// The id by which peers know the process.
    endpoint: OnceLock<EndpointId>,
    /// How long processes may take to complete a link.
    patience: Duration,
    /// The preferred media first.
    media: Vec<Arc<dyn SocketMedium>>,
    commands: Mutex<Vec<ReactorCommand>>,
    next: AtomicU64,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

enum ReactorCommand {
    /// Watch a listener, by the token.
    Listen(u64, Descriptor, Arc<dyn SocketMedium>),
    Dial(Box<Dialling>),
    /// Get more further streams for the link with the token, so many in all.
    Grow(u64, usize),
    Tick,
    /// Accept no more connections.
    StopListening,
    Stop,
}

impl Reactor {
    /// Starts the background thread.
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub(crate) fn start_with(
        secret: Secret,
        handler: Arc<dyn Handler>,
        conduits: Option<Arc<ConduitTable>>,
        patience: Duration,
        media: Vec<Arc<dyn SocketMedium>>,
    ) -> io::Result<Arc<Self>> {
        let reactor = Arc::new(Reactor {
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?.into()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into(),
            secret,
            endpoint: OnceLock::new(),
            patience,
            media,
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
            receivers: Arc::new(Receivers {
                handler: handler.clone(),
                conduits,
            }),
            pending: HashMap::new(),
            // The program needs descriptors, too.
            stranger_places: STRANGER_PLACES
                .min(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) as usize / 2),
            incomplete: IncompleteLinks::default(),
            growing: GrowingLinks::default(),
            links: HashMap::new(),
            listeners: HashMap::new(),
            pauses: Vec::new(),
            rereads: HashMap::new(),
            accept_again: None,
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

    /// Has listeners name `endpoint` as the id of the process from now on.
    pub fn introduce(&self, endpoint: EndpointId) {
        let _ = self.endpoint.set(endpoint);
    }

    /// Says how the process reaches other sites. Comes before the first listener and the first dial
    /// by the medium `relay`.
    pub fn reach_sites(&self, access: &SiteAccess) {
        let media = self.media.iter();
        media.for_each(|medium| medium.reach_sites(access, &self.secret));
    }

    /// Has the process reach other hosts by sessions without relays, at the addresses `session:HOST:PORT`. Comes
    /// before the first listener and the first dial by the medium `relay`.
    pub fn reach_hosts(&self) {
        let media = self.media.iter();
        media.for_each(|medium| medium.reach_hosts(&self.secret));
    }

    /// Says how a process that [reaches hosts](Reactor::reach_hosts) reaches a site by relays. Comes before the first dial to an
    /// address of the site.
    pub fn reach_site(&self, site: &str, access: &SiteAccess) {
        let media = self.media.iter();
        media.for_each(|medium| medium.reach_site(site, access));
    }

    /// As [`Reactor::reach_sites`], and listens for other sites by the tcp listener whose addresses
    /// are among `own`. Returns the addresses for processes of other sites.
    ///
    /// # Errors
    /// If the system refuses a descriptor or a thread.
    pub fn listen_for_sites(
        &self,
        access: &SiteAccess,
        own: &[Address],
    ) -> io::Result<Vec<Address>> {
        self.reach_sites(access);
        let tcp = || {
            own.iter().filter_map(|address| match address {
                Address::Tcp(host, port) => Some((host, *port)),
                _ => None,
            })
        };
        if let Some((host, port)) = tcp().next() {
            self.listen(Medium::Relay, &format!("{host}:{port}"))?;
        }
        Ok(tcp()
            .map(|(host, port)| access.address_of(host, port))
            .collect())
    }

    /// Listens at a place of the host. For tcp the place is an address with or without a port; without
    /// one the system chooses the port. For shm the place is a file: `listen` makes the file, and the caller removes it later.
    /// For file the place is a folder, which only the user of this process may open. For relay the
    /// place is the `host:port` of a tcp listener, as the relay of the site calls it.
    /// A peer must prove knowledge of the secret.
    ///
    /// # Errors
    /// If the system refuses the socket or the place.
    pub fn listen(&self, medium: Medium, place: &str) -> io::Result<Address> {
        let medium = self
            .media
            .iter()
            .find(|offered| offered.medium() == medium)
            .ok_or(io::ErrorKind::Unsupported)?;
        let (socket, address) = medium.listen(place)?;
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.command(ReactorCommand::Listen(token, socket, medium.clone()));
        Ok(address)
    }

    /// Connects to the first of `addresses` that answers as a titin of the run, and as the process
    /// `expected` if given. Addresses are tried one after the other. An address that answers late
    /// or hangs up is tried again until `patience` is over. A link by tcp has the given settings.
    ///
    /// Waits for no answer: calls [`Handler::opened`] with a link that has the tag, or
    /// [`Handler::unreachable`]. Only host names are looked up on the caller's thread.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] if the release can dial none of the addresses.
    pub fn dial(
        &self,
        addresses: &[Address],
        purpose: Purpose,
        tag: u128,
        expected: Option<EndpointId>,
        settings: LinkSettings,
        patience: Duration,
    ) -> Result<(), LinkError> {
        let media_of = |address| {
            self.media.iter().flat_map(move |medium| {
                let places = medium.targets(address).into_iter();
                places.map(|place| Target::new(medium.clone(), place))
            })
        };
        let targets: Vec<Target> = addresses.iter().flat_map(media_of).collect();
        if targets.is_empty() {
            let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            return Err(LinkError::Unreachable(format!(
                "any of the addresses [{}]",
                list.join(", ")
            )));
        }
        let dialling = Dialling::new(targets, purpose, tag, expected, settings, patience);
        self.command(ReactorCommand::Dial(dialling.into()));
        Ok(())
    }

    /// Closes all listeners. Links stay.
    pub fn stop_listening(&self) {
        self.command(ReactorCommand::StopListening);
    }

    /// Has [`Handler::tick`] called soon.
    pub fn tick(&self) {
        self.command(ReactorCommand::Tick);
    }

    /// Ends the background thread and all links. Waits for the end of the thread, unless called
    /// from the thread itself. A process that ends well has waited before for what matters, so the
    /// last bytes to other sites have only [`FINISH`].
    pub fn stop(&self) {
        self.stop_within(FINISH);
    }

    /// As [`Reactor::stop`], with a time in which other sites are to acknowledge the last bytes.
    pub fn stop_within(&self, time: Duration) {
        self.command(ReactorCommand::Stop);
        let thread = self.thread.lock().expect("never poisoned").take();
        if let Some(thread) =
            thread.filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
            let media = self.media.iter();
            media.for_each(|medium| medium.finish(Some(time)));
        } else {
            self.media.iter().for_each(|medium| medium.finish(None));
        }
    }

    fn command(&self, command: ReactorCommand) {
        self.commands.lock().expect("never poisoned").push(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// The state of the background thread.
struct Worker {
    reactor: Arc<Reactor>,
    receivers: Arc<Receivers>,
    pending: HashMap<u64, Pending>,
    /// The most strangers among the pending connections.
    stranger_places: usize,
    incomplete: IncompleteLinks,
    growing: GrowingLinks,
    links: HashMap<u64, Arc<Link>>,
    listeners: HashMap<u64, Listener>,
    /// Processes to dial again, and when.
    pauses: Vec<(Instant, Dialling)>,
    /// Links to read again at the given times, even if nothing comes.
    rereads: HashMap<u64, Instant>,
    /// When to accept connections again, after there were no descriptors for them.
    accept_again: Option<Instant>,
    next_tick: Option<Instant>,
}

struct Listener {
    socket: Descriptor,
    medium: Arc<dyn SocketMedium>,
    /// Whether the reactor accepts connections.
    accepts: bool,
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        loop {
            self.tick();
            events.clear();
            let limit = self.timeout().map(timespec);
            match epoll::wait(
                &self.reactor.epoll,
                rustix::buffer::spare_capacity(&mut events),
                limit.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    return self
                        .receivers
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
                } else if self.incomplete.contains(token) {
                    // For an incomplete link the reactor watches only for the end.
                    self.scatter(token, None, LinkError::Closed);
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
                ReactorCommand::Listen(token, socket, medium) => {
                    self.register(token, &socket, epoll::EventFlags::IN);
                    self.listeners.insert(
                        token,
                        Listener {
                            socket,
                            medium,
                            accepts: true,
                        },
                    );
                }
                ReactorCommand::Dial(dialling) => self.dial(*dialling),
                ReactorCommand::Grow(token, count) => self.grow(token, count as u64),
                ReactorCommand::StopListening => {
                    for (_, listener) in std::mem::take(&mut self.listeners) {
                        self.unregister(&listener.socket);
                    }
                }
                ReactorCommand::Tick => self.next_tick = Some(Instant::now()),
                ReactorCommand::Stop => return true,
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

    /// Stops watching a socket. Closing the socket is not enough: a forked child may still hold it.
    fn unregister(&self, socket: &Descriptor) {
        let _ = epoll::delete(&self.reactor.epoll, socket);
    }

    fn token(&self) -> u64 {
        self.reactor.next.fetch_add(1, Ordering::Relaxed)
    }

    fn dial(&mut self, dialling: Dialling) {
        match dialling.next(Instant::now()) {
            DialStep::Connect(socket, connecting) => {
                let token = self.token();
                self.register(token, &socket, epoll::EventFlags::OUT);
                self.pending
                    .insert(token, Pending::dialled(socket, connecting));
            }
            DialStep::Pause(until, dialling) => self.pauses.push((until, dialling)),
            DialStep::Fail(tag, why) => self.receivers.handler.unreachable(tag, why),
        }
    }

    /// Accepts connections, up to a number, and then closes strangers beyond the places. All are
    /// accepted first: a process of the run may be behind thousands of strangers in the listener's
    /// queue.
    fn accept(&mut self, listener: u64) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let Listener { socket, medium, .. } = &self.listeners[&listener];
            match medium.accept(socket) {
                Ok(socket) => {
                    let shake = Handshake::listen(self.reactor.secret.clone());
                    let shake = self
                        .reactor
                        .endpoint
                        .get()
                        .copied()
                        .into_iter()
                        .fold(shake, Handshake::of);
                    let pending = Pending::accepted(socket, medium, shake, STRANGER_TIME);
                    let token = self.token();
                    self.register(token, &pending.socket, epoll::EventFlags::IN);
                    self.pending.insert(token, pending);
                    // A process of the run has usually greeted by now.
                    self.advance(token);
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // The waiting connection would wake the reactor's thread again and again.
                    if !self.drop_strangers(self.pending.len() / 2) {
                        return self.pause_accepting(ACCEPT_PAUSE);
                    }
                }
                Err(_) => break,
            }
        }
        self.drop_strangers(self.stranger_places);
    }

    /// Closes strangers of the lowest rank until at most `most` are left; whether some were closed.
    fn drop_strangers(&mut self, most: usize) -> bool {
        if self.pending.len() <= most {
            return false;
        }
        let strangers = self
            .pending
            .iter()
            .filter_map(|(token, pending)| Some((pending.rank()?, *token)));
        let mut strangers: Vec<(StrangerRank, u64)> = strangers.collect();
        strangers.sort_unstable();
        let surplus = strangers.len().saturating_sub(most);
        strangers[..surplus]
            .iter()
            .for_each(|(_, token)| self.give_up(*token, LinkError::Closed));
        surplus > 0
    }

    /// Accepts no connections for `time`.
    fn pause_accepting(&mut self, time: Duration) {
        self.accept_again = Some(Instant::now() + time);
        self.watch_listeners(false);
    }

    /// Watches the listeners again, or no longer.
    fn watch_listeners(&mut self, wanted: bool) {
        let flags = if wanted {
            epoll::EventFlags::IN
        } else {
            epoll::EventFlags::empty()
        };
        for (token, listener) in &mut self.listeners {
            if listener.accepts != wanted {
                listener.accepts = wanted;
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
            .expect("only called for pending connections");
        match pending.advance(&self.reactor.secret) {
            Ok(HandshakeStep::Wait) => {
                self.await_events(token, &self.pending[&token].socket, epoll::EventFlags::IN)
            }
            Ok(HandshakeStep::Agreed(agreement)) => {
                let Some(pending) = self.pending.remove(&token) else {
                    return;
                };
                self.open(token, pending, Vec::new(), None, agreement);
            }
            Ok(HandshakeStep::OneTimeKey(number)) => {
                let key = self.receivers.handler.one_time_key(number);
                // Nobody can prove a key that is not known.
                let key = key.unwrap_or_else(Secret::random);
                if let Err(why) = pending.use_one_time_key(number, key) {
                    self.give_up(token, why);
                }
            }
            Ok(HandshakeStep::Asked(request)) => self.pass_request_on(token, request),
            Ok(HandshakeStep::Session) => self.hand_over(token),
            Ok(HandshakeStep::Gather(request)) => self.gather(token, request),
            Ok(HandshakeStep::Join(key, number)) => {
                let incomplete = self.incomplete.by_key(key);
                match incomplete.or_else(|| self.growing.by_key(key)) {
                    Some(link) => self.join(token, link, number),
                    None => self.give_up(token, LinkError::Closed),
                }
            }
            Ok(HandshakeStep::Joined(joining)) => self.join(token, joining.token, joining.number),
            Err(why) => self.give_up(token, why),
        }
    }

    /// Gives a connection to the handler, by which an agent with a token has asked.
    fn pass_request_on(&mut self, token: u64, request: TokenRequest) {
        let Some(pending) = self.pending.remove(&token) else {
            return;
        };
        self.unregister(&pending.socket);
        if let Some(connection) = pending.into_token_connection() {
            self.receivers.handler.asked(request, connection);
        }
    }

    /// Gives a connection for a session to the medium that has sessions.
    fn hand_over(&mut self, token: u64) {
        let Some(pending) = self.pending.remove(&token) else {
            return;
        };
        self.unregister(&pending.socket);
        let Some(mut connection) = pending.into_proved() else {
            return;
        };
        for medium in &self.reactor.media {
            match medium.adopt(connection) {
                None => return,
                Some(again) => connection = again,
            }
        }
    }

    fn open(
        &mut self,
        token: u64,
        first: Pending,
        further: Vec<Pending>,
        growing: Option<GrowingLink>,
        agreement: Agreement,
    ) {
        let rules = growing.as_ref();
        let rules = rules.map(|growing| growing.rules(self.stream_request(token)));
        let (epoll, receivers) = (&self.reactor.epoll, &self.receivers);
        let link = match first.open(further, rules, LinkId(token), epoll, receivers) {
            Ok(link) => link,
            // A listening process need not hear of a link that was never opened.
            Err((tag, why)) => {
                tag.inspect(|tag| self.receivers.handler.unreachable(*tag, why));
                return;
            }
        };
        self.await_events(token, link.socket(), epoll::EventFlags::IN);
        link.streams_epoll()
            .inspect(|epoll| self.register(token, epoll, epoll::EventFlags::IN));
        self.receivers.handler.opened(
            &link,
            Agreement {
                purpose: agreement.purpose.of_link(),
                ..agreement
            },
        );
        self.links.insert(token, link);
        if let Some(growing) = growing {
            self.growing.insert(token, growing);
        }
        // Frames may have come after the handshake; no further event announces them.
        self.serve(token, epoll::EventFlags::IN);
    }

    /// Asks the reactor for more further streams of the link with the token.
    fn stream_request(&self, token: u64) -> StreamRequest {
        let reactor = Arc::downgrade(&self.reactor);
        Arc::new(move |count| {
            let reactor = reactor.upgrade();
            reactor.inspect(|reactor| reactor.command(ReactorCommand::Grow(token, count)));
        })
    }

    /// Gets more further streams for a link, `count` in all: dials them, or asks the other end to.
    fn grow(&mut self, token: u64, count: u64) {
        let (Some(is_dialled), Some(link)) =
            (self.growing.is_dialled(token), self.links.get(&token))
        else {
            return;
        };
        if !is_dialled {
            return link.tell_frame(&Frame::MoreStreams { count }, None);
        }
        let settings = link.stream_settings();
        for pending in self.growing.dial(token, count, &settings) {
            let token = self.token();
            self.register(token, &pending.socket, epoll::EventFlags::OUT);
            self.pending.insert(token, pending);
        }
    }

    /// Waits for the further streams of a link. The dialling process opens the streams.
    fn gather(&mut self, token: u64, request: StreamsRequest) {
        let Some(first) = self.pending.remove(&token) else {
            return;
        };
        if first.is_stranger() && self.incomplete.by_key(request.key).is_some() {
            return self.unregister(&first.socket);
        }
        self.await_events(token, &first.socket, epoll::EventFlags::empty());
        let link = IncompleteLink::new(first, request, self.reactor.patience);
        if link.is_complete() {
            return self.open_complete(token, link);
        }
        let dialled = !link.first.is_stranger();
        for joining in link.joining(token).filter(|_| dialled) {
            match link.first.further(joining) {
                Ok(pending) => {
                    let token = self.token();
                    self.register(token, &pending.socket, epoll::EventFlags::OUT);
                    self.pending.insert(token, pending);
                }
                Err(why) => {
                    self.incomplete.insert(token, link);
                    return self.scatter(token, Some(joining.number), why);
                }
            }
        }
        self.incomplete.insert(token, link);
    }

    /// Adds a stream to its link.
    fn join(&mut self, token: u64, link: u64, number: u64) {
        let Some(stream) = self.pending.remove(&token) else {
            return;
        };
        // From here on the epoll descriptor of the link's streams watches the socket.
        self.unregister(&stream.socket);
        if let (true, Some(open)) = (self.growing.contains(link), self.links.get(&link)) {
            let had_further = open.streams_epoll().is_some();
            let _ = self.growing.join(link, open, number, stream);
            if !had_further {
                self.receivers.handler.got_streams(open);
            }
            return;
        }
        match self.incomplete.join(link, number, stream) {
            Ok(None) => {}
            Ok(Some(complete)) => self.open_complete(link, complete),
            Err(why) => self.scatter(link, Some(number), why),
        }
    }

    fn open_complete(&mut self, token: u64, link: IncompleteLink) {
        let agreement = link.request.agreement;
        let growing = GrowingLink::new(&link.first, link.request);
        let (first, further) = link.finish();
        self.open(token, first, further, Some(growing), agreement);
    }

    /// Gives up a link whose streams do not all come, because of the stream numbered `stream`, or
    /// the first.
    fn scatter(&mut self, token: u64, stream: Option<u64>, why: LinkError) {
        let Some(link) = self.incomplete.take(token) else {
            return;
        };
        self.drop_joining(token);
        let (first, _) = link.finish();
        self.unregister(&first.socket);
        if let Some(dialling) = first.give_up(stream, why) {
            self.dial(dialling);
        }
    }

    /// Gives up the streams on their way to the link with the token.
    fn drop_joining(&mut self, token: u64) {
        let joins = |pending: &Pending| pending.joins.is_some_and(|joining| joining.token == token);
        let joining = self.pending.extract_if(|_, pending| joins(pending));
        let dropped: Vec<Pending> = joining.map(|(_, pending)| pending).collect();
        let sockets = dropped.iter().map(|pending| &pending.socket);
        sockets.for_each(|socket| self.unregister(socket));
    }

    fn give_up(&mut self, token: u64, why: LinkError) {
        let Some(pending) = self.pending.remove(&token) else {
            return;
        };
        self.unregister(&pending.socket);
        let why = pending.medium.fault(&pending.socket).unwrap_or(why);
        if let Some(joining) = pending.joins {
            if pending.joins_open_link {
                return self.growing.note_failed(joining.token);
            }
            return self.scatter(joining.token, Some(joining.number), why);
        }
        if let Some(dialling) = pending.give_up(None, why) {
            self.dial(dialling);
        }
    }

    fn serve(&mut self, token: u64, flags: epoll::EventFlags) {
        let Some(link) = self.links.get(&token) else {
            return;
        };
        if flags.contains(epoll::EventFlags::OUT) {
            link.flush();
        }
        let end = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(end | epoll::EventFlags::IN) {
            self.read(token, flags.intersects(end));
        }
    }

    /// Reads a link. `is_ending` as in [`Link::read`].
    fn read(&mut self, token: u64, is_ending: bool) {
        let Some(link) = self.links.get(&token) else {
            return;
        };
        match link.read(is_ending) {
            Ok(again) => drop(again.map(|time| self.rereads.insert(token, time))),
            Err(why) => self.drop_link(token, why),
        }
    }

    fn drop_link(&mut self, token: u64, why: LinkError) {
        let Some(link) = self.links.remove(&token) else {
            return;
        };
        self.rereads.remove(&token);
        self.growing.remove(token);
        self.drop_joining(token);
        self.unregister(link.socket());
        link.streams_epoll().inspect(|epoll| self.unregister(epoll));
        let carrier = link.side_carrier();
        carrier.inspect(|carrier| carrier.leave());
        if !link.closed() {
            // The carrier or the medium may know more than the end of the link says.
            let fault = || {
                let mut media = self.reactor.media.iter();
                media.find_map(|medium| medium.fault(link.socket()))
            };
            let why = carrier
                .and_then(|carrier| carrier.lost())
                .or_else(fault)
                .unwrap_or(why);
            self.receivers.handler.lost(&link, why);
        }
        link.close();
    }

    /// Acts on the times that have passed.
    fn expire(&mut self) {
        if !self.rereads.is_empty() {
            self.read_again(Instant::now());
        }
        let is_idle =
            self.pending.is_empty() && self.incomplete.is_empty() && self.pauses.is_empty();
        if is_idle && self.accept_again.is_none() {
            return;
        }
        let now = Instant::now();
        self.give_up_late(now);
        let due: Vec<_> = self
            .pauses
            .extract_if(.., |(until, _)| *until <= now)
            .collect();
        due.into_iter()
            .for_each(|(_, dialling)| self.dial(dialling));
        if self.accept_again.is_some_and(|until| until <= now) {
            self.accept_again = None;
            self.watch_listeners(true);
        }
    }

    fn read_again(&mut self, now: Instant) {
        let due: Vec<u64> = self
            .rereads
            .extract_if(|_, time| *time <= now)
            .map(|(token, _)| token)
            .collect();
        // A caller that reads a link without all its streams does not sleep.
        due.into_iter().for_each(|token| self.read(token, true));
    }

    /// Ends handshakes, and links without all their streams, that take too long.
    fn give_up_late(&mut self, now: Instant) {
        let late: Vec<(u64, LinkError)> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.deadline <= now)
            .map(|(token, pending)| (*token, pending.late_error()))
            .collect();
        late.into_iter()
            .for_each(|(token, why)| self.give_up(token, why));
        self.incomplete
            .late(now)
            .into_iter()
            .for_each(|token| self.scatter(token, None, LinkError::Unanswered));
    }

    /// Tells why requests have no answer yet.
    fn tell_obstacles(&self) {
        let obstacles = |pending: &Pending| match pending.obstacles() {
            None => self.incomplete.obstacles(pending),
            found => found,
        };
        let under_trial = self.pending.values().filter_map(obstacles);
        let paused = self.pauses.iter();
        let paused = paused.map(|(_, dialling)| (dialling.tag(), dialling.obstacles(None)));
        for (tag, why) in under_trial.chain(paused) {
            self.receivers.handler.hindered(tag, why);
        }
    }

    fn tick(&mut self) {
        if self.next_tick.is_some_and(|time| time <= Instant::now()) {
            self.tell_obstacles();
            self.next_tick = self
                .receivers
                .handler
                .tick()
                .map(|after| Instant::now() + after);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let deadlines = self.pending.values().map(|pending| pending.deadline);
        let deadlines = deadlines
            .chain(self.incomplete.deadlines())
            .chain(self.rereads.values().copied());
        let deadlines = deadlines.chain(self.pauses.iter().map(|(until, _)| *until));
        let next = deadlines
            .chain(self.next_tick)
            .chain(self.accept_again)
            .min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }
}
