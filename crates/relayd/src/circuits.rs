//! Circuits: the way from a process, or a relay, on to the next relay or to the listener itself, and
//! the bytes on it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use titin_os::sockets::{self, Acknowledgements};
use titin_relay::CIRCUIT_MEMORY;
use titin_wire::circuit::{CircuitRefusal, Destination, MOST_HOPS};
use titin_wire::handshake::{HELLO, MAGIC, is_for_circuit};
use titin_wire::line::LinePurpose;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use crate::admission::RunCircuit;
use crate::peers::{CircuitPlace, Peer};
use crate::server::{Relay, hex};

/// Bytes of a circuit that are on their way inside of the relay, in each direction.
const BUFFER: usize = 128 << 10;

// The rest is for the buffers of TLS.
const _: () = assert!(2 * BUFFER + (64 << 10) == CIRCUIT_MEMORY);

/// How long a listener of the site may take to accept.
const LISTENER_TIME: Duration = Duration::from_secs(10);

/// How long the process that has dialled may take to dial again after its connection was reset.
/// A killed process may leave a reset behind, and so may a network. `SITES_EXPLANATION_TIME` of the
/// manager is longer.
pub(crate) const REDIAL_TIME: Duration = Duration::from_secs(4);

/// How long the two ends of a session may take to greet each other.
const GREETING_TIME: Duration = Duration::from_secs(20);

/// How long one direction of a circuit may go on alone.
const HALF_TIME: Duration = Duration::from_secs(30);

/// How often the state of the two connections of a circuit is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// After this time without an acknowledgement the host of a process is gone, if bytes have been on
/// their way for half of the time.
const HOST_GONE_AFTER: Duration = Duration::from_secs(8);

/// A connection between two relays.
pub(crate) type PeerStream = TlsStream<TcpStream>;

/// A stream of bytes both ways.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// The far side of a circuit: the next relay, or the listener.
pub(crate) struct FarSide {
    stream: Box<dyn ByteStream>,
    /// Bytes that came behind the answer of the next relay.
    first_bytes: Vec<u8>,
    end: CircuitEnd,
    /// The place of the circuit among those of the next relay.
    _place: Option<CircuitPlace>,
    /// If a process of this site has dialled the circuit.
    _run_circuit: Option<RunCircuit>,
}

/// What is at one end of the circuit, as far as this relay sees it.
pub(crate) enum CircuitEnd {
    /// A process of this site.
    Process(ProcessConnection),
    /// Another relay.
    Relay(PeerLine),
}

impl CircuitEnd {
    /// A process of this site that has dialled the circuit.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn dialler(stream: &TcpStream) -> io::Result<Self> {
        CircuitEnd::process(stream, REDIAL_TIME)
    }

    /// A process of this site that listens. The end that dials finds out whether it is gone.
    fn listener(stream: &TcpStream) -> io::Result<Self> {
        CircuitEnd::process(stream, Duration::ZERO)
    }

    fn process(stream: &TcpStream, redial_time: Duration) -> io::Result<Self> {
        sockets::set_keepalive(stream, HOST_GONE_AFTER);
        Ok(CircuitEnd::Process(ProcessConnection {
            socket: stream.as_fd().try_clone_to_owned()?,
            progress: Mutex::new(AckProgress {
                bytes: 0,
                since: Instant::now(),
            }),
            redial_time,
            was_reset: AtomicBool::new(false),
        }))
    }

    /// Notes why bytes do not reach a process. The system tells of a reset only once.
    ///
    /// # Errors
    /// The given one, if there is a relay at this end.
    fn note_write_error(&self, error: io::Error) -> io::Result<()> {
        let CircuitEnd::Process(line) = self else {
            return Err(error);
        };
        line.was_reset.fetch_or(is_reset(&error), Ordering::Relaxed);
        Ok(())
    }

    /// Decides what the end of reading means, which came with `error` if there was one. A process is
    /// gone once this returns: after a reset by a network the process first gets `redial_time` to
    /// dial again.
    ///
    /// # Errors
    /// `error`, if a relay is at this end: the whole circuit is then lost.
    async fn after_last_byte(&self, error: Option<io::Error>) -> io::Result<()> {
        let CircuitEnd::Process(process) = self else {
            return error.map_or(Ok(()), Err);
        };
        let was_reset = process.was_reset.load(Ordering::Relaxed);
        if was_reset || error.as_ref().is_some_and(is_reset) {
            tokio::time::sleep(process.redial_time).await;
        }
        Ok(())
    }

    fn is_process(&self) -> bool {
        matches!(self, CircuitEnd::Process(_))
    }

    fn sent(&self, count: u64) {
        if let CircuitEnd::Relay(line) = self {
            line.sent(count);
        }
    }

    fn received(&self, count: u64) {
        if let CircuitEnd::Relay(line) = self {
            line.received(count);
        }
    }

    /// Checks the state of the connection, which the system does not tell by itself.
    fn check(&self) {
        match self {
            CircuitEnd::Process(line) => line.end_if_host_is_gone(),
            CircuitEnd::Relay(line) => line.count_retransmissions(),
        }
    }

    /// Returns once the peer of a line is trusted no more.
    async fn revoked(&self) {
        match self {
            CircuitEnd::Process(_) => std::future::pending().await,
            CircuitEnd::Relay(line) => line.peer.revoked().await,
        }
    }
}

/// A connection to a process of this site, for its state.
pub(crate) struct ProcessConnection {
    socket: OwnedFd,
    progress: Mutex<AckProgress>,
    /// How long the process may take to dial again after its connection was reset.
    redial_time: Duration,
    /// Whether writing has shown that the connection was reset.
    was_reset: AtomicBool,
}

fn is_reset(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionAborted,
    ];
    kinds.contains(&error.kind())
}

impl ProcessConnection {
    /// Ends the connection if the host of the process is gone.
    fn end_if_host_is_gone(&self) {
        let Some(seen) = sockets::acknowledgements(&self.socket) else {
            return;
        };
        let mut progress = self.progress.lock().expect("never poisoned");
        if progress.note(seen, Instant::now()) {
            // Both directions then end as if the process had closed the connection.
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}

/// How many bytes the host of a process has acknowledged, and since when this number has stood still although
/// bytes are in flight.
struct AckProgress {
    bytes: u64,
    since: Instant,
}

impl AckProgress {
    /// Notes what the system says. Returns whether the host is gone: a living host acknowledges the
    /// system's probes even while its process reads nothing.
    fn note(&mut self, seen: Acknowledgements, now: Instant) -> bool {
        if !seen.in_flight || seen.bytes != self.bytes {
            *self = AckProgress {
                bytes: seen.bytes,
                since: now,
            };
        }
        now - self.since >= HOST_GONE_AFTER / 2 && seen.age >= HOST_GONE_AFTER
    }
}

/// A line to another relay, for its counts.
pub(crate) struct PeerLine {
    peer: Arc<Peer>,
    socket: OwnedFd,
    /// The packets sent again that were counted.
    retransmissions: AtomicU64,
}

impl PeerLine {
    /// The line of a connection.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn of(peer: &Arc<Peer>, stream: &PeerStream) -> io::Result<Self> {
        Ok(PeerLine {
            peer: peer.clone(),
            socket: stream.get_ref().0.as_fd().try_clone_to_owned()?,
            retransmissions: AtomicU64::new(0),
        })
    }

    fn sent(&self, count: u64) {
        self.peer.counts.sent.fetch_add(count, Ordering::Relaxed);
    }

    fn received(&self, count: u64) {
        self.peer
            .counts
            .received
            .fetch_add(count, Ordering::Relaxed);
    }

    /// Counts the packets that the system has sent again since the last call.
    fn count_retransmissions(&self) {
        let Some(total) = sockets::retransmissions(&self.socket) else {
            return;
        };
        let before = self.retransmissions.swap(total, Ordering::Relaxed);
        let counter = &self.peer.counts.retransmissions;
        counter.fetch_add(total.saturating_sub(before), Ordering::Relaxed);
    }
}

/// Where a request for a circuit comes from.
#[derive(Clone, Copy)]
pub(crate) enum CircuitOrigin<'a> {
    /// A process of this site.
    Process,
    /// A relay, and by how many relays the request has come to it.
    Relay(&'a Arc<Peer>, u8),
}

/// Opens the way to a listener.
pub(crate) async fn open(
    relay: &Arc<Relay>,
    run: u64,
    destination: &Destination,
    origin: CircuitOrigin<'_>,
) -> Result<FarSide, CircuitRefusal> {
    let site = &destination.site;
    if relay.runs.is_over(run) {
        let run = hex(run);
        return Err(CircuitRefusal::lasting(format!(
            "the run {run} is over: its manager has ended"
        )));
    }
    if !relay.runs.has_site(run, site) {
        return Err(CircuitRefusal::passing(format!(
            "the run {} is not for the site {site}",
            hex(run)
        )));
    }
    let (run_circuit, from, hops) = match origin {
        CircuitOrigin::Process => (Some(relay.runs.enter(run)?), None, 0),
        CircuitOrigin::Relay(peer, hops) => (None, Some(peer), hops.saturating_add(1)),
    };
    if *site == relay.site {
        let lookups = from.map_or(relay.lookups(), |peer| peer.lookups());
        return open_to_listener(destination, run_circuit, lookups.clone()).await;
    }
    let peer = relay.way_to(site)?;
    if hops > MOST_HOPS {
        return Err(CircuitRefusal::lasting(format!(
            "the request has come by {hops} relays, so the way to the site {site} goes round in a ring: look at `via` in each \
             relay.toml"
        )));
    }
    if from.is_some_and(|from| from.site() == peer.site()) {
        return Err(CircuitRefusal::lasting(format!(
            "the relays of the sites {} and {} each take the other for the way to the site {site}",
            relay.site,
            peer.site()
        )));
    }
    let place = peer.enter()?;
    let purpose = LinePurpose::Circuit {
        run,
        destination: destination.clone(),
        hops,
    };
    let (stream, first_bytes) = peer.connect(relay, purpose).await?;
    let line = PeerLine::of(&peer, &stream);
    Ok(FarSide {
        end: CircuitEnd::Relay(line.map_err(no_descriptor)?),
        stream: Box::new(stream),
        first_bytes,
        _place: Some(place),
        _run_circuit: run_circuit,
    })
}

async fn open_to_listener(
    Destination { host, port, .. }: &Destination,
    run_circuit: Option<RunCircuit>,
    lookups: Arc<Semaphore>,
) -> Result<FarSide, CircuitRefusal> {
    let connecting = async {
        let addresses = look_up(host, *port, lookups).await?;
        TcpStream::connect(&addresses[..]).await
    };
    let stream = match timeout(LISTENER_TIME, connecting).await {
        Ok(Ok(stream)) => stream,
        // A process listens as long as it takes part in the run.
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(CircuitRefusal::lasting(format!(
                "nothing listens at {host}:{port}"
            )));
        }
        Ok(Err(error)) => {
            return Err(CircuitRefusal::passing(format!("{host}:{port}: {error}")));
        }
        Err(_) => {
            return Err(CircuitRefusal::passing(format!(
                "{host}:{port} does not answer"
            )));
        }
    };
    sockets::prepare_tcp(&stream);
    Ok(FarSide {
        end: CircuitEnd::listener(&stream).map_err(no_descriptor)?,
        stream: Box::new(stream),
        first_bytes: Vec::new(),
        _place: None,
        _run_circuit: run_circuit,
    })
}

/// The addresses of a listener. The look-up of a name takes one of `lookups` until the system has an answer, also when
/// nobody waits for it any more: an answer may take long, and each one takes a thread.
async fn look_up(host: &str, port: u16, lookups: Arc<Semaphore>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let place = lookups.acquire_owned().await.map_err(io::Error::other)?;
    let host = host.to_owned();
    let looking = tokio::task::spawn_blocking(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        drop(place);
        found.map(Iterator::collect)
    });
    looking.await.map_err(io::Error::other)?
}

fn no_descriptor(error: io::Error) -> CircuitRefusal {
    CircuitRefusal::passing(error.to_string())
}

/// Passes bytes both ways until both directions have ended, or a relay is lost. `first_bytes` came
/// from the near side already.
///
/// When a process is gone, whether it closed, was killed or lost its host, the relay half-closes the
/// circuit: the other direction stays open for [`HALF_TIME`]. When a relay or a line is lost, both
/// directions close. By that the other end of the session tells a dead process from a broken line.
///
/// # Errors
/// If a relay is lost. The caller closes both sides.
pub(crate) async fn pass(
    mut near: impl ByteStream,
    first_bytes: &[u8],
    near_end: CircuitEnd,
    mut far: FarSide,
) -> io::Result<()> {
    let mut first_bytes = first_bytes.to_vec();
    if far.end.is_process() {
        let greeting = greet_listener(&mut near, &mut first_bytes, &mut far);
        match timeout(GREETING_TIME, greeting).await {
            Ok(greeted) => greeted?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    let FarSide {
        stream,
        first_bytes: far_bytes,
        end: far_end,
        _place,
        _run_circuit,
    } = far;
    let (near_end, far_end) = (&near_end, &far_end);
    let (near_in, near_out) = tokio::io::split(near);
    let (far_in, far_out) = tokio::io::split(stream);
    let half = HalfClosed::default();
    let there = pass_one_way((near_in, near_end), (far_out, far_end), &first_bytes, &half);
    let back = pass_one_way((far_in, far_end), (near_out, near_end), &far_bytes, &half);
    let passing = async { tokio::try_join!(there, back).map(drop) };
    tokio::pin!(passing);
    let outcome = loop {
        tokio::select! {
            outcome = &mut passing => break outcome,
            () = half.lasts() => break Err(io::ErrorKind::TimedOut.into()),
            () = near_end.revoked() => break Err(io::ErrorKind::ConnectionAborted.into()),
            () = far_end.revoked() => break Err(io::ErrorKind::ConnectionAborted.into()),
            () = tokio::time::sleep(CHECK_INTERVAL) => {
                near_end.check();
                far_end.check();
            }
        }
    };
    near_end.check();
    far_end.check();
    outcome
}

/// Passes the greetings of the two ends on, of a session or of a token's connection, and nothing else: a
/// circuit leads to processes of runs, and to no other listener of the site.
async fn greet_listener(
    near: &mut impl ByteStream,
    first_bytes: &mut Vec<u8>,
    far: &mut FarSide,
) -> io::Result<()> {
    let refused = || io::Error::other("the circuit is used for no session and no token");
    while first_bytes.len() < HELLO {
        if near.read_buf(first_bytes).await? == 0 {
            return Err(refused());
        }
    }
    let hello = first_bytes.first_chunk().ok_or_else(refused)?;
    if !is_for_circuit(hello) {
        return Err(refused());
    }
    far.stream.write_all(&first_bytes[..HELLO]).await?;
    far.stream.flush().await?;
    first_bytes.drain(..HELLO);
    while !far.first_bytes.starts_with(MAGIC) {
        let is_other = !MAGIC.starts_with(&far.first_bytes);
        if is_other || far.stream.read_buf(&mut far.first_bytes).await? == 0 {
            return Err(refused());
        }
    }
    Ok(())
}

/// Since when one direction of a circuit has been over.
#[derive(Default)]
struct HalfClosed(OnceLock<Instant>);

impl HalfClosed {
    fn note(&self) {
        self.0.get_or_init(Instant::now);
    }

    /// Returns once one direction has been over for long: the other side is gone, or stands still.
    async fn lasts(&self) {
        loop {
            let left = match self.0.get() {
                Some(since) => HALF_TIME.saturating_sub(since.elapsed()),
                None => HALF_TIME,
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

async fn pass_one_way<R: ByteStream, W: ByteStream>(
    (mut reader, from): (ReadHalf<R>, &CircuitEnd),
    (mut writer, to): (WriteHalf<W>, &CircuitEnd),
    first_bytes: &[u8],
    half: &HalfClosed,
) -> io::Result<()> {
    let mut is_open = true;
    let mut buffer = vec![0; BUFFER.max(first_bytes.len())];
    let mut length = first_bytes.len();
    buffer[..length].copy_from_slice(first_bytes);
    loop {
        let written = async {
            writer.write_all(&buffer[..length]).await?;
            writer.flush().await
        };
        if is_open {
            match written.await {
                Ok(()) => to.sent(length as u64),
                // The process reads no more. The other direction still passes on the last bytes of
                // the process, and its end; what comes for the process until then is dropped.
                Err(error) => {
                    to.note_write_error(error)?;
                    half.note();
                    is_open = false;
                }
            }
        }
        from.received(length as u64);
        let outcome = reader.read(&mut buffer).await;
        length = *outcome.as_ref().unwrap_or(&0);
        if length == 0 {
            half.note();
            from.after_last_byte(outcome.err()).await?;
            let closed = writer.shutdown().await;
            return if to.is_process() { Ok(()) } else { closed };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_gone_that_acknowledges_nothing_although_bytes_are_in_flight() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let seen = |bytes, in_flight, age| Acknowledgements {
            bytes,
            in_flight,
            age: Duration::from_secs(age),
        };
        let mut progress = AckProgress {
            bytes: 0,
            since: begin,
        };
        // An idle connection, or one to a process that reads nothing.
        assert!(!progress.note(seen(10, false, 100), after(100)));
        // The first bytes after a long silence.
        assert!(!progress.note(seen(10, true, 101), after(101)));
        assert!(!progress.note(seen(10, true, 103), after(103)));
        assert!(progress.note(seen(10, true, 104), after(104)));
        // Something was acknowledged, or at least an acknowledgement has come.
        assert!(!progress.note(seen(11, true, 0), after(105)));
        assert!(!progress.note(seen(11, true, 7), after(112)));
        assert!(progress.note(seen(11, true, 8), after(113)));
    }

    #[test]
    fn a_name_waits_for_a_place_and_an_address_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let lookups = Arc::new(Semaphore::new(1));
            let place = lookups.clone().acquire_owned().await.unwrap();
            let look_up = |host| look_up(host, 7, lookups.clone());
            let own: SocketAddr = "[::1]:7".parse().unwrap();
            assert_eq!(look_up("::1").await.unwrap(), [own]);
            let short = Duration::from_millis(20);
            assert!(timeout(short, look_up("localhost")).await.is_err());
            drop(place);
            assert!(!look_up("localhost").await.unwrap().is_empty());
            assert_eq!(lookups.available_permits(), 1);
        });
    }
}
