//! How a path sends a message.

use std::io::IoSlice;
use std::sync::Arc;

use titin_transport::{Outgoing, Room};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};
use titin_wire::path::{CONDUIT, LongMessage, PART, PartKind};

use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::lane::{PARTS_AT_ONCE, Transfer};
use crate::memory::SendMemory;

/// What is known of the messages that were sent.
#[derive(Default)]
pub(crate) struct SendState {
    /// The metadata of the last message, for a message like it.
    last: Arc<Meta>,
    /// How many messages have begun.
    messages: u64,
    /// How often the receiver was asked for room for the next part.
    asked: u8,
}

/// What happens to bytes for which the sockets have no room, although the receiver has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draining {
    /// The call waits until they have left: a blocking call.
    Awaited,
    /// The bytes are copied, and leave later.
    Copied,
}

impl SendState {
    /// How many messages have begun.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// The metadata of a message.
    fn meta_of(&mut self, content: &Content) -> Arc<Meta> {
        if self.last.content != *content {
            self.last = Arc::new(Meta {
                content: content.clone(),
                ..Meta::default()
            });
        }
        self.last.clone()
    }

    /// Begins a message: sends the head of a long one, or `parts` as a short one. False if there is no room.
    pub(crate) fn begin(
        &mut self,
        end: &PathEnd,
        meta: &Arc<Meta>,
        length: u64,
        parts: &[IoSlice<'_>],
        draining: Draining,
    ) -> Result<bool> {
        let has_begun = if length <= PART {
            match self.claim(end, length)? {
                Some(sequence) => {
                    send(end, sequence, PartKind::Short, meta, parts, draining)?;
                    true
                }
                None => false,
            }
        } else {
            let meta = Meta::clone(meta);
            let head = LongMessage { length, meta }.encode();
            self.send_bytes(end, PartKind::Head, &[IoSlice::new(&head)], draining)?
        };
        if has_begun {
            self.messages += 1;
            end.counts
                .note_sent(1, if length <= PART { length } else { 0 });
        }
        Ok(has_begun)
    }

    /// Sends a part of the long message. False if there is no room.
    ///
    /// # Errors
    /// Those of the path; and an account of this message, of which the receiver takes no more.
    pub(crate) fn send_part(
        &mut self,
        end: &PathEnd,
        parts: &[IoSlice<'_>],
        draining: Draining,
    ) -> Result<bool> {
        end.check_dropped_message(self.messages - 1)?;
        let is_sent = self.send_bytes(end, PartKind::Part, parts, draining)?;
        if is_sent {
            end.counts
                .note_sent(0, parts.iter().map(|part| part.len() as u64).sum());
        }
        Ok(is_sent)
    }

    /// Ends a long message of which not all parts were sent.
    pub(crate) fn abandon(&self, end: &PathEnd) {
        if let Some(sequence) = end.window.claim_without_room() {
            let (kind, meta) = (PartKind::Abandoned, Arc::default());
            let _ = send(end, sequence, kind, &meta, &[], Draining::Copied);
        }
    }

    fn send_bytes(
        &mut self,
        end: &PathEnd,
        kind: PartKind,
        parts: &[IoSlice<'_>],
        draining: Draining,
    ) -> Result<bool> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let Some(sequence) = self.claim(end, length)? else {
            return Ok(false);
        };
        let meta = Meta {
            content: bytes(length),
            ..Meta::default()
        };
        send(end, sequence, kind, &Arc::new(meta), parts, draining)?;
        Ok(true)
    }

    /// The number of the next message of the conduit; `None` if there is no room for `length` bytes, of which
    /// the receiver is told.
    fn claim(&mut self, end: &PathEnd, length: u64) -> Result<Option<u64>> {
        match end.window.claim(length) {
            Room::Free(sequence) => {
                self.asked = 0;
                Ok(Some(sequence))
            }
            Room::Full => {
                // The second request has the receiver acknowledge each message at once.
                if self.asked < 2 {
                    end.carrier.ask(CONDUIT, end.window.sent());
                    self.asked += 1;
                }
                Ok(None)
            }
            Room::Closed if end.window.finished() => Err(PathError::ClosedHere),
            Room::Closed => Err(PathError::Closed),
        }
    }
}

fn send(
    end: &PathEnd,
    sequence: u64,
    kind: PartKind,
    meta: &Arc<Meta>,
    parts: &[IoSlice<'_>],
    draining: Draining,
) -> Result<()> {
    let head = Head {
        tag: kind.tag(),
        ..Head::new(CONDUIT, sequence, 0.0, None)
    };
    let message = Outgoing::new(head, meta, parts);
    let sent = match draining {
        Draining::Awaited => end.carrier.send(&message),
        Draining::Copied => end.carrier.send_or_copy(&message),
    };
    // The number of the message is taken, so no other message can follow.
    sent.map_err(|why| end.break_off(why))?;
    Ok(())
}

/// A message on its way out.
pub(crate) struct SendTransfer<M> {
    memory: M,
    length: u64,
    content: Content,
    stage: SendStage,
    draining: Draining,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendStage {
    NotBegun,
    /// A long message, with so many bytes sent.
    Parts(u64),
    Done,
}

impl SendStage {
    /// The stage of a message of `length` bytes once `sent` bytes of a long one are sent.
    pub(crate) fn after(sent: u64, length: u64) -> Self {
        if length <= PART || sent == length {
            SendStage::Done
        } else {
            SendStage::Parts(sent)
        }
    }
}

impl<M: SendMemory> SendTransfer<M> {
    /// A message of the bytes in `memory`: an array with this layout, or bytes.
    pub(crate) fn new(memory: M, layout: Option<Layout>, draining: Draining) -> Self {
        let length = memory.parts().iter().map(|part| part.len() as u64).sum();
        SendTransfer {
            memory,
            length,
            content: layout.map_or_else(|| bytes(length), Content::Array),
            stage: SendStage::NotBegun,
            draining,
        }
    }
}

impl<M: SendMemory> Transfer for SendTransfer<M> {
    type State = SendState;
    type Output = ();

    /// # Errors
    /// Those of the path; an account of an earlier message, after which nothing of this message was sent; an account of
    /// this message; and [`PathError::Message`] if the layout has another number of bytes.
    fn advance(&mut self, end: &PathEnd, state: &mut SendState) -> Result<Option<()>> {
        let parts = self.memory.parts();
        for _ in 0..PARTS_AT_ONCE {
            let sent = match self.stage {
                SendStage::NotBegun => {
                    end.check_dropped()?;
                    let meta = state.meta_of(&self.content);
                    meta.check(self.length)
                        .map_err(|why| PathError::Message(why.to_string()))?;
                    if !state.begin(end, &meta, self.length, &parts, self.draining)? {
                        return Ok(None);
                    }
                    0
                }
                SendStage::Done => return Ok(Some(())),
                SendStage::Parts(sent) => {
                    let part = PART.min(self.length - sent);
                    if !state.send_part(end, &cut(&parts, sent, part), self.draining)? {
                        return Ok(None);
                    }
                    sent + part
                }
            };
            self.stage = SendStage::after(sent, self.length);
            if self.stage == SendStage::Done {
                return Ok(Some(()));
            }
        }
        // There may be room for more, of a fast receiver.
        end.ring();
        Ok(None)
    }

    fn give_up(&mut self, end: &PathEnd, state: &mut SendState) {
        if matches!(self.stage, SendStage::Parts(_)) {
            state.abandon(end);
        }
    }
}

/// The content of a message of bytes.
fn bytes(length: u64) -> Content {
    Content::Array(Layout::new(Dtype::UInt8, StorageOrder::C, [length]))
}

/// `length` bytes of `parts`, behind the first `skipped`.
fn cut<'a>(parts: &'a [IoSlice<'a>], skipped: u64, length: u64) -> Vec<IoSlice<'a>> {
    let mut cut = Vec::new();
    let (mut skipped, mut length) = (skipped as usize, length as usize);
    for part in parts {
        let begin = skipped.min(part.len());
        let taken = &part[begin..(begin + length).min(part.len())];
        skipped -= begin;
        length -= taken.len();
        if !taken.is_empty() {
            cut.push(IoSlice::new(taken));
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_anywhere() {
        let parts = [&b"abc"[..], b"", b"defgh", b"i"].map(IoSlice::new);
        for begin in 0..=9 {
            for end in begin..=9 {
                let cut: Vec<u8> = cut(&parts, begin, end - begin)
                    .iter()
                    .flat_map(|part| part.iter().copied())
                    .collect();
                assert_eq!(cut, b"abcdefghi"[begin as usize..end as usize]);
            }
        }
    }
}
