//! Control messages: what programs and the manager tell each other, and how two programs greet.
//!
//! Each is one control frame with a MessagePack body: a map from the message's name to a map of its fields. Fields
//! that a release does not know are skipped and fields that it misses take their default, so that releases with a
//! control version in common can be mixed.
//!
//! A process has one control link, whatever the number of its instances; messages about an instance name it.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use titin_model::{Filter, Pattern};

use crate::settings::Overlay;
use crate::{Address, ConduitId, EndpointId, LinkSettings, Malformed};

/// Begins what a program says that gives up a silent manager, in [`ToManager::Failed`]: one that was stopped meanwhile knows
/// by it that it has itself to blame.
pub const SILENT_MANAGER: &str = "the run's manager has given no sign of life";

/// From a program to the manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum ToManager {
    /// An instance asks to take part. Answered by [`ToProgram::Registered`] or [`ToProgram::Refused`].
    Register(Registration),
    /// An instance waits in a call, and has for a while. A wait ends with [`ToManager::Proceed`] or a new `Waiting`.
    Waiting {
        /// Who waits.
        instance: String,
        /// Number of the wait, rising per instance.
        wait: u64,
        /// What would end it: any one of these.
        on: Vec<WaitOn>,
    },
    /// The wait of that number is over.
    Proceed {
        /// Who had waited.
        instance: String,
        /// Number of the wait.
        wait: u64,
    },
    /// Answer to [`ToProgram::Probe`]: the counts of the conduits asked for, now, and the wait that still lasts.
    Counts {
        /// Whose.
        instance: String,
        /// Number of the probe.
        probe: u64,
        /// Number of the wait that the instance is in, if it is in one.
        wait: Option<u64>,
        /// For each conduit: messages sent if it sends there, messages received if it receives there.
        counts: Vec<(ConduitId, u64)>,
        /// What the instance looks for again and again by calls that do not wait for it, or not for long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        polls: Option<WaitOn>,
    },
    /// Where an instance is, for those who look: at most a few times a second.
    Progress(Progress),
    /// A record for the run's log.
    Log {
        /// Whose.
        instance: String,
        /// Level as in Python's `logging`: 10 debug, 20 info, 30 warning, 40 error, 50 critical.
        level: u8,
        /// Seconds since the Unix epoch.
        time: f64,
        /// Simulated time, if the instance has begun.
        #[serde(default)]
        simulated: Option<f64>,
        /// What it says.
        text: String,
    },
    /// A use has ended without a message that its callers wait for, or a field was withdrawn: if one of its receivers fails by a
    /// closed port, that is why.
    Missed {
        /// Whose use.
        instance: String,
        /// The instances that receive what was left out.
        peers: Vec<String>,
        /// The port of the instance, `macro.flux`, that a failure tells of if this is why; None: whatever it tells of.
        #[serde(default)]
        port: Option<String>,
        /// What was left out, as the log has it.
        text: String,
    },
    /// Counters and events for the profile; see [`Profile`].
    Profile(Profile),
    /// A port of the instance carries a field. Answered by [`ToProgram::Field`], once the other end has said the same.
    Field {
        /// Which one.
        instance: String,
        /// Its port.
        port: String,
        /// How its array is spread over its ranks, as the other end is to know it.
        field: FieldEnd,
    },
    /// The instance has failed; the run is to end and name it.
    Failed {
        /// Which one.
        instance: String,
        /// Why, in full; several lines where that helps.
        text: String,
        /// Whether it is only the echo of another's failure.
        #[serde(default)]
        echo: bool,
        /// The peers that have ended what it could not go on without, such as the sender of a port that is closed: it is an echo
        /// if one of them has failed, or is about to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<String>,
    },
    /// The instance is done: all it sent is held by its receivers, and it takes nothing more.
    Done {
        /// Which one.
        instance: String,
    },
    /// Sign of life.
    Heartbeat {},
}

/// From the manager to a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum ToProgram {
    /// The instance takes part.
    Registered(Box<Welcome>),
    /// It does not, and this is why.
    Refused {
        /// Which one.
        instance: String,
        /// Why, and what to do.
        text: String,
    },
    /// Where instances are that the receiving process has a conduit with: behind a [`Welcome`] those known, later
    /// those that come.
    Peers {
        /// For each instance, where it is.
        peers: Vec<Peer>,
    },
    /// Please report counts.
    Probe {
        /// Whom.
        instance: String,
        /// Number of the probe.
        probe: u64,
        /// Which conduits.
        conduits: Vec<ConduitId>,
    },
    /// A sender blocked on a full buffer is part of a wait cycle: let it run on.
    RaiseBuffer {
        /// The sending instance.
        instance: String,
        /// The conduit.
        conduit: ConduitId,
        /// New limit in messages.
        messages: u64,
        /// New limit in bytes.
        bytes: u64,
    },
    /// What the other end of a conduit says of the field that goes by it.
    Field {
        /// Whom.
        instance: String,
        /// The conduit.
        conduit: ConduitId,
        /// How many ranks the instance at the other end has.
        ranks: u32,
        /// The first of the numbers of the conduits between the ranks of both, see [`crate::ranks::pair`].
        first: ConduitId,
        /// The other end.
        field: FieldEnd,
    },
    /// An instance is done, as it has said with [`ToManager::Done`]: told to it, as the receipt it waits for, and to
    /// the processes of all instances that it has a conduit with.
    Finished {
        /// Which one.
        instance: String,
    },
    /// The run has failed: every call that waits returns an error that names the culprit, and so do all later ones.
    RunFailed {
        /// The first to fail, as users write it (`macro[3]`), or what it was.
        culprit: String,
        /// Why, on one line.
        text: String,
        /// Whether it is a deadlock rather than the loss of somebody.
        #[serde(default)]
        deadlock: bool,
    },
    /// Sign of life.
    Heartbeat {},
}

/// The first control message on a data link, from the dialler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Greeting {
    /// Who dials.
    pub endpoint: EndpointId,
    /// Who is meant to be there.
    pub to: EndpointId,
    /// Whether it is for conduits that are pinned to tcp, although there is a better medium.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub pinned: bool,
    /// Why the two do not share memory, if that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detour: Option<String>,
    /// Whether the dialler only sends mail: see [`crate::ranks::Mail`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub mail: bool,
}

/// An instance that asks to take part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// Name as in `TITIN_INSTANCE`.
    pub instance: String,
    /// Its process.
    pub endpoint: EndpointId,
    /// Where that can be reached.
    pub addresses: Vec<Address>,
    /// Its process id on its host.
    pub pid: u32,
    /// Its host's name.
    pub host: String,
    /// The ports that the program declares, or `None` for those of the description.
    #[serde(default)]
    pub ports: Option<Vec<PortDeclaration>>,
    /// The language that it came in by, for the log.
    #[serde(default)]
    pub language: String,
    /// The release of titin that it uses.
    #[serde(default)]
    pub release: String,
    /// Of a parallel program, the processes of its other ranks, from rank 1 on. That of rank 0 is the one above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankProcess>,
}

/// A port as a program declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDeclaration {
    /// Its name, without `[]`.
    pub name: String,
    /// Its operator: "f_init", "o_i", "s" or "o_f".
    pub operator: String,
    /// Whether it was declared as `name[]`.
    #[serde(default)]
    pub vector: bool,
}

/// What an instance needs to know to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Which instance.
    pub instance: String,
    /// Its ports: as declared, else those of the description.
    pub ports: Vec<PortDeclaration>,
    /// Its conduits.
    pub wires: Vec<ConduitEnd>,
    /// All settings that can apply to it, by their full name; look-up is by the most specific.
    pub settings: Overlay,
    /// Its place in the model, for the look-up of settings.
    pub scale: Option<Scale>,
    /// User's filters by name.
    #[serde(default)]
    pub filters: std::collections::BTreeMap<String, UserFilter>,
    /// Seconds between signs of life; the link is lost after three without one.
    pub heartbeat: f64,
    /// Whether to send event rows.
    #[serde(default)]
    pub trace: bool,
    /// Whether messages say in which step they were sent, since some filter of the run chooses by that.
    #[serde(default)]
    pub counts_steps: bool,
    /// When simulated time ends, in the unit of timestamps, if known; for the progress bar.
    #[serde(default)]
    pub end: Option<f64>,
    /// The unit of timestamps, if it is not the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<String>,
    /// All components of the run and their multiplicity, where those are few: what names in overlays may lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<(String, Vec<u32>)>,
    /// Of a parallel program: the first of the numbers of the conduits between its ranks, see [`crate::ranks::conduits`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_ranks: Option<ConduitId>,
}

/// Scales of a component, in seconds and metres.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scale {
    /// Time step.
    #[serde(default)]
    pub dt: Option<f64>,
    /// Total time.
    #[serde(default)]
    pub total: Option<f64>,
    /// Grid spacing per dimension.
    #[serde(default)]
    pub dx: Vec<f64>,
    /// Extent per dimension.
    #[serde(default)]
    pub extent: Vec<f64>,
}

/// A user's own filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserFilter {
    /// A Python function, as `module:function`.
    Python(String),
    /// An entry point of a shared library.
    Library {
        /// Path of the library.
        path: String,
        /// Name of the function.
        symbol: String,
    },
}

/// One end of a conduit, as its instance sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConduitEnd {
    /// The conduit.
    pub conduit: ConduitId,
    /// My port.
    pub port: String,
    /// My slot, if my port has one per peer.
    #[serde(default)]
    pub slot: Option<u32>,
    /// Whether I send.
    pub sends: bool,
    /// Whether the slots of my port are counted at run time.
    #[serde(default)]
    pub resizable: bool,
    /// The timeline of my port, if it is not my usual one.
    #[serde(default)]
    pub timeline: Option<String>,
    /// The instance at the other end.
    pub peer: String,
    /// Its port.
    pub peer_port: String,
    /// Its slot.
    #[serde(default)]
    pub peer_slot: Option<u32>,
    /// Filters on the way, sender to receiver.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// How many messages the sender may be ahead.
    pub buffer_messages: u64,
    /// How many bytes the sender may be ahead; one message always fits.
    pub buffer_bytes: u64,
    /// The medium that the description asks for.
    #[serde(default)]
    pub medium: Option<String>,
    /// How a field that goes by it is coupled, if the description says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Box<Pattern>>,
    /// How the link that it takes is to be made.
    #[serde(default, skip_serializing_if = "LinkSettings::is_empty")]
    pub link: LinkSettings,
}

/// An instance and where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The instance.
    pub instance: String,
    /// Its process.
    pub endpoint: EndpointId,
    /// Where that can be reached.
    pub addresses: Vec<Address>,
    /// Of a parallel program, the processes of its other ranks, from rank 1 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankProcess>,
}

/// The process of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankProcess {
    /// Its id.
    pub endpoint: EndpointId,
    /// Where it can be reached.
    pub addresses: Vec<Address>,
    /// Its process id on its host.
    pub pid: u32,
    /// Its host's name.
    pub host: String,
}

/// One end of a conduit that carries a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldEnd {
    /// How the array is spread over the ranks, and what of it is coupled; the bytes of `titin-array`.
    #[serde(with = "serde_bytes")]
    pub side: Vec<u8>,
    /// The element type of each of the arrays that travel together, as in a message's metadata.
    #[serde(with = "serde_bytes")]
    pub dtypes: Vec<u8>,
}

/// Something that would end a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitOn {
    /// The conduit.
    pub conduit: ConduitId,
    /// My port, with its slot as users write it.
    pub port: String,
    /// The instance that would have to act.
    pub peer: String,
    /// Its port.
    pub peer_port: String,
    /// Whether I wait for room to send (else for a message).
    pub sends: bool,
    /// Messages that I have sent or received on the conduit.
    pub count: u64,
    /// Of a sender: messages that the receiver has not taken yet.
    #[serde(default)]
    pub ahead: u64,
    /// Of a sender: payload bytes that the receiver has not taken yet, with those of the message that waits.
    #[serde(default)]
    pub ahead_bytes: u64,
    /// Whether I wait for the other end to declare the field that goes by it, whoever sends.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub field: bool,
    /// Of a sender that closes: whether I wait for the receiver to take the last version of a field.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub closes: bool,
}

/// Where an instance is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Which one.
    pub instance: String,
    /// Simulated time of the last message sent or received.
    pub simulated: Option<f64>,
    /// Messages sent so far.
    pub messages: u64,
    /// Payload bytes sent so far.
    pub bytes: u64,
    /// Where it ends, if known.
    #[serde(default)]
    pub end: Option<f64>,
}

/// What an instance counted, and traced if asked to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Which one.
    pub instance: String,
    /// Seconds since the Unix epoch at which it registered.
    pub start: f64,
    /// Seconds since the Unix epoch at which it closed, or of this report.
    pub stop: f64,
    /// Seconds in which it waited to receive.
    pub waiting: f64,
    /// Seconds in which it sent.
    pub sending: f64,
    /// Seconds in which it waited for room to send; part of `sending`.
    pub blocked: f64,
    /// Per conduit end.
    pub conduits: Vec<ConduitProfile>,
    /// Event rows, if traced; a report holds those since the one before.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Regions of the user's own: name, number of uses, seconds.
    #[serde(default)]
    pub regions: Vec<(String, u64, f64)>,
}

/// Counters of one end of a conduit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConduitProfile {
    /// The conduit's number.
    pub conduit: u32,
    /// My port, with its slot as users write it.
    pub port: String,
    /// Whether I send.
    pub sends: bool,
    /// The medium in use.
    pub medium: String,
    /// Streams that large messages go by, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Why it is not shared memory, if that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detour: Option<String>,
    /// Messages.
    pub messages: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Payload bytes that had to be copied on the way out or in.
    pub copied: u64,
    /// Messages that I sent by a socket, since no shared memory was left for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_socket: u64,
    /// Seconds of waiting.
    pub waiting: f64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One row of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Name as in MUSCLE3's event types: "SEND", "RECEIVE", "RECEIVE_WAIT", ...; or a region's name.
    pub kind: String,
    /// Whether it is a region of the user's own, which may be called like anything.
    #[serde(default)]
    pub region: bool,
    /// Nanoseconds since the Unix epoch.
    pub start: i64,
    /// Nanoseconds since the Unix epoch.
    pub stop: i64,
    /// The port, if it is about one.
    #[serde(default)]
    pub port: Option<String>,
    /// Its operator, as in [`PortDeclaration::operator`].
    #[serde(default)]
    pub operator: Option<String>,
    /// Number of its slots.
    #[serde(default)]
    pub slots: Option<u32>,
    /// The slot.
    #[serde(default)]
    pub slot: Option<u32>,
    /// The conduit, so that both ends of a message can be linked.
    #[serde(default)]
    pub conduit: Option<u32>,
    /// The message's number on its conduit.
    #[serde(default)]
    pub number: Option<u64>,
    /// Payload bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// Simulated time of the message.
    #[serde(default)]
    pub timestamp: Option<f64>,
}

/// A control message as bytes.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(message).expect("control messages are plain data")
}

/// Reads a control message.
///
/// # Errors
/// [`Malformed`] if the bytes are not one of the expected kind.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    rmp_serde::from_slice(bytes)
        .map_err(|error| Malformed::new("control message", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_survive() {
        let registration = ToManager::Register(Registration {
            instance: "macro[3]".into(),
            endpoint: EndpointId::random(),
            addresses: vec![Address::Tcp("127.0.0.1".into(), 9)],
            pid: 7,
            host: "here".into(),
            ports: Some(vec![PortDeclaration {
                name: "out".into(),
                operator: "o_f".into(),
                vector: true,
            }]),
            language: "python".into(),
            release: "0.1.0".into(),
            ranks: Vec::new(),
        });
        assert_eq!(
            decode::<ToManager>(&encode(&registration)).unwrap(),
            registration
        );
        let alive = ToProgram::Heartbeat {};
        assert_eq!(decode::<ToProgram>(&encode(&alive)).unwrap(), alive);
    }

    #[test]
    fn fields_of_later_releases_are_skipped_and_missing_ones_take_their_default() {
        #[derive(Serialize)]
        enum Later {
            Failed {
                instance: String,
                text: String,
                colour: u32,
            },
        }
        let bytes = encode(&Later::Failed {
            instance: "a".into(),
            text: "b".into(),
            colour: 3,
        });
        let failed = ToManager::Failed {
            instance: "a".into(),
            text: "b".into(),
            echo: false,
            after: Vec::new(),
        };
        assert_eq!(decode::<ToManager>(&bytes).unwrap(), failed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<ToManager>(&bytes);
            let _ = decode::<ToProgram>(&bytes);
        }
    }
}
