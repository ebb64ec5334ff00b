//! Options of sockets, and the process at the other end.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::libc;
use nix::sys::socket::sockopt::{GetStruct, SetStruct};
use nix::sys::socket::{GetSockOpt as _, SetSockOpt as _};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{PidfdFlags, pidfd_open};

use crate::Descriptor;

/// Sets the options of every TCP socket of titin: small messages leave at once, and the system
/// notices a vanished host even without traffic.
pub fn prepare_tcp(socket: impl AsFd) {
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    let _ = sockopt::set_socket_keepalive(&socket, true);
}

/// Sets TCP keepalive, so that the system closes an idle connection within `time` if the host at
/// the other end is gone. While bytes are in flight keepalive does not run: see
/// [`acknowledgements`].
pub fn set_keepalive(socket: impl AsFd, time: Duration) {
    const PROBES: u32 = 4;
    // The system counts in whole seconds.
    let interval = Duration::from_secs((time.as_secs() / 8).max(1));
    let _ = sockopt::set_socket_keepalive(&socket, true);
    let _ = sockopt::set_tcp_keepidle(&socket, time.saturating_sub(PROBES * interval));
    let _ = sockopt::set_tcp_keepintvl(&socket, interval);
    let _ = sockopt::set_tcp_keepcnt(&socket, PROBES);
}

/// What the other end of a TCP connection has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgements {
    /// Bytes, since the connection began.
    pub bytes: u64,
    /// Whether bytes are sent and not acknowledged.
    pub in_flight: bool,
    /// How long ago the last acknowledgement came.
    pub age: Duration,
}

/// What the other end has acknowledged; `None` for sockets other than TCP.
pub fn acknowledgements(socket: impl AsFd) -> Option<Acknowledgements> {
    let info = TcpInfo.get(&socket).ok()?;
    Some(Acknowledgements {
        bytes: info.tcpi_bytes_acked,
        in_flight: info.tcpi_unacked > 0,
        age: Duration::from_millis(info.tcpi_last_ack_recv.into()),
    })
}

/// A TCP socket whose calls do not wait, for a connection or a listener.
///
/// # Errors
/// If the system refuses a descriptor.
pub fn new_tcp(ip: IpAddr) -> io::Result<OwnedFd> {
    let family = match ip {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Begins a connection, without waiting for the other end.
///
/// # Errors
/// If the system knows at once that there is no way.
pub fn begin_connection(socket: impl AsFd, address: &SocketAddr) -> io::Result<()> {
    match net::connect(socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the first address of a host that accepts within the time `accepting`. Each answer is then
/// waited for as long as `answering`.
///
/// # Errors
/// If the host is not known, or the error of its last address.
pub fn connect(
    place: impl ToSocketAddrs,
    accepting: Duration,
    answering: Duration,
) -> io::Result<TcpStream> {
    let mut failure = io::Error::other("the host is not known here");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, accepting) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(answering))?;
                return Ok(stream);
            }
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

/// The addresses of the two ends of a TCP connection, with that of this host first; `None` for other
/// sockets.
pub fn addresses_of_ends(socket: impl AsFd) -> Option<[IpAddr; 2]> {
    let own = SocketAddr::try_from(net::getsockname(&socket).ok()?).ok()?;
    let peer = SocketAddr::try_from(net::getpeername(&socket).ok()??).ok()?;
    Some([own.ip(), peer.ip()])
}

/// The congestion control of new TCP connections; `None` if the system does not say.
pub fn default_congestion_control() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim().to_owned())
}

/// Sets the sizes of a socket's buffers, in bytes; `None` leaves a size as it is. The system may have a limit.
pub fn set_buffers(socket: impl AsFd, send: Option<u64>, receive: Option<u64>) {
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(1 << 30);
    send.map(|size| sockopt::set_socket_send_buffer_size(&socket, bytes(size)));
    receive.map(|size| sockopt::set_socket_recv_buffer_size(&socket, bytes(size)));
}

/// The sizes of a socket's buffers as the system has them: to send and to receive.
pub fn buffers(socket: impl AsFd) -> Option<[u64; 2]> {
    let send = sockopt::socket_send_buffer_size(&socket).ok()?;
    let receive = sockopt::socket_recv_buffer_size(&socket).ok()?;
    Some([send as u64, receive as u64])
}

/// The rate that stands for no limit.
pub const NO_PACING: u64 = u64::MAX;

/// Has the system send at most `rate` bytes a second, without a limit for [`NO_PACING`].
pub fn set_pacing_rate(socket: impl AsFd, rate: u64) {
    let _ = PacingRate.set(&socket, &rate);
}

/// How often the system has sent a packet of a TCP connection again; `None` for other sockets.
pub fn retransmissions(socket: impl AsFd) -> Option<u64> {
    let info = TcpInfo.get(&socket).ok()?;
    Some(info.tcpi_total_retrans.into())
}

/// The round trip that the system has measured on a TCP connection; `None` for other sockets.
pub fn round_trip(socket: impl AsFd) -> Option<Duration> {
    let info = TcpInfo.get(&socket).ok()?;
    (info.tcpi_rtt > 0).then(|| Duration::from_micros(info.tcpi_rtt.into()))
}

/// Whether the process at the other end of a Unix socket is known to belong to another user.
pub fn is_of_other_user(socket: impl AsFd) -> bool {
    let user = rustix::process::geteuid();
    sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid != user)
}

/// A descriptor of the process at the other end of a Unix socket, where the system gives such a
/// descriptor. The descriptor becomes readable when the process ends.
pub fn peer_process(socket: impl AsFd) -> Option<Descriptor> {
    let peer = sockopt::socket_peercred(socket).ok()?;
    Some(pidfd_open(peer.pid, PidfdFlags::empty()).ok()?.into())
}

/// The rate that [`set_pacing_rate`] has set, in bytes a second; `None` without a limit.
pub fn pacing_rate(socket: impl AsFd) -> Option<u64> {
    let rate = PacingRate.get(&socket).ok()?;
    (rate < NO_PACING).then_some(rate)
}

/// The system's own pacing. The network device needs no queueing discipline for the pacing.
#[derive(Clone, Copy)]
struct PacingRate;

nix::setsockopt_impl!(
    PacingRate,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64,
    SetStruct<u64>
);
nix::getsockopt_impl!(
    PacingRate,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64,
    GetStruct<u64>
);

/// The counts of a TCP connection.
#[derive(Clone, Copy)]
struct TcpInfo;

nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info,
    GetStruct<libc::tcp_info>
);
