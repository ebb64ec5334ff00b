//! A socket before it is a link: connecting, and shaking hands.

use std::collections::VecDeque;
use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, sockopt,
};
use titin_wire::Secret;
use titin_wire::frame::{Frame, HEADER, Header};
use titin_wire::handshake::{Agreement, Handshake, Purpose, Refusal};

use crate::Lost;
use crate::descriptors::Held;
use crate::shm::{Channel, Offer, Taken};
use crate::tcp::{self, Inbound, Link, LinkId, Reader, Sinks};

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
    /// Where memory is to be shared: how far that has come.
    sharing: Option<Sharing>,
}

/// Two processes on their way to shared memory.
#[derive(Default)]
struct Sharing {
    /// Descriptors that came and were not used yet.
    files: VecDeque<OwnedFd>,
    agreed: Option<Agreement>,
    offer: Option<Offer>,
    taken: Option<Taken>,
}

/// Where a process may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Tcp(SocketAddr),
    /// The file of a Unix socket, by which memory is shared.
    Shm(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => address.fmt(f),
            Target::Shm(path) => path.fmt(f),
        }
    }
}

/// A wish for a link: addresses that may serve, tried one after the other.
pub(super) struct Dialled {
    purpose: Purpose,
    tag: u128,
    untried: VecDeque<Target>,
    /// The one that is being tried.
    trying: Option<Target>,
    failures: Vec<(Target, Lost)>,
}

/// What to do next with a pending connection.
pub(super) enum Step {
    /// Wait until something comes in.
    Wait,
    /// Both ends have proved themselves.
    Agreed(Agreement),
}

impl Dialled {
    pub(super) fn new(addresses: Vec<Target>, purpose: Purpose, tag: u128) -> Self {
        Dialled { purpose, tag, untried: addresses.into(), trying: None, failures: Vec::new() }
    }

    /// Begins to connect to the next address that can be tried.
    ///
    /// # Errors
    /// The tag, and what to tell, if there is none.
    pub(super) fn next(mut self) -> Result<Pending, (u128, Lost)> {
        while let Some(peer) = self.untried.pop_front() {
            match connect(&peer) {
                Ok(socket) => {
                    let deadline = Instant::now() + DIAL_TIME;
                    let sharing = matches!(peer, Target::Shm(_)).then(Sharing::default);
                    self.trying = Some(peer);
                    let (heard, dialled, shake) = (false, Some(self), None);
                    return Ok(Pending { socket, deadline, heard, dialled, shake, sharing });
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

    /// Why memory is not shared, although it was tried.
    fn detour(&self) -> Option<String> {
        let tried = self.failures.iter().find(|(peer, _)| matches!(peer, Target::Shm(_)));
        tried.map(|(peer, why)| format!("{peer}: {why}"))
    }
}

impl Pending {
    /// A stranger that has come to a listener.
    pub(super) fn accepted(socket: Held, shares: bool, secret: &Secret, deadline: Instant) -> Self {
        if !shares {
            prepare(&socket);
        }
        let shake = Some((Handshake::listen(secret.clone()), Vec::new()));
        let sharing = shares.then(Sharing::default);
        Pending { socket, deadline, heard: false, dialled: None, shake, sharing }
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
        let read = match &mut self.sharing {
            None => tcp::read(&self.socket, &mut [IoSliceMut::new(&mut bytes)]),
            Some(sharing) => {
                tcp::read_with_files(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut sharing.files)
            }
        };
        let count = match read {
            Ok(0) => return Ok(Step::Wait),
            Ok(count) => count,
            Err(Lost::Closed) => return Err(shake.cut().map_or(Lost::Closed, Lost::Refused)),
            Err(why) => return Err(why),
        };
        self.heard = true;
        if let Some(sharing) = self.sharing.as_mut().filter(|sharing| sharing.agreed.is_some()) {
            ahead.extend_from_slice(&bytes[..count]);
            return sharing.advance(&self.socket, ahead);
        }
        let progress = shake.advance(&bytes[..count])?;
        ahead.extend_from_slice(&bytes[progress.used..count]);
        write_whole(&self.socket, &progress.reply)?;
        match (progress.agreed, &mut self.sharing) {
            (None, _) => Ok(Step::Wait),
            (Some(agreement), None) => Ok(Step::Agreed(agreement)),
            (Some(agreement), Some(sharing)) => {
                sharing.begin(&self.socket, agreement)?;
                sharing.advance(&self.socket, ahead)
            }
        }
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
        let tag = self.dialled.as_ref().map(|dialled| dialled.tag);
        let detour = self.dialled.and_then(|dialled| dialled.detour());
        let (files, shared) =
            self.sharing.map(|sharing| (sharing.files, (sharing.offer, sharing.taken))).unzip();
        let channel = |link: &Weak<Link>| {
            let (offer, taken) = shared?;
            let pool = sinks.exchange.as_ref()?.pool().clone();
            Some(Channel::new(offer?, taken?, pool, link.clone(), Arc::downgrade(sinks)))
        };
        let inbound = Inbound::new(Reader::new(&ahead), files.unwrap_or_default(), sinks);
        Link::new(id, tag, self.socket, epoll, inbound, channel, detour)
    }
}

impl Sharing {
    /// Offers memory to the peer, which has just proved itself.
    fn begin(&mut self, socket: &Held, agreement: Agreement) -> Result<(), Lost> {
        let offer = Offer::new()?;
        let (frame, files) = offer.announcement()?;
        let files = files.map(|file| file.as_fd());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = Header::from(&frame).encode();
        let sent = net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        if sent != bytes.len() {
            return Err(Lost::System("the socket does not take an offer of memory".to_owned()));
        }
        (self.agreed, self.offer) = (Some(agreement), Some(offer));
        Ok(())
    }

    /// Goes on with what the peer has said since: that it offers memory too, and that it has ours.
    fn advance(&mut self, socket: &Held, ahead: &mut Vec<u8>) -> Result<Step, Lost> {
        while let Some(header) = ahead.first_chunk::<HEADER>() {
            match Header::decode(header)?.frame()? {
                Frame::Share { ring, slots } if self.taken.is_none() => {
                    let files: Vec<OwnedFd> = self.files.drain(..).collect();
                    self.taken = Some(Taken::open(ring, slots, &files)?);
                    write_whole(socket, &Header::from(&Frame::Shared).encode())?;
                }
                Frame::Shared if self.taken.is_some() => {
                    ahead.drain(..HEADER);
                    return Ok(self.agreed.map_or(Step::Wait, Step::Agreed));
                }
                frame => {
                    let why = format!("{frame:?} before memory is shared");
                    return Err(titin_wire::Malformed::new("frame", why).into());
                }
            }
            ahead.drain(..HEADER);
        }
        Ok(Step::Wait)
    }
}

fn connect(peer: &Target) -> Result<Held, Errno> {
    let peer = match peer {
        Target::Tcp(peer) => peer,
        Target::Shm(path) => return connect_local(path),
    };
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Held::from(net::socket_with(family, SocketType::STREAM, flags, None)?);
    prepare(&socket);
    match net::connect(&socket, peer) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn connect_local(path: &str) -> Result<Held, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Held::from(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?);
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
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
