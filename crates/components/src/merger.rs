//! `titin.merger`: joins several messages to one, or passes several streams on as one.
//!
//! Settings: `how` and `axis`. With `how` as `concatenate`, `stack` or `list`, each step makes a
//! single message from the messages of all in ports and slots, in the order of the description.
//! With `by-time` or `first-come`, each message is passed on by itself. `axis` is the axis to join
//! along.

use titin_runtime::{BuiltIn, Instance, Layout, Message, Operator, Overlay, Patience};

use crate::array_joining::{self, ArrayError};
use crate::data::{MessageMeta, View, describe, merge_overlays, view};
use crate::mapper::{
    self, InstancePort, PortOrSlot, ReceivedMessage, connected, each_slot, ends, ports, to_all,
    unless_closed, views,
};
use crate::settings::{ComponentSettings, meta_of};
use crate::{Error, Result};

/// How messages are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinMode {
    /// Arrays are joined along an axis common to all arrays.
    Concatenate,
    /// Arrays are joined along a new axis.
    Stack,
    /// Any data become a list.
    List,
    /// Each message is passed on by itself, the earliest first.
    ByTime,
    /// Each message is passed on by itself, in the order of arrival.
    FirstCome,
}

pub(crate) const WORDS: [(&str, JoinMode); 5] = [
    ("concatenate", JoinMode::Concatenate),
    ("stack", JoinMode::Stack),
    ("list", JoinMode::List),
    ("by-time", JoinMode::ByTime),
    ("first-come", JoinMode::FirstCome),
];

pub(crate) fn run(instance: &Instance) -> Result<()> {
    let settings = ComponentSettings::new(instance, BuiltIn::Merger)?;
    let how = settings
        .word("", "how", &WORDS)?
        .unwrap_or(JoinMode::Concatenate);
    if matches!(how, JoinMode::ByTime | JoinMode::FirstCome) {
        return pass_on(instance, how);
    }
    mapper::run(instance, |instance, out, received, meta| {
        let settings = ComponentSettings::new(instance, BuiltIn::Merger)?;
        let axis = settings.count("", "axis")?.unwrap_or(0) as usize;
        let views = views(received);
        if how == JoinMode::List {
            return to_all(instance, out, &View::List(views), meta);
        }
        let joined = join(&views, how, axis);
        let (layout, elements) =
            joined.map_err(|error| error.in_messages(instance.name(), received))?;
        to_all(instance, out, &View::Array(layout, &elements), meta)
    })
}

/// Why messages cannot be joined.
#[derive(Debug, thiserror::Error)]
enum MergeError {
    /// The message numbered `number` holds `data`, not an array.
    #[error("it is {data}, no array; `how: list` takes anything")]
    NoArray { number: usize, data: String },
    #[error(transparent)]
    Join(#[from] ArrayError),
}

impl MergeError {
    /// The error with the name of the instance, and the port of the message without an array.
    fn in_messages(self, name: &str, received: &[ReceivedMessage]) -> Error {
        let from = match &self {
            MergeError::NoArray { number, .. } => {
                format!(" on port '{}'", received[*number].label())
            }
            MergeError::Join(_) => String::new(),
        };
        Error::Data(format!("{name}: messages{from} cannot be joined: {self}"))
    }
}

/// Joins arrays.
fn join(views: &[View<'_>], how: JoinMode, axis: usize) -> Result<(Layout, Vec<u8>), MergeError> {
    let mut arrays = Vec::with_capacity(views.len());
    for (number, view) in views.iter().enumerate() {
        match view {
            View::Array(layout, elements) => arrays.push((layout, *elements)),
            other => {
                let data = describe(other);
                return Err(MergeError::NoArray { number, data });
            }
        }
    }
    Ok(match how {
        JoinMode::Stack => array_joining::stack(&arrays, axis)?,
        _ => array_joining::concatenate(&arrays, axis)?,
    })
}

/// Passes messages on one by one.
fn pass_on(instance: &Instance, how: JoinMode) -> Result<()> {
    let s = connected(instance, Operator::S);
    let out = ports(instance, Operator::OI);
    let others = [Operator::FInit, Operator::OF]
        .map(|operator| connected(instance, operator))
        .concat();
    if s.is_empty() || !others.is_empty() {
        let mode = WORDS.iter().find(|(_, known)| *known == how);
        let text = format!(
            "{}: with `how: {}` a merger receives on S ports and sends on O_I ports, message by message; F_INIT and \
             O_F ports take part once a use",
            instance.name(),
            mode.map_or("", |(word, _)| word)
        );
        return Err(Error::Setting(text));
    }
    instance.reuse()?;
    match how {
        JoinMode::ByTime => by_time(instance, &s, &out),
        _ => first_come(instance, &s, &out),
    }
}

/// Passes messages on in the order of arrival.
fn first_come(instance: &Instance, s: &[InstancePort], out: &[InstancePort]) -> Result<()> {
    instance.skip_checks("messages are passed on as they come, so their times may fall");
    let pass = |message: &Message| forward(instance, out, &view(message), meta_of(message), None);
    // The sender's first message tells how many slots a port has.
    for port in s.iter().filter(|port| ends(instance, port).is_empty()) {
        let first = instance.receive(port.id, Some(0), Patience::Forever);
        if let Some(message) = unless_closed(first)? {
            pass(&message)?;
        }
    }
    let ids: Vec<_> = s.iter().map(|port| port.id).collect();
    loop {
        let next = instance.receive_any(&ids, Patience::Forever);
        match unless_closed(next)? {
            Some((_, _, message)) => pass(&message)?,
            None => return Ok(()),
        }
    }
}

/// Passes messages on by time. The earliest of the next messages of all ends goes first, so that
/// the order does not depend on the speed of the senders.
fn by_time(instance: &Instance, s: &[InstancePort], out: &[InstancePort]) -> Result<()> {
    let mut heads = first_messages(instance, s)?;
    let time = |message: &Message| message.timestamp;
    loop {
        let times = heads.iter().map(|(_, head)| head.as_ref().map(time));
        let Some((earliest, _)) = earliest(times) else {
            return Ok(());
        };
        let Some(message) = heads[earliest].1.take() else {
            return Ok(());
        };
        let others = heads.iter().filter_map(|(_, head)| head.as_ref().map(time));
        let next = others.chain(message.next_timestamp).reduce(f64::min);
        forward(instance, out, &view(&message), meta_of(&message), next)?;
        heads[earliest].1 = receive(instance, &heads[earliest].0)?;
    }
}

/// Receives the first message of each end; `None` for a closed port.
fn first_messages(
    instance: &Instance,
    ports: &[InstancePort],
) -> Result<Vec<(PortOrSlot, Option<Message>)>> {
    let mut heads = Vec::new();
    for port in ports {
        each_slot(instance, port, |slot| {
            let port = port.id;
            let end = PortOrSlot { port, slot };
            let first = receive(instance, &end)?;
            heads.push((end, first));
            Ok(())
        })?;
    }
    Ok(heads)
}

fn receive(instance: &Instance, end: &PortOrSlot) -> Result<Option<Message>> {
    unless_closed(instance.receive(end.port, end.slot, Patience::Forever))
}

/// The earliest time and the index of the earliest time; the first of equal times.
fn earliest(times: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64)> {
    let known = times
        .enumerate()
        .filter_map(|(index, time)| Some((index, time?)));
    known.reduce(|best, other| if other.1 < best.1 { other } else { best })
}

/// Sends a message on. The overlay in force and the message's own overlay go along.
fn forward(
    instance: &Instance,
    out: &[InstancePort],
    value: &View<'_>,
    meta: MessageMeta,
    next: Option<f64>,
) -> Result<()> {
    let in_force: Overlay = (*instance.overlay()).clone();
    let settings = merge_overlays(
        in_force,
        meta.settings.as_ref().map(|overlay| ("", overlay)),
    )?;
    to_all(
        instance,
        out,
        value,
        &MessageMeta {
            timestamp: meta.timestamp,
            next,
            settings: Some(settings),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_runtime::{Dtype, StorageOrder};

    #[test]
    fn the_earliest_goes_first_and_equal_ones_in_order() {
        assert_eq!(
            earliest([Some(2.0), None, Some(1.0), Some(1.0)].into_iter()),
            Some((2, 1.0))
        );
        assert_eq!(earliest([None, None].into_iter()), None);
    }

    #[test]
    fn arrays_are_joined_and_others_named() {
        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [2]);
        let array = |elements: &'static [u8]| View::Array(layout.clone(), elements);
        let views = [array(&[1, 2]), array(&[3, 4])];
        let (joined, elements) = join(&views, JoinMode::Concatenate, 0).unwrap();
        assert_eq!(
            (joined.shape.as_slice(), elements.as_slice()),
            (&[4][..], &[1, 2, 3, 4][..])
        );
        let (joined, elements) = join(&views, JoinMode::Stack, 1).unwrap();
        assert_eq!(
            (joined.shape.as_slice(), elements.as_slice()),
            (&[2, 2][..], &[1, 3, 2, 4][..])
        );
        let texts = [array(&[1, 2]), View::Text("x".into())];
        let error = join(&texts, JoinMode::Stack, 0).unwrap_err();
        assert!(matches!(error, MergeError::NoArray { number: 1, .. }));
        let why = error.to_string();
        assert!(
            why.contains("it is text") && why.contains("how: list"),
            "{why}"
        );
    }
}
