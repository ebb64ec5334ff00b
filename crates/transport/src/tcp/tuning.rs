//! The settings of a link's sockets, and the number of streams where the user sets none.

use std::net::SocketAddr;
use std::time::Duration;

use titin_wire::LinkSettings;
use titin_wire::frame::MAX_STREAMS;

use titin_os::{Descriptor, sockets};

/// A link gets a further stream for each `PER_STREAM` of the round trip.
const PER_STREAM: Duration = Duration::from_millis(5);

/// The most streams of a link if the user sets no number.
const MOST_STREAMS: u64 = 16;

/// How many further streams a link to `address` gets, after a first connection that took
/// `round_trip`.
pub(super) fn further_streams(
    settings: &LinkSettings,
    address: &SocketAddr,
    round_trip: Duration,
) -> u64 {
    let streams = match settings.streams {
        Some(streams) => u64::from(streams).min(MAX_STREAMS),
        // On loopback bytes travel no distance: the time shows how busy the processor is.
        None if address.ip().is_loopback() => 1,
        None => (1 + (round_trip.as_nanos() / PER_STREAM.as_nanos()) as u64).min(MOST_STREAMS),
    };
    if streams > 1 { streams } else { 0 }
}

/// Has the system pace one of `streams` streams. The streams share the rate of the link.
pub(super) fn set_pacing(socket: &Descriptor, settings: &LinkSettings, streams: u64) {
    let rate = settings.pacing_of_stream(streams);
    rate.inspect(|rate| sockets::set_pacing_rate(socket, *rate));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_round_trips_get_more_streams() {
        let (near, far) = (
            SocketAddr::from(([127, 0, 0, 1], 9)),
            SocketAddr::from(([10, 0, 0, 1], 9)),
        );
        let chosen = |address, millis| {
            further_streams(
                &LinkSettings::default(),
                address,
                Duration::from_millis(millis),
            )
        };
        assert_eq!(chosen(&near, 1000), 0);
        let found = [0, 4, 5, 9, 10, 74, 75, 1000].map(|millis| chosen(&far, millis));
        assert_eq!(found, [0, 0, 2, 2, 3, 15, 16, 16]);
    }

    #[test]
    fn a_set_number_of_streams_is_used() {
        let near = SocketAddr::from(([127, 0, 0, 1], 9));
        let found = [1, 2, 128, 1000].map(|streams| {
            let set = LinkSettings {
                streams: Some(streams),
                ..LinkSettings::default()
            };
            further_streams(&set, &near, Duration::ZERO)
        });
        assert_eq!(found, [0, 2, 128, 256]);
    }
}
