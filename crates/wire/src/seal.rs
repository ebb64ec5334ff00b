//! Authenticated encryption from end to end: relays pass the bytes on, and can neither read nor
//! change them unnoticed.
//!
//! After the [handshake](crate::handshake) each end derives a key for each direction:
//! HMAC-SHA256(secret, "titin seal dialler" or "titin seal listener" ‖ 1 ‖ 2), with the first two
//! messages of the handshake. These have random bytes, so no two connections have the same key.
//! A sealed stream consists of boxes: a u32 length, little-endian, and as many bytes of
//! AES-256-GCM: the ciphertext and a tag of 16 bytes. The length is the additional data. The nonce
//! is the number of the box in its direction, from 0. So a box that is changed, left out, doubled or
//! moved does not open.
//!
//! All keys follow from the run's secret: whoever learns the secret can decrypt what was recorded of
//! the run. The keys of a [token's](crate::token) connection do not follow from the secret, nor from
//! the token's one-time key alone: see the [handshake](crate::handshake).

use ring::aead::{
    AES_256_GCM, Aad, BoundKey, Nonce, NonceSequence, OpeningKey, SealingKey, UnboundKey,
};
use ring::error::Unspecified;

use crate::Malformed;

/// The most bytes in a box, before the encryption.
const BOX: usize = 64 << 10;
const TAG: usize = 16;
const LENGTH: usize = 4;

/// The keys of a connection.
pub struct SealKeys {
    pub(crate) outgoing: [u8; 32],
    pub(crate) incoming: [u8; 32],
}

impl SealKeys {
    /// The sealer of outgoing bytes, and the opener of incoming bytes.
    pub fn ends(&self) -> (Sealer, Opener) {
        let key = |bytes| UnboundKey::new(&AES_256_GCM, bytes).expect("a key of 32 bytes");
        let sealer = Sealer(SealingKey::new(key(&self.outgoing), BoxNumber(0)));
        let opener = Opener {
            key: OpeningKey::new(key(&self.incoming), BoxNumber(0)),
            input: Vec::new(),
        };
        (sealer, opener)
    }
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKeys(..)")
    }
}

/// The number of the next box.
struct BoxNumber(u64);

impl NonceSequence for BoxNumber {
    fn advance(&mut self) -> Result<Nonce, Unspecified> {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.0.to_le_bytes());
        self.0 += 1;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

/// Seals the bytes of this end.
pub struct Sealer(SealingKey<BoxNumber>);

impl Sealer {
    /// Adds the boxes of `bytes` to `sealed`.
    pub fn seal(&mut self, bytes: &[u8], sealed: &mut Vec<u8>) {
        for piece in bytes.chunks(BOX) {
            let length = ((piece.len() + TAG) as u32).to_le_bytes();
            sealed.extend_from_slice(&length);
            let from = sealed.len();
            sealed.extend_from_slice(piece);
            let box_content = &mut sealed[from..];
            let tag = self
                .0
                .seal_in_place_separate_tag(Aad::from(length), box_content);
            sealed.extend_from_slice(tag.expect("the box is short").as_ref());
        }
    }
}

/// Opens the bytes of the other end.
pub struct Opener {
    key: OpeningKey<BoxNumber>,
    /// The beginning of a box.
    input: Vec<u8>,
}

impl Opener {
    /// Takes sealed bytes, in pieces of any size. Adds what is in the complete boxes to `opened`.
    ///
    /// # Errors
    /// If a box was not sealed by the other end, or not as the next one. Nothing of it is added,
    /// and the caller closes the connection.
    pub fn open(&mut self, mut sealed: &[u8], opened: &mut Vec<u8>) -> Result<(), Malformed> {
        // The box that has begun.
        while !self.input.is_empty() {
            let wanted = match self.input.first_chunk() {
                Some(head) => LENGTH + box_length(*head)?,
                None => LENGTH,
            };
            if self.input.len() == wanted
                && let Some((head, body)) = self.input.split_first_chunk()
            {
                open_box(&mut self.key, *head, body, opened)?;
                self.input.clear();
                break;
            }
            if sealed.is_empty() {
                return Ok(());
            }
            let (more, rest) = sealed.split_at(sealed.len().min(wanted - self.input.len()));
            self.input.extend_from_slice(more);
            sealed = rest;
        }
        // Boxes that are there as a whole, and the beginning of the next one.
        while let Some((head, rest)) = sealed.split_first_chunk() {
            let Some((body, rest)) = rest.split_at_checked(box_length(*head)?) else {
                break;
            };
            open_box(&mut self.key, *head, body, opened)?;
            sealed = rest;
        }
        self.input.extend_from_slice(sealed);
        Ok(())
    }
}

/// The bytes of a box behind the length.
fn box_length(head: [u8; LENGTH]) -> Result<usize, Malformed> {
    let length = u32::from_le_bytes(head) as usize;
    match (TAG..=BOX + TAG).contains(&length) {
        true => Ok(length),
        false => Err(malformed(format!("a box of {length} bytes"))),
    }
}

/// Adds the content of a box to `opened`.
fn open_box(
    key: &mut OpeningKey<BoxNumber>,
    head: [u8; LENGTH],
    body: &[u8],
    opened: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let from = opened.len();
    opened.extend_from_slice(body);
    let content = key.open_in_place(Aad::from(head), &mut opened[from..]);
    match content.map(|content| content.len()) {
        Ok(length) => {
            opened.truncate(from + length);
            Ok(())
        }
        Err(_) => {
            opened.truncate(from);
            Err(malformed("a box that the other end has not sealed so"))
        }
    }
}

fn malformed(why: impl Into<String>) -> Malformed {
    Malformed::new("sealed bytes", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends() -> (Sealer, Opener) {
        let keys = SealKeys {
            outgoing: [7; 32],
            incoming: [7; 32],
        };
        keys.ends()
    }

    fn sealed(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut sealer, mut bytes) = (ends().0, Vec::new());
        pieces
            .iter()
            .for_each(|piece| sealer.seal(piece, &mut bytes));
        bytes
    }

    #[test]
    fn a_changed_box_does_not_open() {
        let bytes = sealed(&[b"one message"]);
        assert!(!bytes.windows(3).any(|window| window == b"mes"));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let mut opened = Vec::new();
            let outcome = ends().1.open(&changed, &mut opened);
            // A larger length waits for more bytes, which do not come.
            assert!(outcome.is_err() || at < LENGTH, "byte {at}");
            assert!(opened.is_empty());
        }
    }

    #[test]
    fn boxes_open_in_their_order_alone() {
        let [first, second] = {
            let both = sealed(&[b"first", b"second"]);
            let (first, second) = both.split_at(LENGTH + 5 + TAG);
            [first.to_vec(), second.to_vec()]
        };
        let open = |boxes: &[&Vec<u8>]| {
            let (mut opener, mut opened) = (ends().1, Vec::new());
            boxes
                .iter()
                .try_for_each(|one| opener.open(one, &mut opened))
                .map(|()| opened)
        };
        assert_eq!(open(&[&first, &second]).unwrap(), b"firstsecond");
        for wrong in [&[&second][..], &[&first, &first], &[&second, &first]] {
            let refused = open(wrong).unwrap_err().to_string();
            assert!(refused.contains("not sealed so"), "{refused}");
        }
    }

    #[test]
    fn lengths_without_sense_are_refused_at_once() {
        for length in [0, 15, BOX + TAG + 1, u32::MAX as usize] {
            let head = (length as u32).to_le_bytes();
            for step in [1, LENGTH] {
                let mut opener = ends().1;
                let outcome = head
                    .chunks(step)
                    .try_for_each(|piece| opener.open(piece, &mut Vec::new()));
                assert!(outcome.is_err(), "{length} by {step}");
            }
        }
    }

    /// The bytes of this release, for later releases, as OpenSSL computes them: with the length as
    /// additional data and a nonce of zeros.
    #[test]
    fn the_format_stays() {
        assert_eq!(sealed(&[b"titin"])[..LENGTH], [21, 0, 0, 0]);
        assert_eq!(
            sealed(&[b"titin"])[LENGTH..],
            [
                0x15, 0xb1, 0xd0, 0xdb, 0x95, 0x6d, 0x20, 0x79, 0x5d, 0x42, 0x38, 0x53, 0x5c, 0xff,
                0xb0, 0x67, 0x2f, 0x72, 0x2b, 0x1e, 0xb1
            ]
        );
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_in_any_pieces(
            bytes in prop::collection::vec(any::<u8>(), 0..200_000),
            steps in prop::collection::vec(1usize..70_000, 1..8),
        ) {
            let line = sealed(&[&bytes]);
            let (mut opener, mut opened) = (ends().1, Vec::new());
            let (mut rest, mut steps) = (&line[..], steps.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(*steps.next().unwrap()));
                opener.open(piece, &mut opened).unwrap();
                rest = after;
            }
            prop_assert!(opened == bytes);
        }

        #[test]
        fn hostile_bytes_neither_panic_nor_grow(bytes: Vec<u8>) {
            let (mut opener, mut opened) = (ends().1, Vec::new());
            let _ = opener.open(&bytes, &mut opened);
            prop_assert!(opened.is_empty() && opener.input.len() <= bytes.len());
        }
    }
}
