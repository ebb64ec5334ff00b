//! `titin forward`: a host in the middle of a line that passes the connections of paths on to another host.
//!
//! The host has no key, and looks at no byte; those of sessions it could not read. Each half of the line has
//! connections of its own, so each recovers from its own losses, in its own round trip.
//!
//! What happens to one half is told to the other one as it happened: an end by an end, and a loss by a reset. So the
//! sessions at the two ends of the line know whether to connect again.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt;
use titin_os::{host, sockets};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};
use tracing::{info, warn};

use crate::daemon::{self, ACCEPT_PAUSE};

/// The most connections at a time, each of two sockets.
const MOST_CONNECTIONS: usize = 1024;

/// Bytes on their way inside of this process, for each direction of a connection.
const BUFFER: usize = 256 << 10;

/// How long the other host may take to accept.
const CONNECTING_TIME: Duration = Duration::from_secs(20);

/// How long one direction may go on alone.
const HALF_TIME: Duration = Duration::from_secs(10);

/// How many connections may wait in the queue of the system.
const BACKLOG: u32 = 4096;

/// After this time without a sign of a host its idle connections are lost.
const SILENCE: Duration = Duration::from_secs(30);

/// How often the log has the figures, while there is something to tell.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Why connections are not passed on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The place is not known, or in use.
    #[error("cannot listen at {0}: {1}")]
    Listen(String, io::Error),
    /// The text is no place to connect to.
    #[error("'{0}' is no address: write HOST:PORT, and [ADDRESS]:PORT for IPv6")]
    NoAddress(String),
    /// The place to connect to is the place to listen at.
    #[error("{0} is this process itself: give the address of the next host")]
    Itself(String),
    /// The system refuses descriptors or threads.
    #[error("cannot begin: {0}")]
    Begin(#[from] io::Error),
}

/// Passes connections to the place `from` on to the place `to`, both `HOST:PORT`, until this process is told to end.
///
/// # Errors
/// If it cannot begin.
pub fn serve(from: &str, to: &str) -> Result<(), ForwardError> {
    let runtime = daemon::start()?;
    let served = runtime.block_on(async {
        let told = Signals::new()?;
        let listener = listen(from, to).await?;
        let address = listener.local_addr()?;
        info!(%address, to, "passes connections on");
        let forward = Arc::new(Forward::new(to));
        // Connections that are lost tell both ends to connect again.
        forward.clone().accept(listener, told).await;
        forward.report("ends");
        Ok(())
    });
    // A look-up of a name may hang.
    runtime.shutdown_background();
    served
}

/// Listens at a place.
///
/// # Errors
/// If the place is not known or in use, or if it is also the place to connect to.
async fn listen(from: &str, to: &str) -> Result<TcpListener, ForwardError> {
    let refused = |error| ForwardError::Listen(from.to_owned(), error);
    let listener = bind(from).await.map_err(refused)?;
    let own = listener.local_addr().map_err(refused)?;
    let port = to.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(1..))) {
        return Err(ForwardError::NoAddress(to.to_owned()));
    }
    let is_here = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_loopback() || host::addresses().contains(&ip),
        IpAddr::V6(ip) => ip.is_loopback(),
    };
    let is_own = |place: SocketAddr| {
        let is_everywhere = own.ip().is_unspecified() && is_here(place.ip());
        place.port() == own.port() && (place.ip() == own.ip() || is_everywhere)
    };
    let places = lookup_host(to).await;
    match places.is_ok_and(|mut places| places.any(is_own)) {
        true => Err(ForwardError::Itself(to.to_owned())),
        false => Ok(listener),
    }
}

async fn bind(place: &str) -> io::Result<TcpListener> {
    let mut failure = io::Error::other("the host has no address");
    for address in lookup_host(place).await? {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Connections of an earlier process at the port may linger.
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The signals that tell this process to end: Ctrl-C, that of service managers, and the end of its terminal.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> io::Result<Self> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Signals([interrupt?, terminate?, hangup?]))
    }

    /// Returns once one of them has come.
    async fn come(&mut self) {
        let Signals([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// What the connections share.
struct Forward {
    to: String,
    connections: Arc<Semaphore>,
    total: AtomicU64,
    /// Bytes to the place `to`, and back.
    there: AtomicU64,
    back: AtomicU64,
    /// The connections in a row to which the other host was not there.
    refused: AtomicU64,
}

impl Forward {
    fn new(to: &str) -> Self {
        Forward {
            to: to.to_owned(),
            connections: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            total: AtomicU64::new(0),
            there: AtomicU64::new(0),
            back: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes connections until this process is told to end, which ends them.
    async fn accept(self: Arc<Self>, listener: TcpListener, mut told: Signals) {
        let mut tasks = JoinSet::new();
        // The oldest first.
        let mut silent: VecDeque<SilentConnection> = VecDeque::new();
        let mut was_full = false;
        let mut reports = interval(REPORT_INTERVAL);
        let mut reported = 0;
        loop {
            // Those that come too many wait in the queue of the system.
            let is_full = self.connections.available_permits() == 0;
            if is_full && !was_full {
                warn!(
                    "{MOST_CONNECTIONS} connections are open: silent ones are closed, and further ones wait"
                );
            }
            was_full = is_full;
            silent.retain(SilentConnection::is_silent);
            // A path that is opened says something at once.
            if is_full && let Some(oldest) = silent.pop_front() {
                oldest.task.abort();
            }
            let place = self.connections.clone().acquire_owned();
            let accepted = async { (place.await, listener.accept().await) };
            tokio::select! {
                (place, accepted) = accepted => match (place, accepted) {
                    (Ok(place), Ok((near, _))) => {
                        let (forward, sent) = (self.clone(), Arc::new(AtomicU64::new(0)));
                        let passed = sent.clone();
                        let task = tasks.spawn(async move {
                            forward.pass_on(near, &passed).await;
                            drop(place);
                        });
                        silent.push_back(SilentConnection { sent, task });
                    }
                    _ => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = tasks.join_next() => {}
                () = told.come() => return tasks.shutdown().await,
                _ = reports.tick() => {
                    let bytes = self.there.load(Ordering::Relaxed) + self.back.load(Ordering::Relaxed);
                    if std::mem::replace(&mut reported, bytes) != bytes {
                        self.report("passes connections on");
                    }
                }
            }
        }
    }

    fn report(&self, what: &str) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        info!(
            to = self.to,
            open = MOST_CONNECTIONS - self.connections.available_permits(),
            total = load(&self.total),
            bytes_there = load(&self.there),
            bytes_back = load(&self.back),
            "{what}"
        );
    }

    /// Passes a connection on. Adds to `sent` what it sends to the other host.
    async fn pass_on(&self, near: TcpStream, sent: &AtomicU64) {
        let mut connection = Connection {
            near,
            far: None,
            is_over: false,
        };
        let connected = timeout(CONNECTING_TIME, TcpStream::connect(&self.to)).await;
        let why = match connected {
            Ok(Ok(far)) => {
                if self.refused.swap(0, Ordering::Relaxed) > 0 {
                    info!(to = self.to, "the other host answers again");
                }
                connection.far = Some(far);
                self.total.fetch_add(1, Ordering::Relaxed);
                let add = |count: &AtomicU64, bytes| {
                    count.fetch_add(bytes, Ordering::Relaxed);
                };
                let there = |bytes| {
                    add(&self.there, bytes);
                    add(sent, bytes);
                };
                connection.pass(there, |bytes| add(&self.back, bytes)).await;
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {} s", CONNECTING_TIME.as_secs()),
        };
        // One line, however often the ends try.
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(to = self.to, why, "the other host cannot be reached");
        }
    }
}

/// A connection that has sent nothing yet.
struct SilentConnection {
    /// The bytes that it has sent.
    sent: Arc<AtomicU64>,
    task: AbortHandle,
}

impl SilentConnection {
    /// Whether it is open and has still sent nothing.
    fn is_silent(&self) -> bool {
        self.sent.load(Ordering::Relaxed) == 0 && !self.task.is_finished()
    }
}

/// A connection of two halves. If it is dropped before it is over, both hosts hear of a loss.
struct Connection {
    near: TcpStream,
    far: Option<TcpStream>,
    is_over: bool,
}

impl Connection {
    /// Passes bytes on both ways until both are over.
    async fn pass(&mut self, note_there: impl Fn(u64), note_back: impl Fn(u64)) {
        let Some(far) = &mut self.far else {
            return;
        };
        for socket in [&self.near, &*far] {
            sockets::prepare_tcp(socket);
            sockets::set_keepalive(socket, SILENCE);
        }
        let (near_in, near_out) = self.near.split();
        let (far_in, far_out) = far.split();
        let (there, back) = (
            copy(near_in, far_out, note_there),
            copy(far_in, near_out, note_back),
        );
        self.is_over = both(there, back).await.is_ok();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_over {
            for socket in [Some(&self.near), self.far.as_ref()].into_iter().flatten() {
                let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
            }
        }
    }
}

/// Waits for both directions. Once one is over, the other one has [`HALF_TIME`].
async fn both(
    there: impl Future<Output = io::Result<()>>,
    back: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let (mut there, mut back) = (std::pin::pin!(there), std::pin::pin!(back));
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    tokio::select! {
        over = &mut there => {
            over?;
            timeout(HALF_TIME, back).await.map_err(late)?
        }
        over = &mut back => {
            over?;
            timeout(HALF_TIME, there).await.map_err(late)?
        }
    }
}

/// Passes the bytes of one direction on, and then its end. Calls `note` with each number of bytes.
async fn copy(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, note: impl Fn(u64)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer).await? {
            0 => return to.shutdown().await,
            count => {
                to.write_all(&buffer[..count]).await?;
                note(count as u64);
            }
        }
    }
}
