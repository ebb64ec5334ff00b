//! A receiving end, as the calls of a serial instance look at the end.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use titin_transport::{Inbox, SpinLockGuard};
use titin_wire::control::WaitOn;

use super::Serial;
use crate::port::{Inlet, InletState, Port, PortState};

/// A receiving end, as a call looks at the end.
#[derive(Clone, Copy)]
pub(super) struct ReceivingEnd<'a> {
    pub(super) number: usize,
    pub(super) port: &'a Port,
    pub(super) inlet: &'a Inlet,
    /// Where in the port the inlet is.
    pub(super) place: usize,
    /// The place of the port among the ports of a call on several ports.
    pub(super) held: usize,
    /// `None` for any slot, if the sender counts the slots of the port.
    pub(super) slot: Option<u32>,
}

/// The states of the ports that a call has taken.
pub(super) type HeldPorts<'a> = SmallVec<[SpinLockGuard<'a, PortState>; 4]>;

impl ReceivingEnd<'_> {
    /// The inbox, if the carrier may hand the next message to a waiting thread. The inbox of an end
    /// without choice, without filters and with no slots that the sender counts.
    pub(super) fn direct_inbox(&self) -> Option<&Inbox> {
        let is_plain = !self.port.resizable && self.inlet.end.chain.passes_all();
        is_plain.then_some(&*self.inlet.inbox)
    }

    /// Whether the end has `repeat` or `pad`: such an end follows the other F_INIT ports.
    pub(super) fn follows(&self) -> bool {
        self.inlet.end.chain.follows()
    }

    /// The state of the end, among the ports that the call has taken.
    pub(super) fn state<'h>(&self, held: &'h mut HeldPorts<'_>) -> &'h mut InletState {
        &mut held[self.held].inlets[self.place]
    }

    /// A wait for the end, as the manager sees the wait. None once the sender is known to send no
    /// more: a call that waits for several ends then waits for the others.
    pub(super) fn wait_on(&self, serial: &Serial) -> Option<WaitOn> {
        if self.inlet.end_is_known.load(Ordering::Relaxed) {
            return None;
        }
        serial.wait_on(&self.inlet.end, None, Some(self.inlet))
    }
}
