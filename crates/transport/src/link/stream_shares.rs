//! The streams of a long line that carry a message.
//!
//! TCP's congestion windows grow in connections that are full, and shrink in idle ones. A message that
//! goes by all streams, a little by each, keeps all windows small. So a message goes by the fewest
//! streams that carry it in as few flights as all streams would.

use std::cmp::Reverse;

use crate::stream_meter::StreamRoom;

/// How many bytes of a message each stream may carry.
#[derive(Debug, PartialEq)]
pub(super) struct StreamShares(Vec<u64>);

impl StreamShares {
    /// The shares of a message of `total` bytes. `None` if all streams should carry the message, each as
    /// much as it takes, because that needs more than two flights.
    pub(super) fn of(total: u64, rooms: &[StreamRoom]) -> Option<Self> {
        let one_flight: Vec<u64> = rooms.iter().map(StreamRoom::one_flight).collect();
        let two_flights = rooms.iter().map(StreamRoom::two_flights).collect();
        let carries_all = |bytes: &Vec<u64>| bytes.iter().sum::<u64>() >= total;
        let bytes = [one_flight, two_flights].into_iter().find(carries_all)?;
        let mut streams: Vec<usize> = (0..bytes.len()).collect();
        streams.sort_by_key(|stream| Reverse((bytes[*stream], rooms[*stream].flight)));
        let mut shares = vec![0; bytes.len()];
        let mut rest = total;
        for stream in streams {
            shares[stream] = rest.min(bytes[stream]);
            rest -= shares[stream];
        }
        Some(StreamShares(shares))
    }

    /// The number of streams with a share.
    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|share| **share > 0).count()
    }

    /// How many bytes a stream may still carry: none if it has joined since the message began.
    pub(super) fn rest(&self, stream: usize) -> u64 {
        self.0.get(stream).copied().unwrap_or_default()
    }

    /// Takes a piece off the share of a stream.
    pub(super) fn take(&mut self, stream: usize, length: u64) {
        self.0[stream] -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams with the bytes of a flight and of a window.
    fn rooms(rooms: &[(u64, u64)]) -> Vec<StreamRoom> {
        let room = |&(flight, window)| StreamRoom {
            flight,
            two_flights: 2 * flight,
            window,
        };
        rooms.iter().map(room).collect()
    }

    fn shares(total: u64, of: &[(u64, u64)]) -> Option<Vec<u64>> {
        StreamShares::of(total, &rooms(of)).map(|shares| shares.0)
    }

    const ROOMS: [(u64, u64); 4] = [(30, 60), (10, 60), (80, 120), (40, 60)];

    #[test]
    fn the_streams_with_the_largest_flights_carry_a_message_in_one() {
        assert_eq!(shares(80, &ROOMS), Some(vec![0, 0, 80, 0]));
        assert_eq!(shares(100, &ROOMS), Some(vec![0, 0, 80, 20]));
        assert_eq!(shares(160, &ROOMS), Some(vec![30, 10, 80, 40]));
        // What the window does not take is in no flight.
        assert_eq!(shares(20, &[(80, 10), (15, 15)]), Some(vec![5, 15]));
    }

    #[test]
    fn few_streams_carry_a_message_that_takes_all_streams_two_flights() {
        assert_eq!(shares(161, &ROOMS), Some(vec![0, 0, 120, 41]));
        assert_eq!(shares(260, &ROOMS), Some(vec![60, 20, 120, 60]));
    }

    #[test]
    fn all_streams_carry_a_message_that_takes_them_more_flights() {
        assert_eq!(shares(261, &ROOMS), None);
        assert_eq!(shares(1, &[(0, 0), (0, 0)]), None);
        assert_eq!(shares(100, &[]), None);
    }

    #[test]
    fn pieces_use_a_share_up() {
        let mut shares = StreamShares::of(100, &rooms(&ROOMS)).unwrap();
        assert_eq!(shares.count(), 2);
        shares.take(2, 64);
        let rests = [0, 1, 2, 3].map(|stream| shares.rest(stream));
        assert_eq!(rests, [0, 0, 16, 20]);
        // A stream that has joined since the message began has no share.
        assert_eq!(shares.rest(4), 0);
    }
}
