//! The part of the runtime that a process has once: its sockets, its control link, and who is where.
//!
//! Whoever of two processes has the smaller endpoint id dials the other, once both know of each other; so there is
//! one link between them. Messages of this module's [`Handler`] come on the background thread: they change the
//! tables here, hand carriers to conduit ends, and ring the doorbells.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use titin_transport::{
    Carrier, Doorbell, Exchange, Handler, Inproc, Link, LinkId, Lost, Medium, Reactor, descriptors,
};
use titin_wire::connection::{Connection, meeting_place};
use titin_wire::control::{
    self, Greeting, Peer, Registration, SILENT_MANAGER, ToManager, ToProgram, Welcome,
};
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::{Address, EndpointId, LinkSettings, Secret};

use crate::instance::Inner;
use crate::{Error, Kind, Result};

/// The tag of the link to the manager. No endpoint has it: their ids are random.
const MANAGER: u128 = 0;

/// How often progress is reported while instances are open.
const TICK: Duration = Duration::from_millis(500);

/// How long the manager may take to answer a registration. It answers at once, whoever else has come.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

/// How long the manager is given to explain why a link to a peer broke.
const EXPLANATION: Duration = Duration::from_secs(2);

/// The runs that this process takes part in. One but for programs that run one coupled model after the other.
static PROCESSES: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());

/// Keeps the mark by which another copy of the runtime would see that this one is there.
static MARK: OnceLock<descriptors::Held> = OnceLock::new();

/// To be called in the child after a fork; gives the descriptors that the child is to close.
///
/// Takes no lock and allocates nothing, so it may run in a `pthread_atfork` handler.
pub fn fork_child() -> impl Iterator<Item = i32> {
    descriptors::take_all()
}

/// Refuses what only the parent's process can do.
///
/// # Errors
/// [`Kind::Forked`] in a child forked from a process that uses titin.
pub fn not_forked() -> Result<()> {
    if forked() { Err(forked_error()) } else { Ok(()) }
}

/// Whether this process is a child forked from one that uses titin.
pub(crate) fn forked() -> bool {
    descriptors::forked()
}

pub(crate) struct Process {
    id: EndpointId,
    secret: Secret,
    pub(crate) exchange: Arc<Exchange>,
    inproc: Arc<Inproc>,
    reactor: OnceLock<Arc<Reactor>>,
    addresses: OnceLock<Vec<Address>>,
    failed: AtomicBool,
    /// How many instances are open.
    crowd: AtomicUsize,
    /// Whether some process cannot be reached, for sure.
    given_up: AtomicBool,
    /// It was said that shared memory has run out.
    pub(crate) said_short: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    manager: Option<Arc<Link>>,
    heard: Option<Instant>,
    heartbeat: f64,
    told: Option<Instant>,
    /// When the background thread last looked.
    beaten: Option<Instant>,
    outbox: Vec<Vec<u8>>,
    instances: HashMap<String, Arc<Inner>>,
    /// Who has asked to join.
    asked: HashMap<String, Asked>,
    /// Where instances are that we have a conduit with.
    locations: HashMap<String, EndpointId>,
    residents: HashMap<EndpointId, HashSet<String>>,
    /// How our conduits want instances to be reached.
    ways: HashMap<String, HashSet<Way>>,
    /// How links to instances are to be made.
    settings: HashMap<String, LinkSettings>,
    addresses: HashMap<EndpointId, Vec<Address>>,
    routes: HashMap<(EndpointId, Way), Route>,
    /// What was dialled, by the tags of the links.
    dialled: HashMap<u128, (EndpointId, Way)>,
    /// Instances of ours that have conduit ends without a carrier, by the peer that they wait for.
    unrouted: HashMap<Arc<str>, Vec<Arc<Inner>>>,
    /// Instances of ours, by the peer that they have conduits with.
    neighbours: HashMap<Arc<str>, Vec<Arc<Inner>>>,
    finished: HashSet<String>,
    failure: Option<Error>,
}

/// An instance that has asked to join.
struct Asked {
    bell: Arc<Doorbell>,
    since: Instant,
    answer: Option<Result<Welcome>>,
}

/// How a peer is to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// By the best medium that there is.
    Best,
    /// By tcp, since the description says so for some conduit, although there is a better one.
    Tcp,
}

enum Route {
    Dialling,
    Up(Arc<Link>),
    Broken(Instant, Lost),
    Given(Lost),
}

impl Process {
    /// The process's part in a run: the one that it has, or a new one.
    pub(crate) fn join(connection: &Connection) -> Result<Arc<Self>> {
        not_forked()?;
        let mut processes = PROCESSES.lock().expect("never poisoned");
        mark()?;
        processes.retain(|process| process.strong_count() > 0);
        let known =
            processes.iter().filter_map(Weak::upgrade).find(|process| process.secret == connection.secret);
        if let Some(process) = known.filter(|process| !process.failed.load(Ordering::Relaxed)) {
            return Ok(process);
        }
        let process = Self::start(connection)?;
        processes.push(Arc::downgrade(&process));
        Ok(process)
    }

    fn start(connection: &Connection) -> Result<Arc<Self>> {
        let system = |error: std::io::Error| {
            let todo = match Errno::from_io_error(&error) {
                Some(Errno::MFILE) => "; close some, or raise the limit with `ulimit -n`",
                _ => "",
            };
            Error::new(Kind::Connection, format!("titin cannot open its sockets: {error}{todo}"))
        };
        let exchange = Arc::new(match std::env::var("TITIN_SHARED_MEMORY") {
            Err(_) => Exchange::default(),
            Ok(text) => Exchange::with_ceiling(titin_model::bytes_of(&text).ok_or_else(|| {
                let text = format!(
                    "TITIN_SHARED_MEMORY is {text:?}: give the most bytes to share, such as \"256 MiB\", or leave it out"
                );
                Error::new(Kind::Usage, text)
            })?),
        });
        let process = Arc::new(Process {
            id: EndpointId::random(),
            secret: connection.secret.clone(),
            inproc: Arc::new(Inproc::new(exchange.clone())),
            exchange: exchange.clone(),
            reactor: OnceLock::new(),
            addresses: OnceLock::new(),
            failed: AtomicBool::new(false),
            crowd: AtomicUsize::new(0),
            given_up: AtomicBool::new(false),
            said_short: AtomicBool::new(false),
            state: Mutex::default(),
        });
        let handler = Arc::new(Events(Arc::downgrade(&process)));
        let reactor = Reactor::with_exchange(connection.secret.clone(), handler, exchange).map_err(system)?;
        // From here on the process stops it when it is dropped, also if what follows fails.
        process.reactor.set(reactor.clone()).ok().expect("set once");
        let ip = if connection.spans_hosts { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let Address::Tcp(_, port) = reactor.listen(IpAddr::V4(ip)).map_err(system)? else {
            unreachable!("a tcp listener has a tcp address")
        };
        let hosts =
            if connection.spans_hosts { interfaces(&connection.addresses) } else { vec![ip.to_string()] };
        let tcp = hosts.into_iter().map(|host| Address::Tcp(host, port));
        let addresses = process.meet().into_iter().chain(tcp).collect();
        process.addresses.set(addresses).expect("set once");
        reactor
            .dial(&connection.addresses, Purpose::Control, MANAGER)
            .map_err(|why| Error::new(Kind::Connection, format!("the run's manager: {why}")))?;
        Ok(process)
    }

    /// Listens where processes of this host meet, if there is such a place.
    fn meet(&self) -> Option<Address> {
        let place = meeting_place(&self.secret);
        if !place.is_dir() {
            return None;
        }
        let path = place.join(format!("{:032x}", self.id.0));
        let address = self.reactor().listen_shm(path.to_str()?).ok()?;
        // Whoever knows the secret may come, as whatever user.
        let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777));
        Some(address)
    }

    /// Asks the manager to let an instance in; its answer rings the bell.
    pub(crate) fn ask(&self, mut registration: Registration, bell: Arc<Doorbell>) -> Result<()> {
        let name = &registration.instance;
        let mut state = self.lock();
        if state.instances.contains_key(name) || state.asked.contains_key(name) {
            let text =
                format!("instance {name} is open in this process already; close it first, or open another");
            return Err(Error::new(Kind::Usage, text));
        }
        state.asked.insert(name.clone(), Asked { bell, since: Instant::now(), answer: None });
        drop(state);
        registration.endpoint = self.id;
        registration.addresses = self.addresses.get().cloned().unwrap_or_default();
        self.tell(&ToManager::Register(registration));
        Ok(())
    }

    /// The manager's answer to an instance that has asked, if it has come.
    ///
    /// # Errors
    /// If it was refused, the run has failed, or the manager takes too long.
    pub(crate) fn answer(&self, name: &str) -> Result<Option<Welcome>> {
        let mut state = self.lock();
        let asked = state.asked.get_mut(name).expect("it has asked");
        let (answer, since) = (asked.answer.take(), asked.since);
        if answer.is_some() {
            state.asked.remove(name);
        }
        drop(state);
        if let Some(answer) = answer {
            return answer.map(Some);
        }
        self.check()?;
        if since.elapsed() >= ANSWER {
            let text = format!(
                "the run's manager has not answered {name} within {ANSWER:?}: it hangs, or is stopped"
            );
            return Err(Error::new(Kind::Connection, text));
        }
        Ok(None)
    }

    /// Forgets that an instance has asked. The manager may have let it in meanwhile, or do so yet.
    pub(crate) fn ask_no_more(&self, name: &str) {
        self.lock().asked.remove(name);
    }

    /// Has the background thread look soon for what is due.
    pub(crate) fn look_soon(&self) {
        self.reactor().tick();
    }

    /// Takes an instance in: its conduit ends get their carriers, now or when the peers come.
    pub(crate) fn admit(&self, inner: &Arc<Inner>, welcome: &Welcome) {
        let mut state = self.lock();
        state.heartbeat = welcome.heartbeat;
        state.instances.insert(inner.name.clone(), inner.clone());
        for wire in &welcome.wires {
            let pinned = wire.medium.as_deref() == Some(Medium::Tcp.name());
            let way = if pinned { Way::Tcp } else { Way::Best };
            state.ways.entry(wire.peer.clone()).or_default().insert(way);
            state.settings.entry(wire.peer.clone()).or_insert(wire.link);
        }
        for peer in inner.neighbours.names() {
            state.neighbours.entry(peer.clone()).or_default().push(inner.clone());
            state.unrouted.entry(peer.clone()).or_default().push(inner.clone());
            self.reach(&mut state, peer);
            self.settle(&mut state, peer);
        }
        // The manager's word on them may have come before this instance was there to hear it.
        let finished: Vec<&Arc<str>> =
            inner.neighbours.names().filter(|peer| state.finished.contains(&***peer)).collect();
        let count = state.instances.len();
        self.crowd.store(count, Ordering::Relaxed);
        drop(state);
        finished.into_iter().for_each(|peer| inner.peer_finished(peer));
        // From then on it looks by itself.
        if count == 1 {
            self.reactor().tick();
        }
    }

    /// Lets an instance go.
    pub(crate) fn dismiss(&self, inner: &Inner) {
        let mut state = self.lock();
        state.instances.remove(&inner.name);
        self.crowd.store(state.instances.len(), Ordering::Relaxed);
        let State { unrouted, neighbours, .. } = &mut *state;
        for peer in inner.neighbours.names() {
            for known in [unrouted.get_mut(peer), neighbours.get_mut(peer)].into_iter().flatten() {
                known.retain(|other| !std::ptr::eq(&raw const **other, inner));
            }
        }
        inner.ends(|end, receives| self.exchange.forget(end.conduit, receives));
    }

    /// Sends a message to the manager, once the link to it is up.
    pub(crate) fn tell(&self, message: &ToManager) {
        let body = control::encode(message);
        let mut state = self.lock();
        match &state.manager {
            None => state.outbox.push(body),
            Some(link) => {
                let link = link.clone();
                state.told = Some(Instant::now());
                drop(state);
                link.tell(&body);
            }
        }
    }

    /// Whether the run has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The failure of the run, if it has failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        Err(self.lock().failure.clone().expect("set before the flag"))
    }

    /// Whether an instance has finished in good order.
    pub(crate) fn finished(&self, instance: &str) -> bool {
        self.lock().finished.contains(instance)
    }

    /// Whether there is an instance that cannot be reached.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Why an instance cannot be reached, once it is sure that nobody explains it better.
    pub(crate) fn unreachable(&self, instance: &str) -> Option<Lost> {
        // Every look for a message that is not there comes by here.
        if !self.has_given_up() {
            return None;
        }
        let state = self.lock();
        let endpoint = *state.locations.get(instance)?;
        [Way::Best, Way::Tcp].into_iter().find_map(|way| match state.routes.get(&(endpoint, way))? {
            Route::Given(why) => Some(why.clone()),
            _ => None,
        })
    }

    /// Why memory could not even be tried to be shared with a peer, if it could not.
    fn apart(&self, peer: EndpointId, way: Way, link: &Arc<Link>) -> Option<String> {
        if way != Way::Best || link.carrier().medium() != Medium::Tcp || link.detour().is_some() {
            return None;
        }
        let state = self.lock();
        let mut alone = Vec::new();
        if !meets(self.addresses.get()) {
            alone.extend(state.instances.keys().next().cloned());
        }
        if !meets(state.addresses.get(&peer)) {
            alone.extend(state.residents.get(&peer).and_then(|names| names.iter().next().cloned()));
        }
        let who = alone.join(" and ");
        (!alone.is_empty())
            .then(|| format!("they do not share /dev/shm: {who} did not find the run's meeting place there"))
    }

    /// Why this process does not share memory with that of an instance, if the two tried to.
    pub(crate) fn detour(&self, instance: &str) -> Option<String> {
        let state = self.lock();
        match state.routes.get(&(*state.locations.get(instance)?, Way::Best))? {
            Route::Up(link) => link.detour().map(str::to_owned),
            _ => None,
        }
    }

    /// How many instances are open in this process.
    pub(crate) fn crowd(&self) -> usize {
        self.crowd.load(Ordering::Relaxed)
    }

    fn reactor(&self) -> &Arc<Reactor> {
        self.reactor.get().expect("set before the process is handed out")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in here is told to all by `fail`, which needs the tables once more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the ends that wait for this peer their carrier, if there is one; else sees to it that there will be.
    fn settle(&self, state: &mut State, peer: &str) {
        let Some(endpoint) = state.locations.get(peer).copied() else { return };
        let carriers: Vec<(Way, Arc<dyn Carrier>)> = if endpoint == self.id {
            vec![(Way::Best, self.inproc.clone())]
        } else {
            let up = |way| match state.routes.get(&(endpoint, way)) {
                Some(Route::Up(link)) => Some((way, link.carrier())),
                _ => None,
            };
            [Way::Best, Way::Tcp].into_iter().filter_map(up).collect()
        };
        if carriers.is_empty() {
            return;
        }
        let Some(waiting) = state.unrouted.get_mut(peer) else { return };
        // Who is pinned to tcp may have to wait for a link of its own.
        waiting
            .retain(|inner| carriers.iter().fold(true, |_, (way, carrier)| inner.route(peer, *way, carrier)));
        if waiting.is_empty() {
            state.unrouted.remove(peer);
        }
    }

    /// Sees to it that there will be the links to a peer that our conduits with it need, if it is on us to dial.
    fn reach(&self, state: &mut State, peer: &str) {
        let Some(endpoint) = state.locations.get(peer).copied() else { return };
        // The smaller id dials.
        if self.id >= endpoint {
            return;
        }
        let ways: Vec<Way> = state.ways.get(peer).into_iter().flatten().copied().collect();
        for way in ways {
            if state.routes.contains_key(&(endpoint, way)) {
                continue;
            }
            let known = state.addresses.get(&endpoint).into_iter().flatten();
            // Who has no meeting place sees nobody else's.
            let shares = way == Way::Best && meets(self.addresses.get());
            let fits = |address: &&Address| shares || !matches!(address, Address::Shm(_));
            let addresses: Vec<Address> = known.filter(fits).cloned().collect();
            // The manager's link has tag 0.
            let tag = state.dialled.len() as u128 + 1;
            let settings = state.settings.get(peer).copied().unwrap_or_default();
            let route = match self.reactor().dial_with(&addresses, Purpose::Data, tag, settings) {
                Ok(()) => Route::Dialling,
                Err(why) => {
                    self.given_up.store(true, Ordering::Release);
                    Route::Given(why)
                }
            };
            state.dialled.insert(tag, (endpoint, way));
            state.routes.insert((endpoint, way), route);
        }
    }

    fn found(&self, peers: Vec<Peer>) {
        let mut state = self.lock();
        for Peer { instance, endpoint, addresses } in peers {
            state.locations.insert(instance.clone(), endpoint);
            state.residents.entry(endpoint).or_default().insert(instance.clone());
            state.addresses.entry(endpoint).or_insert(addresses);
            self.reach(&mut state, &instance);
            self.settle(&mut state, &instance);
        }
    }

    fn up(&self, endpoint: EndpointId, way: Way, link: &Arc<Link>) {
        let mut state = self.lock();
        state.routes.insert((endpoint, way), Route::Up(link.clone()));
        for resident in state.residents.get(&endpoint).cloned().unwrap_or_default() {
            self.settle(&mut state, &resident);
        }
    }

    fn down(&self, route: (EndpointId, Way), why: Lost) {
        let mut state = self.lock();
        // The manager watches the process at the other end and knows best why the link broke.
        state.routes.insert(route, Route::Broken(Instant::now(), why));
        drop(state);
        self.ring_all();
    }

    /// Gives up on links that nobody has explained.
    fn give_up(&self) {
        let mut state = self.lock();
        let mut given = false;
        for route in state.routes.values_mut() {
            if let Route::Broken(since, why) = route
                && since.elapsed() >= EXPLANATION
            {
                *route = Route::Given(why.clone());
                self.given_up.store(true, Ordering::Release);
                given = true;
            }
        }
        drop(state);
        if given {
            self.given_up.store(true, Ordering::Release);
            self.ring_all();
        }
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        drop(state);
        self.ring_all();
    }

    fn ring_all(&self) {
        let state = self.lock();
        let asked: Vec<Arc<Doorbell>> = state.asked.values().map(|asked| asked.bell.clone()).collect();
        let instances: Vec<Arc<Inner>> = state.instances.values().cloned().collect();
        drop(state);
        asked.iter().chain(instances.iter().map(|inner| &inner.bell)).for_each(|bell| bell.ring());
    }

    fn instance(&self, name: &str) -> Option<Arc<Inner>> {
        self.lock().instances.get(name).cloned()
    }

    fn answered(&self, name: &str, answer: Result<Welcome>) {
        let mut state = self.lock();
        // Whoever asked may have given up.
        let Some(asked) = state.asked.get_mut(name) else { return };
        asked.answer = Some(answer);
        let bell = asked.bell.clone();
        drop(state);
        bell.ring();
    }

    fn told(&self, message: ToProgram) {
        match message {
            ToProgram::Registered(welcome) => {
                let name = welcome.instance.clone();
                self.answered(&name, Ok(welcome));
            }
            ToProgram::Refused { instance, text } => {
                self.answered(&instance, Err(Error::new(Kind::Connection, text)));
            }
            ToProgram::Peers { peers } => self.found(peers),
            ToProgram::Probe { instance, probe, conduits } => {
                if let Some(inner) = self.instance(&instance) {
                    inner.carriers().iter().for_each(|carrier| carrier.look());
                    let (wait, counts) = inner.counts(&conduits);
                    self.tell(&ToManager::Counts { instance, probe, wait, counts });
                }
            }
            ToProgram::RaiseBuffer { instance, conduit, messages, bytes } => {
                if let Some(window) = self.instance(&instance).and_then(|_| self.exchange.window(conduit)) {
                    window.raise(messages, bytes);
                }
            }
            ToProgram::Finished { instance } => {
                let instances: Vec<Arc<Inner>> = {
                    let mut state = self.lock();
                    let own = state.instances.get(&instance).cloned();
                    let others = state.neighbours.get(instance.as_str()).into_iter().flatten().cloned();
                    let told = others.chain(own).collect();
                    state.finished.insert(instance.clone());
                    told
                };
                for inner in instances {
                    inner.peer_finished(&instance);
                    if inner.name == instance {
                        inner.bell.ring();
                    }
                }
            }
            ToProgram::RunFailed { culprit, text, deadlock } => {
                let kind = if deadlock { Kind::Deadlock } else { Kind::PeerLost };
                let text =
                    if deadlock { text } else { format!("the run has failed because of {culprit}: {text}") };
                self.fail(Error::new(kind, text));
            }
            ToProgram::Heartbeat {} => {}
        }
    }

    /// Signs of life, progress, and what has been broken for too long; when to come back.
    fn beat(&self) -> Option<Duration> {
        self.give_up();
        let (instances, manager, heartbeat, told) = {
            let mut state = self.lock();
            let instances: Vec<Arc<Inner>> = state.instances.values().cloned().collect();
            let heartbeat = Duration::try_from_secs_f64(state.heartbeat).unwrap_or_default();
            let before = state.beaten.replace(Instant::now());
            // Whoever was stopped himself, by Ctrl-Z for instance, could not hear.
            if before.is_some_and(|before| before.elapsed() > TICK.min(heartbeat) + heartbeat) {
                state.heard = state.heard.map(|_| Instant::now());
            }
            // Whoever must not wait is told when the manager has taken too long.
            state
                .asked
                .values()
                .filter(|asked| asked.since.elapsed() >= ANSWER)
                .for_each(|asked| asked.bell.ring());
            if instances.is_empty() && !state.asked.is_empty() {
                return Some(TICK);
            }
            (instances, state.heard, heartbeat, state.told)
        };
        if instances.is_empty() {
            return None;
        }
        instances.iter().for_each(|inner| inner.report_progress());
        let now = Instant::now();
        let due = instances.iter().filter_map(|inner| inner.nudge(now)).min();
        let tick = due.map_or(TICK, |due| TICK.min(due.saturating_duration_since(now)));
        if heartbeat.is_zero() {
            return Some(tick);
        }
        if told.is_none_or(|told| told.elapsed() >= heartbeat) {
            self.tell(&ToManager::Heartbeat {});
        }
        if manager.is_some_and(|heard| heard.elapsed() > 3 * heartbeat) {
            let silence = (3 * heartbeat).as_secs_f64();
            let text = format!("{SILENT_MANAGER} for {silence:.1} s");
            self.fail(Error::new(Kind::Connection, text));
        }
        Some(tick.min(heartbeat))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.get().filter(|_| !forked()) {
            reactor.stop();
        }
    }
}

/// Whether one of these is where processes of one host meet.
fn meets(addresses: Option<&Vec<Address>>) -> bool {
    addresses.into_iter().flatten().any(|address| matches!(address, Address::Shm(_)))
}

/// What the reactor calls. It does not keep the process alive.
struct Events(Weak<Process>);

impl Events {
    fn with<T: Default>(&self, act: impl FnOnce(&Process) -> T) -> T {
        self.0.upgrade().map(|process| act(&process)).unwrap_or_default()
    }

    fn is_manager(process: &Process, link: LinkId) -> bool {
        process.lock().manager.as_ref().is_some_and(|manager| manager.id() == link)
    }
}

impl Handler for Events {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        self.with(|process| match link.tag() {
            Some(MANAGER) => {
                let mut state = process.lock();
                state.manager = Some(link.clone());
                state.heard = Some(Instant::now());
                let outbox = std::mem::take(&mut state.outbox);
                drop(state);
                outbox.iter().for_each(|body| link.tell(body));
            }
            Some(tag) => {
                let Some((to, way)) = process.lock().dialled.get(&tag).copied() else { return };
                if let Some(detour) = process.apart(to, way, link) {
                    link.note_detour(detour);
                }
                let detour = link.detour().map(str::to_owned);
                let greeting = Greeting { endpoint: process.id, to, pinned: way == Way::Tcp, detour };
                link.tell(&control::encode(&greeting));
                process.up(to, way, link);
            }
            // A peer that has come to us says who it is.
            None => {}
        });
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        self.with(|process| {
            if Self::is_manager(process, link.id()) {
                process.lock().heard = Some(Instant::now());
                match control::decode(body) {
                    Ok(message) => process.told(message),
                    Err(error) => process.fail(Error::new(
                        Kind::Connection,
                        format!("the manager sent what this release of titin cannot read: {error}"),
                    )),
                }
                return;
            }
            match control::decode::<Greeting>(body) {
                Ok(greeting) if greeting.to == process.id => {
                    let way = if greeting.pinned { Way::Tcp } else { Way::Best };
                    if let Some(detour) = greeting.detour {
                        link.note_detour(detour);
                    }
                    process.up(greeting.endpoint, way, link);
                }
                _ => link.close(),
            }
        });
    }

    fn lost(&self, link: &Arc<Link>, why: Lost) {
        self.with(|process| {
            if Self::is_manager(process, link.id()) {
                let text = format!("the connection to the run's manager is lost: {why}; the run is over");
                return process.fail(Error::new(Kind::Connection, text));
            }
            if let Lost::NoMemory(text) = why {
                // The other end is not to blame, and the message will not come again.
                return process.fail(Error::new(Kind::NoMemory, text));
            }
            let route = process.lock().routes.iter().find_map(|(key, route)| match route {
                Route::Up(up) if up.id() == link.id() => Some(*key),
                _ => None,
            });
            route.inspect(|route| process.down(*route, why));
        });
    }

    fn unreachable(&self, tag: u128, why: Lost) {
        self.with(|process| match tag {
            MANAGER => {
                let text = format!(
                    "the run's manager cannot be reached: {why}; the run may be over, or TITIN_MANAGER is stale"
                );
                process.fail(Error::new(Kind::Connection, text));
            }
            tag => {
                let route = process.lock().dialled.get(&tag).copied();
                route.inspect(|route| process.down(*route, why));
            }
        });
    }

    fn tick(&self) -> Option<Duration> {
        self.with(Process::beat)
    }

    fn broken(&self, text: String) {
        self.with(|process| {
            let text = format!("titin's background thread has failed: {text}; please report this");
            process.fail(Error::new(Kind::Internal, text));
        });
    }
}

fn forked_error() -> Error {
    Error::new(
        Kind::Forked,
        "this process was forked from one that uses titin: the instance stays with the parent; open instances after \
         forking, or start the child as a new program (multiprocessing: the \"spawn\" method)",
    )
}

/// Refuses a second copy of the runtime in one process: each would think that it is the instance.
///
/// The mark is a named memory file, which any copy finds among the process's descriptors.
fn mark() -> Result<()> {
    if MARK.get().is_some() {
        return Ok(());
    }
    let name = format!("titin-runtime-{}", std::process::id());
    let wanted = format!("/memfd:{name}");
    let taken = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().any(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with(&wanted))
    });
    if taken {
        return Err(Error::new(
            Kind::Usage,
            "another copy of titin's library is in use in this process; link only one libtitin.so (see `titin config \
             --libs`), the one that the Python package brings, and no static copy beside it",
        ));
    }
    if let Ok(descriptor) = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC) {
        let _ = MARK.set(descriptor.into());
    }
    Ok(())
}

/// Addresses under which other hosts may reach this one. First comes the one that the way to the run's manager begins at; a
/// host's own name often leads no further than itself.
fn interfaces(manager: &[Address]) -> Vec<String> {
    let mut found: Vec<String> = manager.iter().filter_map(near_end).collect();
    found.extend(
        std::net::ToSocketAddrs::to_socket_addrs(&(host().as_str(), 0))
            .into_iter()
            .flatten()
            .map(|address| address.ip())
            .filter(IpAddr::is_ipv4)
            .map(|ip| ip.to_string()),
    );
    found.push(Ipv4Addr::LOCALHOST.to_string());
    found.dedup();
    found
}

/// The address of this host from which that one is reached. Nothing is sent: the system looks for the way when a socket
/// for datagrams is connected.
fn near_end(address: &Address) -> Option<String> {
    let Address::Tcp(host, port) = address else { return None };
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((host.as_str(), *port)).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

/// The host's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_get_the_address_that_the_way_to_the_manager_begins_at() {
        let manager = [Address::Tcp("127.0.0.1".into(), 9), Address::Other("ucx:1".into())];
        let found = interfaces(&manager);
        assert_eq!(found[0], "127.0.0.1", "{found:?}");
        assert_eq!(found.last().map(String::as_str), Some("127.0.0.1"), "{found:?}");
    }
}
