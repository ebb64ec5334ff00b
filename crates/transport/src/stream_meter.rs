//! What the thread of a medium measures of one stream of a link, and what the link's senders make of it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::flight::Flight;
use crate::line_meter::LineMeter;

/// The sizes of the send buffer from the link to a stream. Bytes in the buffer leave by this stream and no
/// other, however slow the stream is. With the larger buffer the medium takes more bytes at a time.
pub(crate) const SMALLEST_BUFFER: usize = 16 << 10;
const LARGEST_BUFFER: usize = 64 << 10;

/// The bytes a second with which a stream gets the larger buffer. The stream sends the buffer in 2 ms.
const FAST: f64 = 32e6;

/// The share of a flight or window that the headers of pieces and records take.
const SHARE_OF_HEADERS: u64 = 100;

/// What the thread of the medium measures of a stream, for the link's senders.
pub(crate) struct StreamMeter {
    line: Arc<LineMeter>,
    /// Whether the stream is the first one of the link, and so carries no pieces of large messages.
    is_first: bool,
    /// The flight and the window of the stream's circuit; `None` while there is no circuit.
    circuit: Mutex<Option<(Flight, usize)>>,
    /// The bytes that the link has written or is about to write, less those that the medium has noted as taken.
    untaken: AtomicI64,
}

impl StreamMeter {
    pub(crate) fn new(line: Arc<LineMeter>, is_first: bool) -> Self {
        StreamMeter {
            line,
            is_first,
            circuit: Mutex::default(),
            untaken: AtomicI64::new(0),
        }
    }

    /// The meter of the link's line.
    pub(crate) fn line(&self) -> &LineMeter {
        &self.line
    }

    /// Notes the flight and the window of the circuit.
    pub(crate) fn note_circuit(&self, circuit: Option<(Flight, usize)>) {
        *self.circuit() = circuit;
    }

    /// Notes for the line that the medium has taken bytes from the link: as
    /// [`DeliveryRate::note_taken`](crate::delivery_rate::DeliveryRate::note_taken).
    pub(crate) fn note_line(&self, bytes: u64, room_since: Option<Instant>, now: Instant) {
        self.line.note(|rate| match self.is_first {
            true => rate.note_taken_by_first(bytes, room_since, now),
            false => rate.note_taken(bytes, room_since, now),
        });
    }

    /// Notes that the link is about to write `most` bytes. A medium that is quick then takes no bytes that
    /// are not counted.
    pub(crate) fn begin_write(&self, most: usize) {
        self.untaken.fetch_add(most as i64, Ordering::Relaxed);
    }

    /// Notes that the stream has taken only a part of the bytes: not the last `rest` ones.
    pub(crate) fn note_unwritten(&self, rest: usize) {
        self.untaken.fetch_sub(rest as i64, Ordering::Relaxed);
    }

    /// Sets the number of bytes that the link has written, and the medium has not noted as taken. The medium
    /// sets it when it begins, and whenever the socket is empty, so a wrong count does not last.
    pub(crate) fn set_untaken(&self, bytes: usize) {
        self.untaken.store(bytes as i64, Ordering::Relaxed);
    }

    /// Notes bytes that the medium has taken.
    pub(crate) fn note_taken(&self, bytes: usize) {
        self.untaken.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    /// How many bytes of a new message the stream carries.
    pub(crate) fn room(&self, now: Instant) -> StreamRoom {
        let Some((flight, window)) = *self.circuit() else {
            return StreamRoom::default();
        };
        let kept = flight.kept() as u64 + self.untaken.load(Ordering::Relaxed).max(0) as u64;
        let room = |bytes: u64| {
            let bytes = bytes.saturating_sub(kept);
            bytes - bytes / SHARE_OF_HEADERS
        };
        let flight = flight.bytes(now) as u64;
        StreamRoom {
            flight: room(flight),
            two_flights: room(2 * flight),
            window: room(window as u64),
        }
    }

    /// The size of the send buffer that suits the circuit.
    pub(crate) fn buffer(&self) -> usize {
        let rate = self
            .circuit()
            .map_or(0.0, |(flight, window)| flight.rate(window));
        match rate >= FAST {
            true => LARGEST_BUFFER,
            false => SMALLEST_BUFFER,
        }
    }

    fn circuit(&self) -> MutexGuard<'_, Option<(Flight, usize)>> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many bytes of a new message a stream carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StreamRoom {
    /// The bytes that TCP sends before it waits for an acknowledgement.
    pub(crate) flight: u64,
    /// The bytes that TCP sends before it waits for a second acknowledgement.
    pub(crate) two_flights: u64,
    /// The bytes that the window takes before it waits.
    pub(crate) window: u64,
}

impl StreamRoom {
    /// The bytes that arrive within half a round trip.
    pub(crate) fn one_flight(&self) -> u64 {
        self.flight.min(self.window)
    }

    /// The bytes that arrive within one and a half round trips.
    pub(crate) fn two_flights(&self) -> u64 {
        self.two_flights.min(self.window)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flight::SessionProgress;

    /// A meter of a circuit with a window and a round trip.
    fn meter(window: usize, round_trip: Duration) -> StreamMeter {
        let progress = SessionProgress {
            kept: 2000,
            ..SessionProgress::begin()
        };
        let mut flight = Flight::new(progress);
        flight.note(progress, Some(round_trip));
        let meter = StreamMeter::new(Arc::default(), false);
        meter.note_circuit(Some((flight, window)));
        meter
    }

    #[test]
    fn a_fast_stream_has_a_large_buffer() {
        for (window, round_trip, buffer) in [
            (32 << 10, Duration::from_millis(15), SMALLEST_BUFFER),
            (600 << 10, Duration::from_millis(15), SMALLEST_BUFFER),
            (700 << 10, Duration::from_millis(15), LARGEST_BUFFER),
            (700 << 10, Duration::from_millis(100), SMALLEST_BUFFER),
            (200 << 10, Duration::ZERO, LARGEST_BUFFER),
        ] {
            assert_eq!(meter(window, round_trip).buffer(), buffer, "{window}");
        }
        let unknown = StreamMeter::new(Arc::default(), false);
        assert_eq!(unknown.buffer(), SMALLEST_BUFFER);
    }

    #[test]
    fn bytes_under_way_and_in_the_socket_take_room() {
        let meter = meter(32_000, Duration::from_millis(15));
        let room = |bytes: u64| bytes - bytes / SHARE_OF_HEADERS;
        let now = Instant::now();
        assert_eq!(meter.room(now).window, room(30_000));
        meter.set_untaken(1000);
        meter.begin_write(800);
        meter.note_unwritten(300);
        assert_eq!(meter.room(now).window, room(28_500));
        meter.note_taken(1500);
        assert_eq!(meter.room(now).window, room(30_000));
        // The medium has begun to count while the link wrote.
        meter.note_taken(1500);
        assert_eq!(meter.room(now).window, room(30_000));
        meter.begin_write(2000);
        meter.set_untaken(0);
        assert_eq!(meter.room(now).window, room(30_000));
        meter.begin_write(1000);
        assert_eq!(meter.room(now).window, room(29_000));
    }

    #[test]
    fn bytes_under_way_take_room_once_in_two_flights() {
        let meter = meter(1 << 20, Duration::from_millis(15));
        let room = |bytes: u64| bytes - bytes / SHARE_OF_HEADERS;
        let StreamRoom {
            flight,
            two_flights,
            ..
        } = meter.room(Instant::now());
        let initial = 13 << 10;
        assert_eq!(flight, room(initial - 2000));
        assert_eq!(two_flights, room(2 * initial - 2000));
    }

    #[test]
    fn bytes_of_the_first_stream_are_not_of_all_streams() {
        let begin = Instant::now();
        let (round_trip, bytes) = (Duration::from_millis(15), 1 << 20);
        for is_first in [false, true] {
            let meter = StreamMeter::new(Arc::default(), is_first);
            meter.line().note(|rate| {
                rate.note_round_trip(round_trip, begin);
                rate.note_message(false);
            });
            meter.note_line(bytes, None, begin);
            let mut samples = Vec::new();
            meter.line().note(|rate| {
                samples = rate.note_acknowledged(bytes, begin + Duration::from_millis(100));
            });
            assert_eq!(samples.len(), 1);
            assert_eq!(samples[0].is_by_few, is_first);
        }
    }

    #[test]
    fn a_message_in_two_flights_fits_into_the_window() {
        let room = |flight, window| StreamRoom {
            flight,
            two_flights: 2 * flight,
            window,
        };
        let flights = |room: StreamRoom| (room.one_flight(), room.two_flights());
        assert_eq!(flights(room(10, 40)), (10, 20));
        assert_eq!(flights(room(10, 15)), (10, 15));
        assert_eq!(flights(room(10, 5)), (5, 5));
    }
}
