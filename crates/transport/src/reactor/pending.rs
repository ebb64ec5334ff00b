//! A socket before it is a link: connecting, and shaking hands.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};
use titin_wire::Secret;
use titin_wire::handshake::{Agreement, Handshake, Purpose, Refusal};

use crate::Lost;
use crate::descriptors::Held;
use crate::tcp::{Inbound, Link, LinkId, Reader, Sinks};

/// How long one address may take to answer, handshake included.
const DIAL_TIME: Duration = Duration::from_secs(10);

/// A socket whose ends have not proved themselves yet.
pub(super) struct Pending {
    pub(super) socket: Held,
    pub(super) deadline: Instant,
    /// Whether it has said anything.
    pub(super) heard: bool,
    /// What we wanted when we dialled; `None` for a stranger that has come to a listener.
    dialled: Option<Dialled>,
    /// The handshake, once connected, and bytes that came behind it.
    shake: Option<(Handshake, Vec<u8>)>,
}

/// A wish for a link: addresses that may serve, tried one after the other.
pub(super) struct Dialled {
    purpose: Purpose,
    tag: u128,
    untried: VecDeque<SocketAddr>,
    /// The one that is being tried.
    trying: Option<SocketAddr>,
    failures: Vec<(SocketAddr, Lost)>,
}

/// What to do next with a pending connection.
pub(super) enum Step {
    /// Wait until something comes in.
    Wait,
    /// Both ends have proved themselves.
    Agreed(Agreement),
}

impl Dialled {
    pub(super) fn new(addresses: Vec<SocketAddr>, purpose: Purpose, tag: u128) -> Self {
        Dialled { purpose, tag, untried: addresses.into(), trying: None, failures: Vec::new() }
    }

    /// Begins to connect to the next address that can be tried.
    ///
    /// # Errors
    /// The tag, and what to tell, if there is none.
    pub(super) fn next(mut self) -> Result<Pending, (u128, Lost)> {
        while let Some(peer) = self.untried.pop_front() {
            match connect(peer) {
                Ok(socket) => {
                    let deadline = Instant::now() + DIAL_TIME;
                    self.trying = Some(peer);
                    return Ok(Pending { socket, deadline, heard: false, dialled: Some(self), shake: None });
                }
                Err(error) => self.failures.push((peer, error.into())),
            }
        }
        Err((self.tag, self.verdict()))
    }

    /// Why there is no link. That a titin was there but refused says more than that others were not.
    fn verdict(self) -> Lost {
        let telling = |why: &&Lost| matches!(why, Lost::Refused(Refusal::Secret | Refusal::Versions { .. }));
        if let Some(refused) = self.failures.iter().map(|(_, why)| why).find(telling) {
            return refused.clone();
        }
        let list: Vec<String> = self.failures.iter().map(|(peer, why)| format!("{peer}: {why}")).collect();
        Lost::Unreachable(list.join("; "))
    }
}

impl Pending {
    /// A stranger that has come to a listener.
    pub(super) fn accepted(socket: Held, secret: &Secret, deadline: Instant) -> Self {
        prepare(&socket);
        let shake = Some((Handshake::listen(secret.clone()), Vec::new()));
        Pending { socket, deadline, heard: false, dialled: None, shake }
    }

    /// Whether it has come to us.
    pub(super) fn stranger(&self) -> bool {
        self.dialled.is_none()
    }

    /// Gives this socket up. What was dialled goes on with its next address, if it was dialled.
    pub(super) fn give_up(self, why: Lost) -> Option<Dialled> {
        let mut dialled = self.dialled?;
        dialled.failures.extend(dialled.trying.take().map(|peer| (peer, why)));
        Some(dialled)
    }

    /// Goes on with what the socket has to say.
    ///
    /// # Errors
    /// [`Lost`] if this connection comes to nothing.
    pub(super) fn advance(&mut self, secret: &Secret) -> Result<Step, Lost> {
        let Some((shake, ahead)) = &mut self.shake else { return self.connected(secret) };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&self.socket, &mut bytes) {
            Ok(0) | Err(Errno::CONNRESET) => return Err(shake.cut().map_or(Lost::Closed, Lost::Refused)),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Step::Wait),
            Err(error) => return Err(error.into()),
        };
        self.heard = true;
        let progress = shake.advance(&bytes[..count])?;
        ahead.extend_from_slice(&bytes[progress.used..count]);
        write_whole(&self.socket, &progress.reply)?;
        Ok(progress.agreed.map_or(Step::Wait, Step::Agreed))
    }

    fn connected(&mut self, secret: &Secret) -> Result<Step, Lost> {
        sockopt::socket_error(&self.socket)??;
        let dialled = self.dialled.as_ref().expect("only who dials connects");
        let (shake, hello) = Handshake::dial(secret.clone(), dialled.purpose);
        write_whole(&self.socket, &hello)?;
        self.shake = Some((shake, Vec::new()));
        Ok(Step::Wait)
    }

    /// The link that it has become, after the handshake.
    pub(super) fn open(self, id: LinkId, epoll: &Arc<Held>, sinks: &Arc<Sinks>) -> Arc<Link> {
        let ahead = self.shake.map(|(_, ahead)| ahead).unwrap_or_default();
        let tag = self.dialled.map(|dialled| dialled.tag);
        Link::new(id, tag, self.socket, epoll, Inbound::new(Reader::new(&ahead), sinks))
    }
}

fn connect(peer: SocketAddr) -> Result<Held, Errno> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Held::from(net::socket_with(family, SocketType::STREAM, flags, None)?);
    prepare(&socket);
    match net::connect(&socket, &peer) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Options that every TCP socket of ours has.
fn prepare(socket: &Held) {
    // Small messages are not held back; a host that vanishes is noticed even without traffic.
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
}

/// Writes the few bytes of a handshake, which always fit a fresh socket's buffer.
fn write_whole(socket: &Held, bytes: &[u8]) -> Result<(), Lost> {
    if !bytes.is_empty() && net::send(socket, bytes, SendFlags::NOSIGNAL)? != bytes.len() {
        return Err(Lost::System("the socket does not take a handshake".to_owned()));
    }
    Ok(())
}
