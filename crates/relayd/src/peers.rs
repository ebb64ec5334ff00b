//! The relays of other sites: the control connection to each, and connections for circuits.
//!
//! Of two relays the one that has an address of the other dials. If that is one of them alone, the
//! other calls by the control connection for a connection to use.

mod control;

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use rustix::net::sockopt;
use titin_os::sockets;
use titin_relay::{PeerConfig, end_of_day};
use titin_wire::circuit::CircuitRefusal;
use titin_wire::line::{ControlMessage, LinePurpose, PeerAnswer, PeerGreeting};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tracing::{info, warn};

use control::ControlState;
pub(crate) use control::serve_control;

use crate::admission::FarSites;
use crate::circuits::PeerStream;
use crate::log_limit::{LogLimit, bounded};
use crate::messages;
use crate::server::Relay;
use crate::tls::{HANDSHAKE_TIME, PinnedKeys, Tls, check_protocol};

/// The first and the longest pause before a relay is dialled again.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// After this time without an answer the system gives an idle connection up. The ends of sessions
/// leave a circuit that stands still.
const DEAD_LINE: Duration = Duration::from_secs(30);

/// The most host names that are looked up at a time for the circuits of a peer.
const MOST_LOOKUPS: usize = 8;

/// Why connections end at the end of the day until which a peer is trusted.
const DAY_OVER: &str = "the day until which the site is trusted is over";

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
    /// Bounds the host names that are looked up for the peer's circuits.
    lookups: Arc<Semaphore>,
    control: Mutex<ControlState>,
    /// Connections that the peer was called for.
    calls: Mutex<HashMap<u64, CallAnswer>>,
    /// Why all connections are to end.
    revoked: watch::Sender<Option<&'static str>>,
    /// The lines of the log that the peer causes, and those about runs that it brings.
    lines: Mutex<LogLimit<()>>,
    run_lines: Mutex<LogLimit<()>>,
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
            lookups: Arc::new(Semaphore::new(MOST_LOOKUPS)),
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

    /// Bounds the host names that are looked up for the peer's circuits.
    pub(crate) fn lookups(&self) -> &Arc<Semaphore> {
        &self.lookups
    }

    pub(crate) fn far_sites(&self) -> FarSites<'_> {
        FarSites {
            site: self.site(),
            behind: &self.behind,
        }
    }

    /// Whether the log has room for a line that the peer causes.
    pub(crate) fn may_log(&self) -> bool {
        has_room(&self.lines)
    }

    /// Whether the log has room for a line about a run that the peer brings.
    fn may_log_run(&self) -> bool {
        has_room(&self.run_lines)
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
        self.is_day_over() && self.revocation().is_none()
    }

    /// Whether the connections have ended because of the day, and the clock was set back since.
    fn is_trusted_again(&self) -> bool {
        self.revocation() == Some(DAY_OVER) && !self.is_day_over()
    }

    fn is_day_over(&self) -> bool {
        let end = self.config.until.as_deref().and_then(end_of_day);
        end.is_some_and(|end| end <= SystemTime::now())
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

/// Notes a line of the log. Whether there is room for the line.
pub(crate) fn has_room(lines: &Mutex<LogLimit<()>>) -> bool {
    let mut lines = lines.lock().expect("never poisoned");
    lines.note((), Instant::now()).is_some()
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
                serve_control(&relay, &peer, stream, buffer).await;
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
    let greeting = TlsConnector::from(config).connect(Tls::name(), stream);
    let stream = greeting.await.map_err(perhaps_no_relay)?;
    check_protocol(stream.get_ref().1.alpn_protocol()).map_err(io::Error::other)?;
    Ok(stream.into())
}

/// Adds to the error of a handshake that what has answered may be no relay.
fn perhaps_no_relay(error: io::Error) -> io::Error {
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let is_alien = matches!(tls, Some(rustls::Error::InvalidMessage(_)));
    if !is_alien && error.kind() != io::ErrorKind::ConnectionReset {
        return error;
    }
    let text = format!(
        "{error}: if that comes again and again, `address` is not the `listen` address of that relay (its `local` address is for \
         programs of its site)"
    );
    io::Error::new(error.kind(), text)
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
                relay.revoke(&peer, DAY_OVER);
            } else if peer.is_trusted_again() {
                info!(
                    site = peer.site(),
                    "by the clock of this host it is trusted again"
                );
                relay.begin_again(&peer);
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
