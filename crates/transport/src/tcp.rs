//! The medium `tcp`: messages between processes of any hosts, by the sockets of a link.

mod tuning;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use rustix::net;
use titin_os::host::{self, MissingNetwork};
use titin_os::{Descriptor, sockets};
use titin_wire::{Address, HostNetwork, LinkSettings};

use crate::carrier::Medium;
use crate::medium::{BACKLOG, DialTarget, LinkSetup, SocketMedium};
use crate::socket_carrier::SocketCarrier;

/// The addresses of this host for other hosts, in the given network if there is one.
///
/// # Errors
/// [`MissingNetwork`] if the host does not have the network.
pub fn own_addresses(network: Option<&HostNetwork>) -> Result<Vec<Ipv4Addr>, MissingNetwork> {
    match network {
        None => Ok(host::addresses()),
        Some(network) => host::addresses_in(network, |interface, address| {
            network.includes(interface, address)
        }),
    }
}

/// The medium, for a reactor.
pub(crate) struct TcpMedium;

impl SocketMedium for TcpMedium {
    fn medium(&self) -> Medium {
        Medium::Tcp
    }

    /// Listens at an address of the host, at the port given or one chosen by the system.
    fn listen(&self, place: &str) -> io::Result<(Descriptor, Address)> {
        let place = match place.parse() {
            Ok(ip) => SocketAddr::new(ip, 0),
            Err(_) => place.parse().map_err(io::Error::other)?,
        };
        let socket = sockets::new_tcp(place.ip())?;
        // Connections of an earlier listener at the port may linger.
        net::sockopt::set_socket_reuseaddr(&socket, place.port() != 0)?;
        net::bind(&socket, &place)?;
        // A later listener may take the port over from this one while connections live.
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
        net::listen(&socket, BACKLOG)?;
        let bound = SocketAddr::try_from(net::getsockname(&socket)?)?;
        let address = Address::Tcp(bound.ip().to_string(), bound.port());
        Ok((socket.into(), address))
    }

    fn greet(&self, socket: &Descriptor) -> bool {
        sockets::prepare_tcp(socket);
        true
    }

    /// Looks host names up on the caller's thread.
    fn targets(&self, address: &Address) -> Vec<Arc<dyn DialTarget>> {
        let Address::Tcp(host, port) = address else {
            return Vec::new();
        };
        let resolved = (host.as_str(), *port).to_socket_addrs();
        resolved
            .into_iter()
            .flatten()
            .map(|address| Arc::new(TcpTarget(address)) as Arc<dyn DialTarget>)
            .collect()
    }

    fn setup(&self) -> LinkSetup {
        LinkSetup::Sockets(|link| SocketCarrier::make(link, Medium::Tcp))
    }

    fn set_buffers(&self, socket: &Descriptor, settings: &LinkSettings) {
        sockets::set_buffers(socket, settings.send_buffer, settings.receive_buffer);
    }

    fn set_pacing(&self, socket: &Descriptor, settings: &LinkSettings, streams: u64) {
        tuning::set_pacing(socket, settings, streams);
    }
}

/// An address to dial.
struct TcpTarget(SocketAddr);

impl fmt::Display for TcpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl DialTarget for TcpTarget {
    fn connect(&self, settings: &LinkSettings) -> io::Result<Descriptor> {
        let socket = sockets::new_tcp(self.0.ip())?;
        sockets::prepare_tcp(&socket);
        let socket = Descriptor::from(socket);
        // Before the connection is made, when the two ends agree on the largest window.
        sockets::set_buffers(&socket, settings.send_buffer, settings.receive_buffer);
        sockets::begin_connection(&socket, &self.0)?;
        Ok(socket)
    }

    fn further_streams(&self, settings: &LinkSettings, round_trip: Duration) -> Option<u64> {
        Some(tuning::further_streams(settings, &self.0, round_trip))
    }
}
