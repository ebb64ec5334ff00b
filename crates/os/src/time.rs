//! Times for system calls.

use std::time::Duration;

use rustix::event::Timespec;

/// A time for the system. The kernel refuses a time beyond its counter.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
