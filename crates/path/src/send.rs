//! How a path sends a message.

use std::io::IoSlice;
use std::sync::Arc;

use titin_transport::{Outgoing, Room};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};
use titin_wire::path::{CONDUIT, LongMessage, PART, PartKind};

use crate::end::PathEnd;
use crate::error::{PathError, Result};

/// What is known of the messages that were sent.
#[derive(Default)]
pub(crate) struct SendState {
    /// The metadata of the last message, for a message like it.
    last: Arc<Meta>,
    /// How many messages have begun.
    messages: u64,
}

impl SendState {
    /// The metadata of a message.
    fn meta_of(&mut self, content: Content) -> Arc<Meta> {
        if self.last.content != content {
            self.last = Arc::new(Meta {
                content,
                ..Meta::default()
            });
        }
        self.last.clone()
    }
}

/// A message on its way out.
pub(crate) struct SendTransfer<'a> {
    end: &'a PathEnd,
    sender: &'a mut SendState,
    parts: &'a [IoSlice<'a>],
    meta: Arc<Meta>,
    length: u64,
    stage: SendStage,
    /// How often the receiver was asked for room for the next part.
    asked: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SendStage {
    NotBegun,
    /// A long message, with so many bytes sent.
    Parts(u64),
    Done,
}

impl<'a> SendTransfer<'a> {
    /// A message of `parts`: an array with this layout, or bytes.
    ///
    /// # Errors
    /// [`PathError::Message`] if the layout has another number of bytes.
    pub(crate) fn new(
        end: &'a PathEnd,
        sender: &'a mut SendState,
        parts: &'a [IoSlice<'a>],
        layout: Option<Layout>,
    ) -> Result<Self> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let meta = sender.meta_of(layout.map_or_else(|| bytes(length), Content::Array));
        meta.check(length)
            .map_err(|why| PathError::Message(why.to_string()))?;
        Ok(SendTransfer {
            end,
            sender,
            parts,
            meta,
            length,
            stage: SendStage::NotBegun,
            asked: 0,
        })
    }

    /// Sends as far as there is room. `Some` once the message is sent.
    ///
    /// # Errors
    /// Those of the path; an account of an earlier message, after which nothing of this message was sent; and an account of
    /// this message.
    pub(crate) fn advance(&mut self) -> Result<Option<()>> {
        loop {
            let is_sent = match self.stage {
                SendStage::Done => return Ok(Some(())),
                SendStage::NotBegun => {
                    self.end.check_dropped()?;
                    self.begin()?
                }
                SendStage::Parts(sent) => {
                    // The receiver takes no more of a message that does not fit.
                    self.end.check_dropped_message(self.sender.messages - 1)?;
                    self.send_part(sent)?
                }
            };
            if !is_sent {
                return Ok(None);
            }
        }
    }

    /// Ends a message of which a part was sent.
    pub(crate) fn abandon(self) {
        if matches!(self.stage, SendStage::Parts(_))
            && let Some(sequence) = self.end.window.claim_without_room()
        {
            let _ = self.send(sequence, PartKind::Abandoned, &Arc::default(), &[]);
        }
    }

    /// Sends a short message, or the head of a long one. False if there is no room.
    fn begin(&mut self) -> Result<bool> {
        if self.length <= PART {
            let Some(sequence) = self.claim(self.length)? else {
                return Ok(false);
            };
            self.send(sequence, PartKind::Short, &self.meta, self.parts)?;
            self.stage = SendStage::Done;
        } else {
            let head = LongMessage {
                length: self.length,
                meta: Meta::clone(&self.meta),
            };
            self.stage = match self.send_bytes(PartKind::Head, &[IoSlice::new(&head.encode())])? {
                true => SendStage::Parts(0),
                false => return Ok(false),
            };
        }
        self.sender.messages += 1;
        Ok(true)
    }

    /// Sends the part behind the first `sent` bytes. False if there is no room.
    fn send_part(&mut self, sent: u64) -> Result<bool> {
        let length = PART.min(self.length - sent);
        let is_sent = self.send_bytes(PartKind::Part, &cut(self.parts, sent, length))?;
        if is_sent {
            self.stage = match sent + length {
                sent if sent == self.length => SendStage::Done,
                sent => SendStage::Parts(sent),
            };
        }
        Ok(is_sent)
    }

    fn send_bytes(&mut self, kind: PartKind, parts: &[IoSlice<'_>]) -> Result<bool> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let Some(sequence) = self.claim(length)? else {
            return Ok(false);
        };
        let meta = Meta {
            content: bytes(length),
            ..Meta::default()
        };
        self.send(sequence, kind, &Arc::new(meta), parts)?;
        Ok(true)
    }

    fn send(
        &self,
        sequence: u64,
        kind: PartKind,
        meta: &Arc<Meta>,
        parts: &[IoSlice<'_>],
    ) -> Result<()> {
        let head = Head {
            tag: kind.tag(),
            ..Head::new(CONDUIT, sequence, 0.0, None)
        };
        let sent = self.end.carrier.send(&Outgoing::new(head, meta, parts));
        // The number of the message is taken, so no other message can follow.
        sent.map_err(|why| self.end.break_off(why))?;
        Ok(())
    }

    /// The number of the next message of the conduit; `None` if there is no room for `length` bytes, of which
    /// the receiver is told.
    fn claim(&mut self, length: u64) -> Result<Option<u64>> {
        let window = &self.end.window;
        match window.claim(length) {
            Room::Free(sequence) => {
                self.asked = 0;
                Ok(Some(sequence))
            }
            Room::Full => {
                // The second request has the receiver acknowledge each message at once.
                if self.asked < 2 {
                    self.end.carrier.ask(CONDUIT, window.sent());
                    self.asked += 1;
                }
                Ok(None)
            }
            Room::Closed if window.finished() => Err(PathError::ClosedHere),
            Room::Closed => Err(PathError::Closed),
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
