//! Compression of messages without a filter for it: on conduits between sites where it pays, or where
//! the description asks for it.

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
pub(super) fn compressed(
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
    let whole = match (filtered, &payload.parts[..]) {
        (Some(body), _) => Some(body.clone()),
        (None, [_]) => None,
        (None, _) => Some(message.copy_of(payload)?),
    };
    let body: &[u8] = whole.as_ref().map_or(&payload.parts[0], |whole| whole);
    let choice = state.compression.get_or_insert_default();
    if outlet.end.compress != Compress::Always && !is_worthwhile(choice, body, carrier)? {
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
                before: length,
                after: small.len() as u64,
                time: begun.elapsed(),
            });
            small
        }
    };
    if filtered.is_none() {
        message.compressed = Some(small.clone());
    }
    if small.len() as u64 >= length {
        return Ok(None);
    }
    meta.codings.push((Codec::Zstd, length));
    Ok(Some(small))
}

/// Whether a message is sooner at the receiver if it is compressed. Measures a sample of the message, if
/// one is due.
fn is_worthwhile(
    choice: &mut CompressionChoice,
    body: &[u8],
    carrier: &dyn Carrier,
) -> Result<bool> {
    let Some(line_rate) = carrier.line_rate() else {
        return Ok(false);
    };
    if choice.wants_sample() {
        let pieces: Vec<&[u8]> = sample_places(body.len())
            .map(|place| &body[place])
            .collect();
        let begun = Instant::now();
        let after = compress_pieces(&pieces, LEVEL)?;
        choice.note_sample(Measurement {
            before: pieces.iter().map(|piece| piece.len() as u64).sum(),
            after,
            time: begun.elapsed(),
        });
    }
    Ok(choice.is_worthwhile(line_rate))
}
