//! The descriptors that titin has opened in this process. A forked child closes all of them.
//!
//! After a fork the child's instances are dead. If the child kept the sockets, peers would not
//! notice the end of the parent. The table consists of plain atomics: a fork handler may take no
//! lock, and so can read the table.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

const FREE: u64 = u64::MAX;

/// Set in a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Each entry has the number of a descriptor in the lower half, and a serial number in the upper
/// half. The serial number tells apart two descriptors with the same number, open one after the
/// other.
static TABLE: [AtomicU64; 4096] = [const { AtomicU64::new(FREE) }; 4096];

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Takes every descriptor out of the table, for a forked child to close. Dropping a [`Descriptor`]
/// afterwards does not close the number again.
///
/// A number need not be open in the child: Linux copies the open files before the memory, and another
/// thread of the parent may list a new descriptor in between. `close` then fails with `EBADF`, which
/// the child ignores.
pub fn take_all() -> impl Iterator<Item = RawFd> {
    FORKED.store(true, Ordering::Release);
    TABLE
        .iter()
        .map(|entry| entry.swap(FREE, Ordering::AcqRel))
        .filter(|entry| *entry != FREE)
        .map(|entry| entry as RawFd)
}

/// Raises the limit of open files as far as the system lets this process.
pub fn allow_many() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Whether this process is a forked child and has called [`take_all`]. The instances of the child,
/// and the shared memory in the child's sight, belong to the parent.
pub fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// An open descriptor, listed in the table until the descriptor is dropped.
#[derive(Debug)]
pub struct Descriptor {
    /// `None` only while the descriptor is dropped.
    file: Option<OwnedFd>,
    entry: u64,
    /// Index in the table; `None` if the table was full.
    slot: Option<usize>,
}

impl From<OwnedFd> for Descriptor {
    /// Lists a descriptor. When the table is full, a forked child does not close the descriptor.
    fn from(file: OwnedFd) -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let entry = u64::from(serial) << 32 | file.as_raw_fd() as u64;
        let slot = TABLE.iter().position(|free| {
            free.compare_exchange(FREE, entry, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        Descriptor {
            file: Some(file),
            entry,
            slot,
        }
    }
}

impl Descriptor {
    /// A number that no other descriptor of this process has. Unlike the system's number, the
    /// number is not used again.
    pub fn id(&self) -> u64 {
        self.entry
    }

    /// Closes a file, and hears whether the file system has taken the bytes.
    ///
    /// # Errors
    /// As the system's `close`. The descriptor is closed all the same.
    pub fn close(mut self) -> Result<(), Errno> {
        let closed = self.unlist().map(nix::unistd::close).unwrap_or(Ok(()));
        closed.map_err(|error| Errno::from_raw_os_error(error as i32))
    }

    /// Takes the descriptor out of the table. `None` if the fork handler has closed the descriptor:
    /// the number may belong to another file now.
    fn unlist(&mut self) -> Option<OwnedFd> {
        let file = self.file.take()?;
        let is_ours = self.slot.is_none_or(|slot| {
            TABLE[slot]
                .compare_exchange(self.entry, FREE, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        if is_ours {
            return Some(file);
        }
        let _ = file.into_raw_fd();
        None
    }
}

impl Deref for Descriptor {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        self.file.as_ref().expect("it is there until it is dropped")
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        drop(self.unlist());
    }
}
