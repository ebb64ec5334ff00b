//! How many bytes an end of a session keeps for the other end: the bytes on the way, and those that
//! wait in sockets and relays.
//!
//! As in TCP Vegas (Brakmo and Peterson 1995), the time until bytes are acknowledged tells how long
//! they have waited on the way. As long as that is short the room doubles with each round trip, so
//! it comes to hold what a long and fast line holds. When bytes wait long, the room shrinks: a
//! message whose pieces go by several streams then does not wait for pieces in front of the slowest.

use std::time::{Duration, Instant};

/// The room of a new circuit, the smallest and the largest room.
const AT_FIRST: usize = 1 << 20;
const LEAST: usize = 128 << 10;
const MOST: usize = 64 << 20;

/// Waits that are too short to matter.
const SHORT: Duration = Duration::from_millis(10);

/// The room of an end.
#[derive(Debug)]
pub(super) struct SendRoom {
    bytes: usize,
    /// The shortest time until an acknowledgement has come.
    shortest: Option<Duration>,
    /// The time of the last acknowledgement, unless the room has grown by it.
    last: Option<Duration>,
    /// The position whose acknowledgement is awaited, and since when.
    awaited: Option<(u64, Instant)>,
}

impl SendRoom {
    /// The room of a new circuit.
    pub(super) fn new() -> Self {
        SendRoom {
            bytes: AT_FIRST,
            shortest: None,
            last: None,
            awaited: None,
        }
    }

    /// How many bytes the end may keep.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes up to a position are on the way, and up to another position acknowledged.
    pub(super) fn note(&mut self, sent: u64, acknowledged: u64, now: Instant) {
        if let Some((position, since)) = self.awaited
            && acknowledged >= position
        {
            self.awaited = None;
            self.adapt(now.saturating_duration_since(since));
        }
        if self.awaited.is_none() && sent > acknowledged {
            self.awaited = Some((sent, now));
        }
    }

    /// All bytes are on the way, and the room is full.
    pub(super) fn note_full(&mut self) {
        let longest = self.longest();
        if self.last.take_if(|last| *last <= longest).is_some() {
            self.bytes = (2 * self.bytes).min(MOST);
        }
    }

    /// The longest time until an acknowledgement comes from a line without queues.
    fn longest(&self) -> Duration {
        self.shortest.unwrap_or_default() * 3 / 2 + SHORT
    }

    fn adapt(&mut self, time: Duration) {
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        self.last = Some(time);
        let longest = self.longest();
        if time > 2 * longest {
            let share = longest.as_secs_f64() / time.as_secs_f64();
            self.bytes = ((self.bytes as f64 * share) as usize).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills the room of an end on a line with a rate in bytes a second, round by round. Returns the
    /// room after each round.
    fn on_line(room: &mut SendRoom, rate: f64, round_trip: Duration, rounds: usize) -> Vec<usize> {
        let (mut now, mut position) = (Instant::now(), 0);
        // The first message is small.
        room.note(1, 0, now);
        now += round_trip;
        room.note(1, 1, now);
        let round = |_| {
            let kept = room.bytes();
            room.note(position + kept as u64, position, now);
            room.note_full();
            position += kept as u64;
            now += round_trip.max(Duration::from_secs_f64(kept as f64 / rate));
            room.note(position, position, now);
            room.note_full();
            room.bytes()
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn the_room_grows_to_what_a_long_line_holds_and_not_much_further() {
        let rate = 125e6;
        let round_trip = Duration::from_millis(273);
        let rooms = on_line(&mut SendRoom::new(), rate, round_trip, 20);
        let line = (rate * round_trip.as_secs_f64()) as usize;
        assert!(rooms.iter().all(|room| *room <= 4 * line));
        let last = *rooms.last().unwrap();
        assert!(last >= line && last <= 2 * line, "{last} of {line}");
    }

    #[test]
    fn a_stream_that_becomes_slow_keeps_less() {
        let mut room = SendRoom::new();
        let round_trip = Duration::from_millis(100);
        on_line(&mut room, 100e6, round_trip, 10);
        let before = room.bytes();
        let slow = *on_line(&mut room, 1e6, round_trip, 10).last().unwrap();
        assert!(slow < before / 10, "{slow} after {before}");
        assert!(slow >= LEAST);
    }

    #[test]
    fn a_short_line_grows_too() {
        let mut room = SendRoom::new();
        let last = *on_line(&mut room, 2e9, Duration::from_micros(200), 8)
            .last()
            .unwrap();
        assert!(last >= 8 << 20);
    }
}
