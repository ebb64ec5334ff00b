//! How a process opens a circuit: the relay of its site, the proofs, the request, and the proofs of
//! both ends of the session.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use titin_os::{Descriptor, sockets};
use titin_wire::Secret;
use titin_wire::circuit::{self, Destination, RelayAnswer, RelayRequest};
use titin_wire::connection::SiteAccess;
use titin_wire::handshake::{Handshake, Purpose, Refusal};

use crate::error::LinkError;
use crate::medium::send_whole;

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

/// Why a circuit did not open.
#[derive(Debug)]
pub(super) struct CircuitError {
    pub(super) why: String,
    /// Whether the next attempt may succeed.
    pub(super) may_pass: bool,
}

impl CircuitError {
    fn passing(why: impl Into<String>) -> Self {
        CircuitError {
            why: why.into(),
            may_pass: true,
        }
    }
}

impl From<LinkError> for CircuitError {
    fn from(why: LinkError) -> Self {
        CircuitError::passing(why.to_string())
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
    pub(super) fn begin(route: &CircuitRoute, attempt: usize) -> Result<Self, CircuitError> {
        let relay = &route.access.relay;
        let unknown = || CircuitError {
            why: format!("the host of the relay {relay} is not known here"),
            may_pass: true,
        };
        let count = route.relay.len().max(1);
        let address = route.relay.get(attempt % count).ok_or_else(unknown)?;
        let unreachable = |error: Errno| {
            CircuitError::passing(format!("the relay {relay} of this site: {error}"))
        };
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            net::socket_with(family, SocketType::STREAM, flags, None).map_err(unreachable)?;
        sockets::prepare_tcp(&socket);
        match net::connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(unreachable(error)),
        }
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

    /// Goes on after an event of the socket. Returns the bytes behind the proofs once the circuit
    /// is open.
    pub(super) fn advance(
        &mut self,
        route: &CircuitRoute,
    ) -> Result<Option<Vec<u8>>, CircuitError> {
        if Instant::now() >= self.deadline {
            return Err(CircuitError::passing(self.late(route)));
        }
        if matches!(self.stage, OpeningStage::Connecting) {
            self.connect(route)?;
        }
        self.read()?;
        loop {
            match &mut self.stage {
                OpeningStage::Connecting => return Ok(None),
                OpeningStage::RelayProof(shake) => {
                    let proved = prove(shake, &mut self.input, &self.socket);
                    if !proved.map_err(|why| refused_by_relay(route, &why))? {
                        return Ok(None);
                    }
                    let request = RelayRequest::Circuit(route.destination.clone());
                    send_whole(&self.socket, &circuit::encode(&request))?;
                    self.stage = OpeningStage::Answer;
                }
                OpeningStage::Answer => {
                    let answer = circuit::decode(&mut self.input).map_err(LinkError::from)?;
                    let Some(answer) = answer else {
                        return Ok(None);
                    };
                    check_answer(answer)?;
                    let (shake, hello) = Handshake::dial(route.secret.clone(), Purpose::Session);
                    send_whole(&self.socket, &hello)?;
                    self.stage = OpeningStage::EndProof(shake);
                }
                OpeningStage::EndProof(shake) => {
                    let proved = prove(shake, &mut self.input, &self.socket);
                    return match proved.map_err(refused_by_end)? {
                        true => Ok(Some(std::mem::take(&mut self.input))),
                        false => Ok(None),
                    };
                }
            }
        }
    }

    fn connect(&mut self, route: &CircuitRoute) -> Result<(), CircuitError> {
        let outcome = sockopt::socket_error(&self.socket).and_then(|outcome| outcome);
        outcome.map_err(|error| {
            CircuitError::passing(format!(
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

    fn read(&mut self) -> Result<(), CircuitError> {
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

fn refused_by_relay(route: &CircuitRoute, why: &LinkError) -> CircuitError {
    let relay = &route.access.relay;
    let why = match why {
        // A relay that was started again hears of the run from the manager's relay.
        LinkError::Refused(Refusal::Secret) => {
            format!("the relay {relay} of this site does not know the run")
        }
        why => format!("the relay {relay} of this site: {why}"),
    };
    CircuitError::passing(why)
}

fn refused_by_end(why: LinkError) -> CircuitError {
    let is_final = matches!(
        why,
        LinkError::Refused(Refusal::Secret | Refusal::Versions { .. })
    );
    CircuitError {
        why: why.to_string(),
        may_pass: !is_final,
    }
}

fn check_answer(answer: RelayAnswer) -> Result<(), CircuitError> {
    match answer {
        RelayAnswer::Opened => Ok(()),
        RelayAnswer::Refused { why, may_pass } => Err(CircuitError { why, may_pass }),
        other => Err(CircuitError::passing(format!(
            "the relay answers {other:?}"
        ))),
    }
}
