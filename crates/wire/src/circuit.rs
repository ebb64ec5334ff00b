//! What processes of a run and relays say to each other before a circuit carries bytes.
//!
//! A process connects to the relay of its site, proves itself with the run's permit
//! ([`crate::handshake`], purpose 6), and asks for a **circuit** to a listener at another site. The
//! relays connect the two. From the answer on, the bytes of both directions are passed on as they
//! are. A manager asks its relay to admit the run, with the key of the relay in place of a permit.
//!
//! A message is a u32 length, little-endian, and as many bytes of JSON.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::handshake::{Handshake, Refusal};
use crate::{EndpointId, Malformed, Secret};

/// The most bytes of a message.
pub const LONGEST: usize = 1 << 20;

/// The most bytes of a permit in a message: the names of a run and its sites are as long as their bringer likes.
pub const LONGEST_PERMIT: usize = 16 << 10;

/// The number of the run by which a manager, or `titin relay status`, names the relay's own key.
pub const RELAY_KEY: u64 = 0;

/// A listener at a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// The name of the site.
    pub site: String,
    /// The host, as the processes of the site call it.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Destination {
    /// Reads `SITE/HOST:PORT`, the place in an address of the medium `relay`.
    pub fn parse(text: &str) -> Option<Self> {
        let (site, place) = text.split_once('/')?;
        let (host, port) = place.rsplit_once(':')?;
        Some(Destination {
            site: site.to_owned(),
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.site, self.host, self.port)
    }
}

/// A request to a relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayRequest {
    /// A circuit to a listener.
    Circuit(CircuitRequest),
    /// Admit a run as long as the connection stands.
    Admit(RunPermit),
    /// The state of the relay.
    Status,
}

/// A circuit that a process asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitRequest {
    /// The listener.
    #[serde(flatten)]
    pub destination: Destination,
    /// The site at which the process is by the description; `None` for an agent that has only a token yet.
    /// The relay of another site refuses the circuit.
    #[serde(default)]
    pub from: Option<String>,
}

/// A run that a relay admits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPermit {
    /// The number of the run.
    pub run: u64,
    /// The secret by which processes of the run prove themselves to relays.
    pub permit: Secret,
    /// The name of the model, for people.
    pub name: String,
    /// The sites of the run, which are to know the permit.
    pub sites: Vec<String>,
    /// Whether the manager of the run has ended. Processes that dial again are to hear of it.
    #[serde(default)]
    pub is_over: bool,
    /// By how many relays the permit has come.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u8,
}

impl RunPermit {
    /// The permit of a new run, with a number and a secret of its own.
    pub fn new(name: String, sites: Vec<String>) -> Self {
        RunPermit {
            run: (EndpointId::random().0 as u64).max(RELAY_KEY + 1),
            permit: Secret::random(),
            name,
            sites,
            is_over: false,
            hops: 0,
        }
    }
}

/// The most relays by which news of a run go on. In a ring of relays old news would go round for ever.
pub const MOST_HOPS: u8 = 8;

/// Why a run with a longer permit than [`LONGEST_PERMIT`] is refused.
pub fn too_long_permit() -> String {
    format!("the names of the run and of its sites have more than {LONGEST_PERMIT} bytes")
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde wants"
)]
pub(crate) fn is_zero(hops: &u8) -> bool {
    *hops == 0
}

/// The answer of a relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayAnswer {
    /// From here on the bytes of the circuit follow.
    Opened,
    /// The run is admitted.
    Admitted {
        /// The name of the relay's site.
        site: String,
        /// The sites of the run without a connection to their relay at present. Relays of earlier
        /// releases name none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        away: Vec<AwaySite>,
        /// The congestion control of the relay's connections to other relays, by its name in Linux;
        /// `None` if it is that of the system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        congestion: Option<String>,
    },
    /// The state of the relay.
    Status(serde_json::Value),
    /// Why relays do not take the run over. Follows [`RelayAnswer::Admitted`] whenever that changes.
    RefusedRun(Vec<String>),
    /// There is no circuit.
    Refused(CircuitRefusal),
}

impl RelayAnswer {
    /// What a relay does that gives this answer where another one was expected: "refuses", with the reason, or
    /// "answers", with what to do.
    pub fn unexpected(self) -> String {
        match self {
            RelayAnswer::Refused(CircuitRefusal { why, .. }) => format!("refuses: {why}"),
            other => format!(
                "answers {other:?}, which is no answer to the request: use the same release of titin for the relay \
                 and here"
            ),
        }
    }
}

/// What a relay does that does not know the permit of a run.
pub const UNKNOWN_RUN: &str = "does not know the run: is it the relay of the site that the description names, and is it \
                               connected to the manager's relay? `titin relay status` shows both";

/// A site without a connection to its relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaySite {
    /// The name of the site.
    pub site: String,
    /// The site whose relay is not connected: the site itself, or the one on the way to it.
    pub relay: String,
    /// Why, if the answering relay knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Why there is no circuit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitRefusal {
    /// Why.
    pub why: String,
    /// Whether the same request may succeed later.
    pub may_pass: bool,
}

impl CircuitRefusal {
    /// The same request may succeed later.
    pub fn passing(why: impl Into<String>) -> Self {
        CircuitRefusal {
            why: why.into(),
            may_pass: true,
        }
    }

    /// The same request fails again.
    pub fn lasting(why: impl Into<String>) -> Self {
        CircuitRefusal {
            why: why.into(),
            may_pass: false,
        }
    }
}

/// The bytes of a message.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    let body = serde_json::to_vec(message).expect("plain data");
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// Takes a message from the beginning of `bytes`; `None` if it is not complete.
///
/// # Errors
/// If the message is too long, or no message.
pub fn decode<T: DeserializeOwned>(bytes: &mut Vec<u8>) -> Result<Option<T>, Malformed> {
    let malformed = |why: String| Malformed::new("message", why);
    let Some(length) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > LONGEST {
        return Err(malformed(format!("{length} bytes are too many")));
    }
    let Some(body) = bytes.get(4..4 + length) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(body).map_err(|error| malformed(error.to_string()))?;
    bytes.drain(..4 + length);
    Ok(Some(message))
}

/// Asks a relay, over a fresh connection that waits for bytes. `key` is a run's permit, or the
/// relay's own key with [`RELAY_KEY`] as `run`.
///
/// # Errors
/// If the connection fails, or the relay does not know the key.
pub fn ask(
    stream: &mut (impl Read + Write),
    key: (u64, Secret),
    request: &RelayRequest,
) -> io::Result<RelayAnswer> {
    ask_for_more(stream, key, request).map(|(answer, _)| answer)
}

/// Asks a relay for its state, as `titin relay status --json` prints it. `key` is the relay's own key.
///
/// # Errors
/// As [`ask`], or if the relay answers otherwise.
pub fn ask_state(stream: &mut (impl Read + Write), key: Secret) -> io::Result<serde_json::Value> {
    match ask(stream, (RELAY_KEY, key), &RelayRequest::Status)? {
        RelayAnswer::Status(state) => Ok(state),
        other => Err(io::Error::other(format!("it {}", other.unexpected()))),
    }
}

/// As [`ask`]. Returns also the bytes behind the answer that were read.
///
/// # Errors
/// As [`ask`].
pub fn ask_for_more(
    stream: &mut (impl Read + Write),
    (run, key): (u64, Secret),
    request: &RelayRequest,
) -> io::Result<(RelayAnswer, Vec<u8>)> {
    let (mut shake, hello) = Handshake::dial_relay(key, run);
    stream.write_all(&hello)?;
    let (mut bytes, mut is_proved) = (Vec::new(), false);
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).map_err(describe_silence)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..count]);
        if !is_proved {
            let progress = shake.advance(&bytes).map_err(|why| match why {
                Refusal::Secret if run == RELAY_KEY => {
                    io::Error::other("it is the relay of another folder")
                }
                Refusal::Secret => io::Error::other(format!("it {UNKNOWN_RUN}")),
                why => io::Error::other(why),
            })?;
            bytes.drain(..progress.used);
            stream.write_all(&progress.reply)?;
            if progress.agreed.is_none() {
                continue;
            }
            stream.write_all(&encode(request))?;
            is_proved = true;
        }
        if let Some(answer) = decode(&mut bytes).map_err(io::Error::other)? {
            return Ok((answer, bytes));
        }
    }
}

/// Puts into words that the time for an answer is over. The system only says that there is nothing to read yet.
fn describe_silence(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "no answer came in time")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn messages_come_in_any_pieces_and_leave_what_follows() {
        let request = RelayRequest::Circuit(CircuitRequest {
            destination: Destination {
                site: "north".into(),
                host: "fe80::1".into(),
                port: 4711,
            },
            from: Some("south".into()),
        });
        let mut bytes = encode(&request);
        assert_eq!(
            bytes[4..],
            *br#"{"circuit":{"site":"north","host":"fe80::1","port":4711,"from":"south"}}"#
        );
        bytes.extend(b"rest");
        for length in 0..bytes.len() - 4 {
            let mut part = bytes[..length].to_vec();
            assert_eq!(decode::<RelayRequest>(&mut part), Ok(None));
            assert_eq!(part.len(), length);
        }
        assert_eq!(decode(&mut bytes), Ok(Some(request)));
        assert_eq!(bytes, b"rest");
    }

    #[test]
    fn a_refusal_has_the_bytes_of_before() {
        let refused = RelayAnswer::Refused(CircuitRefusal::passing("no"));
        let bytes = encode(&refused);
        assert_eq!(bytes[4..], *br#"{"refused":{"why":"no","may_pass":true}}"#);
    }

    #[test]
    fn an_admission_is_that_of_earlier_releases_unless_a_site_is_away() {
        let site = "north".to_owned();
        let earlier = br#"{"admitted":{"site":"north"}}"#;
        let admitted = |away| RelayAnswer::Admitted {
            site: site.clone(),
            away,
            congestion: None,
        };
        assert_eq!(encode(&admitted(Vec::new()))[4..], *earlier);
        let read: RelayAnswer = serde_json::from_slice(earlier).unwrap();
        assert_eq!(read, admitted(Vec::new()));
        let away = AwaySite {
            site: "east".into(),
            relay: "south".into(),
            why: None,
        };
        let mut bytes = encode(&admitted(vec![away.clone()]));
        assert_eq!(decode(&mut bytes), Ok(Some(admitted(vec![away]))));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let long = decode::<RelayRequest>(&mut vec![0, 0, 0, 1, 0]);
        assert!(long.unwrap_err().to_string().contains("too many"));
        let other = decode::<RelayRequest>(&mut encode(&"other"));
        assert!(other.unwrap_err().to_string().contains("unknown variant"));
    }

    #[test]
    fn a_relay_that_does_not_answer_in_time_is_told_in_words() {
        let (mut asking, _silent) = UnixStream::pair().unwrap();
        let time = Some(Duration::from_millis(1));
        asking.set_read_timeout(time).unwrap();
        let key = (RELAY_KEY, Secret::random());
        let error = ask(&mut asking, key, &RelayRequest::Status).unwrap_err();
        assert_eq!(error.to_string(), "no answer came in time");
    }

    #[test]
    fn a_destination_is_read_as_it_is_written() {
        let text = "north/fe80::1:4711";
        let destination = Destination::parse(text).unwrap();
        assert_eq!(
            (destination.port, destination.host.as_str()),
            (4711, "fe80::1")
        );
        assert_eq!(destination.to_string(), text);
        for wrong in ["north", "north/host", "host:1", "north/host:70000"] {
            assert_eq!(Destination::parse(wrong), None);
        }
    }
}
