//! The memory of the program that messages are sent from and received into.

use std::borrow::Cow;
use std::io::IoSlice;

use titin_wire::meta::Meta;

/// Memory with the bytes of a message to send.
pub trait SendMemory {
    /// The places with the bytes, in order.
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]>;
}

/// Memory for a received message.
pub trait ReceiveMemory {
    /// Whether a message with these metadata and this number of bytes is received into this memory; otherwise the path
    /// gets memory for it.
    ///
    /// # Errors
    /// Why the message does not fit.
    fn accepts(&mut self, meta: &Meta, length: u64) -> Result<bool, String>;

    /// The memory behind the first `skipped` bytes of an accepted message, or its beginning: at least one byte of it.
    fn place(&mut self, skipped: u64) -> &mut [u8];
}

impl SendMemory for &[u8] {
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]> {
        Cow::Owned(vec![IoSlice::new(self)])
    }
}

/// Bytes in several places.
impl SendMemory for &[IoSlice<'_>] {
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]> {
        Cow::Borrowed(self)
    }
}

impl SendMemory for Vec<u8> {
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]> {
        Cow::Owned(vec![IoSlice::new(self)])
    }
}

impl SendMemory for Vec<IoSlice<'_>> {
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]> {
        Cow::Borrowed(self)
    }
}

/// No memory: the path gets some for any message.
impl ReceiveMemory for () {
    fn accepts(&mut self, _: &Meta, _: u64) -> Result<bool, String> {
        Ok(false)
    }

    fn place(&mut self, _: u64) -> &mut [u8] {
        &mut []
    }
}

/// Memory for any message that is not larger.
impl ReceiveMemory for &mut [u8] {
    fn accepts(&mut self, _: &Meta, length: u64) -> Result<bool, String> {
        check_room(length, self.len() as u64)
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        &mut self[skipped as usize..]
    }
}

/// Several places, which are filled one after the other, for any message that is not larger than all.
impl ReceiveMemory for Vec<&mut [u8]> {
    fn accepts(&mut self, _: &Meta, length: u64) -> Result<bool, String> {
        check_room(length, self.iter().map(|place| place.len() as u64).sum())
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        let mut skipped = skipped as usize;
        for place in self {
            if skipped < place.len() {
                return &mut place[skipped..];
            }
            skipped -= place.len();
        }
        &mut []
    }
}

fn check_room(length: u64, room: u64) -> Result<bool, String> {
    if length > room {
        return Err(format!(
            "it has {length} bytes, and there is room for {room}"
        ));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_one_after_the_other() {
        let (mut a, mut b, mut c) = ([0; 3], [0; 2], [0; 4]);
        let mut places: Vec<&mut [u8]> = vec![&mut a, &mut [], &mut b, &mut c];
        assert_eq!(places.accepts(&Meta::default(), 9), Ok(true));
        assert!(places.accepts(&Meta::default(), 10).is_err());
        for byte in 0..9 {
            places.place(byte)[0] = byte as u8;
        }
        assert_eq!((a, b, c), ([0, 1, 2], [3, 4], [5, 6, 7, 8]));
    }
}
