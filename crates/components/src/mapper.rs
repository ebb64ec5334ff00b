//! What mappers and terminals have in common: their ports, and rounds of messages in and out.

use titin_runtime::{Instance, Kind, Message, Operator, Overlay, Patience, PortId, PortInfo};

use crate::data::{MessageMeta, View, merge_overlays, send, view};
use crate::settings::stamp;
use crate::{Error, Result};

/// A port of the instance.
#[derive(Debug, Clone)]
pub(crate) struct InstancePort {
    pub(crate) id: PortId,
    pub(crate) info: PortInfo,
}

/// One end to send to or receive from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortEnd {
    pub(crate) port: PortId,
    pub(crate) slot: Option<u32>,
}

/// A message with the end that it came in by.
pub(crate) struct ReceivedMessage {
    pub(crate) port: String,
    pub(crate) slot: Option<u32>,
    pub(crate) message: Message,
}

impl ReceivedMessage {
    /// The end as users write it.
    pub(crate) fn label(&self) -> String {
        self.slot.map_or_else(
            || self.port.clone(),
            |slot| format!("{}[{slot}]", self.port),
        )
    }
}

/// The ports with this operator, in the order of the description.
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

/// Those that are connected.
pub(crate) fn connected(instance: &Instance, operator: Operator) -> Vec<InstancePort> {
    ports(instance, operator)
        .into_iter()
        .filter(|port| port.info.connected)
        .collect()
}

/// The ends of a port, by its slots now.
pub(crate) fn ends(instance: &Instance, port: &InstancePort) -> Vec<PortEnd> {
    let slots = if port.info.vector {
        instance.info(port.id).slots
    } else {
        0
    };
    match port.info.vector {
        true => (0..slots)
            .map(|slot| PortEnd {
                port: port.id,
                slot: Some(slot),
            })
            .collect(),
        false => vec![PortEnd {
            port: port.id,
            slot: None,
        }],
    }
}

/// Does something at every slot of a port, or once if it has none. A port whose slots the sender counts learns their
/// number from the first message, so there is a first slot always.
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

/// What a call gave, or nothing from ports that are closed.
pub(crate) fn open<T>(outcome: titin_runtime::Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(given) => Ok(Some(given)),
        Err(error) if error.kind == Kind::PortClosed => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes a message from every end of these ports, or `None` once all are closed.
///
/// # Errors
/// Names the ports if some are closed and others are not.
pub(crate) fn round(
    instance: &Instance,
    ports: &[InstancePort],
) -> Result<Option<Vec<ReceivedMessage>>> {
    let (mut taken, mut closed) = (Vec::new(), Vec::new());
    for port in ports {
        each_slot(instance, port, |slot| {
            match instance.receive(port.id, slot, Patience::Forever) {
                Ok(message) => taken.push(ReceivedMessage {
                    port: port.info.name.clone(),
                    slot,
                    message,
                }),
                Err(error) if error.kind == Kind::PortClosed => closed.push(error.text),
                Err(error) => return Err(error.into()),
            }
            Ok(())
        })?;
    }
    match (taken.first(), closed.first()) {
        (_, None) => Ok(Some(taken)),
        (None, Some(_)) => Ok(None),
        (Some(one), Some(closed)) => Err(Error::Data(format!(
            "{closed}, but there was a message on '{}': messages of all ports go together, so the senders must make the \
             same number of steps",
            one.label()
        ))),
    }
}

/// The loop of a mapper: whenever there is a message on every in port, it makes of them what goes out.
///
/// Messages on F_INIT ports go out by O_I and O_F ports, once a use; those on S ports by O_I ports, once a step.
///
/// # Errors
/// Says which ports do not go together; as `step`.
pub(crate) fn run(
    instance: &Instance,
    mut step: impl FnMut(&Instance, &[InstancePort], &[ReceivedMessage], &MessageMeta) -> Result<()>,
) -> Result<()> {
    let name = instance.name();
    let (f_init, s) = (
        connected(instance, Operator::FInit),
        connected(instance, Operator::S),
    );
    let (o_i, o_f) = (ports(instance, Operator::OI), ports(instance, Operator::OF));
    let names = |ports: &[InstancePort]| {
        ports
            .iter()
            .map(|port| port.info.name.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (f_init.is_empty(), s.is_empty()) {
        (true, true) => {
            let text = format!(
                "{name}: nothing is connected to an F_INIT or S port, so there is nothing to pass on"
            );
            return Err(Error::Setting(text));
        }
        (false, false) => {
            let text = format!(
                "{name}: it receives on F_INIT ({}) and on S ({}); a mapper has its in ports all on the one or all on \
                 the other",
                names(&f_init),
                names(&s)
            );
            return Err(Error::Setting(text));
        }
        (true, false) if o_f.iter().any(|port| port.info.connected) => {
            let text = format!(
                "{name}: what it receives on S ({}) goes out in every step, and O_F ({}) sends once, at the end; make the \
                 out ports O_I, or the in ports F_INIT",
                names(&s),
                names(&o_f)
            );
            return Err(Error::Setting(text));
        }
        _ => {}
    }
    let out: Vec<InstancePort> = o_i.into_iter().chain(o_f).collect();
    if f_init.is_empty() {
        instance.reuse()?;
        while let Some(taken) = round(instance, &s)? {
            let stamp = together(&taken, Some(&instance.overlay()))?;
            step(instance, &out, &taken, &stamp)?;
        }
        return Ok(());
    }
    while instance.reuse()? {
        let Some(taken) = round(instance, &f_init)? else {
            break;
        };
        // The overlay in force is that of these messages already.
        step(instance, &out, &taken, &together(&taken, None)?)?;
    }
    Ok(())
}

/// The times and settings of one message that is made of several: the latest time, and the latest next one, since the next message
/// that is made of several waits for all of them.
pub(crate) fn together(taken: &[ReceivedMessage], force: Option<&Overlay>) -> Result<MessageMeta> {
    let stamps: Vec<MessageMeta> = taken.iter().map(|taken| stamp(&taken.message)).collect();
    let timestamp = stamps
        .iter()
        .map(|stamp| stamp.timestamp)
        .fold(f64::NEG_INFINITY, f64::max);
    let nexts: Option<Vec<f64>> = stamps.iter().map(|stamp| stamp.next).collect();
    let next = nexts
        .and_then(|nexts| nexts.into_iter().reduce(f64::max))
        .map(|next| next.max(timestamp));
    let Some(force) = force else {
        return Ok(MessageMeta {
            timestamp,
            next,
            settings: None,
        });
    };
    let labels: Vec<String> = taken.iter().map(ReceivedMessage::label).collect();
    let overlays = labels
        .iter()
        .zip(&stamps)
        .filter_map(|(label, stamp)| Some((label.as_str(), stamp.settings.as_ref()?)));
    Ok(MessageMeta {
        timestamp,
        next,
        settings: Some(merge_overlays(force.clone(), overlays)?),
    })
}

/// Sends the same by every end of these ports.
pub(crate) fn to_all(
    instance: &Instance,
    out: &[InstancePort],
    value: &View<'_>,
    stamp: &MessageMeta,
) -> Result<()> {
    for port in out {
        for end in ends(instance, port) {
            send(instance, end.port, end.slot, value, stamp)?;
        }
    }
    Ok(())
}

/// The data of messages, in the order of their ends.
pub(crate) fn views(taken: &[ReceivedMessage]) -> Vec<View<'_>> {
    taken.iter().map(|taken| view(&taken.message)).collect()
}
