//! The measured rate of a link's line, shared by the thread that measures and the senders.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::delivery_rate::DeliveryRate;

/// The meter of a link. The thread of the medium measures over all streams of the link.
#[derive(Debug)]
pub(crate) struct LineMeter {
    state: Mutex<DeliveryRate>,
    /// Bytes a second; 0 before the rate is known.
    rate: AtomicU64,
}

impl Default for LineMeter {
    fn default() -> Self {
        LineMeter {
            state: Mutex::new(DeliveryRate::new()),
            rate: AtomicU64::new(0),
        }
    }
}

impl LineMeter {
    /// The rate in bytes a second, once known.
    pub(crate) fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate > 0)
    }

    /// Notes an event of the line.
    pub(crate) fn note(&self, event: impl FnOnce(&mut DeliveryRate)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        event(&mut state);
        let rate = state.rate().unwrap_or_default();
        self.rate.store(rate as u64, Ordering::Relaxed);
    }
}
