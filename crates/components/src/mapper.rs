//! The common part of mappers and terminals: ports, and rounds of messages in and out.

use titin_runtime::{Instance, Kind, Message, Operator, Overlay, Patience, PortId, PortInfo};

use crate::data::{MessageMeta, View, merge_overlays, send, view};
use crate::{Error, Result};

/// A port of the instance.
#[derive(Debug, Clone)]
pub(crate) struct InstancePort {
    pub(crate) id: PortId,
    pub(crate) info: PortInfo,
}

/// A port without slots, or a slot of a vector port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortOrSlot {
    pub(crate) port: PortId,
    pub(crate) slot: Option<u32>,
}

/// A message with the port and the slot that received it.
pub(crate) struct ReceivedMessage {
    pub(crate) port: String,
    pub(crate) slot: Option<u32>,
    pub(crate) message: Message,
}

impl ReceivedMessage {
    /// The port and the slot in the notation of users.
    pub(crate) fn label(&self) -> String {
        self.slot.map_or_else(
            || self.port.clone(),
            |slot| format!("{}[{slot}]", self.port),
        )
    }
}

/// The ports with `operator`, in the order of the description.
pub(crate) fn ports(instance: &Instance, operator: Operator) -> Vec<InstancePort> {
    let infos = instance
        .ports()
        .into_iter()
        .filter(|info| info.operator == operator);
    infos
        .filter_map(|info| {
            Some(InstancePort {
                id: instance.port(&info.name).ok()?,
                info,
            })
        })
        .collect()
}

/// The ports with `operator` that have a conduit.
pub(crate) fn connected(instance: &Instance, operator: Operator) -> Vec<InstancePort> {
    ports(instance, operator)
        .into_iter()
        .filter(|port| port.info.connected)
        .collect()
}

/// The ends of a port. A vector port has an end for each present slot.
pub(crate) fn ends(instance: &Instance, port: &InstancePort) -> Vec<PortOrSlot> {
    let slots = if port.info.vector {
        instance.info(port.id).slots
    } else {
        0
    };
    match port.info.vector {
        true => (0..slots)
            .map(|slot| PortOrSlot {
                port: port.id,
                slot: Some(slot),
            })
            .collect(),
        false => vec![PortOrSlot {
            port: port.id,
            slot: None,
        }],
    }
}

/// Calls `take` for each slot of a port, or once for a port without slots. The first message may
/// tell how many slots a port has, so the first slot is always there.
pub(crate) fn each_slot(
    instance: &Instance,
    port: &InstancePort,
    mut take: impl FnMut(Option<u32>) -> Result<()>,
) -> Result<()> {
    if !port.info.vector {
        return take(None);
    }
    let mut slot = 0;
    loop {
        take(Some(slot))?;
        slot += 1;
        if slot >= instance.info(port.id).slots {
            return Ok(());
        }
    }
}

/// The outcome of a receive; `None` if the port is closed.
pub(crate) fn unless_closed<T>(outcome: titin_runtime::Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(given) => Ok(Some(given)),
        Err(error) if error.kind == Kind::PortClosed => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Receives a message from each end of `ports`; `None` if all ports are closed.
///
/// # Errors
/// Some ports are closed and others are not.
pub(crate) fn receive_round(
    instance: &Instance,
    ports: &[InstancePort],
) -> Result<Option<Vec<ReceivedMessage>>> {
    let mut round = Round::default();
    for port in ports {
        each_slot(instance, port, |slot| round.receive(instance, port, slot))?;
    }
    match (round.received.first(), round.closed.first()) {
        (_, None) => Ok(Some(round.received)),
        (None, Some(_)) => Ok(None),
        (Some(one), Some(closed)) => Err(Error::Data(format!(
            "{closed}, but there was a message on '{}': messages of all ports go together, so the senders must make the \
             same number of steps",
            one.label()
        ))),
    }
}

/// The messages of a round so far, and the errors that tell of closed ports.
#[derive(Default)]
struct Round {
    received: Vec<ReceivedMessage>,
    closed: Vec<String>,
}

impl Round {
    fn receive(
        &mut self,
        instance: &Instance,
        port: &InstancePort,
        slot: Option<u32>,
    ) -> Result<()> {
        match instance.receive(port.id, slot, Patience::Forever) {
            Ok(message) => self.received.push(ReceivedMessage {
                port: port.info.name.clone(),
                slot,
                message,
            }),
            Err(error) if error.kind == Kind::PortClosed => self.closed.push(error.text),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// The loop of a mapper. Each time all receiving ports have a message, `step` sends the results.
///
/// Messages on F_INIT ports go out by O_I and O_F ports, once per use. Messages on S ports go out
/// by O_I ports, once per step.
///
/// # Errors
/// The ports do not fit together, or `step` fails.
pub(crate) fn run(
    instance: &Instance,
    mut step: impl FnMut(&Instance, &[InstancePort], &[ReceivedMessage], &MessageMeta) -> Result<()>,
) -> Result<()> {
    let f_init = connected(instance, Operator::FInit);
    let s = connected(instance, Operator::S);
    let (o_i, o_f) = (ports(instance, Operator::OI), ports(instance, Operator::OF));
    check_ports(instance.name(), &f_init, &s, &o_f)?;
    let out: Vec<InstancePort> = o_i.into_iter().chain(o_f).collect();
    if f_init.is_empty() {
        instance.reuse()?;
        while let Some(received) = receive_round(instance, &s)? {
            let meta = MessageMeta {
                settings: Some(merged_overlays(&received, &instance.overlay())?),
                ..joined_times(&received)
            };
            step(instance, &out, &received, &meta)?;
        }
        return Ok(());
    }
    while instance.reuse()?
        && let Some(received) = receive_round(instance, &f_init)?
    {
        // The overlay in force already has the settings of the received messages.
        step(instance, &out, &received, &joined_times(&received))?;
    }
    Ok(())
}

/// Checks that the ports of a mapper fit together.
fn check_ports(
    name: &str,
    f_init: &[InstancePort],
    s: &[InstancePort],
    o_f: &[InstancePort],
) -> Result<()> {
    let names = |ports: &[InstancePort]| {
        let names: Vec<&str> = ports.iter().map(|port| port.info.name.as_str()).collect();
        names.join(", ")
    };
    let text = match (f_init.is_empty(), s.is_empty()) {
        (true, true) => format!(
            "{name}: nothing is connected to an F_INIT or S port, so there is nothing to pass on"
        ),
        (false, false) => format!(
            "{name}: it receives on F_INIT ({}) and on S ({}); a mapper has its in ports all on the one or all on \
             the other",
            names(f_init),
            names(s)
        ),
        (true, false) if o_f.iter().any(|port| port.info.connected) => format!(
            "{name}: what it receives on S ({}) goes out in every step, and O_F ({}) sends once, at the end; make the \
             out ports O_I, or the in ports F_INIT",
            names(s),
            names(o_f)
        ),
        _ => return Ok(()),
    };
    Err(Error::Setting(text))
}

/// The times of a message made from several messages. The timestamp and the next timestamp are the
/// latest of all messages, since the next such message waits for all messages.
pub(crate) fn joined_times(received: &[ReceivedMessage]) -> MessageMeta {
    let messages = received.iter().map(|received| &received.message);
    let timestamps = messages.clone().map(|message| message.timestamp);
    let timestamp = timestamps.fold(f64::NEG_INFINITY, f64::max);
    let nexts: Option<Vec<f64>> = messages.map(|message| message.next_timestamp).collect();
    let next = nexts.and_then(|nexts| nexts.into_iter().reduce(f64::max));
    MessageMeta {
        timestamp,
        next: next.map(|next| next.max(timestamp)),
        settings: None,
    }
}

/// The overlays of several messages, merged with the overlay in force.
fn merged_overlays(received: &[ReceivedMessage], in_force: &Overlay) -> Result<Overlay> {
    let labels: Vec<String> = received.iter().map(ReceivedMessage::label).collect();
    let messages = received.iter().map(|received| &received.message);
    let overlays = labels
        .iter()
        .zip(messages)
        .filter_map(|(label, message)| Some((label.as_str(), message.settings.as_deref()?)));
    merge_overlays(in_force.clone(), overlays)
}

/// Sends the same data by each end of the ports `out`.
pub(crate) fn to_all(
    instance: &Instance,
    out: &[InstancePort],
    value: &View<'_>,
    meta: &MessageMeta,
) -> Result<()> {
    for port in out {
        for end in ends(instance, port) {
            send(instance, end.port, end.slot, value, meta)?;
        }
    }
    Ok(())
}

/// The data of messages.
pub(crate) fn views(received: &[ReceivedMessage]) -> Vec<View<'_>> {
    received
        .iter()
        .map(|received| view(&received.message))
        .collect()
}
