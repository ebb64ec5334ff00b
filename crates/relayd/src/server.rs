//! The daemon: its listeners, its configuration, and its end.

mod processes;
mod refusals;
mod relays;
mod ways;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use titin_os::{host, sockets};
use titin_relay::{Config, ConfigError, RelayFolder};
use titin_wire::Secret;
use titin_wire::circuit::{CircuitRefusal, Destination};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::admission::AdmittedRuns;
use crate::daemon::{self, ACCEPT_PAUSE};
use crate::log_limit::{LogLimit, bounded};
use crate::peers::{self, Peer};
use crate::refused_runs::RefusedRuns;
use crate::strangers::{StrangerPlace, Strangers};
use crate::tls::Tls;

/// The most reasons that are kept so that the log does not repeat them.
const MOST_REFUSALS: usize = 1024;

/// The most host names that are looked up at a time for processes of this site.
const MOST_LOOKUPS: usize = 64;

/// Why a relay ends, or does not begin.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The configuration does not serve.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The relay cannot listen there.
    #[error(
        "the relay cannot listen at {address}: {error}{}",
        listen_advice(error)
    )]
    Listen {
        /// The address in the configuration.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The system, or TLS, refuses something.
    #[error("the relay cannot begin: {0}")]
    Begin(String),
}

/// What to do where the relay cannot listen, behind the error.
fn listen_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; perhaps a relay runs there already, which `titin relay status` tells. If it is something else, choose \
             another port in relay.toml"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; this host does not have the address: correct `local` or `listen` in relay.toml"
        }
        _ => "",
    }
}

/// The state of the daemon.
pub(crate) struct Relay {
    pub(crate) site: String,
    pub(crate) runs: Arc<AdmittedRuns>,
    pub(crate) refused_runs: RefusedRuns,
    pub(crate) tls: Tls,
    pub(crate) begun: Instant,
    access: Secret,
    /// The configuration as read last, with the addresses of the start.
    config: Mutex<Config>,
    /// The last refusal that the log tells, by run and site. Only hashes are kept: peers choose the
    /// texts, and may choose long ones.
    logged_refusals: Mutex<HashMap<(u64, u64), u64>>,
    /// The lines of the log about refusals, by run.
    refusal_lines: Mutex<LogLimit<u64>>,
    /// The lines of the log about runs of managers of this site.
    run_lines: Mutex<LogLimit<()>>,
    /// Bounds the host names that are looked up for processes of this site.
    lookups: Arc<Semaphore>,
    /// Sites that an earlier configuration trusted. Circuits to them are refused for now and not for
    /// good, so runs survive a correction of relay.toml.
    formerly_trusted: Mutex<HashSet<String>>,
    peers: Mutex<HashMap<String, Arc<Peer>>>,
    next: AtomicU64,
    /// Circuits that are open.
    circuits: tokio::sync::watch::Sender<usize>,
}

/// Runs the relay of a folder until it is told to end.
///
/// # Errors
/// If the relay cannot begin.
pub fn serve(folder: &RelayFolder) -> Result<(), RelayError> {
    // Each circuit takes four descriptors.
    let runtime = daemon::start().map_err(|error| RelayError::Begin(error.to_string()))?;
    let outcome = runtime.block_on(serve_until_told(folder));
    // Circuits that have not ended by now are cut.
    runtime.shutdown_background();
    outcome
}

/// Writes the address for processes of the site, which find the relay by it.
fn write_address(folder: &RelayFolder, mut address: SocketAddr) -> io::Result<()> {
    if address.ip().is_unspecified()
        && let Some(own) = host::addresses().first()
    {
        address.set_ip((*own).into());
    }
    // A program that reads meanwhile finds the old address or the new one.
    let new = folder.address_path().with_extension("new");
    fs::write(&new, format!("{address}\n"))?;
    fs::rename(new, folder.address_path())
}

async fn serve_until_told(folder: &RelayFolder) -> Result<(), RelayError> {
    let config = folder.config()?;
    let relay = Arc::new(Relay {
        site: config.site.clone(),
        runs: Arc::new(AdmittedRuns::new()),
        refused_runs: RefusedRuns::default(),
        tls: Tls::new(folder.identity()?).map_err(|error| RelayError::Begin(error.to_string()))?,
        begun: Instant::now(),
        access: folder.access()?,
        config: Mutex::new(config.clone()),
        logged_refusals: Mutex::default(),
        refusal_lines: Mutex::new(LogLimit::of_refusals()),
        run_lines: Mutex::new(LogLimit::of_runs()),
        lookups: Arc::new(Semaphore::new(MOST_LOOKUPS)),
        formerly_trusted: Mutex::default(),
        peers: Mutex::default(),
        next: AtomicU64::new(1),
        circuits: tokio::sync::watch::channel(0).0,
    });
    let mut signals = Signals::listen()?;
    let local = listen(&config.local).await?;
    let open = match &config.listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let address_of = |listener: &TcpListener| {
        let address = listener.local_addr();
        address.map_err(|error| RelayError::Begin(error.to_string()))
    };
    let local_address = address_of(&local)?;
    let open_address = open.as_ref().map(address_of).transpose()?;
    info!(
        site = relay.site,
        fingerprint = relay.tls.fingerprint().to_string(),
        local = local_address.to_string(),
        listen = open_address.map(|address| address.to_string()),
        "relay"
    );
    if let Err(error) = write_address(folder, local_address) {
        warn!(
            "programs of the site do not find the relay for paths: cannot write its address: {error}"
        );
    }
    relay.configure(&config);
    let mut accepting = vec![tokio::spawn(accept_processes(relay.clone(), local))];
    accepting.extend(open.map(|open| tokio::spawn(accept_relays(relay.clone(), open))));
    tokio::spawn(peers::watch(relay.clone()));
    relay.obey(&mut signals, folder, &config).await;
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::select! {
        () = relay.drain(config.drain) => {}
        () = signals.end() => info!("a second signal ends the relay at once"),
    }
    Ok(())
}

async fn listen(address: &str) -> Result<TcpListener, RelayError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| RelayError::Listen {
            address: address.to_owned(),
            error,
        })
}

impl Relay {
    /// A number that no connection of the relay has had.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Bounds the host names that are looked up for processes of this site.
    pub(crate) fn lookups(&self) -> &Arc<Semaphore> {
        &self.lookups
    }

    /// The peers, by name.
    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<_> = self.lock().values().cloned().collect();
        peers.sort_by(|one, other| one.site().cmp(other.site()));
        peers
    }

    /// Ends all that goes on with a peer, and the runs that the peer has brought.
    pub(crate) fn revoke(&self, peer: &Peer, why: &'static str) {
        peer.end_connections(why);
        self.forget_runs_of(peer);
    }

    /// Notes the outcome of a request. Returns the refusal if it is to be logged: sessions and managers ask
    /// again and again, and one line is enough as long as the reason stays.
    /// `peer` is the relay that asks, if one does.
    fn refusal_to_log<'a, T>(
        &self,
        run: u64,
        site: &str,
        outcome: &'a Result<T, CircuitRefusal>,
        peer: Option<&Peer>,
    ) -> Option<&'a CircuitRefusal> {
        let mut refusals = self.logged_refusals.lock().expect("never poisoned");
        let key = (run, hash(site));
        let Err(refusal) = outcome else {
            refusals.remove(&key);
            return None;
        };
        if refusals.len() >= MOST_REFUSALS {
            refusals.clear();
        }
        let why = hash(&refusal.why);
        if refusals.get(&key) == Some(&why) {
            return None;
        }
        // A relay could choose another run each time.
        if peer.is_some_and(|peer| !peer.may_log()) {
            return None;
        }
        // A process of the run could choose another site, host or port each time.
        let mut lines = self.refusal_lines.lock().expect("never poisoned");
        lines.note(run, Instant::now())?;
        refusals.insert(key, why);
        Some(refusal)
    }

    /// Logs why a request for a circuit is refused. `from` is a site, or the address of a process; `peer` is the
    /// relay that asks, if one does.
    fn log_refused_circuit<T>(
        &self,
        (from, peer): (&str, Option<&Peer>),
        run: u64,
        destination: &Destination,
        outcome: &Result<T, CircuitRefusal>,
    ) {
        let Some(CircuitRefusal { why, may_pass }) =
            self.refusal_to_log(run, &destination.site, outcome, peer)
        else {
            return;
        };
        let (to, why) = (bounded(&destination.to_string()), bounded(why));
        let run = hex(run);
        match may_pass {
            true => warn!(from, to, run, why, "no circuit: refused"),
            // Most often a process has left the run, as all do at its end.
            false => info!(from, to, run, why, "no circuit: refused"),
        }
    }

    /// Whether an earlier configuration trusted the site.
    fn was_trusted(&self, site: &str) -> bool {
        let sites = self.formerly_trusted.lock().expect("never poisoned");
        sites.contains(site)
    }

    /// Whether a peer is trusted as it was.
    pub(crate) fn has_peer(&self, peer: &Arc<Peer>) -> bool {
        let peers = self.lock();
        peers
            .get(peer.site())
            .is_some_and(|known| Arc::ptr_eq(known, peer))
    }

    /// Forgets the runs that a peer has brought, and what it has told of others.
    pub(crate) fn forget_runs_of(&self, peer: &Peer) {
        peer.forget_runs(&self.runs);
        self.forget_refusals_of(peer);
    }

    /// Forgets what a peer has told of runs that are not taken over, and why this relay takes none of the peer's over.
    pub(crate) fn forget_refusals_of(&self, peer: &Peer) {
        let own = self.refused_runs.set_own(peer.site(), Vec::new());
        let told = self.refused_runs.set_told(peer.site(), Vec::new());
        if own || told {
            self.runs.note_change();
        }
    }

    /// The configuration that the relay goes by.
    pub(crate) fn config(&self) -> Config {
        self.config.lock().expect("never poisoned").clone()
    }

    /// The congestion control of new connections to other relays, if the configuration names one.
    pub(crate) fn congestion(&self) -> Option<String> {
        let config = self.config.lock().expect("never poisoned");
        config.congestion.clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Peer>>> {
        self.peers.lock().expect("never poisoned")
    }

    /// Takes a configuration over. A peer that has changed loses its connections.
    fn configure(self: &Arc<Self>, config: &Config) {
        self.tls.keys.set(config);
        if let Some(name) = &config.congestion
            && let Err(why) = peers::check_congestion(name)
        {
            warn!(
                congestion = name,
                why,
                "the system does not let this user choose the congestion control, so its usual one is used: \
                 /proc/sys/net/ipv4/tcp_allowed_congestion_control lists those allowed"
            );
        }
        self.config
            .lock()
            .expect("never poisoned")
            .clone_from(config);
        let behind = |site: &str| {
            let sites = config.peers.iter();
            let sites = sites.filter(|peer| peer.via.as_deref() == Some(site));
            sites.map(|peer| peer.site.clone()).collect::<Vec<_>>()
        };
        let wanted: HashMap<&str, _> = config
            .peers
            .iter()
            .filter(|peer| peer.fingerprint.is_some())
            .map(|peer| (peer.site.as_str(), peer))
            .collect();
        let mut peers = self.lock();
        peers.retain(|site, peer| {
            let stays = wanted
                .get(site.as_str())
                .is_some_and(|wanted| **wanted == peer.config && behind(site) == peer.behind);
            if !stays {
                let why = match wanted.contains_key(site.as_str()) {
                    true => "its entry in relay.toml, or that of a site behind it, has changed",
                    false => "the site is no longer trusted",
                };
                self.revoke(peer, why);
                info!(site, why, "its connections end");
                let mut sites = self.formerly_trusted.lock().expect("never poisoned");
                sites.insert(site.clone());
                sites.extend(peer.behind.iter().cloned());
            }
            stays
        });
        for (site, config) in wanted {
            if peers.contains_key(site) {
                continue;
            }
            let peer = Arc::new(Peer::new(config.clone(), behind(site)));
            peers.insert(site.to_owned(), peer.clone());
            if peer.config.address.is_some() {
                let relay = self.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = peers::keep_connected(relay, peer.clone()) => {}
                        () = peer.revoked() => {}
                    }
                });
            }
        }
    }

    /// Begins anew with a peer whose connections have ended.
    pub(crate) fn begin_again(self: &Arc<Self>, peer: &Peer) {
        self.lock().remove(peer.site());
        self.configure(&self.config());
    }

    /// Reads the configuration again at SIGHUP. Returns at SIGTERM or SIGINT.
    /// `begun_with` is the configuration at the start.
    async fn obey(
        self: &Arc<Self>,
        signals: &mut Signals,
        folder: &RelayFolder,
        begun_with: &Config,
    ) {
        let addresses = |config: &Config| (config.local.clone(), config.listen.clone());
        loop {
            tokio::select! {
                _ = signals.again.recv() => match folder.config() {
                    Ok(config) if config.site != self.site => {
                        warn!(site = config.site, "not read again: another site wants another relay");
                    }
                    Ok(config) => {
                        info!("the configuration is read again");
                        if addresses(&config) != addresses(begun_with) {
                            warn!("`local` and `listen` stay as they were: start the relay again to change them");
                        }
                        self.configure(&Config {
                            local: begun_with.local.clone(),
                            listen: begun_with.listen.clone(),
                            ..config
                        });
                    }
                    Err(error) => warn!(why = error.to_string(), "the configuration stays as it was"),
                },
                _ = signals.end.recv() => return,
                _ = signals.interrupt.recv() => return,
            }
        }
    }

    /// Waits until all circuits have ended, at most for a time in seconds.
    async fn drain(&self, time: f64) {
        let mut circuits = self.circuits.subscribe();
        let open = *circuits.borrow();
        info!(circuits = open, "the relay ends");
        let time = Duration::try_from_secs_f64(time).unwrap_or_default();
        let _ = timeout(time, circuits.wait_for(|open| *open == 0)).await;
    }
}

/// The signals that the relay obeys.
struct Signals {
    again: Signal,
    end: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, RelayError> {
        let of = |kind| signal(kind).map_err(|error| RelayError::Begin(error.to_string()));
        Ok(Signals {
            again: of(SignalKind::hangup())?,
            end: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
        })
    }

    /// Returns at SIGTERM or SIGINT.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.end.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Counts an open circuit.
struct CircuitCount<'a>(&'a Relay);

impl<'a> CircuitCount<'a> {
    fn of(relay: &'a Relay) -> Self {
        relay.circuits.send_modify(|open| *open += 1);
        CircuitCount(relay)
    }
}

impl Drop for CircuitCount<'_> {
    fn drop(&mut self) {
        self.0.circuits.send_modify(|open| *open -= 1);
    }
}

async fn accept_processes(relay: Arc<Relay>, listener: TcpListener) {
    accept(listener, |stream, place| {
        sockets::prepare_tcp(&stream);
        let relay = relay.clone();
        tokio::spawn(async move { relay.serve_process(stream, place).await })
    })
    .await;
}

async fn accept_relays(relay: Arc<Relay>, listener: TcpListener) {
    accept(listener, |stream, place| {
        let relay = relay.clone();
        tokio::spawn(async move { relay.take_peer(stream, place).await })
    })
    .await;
}

/// Accepts connections, for ever.
async fn accept(
    listener: TcpListener,
    serve: impl Fn(TcpStream, StrangerPlace) -> tokio::task::JoinHandle<()>,
) {
    let strangers = Arc::new(Strangers::default());
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let place = strangers.enter(from);
                let number = place.number();
                let task = serve(stream, place);
                strangers.note_task(number, task.abort_handle());
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The number of a run, for people.
pub(crate) fn hex(run: u64) -> String {
    format!("{run:016x}")
}
