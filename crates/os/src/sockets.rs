//! Options of sockets, and the process at the other end.

use std::os::fd::AsFd;

use nix::libc;
use nix::sys::socket::{SetSockOpt as _, sockopt::SetStruct};
use rustix::net::sockopt;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::Descriptor;

/// Sets the options of every TCP socket of titin: small messages leave at once, and the system
/// notices a vanished host even without traffic.
pub fn prepare_tcp(socket: impl AsFd) {
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    let _ = sockopt::set_socket_keepalive(&socket, true);
}

/// Has the system send at most `rate` bytes a second.
pub fn set_pacing_rate(socket: impl AsFd, rate: u64) {
    let _ = PacingRate.set(&socket, &rate);
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
