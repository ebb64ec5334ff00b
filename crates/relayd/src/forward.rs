//! `titin forward`: a host in the middle of a line that passes the connections of paths on to another host.
//!
//! The host has no key, and looks at no byte. Each half of the line has connections of its own, so each recovers from
//! its own losses, in its own round trip.
//!
//! What happens to one half is told to the other one as it happened: an end by an end, and a loss by a reset. So the
//! sessions at the two ends of the line know whether to connect again.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use titin_os::sockets;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};
use tracing::{info, warn};

use crate::daemon;

/// The most connections at a time, each of two sockets.
const MOST_CONNECTIONS: usize = 1024;

/// Bytes on their way inside of this process, for each direction of a connection.
const BUFFER: usize = 256 << 10;

/// How long the other host may take to accept.
const CONNECTING_TIME: Duration = Duration::from_secs(20);

/// How long one direction may go on alone.
const HALF_TIME: Duration = Duration::from_secs(60);

/// After this time without a sign of a host its connections are lost.
const SILENCE: Duration = Duration::from_secs(30);

/// How long no connections are accepted when the system has no descriptors for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the log has the figures, while there is something to tell.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Why connections are not passed on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The place is not known, or in use.
    #[error("cannot listen at {0}: {1}")]
    Listen(String, io::Error),
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
    runtime.block_on(async {
        let listener = listen(from, to).await?;
        let address = listener.local_addr()?;
        info!(%address, to, "passes connections on");
        let forward = Arc::new(Forward::new(to));
        let served = tokio::spawn(forward.clone().accept(listener));
        until_told().await?;
        // Connections that are lost tell both ends to connect again.
        served.abort();
        let _ = served.await;
        forward.connections.close();
        forward.report("ends");
        Ok(())
    })
}

/// Listens at a place.
///
/// # Errors
/// If the place is not known or in use, or if it is also the place to connect to.
async fn listen(from: &str, to: &str) -> Result<TcpListener, ForwardError> {
    let refused = |error| ForwardError::Listen(from.to_owned(), error);
    let listener = TcpListener::bind(from).await.map_err(refused)?;
    let own = listener.local_addr().map_err(refused)?;
    let is_own = |place: SocketAddr| {
        let is_everywhere = own.ip().is_unspecified() && place.ip().is_loopback();
        place.port() == own.port() && (place.ip() == own.ip() || is_everywhere)
    };
    let places = lookup_host(to).await;
    match places.is_ok_and(|mut places| places.any(is_own)) {
        true => Err(ForwardError::Itself(to.to_owned())),
        false => Ok(listener),
    }
}

/// Returns once this process is told to end.
async fn until_told() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// What the connections share.
struct Forward {
    to: String,
    connections: Arc<Semaphore>,
    open: AtomicUsize,
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
            open: AtomicUsize::new(0),
            total: AtomicU64::new(0),
            there: AtomicU64::new(0),
            back: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes connections, for ever. The connections end with the returned future.
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut tasks = tokio::task::JoinSet::new();
        let mut reports = interval(REPORT_INTERVAL);
        let mut reported = 0;
        loop {
            // Those that come too many wait in the queue of the system.
            let place = self.connections.clone().acquire_owned();
            let accepted = async { (place.await, listener.accept().await) };
            tokio::select! {
                (place, accepted) = accepted => match (place, accepted) {
                    (Ok(place), Ok((near, _))) => {
                        let forward = self.clone();
                        tasks.spawn(async move {
                            forward.pass_on(near).await;
                            drop(place);
                        });
                    }
                    _ => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = tasks.join_next() => {}
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
            open = self.open.load(Ordering::Relaxed),
            total = load(&self.total),
            bytes_there = load(&self.there),
            bytes_back = load(&self.back),
            "{what}"
        );
    }

    async fn pass_on(&self, near: TcpStream) {
        let mut connection = Connection {
            near,
            far: None,
            is_over: false,
        };
        let begun = Instant::now();
        let connected = timeout(CONNECTING_TIME, TcpStream::connect(&self.to)).await;
        let why = match connected {
            Ok(Ok(far)) => {
                if self.refused.swap(0, Ordering::Relaxed) > 0 {
                    info!(to = self.to, "the other host answers again");
                }
                connection.far = Some(far);
                self.total.fetch_add(1, Ordering::Relaxed);
                self.open.fetch_add(1, Ordering::Relaxed);
                connection.pass(&self.there, &self.back).await;
                self.open.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {:.0} s", begun.elapsed().as_secs_f64()),
        };
        // One line, however often the ends try.
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(to = self.to, why, "the other host cannot be reached");
        }
    }
}

/// A connection of two halves. If it is dropped before it is over, both hosts hear of a loss.
struct Connection {
    near: TcpStream,
    far: Option<TcpStream>,
    is_over: bool,
}

impl Connection {
    /// Passes bytes on both ways until both are over, and adds them to the counts.
    async fn pass(&mut self, there: &AtomicU64, back: &AtomicU64) {
        let Some(far) = &mut self.far else {
            return;
        };
        for socket in [&self.near, &*far] {
            sockets::prepare_tcp(socket);
            sockets::set_keepalive(socket, SILENCE);
            let _ = sockopt::set_tcp_user_timeout(socket, SILENCE.as_millis() as u32);
        }
        let (near_in, near_out) = self.near.split();
        let (far_in, far_out) = far.split();
        let (there, back) = (copy(near_in, far_out, there), copy(far_in, near_out, back));
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

/// Passes the bytes of one direction on, and then its end.
async fn copy(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, passed: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer).await? {
            0 => return to.shutdown().await,
            count => {
                to.write_all(&buffer[..count]).await?;
                passed.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    }
}
