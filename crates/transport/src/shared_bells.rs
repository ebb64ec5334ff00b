//! The doorbells of a process, in memory mapped by peers: a sender in another process can wake a
//! thread that sleeps at a bell.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock};

use titin_os::Descriptor;
use titin_os::descriptors::forked;

use crate::bell::BellWords;
use crate::shared_memory::{SharedRegion, Writers};

/// Bytes from one bell to the next: a cache line, so bells do not disturb each other.
const STRIDE: usize = 64;

/// The most bells of a process. Further doorbells cannot be rung by another process.
const BELLS: usize = 1 << 14;

static OWN_BELLS: OnceLock<Option<OwnBells>> = OnceLock::new();

struct OwnBells {
    region: SharedRegion,
    file: Descriptor,
    numbers: Mutex<FreeNumbers>,
}

#[derive(Default)]
struct FreeNumbers {
    returned: Vec<u32>,
    /// No doorbell ever had the number `unused` or a larger number.
    unused: u32,
}

/// A bell of the process's own that other processes can ring.
#[derive(Debug)]
pub(crate) struct SharedBell(u32);

impl SharedBell {
    /// A free bell, if any.
    pub(crate) fn take() -> Option<Self> {
        if cfg!(loom) {
            return None;
        }
        let bells = own_bells()?;
        let mut numbers = bells.numbers.lock().expect("never poisoned");
        if let Some(number) = numbers.returned.pop() {
            return Some(SharedBell(number));
        }
        let bell = SharedBell(numbers.unused);
        if bell.0 as usize >= BELLS {
            return None;
        }
        // While the lock is held, since peers ring bells up to the first unused bell.
        bell.words().mark_used();
        numbers.unused += 1;
        Some(bell)
    }

    pub(crate) fn number(&self) -> u32 {
        self.0
    }

    pub(crate) fn words(&self) -> &'static BellWords {
        let bells = own_bells().expect("the bells were there when this one was taken");
        bells.region.at(self.0 as usize * STRIDE)
    }
}

impl Drop for SharedBell {
    fn drop(&mut self) {
        // In a forked child the bell is the parent's, and a thread of the parent may hold the lock
        // for ever.
        if forked() {
            return;
        }
        let bells = own_bells().expect("the bells were there when this one was taken");
        bells
            .numbers
            .lock()
            .expect("nothing panics while the numbers are locked")
            .returned
            .push(self.0);
    }
}

/// The file of the process's own bells, for peers; `None` if the system had no memory for the
/// bells.
pub(crate) fn own_file() -> Option<&'static OwnedFd> {
    own_bells().map(|bells| &*bells.file)
}

fn own_bells() -> Option<&'static OwnBells> {
    let bells = OWN_BELLS.get_or_init(|| {
        let (region, file) =
            SharedRegion::create("titin-bells", BELLS * STRIDE, Writers::All).ok()?;
        Some(OwnBells {
            region,
            file: file.into(),
            numbers: Mutex::default(),
        })
    });
    bells.as_ref()
}

/// The bells of another process.
#[derive(Debug)]
pub(crate) struct PeerBells(SharedRegion);

impl PeerBells {
    pub(crate) fn open(file: &OwnedFd) -> std::io::Result<Self> {
        SharedRegion::open(file, BELLS * STRIDE, Writers::All).map(PeerBells)
    }

    /// Rings each used bell whose number, modulo 64, is the index of a bit set in `remainders`: a
    /// thread sleeps at one of the bells.
    pub(crate) fn ring(&self, mut remainders: u64) {
        while remainders != 0 {
            let first = remainders.trailing_zeros() as usize;
            remainders &= remainders - 1;
            for number in (first..BELLS).step_by(64) {
                let bell: &BellWords = self.0.at(number * STRIDE);
                if !bell.was_used() {
                    // Numbers are given out in ascending order.
                    break;
                }
                bell.ring_from_other_process();
            }
        }
    }
}
