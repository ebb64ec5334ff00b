//! `titin.merger`: several messages become one, or one stream.
//!
//! Settings: `how` is `concatenate`, `stack` or `list`, which make one message a step of those of all in ports and
//! slots, in the order of the description; or `by-time` or `first-come`, which pass each message on by itself. `axis`
//! is that to join along.

use titin_runtime::{BuiltIn, Instance, Layout, Message, Operator, Overlay, Patience};

use crate::array;
use crate::data::{Stamp, View, describe, merge_overlays, view};
use crate::mapper::{self, End, Port, connected, each_slot, ends, open, ports, to_all, views};
use crate::settings::{Settings, stamp};
use crate::{Error, Result};

/// What becomes of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Arrays joined along an axis that they have.
    Concatenate,
    /// Arrays joined along a new axis.
    Stack,
    /// A list of whatever they are.
    List,
    /// Each by itself, the earliest time first.
    ByTime,
    /// Each by itself, as they come.
    FirstCome,
}

pub(crate) const WORDS: [(&str, How); 5] = [
    ("concatenate", How::Concatenate),
    ("stack", How::Stack),
    ("list", How::List),
    ("by-time", How::ByTime),
    ("first-come", How::FirstCome),
];

pub(crate) fn run(instance: &Instance) -> Result<()> {
    let settings = Settings::new(instance, BuiltIn::Merger)?;
    let how = settings
        .word("", "how", &WORDS)?
        .unwrap_or(How::Concatenate);
    if matches!(how, How::ByTime | How::FirstCome) {
        return pass_on(instance, how);
    }
    mapper::run(instance, |instance, out, taken, stamp| {
        let settings = Settings::new(instance, BuiltIn::Merger)?;
        let axis = settings.count("", "axis")?.unwrap_or(0) as usize;
        let views = views(taken);
        if how == How::List {
            return to_all(instance, out, &View::List(views), stamp);
        }
        let (layout, elements) = join(&views, how, axis).map_err(|(number, why)| {
            let from = number.map(|number: usize| format!(" on port '{}'", taken[number].label()));
            let from = from.unwrap_or_default();
            Error::Data(format!(
                "{}: messages{from} cannot be joined: {why}",
                instance.name()
            ))
        })?;
        to_all(instance, out, &View::Array(layout, &elements), stamp)
    })
}

/// Joins arrays; or which message stands in the way, if it is one, and why.
fn join(
    views: &[View<'_>],
    how: How,
    axis: usize,
) -> Result<(Layout, Vec<u8>), (Option<usize>, String)> {
    let mut arrays = Vec::with_capacity(views.len());
    for (number, view) in views.iter().enumerate() {
        match view {
            View::Array(layout, elements) => arrays.push((layout, *elements)),
            other => {
                return Err((
                    Some(number),
                    format!(
                        "it is {}, no array; `how: list` takes anything",
                        describe(other)
                    ),
                ));
            }
        }
    }
    let joined = if how == How::Stack {
        array::stack(&arrays, axis)
    } else {
        array::concatenate(&arrays, axis)
    };
    joined.map_err(|why| (None, why))
}

/// Passes messages on one by one.
fn pass_on(instance: &Instance, how: How) -> Result<()> {
    let name = instance.name();
    let word = WORDS
        .iter()
        .find(|(_, known)| *known == how)
        .map_or("", |(word, _)| word);
    let (s, out) = (
        connected(instance, Operator::S),
        ports(instance, Operator::OI),
    );
    let others = [Operator::FInit, Operator::OF]
        .map(|operator| connected(instance, operator))
        .concat();
    if s.is_empty() || !others.is_empty() {
        let text = format!(
            "{name}: with `how: {word}` a merger receives on S ports and sends on O_I ports, message by message; F_INIT and \
             O_F ports take part once a use"
        );
        return Err(Error::Setting(text));
    }
    instance.reuse()?;
    if how == How::ByTime {
        return by_time(instance, &s, &out);
    }
    instance.skip_checks("messages are passed on as they come, so their times may fall");
    // A port whose slots the sender counts has none before its first message.
    let ids: Vec<_> = s.iter().map(|port| port.id).collect();
    for port in s.iter().filter(|port| ends(instance, port).is_empty()) {
        if let Some(message) = open(instance.receive(port.id, Some(0), Patience::Forever))? {
            forward(instance, &out, &view(&message), stamp(&message), None)?;
        }
    }
    while let Some((_, _, message)) = open(instance.receive_any(&ids, Patience::Forever))? {
        forward(instance, &out, &view(&message), stamp(&message), None)?;
    }
    Ok(())
}

/// Always the earliest of the messages at hand, so that the order does not depend on who is faster.
fn by_time(instance: &Instance, s: &[Port], out: &[Port]) -> Result<()> {
    let mut heads: Vec<(End, Option<Message>)> = Vec::new();
    for port in s {
        each_slot(instance, port, |slot| {
            let first = open(instance.receive(port.id, slot, Patience::Forever))?;
            heads.push((
                End {
                    port: port.id,
                    slot,
                },
                first,
            ));
            Ok(())
        })?;
    }
    loop {
        let times = heads
            .iter()
            .map(|(_, head)| head.as_ref().map(|message| message.timestamp));
        let Some((earliest, _)) = earliest(times) else {
            return Ok(());
        };
        let (end, head) = &mut heads[earliest];
        let Some(message) = head.take() else {
            return Ok(());
        };
        let end = end.clone();
        let others = heads
            .iter()
            .filter_map(|(_, head)| head.as_ref())
            .map(|message| message.timestamp);
        let next = others.chain(message.next_timestamp).reduce(f64::min);
        forward(instance, out, &view(&message), stamp(&message), next)?;
        heads[earliest].1 = open(instance.receive(end.port, end.slot, Patience::Forever))?;
    }
}

/// The earliest time and its place; the first of equal ones.
fn earliest(times: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64)> {
    let known = times
        .enumerate()
        .filter_map(|(place, time)| Some((place, time?)));
    known.reduce(|best, other| if other.1 < best.1 { other } else { best })
}

fn forward(
    instance: &Instance,
    out: &[Port],
    value: &View<'_>,
    stamp: Stamp,
    next: Option<f64>,
) -> Result<()> {
    let force: Overlay = (*instance.overlay()).clone();
    let settings = merge_overlays(force, stamp.settings.as_ref().map(|overlay| ("", overlay)))?;
    to_all(
        instance,
        out,
        value,
        &Stamp {
            timestamp: stamp.timestamp,
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
        let (joined, elements) = join(&views, How::Concatenate, 0).unwrap();
        assert_eq!(
            (joined.shape.as_slice(), elements.as_slice()),
            (&[4][..], &[1, 2, 3, 4][..])
        );
        let (joined, elements) = join(&views, How::Stack, 1).unwrap();
        assert_eq!(
            (joined.shape.as_slice(), elements.as_slice()),
            (&[2, 2][..], &[1, 3, 2, 4][..])
        );
        let (number, why) =
            join(&[array(&[1, 2]), View::Text("x".into())], How::Stack, 0).unwrap_err();
        assert_eq!(number, Some(1));
        assert!(
            why.contains("it is text") && why.contains("how: list"),
            "{why}"
        );
    }
}
