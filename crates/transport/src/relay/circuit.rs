//! How a process opens a circuit. By relays: the relay of its site, the proofs, the request, and the
//! proofs of both ends of the session. Directly to another host: the proofs of both ends alone.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt;
use titin_os::{Descriptor, sockets};
use titin_wire::Secret;
use titin_wire::circuit::{
    self, CircuitRefusal, CircuitRequest, Destination, RelayAnswer, RelayRequest, UNKNOWN_RUN,
};
use titin_wire::connection::SiteAccess;
use titin_wire::handshake::{Handshake, Purpose, Refusal};

use crate::error::LinkError;
use crate::medium::{ProvedConnection, send_whole};

/// How long a circuit may take to open: many round trips of the longest line, and the pauses of a
/// system that sends lost packets again.
const OPENING_TIME: Duration = Duration::from_secs(20);

/// The same for the first attempt with each of several addresses. Each further attempt has twice the time.
const FIRST_OPENING_TIME: Duration = Duration::from_secs(2);

/// The way to a listener.
pub(super) struct CircuitRoute {
    pub(super) kind: CircuitKind,
    /// Where to connect to: the relay of this process's site, or the listener.
    pub(super) addresses: Vec<SocketAddr>,
    /// The secret that the two ends share.
    pub(super) secret: Secret,
}

pub(super) enum CircuitKind {
    /// To a listener at another site, by the relay of this process's site.
    ByRelays {
        destination: Destination,
        access: SiteAccess,
    },
    /// To a listener without relays, whose addresses are in the text.
    Direct(String),
}

impl CircuitRoute {
    /// The listener, as texts name it.
    pub(super) fn destination(&self) -> String {
        match &self.kind {
            CircuitKind::ByRelays { destination, .. } => destination.to_string(),
            CircuitKind::Direct(addresses) => addresses.clone(),
        }
    }

    /// The host to connect to, as texts name it.
    fn first_host(&self) -> String {
        match &self.kind {
            CircuitKind::ByRelays { access, .. } => {
                format!("the relay {} of this site", access.relay)
            }
            CircuitKind::Direct(addresses) => addresses.clone(),
        }
    }
}

impl fmt::Display for CircuitRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CircuitKind::ByRelays {
                destination,
                access,
            } => write!(f, "{destination} by the relay {}", access.relay),
            CircuitKind::Direct(addresses) => f.write_str(addresses),
        }
    }
}

/// Why there is no circuit.
pub(super) enum CircuitLoss {
    /// The next attempt may succeed.
    Passing(String),
    /// The host of the listener says that nothing listens. The next attempt may succeed.
    NobodyListens(String),
    /// What listens at an address has another secret, or is of another release. Anybody on the line can say so, and
    /// another address may be that of the right process.
    Unproved(LinkError),
    /// The next attempt fails too.
    Lasting(LinkError),
}

impl CircuitLoss {
    pub(super) fn passing(why: impl Into<String>) -> Self {
        CircuitLoss::Passing(why.into())
    }
}

impl From<LinkError> for CircuitLoss {
    fn from(why: LinkError) -> Self {
        CircuitLoss::Passing(why.to_string())
    }
}

impl From<CircuitRefusal> for CircuitLoss {
    fn from(CircuitRefusal { why, may_pass }: CircuitRefusal) -> Self {
        match may_pass {
            true => CircuitLoss::Passing(why),
            false => CircuitLoss::Lasting(LinkError::System(why)),
        }
    }
}

enum OpeningStage {
    Connecting,
    /// The proofs of this process and the relay.
    RelayProof(Handshake),
    /// The relay's answer to the request.
    Answer,
    /// The proofs of both ends.
    EndProof(Handshake),
}

/// A circuit on its way.
pub(super) struct OpeningCircuit {
    pub(super) socket: Descriptor,
    /// The number of the address.
    pub(super) number: usize,
    pub(super) deadline: Instant,
    stage: OpeningStage,
    /// Bytes that the present stage has not used.
    input: Vec<u8>,
}

impl OpeningCircuit {
    /// Begins the attempt with the number `attempt`, from 0. The first one goes to the address with the number `first`.
    pub(super) fn begin(
        route: &CircuitRoute,
        first: usize,
        attempt: usize,
    ) -> Result<Self, CircuitLoss> {
        let unknown = || {
            CircuitLoss::Passing(match &route.kind {
                CircuitKind::ByRelays { access, .. } => {
                    format!("the host of the relay {} is not known here", access.relay)
                }
                CircuitKind::Direct(addresses) => {
                    format!("the host of {addresses} is not known here")
                }
            })
        };
        let count = route.addresses.len().max(1);
        let number = (first + attempt) % count;
        let address = route.addresses.get(number).ok_or_else(unknown)?;
        let unreachable =
            |error: io::Error| CircuitLoss::Passing(format!("{}: {error}", route.first_host()));
        let socket = sockets::new_tcp(address.ip()).map_err(unreachable)?;
        sockets::prepare_tcp(&socket);
        sockets::begin_connection(&socket, address).map_err(unreachable)?;
        Ok(OpeningCircuit {
            socket: socket.into(),
            number,
            deadline: Instant::now() + opening_time(count, attempt),
            stage: OpeningStage::Connecting,
            input: Vec::new(),
        })
    }

    /// The event of the socket for which the circuit waits.
    pub(super) fn wanted(&self) -> PollFlags {
        match self.stage {
            OpeningStage::Connecting => PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Goes on after an event of the socket. Whether the circuit is open.
    pub(super) fn advance(&mut self, route: &CircuitRoute) -> Result<bool, CircuitLoss> {
        if Instant::now() >= self.deadline {
            return Err(CircuitLoss::Passing(self.late(route)));
        }
        if matches!(self.stage, OpeningStage::Connecting) {
            self.connect(route)?;
        }
        self.read()?;
        loop {
            match &mut self.stage {
                OpeningStage::Connecting => return Ok(false),
                OpeningStage::RelayProof(shake) => {
                    let CircuitKind::ByRelays {
                        destination,
                        access,
                    } = &route.kind
                    else {
                        unreachable!("only a relay is asked for a circuit");
                    };
                    let proved = prove(shake, &mut self.input, &self.socket);
                    if !proved.map_err(|why| refused_by_relay(&access.relay, &why))? {
                        return Ok(false);
                    }
                    let request = RelayRequest::Circuit(CircuitRequest {
                        destination: destination.clone(),
                        from: Some(access.site.clone()),
                    });
                    send_whole(&self.socket, &circuit::encode(&request))?;
                    self.stage = OpeningStage::Answer;
                }
                OpeningStage::Answer => {
                    let answer = circuit::decode(&mut self.input).map_err(LinkError::from)?;
                    let Some(answer) = answer else {
                        return Ok(false);
                    };
                    check_answer(answer)?;
                    let (shake, hello) = Handshake::dial(route.secret.clone(), Purpose::Session);
                    send_whole(&self.socket, &hello)?;
                    self.stage = OpeningStage::EndProof(shake);
                }
                OpeningStage::EndProof(shake) => {
                    let proved = prove(shake, &mut self.input, &self.socket);
                    return proved.map_err(|why| refused_by_end(route, why));
                }
            }
        }
    }

    /// The circuit once it is open; `None` before.
    pub(super) fn into_proved(self) -> Option<ProvedConnection> {
        let OpeningStage::EndProof(shake) = self.stage else {
            return None;
        };
        Some(ProvedConnection {
            socket: self.socket,
            first_bytes: self.input,
            keys: shake.seal_keys()?,
        })
    }

    fn connect(&mut self, route: &CircuitRoute) -> Result<(), CircuitLoss> {
        let outcome = sockopt::socket_error(&self.socket).and_then(|outcome| outcome);
        outcome.map_err(|error| {
            let why = format!("{}: {error}", route.first_host());
            match (&route.kind, error) {
                (CircuitKind::Direct(_), Errno::CONNREFUSED) => CircuitLoss::NobodyListens(why),
                _ => CircuitLoss::Passing(why),
            }
        })?;
        let (stage, hello) = match &route.kind {
            CircuitKind::ByRelays { access, .. } => {
                let (shake, hello) = Handshake::dial_relay(access.permit.clone(), access.run);
                (OpeningStage::RelayProof(shake), hello)
            }
            CircuitKind::Direct(_) => {
                let (shake, hello) = Handshake::dial(route.secret.clone(), Purpose::Session);
                (OpeningStage::EndProof(shake), hello)
            }
        };
        match send_whole(&self.socket, &hello) {
            // The event was of another time.
            Err(LinkError::System(_)) => Ok(()),
            Err(why) => Err(why.into()),
            Ok(()) => {
                self.stage = stage;
                Ok(())
            }
        }
    }

    fn read(&mut self) -> Result<(), CircuitLoss> {
        let mut bytes = [0; 4096];
        match rustix::io::read(&self.socket, &mut bytes) {
            Ok(0) => Err(LinkError::Closed.into()),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => Ok(()),
            Err(error) => Err(LinkError::from(error).into()),
        }
    }

    fn late(&self, route: &CircuitRoute) -> String {
        match (&self.stage, &route.kind) {
            (OpeningStage::Connecting, _) => format!("{} does not answer", route.first_host()),
            (
                OpeningStage::RelayProof(_) | OpeningStage::Answer,
                CircuitKind::ByRelays {
                    destination,
                    access,
                },
            ) => {
                let (relay, site) = (&access.relay, &destination.site);
                format!("the relay {relay} has found no way to the site {site} in time")
            }
            _ => format!("{} does not answer", route.destination()),
        }
    }
}

/// How long an attempt may take, with `count` addresses. An address that drops packets must not keep the others from
/// their turns.
fn opening_time(count: usize, attempt: usize) -> Duration {
    match count {
        1 => OPENING_TIME,
        _ => OPENING_TIME.min(FIRST_OPENING_TIME * (1 << (attempt / count).min(8))),
    }
}

/// Goes on with a handshake. Whether the other end has proved itself.
fn prove(
    shake: &mut Handshake,
    input: &mut Vec<u8>,
    socket: &Descriptor,
) -> Result<bool, LinkError> {
    let progress = shake.advance(input)?;
    input.drain(..progress.used);
    send_whole(socket, &progress.reply)?;
    Ok(progress.agreed.is_some())
}

fn refused_by_relay(relay: &str, why: &LinkError) -> CircuitLoss {
    let is_final = matches!(why, LinkError::Refused(Refusal::Versions { .. }));
    let why = match why {
        // A relay that was started again hears of the run from the manager's relay.
        LinkError::Refused(Refusal::Secret) => {
            format!("the relay {relay} of this site {UNKNOWN_RUN}")
        }
        // The other port of a relay answers by TLS.
        LinkError::Refused(Refusal::Stranger(_)) => format!(
            "what listens at {relay} is not a relay's port for programs of its site: give the `local` of its relay.toml as \
             `relay`, and not its `listen`"
        ),
        why => format!("the relay {relay} of this site: {why}"),
    };
    match is_final {
        true => CircuitLoss::Lasting(LinkError::System(why)),
        false => CircuitLoss::Passing(why),
    }
}

fn refused_by_end(route: &CircuitRoute, why: LinkError) -> CircuitLoss {
    match (&route.kind, why) {
        (
            CircuitKind::Direct(_),
            why @ LinkError::Refused(Refusal::Secret | Refusal::Versions { .. }),
        ) => CircuitLoss::Unproved(why),
        (_, why @ LinkError::Refused(Refusal::Secret | Refusal::Versions { .. })) => {
            CircuitLoss::Lasting(why)
        }
        (_, why) => why.into(),
    }
}

fn check_answer(answer: RelayAnswer) -> Result<(), CircuitLoss> {
    match answer {
        RelayAnswer::Opened => Ok(()),
        RelayAnswer::Refused(refusal) => Err(refusal.into()),
        other => Err(CircuitLoss::Passing(format!(
            "the relay {}",
            other.unexpected()
        ))),
    }
}
