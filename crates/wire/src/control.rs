//! Control messages between programs and the manager, and the greeting of two programs.
//!
//! A control message is one control frame with a MessagePack body: a map from the name of the
//! message to a map of the fields. A release skips unknown fields and gives missing fields a
//! default, so releases with a control version in common can be mixed.
//!
//! A process has one control link, whatever the number of its instances; a message about an
//! instance has its name.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use titin_model::{Filter, Pattern};

use crate::observation::ObservedRun;
use crate::settings::Overlay;
use crate::{Address, ConduitId, EndpointId, LinkSettings, Malformed};

/// The beginning of the text in [`ToManager::Failed`] with which a program gives up a silent
/// manager. A manager that was stopped for a while sees from the text that its own silence is the
/// cause.
pub const SILENT_MANAGER: &str = "the run's manager has given no sign of life";

/// From a program to the manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum ToManager {
    /// An instance asks to take part. Answered by [`ToProgram::Registered`] or
    /// [`ToProgram::Refused`].
    Register(Registration),
    /// An instance has waited in a call for a while. A wait ends with [`ToManager::Proceed`] or a
    /// new `Waiting`.
    Waiting {
        /// The waiting instance.
        instance: String,
        /// Number of the wait, rising per instance.
        wait: u64,
        /// Any of these would end the wait.
        on: Vec<WaitOn>,
    },
    /// The wait of that number is over.
    Proceed {
        /// The instance that waited.
        instance: String,
        /// Number of the wait.
        wait: u64,
    },
    /// Answer to [`ToProgram::Probe`]: the present counts of the conduits, and the wait that still
    /// lasts.
    Counts {
        /// The instance.
        instance: String,
        /// Number of the probe.
        probe: u64,
        /// Number of the present wait, if the instance waits.
        wait: Option<u64>,
        /// For each conduit: messages sent by a sender, messages received by a receiver.
        counts: Vec<(ConduitId, u64)>,
        /// A message or room that the instance polls for, with calls that do not wait or wait
        /// briefly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        polls: Option<WaitOn>,
    },
    /// The progress of an instance, for the display; sent at most a few times a second.
    Progress(Progress),
    /// A record for the run's log.
    Log {
        /// The instance.
        instance: String,
        /// Level as in Python's `logging`: 10 debug, 20 info, 30 warning, 40 error, 50 critical.
        level: u8,
        /// Seconds since the Unix epoch.
        time: f64,
        /// Simulated time, if the instance has begun.
        #[serde(default)]
        simulated: Option<f64>,
        /// The text of the record.
        text: String,
    },
    /// A use has ended without a message that its callers wait for, or a field was withdrawn. If
    /// one of the receivers then fails because of a closed port, this message explains the failure.
    Missed {
        /// The instance that left something out.
        instance: String,
        /// The instances that receive the missing message or field.
        peers: Vec<String>,
        /// The port, as `macro.flux`, that has to stand in a failure's text for this explanation to
        /// hold. `None`: the explanation holds for any text.
        #[serde(default)]
        port: Option<String>,
        /// The missing message or field, as the log has it.
        text: String,
    },
    /// Counters and events for the profile; see [`Profile`].
    Profile(Profile),
    /// A port of the instance carries a field. Answered by [`ToProgram::Field`], once the other end
    /// has declared the field too.
    Field {
        /// The instance.
        instance: String,
        /// The port.
        port: String,
        /// The decomposition of the array over the ranks, for the other end.
        field: FieldEnd,
    },
    /// The program sends to a failed member that is to be started again, see
    /// [`ToProgram::MemberFailed`].
    Resume {
        /// The instance that sends.
        instance: String,
        /// The next attempt of the member, as in [`crate::attempts`].
        member: String,
    },
    /// The instance has failed; the run is to end and name the instance.
    Failed {
        /// The instance.
        instance: String,
        /// The full reason; several lines where more lines help.
        text: String,
        /// Whether the failure is only the echo of another instance's failure.
        #[serde(default)]
        echo: bool,
        /// The peers whose end stopped the instance, such as the sender of a closed port. The
        /// failure is an echo if one of these peers has failed, or is about to fail.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<String>,
    },
    /// The instance is done: the receivers hold all messages that the instance sent, and the
    /// instance takes no more.
    Done {
        /// The instance.
        instance: String,
    },
    /// An observer, which takes no part in the run, asks for the state of the run. Answered by
    /// [`ToProgram::Observed`].
    Observe {},
    /// Sign of life.
    Heartbeat {},
}

/// From the manager to a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum ToProgram {
    /// The instance takes part.
    Registered(Box<Welcome>),
    /// The instance does not take part.
    Refused {
        /// The instance.
        instance: String,
        /// The reason, and a remedy.
        text: String,
    },
    /// The places of the instances that share a conduit with the receiving process: the known ones
    /// follow a [`Welcome`], others follow when they join.
    Peers {
        /// The instances with their processes.
        peers: Vec<Peer>,
    },
    /// Asks for the counts of conduits.
    Probe {
        /// The instance that is asked.
        instance: String,
        /// Number of the probe.
        probe: u64,
        /// The conduits.
        conduits: Vec<ConduitId>,
    },
    /// Raises the buffer of a sender that waits for room and is part of a cycle of waits, so that
    /// the sender goes on.
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
    /// The declaration of a field by the other end of a conduit.
    Field {
        /// The instance that this message is for.
        instance: String,
        /// The conduit.
        conduit: ConduitId,
        /// The number of ranks of the instance at the other end.
        ranks: u32,
        /// The first of the numbers of the conduits between the ranks of both, see
        /// [`crate::ranks::pair`].
        first: ConduitId,
        /// The other end.
        field: FieldEnd,
    },
    /// An instance is done, after [`ToManager::Done`]. The instance itself waits for this message
    /// as a receipt; the processes of all instances at the other ends of its conduits get the
    /// message too.
    Finished {
        /// The instance.
        instance: String,
    },
    /// A member of an ensemble has failed, and the run goes on without it. The processes of all
    /// instances at the other ends of its conduits get the message.
    MemberFailed {
        /// The member; of a member that was started again, the attempt, as in [`crate::attempts`].
        instance: String,
        /// Why it has failed, on one line; the text follows the name.
        text: String,
        /// Whether the member is started again, as its next attempt, when a peer asks for it by
        /// [`ToManager::Resume`].
        #[serde(default, skip_serializing_if = "is_false")]
        again: bool,
    },
    /// The run has failed: all waiting calls and all later calls return an error that names the
    /// culprit.
    RunFailed {
        /// The first instance to fail, as users write the name (`macro[3]`), or another cause.
        culprit: String,
        /// The reason, on one line.
        text: String,
        /// Whether the cause is a deadlock, and not the loss of an instance.
        #[serde(default)]
        deadlock: bool,
    },
    /// The state of the run, for an observer.
    Observed(Box<ObservedRun>),
    /// Sign of life.
    Heartbeat {},
}

/// The first control message on a data link, from the dialler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Greeting {
    /// The process that dials.
    pub endpoint: EndpointId,
    /// The process that the dialler means.
    pub to: EndpointId,
    /// Whether the link is for conduits that are pinned to the medium of the link, although there
    /// may be a better medium.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub pinned: bool,
    /// The reason why the two processes do not share memory, if sharing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detour: Option<String>,
    /// Whether the link is only for messages between ranks, see [`crate::ranks::RankMessage`].
    #[serde(default, rename = "mail", skip_serializing_if = "Not::not")]
    pub is_rank_to_rank: bool,
}

/// An instance that asks to take part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// Name as in `TITIN_INSTANCE`.
    pub instance: String,
    /// The process of the instance; of a parallel program, that of rank 0.
    pub endpoint: EndpointId,
    /// The addresses of the process.
    pub addresses: Vec<Address>,
    /// The process id on the host.
    pub pid: u32,
    /// The name of the host.
    pub host: String,
    /// The ports that the program declares, or `None` for the ports of the description.
    #[serde(default)]
    pub ports: Option<Vec<PortDeclaration>>,
    /// The language of the program, for the log.
    #[serde(default)]
    pub language: String,
    /// The release of titin that the program uses.
    #[serde(default)]
    pub release: String,
    /// The processes of the other ranks of a parallel program, from rank 1 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankProcess>,
}

/// A port as a program declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDeclaration {
    /// The name, without `[]`.
    pub name: String,
    /// The operator: "f_init", "o_i", "s" or "o_f".
    pub operator: String,
    /// Whether the port was declared as `name[]`.
    #[serde(default)]
    pub vector: bool,
}

/// The manager's answer to a registration: all that an instance needs to know to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The instance.
    pub instance: String,
    /// The time of the answer by the clock of the manager's host, in seconds since the Unix epoch.
    #[serde(default)]
    pub time: Option<f64>,
    /// The ports that the program declared, or else those of the description.
    pub ports: Vec<PortDeclaration>,
    /// The instance's ends of conduits.
    pub wires: Vec<ConduitEnd>,
    /// All settings that can apply to the instance, by their full names. A look-up takes the most
    /// specific name.
    pub settings: Overlay,
    /// The scales of the component.
    pub scale: Option<Scale>,
    /// User's filters by name.
    #[serde(default)]
    pub filters: std::collections::BTreeMap<String, FilterFunction>,
    /// Seconds between signs of life. The link counts as lost after three such periods of silence.
    pub heartbeat: f64,
    /// Whether to send event rows.
    #[serde(default)]
    pub trace: bool,
    /// Whether messages carry the step in which they were sent, because a filter of the run chooses
    /// by steps.
    #[serde(default)]
    pub counts_steps: bool,
    /// When simulated time ends, in the unit of timestamps, if known; for the progress bar.
    #[serde(default)]
    pub end: Option<f64>,
    /// The unit of timestamps, unless the unit is the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<String>,
    /// All components of the run with their multiplicity, unless there are many: names in overlays
    /// may begin with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<(String, Vec<u32>)>,
    /// The number of the first conduit between the ranks of a parallel program, see
    /// [`crate::ranks::conduits`].
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

/// The function of a filter of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterFunction {
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

/// One end of a conduit, for the instance at this end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConduitEnd {
    /// The conduit.
    pub conduit: ConduitId,
    /// The port at this end.
    pub port: String,
    /// The slot at this end, if the port has a slot for each peer.
    #[serde(default)]
    pub slot: Option<u32>,
    /// Whether this end sends.
    pub sends: bool,
    /// Whether the number of slots of the port is set at run time.
    #[serde(default)]
    pub resizable: bool,
    /// The timeline of the port, unless the port is on the usual timeline of the instance.
    #[serde(default)]
    pub timeline: Option<String>,
    /// The instance at the other end. For a member of an ensemble that may be started again there is an
    /// end for each attempt, see [`crate::attempts`]; those for later attempts come last.
    pub peer: String,
    /// The port at the other end.
    pub peer_port: String,
    /// The slot at the other end.
    #[serde(default)]
    pub peer_slot: Option<u32>,
    /// The filters of the conduit, from sender to receiver.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// How many messages the sender may be ahead.
    pub buffer_messages: u64,
    /// How many bytes the sender may be ahead. One message always fits.
    pub buffer_bytes: u64,
    /// Whether the description leaves the number of messages open, so that the sender may be ahead by
    /// more of them on a line that holds more.
    #[serde(default)]
    pub buffer_grows: bool,
    /// The medium to which the description pins the conduit.
    #[serde(default)]
    pub medium: Option<String>,
    /// How a field on this conduit is coupled, if the description says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Box<Pattern>>,
    /// The settings of the link that carries the conduit.
    #[serde(default, skip_serializing_if = "LinkSettings::is_empty")]
    pub link: LinkSettings,
}

/// An instance with the addresses of its processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The instance.
    pub instance: String,
    /// The process of the instance; of a parallel program, that of rank 0.
    pub endpoint: EndpointId,
    /// The addresses of the process.
    pub addresses: Vec<Address>,
    /// The processes of the other ranks of a parallel program, from rank 1 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankProcess>,
}

/// The process of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankProcess {
    /// The id of the process in the run.
    pub endpoint: EndpointId,
    /// The addresses of the process.
    pub addresses: Vec<Address>,
    /// The process id on the host.
    pub pid: u32,
    /// The name of the host.
    pub host: String,
}

/// One end of a conduit that carries a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldEnd {
    /// The side of the exchange, as the bytes of `titin-array`: decomposition, coupled region and
    /// order.
    #[serde(with = "serde_bytes")]
    pub side: Vec<u8>,
    /// The number of the element type of each array of the field, as in a message's metadata.
    #[serde(with = "serde_bytes")]
    pub dtypes: Vec<u8>,
    /// Whether this end takes a small piece in the header's message, where each end has one rank.
    /// Older releases do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_joined: bool,
}

/// A message or room that would end a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitOn {
    /// The conduit.
    pub conduit: ConduitId,
    /// The port of the waiting instance, with the slot as users write both.
    pub port: String,
    /// The instance at the other end, which would have to act.
    pub peer: String,
    /// The port at the other end.
    pub peer_port: String,
    /// Whether the instance waits for room to send; else the instance waits for a message.
    pub sends: bool,
    /// Messages that the waiting instance has sent or received on the conduit.
    pub count: u64,
    /// Of a sender: messages that the receiver has not taken yet.
    #[serde(default)]
    pub ahead: u64,
    /// Of a sender: payload bytes that the receiver has not taken yet, the message that waits
    /// included.
    #[serde(default)]
    pub ahead_bytes: u64,
    /// Whether the instance waits for the other end to declare a field. Sender and receiver may
    /// wait so.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub field: bool,
    /// Of a sender that closes: whether the sender waits for the receiver to take the last version
    /// of a field.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub closes: bool,
    /// Of a sender: whether the sender waits for the receiver to join the run.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub joins: bool,
}

/// How far an instance has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The instance.
    pub instance: String,
    /// Simulated time of the last message sent or received.
    pub simulated: Option<f64>,
    /// Messages sent so far.
    pub messages: u64,
    /// Payload bytes sent so far.
    pub bytes: u64,
    /// The end of simulated time, if known.
    #[serde(default)]
    pub end: Option<f64>,
}

/// The counters of an instance, and the events if the run is traced.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// The instance.
    pub instance: String,
    /// Time of the registration, in seconds since the Unix epoch.
    pub start: f64,
    /// Time of the close or of this report, in seconds since the Unix epoch.
    pub stop: f64,
    /// Seconds of waiting in receives.
    pub waiting: f64,
    /// Seconds in sends.
    pub sending: f64,
    /// Seconds of waiting for room in sends; part of `sending`.
    pub blocked: f64,
    /// Per conduit end.
    pub conduits: Vec<ConduitProfile>,
    /// The events since the last report, if the run is traced.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Regions of the program: name, number of uses, seconds.
    #[serde(default)]
    pub regions: Vec<(String, u64, f64)>,
    /// What the process of the instance has used of its host, if the host tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUse>,
}

/// What a process has used of its host. Several instances may share the process.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The process id on the host; of a parallel program, that of rank 0.
    pub pid: u32,
    /// The processor time of all threads, in seconds.
    pub processor: f64,
    /// The most bytes that were resident in memory at a time.
    pub peak_memory: u64,
}

/// Counters of one end of a conduit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConduitProfile {
    /// The conduit's number.
    pub conduit: u32,
    /// The port of the instance, with the slot as users write both.
    pub port: String,
    /// Whether the instance sends.
    pub sends: bool,
    /// The medium in use.
    pub medium: String,
    /// The number of streams for large messages, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// The addresses of the two ends of a tcp connection, with that of the instance first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<[String; 2]>,
    /// The reason why the medium is not shared memory, if sharing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detour: Option<String>,
    /// Messages.
    pub messages: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// The number of messages that were compressed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compressed: u64,
    /// The bytes that the payloads of all messages had before compression, if messages were
    /// compressed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncompressed_bytes: u64,
    /// Payload bytes that had to be copied on the way out or in.
    pub copied: u64,
    /// Messages sent by a socket because there was no free block of shared memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_socket: u64,
    /// Seconds of waiting.
    pub waiting: f64,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One row of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Name as in MUSCLE3's event types: "SEND", "RECEIVE", "RECEIVE_WAIT", ...; or a region's
    /// name.
    pub kind: String,
    /// Whether the row is a region of the program, whose name may be any text.
    #[serde(default)]
    pub region: bool,
    /// Nanoseconds since the Unix epoch.
    pub start: i64,
    /// Nanoseconds since the Unix epoch.
    pub stop: i64,
    /// The port of a send or receive.
    #[serde(default)]
    pub port: Option<String>,
    /// The operator of the port, as in [`PortDeclaration::operator`].
    #[serde(default)]
    pub operator: Option<String>,
    /// The number of slots of the port.
    #[serde(default)]
    pub slots: Option<u32>,
    /// The slot.
    #[serde(default)]
    pub slot: Option<u32>,
    /// The conduit, by which a drawing joins both ends of a message.
    #[serde(default)]
    pub conduit: Option<u32>,
    /// The number of the message on the conduit.
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

/// Appends a control message to `bytes`, as [`encode`] encodes the message.
pub fn encode_into<T: Serialize>(message: &T, bytes: &mut Vec<u8>) {
    rmp_serde::encode::write_named(bytes, message).expect("control messages are plain data");
}

/// Reads a control message.
///
/// # Errors
/// [`Malformed`] if the bytes are no message of the expected kind.
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
    fn the_end_of_a_field_has_the_bytes_of_older_releases_unless_it_takes_joined_pieces() {
        let end = |takes_joined| FieldEnd {
            side: vec![1],
            dtypes: vec![12],
            takes_joined,
        };
        let older = b"\x82\xa4side\xc4\x01\x01\xa6dtypes\xc4\x01\x0c";
        assert_eq!(encode(&end(false)), older);
        assert_eq!(decode::<FieldEnd>(older).unwrap(), end(false));
        assert_eq!(decode::<FieldEnd>(&encode(&end(true))).unwrap(), end(true));
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
