//! What can be set for a link, and what is chosen where nothing is.

use std::net::SocketAddr;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{SetSockOpt as _, sockopt::SetStruct};
use rustix::net::sockopt;
use titin_wire::frame::{Frame, MAX_STREAMS};

use crate::descriptors::Held;

/// A further stream is worth it for each such piece of the way there and back.
const PER_STREAM: Duration = Duration::from_millis(5);

/// Streams that are chosen at most.
const CHOSEN: u64 = 16;

/// How a link is to be made; what is `None` is chosen or left to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSettings {
    /// Streams by which large messages go. With more than one they have the first stream beside them, for all the rest.
    pub streams: Option<u32>,
    /// Bytes per second that each end sends at most. Streams of large messages share it; the first one, if there are others,
    /// has the same rate for itself.
    pub pacing: Option<u64>,
    /// Bytes of each socket's send buffer.
    pub send_buffer: Option<u64>,
    /// Bytes of each socket's receive buffer.
    pub receive_buffer: Option<u64>,
}

impl LinkSettings {
    /// How many further streams a link gets to this address, to which a connection took so long to come about.
    pub(crate) fn further(&self, address: &SocketAddr, time: Duration) -> u64 {
        let streams = match self.streams {
            Some(streams) => u64::from(streams).min(MAX_STREAMS),
            // The time says nothing about the way where there is none: others may have been using the processor.
            None if address.ip().is_loopback() => 1,
            None => (1 + (time.as_nanos() / PER_STREAM.as_nanos()) as u64).min(CHOSEN),
        };
        if streams > 1 { streams } else { 0 }
    }

    /// Whether the other end has to be told.
    pub(crate) fn says_something(&self) -> bool {
        LinkSettings { streams: None, ..*self } != LinkSettings::default()
    }

    /// What tells the other end.
    pub(crate) fn frame(&self, key: u64, count: u64) -> Frame {
        let LinkSettings { pacing, send_buffer, receive_buffer, .. } = *self;
        let or_none = Option::unwrap_or_default;
        let (pacing, send_buffer, receive_buffer) =
            (or_none(pacing), or_none(send_buffer), or_none(receive_buffer));
        Frame::Streams { key, count, pacing, send_buffer, receive_buffer }
    }

    /// What the other end has told, but for the number of streams.
    pub(crate) fn told(pacing: u64, send_buffer: u64, receive_buffer: u64) -> Self {
        let some = |number: u64| (number > 0).then_some(number);
        LinkSettings {
            streams: None,
            pacing: some(pacing),
            send_buffer: some(send_buffer),
            receive_buffer: some(receive_buffer),
        }
    }

    /// Sets the buffers of a socket; the system may have a limit.
    pub(crate) fn size(&self, socket: &Held) {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(1 << 30);
        self.send_buffer.map(|size| sockopt::set_socket_send_buffer_size(socket, bytes(size)));
        self.receive_buffer.map(|size| sockopt::set_socket_recv_buffer_size(socket, bytes(size)));
    }

    /// Has the system hold back what is sent faster than one of so many streams may.
    pub(crate) fn pace(&self, socket: &Held, streams: u64) {
        self.pacing.map(|rate| PacingRate.set(&**socket, &rate.div_ceil(streams.max(1))));
    }
}

/// The system's own pacing, which needs no discipline of a network device.
#[derive(Clone, Copy)]
struct PacingRate;

nix::setsockopt_impl!(PacingRate, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64, SetStruct<u64>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_streams_are_chosen_the_longer_the_way_is() {
        let settings = LinkSettings::default();
        let (near, far) = (SocketAddr::from(([127, 0, 0, 1], 9)), SocketAddr::from(([10, 0, 0, 1], 9)));
        let chosen = |address, millis| settings.further(address, Duration::from_millis(millis));
        assert_eq!(chosen(&near, 1000), 0);
        let found = [0, 4, 5, 9, 10, 74, 75, 1000].map(|millis| chosen(&far, millis));
        assert_eq!(found, [0, 0, 2, 2, 3, 15, 16, 16]);
    }

    #[test]
    fn what_is_said_is_done() {
        let said = |streams| LinkSettings { streams: Some(streams), ..LinkSettings::default() };
        let near = SocketAddr::from(([127, 0, 0, 1], 9));
        let found = [1, 2, 128, 1000].map(|streams| said(streams).further(&near, Duration::ZERO));
        assert_eq!(found, [0, 2, 128, 256]);
        assert!(!said(1).says_something());
        assert!(LinkSettings { pacing: Some(1), ..said(1) }.says_something());
    }
}
