//! Compression of messages on conduits without the filter `zstd`: between sites where compressed
//! messages are sooner at the receiver, or where the description asks for compression.

use std::time::Instant;

use titin_transport::{Carrier, SharedBuffer};
use titin_wire::Compress;
use titin_wire::meta::{Codec, Meta};

use crate::compression::{CompressionChoice, LEVEL, Measurement, sample_places};
use crate::filter::{compress, compress_pieces};
use crate::port::{Outlet, OutletState};
use crate::send_state::SendState;
use crate::{Payload, Result};

/// The compressed form of a message, if the message is to be sent in this form. Notes the coding in
/// the metadata. `filtered` is the message after the filters before the wire, if there are any.
pub(super) fn compress_if_worthwhile(
    outlet: &Outlet,
    state: &mut OutletState,
    carrier: &dyn Carrier,
    (payload, filtered): (&Payload<'_>, Option<&SharedBuffer>),
    message: &mut SendState,
    meta: &mut Meta,
) -> Result<Option<SharedBuffer>> {
    let length = filtered.map_or(payload.length(), |body| body.len() as u64);
    if !outlet.end.may_compress(length) {
        return Ok(None);
    }
    let compression = Compression {
        choice: state.compression.get_or_insert_default(),
        rule: match outlet.end.compress {
            Compress::Always => CompressionRule::Always,
            _ => CompressionRule::IfSooner(carrier.line_rate()),
        },
    };
    let small = compression.apply(payload, filtered, message)?;
    if small.is_some() {
        meta.codings.push((Codec::Zstd, length));
    }
    Ok(small)
}

/// When a message is compressed.
#[derive(Clone, Copy)]
enum CompressionRule {
    Always,
    /// Where the compressed message is sooner at the receiver, by a line with this rate in bytes a second,
    /// once the rate is known.
    IfSooner(Option<u64>),
}

/// The compression of a message that may be compressed.
struct Compression<'a> {
    choice: &'a mut CompressionChoice,
    rule: CompressionRule,
}

impl Compression<'_> {
    /// The compressed form of the message, if it is to be sent in this form. Otherwise notes in
    /// `message` that the message goes as it is: the decision holds until the conduit has room.
    fn apply(
        self,
        payload: &Payload<'_>,
        filtered: Option<&SharedBuffer>,
        message: &mut SendState,
    ) -> Result<Option<SharedBuffer>> {
        if message.goes_plain {
            return Ok(None);
        }
        let small = self.compress(payload, filtered, message)?;
        message.goes_plain = small.is_none();
        Ok(small)
    }

    fn compress(
        self,
        payload: &Payload<'_>,
        filtered: Option<&SharedBuffer>,
        message: &mut SendState,
    ) -> Result<Option<SharedBuffer>> {
        let choice = self.choice;
        if !self.rule.may_be_worthwhile(choice) {
            choice.note_plain();
            return Ok(None);
        }
        let whole = match (filtered, &payload.parts[..]) {
            (Some(body), _) => Some(body.clone()),
            (None, [_]) => None,
            (None, _) => Some(message.copy_of(payload)?),
        };
        let body: &[u8] = whole.as_ref().map_or(&payload.parts[0], |whole| whole);
        if !self.rule.is_worthwhile(choice, body)? {
            choice.note_plain();
            return Ok(None);
        }
        let small = match &message.compressed {
            // Another receiver gets the same bytes.
            Some(small) if filtered.is_none() => small.clone(),
            _ => {
                let begun = Instant::now();
                let small = SharedBuffer::from(compress(body, LEVEL)?);
                choice.note_compressed(Measurement {
                    before: body.len() as u64,
                    after: small.len() as u64,
                    time: begun.elapsed(),
                });
                small
            }
        };
        if filtered.is_none() {
            message.compressed = Some(small.clone());
        }
        Ok(Some(small).filter(|small| small.len() < body.len()))
    }
}

impl CompressionRule {
    /// Whether the message may be compressed, as far as can be told without its data.
    fn may_be_worthwhile(self, choice: &CompressionChoice) -> bool {
        match self {
            CompressionRule::Always => true,
            CompressionRule::IfSooner(rate) => {
                rate.is_some_and(|rate| choice.may_be_worthwhile(rate))
            }
        }
    }

    /// Whether the message with the data `body` is compressed. Measures a sample of the data, if one is
    /// due.
    fn is_worthwhile(self, choice: &mut CompressionChoice, body: &[u8]) -> Result<bool> {
        let CompressionRule::IfSooner(rate) = self else {
            return Ok(true);
        };
        if choice.wants_sample() {
            choice.note_sample(measure_sample(body)?);
        }
        Ok(rate.is_some_and(|rate| choice.is_worthwhile(rate)))
    }
}

/// Compresses a sample of a message.
fn measure_sample(body: &[u8]) -> Result<Measurement> {
    let pieces: Vec<&[u8]> = sample_places(body.len())
        .map(|place| &body[place])
        .collect();
    let begun = Instant::now();
    let after = compress_pieces(&pieces, LEVEL)?;
    Ok(Measurement {
        before: pieces.iter().map(|piece| piece.len() as u64).sum(),
        after,
        time: begun.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use titin_wire::structure::{Value, encode};

    use super::*;

    /// Bytes that do not compress.
    fn noise() -> Value<Vec<u8>> {
        let next = |seed: &u64| Some(seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        let numbers = std::iter::successors(Some(1), next);
        Value::Bytes(
            numbers
                .map(|seed| (seed >> 56) as u8)
                .take(200_000)
                .collect(),
        )
    }

    /// Makes the choice for a message that does not compress.
    fn send_plain(
        choice: &mut CompressionChoice,
        line_rate: Option<u64>,
        payload: &Payload<'_>,
        message: &mut SendState,
    ) {
        let rule = CompressionRule::IfSooner(line_rate);
        let small = Compression { choice, rule }.apply(payload, None, message);
        assert!(small.unwrap().is_none());
    }

    #[test]
    fn parts_are_gathered_for_samples_alone() {
        let data = noise();
        let encoded = encode(&data).unwrap();
        let payload = Payload::structure(&encoded);
        assert!(payload.parts.len() > 1);
        for (line_rate, expected) in [(None, 0), (Some(1_000_000), 5)] {
            let mut choice = CompressionChoice::default();
            let is_gathered = |_: &i32| {
                let mut message = SendState::of(&payload, (0.0, None));
                send_plain(&mut choice, line_rate, &payload, &mut message);
                message.copy.is_some()
            };
            assert_eq!((0..20).filter(is_gathered).count(), expected);
        }
    }

    #[test]
    fn a_message_that_waits_for_room_is_one_message() {
        let data = noise();
        let encoded = encode(&data).unwrap();
        let payload = Payload::structure(&encoded);
        let (mut choice, line_rate) = (CompressionChoice::default(), Some(1_000_000));
        let mut message = SendState::of(&payload, (0.0, None));
        send_plain(&mut choice, line_rate, &payload, &mut message);
        let before = format!("{choice:?}");
        for _ in 0..3 {
            send_plain(&mut choice, line_rate, &payload, &mut message);
        }
        assert_eq!(format!("{choice:?}"), before);
        // Another message is another one.
        let mut message = SendState::of(&payload, (1.0, None));
        send_plain(&mut choice, line_rate, &payload, &mut message);
        assert_ne!(format!("{choice:?}"), before);
    }
}
