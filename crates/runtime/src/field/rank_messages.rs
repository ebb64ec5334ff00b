//! Messages between ranks about a field, and the bytes of the messages.

use titin_array::{Bytes as _, DirectoryAnswer, DirectoryEntries, ElementRequest, Error as Unfit};
use titin_wire::control;

use super::versions::VersionMessage;

/// A message between ranks, to find out the schedule of a field, or about the field's versions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldMessage {
    Enter(DirectoryEntries),
    Ask(DirectoryEntries),
    Answer(DirectoryAnswer),
    Want(ElementRequest),
    Acknowledge,
    Done,
    Go,
    Complete,
    /// About the versions of a pulled field, once the schedules are known.
    Version(VersionMessage),
}

/// A message, with the rank of its sender on the way in, or of its receiver on the way out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoutedMessage {
    /// Whether the other rank is a rank of the sender.
    pub(crate) of_sender: bool,
    pub(crate) rank: u32,
    pub(crate) message: FieldMessage,
}

/// A message as it travels: the number of its kind, and its contents.
pub(super) fn encode(message: &FieldMessage) -> (u8, Vec<u8>) {
    match message {
        FieldMessage::Enter(entries) => (1, entries.to_bytes()),
        FieldMessage::Ask(entries) => (2, entries.to_bytes()),
        FieldMessage::Answer(answer) => (3, answer.to_bytes()),
        FieldMessage::Want(wants) => (4, wants.to_bytes()),
        FieldMessage::Acknowledge => (5, Vec::new()),
        FieldMessage::Done => (6, Vec::new()),
        FieldMessage::Go => (7, Vec::new()),
        FieldMessage::Complete => (8, Vec::new()),
        FieldMessage::Version(message) => (9, control::encode(message)),
    }
}

/// The reverse of [`encode`].
pub(super) fn decode(kind: u8, body: &[u8]) -> Result<FieldMessage, Unfit> {
    Ok(match kind {
        1 => FieldMessage::Enter(DirectoryEntries::from_bytes(body)?),
        2 => FieldMessage::Ask(DirectoryEntries::from_bytes(body)?),
        3 => FieldMessage::Answer(DirectoryAnswer::from_bytes(body)?),
        4 => FieldMessage::Want(ElementRequest::from_bytes(body)?),
        5 => FieldMessage::Acknowledge,
        6 => FieldMessage::Done,
        7 => FieldMessage::Go,
        8 => FieldMessage::Complete,
        9 => FieldMessage::Version(
            control::decode(body).map_err(|error| Unfit::Broken(error.to_string()))?,
        ),
        kind => {
            return Err(Unfit::Broken(format!(
                "a rank message of unknown kind {kind}"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use titin_array::{Decomposition, Exchange, Ownership, Region, Role, Side};

    use super::*;
    use crate::field::setup::ScheduleSetup;

    const SHAPE: [u64; 2] = [6, 4];

    /// A side of two ranks with three rows each, by boxes or by numbers, and the two parts.
    fn side(by_boxes: bool) -> (Side, [Ownership; 2]) {
        let rows = |first: u64| match by_boxes {
            true => Ownership::Boxes(vec![
                Region::new(&[first, 0], &[first + 3, SHAPE[1]]).unwrap(),
            ]),
            false => Ownership::indices(first * SHAPE[1]..(first + 3) * SHAPE[1]),
        };
        let decomposition = match by_boxes {
            true => Decomposition::boxes(&SHAPE, 2),
            false => Decomposition::indices(&SHAPE, 2),
        };
        (Side::new(decomposition.unwrap()), [rows(0), rows(3)])
    }

    /// Both ranks of both ends, just begun.
    fn begun(by_boxes: bool) -> Vec<ScheduleSetup> {
        let (side, parts) = side(by_boxes);
        let exchange = Exchange::new(side.clone(), side).unwrap();
        let ends = [Role::Sender, Role::Receiver]
            .into_iter()
            .flat_map(|role| [(role, 0), (role, 1)]);
        let begin = |(role, rank): (Role, u32)| {
            ScheduleSetup::begin(exchange.clone(), parts[rank as usize].clone(), role, rank)
                .unwrap()
        };
        ends.map(begin).collect()
    }

    proptest! {
        /// Messages of an honest exchange, some with changed bytes, kinds or senders: each end goes
        /// on or reports the error, and the end's answers stay in bounds.
        #[test]
        fn changed_messages_are_read_or_refused(
            by_boxes in any::<bool>(),
            changes in vec((0..40usize, 0..80usize, any::<u8>(), 0..10u8, 0..4u32), 0..6),
        ) {
            let mut setups = begun(by_boxes);
            let (mut count, mut refused) = (0, false);
            loop {
                let mut messages = Vec::new();
                for (place, setup) in setups.iter_mut().enumerate() {
                    messages.extend(setup.take().into_iter().map(|routed| (place, routed)));
                }
                if messages.is_empty() {
                    break;
                }
                for (place, RoutedMessage { of_sender, rank, message }) in messages {
                    let (mut kind, mut body) = encode(&message);
                    let mut from = (place % 2) as u32;
                    for (_, at, byte, other_kind, other) in changes.iter().filter(|(number, ..)| *number == count) {
                        match body.get_mut(*at) {
                            Some(place) => *place = *byte,
                            None => (kind, from) = (*other_kind, *other),
                        }
                    }
                    count += 1;
                    let to = usize::from(!of_sender) * 2 + rank as usize;
                    // Where no end has such a rank, the message is dropped.
                    let Some(setup) = setups.get_mut(to) else { continue };
                    let read = decode(kind, &body).and_then(|message| {
                        setup.receive(RoutedMessage { of_sender: place < 2, rank: from, message })
                    });
                    refused |= read.is_err();
                }
                prop_assert!(count < 1000, "they never come to an end");
            }
            if changes.is_empty() {
                prop_assert!(!refused && setups.iter().all(|setup| setup.schedule().is_some()));
            }
            for schedule in setups.iter().filter_map(ScheduleSetup::schedule) {
                prop_assert!(schedule.elements() <= 24);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind: u8, body in vec(any::<u8>(), 0..200)) {
            if let Ok(message) = decode(kind, &body) {
                let (kind_again, again) = encode(&message);
                prop_assert_eq!(kind_again, kind);
                prop_assert!(decode(kind, &again).is_ok());
            }
        }
    }
}
