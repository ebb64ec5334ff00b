//! The reactor's view of a medium with links that begin with a socket.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, SocketFlags};
use titin_os::{Descriptor, sockets};
use titin_wire::connection::SiteAccess;
use titin_wire::seal::SealKeys;
use titin_wire::{Address, LinkSettings, Secret};

use crate::carrier::{Carrier, Medium};
use crate::error::LinkError;
use crate::line_meter::LineMeter;
use crate::link::{Link, Receivers, SideCarrier};
use crate::stream_meter::StreamMeter;

/// How many connections the system may keep for a listener until the reactor accepts them.
pub(crate) const BACKLOG: i32 = 4096;

/// A connection whose ends have proved themselves.
pub(crate) struct ProvedConnection {
    pub(crate) socket: Descriptor,
    /// The bytes that came behind the proofs.
    pub(crate) first_bytes: Vec<u8>,
    /// The keys that only the two ends know.
    pub(crate) keys: SealKeys,
}

/// A medium with links that begin with a socket. The reactor listens, dials and shakes hands; the
/// medium chooses the sockets, and says how messages travel afterwards.
pub(crate) trait SocketMedium: Send + Sync {
    /// The medium's name.
    fn medium(&self) -> Medium;

    /// Listens at a place of the host. Returns the socket, and the address for peers to dial.
    ///
    /// # Errors
    /// If the system refuses the socket or the place.
    fn listen(&self, place: &str) -> io::Result<(Descriptor, Address)>;

    /// Says how the process reaches other sites, with the secret of the run.
    fn reach_sites(&self, access: &SiteAccess, secret: &Secret) {
        let _ = (access, secret);
    }

    /// Says how a process that reaches other hosts without relays reaches a site.
    fn reach_site(&self, site: &str, access: &SiteAccess) {
        let _ = (site, access);
    }

    /// Says that the process reaches other hosts without relays, with the secret that the processes share.
    fn reach_hosts(&self, secret: &Secret) {
        let _ = secret;
    }

    /// Takes over a connection for a session. Gives the connection back if the medium has no
    /// sessions.
    fn adopt(&self, connection: ProvedConnection) -> Option<ProvedConnection> {
        Some(connection)
    }

    /// Accepts a connection.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if there is none, and other errors of the system.
    fn accept(&self, listener: &Descriptor) -> Result<Descriptor, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(net::accept_with(listener, flags)?.into())
    }

    /// Prepares an accepted socket. False if the socket is known to belong to another user.
    fn greet(&self, socket: &Descriptor) -> bool;

    /// The targets behind an address; none if the address is of another medium.
    fn targets(&self, address: &Address) -> Vec<Arc<dyn DialTarget>>;

    /// How a new link comes to carry messages.
    fn setup(&self) -> LinkSetup;

    /// How long a link goes on after the end of a further stream. When the other end closes the
    /// link, or the other process ends, all streams end, but the network may bring the end of the
    /// first stream last.
    fn end_grace(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Why a socket was closed, if the medium knows more than the end of the socket says.
    fn fault(&self, socket: &Descriptor) -> Option<LinkError> {
        let _ = socket;
        None
    }

    /// Why a dialled socket has no answer yet, if the medium knows more than the socket says.
    fn obstacle(&self, socket: &Descriptor) -> Option<LinkError> {
        let _ = socket;
        None
    }

    /// The reactor ends. With a time, all links are closed, and the call waits until the medium has
    /// passed on the last bytes: about so long for the other ends.
    fn finish(&self, waits: Option<Duration>) {
        let _ = waits;
    }

    /// Measures by `line` how fast the bytes of a link's socket reach the other end. Returns the meter
    /// of the socket's stream, which is the first one of the link or a further one; `None` if the medium does not
    /// measure.
    fn measure(
        &self,
        socket: &Descriptor,
        line: &Arc<LineMeter>,
        is_first: bool,
    ) -> Option<Arc<StreamMeter>> {
        let _ = (socket, line, is_first);
        None
    }

    /// Sets the sizes of a socket's buffers.
    fn set_buffers(&self, socket: &Descriptor, settings: &LinkSettings) {
        let _ = (socket, settings);
    }

    /// Sets the pacing of one of several streams.
    fn set_pacing(&self, socket: &Descriptor, settings: &LinkSettings, streams: u64) {
        let _ = (socket, settings, streams);
    }

    /// Has the stream of a link's socket be lost when the other end has not been reached for so long, if the
    /// medium reaches the other end again after a cut.
    fn set_patience(&self, socket: &Descriptor, patience: LinkPatience) {
        let _ = (socket, patience);
    }

    /// What is known of the stream of a link's socket.
    fn figures(&self, socket: &Descriptor) -> LinkFigures {
        LinkFigures::of_socket(socket)
    }
}

/// What the user of a link knows of its line.
#[derive(Debug, Clone, Copy)]
pub struct LinkPatience {
    /// How long a stream may be away.
    pub outage: Duration,
    /// Whether relays are in the way. A relay that closes a connection says nothing of the process at the other end.
    pub is_by_relays: bool,
}

/// What is known of a stream, or of the streams of a link. A figure is `None` if neither the system nor the medium has it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkFigures {
    /// The round trip, of the fastest stream; `None` for streams that are not of TCP, or are away.
    pub round_trip: Option<Duration>,
    /// How many packets the system has sent again; `None` for streams that are not of TCP.
    pub retransmissions: Option<u64>,
    /// How many bytes a second this end sends at most; `None` without a limit.
    pub pacing: Option<u64>,
    /// The bytes of the buffers of a stream for large messages: to send and to receive.
    pub buffers: Option<[u64; 2]>,
    /// The bytes of the pieces in which several streams carry a message, if the program has set them.
    pub piece: Option<u64>,
}

impl LinkFigures {
    /// The figures that the system has of a socket.
    pub(crate) fn of_socket(socket: &Descriptor) -> Self {
        LinkFigures {
            round_trip: sockets::round_trip(socket),
            retransmissions: sockets::retransmissions(socket),
            pacing: sockets::pacing_rate(socket),
            buffers: sockets::buffers(socket),
            piece: None,
        }
    }
}

/// How a new link comes to carry messages.
pub(crate) enum LinkSetup {
    /// By the link's sockets, at once. The function makes the carrier.
    Sockets(fn(&Arc<Link>) -> Arc<dyn Carrier>),
    /// By a carrier beside the sockets, after a negotiation.
    Negotiated(Box<dyn Negotiation>),
}

/// A place for a reactor to dial. The target's text names the place in errors.
pub(crate) trait DialTarget: fmt::Display + Send + Sync {
    /// Begins a connection.
    ///
    /// # Errors
    /// If the system refuses the connection; [`io::ErrorKind::WouldBlock`] if the listener's queue
    /// is full.
    fn connect(&self, settings: &LinkSettings) -> io::Result<Descriptor>;

    /// How many further streams a link gets, after a first connection that took `round_trip`;
    /// `None` if links of the medium have no further streams.
    fn further_streams(&self, settings: &LinkSettings, round_trip: Duration) -> Option<u64> {
        let _ = (settings, round_trip);
        None
    }

    /// Whether the listener is a process of the same host. Such a process is worth more patience
    /// than the network.
    fn is_on_this_host(&self) -> bool {
        false
    }

    /// Whether the medium itself tries on and on, so that no more than the whole time bounds an
    /// attempt.
    fn is_patient(&self) -> bool {
        false
    }

    /// Why the processes take another medium although they tried the target, which failed as `why`.
    fn detour(&self, why: &LinkError) -> Option<String> {
        let _ = why;
        None
    }
}

/// The negotiation of two processes over a fresh connection, after the proofs.
pub(crate) trait Negotiation: Send {
    /// Says what the process offers.
    ///
    /// # Errors
    /// [`LinkError`] if the connection comes to nothing.
    fn begin(&mut self, socket: &Descriptor) -> Result<(), LinkError>;

    /// Goes on with the bytes and descriptors that have come, and removes the used bytes. True once
    /// all is settled.
    ///
    /// # Errors
    /// [`LinkError`] if the connection comes to nothing.
    fn advance(
        &mut self,
        socket: &Descriptor,
        bytes: &mut Vec<u8>,
        files: &mut VecDeque<OwnedFd>,
    ) -> Result<bool, LinkError>;

    /// Makes the carrier of the link, while the link itself is still being made.
    fn finish(
        self: Box<Self>,
        socket: &Descriptor,
        link: &Weak<Link>,
        receivers: &Arc<Receivers>,
    ) -> Arc<dyn SideCarrier>;
}

/// Sends the few bytes of a handshake, which always fit a fresh socket's buffer.
///
/// # Errors
/// [`LinkError`] if the socket does not take the bytes.
pub(crate) fn send_whole(socket: &Descriptor, bytes: &[u8]) -> Result<(), LinkError> {
    let flags = net::SendFlags::NOSIGNAL;
    if !bytes.is_empty() && net::send(socket, bytes, flags)? != bytes.len() {
        return Err(LinkError::System(
            "the socket does not take a handshake".to_owned(),
        ));
    }
    Ok(())
}
