//! One socket from its first byte: connecting, shaking hands, then a link.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};
use titin_wire::Secret;
use titin_wire::handshake::{Agreement, Handshake, Purpose};

use crate::Lost;
use crate::tcp::{Link, LinkId, Reader};

/// How long one address may take to answer, handshake included.
const DIAL_TIME: Duration = Duration::from_secs(10);

/// A socket of the reactor's.
pub(super) enum Connection {
    /// On its way to a link.
    Pending(Box<Pending>),
    /// A link, and what reads it.
    Open(Arc<Link>, Box<Reader>),
}

/// A socket whose ends have not proved themselves yet.
pub(super) struct Pending {
    pub(super) socket: OwnedFd,
    pub(super) deadline: Instant,
    peer: SocketAddr,
    /// What we wanted when we dialled; `None` for a stranger that has come to a listener.
    dialled: Option<Dialled>,
    /// The handshake, once connected, and bytes that came behind it.
    shake: Option<(Handshake, Vec<u8>)>,
}

struct Dialled {
    purpose: Purpose,
    tag: u128,
    others: Vec<SocketAddr>,
}

/// What to do next with a pending connection.
pub(super) enum Step {
    /// Wait until something comes in.
    Wait,
    /// The next address is being tried, on a new socket.
    Redial,
    /// Both ends have proved themselves.
    Agreed(Agreement),
}

impl Pending {
    /// Begins to connect to the first of the addresses that can be tried.
    pub(super) fn dial(mut addresses: Vec<SocketAddr>, purpose: Purpose, tag: u128) -> Result<Self, Lost> {
        let peer = addresses.remove(0);
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket =
            net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        prepare(&socket);
        match net::connect(&socket, &peer) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(_) if !addresses.is_empty() => return Self::dial(addresses, purpose, tag),
            Err(error) => return Err(Lost::Unreachable(format!("{peer}: {error}"))),
        }
        let dialled = Some(Dialled { purpose, tag, others: addresses });
        Ok(Pending { socket, deadline: Instant::now() + DIAL_TIME, peer, dialled, shake: None })
    }

    /// A stranger that has come to a listener.
    pub(super) fn accepted(socket: OwnedFd, secret: &Secret, deadline: Instant) -> Self {
        prepare(&socket);
        let peer =
            net::getpeername(&socket).ok().flatten().and_then(|address| SocketAddr::try_from(address).ok());
        let peer = peer.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        let shake = Some((Handshake::listen(secret.clone()), Vec::new()));
        Pending { socket, deadline, peer, dialled: None, shake }
    }

    /// Whether it has come to us.
    pub(super) fn stranger(&self) -> bool {
        self.dialled.is_none()
    }

    /// What the dialler told us to remember.
    pub(super) fn tag(&self) -> Option<u128> {
        self.dialled.as_ref().map(|dialled| dialled.tag)
    }

    /// Goes on with what the socket has to say.
    ///
    /// # Errors
    /// [`Lost`] if this connection comes to nothing.
    pub(super) fn advance(&mut self, secret: &Secret) -> Result<Step, Lost> {
        let Some((shake, ahead)) = &mut self.shake else { return self.connected(secret) };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&self.socket, &mut bytes) {
            Ok(0) => return Err(Lost::Closed),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Step::Wait),
            Err(error) => return Err(error.into()),
        };
        let progress = shake.advance(&bytes[..count])?;
        ahead.extend_from_slice(&bytes[progress.used..count]);
        write_whole(&self.socket, &progress.reply)?;
        Ok(progress.agreed.map_or(Step::Wait, Step::Agreed))
    }

    fn connected(&mut self, secret: &Secret) -> Result<Step, Lost> {
        let dialled = self.dialled.as_mut().expect("only who dials connects");
        if let Err(error) = sockopt::socket_error(&self.socket)? {
            if dialled.others.is_empty() {
                return Err(Lost::Unreachable(format!("{}: {error}", self.peer)));
            }
            *self = Pending::dial(std::mem::take(&mut dialled.others), dialled.purpose, dialled.tag)?;
            return Ok(Step::Redial);
        }
        let (shake, hello) = Handshake::dial(secret.clone(), dialled.purpose);
        write_whole(&self.socket, &hello)?;
        self.shake = Some((shake, Vec::new()));
        Ok(Step::Wait)
    }

    /// The link that it has become, after the handshake.
    pub(super) fn open(self, id: LinkId, epoll: &Arc<OwnedFd>) -> (Arc<Link>, Box<Reader>) {
        let ahead = self.shake.map(|(_, ahead)| ahead).unwrap_or_default();
        let tag = self.dialled.map(|dialled| dialled.tag);
        (Arc::new(Link::new(id, tag, self.peer, self.socket, epoll)), Box::new(Reader::new(&ahead)))
    }
}

impl Connection {
    /// When it must be open, if it is not.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Connection::Pending(pending) => Some(pending.deadline),
            Connection::Open(..) => None,
        }
    }
}

/// Options that every TCP socket of ours has.
fn prepare(socket: &OwnedFd) {
    // Small messages are not held back; a host that vanishes is noticed even without traffic.
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
}

/// Writes the few bytes of a handshake, which always fit a fresh socket's buffer.
fn write_whole(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Lost> {
    if !bytes.is_empty() && net::send(socket, bytes, SendFlags::NOSIGNAL)? != bytes.len() {
        return Err(Lost::System("the socket does not take a handshake".to_owned()));
    }
    Ok(())
}
