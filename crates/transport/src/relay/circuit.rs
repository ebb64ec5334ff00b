//! How a process opens a circuit: the relay of its site, the proofs, the request, and the proofs of
//! both ends of the session.

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

/// The way to a listener at another site.
pub(super) struct CircuitRoute {
    pub(super) destination: Destination,
    pub(super) access: SiteAccess,
    /// The addresses of the relay of this process's site.
    pub(super) relay: Vec<SocketAddr>,
    /// The secret of the run.
    pub(super) secret: Secret,
}

impl From<LinkError> for CircuitRefusal {
    fn from(why: LinkError) -> Self {
        CircuitRefusal::passing(why.to_string())
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
    pub(super) deadline: Instant,
    stage: OpeningStage,
    /// Bytes that the present stage has not used.
    input: Vec<u8>,
}

impl OpeningCircuit {
    /// Begins the attempt with the number `attempt`.
    pub(super) fn begin(route: &CircuitRoute, attempt: usize) -> Result<Self, CircuitRefusal> {
        let relay = &route.access.relay;
        let unknown =
            || CircuitRefusal::passing(format!("the host of the relay {relay} is not known here"));
        let count = route.relay.len().max(1);
        let address = route.relay.get(attempt % count).ok_or_else(unknown)?;
        let unreachable = |error: io::Error| {
            CircuitRefusal::passing(format!("the relay {relay} of this site: {error}"))
        };
        let socket = sockets::new_tcp(address.ip()).map_err(unreachable)?;
        sockets::prepare_tcp(&socket);
        sockets::begin_connection(&socket, address).map_err(unreachable)?;
        Ok(OpeningCircuit {
            socket: socket.into(),
            deadline: Instant::now() + OPENING_TIME,
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
    pub(super) fn advance(&mut self, route: &CircuitRoute) -> Result<bool, CircuitRefusal> {
        if Instant::now() >= self.deadline {
            return Err(CircuitRefusal::passing(self.late(route)));
        }
        if matches!(self.stage, OpeningStage::Connecting) {
            self.connect(route)?;
        }
        self.read()?;
        loop {
            match &mut self.stage {
                OpeningStage::Connecting => return Ok(false),
                OpeningStage::RelayProof(shake) => {
                    let proved = prove(shake, &mut self.input, &self.socket);
                    if !proved.map_err(|why| refused_by_relay(route, &why))? {
                        return Ok(false);
                    }
                    let request = RelayRequest::Circuit(CircuitRequest {
                        destination: route.destination.clone(),
                        from: Some(route.access.site.clone()),
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
                    return proved.map_err(refused_by_end);
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

    fn connect(&mut self, route: &CircuitRoute) -> Result<(), CircuitRefusal> {
        let outcome = sockopt::socket_error(&self.socket).and_then(|outcome| outcome);
        outcome.map_err(|error| {
            CircuitRefusal::passing(format!(
                "the relay {} of this site: {error}",
                route.access.relay
            ))
        })?;
        let (shake, hello) = Handshake::dial_relay(route.access.permit.clone(), route.access.run);
        match send_whole(&self.socket, &hello) {
            // The event was of another time.
            Err(LinkError::System(_)) => Ok(()),
            Err(why) => Err(why.into()),
            Ok(()) => {
                self.stage = OpeningStage::RelayProof(shake);
                Ok(())
            }
        }
    }

    fn read(&mut self) -> Result<(), CircuitRefusal> {
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
        let (relay, site) = (&route.access.relay, &route.destination.site);
        match self.stage {
            OpeningStage::Connecting => format!("the relay {relay} of this site does not answer"),
            OpeningStage::RelayProof(_) | OpeningStage::Answer => {
                format!("the relay {relay} has found no way to the site {site} in time")
            }
            OpeningStage::EndProof(_) => format!("{} does not answer", route.destination),
        }
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

fn refused_by_relay(route: &CircuitRoute, why: &LinkError) -> CircuitRefusal {
    let relay = &route.access.relay;
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
    refusal(why, is_final)
}

fn refused_by_end(why: LinkError) -> CircuitRefusal {
    let is_final = matches!(
        why,
        LinkError::Refused(Refusal::Secret | Refusal::Versions { .. })
    );
    refusal(why.to_string(), is_final)
}

fn refusal(why: String, is_final: bool) -> CircuitRefusal {
    match is_final {
        true => CircuitRefusal::lasting(why),
        false => CircuitRefusal::passing(why),
    }
}

fn check_answer(answer: RelayAnswer) -> Result<(), CircuitRefusal> {
    match answer {
        RelayAnswer::Opened => Ok(()),
        RelayAnswer::Refused(refusal) => Err(refusal),
        other => Err(CircuitRefusal::passing(format!(
            "the relay {}",
            other.unexpected()
        ))),
    }
}
