//! What is set for the sockets of a link, and chosen where nothing is.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::sockopt;
use titin_wire::LinkSettings;
use titin_wire::frame::MAX_STREAMS;

use titin_os::{Descriptor, sockets};

/// A further stream is worth it for each such piece of the way there and back.
const PER_STREAM: Duration = Duration::from_millis(5);

/// Streams that are chosen at most.
const CHOSEN: u64 = 16;

/// How many further streams a link gets to this address, to which a connection took so long to come about.
pub(crate) fn further(settings: &LinkSettings, address: &SocketAddr, time: Duration) -> u64 {
    let streams = match settings.streams {
        Some(streams) => u64::from(streams).min(MAX_STREAMS),
        // The time says nothing about the way where there is none: others may have been using the processor.
        None if address.ip().is_loopback() => 1,
        None => (1 + (time.as_nanos() / PER_STREAM.as_nanos()) as u64).min(CHOSEN),
    };
    if streams > 1 { streams } else { 0 }
}

/// Sets the buffers of a socket; the system may have a limit.
pub(crate) fn size(socket: &Descriptor, settings: &LinkSettings) {
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(1 << 30);
    settings
        .send_buffer
        .map(|size| sockopt::set_socket_send_buffer_size(socket, bytes(size)));
    settings
        .receive_buffer
        .map(|size| sockopt::set_socket_recv_buffer_size(socket, bytes(size)));
}

/// Has the system hold back what is sent faster than one of so many streams may.
pub(crate) fn pace(socket: &Descriptor, settings: &LinkSettings, streams: u64) {
    settings
        .pacing
        .map(|rate| sockets::set_pacing_rate(socket, rate.div_ceil(streams.max(1))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_streams_are_chosen_the_longer_the_way_is() {
        let (near, far) = (
            SocketAddr::from(([127, 0, 0, 1], 9)),
            SocketAddr::from(([10, 0, 0, 1], 9)),
        );
        let chosen = |address, millis| {
            further(
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
    fn what_is_said_is_done() {
        let near = SocketAddr::from(([127, 0, 0, 1], 9));
        let found = [1, 2, 128, 1000].map(|streams| {
            let said = LinkSettings {
                streams: Some(streams),
                ..LinkSettings::default()
            };
            further(&said, &near, Duration::ZERO)
        });
        assert_eq!(found, [0, 2, 128, 256]);
    }
}
