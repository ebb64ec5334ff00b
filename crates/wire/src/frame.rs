//! Frames: the units of a link after the handshake.
//!
//! Every frame begins with 64 bytes, little-endian, followed by `metadata` bytes (for the first
//! piece of a message; see [`crate::meta`]) and by `body` bytes of payload:
//!
//! | offset | type | data (1)                  | more (2)         | acknowledge (3)     | end (4)       | control (5) | ask (6)       |
//! | ------ | ---- | ------------------------- | ---------------- | ------------------- | ------------- | ----------- | ------------- |
//! | 0      | u8   | kind                      | kind             | kind                | kind          | kind        | kind          |
//! | 1      | u8   | flags                     | 0                | flags               | 0             | 0           | 0             |
//! | 2      | u16  | 0                         | 0                | 0                   | 0             | 0           | 0             |
//! | 4      | u32  | metadata length           | 0                | 0                   | 0             | 0           | 0             |
//! | 8      | u32  | conduit                   | conduit          | conduit             | conduit       | 0           | conduit       |
//! | 12     | u32  | source rank               | 0                | 0                   | 0             | 0           | 0             |
//! | 16     | u32  | destination rank          | 0                | 0                   | 0             | 0           | 0             |
//! | 20     | u32  | tag                       | 0                | 0                   | 0             | 0           | 0             |
//! | 24     | u64  | sequence number           | sequence number  | messages received   | messages sent | 0           | messages sent |
//! | 32     | u64  | bytes of payload here     | same             | 0                   | 0             | body length | 0             |
//! | 40     | u64  | bytes of payload in all   | offset of these  | messages consumed   | 0             | 0           | 0             |
//! | 48     | f64  | timestamp                 | 0                | u64: bytes consumed | 0             | 0           | 0             |
//! | 56     | f64  | next timestamp (if flag)  | 0                | 0                   | 0             | 0           | 0             |
//!
//! Flags of a data frame: 1, a next timestamp is given; 2, the metadata are equal to those of the
//! last message on this conduit, and do not follow. Flag of an acknowledgement: 1, the end has
//! arrived. A decoder ignores unknown flags and all bytes that are 0 in the table.
//!
//! Processes that share memory (see `titin_transport::shm`) have more kinds of frames. Only these
//! processes use flag 2.
//!
//! | offset | placed (7)       | elsewhere (8)   | look (9) | segment (10)        | share (11)     | shared (12) | withdrawn (16)      |
//! | ------ | ---------------- | --------------- | -------- | ------------------- | -------------- | ----------- | ------------------- |
//! | 8      | as data          | conduit         | 0        | 0                   | 0              | 0           | 0                   |
//! | 24     | sequence number  | sequence number | 0        | number of 1st block | bytes of ring  | 0           | number of 1st block |
//! | 32     | number of block  | 0               | 0        | bytes of a block    | blocks at most | 0           | 0                   |
//! | 40     | bytes of payload | 0               | 0        | blocks              | 0              | 0           | 0                   |
//!
//! - **Placed** is a message whose payload lies in a block of a segment.
//! - **Elsewhere** is the entry in a ring for a message that comes by the socket, because no block
//!   was free.
//! - **Look** asks the other end to read the entries of its ring, and to write the entries that had
//!   no room before.
//! - **Segment** hands a segment of blocks over, with one descriptor.
//! - **Share** hands the ring and the bells of the sender over, with two descriptors. The other end
//!   answers by **shared**.
//! - **Withdrawn** says that the sender uses a segment no more, so the memory is free for other
//!   uses.
//!
//! In a ring a placed message that replaces others has one line of zeros behind the metadata. The
//! first process to write to the first word of this line has the message: either the receiver takes
//! the message, or the sender takes the message back because a later message replaces it. The lower
//! 32 bits of a block's number are the number of the count of returns that belongs to the block;
//! after the segment was withdrawn, blocks of another segment use the same count. The upper 32 bits
//! are the serial number of the segment.
//!
//! A link of several streams (see `titin_transport::Link`) has these frames too:
//!
//! | offset | streams (13)                         | join (14)           | piece (15)               | more streams (17)            |
//! | ------ | ------------------------------------ | ------------------- | ------------------------ | ---------------------------- |
//! | 8      | 0                                    | 0                   | conduit                  | 0                            |
//! | 24     | key of the link                      | key of the link     | sequence number          | 0                            |
//! | 32     | further streams, at most 256         | number of this one  | bytes of payload here    | further streams, at most 256 |
//! | 40     | bytes per second, at most; or 0      | 0                   | offset of these          | 0                            |
//! | 48     | u64: bytes of a socket's send buffer | 0                   | u64: bytes in all        | 0                            |
//! | 56     | u64: of its receive buffer; or 0     | 0                   | 0                        | 0                            |
//!
//! **Streams** is the first frame on the first stream, from the dialler. The listener sends the
//! frame back, and then the dialler opens the further streams. **Join** is the first frame on each
//! further stream. The data frame of a message in **pieces** is on the first stream, without
//! payload. The pieces are on any of the further streams and in any order, also before the data
//! frame; each byte comes once. By **more streams** the listener asks the dialler for so many
//! further streams in all, at any time. The dialler opens them, or leaves the link as it is. Flag 1 of
//! streams: the user has set their number, and neither end asks for more by itself.
//!
//! A **message** is one data frame and as many more frames as the payload needs. The pieces of one
//! message come in order, pieces of different conduits interleave. Sequence numbers count from 0 on
//! each conduit. An **acknowledgement** is cumulative and end to end: the receiving instance holds
//! the first `received` messages, and the program has taken, or a filter has dropped, the first
//! `consumed` messages with `bytes consumed` of payload. From these counts follows the sender's
//! credit: a sender may be ahead of `consumed` by the conduit's buffer. Receivers acknowledge now
//! and then. A sender without room **asks**; then the receiver acknowledges every consumed message
//! at once, until the next message arrives. **End** says that no message follows.

use crate::{ConduitId, Malformed};

/// Size of the fixed header.
pub const HEADER: usize = 64;

/// The most bytes of payload in a frame: senders cut longer payloads, so that other messages get a
/// turn on the link.
pub const PIECE: usize = 1 << 20;

/// The most further streams of a link.
pub const MAX_STREAMS: u64 = 256;

/// The most bytes of metadata that a decoder accepts.
pub const MAX_META: u32 = 16 << 20;

/// The most bytes of a control message that a decoder accepts.
pub const MAX_CONTROL: u64 = 256 << 20;

const FLAG_NEXT: u8 = 1;
const FLAG_SAME: u8 = 2;
const FLAG_ENDED: u8 = 1;
const FLAG_SET: u8 = 1;

/// The 64 bytes as numbers, not yet checked against the kind of frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header {
    kind: u8,
    flags: u8,
    meta: u32,
    conduit: u32,
    source: u32,
    destination: u32,
    tag: u32,
    sequence: u64,
    body: u64,
    total: u64,
    stamp: u64,
    next: u64,
}

/// The head of a message: all data of fixed size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head {
    /// The conduit of the message.
    pub conduit: ConduitId,
    /// The sending rank; 0 for serial programs and ordinary ports.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// The number of the exchange that a piece of a field belongs to; 0 for other messages.
    pub tag: u32,
    /// The number of the message on the conduit, from 0.
    pub sequence: u64,
    /// Simulated time of the data.
    pub timestamp: f64,
    /// Simulated time of the next message on this port, if the sender knows that time.
    pub next_timestamp: Option<f64>,
}

impl Head {
    /// The head of a message between instances, without ranks and tag.
    pub fn new(
        conduit: ConduitId,
        sequence: u64,
        timestamp: f64,
        next_timestamp: Option<f64>,
    ) -> Self {
        Head {
            conduit,
            source: 0,
            destination: 0,
            tag: 0,
            sequence,
            timestamp,
            next_timestamp,
        }
    }
}

/// A parsed and checked header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Frame {
    /// The first piece of a message; `meta` bytes of metadata and `body` bytes of payload follow.
    Data {
        /// The head of the message.
        head: Head,
        /// Bytes of metadata behind the header.
        meta: u32,
        /// Bytes of payload in this frame.
        body: u64,
        /// Bytes of payload in the whole message.
        total: u64,
    },
    /// A further piece of a message; `body` bytes of payload follow.
    More {
        /// The conduit.
        conduit: ConduitId,
        /// The message's number.
        sequence: u64,
        /// Bytes of payload in this frame.
        body: u64,
        /// The place of these bytes in the payload of the message.
        offset: u64,
    },
    /// The counts of received and consumed messages at the other end.
    Acknowledge {
        /// The conduit.
        conduit: ConduitId,
        /// The counts.
        ack: Ack,
    },
    /// No message follows on this conduit.
    End {
        /// The conduit.
        conduit: ConduitId,
        /// The number of sent messages.
        sequence: u64,
    },
    /// A control message of `body` bytes follows; see [`crate::control`].
    Control {
        /// Bytes of the control message.
        body: u64,
    },
    /// The sender waits for room, and asks for an acknowledgement of every consumed message at
    /// once.
    Ask {
        /// The conduit.
        conduit: ConduitId,
        /// The number of sent messages, which is also the number of the message that waits.
        sequence: u64,
    },
    /// A message whose payload lies in a block of shared memory; `meta` bytes of metadata follow.
    Placed {
        /// The head of the message.
        head: Head,
        /// Bytes of metadata behind the header.
        meta: u32,
        /// Number of the block.
        block: u64,
        /// Bytes of payload.
        total: u64,
    },
    /// The entry in a ring for a message that comes by the socket.
    Elsewhere {
        /// The conduit.
        conduit: ConduitId,
        /// The message's number.
        sequence: u64,
    },
    /// Asks the other end to read the entries of its ring.
    Look,
    /// A segment of blocks; the descriptor comes with this frame.
    Segment {
        /// Number of the first block.
        first: u64,
        /// Bytes of a block.
        size: u64,
        /// Number of blocks.
        count: u64,
    },
    /// The sender uses a segment no more.
    Withdrawn {
        /// Number of the first block.
        first: u64,
    },
    /// The ring and the bells of the sender; the descriptors come with this frame.
    Share {
        /// Bytes of the ring's data.
        ring: u64,
        /// The most blocks that the sender may have.
        blocks: u64,
    },
    /// The answer to a share: the ring is in use.
    Shared,
    /// The number of further streams of a link, and the settings of sockets. For a setting of 0 the
    /// system chooses.
    Streams {
        /// The key by which further streams name the link.
        key: u64,
        /// Number of further streams.
        count: u64,
        /// Whether the user has set the number, so that neither end asks for more by itself.
        is_count_set: bool,
        /// The most bytes per second that each end sends.
        pacing: u64,
        /// Bytes of the send buffer of a socket.
        send_buffer: u64,
        /// Bytes of the receive buffer of a socket.
        receive_buffer: u64,
    },
    /// The connection is a further stream of a link.
    Join {
        /// The key of the link.
        key: u64,
        /// Number of the stream, from 1.
        number: u64,
    },
    /// The listener asks the dialler for more further streams.
    MoreStreams {
        /// Number of further streams in all.
        count: u64,
    },
    /// A piece of a message by several streams; `body` bytes of payload follow.
    Piece {
        /// The conduit.
        conduit: ConduitId,
        /// The message's number.
        sequence: u64,
        /// Bytes of payload in this frame.
        body: u64,
        /// The place of these bytes in the payload of the message.
        offset: u64,
        /// Bytes of payload in the whole message.
        total: u64,
    },
}

/// The counts of the receiving end of a conduit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack {
    /// Messages that have arrived at the receiving process.
    pub received: u64,
    /// Messages that the program has taken, or a filter has dropped.
    pub consumed: u64,
    /// Payload bytes of the consumed messages.
    pub bytes: u64,
    /// Whether the end has arrived, so no message will follow.
    pub ended: bool,
}

impl Header {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind;
        bytes[1] = self.flags;
        let words = [
            self.meta,
            self.conduit,
            self.source,
            self.destination,
            self.tag,
        ];
        for (index, word) in words.into_iter().enumerate() {
            bytes[4 + 4 * index..8 + 4 * index].copy_from_slice(&word.to_le_bytes());
        }
        let longs = [self.sequence, self.body, self.total, self.stamp, self.next];
        for (index, long) in longs.into_iter().enumerate() {
            bytes[24 + 8 * index..32 + 8 * index].copy_from_slice(&long.to_le_bytes());
        }
        bytes
    }

    /// The conduit, in a header of a kind that has a conduit.
    pub fn conduit(&self) -> ConduitId {
        ConduitId(self.conduit)
    }

    /// Reads the numbers of a header, for [`Header::frame`].
    ///
    /// # Errors
    /// [`Malformed`] if fewer than 64 bytes are given.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let Some(bytes) = bytes.first_chunk::<HEADER>() else {
            return Err(Malformed::new(
                "frame header",
                format!("{} bytes, expected {HEADER}", bytes.len()),
            ));
        };
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Ok(Header {
            kind: bytes[0],
            flags: bytes[1],
            meta: word(4),
            conduit: word(8),
            source: word(12),
            destination: word(16),
            tag: word(20),
            sequence: long(24),
            body: long(32),
            total: long(40),
            stamp: long(48),
            next: long(56),
        })
    }

    /// Sets the flag for metadata equal to those of the last message on this conduit.
    pub fn with_same_meta(mut self) -> Self {
        self.flags |= FLAG_SAME;
        self
    }

    /// Whether the metadata are equal to those of the last message on this conduit.
    pub fn has_same_meta(&self) -> bool {
        self.flags & FLAG_SAME != 0
    }

    fn of_message(kind: u8, head: &Head, meta: u32, body: u64, total: u64) -> Self {
        Header {
            kind,
            flags: flag(head.next_timestamp.is_some(), FLAG_NEXT),
            meta,
            conduit: head.conduit.0,
            source: head.source,
            destination: head.destination,
            tag: head.tag,
            sequence: head.sequence,
            body,
            total,
            stamp: head.timestamp.to_bits(),
            next: head.next_timestamp.unwrap_or(0.0).to_bits(),
        }
    }

    fn head(&self) -> Head {
        Head {
            conduit: ConduitId(self.conduit),
            source: self.source,
            destination: self.destination,
            tag: self.tag,
            sequence: self.sequence,
            timestamp: f64::from_bits(self.stamp),
            next_timestamp: (self.flags & FLAG_NEXT != 0).then(|| f64::from_bits(self.next)),
        }
    }

    /// The frame that the header announces.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown kind and for lengths that contradict each other or pass the
    /// limits.
    #[inline]
    pub fn frame(&self) -> Result<Frame, Malformed> {
        match self.kind {
            1 | 7 => self.message_frame(),
            2..=4 | 6 => self.conduit_frame(),
            5 => self.control_frame(),
            8..=12 | 16 => Ok(self.memory_frame()),
            13..=15 | 17 => self.stream_frame(),
            kind => Err(malformed(format!("unknown kind {kind}"))),
        }
    }

    /// The first frame of a message.
    #[inline(always)]
    fn message_frame(&self) -> Result<Frame, Malformed> {
        let (head, meta) = (self.head(), self.meta);
        if meta > MAX_META {
            return Err(malformed(format!(
                "{meta} bytes of metadata, at most {MAX_META}"
            )));
        }
        if self.kind == 7 {
            return Ok(Frame::Placed {
                head,
                meta,
                block: self.body,
                total: self.total,
            });
        }
        if self.body > self.total {
            return Err(malformed(format!(
                "piece of {} bytes in a message of {}",
                self.body, self.total
            )));
        }
        Ok(Frame::Data {
            head,
            meta,
            body: self.body,
            total: self.total,
        })
    }

    /// A frame about a conduit that begins no message.
    #[inline]
    fn conduit_frame(&self) -> Result<Frame, Malformed> {
        let (conduit, sequence) = (ConduitId(self.conduit), self.sequence);
        Ok(match self.kind {
            2 if self.total.checked_add(self.body).is_none() => {
                return Err(malformed("offset beyond 64 bits".to_owned()));
            }
            2 => Frame::More {
                conduit,
                sequence,
                body: self.body,
                offset: self.total,
            },
            3 => Frame::Acknowledge {
                conduit,
                ack: Ack {
                    received: sequence,
                    consumed: self.total,
                    bytes: self.stamp,
                    ended: self.flags & FLAG_ENDED != 0,
                },
            },
            4 => Frame::End { conduit, sequence },
            _ => Frame::Ask { conduit, sequence },
        })
    }

    fn control_frame(&self) -> Result<Frame, Malformed> {
        if self.body > MAX_CONTROL {
            return Err(malformed(format!("control message of {} bytes", self.body)));
        }
        Ok(Frame::Control { body: self.body })
    }

    /// A frame between processes that share memory, without a message.
    #[inline]
    fn memory_frame(&self) -> Frame {
        match self.kind {
            8 => Frame::Elsewhere {
                conduit: ConduitId(self.conduit),
                sequence: self.sequence,
            },
            9 => Frame::Look,
            10 => Frame::Segment {
                first: self.sequence,
                size: self.body,
                count: self.total,
            },
            11 => Frame::Share {
                ring: self.sequence,
                blocks: self.body,
            },
            12 => Frame::Shared,
            _ => Frame::Withdrawn {
                first: self.sequence,
            },
        }
    }

    /// A frame of a link of several streams.
    #[inline]
    fn stream_frame(&self) -> Result<Frame, Malformed> {
        let (body, offset, total) = (self.body, self.total, self.stamp);
        match self.kind {
            13 | 17 if body > MAX_STREAMS => {
                Err(malformed(format!("{body} streams, at most {MAX_STREAMS}")))
            }
            13 => Ok(Frame::Streams {
                key: self.sequence,
                count: body,
                is_count_set: self.flags & FLAG_SET != 0,
                pacing: self.total,
                send_buffer: self.stamp,
                receive_buffer: self.next,
            }),
            17 => Ok(Frame::MoreStreams { count: body }),
            14 if body == 0 || body > MAX_STREAMS => Err(malformed(format!("stream {body}"))),
            14 => Ok(Frame::Join {
                key: self.sequence,
                number: body,
            }),
            _ if body == 0 || offset.checked_add(body).is_none_or(|end| end > total) => Err(
                malformed(format!("{body} bytes at {offset} in a message of {total}")),
            ),
            _ => Ok(Frame::Piece {
                conduit: ConduitId(self.conduit),
                sequence: self.sequence,
                body,
                offset,
                total,
            }),
        }
    }
}

fn malformed(why: String) -> Malformed {
    Malformed::new("frame header", why)
}

/// The header of a data frame, for the next frames with the same header but for the number, the tag
/// and the times of the message. Most messages on a conduit are alike, and a comparison of words takes
/// less than to read, check or write all fields.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedHeader {
    /// The header's bytes as words.
    words: [u64; HEADER / 8],
    head: Head,
}

/// The places of a message's number and times, and of destination and tag, among the words of a header.
const TAGGED: usize = 2;
const SEQUENCE: usize = 3;
const STAMP: usize = 6;
const NEXT: usize = 7;

/// The bits of the tag in the word of destination and tag.
const TAG: u64 = !0 << TAG_SHIFT;
const TAG_SHIFT: u32 = 32;

impl RepeatedHeader {
    /// The given header.
    pub fn new(header: &Header) -> Self {
        let words = words(&header.encode());
        RepeatedHeader {
            words,
            head: header.head(),
        }
    }

    /// The conduit.
    pub fn conduit(&self) -> ConduitId {
        self.head.conduit
    }

    /// The head of the message with the header `bytes`; `None` if the header differs from this
    /// header in more than number, tag and times.
    #[inline(always)]
    pub fn head_of(&self, bytes: &[u8; HEADER]) -> Option<Head> {
        let (known, found) = (&self.words, words(bytes));
        // All words at once: to leave the comparison early would take longer.
        let differences = |range: std::ops::Range<usize>| {
            range.fold(0, |found_so_far, at| found_so_far | (found[at] ^ known[at]))
        };
        let is_like = differences(0..TAGGED)
            | ((found[TAGGED] ^ known[TAGGED]) & !TAG)
            | differences(SEQUENCE + 1..STAMP)
            == 0;
        is_like.then(|| Head {
            tag: (found[TAGGED] >> TAG_SHIFT) as u32,
            sequence: found[SEQUENCE],
            timestamp: f64::from_bits(found[STAMP]),
            next_timestamp: self
                .head
                .next_timestamp
                .map(|_| f64::from_bits(found[NEXT])),
            ..self.head
        })
    }

    /// The header of a message of the same length with the given head; `None` if the header differs
    /// from this header in more than number, tag and times.
    #[inline(always)]
    pub fn with(&self, head: &Head) -> Option<[u8; HEADER]> {
        let known = &self.head;
        let is_like = head.conduit == known.conduit
            && (head.source, head.destination) == (known.source, known.destination)
            && head.next_timestamp.is_some() == known.next_timestamp.is_some();
        is_like.then(|| {
            let mut words = self.words;
            words[TAGGED] = words[TAGGED] & !TAG | u64::from(head.tag) << TAG_SHIFT;
            words[SEQUENCE] = head.sequence;
            words[STAMP] = head.timestamp.to_bits();
            words[NEXT] = head.next_timestamp.unwrap_or(0.0).to_bits();
            let mut bytes = [0; HEADER];
            for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                *place = word.to_le_bytes();
            }
            bytes
        })
    }
}

/// The bytes of a header as words.
#[inline(always)]
fn words(bytes: &[u8; HEADER]) -> [u64; HEADER / 8] {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

impl From<&Frame> for Header {
    fn from(frame: &Frame) -> Self {
        let empty = Header {
            kind: 0,
            flags: 0,
            meta: 0,
            conduit: 0,
            source: 0,
            destination: 0,
            tag: 0,
            sequence: 0,
            body: 0,
            total: 0,
            stamp: 0,
            next: 0,
        };
        match *frame {
            Frame::Data {
                head,
                meta,
                body,
                total,
            } => Header::of_message(1, &head, meta, body, total),
            Frame::Placed {
                head,
                meta,
                block,
                total,
            } => Header::of_message(7, &head, meta, block, total),
            Frame::More {
                conduit,
                sequence,
                body,
                offset,
            } => Header {
                kind: 2,
                conduit: conduit.0,
                sequence,
                body,
                total: offset,
                ..empty
            },
            Frame::Acknowledge { conduit, ack } => Header {
                kind: 3,
                flags: flag(ack.ended, FLAG_ENDED),
                conduit: conduit.0,
                sequence: ack.received,
                total: ack.consumed,
                stamp: ack.bytes,
                ..empty
            },
            Frame::End { conduit, sequence } => Header {
                kind: 4,
                conduit: conduit.0,
                sequence,
                ..empty
            },
            Frame::Control { body } => Header {
                kind: 5,
                body,
                ..empty
            },
            Frame::Ask { conduit, sequence } => Header {
                kind: 6,
                conduit: conduit.0,
                sequence,
                ..empty
            },
            Frame::Elsewhere { conduit, sequence } => Header {
                kind: 8,
                conduit: conduit.0,
                sequence,
                ..empty
            },
            Frame::Look => Header { kind: 9, ..empty },
            Frame::Segment { first, size, count } => Header {
                kind: 10,
                sequence: first,
                body: size,
                total: count,
                ..empty
            },
            Frame::Withdrawn { first } => Header {
                kind: 16,
                sequence: first,
                ..empty
            },
            Frame::Share { ring, blocks } => Header {
                kind: 11,
                sequence: ring,
                body: blocks,
                ..empty
            },
            Frame::Shared => Header { kind: 12, ..empty },
            Frame::Streams {
                key,
                count,
                is_count_set,
                pacing,
                send_buffer,
                receive_buffer,
            } => Header {
                kind: 13,
                flags: flag(is_count_set, FLAG_SET),
                sequence: key,
                body: count,
                total: pacing,
                stamp: send_buffer,
                next: receive_buffer,
                ..empty
            },
            Frame::Join { key, number } => Header {
                kind: 14,
                sequence: key,
                body: number,
                ..empty
            },
            Frame::MoreStreams { count } => Header {
                kind: 17,
                body: count,
                ..empty
            },
            Frame::Piece {
                conduit,
                sequence,
                body,
                offset,
                total,
            } => Header {
                kind: 15,
                conduit: conduit.0,
                sequence,
                body,
                total: offset,
                stamp: total,
                ..empty
            },
        }
    }
}

fn flag(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA: Frame = Frame::Data {
        head: Head {
            conduit: ConduitId(0x0102_0304),
            source: 5,
            destination: 6,
            tag: 7,
            sequence: 8,
            timestamp: 1.5,
            next_timestamp: Some(2.0),
        },
        meta: 64,
        body: 16,
        total: 1 << 40,
    };

    /// The bytes of release 0.1: they must never change.
    #[test]
    fn golden_bytes() {
        let golden = "0101000040000000040302010500000006000000070000000800000000000000\
                      100000000000000000000000000100000000000000\
                      00f83f0000000000000040";
        let bytes: String = Header::from(&DATA)
            .encode()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(bytes, golden);
    }

    /// A header is repeated by a message that differs in number, tag and times alone.
    #[test]
    fn a_repeated_header_stands_for_no_other() {
        let Frame::Data {
            head,
            meta,
            body,
            total,
        } = DATA
        else {
            unreachable!()
        };
        let header = |head: Head| Header::of_message(1, &head, meta, body, total);
        let known = RepeatedHeader::new(&header(head));
        let later = Head {
            tag: u32::MAX,
            sequence: u64::MAX,
            timestamp: -2.5,
            next_timestamp: Some(f64::MAX),
            ..head
        };
        assert_eq!(known.head_of(&header(later).encode()), Some(later));
        assert_eq!(known.with(&later), Some(header(later).encode()));
        let conduit = ConduitId(1);
        let others = [
            Head { conduit, ..later },
            Head { source: 1, ..later },
            Head {
                destination: 1,
                ..later
            },
            Head {
                next_timestamp: None,
                ..later
            },
        ];
        for other in others {
            assert_eq!(known.head_of(&header(other).encode()), None, "{other:?}");
            assert_eq!(known.with(&other), None, "{other:?}");
        }
        for other in [
            Header::of_message(7, &later, meta, body, total),
            Header::of_message(1, &later, meta + 64, body, total),
            Header::of_message(1, &later, meta, body + 1, total),
            Header::of_message(1, &later, meta, body, total + 1),
            header(later).with_same_meta(),
        ] {
            assert_eq!(known.head_of(&other.encode()), None, "{other:?}");
        }
        let last = Head {
            next_timestamp: None,
            ..head
        };
        let known = RepeatedHeader::new(&header(last));
        assert_eq!(known.head_of(&header(last).encode()), Some(last));
        assert_eq!(known.with(&last), Some(header(last).encode()));
    }

    #[test]
    fn every_kind_survives() {
        let conduit = ConduitId(9);
        let Frame::Data { head, .. } = DATA else {
            unreachable!()
        };
        let frames = [
            DATA,
            Frame::Data {
                head,
                meta: 0,
                body: 0,
                total: 0,
            },
            Frame::More {
                conduit,
                sequence: 1,
                body: 2,
                offset: 3,
            },
            Frame::Acknowledge {
                conduit,
                ack: Ack {
                    received: 4,
                    consumed: 3,
                    bytes: u64::MAX,
                    ended: true,
                },
            },
            Frame::End {
                conduit,
                sequence: 5,
            },
            Frame::Control { body: 6 },
            Frame::Ask {
                conduit,
                sequence: 7,
            },
            Frame::Placed {
                head,
                meta: 64,
                block: 3,
                total: 1 << 40,
            },
            Frame::Elsewhere {
                conduit,
                sequence: 8,
            },
            Frame::Look,
            Frame::Segment {
                first: 1,
                size: 2,
                count: 3,
            },
            Frame::Withdrawn { first: 1 << 32 },
            Frame::Share { ring: 4, blocks: 5 },
            Frame::Shared,
            Frame::Streams {
                key: 1,
                count: 2,
                is_count_set: true,
                pacing: 3,
                send_buffer: 4,
                receive_buffer: 5,
            },
            Frame::Join {
                key: 1,
                number: 256,
            },
            Frame::MoreStreams { count: 256 },
            Frame::Piece {
                conduit,
                sequence: 1,
                body: 2,
                offset: 3,
                total: 5,
            },
        ];
        for frame in frames {
            assert_eq!(
                Header::decode(&Header::from(&frame).encode())
                    .unwrap()
                    .frame()
                    .unwrap(),
                frame
            );
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let mut header = Header::from(&DATA);
        header.body = header.total + 1;
        assert!(header.frame().is_err());
        assert!(
            Header {
                meta: u32::MAX,
                body: 0,
                ..header
            }
            .frame()
            .is_err()
        );
        assert!(
            Header {
                kind: 2,
                body: 2,
                total: u64::MAX,
                ..header
            }
            .frame()
            .is_err()
        );
        assert!(
            Header { kind: 77, ..header }
                .frame()
                .unwrap_err()
                .to_string()
                .contains("unknown kind 77")
        );
        assert!(Header::decode(&[0; 63]).is_err());
        let piece = |body, offset, total| Frame::Piece {
            conduit: ConduitId(1),
            sequence: 0,
            body,
            offset,
            total,
        };
        for wrong in [
            piece(0, 0, 1),
            piece(2, 0, 1),
            piece(1, 1, 1),
            piece(u64::MAX, 1, u64::MAX),
        ] {
            assert!(Header::from(&wrong).frame().is_err(), "{wrong:?}");
        }
        for wrong in [
            Frame::Join { key: 1, number: 0 },
            Frame::Join {
                key: 1,
                number: 257,
            },
        ] {
            assert!(Header::from(&wrong).frame().is_err(), "{wrong:?}");
        }
        let crowd = Frame::Streams {
            key: 1,
            count: 257,
            is_count_set: true,
            pacing: 0,
            send_buffer: 0,
            receive_buffer: 0,
        };
        for wrong in [crowd, Frame::MoreStreams { count: 257 }] {
            let refusal = Header::from(&wrong).frame().unwrap_err().to_string();
            assert!(refusal.contains("at most 256"), "{refusal}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(frame) = Header::decode(&bytes).and_then(|header| header.frame()) {
                let again = Header::from(&frame).encode();
                prop_assert_eq!(Header::decode(&again).unwrap().frame().map(|f| format!("{f:?}")), Ok(format!("{frame:?}")));
            }
        }
    }
}
