//! What the two ends of a path say to each other.
//!
//! A path is a link of two programs that share a key, without a manager. The control messages of the
//! link are [`PathControl`]: JSON. The messages of a path travel on the conduit [`CONDUIT`], in both
//! directions.
//!
//! A short message is one message of the conduit. A long message is a sequence of messages of the
//! conduit, so that both ends need memory for a few parts only: a **head**, whose payload is the length
//! and the metadata of the whole ([`LongMessage`]), and **parts** with the bytes in order. A sender that
//! gives up sends **abandoned** in place of the remaining parts. The tag of a message says which of these it is ([`PartKind`]).

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::{ConduitId, Malformed};

/// The only conduit of the link of a path, in each direction.
pub const CONDUIT: ConduitId = ConduitId(0);

/// The most bytes of payload in a short message, and in a part of a long one.
pub const PART: u64 = 4 << 20;

/// How far a sender of a path may be ahead of the receiving program, in messages of the conduit.
pub const MESSAGES_AHEAD: u64 = 1024;

/// As [`MESSAGES_AHEAD`], in bytes.
pub const BYTES_AHEAD: u64 = 64 << 20;

/// The most bytes of the name of a path, and of a reason.
pub const LONGEST_TEXT: usize = 1024;

/// A control message of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathControl {
    /// The dialling end asks for a path.
    Open {
        /// The name by which the listening program knows the path; may be empty.
        name: String,
        /// After how many milliseconds without the other host the path is lost.
        outage: u64,
        /// Whether relays are in the way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_relays: bool,
    },
    /// The listening end has taken the path.
    Opened,
    /// The listening end does not take the path.
    Refused {
        /// Why.
        why: String,
        /// Whether the same request may succeed later.
        may_pass: bool,
    },
    /// The receiving program had no memory into which a message fits. The message was dropped.
    Dropped {
        /// The number of the message, from 0: short and long messages count alike.
        message: u64,
        /// Why it did not fit.
        why: String,
    },
    /// The program has come to its next barrier.
    Barrier,
    /// The program closes the path and receives no more.
    Closing {
        /// How many messages of the conduit the program has received.
        received: u64,
    },
}

impl PathControl {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data")
    }

    /// Reads a control message.
    ///
    /// # Errors
    /// [`Malformed`] for other bytes, and for a text beyond [`LONGEST_TEXT`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "control message of a path";
        let control = serde_json::from_slice(bytes)
            .map_err(|error| Malformed::new(WHAT, error.to_string()))?;
        match &control {
            PathControl::Open { name: text, .. }
            | PathControl::Refused { why: text, .. }
            | PathControl::Dropped { why: text, .. }
                if text.len() > LONGEST_TEXT =>
            {
                let why = format!("a text of {} bytes, at most {LONGEST_TEXT}", text.len());
                Err(Malformed::new(WHAT, why))
            }
            _ => Ok(control),
        }
    }
}

/// What a message of a path's conduit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A short message.
    Short,
    /// The head of a long message.
    Head,
    /// A part of a long message.
    Part,
    /// The end of a long message whose sender has given up.
    Abandoned,
}

impl PartKind {
    /// The tag of the message.
    pub fn tag(self) -> u32 {
        match self {
            PartKind::Short => 0,
            PartKind::Head => 1,
            PartKind::Part => 2,
            PartKind::Abandoned => 3,
        }
    }

    /// The kind of a message with this tag.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown tag.
    pub fn of_tag(tag: u32) -> Result<Self, Malformed> {
        Ok(match tag {
            0 => PartKind::Short,
            1 => PartKind::Head,
            2 => PartKind::Part,
            3 => PartKind::Abandoned,
            _ => {
                return Err(Malformed::new(
                    "message of a path",
                    format!("the tag {tag}"),
                ));
            }
        })
    }
}

/// The head of a long message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongMessage {
    /// The bytes of all parts.
    pub length: u64,
    /// The metadata of the message.
    pub meta: Meta,
}

impl LongMessage {
    /// The payload of the head.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.length.to_le_bytes().to_vec();
        bytes.extend(self.meta.encode());
        bytes
    }

    /// Reads the payload of a head.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes do not hold together.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (length, meta) = bytes
            .split_first_chunk()
            .ok_or_else(|| Malformed::new("head of a long message", "it is too short"))?;
        let length = u64::from_le_bytes(*length);
        if length <= PART {
            let why = format!("{length} bytes are no long message");
            return Err(Malformed::new("head of a long message", why));
        }
        let meta = Meta::decode(meta, length)?;
        Ok(LongMessage { length, meta })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Content, Dtype, Layout, StorageOrder};

    #[test]
    fn control_messages_survive() {
        for control in [
            PathControl::Open {
                name: "mesh".into(),
                outage: 60_000,
                by_relays: false,
            },
            PathControl::Opened,
            PathControl::Refused {
                why: "full".into(),
                may_pass: false,
            },
            PathControl::Dropped {
                message: u64::MAX,
                why: "of another shape".into(),
            },
            PathControl::Barrier,
            PathControl::Closing { received: u64::MAX },
        ] {
            assert_eq!(PathControl::decode(&control.encode()), Ok(control));
        }
    }

    #[test]
    fn a_name_without_bound_is_refused() {
        let control = PathControl::Open {
            name: "x".repeat(LONGEST_TEXT + 1),
            outage: 60_000,
            by_relays: false,
        };
        let refused = PathControl::decode(&control.encode()).unwrap_err();
        assert!(refused.to_string().contains("1025 bytes"), "{refused}");
    }

    #[test]
    fn a_long_message_whose_layout_contradicts_its_length_is_refused() {
        let layout = Layout::new(Dtype::Float64, StorageOrder::C, [1 << 20]);
        let mut long = LongMessage {
            length: 8 << 20,
            meta: Meta {
                content: Content::Array(layout),
                ..Meta::default()
            },
        };
        assert_eq!(LongMessage::decode(&long.encode()), Ok(long.clone()));
        long.length -= 1;
        assert!(LongMessage::decode(&long.encode()).is_err());
        assert!(LongMessage::decode(&[0; 7]).is_err());
    }

    #[test]
    fn tags_survive() {
        for tag in 0..4 {
            assert_eq!(PartKind::of_tag(tag).unwrap().tag(), tag);
        }
        assert!(PartKind::of_tag(4).is_err());
    }
}
