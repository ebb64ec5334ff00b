//! The part of the runtime of which a process has one: sockets, the control link, and the places of
//! the peers.
//!
//! There is one link between two processes: the process with the smaller endpoint id dials, once
//! both processes know of each other. The background thread takes in all events (`events`): the
//! thread changes the tables here, hands carriers to conduit ends, and rings the doorbells. The
//! process knows its instances by the trait `ProcessMember`, and the fields of the instances by
//! `FieldHandler` (`member`).

mod addresses;
mod clock;
mod events;
mod member;
mod members;
mod outbox;
mod peers;
mod rank_messages;
mod routes;
mod single_copy;
mod tree;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use titin_transport::{ConduitTable, Doorbell, Inproc, Link, LinkId, Medium, Reactor};
use titin_wire::connection::{Connection, SiteAccess};
use titin_wire::control::{self, ToManager};
use titin_wire::handshake::Purpose;
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings, Secret};

use self::addresses::interfaces;
pub(crate) use self::clock::ManagerClock;
use self::events::Events;
use self::members::JoinRequest;
use self::outbox::Outbox;
use self::rank_messages::RankMessageLinks;
use self::routes::{EXPLANATION, Routes, SHORTER};
use self::single_copy::mark;
use self::tree::Branch;
use crate::{Error, Kind, Result};

pub(crate) use member::{FieldHandler, Probed, ProcessMember, RemoteField};
pub(crate) use rank_messages::OutgoingRankMessage;
pub(crate) use routes::RouteMedium;
pub(crate) use single_copy::forked;
pub use single_copy::{fork_child, not_forked};

/// The tag of the link to the manager. No endpoint has the id 0, since endpoint ids are random.
const MANAGER: u128 = 0;

/// The runs of this process: several if the program runs one coupled model after the other.
static PROCESSES: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());

pub(crate) struct Process {
    id: EndpointId,
    secret: Secret,
    pub(crate) exchange: Arc<ConduitTable>,
    inproc: Arc<Inproc>,
    reactor: OnceLock<Arc<Reactor>>,
    addresses: OnceLock<Vec<Address>>,
    /// The locks of the meeting places that this process has made or joined, on hosts without the
    /// manager.
    claims: Mutex<Vec<(PathBuf, File)>>,
    failed: AtomicBool,
    /// Names of instances and ports, each once.
    names: Mutex<HashSet<Arc<str>>>,
    /// How many instances are open.
    crowd: AtomicUsize,
    /// How often a process was found out of reach for good.
    loss_count: AtomicU64,
    /// How long joining the run may take, and how long a dialled process may take to answer.
    pub(crate) patience: Duration,
    /// How long the line to the manager's site may be away; zero within the manager's site.
    line_patience: Duration,
    /// How long the manager is given to explain, in a run with one site.
    explanation: Duration,
    /// How long a line to another site may be away; `None` in a run with one site.
    site_patience: Option<Duration>,
    /// The clock of the manager, since the manager has let the first instance in.
    clock: OnceLock<ManagerClock>,
    /// Whether the log already has a record that shared memory has run out.
    pub(crate) said_short: AtomicBool,
    strays: Mutex<Vec<StrayConduit>>,
    state: Mutex<ProcessState>,
}

/// A conduit with a message that came before any instance of this process asked for the conduit.
struct StrayConduit {
    conduit: ConduitId,
    /// The link by which the message came, if the link still stands.
    link: Option<LinkId>,
    came: Instant,
}

#[derive(Default)]
struct ProcessState {
    manager: Outbox,
    heard: Option<Instant>,
    /// When the link to the manager, or to the rank above, was first there.
    reached: Option<Instant>,
    heartbeat: f64,
    told: Option<Instant>,
    /// When the background thread last looked.
    beaten: Option<Instant>,
    instances: HashMap<String, Arc<dyn ProcessMember>>,
    /// Instances that have asked to join.
    join_requests: HashMap<String, JoinRequest>,
    /// Instances that the manager has let in, and that have not joined yet.
    entering: HashSet<String>,
    /// Whether the process has, or had, fields: conduits between ranks are known late.
    has_fields: bool,
    routes: Routes<Arc<Link>>,
    /// Instances of this process with conduit ends without a carrier, by the peer.
    unrouted: HashMap<Arc<str>, Vec<Arc<dyn ProcessMember>>>,
    /// Instances of this process, by the peers at the other ends of their conduits.
    neighbours: HashMap<Arc<str>, Vec<Arc<dyn ProcessMember>>>,
    finished: HashSet<String>,
    /// The members of ensembles that have failed, and why. They are among the finished, too.
    failed_members: HashMap<String, String>,
    /// The attempts, but the first, that the manager begins when an instance asks for them.
    possible_attempts: HashSet<String>,
    /// The attempts that an instance has asked for.
    attempts: HashSet<String>,
    /// The fields of instances that have asked to join, or are open.
    fields: HashMap<String, Arc<dyn FieldHandler>>,
    rank_messages: RankMessageLinks,
    /// For a parallel program: the place in the tree of ranks.
    branch: Option<Branch>,
    failure: Option<Error>,
}

impl Process {
    /// The part of this process in a run. The process joins the run if need be.
    pub(crate) fn join(connection: &Connection) -> Result<Arc<Self>> {
        Self::join_as_rank(connection, 0)
    }

    /// As [`Process::join`], for a rank of a parallel program. The process of rank 0 alone has a
    /// link to the manager.
    pub(crate) fn join_as_rank(connection: &Connection, rank: u32) -> Result<Arc<Self>> {
        not_forked()?;
        let mut processes = PROCESSES.lock().expect("never poisoned");
        mark()?;
        processes.retain(|process| process.strong_count() > 0);
        let known = processes
            .iter()
            .filter_map(Weak::upgrade)
            .find(|process| process.secret == connection.secret);
        if let Some(process) = known.filter(|process| !process.failed.load(Ordering::Relaxed)) {
            if rank != 0 || process.is_below() {
                let text = "this process takes part in the run already: a process that is another than rank 0 of a parallel \
                            instance has no other instance";
                return Err(Error::new(Kind::Usage, text));
            }
            return Ok(process);
        }
        let process = Self::start(connection)?;
        if rank == 0 {
            process.reach_manager(connection)?;
        }
        processes.push(Arc::downgrade(&process));
        Ok(process)
    }

    fn start(connection: &Connection) -> Result<Arc<Self>> {
        let process = Arc::new(Process::new(connection, Arc::new(conduit_table()?)));
        let handler = Arc::new(Events(Arc::downgrade(&process)));
        let reactor = Reactor::with_conduits(
            connection.secret.clone(),
            handler,
            process.exchange.clone(),
            process.patience,
        );
        let reactor = reactor.map_err(no_socket)?;
        // From here on dropping the process stops the reactor, also if a later step fails.
        process.reactor.set(reactor.clone()).ok().expect("set once");
        reactor.introduce(process.id);
        let tcp = process.listen_by_tcp(connection)?;
        let relayed = process.listen_for_sites(connection, &tcp)?;
        let in_folders = process.listen_in_folders(connection)?;
        let meeting_place = process.meet(connection.spans_hosts).into_iter();
        let addresses = meeting_place.chain(tcp).chain(in_folders);
        let addresses = addresses.chain(relayed).collect();
        process.addresses.set(addresses).expect("set once");
        Ok(process)
    }

    fn new(connection: &Connection, exchange: Arc<ConduitTable>) -> Self {
        let site = connection.site.as_ref().map(|access| access.site.clone());
        Process {
            id: EndpointId::random(),
            secret: connection.secret.clone(),
            inproc: Arc::new(Inproc::new(exchange.clone())),
            exchange,
            reactor: OnceLock::new(),
            addresses: OnceLock::new(),
            claims: Mutex::default(),
            failed: AtomicBool::new(false),
            names: Mutex::default(),
            crowd: AtomicUsize::new(0),
            loss_count: AtomicU64::new(0),
            patience: connection.patience(),
            line_patience: line_patience(connection),
            explanation: explanation(),
            site_patience: connection.site.as_ref().map(SiteAccess::patience),
            clock: OnceLock::new(),
            said_short: AtomicBool::new(false),
            strays: Mutex::default(),
            state: Mutex::new(ProcessState {
                routes: Routes::from_site(site),
                ..ProcessState::default()
            }),
        }
    }

    /// Takes sessions from other sites, if the run has other sites, by the tcp listener. Returns the
    /// addresses for peers there.
    fn listen_for_sites(&self, connection: &Connection, tcp: &[Address]) -> Result<Vec<Address>> {
        let Some(access) = &connection.site else {
            return Ok(Vec::new());
        };
        let addresses = self.reactor().listen_for_sites(access, tcp);
        addresses.map_err(no_socket)
    }

    /// Listens by TCP, and returns the addresses for peers.
    fn listen_by_tcp(&self, connection: &Connection) -> Result<Vec<Address>> {
        let ip = match connection.spans_hosts {
            true => Ipv4Addr::UNSPECIFIED,
            false => Ipv4Addr::LOCALHOST,
        };
        let port = match self.reactor().listen(Medium::Tcp, &ip.to_string()) {
            Ok(Address::Tcp(_, port)) => port,
            Ok(_) => unreachable!("a tcp listener has a tcp address"),
            // A host without a network, not even within the host.
            Err(_) if !connection.folders.is_empty() => return Ok(Vec::new()),
            Err(error) => return Err(no_socket(error)),
        };
        let hosts = match connection.spans_hosts {
            true => interfaces(&outward(connection), connection.network.as_ref())?,
            false => vec![ip.to_string()],
        };
        let hosts = hosts.into_iter();
        Ok(hosts.map(|host| Address::Tcp(host, port)).collect())
    }

    fn reach_manager(&self, connection: &Connection) -> Result<()> {
        let settings = LinkSettings::default();
        let dialled = self.reactor().dial(
            &connection.addresses,
            Purpose::Control,
            MANAGER,
            None,
            settings,
            self.patience,
        );
        dialled.map_err(|why| Error::new(Kind::Connection, format!("the run's manager: {why}")))
    }

    /// The only copy of a name in the process: a thousand instances may have the same ports, and
    /// the same neighbours.
    pub(crate) fn name(&self, text: &str) -> Arc<str> {
        let mut names = self.names.lock().expect("never poisoned");
        if let Some(name) = names.get(text) {
            return name.clone();
        }
        let name: Arc<str> = text.into();
        names.insert(name.clone());
        name
    }

    /// Has the background thread look soon for due calls.
    pub(crate) fn look_soon(&self) {
        self.reactor().tick();
    }

    /// Sends a message to the manager, once the link to the manager is up.
    pub(crate) fn tell(&self, message: &ToManager) {
        let body = control::encode(message);
        let mut state = self.lock();
        if state.manager.is_open() {
            state.told = Some(Instant::now());
        }
        state.manager.tell(&body);
    }

    /// Whether the run has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The failure of the run, if the run has failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        Err(self.lock().failure.clone().expect("set before the flag"))
    }

    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        let is_first = state.failure.is_none();
        let failure = state.failure.get_or_insert(error).clone();
        self.failed.store(true, Ordering::Release);
        drop(state);
        if is_first {
            self.fail_below(&failure);
            self.leave();
        }
        self.ring_all();
    }

    fn ring_all(&self) {
        let state = self.lock();
        let asked: Vec<Arc<Doorbell>> = state
            .join_requests
            .values()
            .map(|asked| asked.bell.clone())
            .collect();
        let instances: Vec<Arc<dyn ProcessMember>> = state.instances.values().cloned().collect();
        drop(state);
        asked
            .iter()
            .chain(instances.iter().map(|member| member.bell()))
            .for_each(|bell| bell.ring());
    }

    fn reactor(&self) -> &Arc<Reactor> {
        self.reactor
            .get()
            .expect("set before the process is handed out")
    }

    fn lock(&self) -> MutexGuard<'_, ProcessState> {
        // After a panic with the lock held, `fail` tells all instances, and needs the tables once
        // more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table of conduits. The user may set how much shared memory the process uses.
fn conduit_table() -> Result<ConduitTable> {
    let Ok(text) = std::env::var("TITIN_SHARED_MEMORY") else {
        return Ok(ConduitTable::default());
    };
    let Some(ceiling) = titin_model::bytes_of(&text) else {
        let text = format!(
            "TITIN_SHARED_MEMORY is {text:?}: give the most bytes to share, such as \"256 MiB\", or leave it out"
        );
        return Err(Error::new(Kind::Usage, text));
    };
    Ok(ConduitTable::with_ceiling(ceiling))
}

fn no_socket(error: std::io::Error) -> Error {
    let todo = match Errno::from_io_error(&error) {
        Some(Errno::MFILE) => "; close some, or raise the limit with `ulimit -n`",
        _ => "",
    };
    let text = format!("titin cannot open its sockets: {error}{todo}");
    Error::new(Kind::Connection, text)
}

/// The addresses on the way out of this host: the manager's, and that of the relay of the site.
fn outward(connection: &Connection) -> Vec<Address> {
    let relay = connection.site.as_ref();
    let relay = relay.map(|access| Address::from(format!("tcp:{}", access.relay)));
    relay
        .into_iter()
        .chain(connection.addresses.clone())
        .collect()
}

/// How long the line to the manager's site may be away.
fn line_patience(connection: &Connection) -> Duration {
    let mut addresses = connection.addresses.iter();
    let is_elsewhere = addresses.all(|address| address.site().is_some());
    let access = connection.site.as_ref().filter(|_| is_elsewhere);
    access.map_or(Duration::ZERO, SiteAccess::patience)
}

fn explanation() -> Duration {
    let shorter = std::env::var(SHORTER)
        .ok()
        .and_then(|text| text.parse().ok());
    shorter.map_or(EXPLANATION, Duration::from_millis)
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.get().filter(|_| !forked()) {
            reactor.stop();
            self.exchange.clear();
            self.leave();
        }
    }
}
