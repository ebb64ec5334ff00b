//! The relays of other sites: the control connection to each, and connections for circuits.
//!
//! Of two relays the one that has an address of the other dials. If that is one of them alone, the
//! other calls by the control connection for a connection to use.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use rustix::net::sockopt;
use titin_os::sockets;
use titin_relay::{PeerConfig, end_of_day};
use titin_wire::circuit::{self, CircuitRefusal, LONGEST_PERMIT, RunPermit};
use titin_wire::line::{ControlMessage, LinePurpose, PeerAnswer, PeerGreeting};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tracing::{info, warn};

use crate::admission::FarSites;
use crate::circuits::PeerStream;
use crate::log_limit::{LogLimit, bounded};
use crate::messages;
use crate::server::{Relay, hex};
use crate::tls::{HANDSHAKE_TIME, PinnedKeys, Tls, check_protocol};

/// How often the round trip is measured.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// After this time without a message the control connection is dead.
const SILENCE: Duration = Duration::from_secs(15);

/// The first and the longest pause before a relay is dialled again.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// After this time without an answer the system gives an idle connection up. The ends of sessions
/// leave a circuit that stands still.
const DEAD_LINE: Duration = Duration::from_secs(30);

/// How long the runs of a peer are kept when the control connection is lost.
const RUNS_KEPT: Duration = Duration::from_secs(600);

/// The most control connections of a peer: one that each of the two has dialled. The oldest goes
/// first.
const CONTROLS: usize = 2;

/// Control messages on their way to a peer, at most.
const QUEUE: usize = 256;

/// Why there is no connection to a relay that this one cannot dial.
const NEVER_DIALLED: &str = "it has not connected, and `address` does not say where it listens";

/// The counts of a peer's lines.
#[derive(Default)]
pub(crate) struct PeerCounts {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) retransmissions: AtomicU64,
    /// Bytes in the last second, both ways.
    pub(crate) sent_rate: AtomicU64,
    pub(crate) received_rate: AtomicU64,
    /// In microseconds; 0 before the first answer.
    pub(crate) round_trip: AtomicU64,
}

/// Takes the connection that a peer was called for, and the bytes read from it.
type CallAnswer = oneshot::Sender<(PeerStream, Vec<u8>)>;

/// The relay of another site.
pub(crate) struct Peer {
    pub(crate) config: PeerConfig,
    /// The sites that the relay leads to.
    pub(crate) behind: Vec<String>,
    pub(crate) counts: PeerCounts,
    circuits: AtomicUsize,
    /// Bounds the connections that the peer has called for and not used yet.
    answers: Arc<Semaphore>,
    control: Mutex<ControlState>,
    /// Connections that the peer was called for.
    calls: Mutex<HashMap<u64, CallAnswer>>,
    /// Why all connections are to end.
    revoked: watch::Sender<Option<&'static str>>,
    /// The lines of the log that the peer causes, and those about runs that it brings.
    lines: Mutex<LogLimit<()>>,
    run_lines: Mutex<LogLimit<()>>,
}

struct ControlState {
    /// Since when there is none, if there is none.
    down_since: Instant,
    /// The number of the newest control connection that there has been.
    number: u64,
    /// Why there is none, as far as this relay knows.
    down: Option<String>,
    /// The oldest first.
    open: VecDeque<ControlConnection>,
}

struct ControlConnection {
    number: u64,
    queue: mpsc::Sender<ControlMessage>,
    /// Ends the connection, for newer ones.
    superseded: watch::Sender<bool>,
}

impl Default for ControlState {
    fn default() -> Self {
        ControlState {
            down_since: Instant::now(),
            number: 0,
            down: None,
            open: VecDeque::new(),
        }
    }
}

impl ControlState {
    /// Notes a control connection. Returns what tells that the connection is to end.
    fn begin(&mut self, number: u64, queue: mpsc::Sender<ControlMessage>) -> watch::Receiver<bool> {
        let (superseded, is_superseded) = watch::channel(false);
        self.number = number;
        self.down = None;
        self.open.push_back(ControlConnection {
            number,
            queue,
            superseded,
        });
        if self.open.len() > CONTROLS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.superseded.send_replace(true);
        }
        is_superseded
    }

    /// Notes the end of a control connection, and why it has ended. Returns the number of the newest
    /// connection that there has been if none is left.
    fn end(&mut self, number: u64, why: Option<&str>) -> Option<u64> {
        self.open.retain(|open| open.number != number);
        self.down_since = Instant::now();
        self.down = why.map(str::to_owned);
        self.open.is_empty().then_some(self.number)
    }

    fn queue(&self) -> Option<mpsc::Sender<ControlMessage>> {
        self.open.back().map(|newest| newest.queue.clone())
    }
}

/// The place of a circuit among those of a peer.
pub(crate) struct CircuitPlace(Arc<Peer>);

impl Drop for CircuitPlace {
    fn drop(&mut self) {
        self.0.circuits.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peer {
    pub(crate) fn new(config: PeerConfig, behind: Vec<String>) -> Self {
        let most_answers = config.most_circuits().min(Semaphore::MAX_PERMITS);
        Peer {
            behind,
            counts: PeerCounts::default(),
            circuits: AtomicUsize::new(0),
            answers: Arc::new(Semaphore::new(most_answers)),
            config,
            control: Mutex::default(),
            calls: Mutex::default(),
            revoked: watch::channel(None).0,
            lines: Mutex::new(LogLimit::of_refusals()),
            run_lines: Mutex::new(LogLimit::of_runs()),
        }
    }

    pub(crate) fn site(&self) -> &str {
        &self.config.site
    }

    pub(crate) fn far_sites(&self) -> FarSites<'_> {
        FarSites {
            site: self.site(),
            behind: &self.behind,
        }
    }

    /// Whether the log has room for a line that the peer causes.
    pub(crate) fn may_log(&self) -> bool {
        let mut lines = self.lines.lock().expect("never poisoned");
        lines.note((), Instant::now()).is_some()
    }

    /// Whether the log has room for a line about a run that the peer brings.
    fn may_log_run(&self) -> bool {
        let mut lines = self.run_lines.lock().expect("never poisoned");
        lines.note((), Instant::now()).is_some()
    }

    /// Logs why something that the peer wants is refused.
    pub(crate) fn log_refusal(&self, why: &str) {
        if self.may_log() {
            warn!(site = self.site(), why = bounded(why), "refused");
        }
    }

    /// Ends all connections of the peer.
    pub(crate) fn end_connections(&self, why: &'static str) {
        self.revoked.send_replace(Some(why));
    }

    /// Returns once the connections of the peer are to end.
    pub(crate) async fn revoked(&self) {
        let mut revoked = self.revoked.subscribe();
        let _ = revoked.wait_for(Option::is_some).await;
    }

    /// Why the connections of the peer are to end.
    fn revocation(&self) -> Option<&'static str> {
        *self.revoked.borrow()
    }

    /// Whether the day until which the peer is trusted is over, for the first time.
    fn is_past(&self) -> bool {
        let end = self.config.until.as_deref().and_then(end_of_day);
        end.is_some_and(|end| end <= SystemTime::now()) && self.revocation().is_none()
    }

    pub(crate) fn is_connected(&self) -> bool {
        !self.control().open.is_empty()
    }

    /// Whether the peer has not been connected for so long.
    pub(crate) fn is_away_for(&self, time: Duration) -> bool {
        let state = self.control();
        state.open.is_empty() && state.down_since.elapsed() >= time
    }

    /// Why the peer is not connected; `None` if it is. `keys` know whether another relay has dialled in its place.
    pub(crate) fn why_down(&self, keys: &PinnedKeys) -> Option<String> {
        let state = self.control();
        if !state.open.is_empty() {
            return None;
        }
        if let Some(why) = self.revocation() {
            return Some(why.to_owned());
        }
        let unknown = || match &self.config.address {
            Some(address) => format!("it is being dialled at {address}"),
            None => match keys.last_refusal() {
                Some(refusal) => format!("{NEVER_DIALLED}; {refusal}"),
                None => NEVER_DIALLED.to_owned(),
            },
        };
        Some(state.down.clone().unwrap_or_else(unknown))
    }

    /// Notes why the peer is not connected.
    fn note_down(&self, why: &str) {
        self.control().down = Some(why.to_owned());
    }

    pub(crate) fn circuits(&self) -> usize {
        self.circuits.load(Ordering::Relaxed)
    }

    /// Takes a place for a circuit.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<CircuitPlace, CircuitRefusal> {
        let most = self.config.most_circuits();
        let place = CircuitPlace(self.clone());
        match self.circuits.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(place),
            false => Err(CircuitRefusal::passing(format!(
                "the site {} has the most circuits that `streams` and `memory` allow: {most}",
                self.site()
            ))),
        }
    }

    /// A connection to the peer, which has taken the purpose.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        relay: &Relay,
        purpose: LinePurpose,
    ) -> Result<(PeerStream, Vec<u8>), CircuitRefusal> {
        let connecting = async {
            let (mut stream, mut buffer) = match &self.config.address {
                Some(address) => (dial(relay, self, address).await?, Vec::new()),
                None => self.call(relay).await?,
            };
            let greeting = PeerGreeting::new(purpose);
            messages::write(&mut stream, &greeting).await?;
            let answer = messages::read(&mut stream, &mut buffer).await?;
            io::Result::Ok((stream, buffer, answer))
        };
        let place = self.config.address.as_ref();
        let place = place.map_or_else(String::new, |address| format!(" at {address}"));
        let failed = |why: String| {
            CircuitRefusal::passing(format!(
                "the relay of the site {}{place}: {why}",
                self.site()
            ))
        };
        match timeout(2 * HANDSHAKE_TIME, connecting).await {
            Ok(Ok((stream, buffer, PeerAnswer::Welcome))) => Ok((stream, buffer)),
            Ok(Ok((_, _, PeerAnswer::Refused(refusal)))) => Err(CircuitRefusal {
                why: bounded(&refusal.why),
                ..refusal
            }),
            Ok(Err(error)) => Err(failed(relay.tls.why(&error))),
            Err(_) => Err(failed("it does not answer".to_owned())),
        }
    }

    /// Has the peer, which cannot be dialled, dial.
    async fn call(&self, relay: &Relay) -> io::Result<(PeerStream, Vec<u8>)> {
        let missing = || io::Error::new(io::ErrorKind::NotConnected, NEVER_DIALLED);
        let queue = self.control().queue().ok_or_else(missing)?;
        let (sender, receiver) = oneshot::channel();
        let call = OpenCall::begin(self, relay.next_number(), sender);
        let call = ControlMessage::Call { call: call.number };
        queue.send(call).await.map_err(|_| missing())?;
        match timeout(HANDSHAKE_TIME, receiver).await {
            Ok(Ok(stream)) => Ok(stream),
            _ => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it has not dialled although it was called",
            )),
        }
    }

    /// Takes a connection that the peer was called for. False if there was no such call.
    pub(crate) fn take_callback(&self, call: u64, stream: PeerStream, buffer: Vec<u8>) -> bool {
        let waiting = self.calls().remove(&call);
        waiting.is_some_and(|waiting| waiting.send((stream, buffer)).is_ok())
    }

    fn control(&self) -> MutexGuard<'_, ControlState> {
        self.control.lock().expect("never poisoned")
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, CallAnswer>> {
        self.calls.lock().expect("never poisoned")
    }
}

/// A call that waits for the peer.
struct OpenCall<'a> {
    peer: &'a Peer,
    number: u64,
}

impl<'a> OpenCall<'a> {
    fn begin(peer: &'a Peer, number: u64, answer: CallAnswer) -> Self {
        peer.calls().insert(number, answer);
        OpenCall { peer, number }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.peer.calls().remove(&self.number);
    }
}

/// Keeps a control connection to a peer that has an address, until the peer is revoked.
pub(crate) async fn keep_connected(relay: Arc<Relay>, peer: Arc<Peer>) {
    let mut pause = PAUSE;
    let mut last = String::new();
    loop {
        match peer.connect(&relay, LinePurpose::Control).await {
            Ok((stream, buffer)) => {
                last.clear();
                pause = PAUSE;
                control(&relay, &peer, stream, buffer).await;
            }
            Err(refusal) => {
                peer.note_down(&refusal.why);
                if refusal.why != last && peer.may_log() {
                    warn!(site = peer.site(), why = refusal.why, "no connection");
                    last = refusal.why;
                }
            }
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

async fn dial(relay: &Relay, peer: &Peer, address: &str) -> io::Result<PeerStream> {
    let stream = TcpStream::connect(address).await?;
    prepare_line(&stream, relay.congestion().as_deref());
    let config = relay.tls.client(peer.site()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config)
        .connect(Tls::name(), stream)
        .await?;
    check_protocol(stream.get_ref().1.alpn_protocol()).map_err(io::Error::other)?;
    Ok(stream.into())
}

/// The congestion control between relays unless the configuration names another, where the system has it.
/// With BBR a lost packet does not halve the rate of a long line.
const CONGESTION: &str = "bbr";

/// Sets the options of a connection between relays, and its congestion control.
pub(crate) fn prepare_line(stream: &TcpStream, congestion: Option<&str>) {
    sockets::prepare_tcp(stream);
    sockets::set_keepalive(stream, DEAD_LINE);
    let _ = sockopt::set_tcp_congestion(stream, congestion.unwrap_or(CONGESTION));
}

/// The congestion control that connections between relays get, for the one that is configured; `None` if it
/// is that of the system.
pub(crate) fn usable_congestion(configured: Option<String>) -> Option<String> {
    let wanted = configured.unwrap_or_else(|| CONGESTION.to_owned());
    check_congestion(&wanted).ok().map(|()| wanted)
}

/// Fails if the system has no such congestion control, or keeps it from this user.
pub(crate) fn check_congestion(name: &str) -> Result<(), String> {
    let check = || {
        let socket = sockets::new_tcp(Ipv4Addr::LOCALHOST.into())?;
        io::Result::Ok(sockopt::set_tcp_congestion(&socket, name)?)
    };
    check().map_err(|error| error.to_string())
}

/// Sends and takes control messages, as long as the connection lives.
pub(crate) async fn control(
    relay: &Arc<Relay>,
    peer: &Arc<Peer>,
    stream: PeerStream,
    mut buffer: Vec<u8>,
) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let number = relay.next_number();
    let mut superseded = peer.control().begin(number, sender.clone());
    // A relay may connect again and again.
    let is_logged = peer.may_log();
    if is_logged {
        info!(site = peer.site(), "connected");
    }
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        let outcome = send_control(relay, peer, &mut writer, queue).await;
        let _ = writer.shutdown().await;
        outcome
    };
    let reading = async {
        loop {
            let message = timeout(SILENCE, messages::read(&mut reader, &mut buffer)).await;
            let why = || format!("nothing has come for {} s", SILENCE.as_secs());
            let silent = |_| io::Error::new(io::ErrorKind::TimedOut, why());
            take_control(relay, peer, message.map_err(silent)??, &sender);
        }
    };
    let outcome: io::Result<()> = tokio::select! {
        outcome = writing => outcome,
        outcome = reading => outcome,
        () = peer.revoked() => Err(io::Error::other(peer.revocation().unwrap_or_default())),
        _ = superseded.wait_for(|superseded| *superseded) => {
            Err(io::Error::other("newer connections have taken its place"))
        }
    };
    let why = outcome.err().map(|error| bounded(&relay.tls.why(&error)));
    let newest = peer.control().end(number, why.as_deref());
    if let Some(newest) = newest {
        peer.counts.round_trip.store(0, Ordering::Relaxed);
        let (relay, peer) = (relay.clone(), peer.clone());
        tokio::spawn(async move { forget_runs(&relay, &peer, newest).await });
    }
    if is_logged {
        info!(site = peer.site(), why, "disconnected");
    }
}

/// Forgets the runs of a peer that has been away for long, since the control connection with this number.
/// Until then the runs go on: circuits do not need the control connection.
async fn forget_runs(relay: &Relay, peer: &Arc<Peer>, number: u64) {
    tokio::select! {
        () = sleep(RUNS_KEPT) => {}
        () = peer.revoked() => {}
    }
    if relay.has_peer(peer) && peer.control().number == number {
        relay.forget_runs_of(peer);
    }
}

async fn send_control(
    relay: &Relay,
    peer: &Peer,
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    mut queue: mpsc::Receiver<ControlMessage>,
) -> io::Result<()> {
    let mut changes = relay.runs.changes();
    let mut told = None;
    let mut told_refusals = None;
    let mut ping = tokio::time::interval(PING_INTERVAL);
    loop {
        let runs = fitting(relay.runs.for_peer(&peer.far_sites(), &relay.transit()));
        if told.as_ref() != Some(&runs) {
            messages::write(writer, &ControlMessage::Runs(runs.clone())).await?;
            told = Some(runs);
        }
        let refusals = relay.refusals_for(peer);
        if told_refusals.as_ref() != Some(&refusals) {
            messages::write(writer, &ControlMessage::RefusedRuns(refusals.clone())).await?;
            told_refusals = Some(refusals);
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
            }
            _ = ping.tick() => {
                let now = relay.begun.elapsed().as_micros() as u64;
                messages::write(writer, &ControlMessage::Ping(now)).await?;
            }
            message = queue.recv() => match message {
                Some(message) => messages::write(writer, &message).await?,
                None => return Ok(()),
            },
        }
    }
}

/// The runs that fit into a message, those of managers of this site and those with short permits first.
fn fitting(mut runs: Vec<RunPermit>) -> Vec<RunPermit> {
    runs.sort_by_cached_key(|run| (run.hops > 1, circuit::encode(run).len()));
    // Around the list, there are less than so many bytes.
    let mut room = circuit::LONGEST - 64;
    runs.retain(|run| {
        let left = room.checked_sub(circuit::encode(run).len());
        room = left.unwrap_or(room);
        left.is_some()
    });
    runs
}

fn take_control(
    relay: &Arc<Relay>,
    peer: &Arc<Peer>,
    message: ControlMessage,
    queue: &mpsc::Sender<ControlMessage>,
) {
    match message {
        // The entry of the peer has changed meanwhile.
        ControlMessage::Runs(_) | ControlMessage::RefusedRuns(_) if !relay.has_peer(peer) => {}
        ControlMessage::Runs(runs) => {
            let is_short = |run: &RunPermit| circuit::encode(run).len() <= LONGEST_PERMIT;
            let (runs, long): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_short);
            let mut refusals = relay.not_passed_on(peer, &runs);
            refusals.extend(long.iter().map(|run| relay.too_long(run.run)));
            let most = peer.config.most_runs();
            let is_new = |run: &&RunPermit| !run.is_over && relay.runs.permit(run.run).is_none();
            let new: Vec<RunPermit> = runs.iter().filter(is_new).cloned().collect();
            let surplus = relay.runs.set_of_peer(peer.site(), runs, most);
            for RunPermit { run, name, .. } in &new {
                if !surplus.contains(run) && peer.may_log_run() {
                    let (run, name) = (hex(*run), bounded(name));
                    info!(run, name, from = peer.site(), "admitted");
                }
            }
            if !surplus.is_empty() && peer.may_log_run() {
                let surplus = surplus.len();
                warn!(site = peer.site(), surplus, most, "refused: too many runs");
            }
            refusals.extend(
                surplus
                    .into_iter()
                    .map(|run| relay.too_many_runs(peer, run)),
            );
            if relay.refused_runs.set_own(peer.site(), refusals) {
                relay.runs.note_change();
            }
        }
        ControlMessage::RefusedRuns(mut refusals) => {
            let sites = peer.far_sites();
            refusals.retain(|refusal| {
                relay.runs.is_for(refusal.run, &sites)
                    && relay.is_on_way(peer, refusal.to.as_deref())
            });
            if relay.refused_runs.set_told(peer.site(), refusals) {
                relay.runs.note_change();
            }
        }
        ControlMessage::Call { call } => {
            let Some(address) = peer.config.address.clone() else {
                return;
            };
            let Ok(place) = peer.answers.clone().try_acquire_owned() else {
                return peer.log_refusal("too many calls at a time");
            };
            let (relay, peer) = (relay.clone(), peer.clone());
            tokio::spawn(async move { call_back(&relay, &peer, &address, call, place).await });
        }
        // A queue without room has other answers, and the next ping comes soon.
        ControlMessage::Ping(number) => drop(queue.try_send(ControlMessage::Pong(number))),
        ControlMessage::Pong(number) => {
            let now = relay.begun.elapsed().as_micros() as u64;
            let round_trip = now.saturating_sub(number).max(1);
            peer.counts.round_trip.store(round_trip, Ordering::Relaxed);
        }
    }
}

/// Dials the peer, which then says what the connection is for.
async fn call_back(
    relay: &Arc<Relay>,
    peer: &Arc<Peer>,
    address: &str,
    call: u64,
    place: OwnedSemaphorePermit,
) {
    let calling = async {
        let mut stream = dial(relay, peer, address).await?;
        let greeting = PeerGreeting::new(LinePurpose::Callback { call });
        messages::write(&mut stream, &greeting).await?;
        io::Result::Ok(stream)
    };
    let why = match timeout(HANDSHAKE_TIME, calling).await {
        Ok(Ok(stream)) => return relay.serve_peer(peer, stream, place).await,
        Ok(Err(error)) => bounded(&relay.tls.why(&error)),
        Err(_) => "it does not answer".to_owned(),
    };
    if peer.may_log() {
        warn!(site = peer.site(), why, "no connection");
    }
}

/// Each second measures the rates of all peers, and ends what goes on with those whose day is over.
pub(crate) async fn watch(relay: Arc<Relay>) {
    let mut before: HashMap<String, (u64, u64)> = HashMap::new();
    loop {
        sleep(Duration::from_secs(1)).await;
        for peer in relay.peers() {
            if peer.is_past() {
                warn!(
                    site = peer.site(),
                    "the day until which it is trusted is over"
                );
                relay.revoke(&peer, "the day until which the site is trusted is over");
            }
            let counts = &peer.counts;
            let now = (
                counts.sent.load(Ordering::Relaxed),
                counts.received.load(Ordering::Relaxed),
            );
            let then = before.insert(peer.site().to_owned(), now).unwrap_or(now);
            let (sent, received) = (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
            counts.sent_rate.store(sent, Ordering::Relaxed);
            counts.received_rate.store(received, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use titin_wire::Secret;

    use super::*;

    fn begin(state: &mut ControlState, number: u64) -> watch::Receiver<bool> {
        state.begin(number, mpsc::channel(1).0)
    }

    #[test]
    fn what_does_not_fit_into_a_message_is_left_out_longest_first() {
        let permit = |run, hops, letters| RunPermit {
            run,
            permit: Secret::random(),
            name: "x".repeat(letters),
            sites: vec!["south".into()],
            is_over: false,
            hops,
        };
        let of_others = (10..90).map(|run| permit(run, 2, LONGEST_PERMIT - 300));
        let short = (1..4).map(|run| permit(run, 2, 10));
        let own = permit(100, 1, LONGEST_PERMIT - 300);
        let all: Vec<_> = of_others.chain(short).chain([own]).collect();
        let kept = fitting(all);
        let numbers: Vec<u64> = kept.iter().map(|run| run.run).collect();
        assert_eq!(numbers[..4], [100, 1, 2, 3]);
        assert_eq!(numbers.len(), 4 + 63, "{numbers:?}");
        let message = circuit::encode(&ControlMessage::Runs(kept));
        assert!(message.len() <= circuit::LONGEST, "{}", message.len());
    }

    #[test]
    fn the_last_control_connection_to_end_tells_which_was_the_newest() {
        let mut state = ControlState::default();
        begin(&mut state, 1);
        begin(&mut state, 2);
        assert_eq!(state.end(2, None), None);
        assert_eq!(state.end(1, Some("it is gone")), Some(2));
        assert_eq!(state.down.as_deref(), Some("it is gone"));
        begin(&mut state, 3);
        assert_eq!(state.down, None);
        assert_eq!(state.end(3, None), Some(3));
    }

    #[test]
    fn a_control_connection_too_many_ends_the_oldest() {
        let mut state = ControlState::default();
        let ends: Vec<_> = (0..=CONTROLS as u64)
            .map(|number| begin(&mut state, number))
            .collect();
        let is_to_end: Vec<bool> = ends.iter().map(|end| *end.borrow()).collect();
        assert_eq!(is_to_end, [true, false, false]);
        assert_eq!(state.end(0, None), None);
    }
}
