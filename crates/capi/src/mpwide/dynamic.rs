//! Messages whose size the receiver does not know.
//!
//! By one connection the message goes as it is. By several connections its size goes before it, on the first one, so that the
//! receiver knows the pieces.

use std::borrow::Cow;
use std::sync::Arc;

use titin_runtime::Result;

use crate::error::usage;
use crate::mpwide::area::{Area, piece_sizes};
use crate::mpwide::memory::{Refusal, RoomMemory, check_room};
use crate::mpwide::table::Carrier;
use crate::mpwide::transfer::{
    Incoming, Outgoing, Posted, exchange, failure, post, post_send, sendable, transfer,
    wait_for_all,
};

/// Sends a message by some connections, and receives one by some, which may be the same. Returns the size of the
/// received message, which is at most `most`.
///
/// # Safety
/// The bytes do not change, and no other code uses the memory, until the call returns.
pub(super) unsafe fn exchange_any(
    (senders, bytes): (Vec<Carrier>, Area),
    (receivers, room): (Vec<Carrier>, Area),
    most: u64,
) -> Result<u64> {
    // SAFETY: as the caller promises. The bytes are copied if they overlap the memory.
    let (bytes, memory) = unsafe { (sendable(bytes, &[room]), room.memory()) };
    if let ([sender], [receiver]) = (&senders[..], &receivers[..])
        && Arc::ptr_eq(&sender.path, &receiver.path)
    {
        return exchange(sender, &bytes, RoomMemory { room: memory, most });
    }
    let sent = post_any(senders, bytes);
    let length = match &receivers[..] {
        [receiver] => {
            let request = receiver
                .path
                .post_receive(RoomMemory { room: memory, most });
            Posted::new(receiver, request).wait()?
        }
        _ => receive_pieces(receivers, memory, most)?,
    };
    wait_for_all(&sent)?;
    Ok(length)
}

/// Begins to send a message.
fn post_any(senders: Vec<Carrier>, bytes: Cow<'static, [u8]>) -> Vec<Posted> {
    if let [carrier] = &senders[..] {
        let carrier = carrier.clone();
        return vec![post_send(Outgoing { carrier, bytes })];
    }
    let size = Outgoing {
        carrier: senders[0].clone(),
        bytes: Cow::Owned((bytes.len() as u64).to_le_bytes().to_vec()),
    };
    let mut outgoing = vec![size];
    let mut offset = 0;
    let sizes: Vec<usize> = piece_sizes(bytes.len(), senders.len()).collect();
    for (carrier, size) in senders.into_iter().zip(sizes) {
        let piece = offset..offset + size;
        offset += size;
        let bytes = match &bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[piece]),
            Cow::Owned(bytes) => Cow::Owned(bytes[piece].to_vec()),
        };
        outgoing.push(Outgoing { carrier, bytes });
    }
    post(outgoing, Vec::new())
}

/// Receives a message by several connections.
fn receive_pieces(receivers: Vec<Carrier>, room: &'static mut [u8], most: u64) -> Result<u64> {
    let first = &receivers[0];
    let size = first.path.receive(None);
    let size = size.map_err(|why| failure(&first.label, &receivers, why))?;
    let size: [u8; 8] = size.bytes[..].try_into().map_err(|_| {
        usage(format!(
            "{}: the other end has sent a message without its size: call MPW_DSendRecv or MPW_DCycle at both ends",
            first.label
        ))
    })?;
    let length = u64::from_le_bytes(size);
    if let Err(why) = check_room(length, room.len() as u64, most) {
        // The sender hears why.
        let refused = first.path.receive_to(Refusal(why), None);
        refused.map_err(|why| failure(&first.label, &receivers, why))?;
    }
    let sizes: Vec<usize> = piece_sizes(length as usize, receivers.len()).collect();
    let mut rest = &mut room[..length as usize];
    let mut incoming = Vec::new();
    for (carrier, size) in receivers.into_iter().zip(sizes) {
        let (memory, behind) = rest.split_at_mut(size);
        rest = behind;
        incoming.push(Incoming { carrier, memory });
    }
    transfer(Vec::new(), incoming)?;
    Ok(length)
}
