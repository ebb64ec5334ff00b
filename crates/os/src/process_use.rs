//! What this process has used of its host.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// The use of a host by a process, from its start on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessUse {
    /// The processor time of all threads.
    pub processor: Duration,
    /// The most bytes that were resident in memory at a time.
    pub peak_memory: u64,
}

/// What this process has used so far; `None` if the system does not tell.
pub fn own() -> Option<ProcessUse> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(ProcessUse {
        processor: time(usage.user_time()) + time(usage.system_time()),
        // Linux counts in KiB.
        peak_memory: u64::try_from(usage.max_rss()).ok()? << 10,
    })
}

fn time(value: TimeVal) -> Duration {
    let seconds = u64::try_from(value.tv_sec()).unwrap_or(0);
    let microseconds = u64::try_from(value.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_memory() {
        let before = own().unwrap();
        let block = vec![1_u8; 64 << 20];
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        assert_eq!(sum, 64 << 20);
        let after = own().unwrap();
        assert!(after.processor > before.processor, "{after:?}");
        assert!(after.peak_memory >= 64 << 20, "{after:?}");
    }
}
