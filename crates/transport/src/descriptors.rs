//! The descriptors that this process opened for titin, so that a forked child can close them.
//!
//! After a fork the child's instances are dead. If the child kept our sockets, peers would not see the end of the
//! parent. A table of plain atomics can be read in a fork handler, where no lock may be taken.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const FREE: u64 = u64::MAX;

/// Set in a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// In each entry the descriptor's number, and above it one that tells apart those that had the same in their time.
static TABLE: [AtomicU64; 4096] = [const { AtomicU64::new(FREE) }; 4096];

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Takes every descriptor out of the table. For a forked child, which is to close them; what held them does not close
/// them again.
pub fn take_all() -> impl Iterator<Item = RawFd> {
    FORKED.store(true, Ordering::Release);
    TABLE
        .iter()
        .map(|entry| entry.swap(FREE, Ordering::AcqRel))
        .filter(|entry| *entry != FREE)
        .map(|entry| entry as RawFd)
}

/// Whether this is a forked child that has taken them out: instances, and the shared memory that it sees, are its
/// parent's business.
pub fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// A descriptor that stands in the table as long as it is open.
#[derive(Debug)]
pub struct Held {
    /// Taken out only when dropped.
    descriptor: Option<OwnedFd>,
    entry: u64,
    place: Option<usize>,
}

impl From<OwnedFd> for Held {
    /// Notes a descriptor. One that finds no place is only left out of the closing after a fork.
    fn from(descriptor: OwnedFd) -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let entry = u64::from(serial) << 32 | descriptor.as_raw_fd() as u64;
        let place = TABLE.iter().position(|free| {
            free.compare_exchange(FREE, entry, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        Held {
            descriptor: Some(descriptor),
            entry,
            place,
        }
    }
}

impl Deref for Held {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        self.descriptor
            .as_ref()
            .expect("it is there until it is dropped")
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(descriptor), Some(place)) = (self.descriptor.take(), self.place) else {
            return;
        };
        let noted =
            TABLE[place].compare_exchange(self.entry, FREE, Ordering::AcqRel, Ordering::Relaxed);
        if noted.is_err() {
            // The fork handler has closed it; by now the number may be somebody else's.
            let _ = descriptor.into_raw_fd();
        }
    }
}
