//! The descriptors that this process opened for titin, so that a forked child can close them.
//!
//! After a fork the child's instances are dead. If the child kept our sockets, peers would not see the end of the
//! parent. A table of plain atomics can be read in a fork handler, where no lock may be taken.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

const FREE: i32 = -1;

static TABLE: [AtomicI32; 4096] = [const { AtomicI32::new(FREE) }; 4096];

/// Notes a descriptor. One that finds no place is only left out of the closing after a fork.
pub(crate) fn note(descriptor: impl AsFd) {
    let raw = descriptor.as_fd().as_raw_fd();
    let _ = TABLE
        .iter()
        .find(|entry| entry.compare_exchange(FREE, raw, Ordering::AcqRel, Ordering::Relaxed).is_ok());
}

/// Forgets a descriptor, before it is closed.
pub(crate) fn forget(descriptor: impl AsFd) {
    let raw = descriptor.as_fd().as_raw_fd();
    for entry in &TABLE {
        if entry.compare_exchange(raw, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            break;
        }
    }
}

/// Takes every descriptor out of the table. For a forked child, which is to close them.
pub fn take_all() -> impl Iterator<Item = RawFd> {
    TABLE.iter().map(|entry| entry.swap(FREE, Ordering::AcqRel)).filter(|raw| *raw != FREE)
}
