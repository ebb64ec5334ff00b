//! The bells of this process, in memory that peers map, so that a sender in another process can wake who sleeps here.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock};

use super::memory::{Region, Writers};
use crate::doorbell::Bell;

/// Bytes from one bell to the next: a line, so that they do not disturb each other.
const STEP: usize = 64;

/// Bells of one process at most; who comes later has one that no other process can ring.
const BELLS: usize = 1 << 14;

static BELLS_HERE: OnceLock<Option<Bells>> = OnceLock::new();

struct Bells {
    region: Region,
    file: titin_os::Descriptor,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    free: Vec<u32>,
    /// All from here on were never given out.
    next: u32,
}

/// A bell among those that other processes can ring.
#[derive(Debug)]
pub(crate) struct Place(u32);

impl Place {
    /// A free one, if there is one.
    pub(crate) fn take() -> Option<Self> {
        if cfg!(loom) {
            return None;
        }
        let bells = here()?;
        let mut places = bells.places.lock().expect("never poisoned");
        if let Some(index) = places.free.pop() {
            return Some(Place(index));
        }
        let place = Place(places.next);
        if place.0 as usize >= BELLS {
            return None;
        }
        // Before another one is given out: peers look for bells until they find one that was never used.
        place.bell().use_it();
        places.next += 1;
        Some(place)
    }

    pub(crate) fn number(&self) -> u32 {
        self.0
    }

    pub(crate) fn bell(&self) -> &'static Bell {
        let bells = here().expect("there were some when this was taken");
        bells.region.at(self.0 as usize * STEP)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In a forked child whoever held the lock may not exist any more, and the place is the parent's.
        if titin_os::descriptors::forked() {
            return;
        }
        let bells = here().expect("there were some when this was taken");
        bells
            .places
            .lock()
            .expect("nothing panics while the places are locked")
            .free
            .push(self.0);
    }
}

/// The file of this process's bells, for peers; `None` if the system had no memory for them.
pub(crate) fn file() -> Option<&'static OwnedFd> {
    here().map(|bells| &*bells.file)
}

fn here() -> Option<&'static Bells> {
    let bells = BELLS_HERE.get_or_init(|| {
        let (region, file) = Region::create("titin-bells", BELLS * STEP, Writers::All).ok()?;
        Some(Bells {
            region,
            file: file.into(),
            places: Mutex::default(),
        })
    });
    bells.as_ref()
}

/// The bells of another process.
#[derive(Debug)]
pub(crate) struct PeerBells(Region);

impl PeerBells {
    pub(crate) fn open(file: &OwnedFd) -> std::io::Result<Self> {
        Region::open(file, BELLS * STEP, Writers::All).map(PeerBells)
    }

    /// Rings those whose number leaves one of these remainders, of 64, and at which somebody sleeps.
    pub(crate) fn ring(&self, mut remainders: u64) {
        while remainders != 0 {
            let first = remainders.trailing_zeros() as usize;
            remainders &= remainders - 1;
            for index in (first..BELLS).step_by(64) {
                let bell: &Bell = self.0.at(index * STEP);
                if !bell.was_used() {
                    // Places are given out from the first one on.
                    break;
                }
                bell.ring_from_afar();
            }
        }
    }
}
