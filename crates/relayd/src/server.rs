//! The daemon: its listeners, and what connections ask for.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use titin_os::{descriptors, sockets};
use titin_relay::{Config, ConfigError, RelayFolder};
use titin_wire::Secret;
use titin_wire::circuit::{
    AwaySite, CircuitRefusal, CircuitRequest, Destination, RELAY_KEY, RelayAnswer, RelayRequest,
    RunPermit,
};
use titin_wire::handshake::{HELLO, Handshake, Purpose, Refusal, run_of};
use titin_wire::line::{LinePurpose, PeerAnswer, PeerGreeting, RunRefusal};
use titin_wire::versions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use crate::admission::{AdmittedRuns, ManagerAdmission};
use crate::circuits::{self, CircuitEnd, FarSide, PeerLine, PeerStream, REDIAL_TIME};
use crate::log_limit::{LogLimit, bounded};
use crate::messages;
use crate::peers::{self, Peer, prepare_line};
use crate::refused_runs::RefusedRuns;
use crate::status;
use crate::strangers::{StrangerPlace, Strangers};
use crate::tls::{HANDSHAKE_TIME, Tls, check_protocol};

/// How long no connections are accepted when the system has no descriptors for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most reasons that are kept so that the log does not repeat them.
const MOST_REFUSALS: usize = 1024;

/// In place of a site, for the admission of a run.
const NO_SITE: &str = "";

/// How long a run stays known after the end of its manager. Processes at other sites that dial again
/// meanwhile hear that the run is over, and end.
const OVER_TIME: Duration = Duration::from_secs(60);

/// After this time without an answer of its host a manager is gone. A manager that lost its connection has dialled
/// again long before.
const MANAGER_GONE_AFTER: Duration = Duration::from_secs(600);

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
    congestion: Mutex<Option<String>>,
    /// The last refusal that the log tells, by run and site. Only hashes are kept: peers choose the
    /// texts, and may choose long ones.
    logged_refusals: Mutex<HashMap<(u64, u64), u64>>,
    /// The lines of the log about refusals, by run.
    refusal_lines: Mutex<LogLimit<u64>>,
    /// The lines of the log about runs that relays bring, by site.
    run_lines: Mutex<LogLimit<String>>,
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| RelayError::Begin(error.to_string()))?;
    // Lines for people on a terminal, and for `journalctl` and `grep` elsewhere.
    let _ = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .try_init();
    // Each circuit takes four descriptors.
    descriptors::allow_many();
    let outcome = runtime.block_on(serve_until_told(folder));
    // Circuits that have not ended by now are cut.
    runtime.shutdown_background();
    outcome
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
        congestion: Mutex::default(),
        logged_refusals: Mutex::default(),
        refusal_lines: Mutex::new(LogLimit::of_refusals()),
        run_lines: Mutex::new(LogLimit::of_runs()),
        formerly_trusted: Mutex::default(),
        peers: Mutex::default(),
        next: AtomicU64::new(1),
        circuits: tokio::sync::watch::channel(0).0,
    });
    let signals = Signals::listen()?;
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
    relay.configure(&config);
    let mut accepting = vec![tokio::spawn(accept_processes(relay.clone(), local))];
    accepting.extend(open.map(|open| tokio::spawn(accept_relays(relay.clone(), open))));
    tokio::spawn(peers::watch(relay.clone()));
    relay.obey(signals, folder, &config).await;
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    relay.drain(config.drain).await;
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

    /// The peers, by name.
    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<_> = self.lock().values().cloned().collect();
        peers.sort_by(|one, other| one.site().cmp(other.site()));
        peers
    }

    /// The sites whose runs may go on to other sites by this relay.
    pub(crate) fn transit(&self) -> Vec<String> {
        let peers = self.lock();
        let transit = peers.values().filter(|peer| peer.config.transit);
        transit.map(|peer| peer.site().to_owned()).collect()
    }

    /// Ends all that goes on with a peer, and the runs that the peer has brought.
    pub(crate) fn revoke(&self, peer: &Peer, why: &'static str) {
        peer.end_connections(why);
        self.forget_runs_of(peer);
    }

    /// Notes the outcome of a request. Returns the refusal if it is to be logged: sessions and managers ask
    /// again and again, and one line is enough as long as the reason stays.
    fn refusal_to_log<'a, T>(
        &self,
        run: u64,
        site: &str,
        outcome: &'a Result<T, CircuitRefusal>,
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
        // A process of the run could choose another site, host or port each time.
        let mut lines = self.refusal_lines.lock().expect("never poisoned");
        lines.note(run, Instant::now())?;
        refusals.insert(key, why);
        Some(refusal)
    }

    /// Logs why a request for a circuit is refused. `from` is a site, or the address of a process.
    fn log_refused_circuit<T>(
        &self,
        from: &str,
        run: u64,
        destination: &Destination,
        outcome: &Result<T, CircuitRefusal>,
    ) {
        let Some(CircuitRefusal { why, may_pass }) =
            self.refusal_to_log(run, &destination.site, outcome)
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

    /// The relay on the way to a site.
    fn peer_towards(&self, site: &str) -> Option<Arc<Peer>> {
        let peers = self.lock();
        let direct = peers.get(site).cloned();
        direct.or_else(|| {
            let leads = |peer: &&Arc<Peer>| peer.behind.iter().any(|behind| behind == site);
            peers.values().find(leads).cloned()
        })
    }

    /// Why runs of a peer without `transit` are not passed on to sites to which this relay knows the way. Logs those
    /// that are not for this site: the others may have another way.
    pub(crate) fn not_passed_on(&self, peer: &Peer, runs: &[RunPermit]) -> Vec<RunRefusal> {
        let goes_on = |run: &&RunPermit| !run.is_over;
        let mut refusals = Vec::new();
        if peer.config.transit {
            return refusals;
        }
        for run in runs.iter().filter(goes_on) {
            let leads_on = |site: &&String| {
                self.peer_towards(site)
                    .is_some_and(|next| next.site() != peer.site())
            };
            for site in run.sites.iter().filter(leads_on) {
                let from = peer.site();
                let why = format!("the site {from} is trusted without `transit`");
                refusals.push(RunRefusal {
                    run: run.run,
                    to: Some(site.clone()),
                    hops: 0,
                    why: format!(
                        "the relay of the site {} does not pass the run on to {site}: {why}",
                        self.site
                    ),
                });
                if run.sites.contains(&self.site) {
                    continue;
                }
                let outcome: Result<(), _> = Err(CircuitRefusal::lasting(why));
                if let Some(CircuitRefusal { why, .. }) =
                    self.refusal_to_log(run.run, site, &outcome)
                {
                    warn!(
                        from,
                        to = site,
                        run = hex(run.run),
                        why,
                        "a run is not passed on"
                    );
                }
            }
        }
        refusals
    }

    /// What the manager hears of a run that a peer brings beyond its limit.
    pub(crate) fn too_many_runs(&self, peer: &Peer, run: u64) -> RunRefusal {
        RunRefusal {
            run,
            to: None,
            hops: 0,
            why: format!(
                "the relay of the site {} does not take the run over: it takes {} runs from the relay of {} (`runs` in its \
                 relay.toml)",
                self.site,
                peer.config.most_runs(),
                peer.site()
            ),
        }
    }

    /// Whether runs go by a peer to a site; `None` stands for the site of the peer.
    pub(crate) fn is_on_way(&self, peer: &Peer, site: Option<&str>) -> bool {
        let next = site.and_then(|site| self.peer_towards(site));
        site.is_none() || next.is_some_and(|next| next.site() == peer.site())
    }

    /// Forgets the runs that a peer has brought, and what it has told of others.
    pub(crate) fn forget_runs_of(&self, peer: &Peer) {
        let own = self.refused_runs.set_own(peer.site(), Vec::new());
        let told = self.refused_runs.set_told(peer.site(), Vec::new());
        self.runs.set_of_peer(peer.site(), Vec::new(), 0);
        if own || told {
            self.runs.note_change();
        }
    }

    /// Whether the log has room for a line about a run of a peer.
    pub(crate) fn may_log_run_of(&self, peer: &Peer) -> bool {
        let mut lines = self.run_lines.lock().expect("never poisoned");
        lines.note(peer.site().to_owned(), Instant::now()).is_some()
    }

    /// The sites to which this relay knows the way, in words.
    fn known_sites(&self) -> String {
        let peers = self.peers();
        let mut sites: Vec<&str> = peers.iter().map(|peer| peer.site()).collect();
        sites.extend(
            peers
                .iter()
                .flat_map(|peer| &peer.behind)
                .map(String::as_str),
        );
        sites.sort_unstable();
        match sites.is_empty() {
            true => "no other site".to_owned(),
            false => sites.join(", "),
        }
    }

    /// The relay on the way to a site, or the refusal of what would go there.
    pub(crate) fn way_to(&self, site: &str) -> Result<Arc<Peer>, CircuitRefusal> {
        self.peer_towards(site).ok_or_else(|| CircuitRefusal {
            why: format!(
                "the relay of the site {} knows no way to the site {site}: is this the name of the site there? If it is, \
                 `titin relay trust {site}` adds the way",
                self.site
            ),
            may_pass: self.was_trusted(site),
        })
    }

    /// The congestion control of new connections to other relays, if the configuration names one.
    pub(crate) fn congestion(&self) -> Option<String> {
        self.congestion.lock().expect("never poisoned").clone()
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
        self.congestion
            .lock()
            .expect("never poisoned")
            .clone_from(&config.congestion);
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

    /// Reads the configuration again at SIGHUP. Returns at SIGTERM or SIGINT.
    /// `begun_with` is the configuration at the start.
    async fn obey(
        self: &Arc<Self>,
        mut signals: Signals,
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
                        self.configure(&config);
                    }
                    Err(error) => warn!(why = error.to_string(), "the configuration stays as it was"),
                },
                _ = signals.end.recv() => break,
                _ = signals.interrupt.recv() => break,
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

    /// Serves a connection of a process of the site.
    async fn serve_process(self: &Arc<Self>, mut stream: TcpStream, place: StrangerPlace) {
        let from = stream.peer_addr().map(|from| from.to_string());
        let from = from.unwrap_or_default();
        let proving = timeout(HANDSHAKE_TIME, self.prove(&mut stream));
        let (run, mut buffer) = match proving.await {
            Ok(Ok(proved)) => proved,
            Ok(Err(why)) => return place.log_refusal(&why),
            Err(_) => return place.log_refusal("no proof in time"),
        };
        let request = messages::read(&mut stream, &mut buffer);
        let request = match timeout(HANDSHAKE_TIME, request).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => return place.log_refusal(&error.to_string()),
            Err(_) => return place.log_refusal("no request in time"),
        };
        let is_of_run = matches!(request, RelayRequest::Circuit(_));
        if is_of_run == (run == RELAY_KEY) {
            let why = "the request is for another key than the one that was shown";
            place.log_refusal(why);
            // The process may be gone.
            let _ = refuse_process(&mut stream, CircuitRefusal::lasting(why)).await;
            return;
        }
        drop(place);
        let outcome = match request {
            RelayRequest::Circuit(CircuitRequest {
                destination,
                from: site,
            }) => {
                let far = match self.check_site(site.as_deref()) {
                    Ok(()) => circuits::open(self, run, &destination, None).await,
                    Err(refusal) => Err(refusal),
                };
                self.log_refused_circuit(&from, run, &destination, &far);
                self.serve_circuit(stream, &buffer, far).await
            }
            RelayRequest::Admit(permit) => self.serve_manager(stream, &permit).await,
            RelayRequest::Status => {
                let answer = RelayAnswer::Status(status::of(self));
                messages::write(&mut stream, &answer).await
            }
        };
        // A connection that fails tells no more than its end.
        drop(outcome);
    }

    /// Admits the run of a manager of this site as long as the connection stands.
    async fn serve_manager(&self, mut stream: TcpStream, permit: &RunPermit) -> io::Result<()> {
        let run = hex(permit.run);
        let admitted = self.admit(permit);
        // A manager whose run was admitted before asks again and again.
        if let Some(refusal) = self.refusal_to_log(permit.run, NO_SITE, &admitted) {
            warn!(run, name = permit.name, why = refusal.why, "not admitted");
        }
        match admitted {
            Ok(admission) => {
                sockets::set_keepalive(&stream, MANAGER_GONE_AFTER);
                info!(run, name = permit.name, "admitted");
                let outcome = self.stay(&mut stream, permit).await;
                if outcome.is_err() {
                    // A network may have reset the connection. The manager then comes again.
                    sleep(REDIAL_TIME).await;
                }
                admission.note_end();
                info!(run, "over");
                tokio::spawn(async move {
                    sleep(OVER_TIME).await;
                    drop(admission);
                });
                outcome
            }
            Err(refusal) => refuse_process(&mut stream, refusal).await,
        }
    }

    /// Admits the run of a manager of this site. A run for a site to which no way is known would wait
    /// in vain, so it is refused, but not if the site was trusted and may be again.
    fn admit(&self, permit: &RunPermit) -> Result<ManagerAdmission, CircuitRefusal> {
        for site in self.other_sites(&permit.sites) {
            if let Err(refusal) = self.way_to(site)
                && !refusal.may_pass
            {
                let why = format!("{}. It knows {}", refusal.why, self.known_sites());
                return Err(CircuitRefusal::lasting(why));
            }
        }
        let mut permit = permit.clone();
        // The relays of the other sites are to let circuits to this site through.
        if !permit.sites.contains(&self.site) {
            permit.sites.push(self.site.clone());
        }
        let admitted = self.runs.admit(permit, self.next_number());
        admitted.map_err(CircuitRefusal::passing)
    }

    fn other_sites<'a>(&self, sites: &'a [String]) -> impl Iterator<Item = &'a String> {
        sites.iter().filter(|site| **site != self.site)
    }

    /// The sites without a connection to the relay on the way to them.
    fn away(&self, sites: &[String]) -> Vec<AwaySite> {
        let of_site = |site: &String| {
            let away = |relay: &str, why| AwaySite {
                site: site.clone(),
                relay: relay.to_owned(),
                why,
            };
            match self.way_to(site) {
                Ok(peer) if peer.is_connected() => None,
                Ok(peer) => Some(away(peer.site(), peer.why_down(&self.tls.keys))),
                Err(refusal) => Some(away(site, Some(refusal.why))),
            }
        };
        self.other_sites(sites).filter_map(of_site).collect()
    }

    /// Answers that a run is admitted, and waits for the end of the manager's connection. Meanwhile tells why
    /// relays do not take the run over.
    async fn stay(&self, stream: &mut TcpStream, permit: &RunPermit) -> io::Result<()> {
        let site = self.site.clone();
        let admitted = RelayAnswer::Admitted {
            site,
            away: self.away(&permit.sites),
            congestion: peers::usable_congestion(self.congestion()),
        };
        messages::write(stream, &admitted).await?;
        let mut changes = self.runs.changes();
        let mut told = Vec::new();
        let mut byte = [0; 1];
        loop {
            let refusals = self.refused_runs.of_run(permit.run);
            if told != refusals {
                messages::write(stream, &RelayAnswer::RefusedRun(refusals.clone())).await?;
                told = refusals;
            }
            tokio::select! {
                count = stream.read(&mut byte) => if count? == 0 {
                    return Ok(());
                },
                changed = changes.changed() => if changed.is_err() {
                    return Ok(());
                },
            }
        }
    }

    /// The proofs of a process and of this relay. Returns the number of the run, and the bytes
    /// behind the proofs.
    async fn prove(&self, stream: &mut TcpStream) -> Result<(u64, Vec<u8>), String> {
        let text = |error: io::Error| error.to_string();
        let mut hello = [0; HELLO];
        stream.read_exact(&mut hello).await.map_err(text)?;
        let run = run_of(&hello);
        // A run that is not admitted has a permit that nobody knows.
        let permit = match run {
            RELAY_KEY => self.access.clone(),
            run => self.runs.permit(run).unwrap_or_else(Secret::random),
        };
        let mut shake = Handshake::listen(permit);
        let mut bytes = hello.to_vec();
        loop {
            let progress = shake.advance(&bytes).map_err(|why| why.to_string())?;
            stream.write_all(&progress.reply).await.map_err(text)?;
            match (shake.refusal(), run) {
                (Some(Refusal::Secret), RELAY_KEY) => {
                    return Err("the key is not that of this relay".to_owned());
                }
                (Some(Refusal::Secret), run) => {
                    let run = hex(run);
                    return Err(format!(
                        "the run {run} is not admitted, or the permit is another"
                    ));
                }
                (Some(other), _) => return Err(other.to_string()),
                (None, _) => {}
            }
            if progress.one_time_key.is_some() {
                return Err("the connection is meant for a manager".to_owned());
            }
            match progress.agreed {
                Some(agreement) if agreement.purpose == Purpose::Relay => {
                    return Ok((run, bytes.split_off(progress.used)));
                }
                Some(_) => return Err("the connection is meant for a process of a run".to_owned()),
                None => {}
            }
            bytes.drain(..progress.used);
            if stream.read_buf(&mut bytes).await.map_err(text)? == 0 {
                return Err(format!(
                    "the connection has ended before the proof (run {})",
                    hex(run)
                ));
            }
        }
    }

    /// Answers, and passes the bytes of a circuit.
    async fn serve_circuit(
        &self,
        mut stream: TcpStream,
        first_bytes: &[u8],
        far: Result<FarSide, CircuitRefusal>,
    ) -> io::Result<()> {
        match far {
            Ok(far) => {
                let end = CircuitEnd::dialler(&stream)?;
                messages::write(&mut stream, &RelayAnswer::Opened).await?;
                let _open = CircuitCount::of(self);
                circuits::pass(stream, first_bytes, end, far).await
            }
            Err(refusal) => refuse_process(&mut stream, refusal).await,
        }
    }

    /// Takes a connection of another relay, after the proofs of both.
    async fn take_peer(self: &Arc<Self>, stream: TcpStream, place: StrangerPlace) {
        prepare_line(&stream, self.congestion().as_deref());
        let accepting = TlsAcceptor::from(self.tls.server.clone()).accept(stream);
        let stream = match timeout(HANDSHAKE_TIME, accepting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return place.log_refusal(&self.tls.why(&error)),
            Err(_) => return place.log_refusal("no proof in time"),
        };
        if let Err(why) = check_protocol(stream.get_ref().1.alpn_protocol()) {
            return place.log_refusal(&why);
        }
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(|chain| chain.first());
        let site = certificate
            .ok_or_else(|| "there is no certificate".to_owned())
            .and_then(|certificate| self.tls.keys.site_of(certificate));
        let peer = site.map(|site| self.lock().get(&site).cloned());
        match peer {
            Ok(Some(peer)) => self.serve_peer(&peer, stream.into(), place).await,
            Ok(None) => place.log_refusal("the site is trusted no more"),
            Err(why) => place.log_refusal(&why),
        }
    }

    /// Serves a connection of another relay: its greeting says what it is for.
    /// `place` bounds the connections without a greeting.
    pub(crate) async fn serve_peer(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut stream: PeerStream,
        place: impl Send,
    ) {
        let mut buffer = Vec::new();
        let greeting = messages::read_short::<PeerGreeting>(&mut stream, &mut buffer);
        let greeting = match timeout(HANDSHAKE_TIME, greeting).await {
            Ok(Ok(greeting)) => greeting,
            Ok(Err(error)) => {
                return warn!(site = peer.site(), why = self.tls.why(&error), "refused");
            }
            Err(_) => return warn!(site = peer.site(), why = "no greeting in time", "refused"),
        };
        drop(place);
        let (lowest, highest) = greeting.versions;
        let own = versions::relay();
        if lowest > own.1 || highest < own.0 {
            let why = format!(
                "the relay of the site {} speaks versions {lowest} to {highest}, that of {} {} to {}: use releases of titin \
                 that share a version",
                peer.site(),
                self.site,
                own.0,
                own.1
            );
            warn!(site = peer.site(), why, "refused");
            return refuse_peer(&mut stream, CircuitRefusal::lasting(why)).await;
        }
        match greeting.purpose {
            LinePurpose::Control => {
                let answered = messages::write(&mut stream, &PeerAnswer::Welcome).await;
                if answered.is_ok() {
                    peers::control(self, peer, stream, buffer).await;
                }
            }
            LinePurpose::Circuit { run, destination } => {
                let serving = self.serve_circuit_of_peer(peer, stream, &buffer, run, &destination);
                tokio::select! {
                    () = serving => {}
                    () = peer.revoked() => {}
                }
            }
            LinePurpose::Callback { call } => {
                if !peer.take_callback(call, stream, buffer) {
                    warn!(site = peer.site(), call, "refused: no such call");
                }
            }
        }
    }

    /// Fails if a process is at another site than this relay.
    fn check_site(&self, site: Option<&str>) -> Result<(), CircuitRefusal> {
        match site {
            Some(site) if *site != *self.site => Err(CircuitRefusal::lasting(format!(
                "it is the relay of the site {}, and not of {site}: correct `relay` under `titin: sites`, or the `site` of \
                 the host",
                self.site
            ))),
            _ => Ok(()),
        }
    }

    fn check_use(&self, peer: &Peer, run: u64) -> Result<(), CircuitRefusal> {
        match self.runs.is_for(run, &peer.far_sites()) {
            true => Ok(()),
            false => Err(CircuitRefusal::passing(format!(
                "the run {} is not admitted for the site {} by the relay of {}",
                hex(run),
                peer.site(),
                self.site
            ))),
        }
    }

    async fn serve_circuit_of_peer(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut stream: PeerStream,
        first_bytes: &[u8],
        run: u64,
        destination: &Destination,
    ) {
        let opening = async {
            self.check_use(peer, run)?;
            let place = peer.enter()?;
            let far = circuits::open(self, run, destination, Some(peer.site())).await?;
            Result::<_, CircuitRefusal>::Ok((far, place))
        };
        let opened = opening.await;
        self.log_refused_circuit(peer.site(), run, destination, &opened);
        let (far, _place) = match opened {
            Ok(opened) => opened,
            Err(refusal) => return refuse_peer(&mut stream, refusal).await,
        };
        let Ok(line) = PeerLine::of(peer, &stream) else {
            return;
        };
        if messages::write(&mut stream, &PeerAnswer::Welcome)
            .await
            .is_ok()
        {
            let _open = CircuitCount::of(self);
            // A circuit that breaks tells no more than its end.
            let _ = circuits::pass(stream, first_bytes, CircuitEnd::Relay(line), far).await;
        }
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

async fn refuse_process(stream: &mut TcpStream, refusal: CircuitRefusal) -> io::Result<()> {
    messages::write(stream, &RelayAnswer::Refused(refusal)).await
}

async fn refuse_peer(stream: &mut PeerStream, refusal: CircuitRefusal) {
    let _ = messages::write(stream, &PeerAnswer::Refused(refusal)).await;
    let _ = stream.shutdown().await;
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
