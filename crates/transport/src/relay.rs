//! The medium `relay`: messages between processes of different sites or hosts, by sessions.
//!
//! A **circuit** carries bytes both ways between two processes. A process reaches the relay of its own
//! site, and the relays connect it to a listener at another site; or it connects directly to a listener
//! on another host. Circuits break, because lines and relays do. So each socket of a link is one end of
//! a **session** ([`titin_wire::session`]), which goes on with the next circuit.
//!
//! The link above the medium sees an ordinary socket. The medium's thread, the pump, copies between
//! the other end of the socket and the circuits. So frames, windows, proofs and the checks of bytes
//! are those of all links of sockets. The process that listens takes circuits by its tcp listener,
//! and hands them over once both ends have proved themselves.

mod circuit;
mod congestion_window;
mod link_side;
mod pump;
mod session_end;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use titin_os::{Descriptor, sockets};
use titin_wire::circuit::Destination;
use titin_wire::connection::{SESSION, SESSION_PATIENCE, SiteAccess, is_rate_based};
use titin_wire::frame::MAX_STREAMS;
use titin_wire::{Address, LinkSettings, Secret};

use crate::carrier::Medium;
use crate::error::LinkError;
use crate::line_meter::LineMeter;
use crate::medium::{
    DialTarget, LinkFigures, LinkPatience, LinkSetup, ProvedConnection, SocketMedium,
};
use crate::socket_carrier::SocketCarrier;
use crate::stream_meter::StreamMeter;
use circuit::{CircuitKind, CircuitRoute};
use pump::RelayPump;
use session_end::SessionTerms;

/// The further streams of a link if the user sets no number, and one stream does not fill a line.
const STREAMS: u64 = 8;

/// How long a session without relays waits for a circuit, before a user of the link has said.
const UNTOLD_PATIENCE: Duration = Duration::from_secs(30);

/// The medium, for a reactor.
#[derive(Default)]
pub(crate) struct RelayMedium {
    pump: Arc<RelayPump>,
    access: OnceLock<SessionAccess>,
    /// The ways to single sites, by their names, of a process that reaches other hosts without relays.
    ways: Mutex<HashMap<String, SiteAccess>>,
}

/// How a process reaches others.
struct SessionAccess {
    /// The secret that the processes share.
    secret: Secret,
    terms: SessionTerms,
    /// The way to all other sites; `None` for a process that reaches other hosts without relays.
    site: Option<SiteAccess>,
}

impl RelayMedium {
    /// The way to the listener with an address; `None` if the address is of another medium.
    fn route(&self, address: &Address) -> Option<CircuitRoute> {
        let Address::Other(text) = address else {
            return None;
        };
        let access = self.access.get()?;
        let (kind, addresses) = match address.medium() {
            Some(Medium::Relay) => {
                let (_, place) = text.split_once(':')?;
                let destination = Destination::parse(place)?;
                let access = self.way_to(&destination.site, access)?;
                let addresses = addresses_of(&access.relay);
                let kind = CircuitKind::ByRelays {
                    destination,
                    access,
                };
                (kind, addresses)
            }
            _ => {
                let places = text.strip_prefix(SESSION)?;
                let addresses: Vec<SocketAddr> = places.split(',').flat_map(addresses_of).collect();
                if addresses.is_empty() {
                    return None;
                }
                (CircuitKind::Direct(places.replace(',', ", ")), addresses)
            }
        };
        Some(CircuitRoute {
            kind,
            addresses,
            secret: access.secret.clone(),
        })
    }

    /// The way to a site.
    fn way_to(&self, site: &str, access: &SessionAccess) -> Option<SiteAccess> {
        let ways = || self.ways.lock().expect("never poisoned");
        access.site.clone().or_else(|| ways().get(site).cloned())
    }
}

impl SessionTerms {
    /// The terms of a session by this way.
    fn by_way(self, kind: &CircuitKind) -> Self {
        match kind {
            CircuitKind::Direct(_) => self,
            CircuitKind::ByRelays { access, .. } => SessionTerms {
                is_filled_by_one_stream: access.is_filled_by_one_stream(),
                is_direct: false,
                ..self
            },
        }
    }
}

/// The addresses of a place, `HOST:PORT`.
fn addresses_of(place: &str) -> Vec<SocketAddr> {
    place.to_socket_addrs().into_iter().flatten().collect()
}

impl SocketMedium for RelayMedium {
    fn medium(&self) -> Medium {
        Medium::Relay
    }

    fn reach_sites(&self, site: &SiteAccess, secret: &Secret) {
        let _ = self.access.set(SessionAccess {
            secret: secret.clone(),
            terms: SessionTerms {
                patience: site.patience(),
                is_filled_by_one_stream: site.is_filled_by_one_stream(),
                is_sealed: site.encrypt,
                is_direct: false,
                patience_setting: "patience",
            },
            site: Some(site.clone()),
        });
    }

    fn reach_site(&self, site: &str, access: &SiteAccess) {
        let mut ways = self.ways.lock().expect("never poisoned");
        ways.insert(site.to_owned(), access.clone());
    }

    fn reach_hosts(&self, secret: &Secret) {
        let congestion = sockets::default_congestion_control();
        let _ = self.access.set(SessionAccess {
            secret: secret.clone(),
            terms: SessionTerms {
                patience: UNTOLD_PATIENCE,
                is_filled_by_one_stream: congestion.is_some_and(|name| is_rate_based(&name)),
                is_sealed: true,
                is_direct: true,
                patience_setting: "outage",
            },
            site: None,
        });
    }

    /// Takes circuits that come by the tcp listener `place`: `host:port`, as the relay of the site or the
    /// other hosts call it.
    fn listen(&self, place: &str) -> io::Result<(Descriptor, Address)> {
        let no_access = || io::Error::other("this process does not know how it is reached");
        let access = self.access.get().ok_or_else(no_access)?;
        let no_place = || io::Error::other("the place is not host:port");
        let (host, port) = place.rsplit_once(':').ok_or_else(no_place)?;
        let address = match &access.site {
            Some(site) => site.address_of(host, port.parse().map_err(io::Error::other)?),
            None => Address::Other(format!("{SESSION}{place}")),
        };
        Ok((self.pump.listen(access.terms)?, address))
    }

    fn accept(&self, listener: &Descriptor) -> Result<Descriptor, Errno> {
        self.pump.accept(listener)
    }

    /// Both ends of the circuit have proved themselves.
    fn greet(&self, _: &Descriptor) -> bool {
        true
    }

    fn adopt(&self, circuit: ProvedConnection) -> Option<ProvedConnection> {
        match self.access.get() {
            Some(access) => self.pump.adopt(circuit, access.terms.is_sealed),
            None => Some(circuit),
        }
    }

    /// Looks the name of the relay, or of the listener's host, up on the caller's thread.
    fn targets(&self, address: &Address) -> Vec<Arc<dyn DialTarget>> {
        let (Some(route), Some(access)) = (self.route(address), self.access.get()) else {
            return Vec::new();
        };
        vec![Arc::new(RelayTarget {
            terms: access.terms.by_way(&route.kind),
            route: Arc::new(route),
            pump: self.pump.clone(),
        })]
    }

    fn setup(&self) -> LinkSetup {
        LinkSetup::Sockets(|link| SocketCarrier::make(link, Medium::Relay))
    }

    /// Each stream has circuits of its own, so one may be away while the others end.
    fn end_grace(&self) -> Duration {
        let access = self.access.get();
        access.map_or(SESSION_PATIENCE, |access| access.terms.patience)
    }

    fn fault(&self, socket: &Descriptor) -> Option<LinkError> {
        self.pump.fault(socket)
    }

    fn obstacle(&self, socket: &Descriptor) -> Option<LinkError> {
        self.pump.obstacle(socket)
    }

    fn measure(
        &self,
        socket: &Descriptor,
        line: &Arc<LineMeter>,
        is_first: bool,
    ) -> Option<Arc<StreamMeter>> {
        let meter = Arc::new(StreamMeter::new(line.clone(), is_first));
        self.pump.measure(socket, &meter);
        Some(meter)
    }

    fn set_buffers(&self, socket: &Descriptor, settings: &LinkSettings) {
        self.pump.set_buffers(socket, settings);
    }

    fn set_pacing(&self, socket: &Descriptor, settings: &LinkSettings, streams: u64) {
        let rate = settings.pacing_of_stream(streams);
        rate.inspect(|rate| self.pump.pace(socket, *rate));
    }

    fn set_patience(&self, socket: &Descriptor, patience: LinkPatience) {
        self.pump.set_patience(socket, patience);
    }

    fn figures(&self, socket: &Descriptor) -> LinkFigures {
        self.pump.figures(socket).unwrap_or_default()
    }

    fn finish(&self, waits: Option<Duration>) {
        self.pump.finish(waits);
    }
}

/// A listener at another site or on another host.
struct RelayTarget {
    route: Arc<CircuitRoute>,
    terms: SessionTerms,
    pump: Arc<RelayPump>,
}

impl fmt::Display for RelayTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.route.fmt(f)
    }
}

impl DialTarget for RelayTarget {
    fn connect(&self, settings: &LinkSettings) -> io::Result<Descriptor> {
        self.pump.dial(self.route.clone(), self.terms, settings)
    }

    fn further_streams(&self, settings: &LinkSettings, _: Duration) -> Option<u64> {
        Some(match settings.streams.map(u64::from) {
            Some(streams) if streams > 1 => streams.min(MAX_STREAMS),
            Some(_) => 0,
            // Streams that share a line end at different times.
            None if self.terms.is_filled_by_one_stream => 1,
            None => STREAMS,
        })
    }

    /// The session dials again by itself.
    fn is_patient(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{Sender, channel};

    use titin_wire::handshake::{Agreement, Purpose};

    use super::*;
    use crate::link::{Handler, Link};
    use crate::reactor::Reactor;

    /// What a handler is told of a request without an answer.
    struct Told {
        hindered: Mutex<Sender<String>>,
        unreachable: Mutex<Sender<LinkError>>,
    }

    impl Handler for Told {
        fn opened(&self, _: &Arc<Link>, _: Agreement) {}

        fn control(&self, _: &Arc<Link>, _: &[u8]) {}

        fn lost(&self, _: &Arc<Link>, _: LinkError) {}

        fn hindered(&self, _: u128, why: String) {
            let _ = self.hindered.lock().unwrap().send(why);
        }

        fn unreachable(&self, _: u128, why: LinkError) {
            let _ = self.unreachable.lock().unwrap().send(why);
        }

        fn tick(&self) -> Option<Duration> {
            Some(Duration::from_millis(1))
        }
    }

    #[test]
    fn a_relay_where_nothing_listens_is_said_to_refuse_and_not_to_be_silent() {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let ((hindered, obstacles), (unreachable, verdicts)) = (channel(), channel());
        let told = Told {
            hindered: Mutex::new(hindered),
            unreachable: Mutex::new(unreachable),
        };
        let reactor = Reactor::start(Secret::random(), Arc::new(told)).unwrap();
        reactor.reach_sites(&SiteAccess {
            site: "south".into(),
            relay: format!("127.0.0.1:{port}"),
            run: 7,
            permit: Secret::random(),
            // For circuits that are lost, and not for the first one.
            patience: 0.05,
            encrypt: true,
            congestion: None,
        });
        let address = Address::Other("relay:north/192.0.2.2:4711".into());
        let dialled = reactor.dial(
            &[address],
            Purpose::Agent,
            1,
            None,
            LinkSettings::default(),
            Duration::from_millis(200),
        );
        dialled.unwrap();
        let expected = format!(
            "north/192.0.2.2:4711 by the relay 127.0.0.1:{port}: the relay 127.0.0.1:{port} of this site: Connection refused"
        );
        let verdict = verdicts.recv().unwrap();
        assert!(
            verdict.to_string().contains(&expected) && matches!(verdict, LinkError::Late(_)),
            "{verdict}"
        );
        assert!(obstacles.try_iter().any(|why| why.starts_with(&expected)));
        reactor.stop();
    }
}
