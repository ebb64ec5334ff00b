//! The memory that calls receive into.

use std::result::Result;

use titin_path::ReceiveMemory;
use titin_runtime::Meta;

/// Memory for a message of exactly this size.
pub(super) struct ExactMemory<'a>(pub(super) &'a mut [u8]);

impl ReceiveMemory for ExactMemory<'_> {
    fn accepts(&mut self, _: &Meta, length: u64) -> Result<bool, String> {
        let wanted = self.0.len() as u64;
        if length == wanted {
            return Ok(true);
        }
        Err(format!(
            "{length} bytes were sent where {wanted} are to be received: give both ends the same size"
        ))
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        &mut self.0[skipped as usize..]
    }
}

/// Memory for a message of any size up to its own, and up to `most`.
pub(super) struct RoomMemory<'a> {
    pub(super) room: &'a mut [u8],
    pub(super) most: u64,
}

impl ReceiveMemory for RoomMemory<'_> {
    fn accepts(&mut self, _: &Meta, length: u64) -> Result<bool, String> {
        check_room(length, self.room.len() as u64, self.most).map(|()| true)
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        &mut self.room[skipped as usize..]
    }
}

/// Fails if a message does not fit into the memory, or its size not into what the call returns.
pub(super) fn check_room(length: u64, room: u64, most: u64) -> Result<(), String> {
    if length > room {
        return Err(format!(
            "{length} bytes were sent where there is room for {room}: give a larger maxrecvsize"
        ));
    }
    if length > most {
        return Err(format!(
            "{length} bytes were sent, and the call returns an int: use MPW_DSendRecv with the list of the path's channels, which returns a long long"
        ));
    }
    Ok(())
}

/// Memory for no message: the sender hears why.
pub(super) struct Refusal(pub(super) String);

impl ReceiveMemory for Refusal {
    fn accepts(&mut self, _: &Meta, _: u64) -> Result<bool, String> {
        Err(self.0.clone())
    }

    fn place(&mut self, _: u64) -> &mut [u8] {
        &mut []
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_size_is_received() {
        let mut bytes = [0; 3];
        let mut memory = ExactMemory(&mut bytes);
        let meta = Meta::default();
        assert!(memory.accepts(&meta, 2).is_err() && memory.accepts(&meta, 4).is_err());
        assert_eq!(memory.accepts(&meta, 3), Ok(true));
    }

    #[test]
    fn a_size_beyond_the_room_or_the_result_is_refused() {
        let most = i32::MAX as u64;
        assert_eq!(check_room(most, most, most), Ok(()));
        let why = check_room(most + 1, most, most).unwrap_err();
        assert!(why.contains("room for 2147483647"), "{why}");
        let why = check_room(most + 1, most + 1, most).unwrap_err();
        assert!(why.contains("list of the path's channels"), "{why}");
        assert_eq!(check_room(most + 1, most + 1, u64::MAX), Ok(()));
    }
}
