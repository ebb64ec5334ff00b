//! The slots of this process: payload memory that peers on this host can map.
//!
//! A **segment** is a region of slots of one size, which its owner writes and others only read. A **slot** is given to
//! one message at a time. It may be told to any number of peers, and to each any number of times (a multicast to several
//! instances there); each time counts as given. A peer counts what it has done with in words that only it changes
//! ([`Returns`]): the slot is free once every peer whose process has not ended has returned it as often as it was
//! given. So nobody waits for anybody, and whoever dies gives back all that it had.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use super::memory::{Piece, Region, Writers};
use super::returns::Returns;
use crate::descriptors::Held;
use crate::host;

/// Slots that a process may ever have; so many counts of returns are there for each peer.
pub(crate) const SLOTS: usize = 1 << 14;

/// Payloads are rounded up to pages.
const PAGE: usize = 4096;

/// What a segment begins with: so many slots, or so many bytes if that is less.
const FIRST_SLOTS: usize = 64;
const FIRST_BYTES: usize = 1 << 20;

/// Largest segment of more than one slot.
const LARGEST: usize = 64 << 20;

/// Slots that are looked at for one that has come back, before another is made.
const LOOKS: usize = 8;

/// All slots of a process.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    ceiling: OnceLock<usize>,
    /// There was no slot for somebody.
    short: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    sizes: BTreeMap<usize, Size>,
    segments: Vec<Arc<Segment>>,
    slots: usize,
    bytes: usize,
}

/// The slots of one size that no message of ours has.
#[derive(Debug, Default)]
struct Size {
    free: Vec<Slot>,
    /// Those that peers may still hold; the last ones given are at the end.
    out: VecDeque<Slot>,
    bytes: usize,
}

/// Memory of several slots.
#[derive(Debug)]
pub(crate) struct Segment {
    region: Arc<Region>,
    file: Held,
    /// Number of its first slot.
    pub(crate) first: usize,
    /// Bytes of a slot.
    pub(crate) size: usize,
    pub(crate) count: usize,
}

/// Room for one payload.
#[derive(Debug)]
pub(crate) struct Slot {
    number: usize,
    segment: Arc<Segment>,
    given: Vec<Given>,
}

/// How often a slot was given to one peer, ever.
#[derive(Debug)]
struct Given {
    returns: Arc<Returns>,
    times: u32,
}

/// A slot that has a message of ours, and its bytes. It goes back to the pool with this.
#[derive(Debug)]
pub(crate) struct Placed {
    slot: Mutex<Option<Slot>>,
    number: usize,
    segment: Arc<Segment>,
    piece: Piece,
    pool: Weak<Pool>,
}

impl Pool {
    /// A pool that takes at most so many bytes from the system.
    pub(crate) fn new(ceiling: usize) -> Arc<Self> {
        Arc::new(Pool { ceiling: ceiling.into(), ..Pool::default() })
    }

    /// What it takes at most: unless that was said, a quarter of the memory that this process may use.
    fn ceiling(&self) -> usize {
        *self.ceiling.get_or_init(|| usize::try_from(host::memory() / 4).unwrap_or(usize::MAX))
    }

    /// Whether there was no slot for somebody, since this was last asked.
    pub(crate) fn ran_out(&self) -> bool {
        self.short.load(Ordering::Relaxed) && self.short.swap(false, Ordering::Relaxed)
    }

    /// A slot for so many bytes; `None` if there is none, and the ceiling or the system allows no more.
    pub(crate) fn take(self: &Arc<Self>, length: usize) -> Option<Placed> {
        let size = rounded(length)?;
        let mut state = self.lock();
        let known = state.sizes.entry(size).or_default().take();
        let found = known.or_else(|| state.grow(size, self.ceiling())).or_else(|| state.take_larger(size));
        let Some(slot) = found else {
            // Who is not to share anything has nothing to run out of.
            self.short.store(self.ceiling() > 0, Ordering::Relaxed);
            return None;
        };
        drop(state);
        let start = (slot.number - slot.segment.first) * slot.segment.size;
        let piece = Piece::new(&slot.segment.region, start..start + length);
        let (number, segment) = (slot.number, slot.segment.clone());
        Some(Placed { slot: Mutex::new(Some(slot)), number, segment, piece, pool: Arc::downgrade(self) })
    }

    fn give_back(&self, slot: Slot) {
        // In a forked child whoever held the lock may not exist any more, and the slot is the parent's.
        if crate::descriptors::forked() {
            return;
        }
        let mut state = self.lock();
        let size = state.sizes.entry(slot.segment.size).or_default();
        if slot.given.is_empty() { size.free.push(slot) } else { size.out.push_back(slot) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while the pool is locked")
    }
}

impl State {
    /// A slot of more bytes than are needed, where no other can be had.
    fn take_larger(&mut self, size: usize) -> Option<Slot> {
        self.sizes.range_mut(size + 1..).find_map(|(_, slots)| slots.take())
    }

    /// Makes another segment of slots of this size, and takes its first.
    fn grow(&mut self, size: usize, ceiling: usize) -> Option<Slot> {
        let room = ceiling.saturating_sub(self.bytes);
        let sizes = self.sizes.get_mut(&size).expect("asked for before");
        // As many bytes as there are of this size: the number of segments stays small, whatever a program keeps.
        let wanted = sizes.bytes.clamp(size.saturating_mul(FIRST_SLOTS).min(FIRST_BYTES), LARGEST);
        let count = (wanted.min(room) / size).max(1).min(SLOTS - self.slots);
        if count == 0 || size.saturating_mul(count) > room {
            return None;
        }
        let (region, file) = Region::create("titin-segment", size * count, Writers::Maker).ok()?;
        let region = Arc::new(region);
        let segment = Arc::new(Segment { region, file: file.into(), first: self.slots, size, count });
        sizes.bytes += size * count;
        self.slots += count;
        self.bytes += size * count;
        let slots = (segment.first..segment.first + count).rev();
        sizes.free.extend(slots.map(|number| Slot { number, segment: segment.clone(), given: Vec::new() }));
        self.segments.push(segment);
        sizes.free.pop()
    }
}

impl Size {
    /// A slot that nobody has: the one used last, whose memory is warm, or of those that were out for longest.
    fn take(&mut self) -> Option<Slot> {
        if self.out.back().is_some_and(Slot::is_free) {
            return self.out.pop_back();
        }
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        for _ in 0..self.out.len().min(LOOKS) {
            let slot = self.out.pop_front()?;
            if slot.is_free() {
                return Some(slot);
            }
            self.out.push_back(slot);
        }
        None
    }
}

impl Slot {
    fn is_free(&self) -> bool {
        self.given.iter().all(|given| given.returns.has(self.number, given.times))
    }
}

impl Placed {
    /// Counts the slot as given to a peer once more.
    pub(crate) fn give(&self, returns: &Arc<Returns>) {
        let mut slot = self.slot.lock().expect("never poisoned");
        let given = &mut slot.as_mut().expect("there until dropped").given;
        given.retain(|given| !given.returns.is_dead());
        match given.iter_mut().find(|given| Arc::ptr_eq(&given.returns, returns)) {
            Some(given) => given.times = given.times.wrapping_add(1),
            None => given.push(Given { returns: returns.clone(), times: 1 }),
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Whether it is of this pool, whose peers know its segments.
    pub(crate) fn is_of(&self, pool: &Arc<Pool>) -> bool {
        std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool))
    }
}

impl Segment {
    /// What peers map.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

impl Deref for Placed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.piece
    }
}

impl DerefMut for Placed {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.piece
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let slot = self.slot.get_mut().expect("never poisoned").take();
        if let (Some(slot), Some(pool)) = (slot, self.pool.upgrade()) {
            pool.give_back(slot);
        }
    }
}

/// The size of a slot for so many bytes: one of four between a power of two and the next, so that payloads that grow
/// slowly find their slots again.
fn rounded(length: usize) -> Option<usize> {
    let step = (length / 4).next_power_of_two().max(PAGE);
    length.max(1).checked_next_multiple_of(step)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn peer() -> Arc<Returns> {
        Returns::here(SLOTS, None)
    }

    #[test]
    fn a_slot_comes_back_when_all_have_returned_it() {
        let (pool, peers) = (Pool::new(1 << 30), [peer(), peer()]);
        let slot = pool.take(100_000).unwrap();
        let number = slot.number();
        slot.give(&peers[0]);
        slot.give(&peers[1]);
        slot.give(&peers[1]);
        drop(slot);
        let next = || pool.take(100_000).unwrap().number();
        assert_ne!(next(), number);
        peers[0].add(number);
        peers[1].add(number);
        assert_ne!(next(), number);
        peers[1].add(number);
        assert_eq!(next(), number);
        // And again: counts go on.
        let slot = pool.take(100_000).unwrap();
        slot.give(&peers[0]);
        drop(slot);
        assert_ne!(next(), number);
    }

    #[test]
    fn whoever_has_ended_holds_nothing() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let (pool, peer) = (Pool::new(1 << 30), Returns::here(SLOTS, Some(process.into())));
        let slot = pool.take(1 << 20).unwrap();
        let number = slot.number();
        slot.give(&peer);
        drop(slot);
        peer.leave();
        assert_ne!(pool.take(1 << 20).unwrap().number(), number, "it may still view what it was given");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(pool.take(1 << 20).unwrap().number(), number);
    }

    #[test]
    fn slots_have_memory_of_their_own() {
        let pool = Pool::new(1 << 30);
        let mut slots: Vec<_> = (0..200).map(|_| pool.take(5000).unwrap()).collect();
        slots.iter_mut().zip(0..).for_each(|(slot, number)| slot.fill(number));
        assert!(slots.iter().zip(0..).all(|(slot, number)| slot.iter().all(|byte| *byte == number)));
        assert!(slots.iter().all(|slot| slot.as_ptr().align_offset(titin_wire::ALIGNMENT) == 0));
        assert!(pool.lock().segments.len() < 6, "segments grow with what is used");
    }

    #[test]
    fn the_ceiling_holds() {
        let pool = Pool::new(10 << 20);
        let slots: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert_eq!(slots.len(), 10);
        drop(slots);
        assert!(pool.take(1 << 20).is_some());
        assert!(pool.take(11 << 20).is_none() && pool.take(usize::MAX).is_none());
    }

    #[test]
    fn what_is_smaller_finds_room_in_larger_slots() {
        let pool = Pool::new(10 << 20);
        let large: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert!(pool.take(5000).is_none());
        drop(large);
        let mut small: Vec<_> = std::iter::from_fn(|| pool.take(5000)).collect();
        assert_eq!(small.len(), 10);
        small.iter_mut().zip(0..).for_each(|(slot, number)| slot.fill(number));
        assert!(small.iter().zip(0..).all(|(slot, number)| slot[..] == [number; 5000]));
        drop(small);
        assert!(pool.take(1 << 20).is_some(), "they are what they were");
    }

    #[test]
    fn sizes_waste_little() {
        for length in [1, 4096, 5000, 70_000, 1 << 20, (64 << 20) + 1] {
            let size = rounded(length).unwrap();
            assert!(size >= length && size < length + (length / 2).max(PAGE), "{length}: {size}");
        }
        assert_eq!(rounded(64 << 20), Some(64 << 20));
    }
}
