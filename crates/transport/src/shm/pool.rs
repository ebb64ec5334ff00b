//! The blocks of this process: payload memory that peers on this host can map.
//!
//! A **segment** is a region of blocks of one size, which its owner writes and others only read. A **block** is given
//! to one message at a time. It may be told to any number of peers, and to each any number of times (a multicast to
//! several instances there); each time counts as given. A peer counts what it has done with in words of its own
//! ([`Returns`]; for what it never got to see the owner does): the block is free once every peer whose process has not
//! ended has returned it as often as it was given. So nobody waits for anybody, and whoever dies gives back all that it
//! had.
//!
//! Where there is no room for another block, segments of other sizes whose blocks are all free are **withdrawn**: their
//! memory goes back to the system, once the peers have let go of it too, and the places of their blocks serve others. A
//! block's number says which segment it is of, so that a peer that was told of a block before it was handed the new
//! segment does not look for it in the old one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

use titin_wire::frame::Frame;

use super::memory::{self, Piece, Region, Writers};
use super::returns::Returns;
use crate::tcp::Link;
use titin_os::Descriptor;
use titin_os::host;

/// Blocks that a process may have at once; so many counts of returns are there for each peer.
pub(crate) const BLOCKS: usize = 1 << 14;

/// Payloads are rounded up to pages.
const PAGE: usize = 4096;

/// What a segment begins with: so many blocks, or so many bytes if that is less.
const FIRST_BLOCKS: usize = 64;
const FIRST_BYTES: usize = 1 << 20;

/// Largest segment of more than one block.
const LARGEST: usize = 64 << 20;

/// Blocks that are looked at for one that has come back, before another is made.
const LOOKS: usize = 8;

/// From so many bytes on it pays to look at some for one whose memory is warm.
const WARM: usize = 64 << 10;

/// A block may be this many times larger than it has to be, before segments are withdrawn for one that fits.
const ROOMY: usize = 4;

/// A search for segments to be withdrawn that was in vain is made again once blocks were missing for every so many that
/// it has looked at.
const SEARCHED: usize = 256;

/// All blocks of a process.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Somebody has made a segment, or could not.
    grown: Condvar,
    /// The ceiling that somebody has set, which no array goes beyond.
    given: Option<usize>,
    /// The ceiling where nobody has.
    usual: OnceLock<usize>,
    /// Descriptor while a single block beyond the ceiling is made, so that what is free is known: two threads do not count on the same.
    singles: Mutex<()>,
    /// Why there was no block for somebody.
    short: Mutex<Option<Shortage>>,
}

/// Why there is no more shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// A process takes no more than so many bytes.
    Ceiling(u64),
    /// A process has no more than so many arrays under way at a time, and held by others.
    Blocks(usize),
    /// What the system allows: its limit, for people.
    System(String),
}

#[derive(Debug, Default)]
struct State {
    sizes: BTreeMap<usize, Size>,
    segments: Vec<Arc<Segment>>,
    /// All places from here on were never used.
    places: usize,
    /// Places that withdrawn segments had, and how often they were given.
    spare: BTreeMap<usize, Vec<Given>>,
    /// How many segments were ever made.
    serial: u32,
    bytes: usize,
    /// Segments of a single block beyond the ceiling, which are not among those bytes.
    singles: Vec<Arc<Segment>>,
    /// How many searches for a free block there were.
    searches: u64,
    /// How often a block may be missing before segments to be withdrawn are looked for again.
    rest: usize,
}

/// The blocks of one size that no message of ours has.
#[derive(Debug, Default)]
struct Size {
    free: Vec<Block>,
    /// Those that peers may still hold; the last ones given are at the end.
    out: VecDeque<Block>,
    bytes: usize,
    /// Whether somebody is making a segment.
    growing: bool,
}

/// A segment that is to be made.
#[derive(Debug)]
struct Plan {
    serial: u32,
    /// Place of its first block, and what each of its places was given before.
    first: usize,
    given: Vec<Vec<Given>>,
    size: usize,
    single: bool,
}

/// Memory of several blocks.
#[derive(Debug)]
pub(crate) struct Segment {
    region: Arc<Region>,
    file: Descriptor,
    /// Tells it from those that had these places before.
    pub(crate) serial: u32,
    /// Place of its first block.
    pub(crate) first: usize,
    /// Bytes of a block.
    pub(crate) size: usize,
    pub(crate) count: usize,
    /// Whether it has one block that is larger than all others may be together.
    single: bool,
    /// By these links it was handed over.
    holders: Mutex<Vec<Weak<Link>>>,
}

/// Room for one payload.
#[derive(Debug)]
struct Block {
    /// Which count of returns is its own.
    place: usize,
    segment: Arc<Segment>,
    given: Vec<Given>,
}

/// How often a block was given to one peer, ever.
#[derive(Debug)]
struct Given {
    returns: Arc<Returns>,
    times: u32,
}

/// A block that has a message of ours, and its bytes. It goes back to the pool with this.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Whose place and segment stand here once more, to be asked for without the lock.
    block: Mutex<Option<Block>>,
    place: usize,
    segment: Arc<Segment>,
    piece: Piece,
    pool: Weak<Pool>,
}

impl Pool {
    /// A pool that takes at most so many bytes from the system.
    pub(crate) fn new(ceiling: usize) -> Arc<Self> {
        Arc::new(Pool {
            given: Some(ceiling),
            ..Pool::default()
        })
    }

    /// What it takes at most: unless that was said, a quarter of the memory that this process may use, and beside that single arrays
    /// that are larger, where so much is free.
    fn ceiling(&self) -> usize {
        let usual = || usize::try_from(host::memory() / 4).unwrap_or(usize::MAX);
        self.given.unwrap_or_else(|| *self.usual.get_or_init(usual))
    }

    /// Whether it is to take nothing.
    pub(crate) fn is_switched_off(&self) -> bool {
        self.ceiling() == 0
    }

    /// Why there was no block for somebody last, if that was since this was last asked.
    pub(crate) fn ran_out(&self) -> Option<Shortage> {
        self.short.lock().expect(POISONED).take()
    }

    /// A block for so many bytes; `None` if there is none, and the ceiling or the system allows no more.
    pub(crate) fn take(self: &Arc<Self>, length: usize) -> Option<Placed> {
        let block = match self.find(rounded(length)?) {
            Ok(block) => block,
            Err(why) => {
                // Who is not to share anything has nothing to run out of.
                *self.short.lock().expect(POISONED) = (!self.is_switched_off()).then_some(why);
                return None;
            }
        };
        let start = (block.place - block.segment.first) * block.segment.size;
        let piece = Piece::new(&block.segment.region, start..start + length);
        let (place, segment) = (block.place, block.segment.clone());
        Some(Placed {
            block: Mutex::new(Some(block)),
            place,
            segment,
            piece,
            pool: Arc::downgrade(self),
        })
    }

    /// A block of this size, or a larger one where there can be none.
    fn find(&self, size: usize) -> Result<Block, Shortage> {
        let ceiling = self.ceiling();
        // The system's files are read before others have to wait.
        let alone =
            (size > ceiling && self.given.is_none()).then(|| self.singles.lock().expect(POISONED));
        let free = alone.as_ref().map(|_| host::free_memory());
        // Declared before the lock is taken: what is declared first is dropped last, when the lock is open again.
        let mut withdrawn = Withdrawn::default();
        let mut state = self.lock();
        withdrawn.0 = state.withdraw_singles(size);
        loop {
            state.searches += 1;
            let State {
                sizes, searches, ..
            } = &mut *state;
            let sizes = sizes.entry(size).or_default();
            if let Some(block) = sizes.take(size, *searches) {
                return Ok(block);
            }
            if !sizes.growing {
                break;
            }
            state = self.grown.wait(state).expect(POISONED);
        }
        let plan = match state.plan(size, ceiling) {
            Ok(plan) => plan,
            Err(_) => {
                if let Some(block) = state
                    .take_larger(size, ROOMY)
                    .or_else(|| state.take_returned(size))
                {
                    return Ok(block);
                }
                withdrawn.0.extend(state.withdraw(size, ceiling));
                match state.plan(size, ceiling) {
                    Ok(plan) => plan,
                    Err(why) => match free {
                        Some(free) => state.plan_single(size, free).ok_or(why)?,
                        None => return state.take_larger(size, usize::MAX).ok_or(why),
                    },
                }
            }
        };
        // The system takes its time for the pages; whoever needs blocks of another size is not to wait for them.
        drop(state);
        withdrawn.tell();
        let made = Segment::make(&plan);
        let mut state = self.lock();
        let block = state.settle(plan, made);
        self.grown.notify_all();
        block.or_else(|why| state.take_larger(size, usize::MAX).ok_or(why))
    }

    fn give_back(&self, block: Block) {
        // In a forked child whoever held the lock may not exist any more, and the block is the parent's.
        if titin_os::descriptors::forked() {
            return;
        }
        let mut state = self.lock();
        let size = state.sizes.entry(block.segment.size).or_default();
        if block.given.is_empty() {
            size.free.push(block)
        } else {
            size.out.push_back(block)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(POISONED)
    }
}

impl State {
    /// A block of more bytes than are needed, up to so many times.
    fn take_larger(&mut self, size: usize, times: usize) -> Option<Block> {
        let larger = size + 1..=size.saturating_mul(times);
        self.sizes
            .range_mut(larger)
            .find_map(|(size, blocks)| blocks.take(*size, self.searches))
    }

    /// A block of this size that has come back, wherever it stands among those that peers hold.
    fn take_returned(&mut self, size: usize) -> Option<Block> {
        let out = &mut self.sizes.get_mut(&size).filter(|_| self.rest == 0)?.out;
        let place = out.iter().position(|block| block.is_free(self.searches))?;
        out.remove(place)
    }

    /// Sets room aside for another segment of blocks of this size, if there is that much.
    fn plan(&mut self, size: usize, ceiling: usize) -> Result<Plan, Shortage> {
        let room = ceiling.saturating_sub(self.bytes);
        let bytes = self.sizes.get(&size).map_or(0, |sizes| sizes.bytes);
        // As many bytes as there are of this size: the number of segments stays small, whatever a program keeps.
        let wanted = bytes.clamp(size.saturating_mul(FIRST_BLOCKS).min(FIRST_BYTES), LARGEST);
        let places = self.free_places((wanted.min(room) / size).max(1));
        if size.saturating_mul(places.len().max(1)) > room {
            return Err(Shortage::Ceiling(ceiling as u64));
        }
        if places.is_empty() {
            return Err(Shortage::Blocks(BLOCKS));
        }
        Ok(self.reserve(places, size, false))
    }

    /// Sets room aside for a single block beyond the ceiling, if so much memory is free. It does not count against that, or small
    /// payloads would have no memory as long as a peer holds this one.
    fn plan_single(&mut self, size: usize, free: u64) -> Option<Plan> {
        let places = self.free_places(1);
        // Some is left to others: whoever finds none is ended by the system.
        let there_is_room = size as u64 <= free / 4 * 3 && !places.is_empty();
        there_is_room.then(|| self.reserve(places, size, true))
    }

    fn reserve(&mut self, places: Range<usize>, size: usize, single: bool) -> Plan {
        self.places = self.places.max(places.end);
        self.serial = self.serial.wrapping_add(1);
        let first = places.start;
        let given = places
            .map(|place| self.spare.remove(&place).unwrap_or_default())
            .collect();
        let plan = Plan {
            serial: self.serial,
            first,
            given,
            size,
            single,
        };
        self.bytes += plan.counted();
        let sizes = self.sizes.entry(size).or_default();
        sizes.bytes += plan.counted();
        sizes.growing = true;
        plan
    }

    /// Up to so many places in a row that no segment has.
    fn free_places(&self, count: usize) -> Range<usize> {
        if self.places < BLOCKS {
            return self.places..self.places + count.min(BLOCKS - self.places);
        }
        let (mut longest, mut run) = (0..0, 0..0);
        for place in self.spare.keys().copied() {
            run = if run.end == place {
                run.start..place + 1
            } else {
                place..place + 1
            };
            if run.len() > longest.len() {
                longest = run.clone();
            }
            if longest.len() == count {
                break;
            }
        }
        longest
    }

    /// Adds a segment that was planned, and takes its first block. If it could not be made its room is free again.
    fn settle(&mut self, plan: Plan, made: io::Result<Segment>) -> Result<Block, Shortage> {
        let sizes = self.sizes.get_mut(&plan.size).expect("planned for");
        sizes.growing = false;
        let (bytes, counted) = (plan.bytes(), plan.counted());
        let places = (plan.first..plan.first + plan.given.len()).zip(plan.given);
        let segment = match made {
            Ok(segment) => Arc::new(segment),
            Err(why) => {
                sizes.bytes -= counted;
                self.bytes -= counted;
                self.spare.extend(places);
                return Err(Shortage::System(memory::shortage(&why, bytes)));
            }
        };
        sizes.free.extend(
            places
                .map(|(place, given)| Block {
                    place,
                    segment: segment.clone(),
                    given,
                })
                .rev(),
        );
        self.singles.extend(segment.single.then(|| segment.clone()));
        self.segments.push(segment);
        Ok(sizes.free.pop().expect("a segment has a block"))
    }

    /// Takes segments out all of whose blocks are free, the smallest first, until there is room for a block of this size;
    /// none if there are not enough.
    fn withdraw(&mut self, size: usize, ceiling: usize) -> Vec<Arc<Segment>> {
        if self.rest > 0 {
            self.rest -= 1;
            return Vec::new();
        }
        let looked = self
            .sizes
            .values()
            .map(|sizes| sizes.free.len() + sizes.out.len())
            .sum::<usize>();
        let mut whole = self.whole();
        whole.sort_by_key(|segment| segment.bytes());
        let mut room = ceiling.saturating_sub(self.bytes);
        let mut places = BLOCKS - self.places + self.spare.len();
        let mut chosen = HashMap::new();
        for segment in whole {
            if room >= size && places > 0 {
                break;
            }
            room += segment.bytes();
            places += segment.count;
            chosen.insert(segment.serial, segment);
        }
        if room < size || places == 0 {
            self.rest = looked / SEARCHED;
            return Vec::new();
        }
        self.take_out(chosen)
    }

    /// Takes those segments out that have a single block beyond the ceiling, and that free; but for one of this size, which is asked
    /// for. So much memory is not kept for later. Blocks of such sizes are few, and no others are looked at: each search comes here.
    fn withdraw_singles(&mut self, size: usize) -> Vec<Arc<Segment>> {
        let State {
            singles,
            sizes,
            searches,
            ..
        } = self;
        let is_free = |single: &Segment| sizes[&single.size].has_free(single.serial, *searches);
        let gone = singles.extract_if(.., |single| single.size != size && is_free(single));
        let gone: HashMap<u32, Arc<Segment>> = gone.map(|single| (single.serial, single)).collect();
        if gone.is_empty() {
            Vec::new()
        } else {
            self.take_out(gone)
        }
    }

    /// The segments all of whose blocks are free, but for those of a single block beyond the ceiling.
    fn whole(&self) -> Vec<Arc<Segment>> {
        let mut free = HashMap::new();
        for sizes in self.sizes.values() {
            for block in sizes.free.iter().chain(
                sizes
                    .out
                    .iter()
                    .filter(|block| block.is_free(self.searches)),
            ) {
                *free.entry(block.segment.serial).or_insert(0) += 1;
            }
        }
        let whole = |segment: &&Arc<Segment>| {
            !segment.single && free.get(&segment.serial) == Some(&segment.count)
        };
        self.segments.iter().filter(whole).cloned().collect()
    }

    fn take_out(&mut self, chosen: HashMap<u32, Arc<Segment>>) -> Vec<Arc<Segment>> {
        for segment in chosen.values() {
            self.bytes -= segment.counted();
            self.sizes
                .get_mut(&segment.size)
                .expect("it has blocks there")
                .bytes -= segment.counted();
        }
        for sizes in self.sizes.values_mut() {
            let gone = sizes.take_all(|block| chosen.contains_key(&block.segment.serial));
            self.spare
                .extend(gone.map(|block| (block.place, block.given)));
        }
        self.segments
            .retain(|segment| !chosen.contains_key(&segment.serial));
        chosen.into_values().collect()
    }
}

impl Size {
    /// A block that nobody has: one used lately, whose memory is warm, or of those that were out for longest.
    fn take(&mut self, size: usize, search: u64) -> Option<Block> {
        // What one peer reads of several under way comes back in their order.
        let looks = if size < WARM { 1 } else { LOOKS };
        let late = self.out.len().saturating_sub(looks)..self.out.len();
        if let Some(place) = late.rev().find(|place| self.out[*place].is_free(search)) {
            return self.out.remove(place);
        }
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        for _ in 0..self.out.len().min(LOOKS) {
            let block = self.out.pop_front()?;
            if block.is_free(search) {
                return Some(block);
            }
            self.out.push_back(block);
        }
        None
    }

    /// Whether it has a block of that segment that is free.
    fn has_free(&self, serial: u32, search: u64) -> bool {
        let mut blocks = self.free.iter().chain(&self.out);
        blocks.any(|block| block.segment.serial == serial && block.is_free(search))
    }

    /// Takes out all blocks that are such.
    fn take_all(&mut self, such: impl Fn(&Block) -> bool) -> impl Iterator<Item = Block> {
        let free: Vec<Block> = self.free.extract_if(.., |block| such(block)).collect();
        let (out, kept): (Vec<Block>, Vec<Block>) =
            std::mem::take(&mut self.out).into_iter().partition(such);
        self.out = kept.into();
        free.into_iter().chain(out)
    }
}

impl Block {
    fn is_free(&self, search: u64) -> bool {
        self.given
            .iter()
            .all(|given| given.returns.has(self.place, given.times, search))
    }
}

/// Segments that were taken out. Those who have them are told, which is not to be done while the pool is locked.
#[derive(Debug, Default)]
struct Withdrawn(Vec<Arc<Segment>>);

impl Withdrawn {
    fn tell(&mut self) {
        self.0
            .drain(..)
            .for_each(|segment| segment.tell_withdrawn());
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.tell();
    }
}

impl Plan {
    fn bytes(&self) -> usize {
        self.size * self.given.len()
    }

    /// What of that counts against the ceiling.
    fn counted(&self) -> usize {
        if self.single { 0 } else { self.bytes() }
    }
}

impl Placed {
    /// Counts the block as given to a peer once more.
    pub(crate) fn give(&self, returns: &Arc<Returns>) {
        let mut block = self.block.lock().expect("never poisoned");
        let given = &mut block.as_mut().expect("there until dropped").given;
        given.retain(|given| !given.returns.is_dead());
        match given
            .iter_mut()
            .find(|given| Arc::ptr_eq(&given.returns, returns))
        {
            Some(given) => given.times = given.times.wrapping_add(1),
            None => given.push(Given {
                returns: returns.clone(),
                times: 1,
            }),
        }
    }

    /// Tells its block from all others that there ever are.
    pub(crate) fn number(&self) -> u64 {
        number(self.segment.serial, self.place)
    }

    /// Which count of returns is its block's.
    pub(crate) fn place(&self) -> usize {
        self.place
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
    fn make(plan: &Plan) -> io::Result<Self> {
        let (region, file) = Region::create("titin-segment", plan.bytes(), Writers::Maker)?;
        let Plan {
            serial,
            first,
            size,
            single,
            ..
        } = *plan;
        let (region, file, count) = (Arc::new(region), file.into(), plan.given.len());
        Ok(Segment {
            region,
            file,
            serial,
            first,
            size,
            count,
            single,
            holders: Mutex::default(),
        })
    }

    fn bytes(&self) -> usize {
        self.size * self.count
    }

    /// What of that counts against the ceiling.
    fn counted(&self) -> usize {
        if self.single { 0 } else { self.bytes() }
    }

    /// Number of its first block.
    pub(crate) fn number(&self) -> u64 {
        number(self.serial, self.first)
    }

    /// Notes that it is handed over by this link.
    pub(crate) fn note_holder(&self, link: &Weak<Link>) {
        self.holders.lock().expect(POISONED).push(link.clone());
    }

    /// Tells those who have it that it is no more.
    fn tell_withdrawn(&self) {
        let holders = std::mem::take(&mut *self.holders.lock().expect(POISONED));
        for link in holders.iter().filter_map(Weak::upgrade) {
            link.tell_frame(
                &Frame::Withdrawn {
                    first: self.number(),
                },
                None,
            );
        }
    }

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
        let block = self.block.get_mut().expect("never poisoned").take();
        if let (Some(block), Some(pool)) = (block, self.pool.upgrade()) {
            pool.give_back(block);
        }
    }
}

/// The number of a block: its place, and above that which segment it is of.
fn number(serial: u32, place: usize) -> u64 {
    u64::from(serial) << 32 | place as u64
}

/// The segment's serial number, and the place, of a block of this number.
pub(crate) fn split(number: u64) -> (u32, usize) {
    ((number >> 32) as u32, number as u32 as usize)
}

/// The size of a block for so many bytes: one of four between a power of two and the next, so that payloads that grow
/// slowly find their blocks again.
fn rounded(length: usize) -> Option<usize> {
    let step = (length / 8).next_power_of_two().max(PAGE);
    length.max(1).checked_next_multiple_of(step)
}

const POISONED: &str = "nothing panics while the pool is locked";

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn peer() -> Arc<Returns> {
        Returns::here(BLOCKS, None)
    }

    #[test]
    fn a_block_comes_back_when_all_have_returned_it() {
        let (pool, peers) = (Pool::new(1 << 30), [peer(), peer()]);
        let block = pool.take(100_000).unwrap();
        let number = block.number();
        block.give(&peers[0]);
        block.give(&peers[1]);
        block.give(&peers[1]);
        drop(block);
        let next = || pool.take(100_000).unwrap().number();
        assert_ne!(next(), number);
        peers[0].add(split(number).1);
        peers[1].add(split(number).1);
        assert_ne!(next(), number);
        peers[1].add(split(number).1);
        assert_eq!(next(), number);
        // And again: counts go on.
        let block = pool.take(100_000).unwrap();
        block.give(&peers[0]);
        drop(block);
        assert_ne!(next(), number);
    }

    /// A process that lives until its input is closed, and what it returns.
    fn process() -> (std::process::Child, Arc<Returns>) {
        let child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let process =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        (child, Returns::here(BLOCKS, Some(process.into())))
    }

    #[test]
    fn a_search_asks_once_whether_a_peer_has_ended() {
        let (mut child, peer) = process();
        peer.leave();
        assert!(!peer.has(0, 1, 1));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!peer.has(1, 1, 1), "asked again");
        assert!(peer.has(1, 1, 2));
    }

    #[test]
    fn whoever_has_ended_holds_nothing() {
        let ((mut child, peer), pool) = (process(), Pool::new(1 << 30));
        let block = pool.take(1 << 20).unwrap();
        let number = block.number();
        block.give(&peer);
        drop(block);
        peer.leave();
        assert_ne!(
            pool.take(1 << 20).unwrap().number(),
            number,
            "it may still view what it was given"
        );
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(pool.take(1 << 20).unwrap().number(), number);
    }

    #[test]
    fn blocks_have_memory_of_their_own() {
        let pool = Pool::new(1 << 30);
        let mut blocks: Vec<_> = (0..200).map(|_| pool.take(5000).unwrap()).collect();
        blocks
            .iter_mut()
            .zip(0..)
            .for_each(|(block, number)| block.fill(number));
        assert!(
            blocks
                .iter()
                .zip(0..)
                .all(|(block, number)| block.iter().all(|byte| *byte == number))
        );
        assert!(
            blocks
                .iter()
                .all(|block| block.as_ptr().align_offset(titin_wire::ALIGNMENT) == 0)
        );
        assert!(
            pool.lock().segments.len() < 6,
            "segments grow with what is used"
        );
    }

    #[test]
    fn the_ceiling_holds() {
        let pool = Pool::new(10 << 20);
        let blocks: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert_eq!(blocks.len(), 10);
        drop(blocks);
        assert!(pool.take(1 << 20).is_some());
        assert!(pool.take(11 << 20).is_none() && pool.take(usize::MAX).is_none());
        assert_eq!(
            [pool.ran_out(), pool.ran_out()],
            [Some(Shortage::Ceiling(10 << 20)), None]
        );
    }

    #[test]
    fn what_is_smaller_finds_room_in_larger_blocks() {
        let pool = Pool::new(10 << 20);
        let large: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert!(pool.take(300_000).is_none());
        drop(large);
        let mut small: Vec<_> = std::iter::from_fn(|| pool.take(300_000)).collect();
        assert_eq!(small.len(), 10);
        small
            .iter_mut()
            .zip(0..)
            .for_each(|(block, number)| block.fill(number));
        assert!(
            small
                .iter()
                .zip(0..)
                .all(|(block, number)| block[..] == [number; 300_000])
        );
        drop(small);
        assert!(pool.take(1 << 20).is_some(), "they are what they were");
    }

    #[test]
    fn sizes_find_room_where_others_were() {
        let pool = Pool::new(10 << 20);
        let mut small: Vec<_> = std::iter::from_fn(|| pool.take(5000)).collect();
        assert_eq!(small.len(), (10 << 20) / 8192);
        let held = small.remove(500);
        drop(small);
        let large: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert!(
            (1..10).contains(&large.len()),
            "{} beside one that is held",
            large.len()
        );
        drop((held, large));
        let whole = (0..BLOCKS / SEARCHED).find_map(|_| pool.take(8 << 20));
        assert!(whole.is_some(), "all was free");
        assert_eq!(pool.lock().bytes, 8 << 20);
        assert!(pool.take(4 << 20).is_none());
        drop(whole);
        let mut small: Vec<_> = std::iter::from_fn(|| pool.take(5000)).collect();
        assert_eq!(small.len(), (10 << 20) / 8192);
        small
            .iter_mut()
            .zip((0..=255).cycle())
            .for_each(|(block, number)| block.fill(number));
        assert!(
            small
                .iter()
                .zip((0..=255).cycle())
                .all(|(block, number)| block[..] == [number; 5000])
        );
    }

    #[test]
    fn places_serve_again_and_their_counts_go_on() {
        let (pool, peer) = (Pool::new(1 << 30), peer());
        let small: Vec<_> = std::iter::from_fn(|| pool.take(4096)).collect();
        assert_eq!(small.len(), BLOCKS);
        small.iter().for_each(|block| block.give(&peer));
        drop(small);
        assert!(pool.take(20_000).is_none(), "the peer has them all");
        assert_eq!(pool.ran_out(), Some(Shortage::Blocks(BLOCKS)));
        (0..BLOCKS).for_each(|place| peer.add(place));
        let missing = (0..BLOCKS)
            .take_while(|_| pool.take(20_000).is_none())
            .count();
        assert_eq!(
            missing,
            BLOCKS / SEARCHED,
            "it is not looked for every time"
        );
        let block = pool.take(20_000).unwrap();
        let number = block.number();
        block.give(&peer);
        drop(block);
        let numbers = |count| {
            let blocks: Vec<_> = (0..count).map(|_| pool.take(20_000).unwrap()).collect();
            blocks.iter().map(Placed::number).collect::<Vec<_>>()
        };
        assert!(!numbers(200).contains(&number), "it was not returned");
        peer.add(split(number).1);
        assert!(numbers(300).contains(&number));
    }

    #[test]
    fn while_a_segment_is_made_only_those_wait_who_need_it() {
        let pool = Pool::new(10 << 20);
        let plan = pool.lock().plan(1 << 20, 10 << 20).unwrap();
        assert!(pool.take(5000).is_some(), "one of another size");
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.take(1 << 20).map(|block| block.number())
        });
        let made = Segment::make(&plan);
        let first = pool.lock().settle(plan, made).unwrap();
        pool.give_back(first);
        pool.grown.notify_all();
        assert_eq!(
            waiting.join().unwrap(),
            Some(number(1, 0)),
            "it made another one"
        );
        // One that cannot be made leaves room for another.
        let plan = pool.lock().plan(2 << 20, 10 << 20).unwrap();
        assert!(
            pool.lock()
                .settle(plan, Err(io::ErrorKind::OutOfMemory.into()))
                .is_err()
        );
        let large: Vec<_> = std::iter::from_fn(|| pool.take(2 << 20)).collect();
        assert_eq!(large.len(), 5);
    }

    #[test]
    fn sizes_waste_little() {
        for length in [1, 4096, 5000, 70_000, 1 << 20, (64 << 20) + 1] {
            let size = rounded(length).unwrap();
            assert!(
                size >= length && size < length + (length / 4).max(PAGE),
                "{length}: {size}"
            );
        }
        assert_eq!(rounded(64 << 20), Some(64 << 20));
        let octave: std::collections::BTreeSet<_> =
            (16 << 20..32 << 20).step_by(1 << 16).map(rounded).collect();
        assert_eq!(
            octave.len(),
            5,
            "four between a power of two and the next, and that"
        );
    }

    #[test]
    fn one_that_has_come_back_is_found_among_those_that_have_not() {
        let (pool, peer) = (Pool::new(11 << 20), peer());
        let blocks: Vec<Placed> = (0..11).map(|_| pool.take(1 << 20).unwrap()).collect();
        blocks.iter().for_each(|block| block.give(&peer));
        let tenth = blocks[9].number();
        blocks.into_iter().for_each(drop);
        peer.add(split(tenth).1);
        assert_eq!(pool.take(1 << 20).unwrap().number(), tenth);
        assert!(
            pool.take(1 << 20).is_some(),
            "it has come back, since nobody was given it"
        );
        assert_eq!(pool.ran_out(), None);
    }

    #[test]
    fn an_array_beyond_the_ceiling_has_memory_of_its_own_unless_somebody_has_set_that() {
        let pool = Arc::new(Pool {
            usual: (1 << 20).into(),
            ..Pool::default()
        });
        let singles = |pool: &Pool| {
            let state = pool.lock();
            (
                state.singles.len(),
                state
                    .segments
                    .iter()
                    .filter(|segment| segment.single)
                    .count(),
                state.bytes,
            )
        };
        let mut huge = pool.take(8 << 20).expect("so much is free");
        huge.fill(7);
        let number = huge.number();
        assert_eq!(singles(&pool), (1, 1, 0));
        let small: Vec<Placed> = std::iter::from_fn(|| pool.take(200_000)).collect();
        assert_eq!(small.len(), 4, "it takes nothing from the others");
        let again = pool.take(8 << 20).expect("so much is free");
        drop(huge);
        assert_eq!(pool.take(8 << 20).unwrap().number(), number);
        drop(small);
        assert!(pool.take(5000).is_some());
        assert_eq!(singles(&pool).0, 1, "the one that is in use");
        drop(again);
        assert!(pool.take(5000).is_some());
        assert_eq!((singles(&pool).0, singles(&pool).1), (0, 0));
        assert!(
            pool.lock().plan_single(8 << 20, 10 << 20).is_none(),
            "some is left to others"
        );

        let pool = Pool::new(1 << 20);
        assert!(pool.take(8 << 20).is_none());
        assert_eq!(pool.ran_out(), Some(Shortage::Ceiling(1 << 20)));
    }
}
