//! Circuits: the way from a process, or a relay, on to the next relay or to the listener itself, and
//! the bytes on it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use titin_os::sockets;
use titin_relay::CIRCUIT_MEMORY;
use titin_wire::circuit::{CircuitRefusal, Destination};
use titin_wire::handshake::{HELLO, MAGIC, is_for_session};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use crate::messages::LinePurpose;
use crate::peers::{CircuitPlace, Peer};
use crate::server::{Relay, hex};

/// Bytes of a circuit that are on their way inside of the relay, in each direction.
const BUFFER: usize = 128 << 10;

// The rest is for the buffers of TLS.
const _: () = assert!(2 * BUFFER + (64 << 10) == CIRCUIT_MEMORY);

/// How long a listener of the site may take to accept.
const LISTENER_TIME: Duration = Duration::from_secs(10);

/// How long the two ends of a session may take to greet each other.
const GREETING_TIME: Duration = Duration::from_secs(20);

/// How long one direction of a circuit may go on alone.
const HALF_TIME: Duration = Duration::from_secs(30);

/// How often the counts of a line are read.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

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
    /// The next relay.
    line: Option<PeerLine>,
    /// The place of the circuit among those of the next relay.
    _place: Option<CircuitPlace>,
    /// Whether the far side is the listener.
    is_listener: bool,
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

/// Opens the way to a listener. `from` is the site of the relay that asks, if one does.
pub(crate) async fn open(
    relay: &Arc<Relay>,
    run: u64,
    destination: &Destination,
    from: Option<&str>,
) -> Result<FarSide, CircuitRefusal> {
    let site = &destination.site;
    if !relay.runs.has_site(run, site) {
        return Err(CircuitRefusal::passing(format!(
            "the run {} is not for the site {site}",
            hex(run)
        )));
    }
    if *site == relay.site {
        return open_to_listener(destination).await;
    }
    let peer = relay.peer_towards(site).ok_or_else(|| {
        CircuitRefusal::lasting(format!(
            "the relay of the site {} knows no way to the site {site}: `titin relay trust {site}` adds it",
            relay.site
        ))
    })?;
    if from == Some(peer.site()) {
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
    };
    let (stream, first_bytes) = peer.connect(relay, purpose).await?;
    let line = PeerLine::of(&peer, &stream);
    Ok(FarSide {
        line: Some(line.map_err(|error| CircuitRefusal::passing(error.to_string()))?),
        stream: Box::new(stream),
        first_bytes,
        _place: Some(place),
        is_listener: false,
    })
}

async fn open_to_listener(
    Destination { host, port, .. }: &Destination,
) -> Result<FarSide, CircuitRefusal> {
    let connecting = TcpStream::connect((host.as_str(), *port));
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
        stream: Box::new(stream),
        first_bytes: Vec::new(),
        line: None,
        _place: None,
        is_listener: true,
    })
}

/// Passes bytes both ways until both directions have ended, or one has failed. `first_bytes` came
/// from the near side already, and `line` is the near side's if it is a relay.
///
/// # Errors
/// If a side fails. The caller closes both.
pub(crate) async fn pass(
    mut near: impl ByteStream,
    first_bytes: &[u8],
    near_line: Option<PeerLine>,
    mut far: FarSide,
) -> io::Result<()> {
    let mut first_bytes = first_bytes.to_vec();
    if far.is_listener {
        let greeting = greet_listener(&mut near, &mut first_bytes, &mut far);
        match timeout(GREETING_TIME, greeting).await {
            Ok(greeted) => greeted?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    let FarSide {
        stream,
        first_bytes: far_bytes,
        line: far_line,
        _place,
        ..
    } = far;
    let (near_line, far_line) = (near_line.as_ref(), far_line.as_ref());
    let lines = || near_line.into_iter().chain(far_line);
    let (near_in, near_out) = tokio::io::split(near);
    let (far_in, far_out) = tokio::io::split(stream);
    let half = HalfClosed::default();
    let there = pass_one_way(near_in, far_out, &first_bytes, &half, |count| {
        near_line.inspect(|line| line.received(count));
        far_line.inspect(|line| line.sent(count));
    });
    let back = pass_one_way(far_in, near_out, &far_bytes, &half, |count| {
        far_line.inspect(|line| line.received(count));
        near_line.inspect(|line| line.sent(count));
    });
    let passing = async { tokio::try_join!(there, back).map(drop) };
    tokio::pin!(passing);
    let outcome = loop {
        tokio::select! {
            outcome = &mut passing => break outcome,
            () = half.lasts() => break Err(io::ErrorKind::TimedOut.into()),
            () = revoked(near_line) => break Err(io::ErrorKind::ConnectionAborted.into()),
            () = revoked(far_line) => break Err(io::ErrorKind::ConnectionAborted.into()),
            () = tokio::time::sleep(COUNT_INTERVAL) => {
                lines().for_each(PeerLine::count_retransmissions);
            }
        }
    };
    lines().for_each(PeerLine::count_retransmissions);
    outcome
}

/// Returns once the peer of a line is trusted no more.
async fn revoked(line: Option<&PeerLine>) {
    match line {
        Some(line) => line.peer.revoked().await,
        None => std::future::pending().await,
    }
}

/// Passes the greetings of the two ends of a session on, and nothing else: a circuit leads to
/// processes of runs, and to no other listener of the site.
async fn greet_listener(
    near: &mut impl ByteStream,
    first_bytes: &mut Vec<u8>,
    far: &mut FarSide,
) -> io::Result<()> {
    let refused = || io::Error::other("the circuit is not used for a session");
    while first_bytes.len() < HELLO {
        if near.read_buf(first_bytes).await? == 0 {
            return Err(refused());
        }
    }
    let hello = first_bytes.first_chunk().ok_or_else(refused)?;
    if !is_for_session(hello) {
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
    mut reader: ReadHalf<R>,
    mut writer: WriteHalf<W>,
    first_bytes: &[u8],
    half: &HalfClosed,
    count: impl Fn(u64),
) -> io::Result<()> {
    if !first_bytes.is_empty() {
        writer.write_all(first_bytes).await?;
        writer.flush().await?;
    }
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            half.note();
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..length]).await?;
        writer.flush().await?;
        count(length as u64);
    }
}
