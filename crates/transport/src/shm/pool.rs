//! The blocks of a process: memory for payloads that peers on the host can map.
//!
//! A **segment** is a region of blocks of one size. The owning process writes a segment, and peers
//! only read. A **block** belongs to one message at a time. A message may go to any number of
//! peers, and to one peer several times (a multicast to several instances there); each time counts.
//! A peer counts the returned blocks in words of its own ([`Returns`]); for a block that the peer
//! never saw, the owning process counts the return. A block is free once every living peer has
//! returned the block as often as the block was given. So no process waits for another, and a
//! process that dies gives back all its blocks.
//!
//! When there is no room for another block, the pool **withdraws** segments of other sizes, if all
//! blocks of a segment are free. The memory of a withdrawn segment goes back to the system once the
//! peers have unmapped the segment, and the indices of the blocks serve others. A block's number
//! names the segment. So a peer that hears of a block before the new segment has come does not look
//! for the block in the old segment.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

use titin_os::host;

use super::returns::Returns;
use super::segment::{Segment, block_number};
use crate::buffer::{BlockOwner, Buffer, Filling, OwnBlock};
use crate::conduit_table::{PayloadMemory, Shortage};
use crate::shared_memory::{self, SharedBytes};

/// The most blocks of a process at a time. Each peer has as many counts of returns.
pub(crate) const BLOCKS: usize = 1 << 14;

/// Payloads are rounded up to the smallest pages that systems have. Where pages are larger, as on some
/// aarch64, several blocks share a page.
const PAGE: usize = 4096;

/// The first segment of a size has `FIRST_BLOCKS` blocks, or `FIRST_BYTES` bytes if fewer.
const FIRST_BLOCKS: usize = 64;
const FIRST_BYTES: usize = 1 << 20;

/// The largest segment of more than one block, in bytes.
const LARGEST: usize = 64 << 20;

/// How many blocks, perhaps still held by peers, are checked before another block is made: the
/// blocks given longest ago. For large blocks, as many of the blocks given last are checked, too.
const CHECKS: usize = 8;

/// From this size of a block on, several checks for a block whose memory is in the caches pay.
const CACHE_MATTERS_FROM: usize = 64 << 10;

/// A block of up to this many times the needed size serves before segments are withdrawn for a block
/// of the right size.
const LARGEST_MISFIT: usize = 4;

/// A search for segments to withdraw checks all blocks. After a failed search, one request for each
/// 256 checked blocks goes without a search, so that searches stay cheap on average.
const BLOCKS_PER_SKIPPED_SEARCH: usize = 256;

/// All blocks of a process.
#[derive(Debug)]
pub(crate) struct Pool {
    this: Weak<Pool>,
    state: Mutex<PoolState>,
    /// A thread has made a segment, or failed to.
    grown: Condvar,
    /// The ceiling set by the user, which no array exceeds.
    set_ceiling: Option<usize>,
    /// The ceiling if the user has set none. A single large array may exceed it.
    default_ceiling: OnceLock<usize>,
    /// Held while an extra segment is made: two threads must not count on the same free memory.
    extra: Mutex<()>,
    /// Why a request for a block failed last.
    shortage: Mutex<Option<Shortage>>,
}

#[derive(Debug, Default)]
struct PoolState {
    sizes: BTreeMap<usize, SizeClass>,
    segments: Vec<Arc<Segment>>,
    /// No block ever had `unused_index` or a larger index.
    unused_index: usize,
    /// The indices of withdrawn blocks, and how often each was given.
    spare: BTreeMap<usize, Vec<GivenCount>>,
    /// How many segments were ever made.
    serial: u32,
    /// The bytes of all segments, without the extra segments.
    bytes: usize,
    /// Segments of a single block beyond the ceiling.
    extras: Vec<Arc<Segment>>,
    /// How many searches for a free block there were.
    searches: u64,
    /// How many requests go without a search for segments to withdraw.
    searches_to_skip: usize,
}

/// The blocks of one size that hold no message of the process.
#[derive(Debug, Default)]
struct SizeClass {
    /// Boxed: a message takes the box, without a new allocation.
    #[allow(clippy::vec_box)]
    free: Vec<Box<Block>>,
    /// Blocks perhaps still held by peers, the last given at the end.
    out: VecDeque<Box<Block>>,
    bytes: usize,
    /// Whether a thread is making a segment.
    growing: bool,
}

/// Where a request gets its block.
#[derive(Debug)]
enum BlockSource {
    Free(Box<Block>),
    /// The first block of a segment that is to be made.
    Planned(SegmentPlan),
}

/// A planned segment.
#[derive(Debug)]
struct SegmentPlan {
    serial: u32,
    /// Index of the first block.
    first: usize,
    /// For each block of the segment, how often earlier blocks of the index were given.
    given: Vec<Vec<GivenCount>>,
    size: usize,
    is_extra: bool,
}

/// Room for one payload.
#[derive(Debug)]
pub(super) struct Block {
    /// Index of the block's counts of returns.
    index: usize,
    segment: Arc<Segment>,
    /// Locked only while a message uses the block.
    given: Mutex<Vec<GivenCount>>,
    pool: Weak<Pool>,
}

/// How often blocks of one index were given to one peer, ever.
#[derive(Debug)]
struct GivenCount {
    returns: Arc<Returns>,
    times: u32,
}

impl Pool {
    /// A pool of at most `ceiling` bytes. By default: a quarter of the memory that the process may
    /// use, and single larger arrays beside, where there is so much free memory.
    pub(crate) fn new(ceiling: Option<usize>) -> Arc<Self> {
        Arc::new_cyclic(|this| Pool {
            this: this.clone(),
            state: Mutex::default(),
            grown: Condvar::new(),
            set_ceiling: ceiling,
            default_ceiling: OnceLock::new(),
            extra: Mutex::default(),
            shortage: Mutex::default(),
        })
    }

    fn ceiling(&self) -> usize {
        let default = || usize::try_from(host::memory() / 4).unwrap_or(usize::MAX);
        self.set_ceiling
            .unwrap_or_else(|| *self.default_ceiling.get_or_init(default))
    }

    /// A block for `length` bytes; `None` if there is none and the ceiling or the system allows no
    /// more.
    pub(crate) fn take(&self, length: usize) -> Option<OwnBlock> {
        let block = match self.find(rounded(length)?) {
            Ok(block) => block,
            Err(why) => {
                // If the user has switched sharing off, no shortage is reported.
                *self.shortage.lock().expect(POISONED) = (!self.is_switched_off()).then_some(why);
                return None;
            }
        };
        let start = (block.index - block.segment.first) * block.segment.size;
        let bytes = SharedBytes::new(&block.segment.region, start..start + length);
        Some(OwnBlock::new(bytes, block))
    }

    /// A block of `size` bytes, or a larger block if there can be none of `size`.
    fn find(&self, size: usize) -> Result<Box<Block>, Shortage> {
        let ceiling = self.ceiling();
        // The system's files are read before the pool is locked.
        let extra = (size > ceiling && self.set_ceiling.is_none())
            .then(|| self.extra.lock().expect(POISONED));
        let free_memory = extra.as_ref().map(|_| host::free_memory());
        // Declared before the lock, and so dropped after the lock is released.
        let mut withdrawn = WithdrawnSegments::default();
        let mut state = self.lock();
        withdrawn.0 = state.withdraw_extras(size);
        let (block, mut state) = self.take_or_wait(size, state);
        if let Some(block) = block {
            return Ok(block);
        }
        let plan = match state.plan_or_withdraw(size, ceiling, free_memory, &mut withdrawn)? {
            BlockSource::Free(block) => return Ok(block),
            BlockSource::Planned(plan) => plan,
        };
        // The system takes some time for the pages. A thread that needs a block of another size
        // does not wait meanwhile.
        drop(state);
        withdrawn.tell();
        let made = plan.make();
        let mut state = self.lock();
        let block = state.add(plan, made, &self.this);
        self.grown.notify_all();
        block.or_else(|why| state.take_larger(size, usize::MAX).ok_or(why))
    }

    /// A free block of `size` bytes, as soon as no other thread makes blocks of that size.
    fn take_or_wait<'a>(
        &self,
        size: usize,
        state: MutexGuard<'a, PoolState>,
    ) -> (Option<Box<Block>>, MutexGuard<'a, PoolState>) {
        let mut block = None;
        let must_wait = |state: &mut PoolState| {
            state.searches += 1;
            let class = state.sizes.entry(size).or_default();
            block = class.take(size, state.searches);
            block.is_none() && class.growing
        };
        let state = self.grown.wait_while(state, must_wait).expect(POISONED);
        (block, state)
    }

    fn give_back(&self, mut block: Box<Block>) {
        // In a forked child the block is the parent's, and a thread of the parent may hold the lock
        // for ever.
        if titin_os::descriptors::forked() {
            return;
        }
        let was_given = !block.given_counts().is_empty();
        let mut state = self.lock();
        let class = state.sizes.entry(block.segment.size).or_default();
        if was_given {
            class.out.push_back(block)
        } else {
            class.free.push(block)
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().expect(POISONED)
    }
}

impl PayloadMemory for Pool {
    fn loan(&self, length: usize) -> Option<Filling> {
        self.take(length).map(Filling::in_block)
    }

    fn shortage(&self) -> Option<Shortage> {
        self.shortage.lock().expect(POISONED).take()
    }

    fn is_switched_off(&self) -> bool {
        self.ceiling() == 0
    }
}

impl PoolState {
    /// A block of more than `size` bytes, up to `times` as many.
    fn take_larger(&mut self, size: usize, times: usize) -> Option<Box<Block>> {
        let larger = size + 1..=size.saturating_mul(times);
        self.sizes
            .range_mut(larger)
            .find_map(|(size, class)| class.take(*size, self.searches))
    }

    /// A block of `size` bytes that the peers have returned, anywhere among the given blocks.
    fn take_returned(&mut self, size: usize) -> Option<Box<Block>> {
        let out = &mut self
            .sizes
            .get_mut(&size)
            .filter(|_| self.searches_to_skip == 0)?
            .out;
        let index = out
            .iter_mut()
            .position(|block| block.is_free(self.searches))?;
        out.remove(index)
    }

    /// Reserves room for another segment of blocks of `size` bytes. If there is no room, takes a
    /// larger or a returned block, or withdraws segments, or goes beyond the ceiling into
    /// `free_memory`.
    fn plan_or_withdraw(
        &mut self,
        size: usize,
        ceiling: usize,
        free_memory: Option<u64>,
        withdrawn: &mut WithdrawnSegments,
    ) -> Result<BlockSource, Shortage> {
        if let Ok(plan) = self.plan(size, ceiling) {
            return Ok(BlockSource::Planned(plan));
        }
        if let Some(block) = self
            .take_larger(size, LARGEST_MISFIT)
            .or_else(|| self.take_returned(size))
        {
            return Ok(BlockSource::Free(block));
        }
        withdrawn.0.extend(self.withdraw(size, ceiling));
        let why = match self.plan(size, ceiling) {
            Ok(plan) => return Ok(BlockSource::Planned(plan)),
            Err(why) => why,
        };
        let source = match free_memory {
            Some(free) => self.plan_extra(size, free).map(BlockSource::Planned),
            None => self.take_larger(size, usize::MAX).map(BlockSource::Free),
        };
        source.ok_or(why)
    }

    /// Reserves room for another segment of blocks of `size` bytes, if there is enough.
    fn plan(&mut self, size: usize, ceiling: usize) -> Result<SegmentPlan, Shortage> {
        let room = ceiling.saturating_sub(self.bytes);
        let bytes = self.sizes.get(&size).map_or(0, |class| class.bytes);
        // Each segment doubles the bytes of its size: the number of segments stays small.
        let wanted = bytes.clamp(size.saturating_mul(FIRST_BLOCKS).min(FIRST_BYTES), LARGEST);
        let indices = self.free_indices((wanted.min(room) / size).max(1));
        if size.saturating_mul(indices.len().max(1)) > room {
            return Err(Shortage::Ceiling(ceiling as u64));
        }
        if indices.is_empty() {
            return Err(Shortage::Blocks(BLOCKS));
        }
        Ok(self.reserve(indices, size, false))
    }

    /// Reserves room for a single block beyond the ceiling, if so much memory is free. The block
    /// does not count against the ceiling: else small payloads would have no memory while a peer
    /// holds the block.
    fn plan_extra(&mut self, size: usize, free_memory: u64) -> Option<SegmentPlan> {
        let indices = self.free_indices(1);
        // A quarter is left to other processes: the system kills a process that finds no memory.
        let there_is_room = size as u64 <= free_memory / 4 * 3 && !indices.is_empty();
        there_is_room.then(|| self.reserve(indices, size, true))
    }

    fn reserve(&mut self, indices: Range<usize>, size: usize, is_extra: bool) -> SegmentPlan {
        self.unused_index = self.unused_index.max(indices.end);
        self.serial = self.serial.wrapping_add(1);
        let first = indices.start;
        let given = indices
            .map(|index| self.spare.remove(&index).unwrap_or_default())
            .collect();
        let plan = SegmentPlan {
            serial: self.serial,
            first,
            given,
            size,
            is_extra,
        };
        self.bytes += plan.counted_bytes();
        let class = self.sizes.entry(size).or_default();
        class.bytes += plan.counted_bytes();
        class.growing = true;
        plan
    }

    /// Up to `count` consecutive indices without a segment.
    fn free_indices(&self, count: usize) -> Range<usize> {
        if self.unused_index < BLOCKS {
            return self.unused_index..self.unused_index + count.min(BLOCKS - self.unused_index);
        }
        let (mut longest, mut run) = (0..0, 0..0);
        for index in self.spare.keys().copied() {
            run = if run.end == index {
                run.start..index + 1
            } else {
                index..index + 1
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

    /// Adds a planned segment, and takes the first block. If the segment could not be made, the
    /// room is free again.
    fn add(
        &mut self,
        plan: SegmentPlan,
        made: io::Result<Segment>,
        pool: &Weak<Pool>,
    ) -> Result<Box<Block>, Shortage> {
        let class = self.sizes.get_mut(&plan.size).expect("planned for");
        class.growing = false;
        let (bytes, counted) = (plan.bytes(), plan.counted_bytes());
        let indices = (plan.first..plan.first + plan.given.len()).zip(plan.given);
        let segment = match made {
            Ok(segment) => Arc::new(segment),
            Err(why) => {
                class.bytes -= counted;
                self.bytes -= counted;
                self.spare.extend(indices);
                return Err(Shortage::System(shared_memory::shortage(&why, bytes)));
            }
        };
        let blocks = indices.map(|(index, given)| {
            Box::new(Block {
                index,
                segment: segment.clone(),
                given: given.into(),
                pool: pool.clone(),
            })
        });
        class.free.extend(blocks.rev());
        let first = class.free.pop().expect("a segment has a block");
        self.extras
            .extend(segment.is_extra.then(|| segment.clone()));
        self.segments.push(segment);
        Ok(first)
    }

    /// Withdraws segments whose blocks are all free, the smallest first, until there is room for a
    /// block of `size` bytes. Withdraws none if there are not enough.
    fn withdraw(&mut self, size: usize, ceiling: usize) -> Vec<Arc<Segment>> {
        if self.searches_to_skip > 0 {
            self.searches_to_skip -= 1;
            return Vec::new();
        }
        let checked = self
            .sizes
            .values()
            .map(|class| class.free.len() + class.out.len())
            .sum::<usize>();
        let mut unused = self.unused_segments();
        unused.sort_by_key(|segment| segment.bytes());
        let mut room = ceiling.saturating_sub(self.bytes);
        let mut indices = BLOCKS - self.unused_index + self.spare.len();
        let mut chosen = HashMap::new();
        for segment in unused {
            if room >= size && indices > 0 {
                break;
            }
            room += segment.bytes();
            indices += segment.count;
            chosen.insert(segment.serial, segment);
        }
        if room < size || indices == 0 {
            self.searches_to_skip = checked / BLOCKS_PER_SKIPPED_SEARCH;
            return Vec::new();
        }
        self.remove(chosen)
    }

    /// Withdraws the free extra segments, except segments of the requested size `size`. So much
    /// memory is not kept for later. Every search calls `withdraw_extras`; blocks of such sizes are
    /// few.
    fn withdraw_extras(&mut self, size: usize) -> Vec<Arc<Segment>> {
        let PoolState {
            extras,
            sizes,
            searches,
            ..
        } = self;
        let unused = extras.extract_if(.., |extra| {
            extra.size != size
                && sizes
                    .get_mut(&extra.size)
                    .is_some_and(|class| class.has_free(extra.serial, *searches))
        });
        let unused: HashMap<u32, Arc<Segment>> =
            unused.map(|extra| (extra.serial, extra)).collect();
        if unused.is_empty() {
            Vec::new()
        } else {
            self.remove(unused)
        }
    }

    /// The segments whose blocks are all free, without the extra segments.
    fn unused_segments(&mut self) -> Vec<Arc<Segment>> {
        let mut free = HashMap::new();
        for class in self.sizes.values_mut() {
            let blocks = class.free.iter_mut().chain(&mut class.out);
            for block in blocks {
                if block.is_free(self.searches) {
                    *free.entry(block.segment.serial).or_insert(0) += 1;
                }
            }
        }
        let is_unused = |segment: &&Arc<Segment>| {
            !segment.is_extra && free.get(&segment.serial) == Some(&segment.count)
        };
        self.segments.iter().filter(is_unused).cloned().collect()
    }

    /// Removes the `chosen` segments, by serial number; all their blocks are free.
    fn remove(&mut self, chosen: HashMap<u32, Arc<Segment>>) -> Vec<Arc<Segment>> {
        for segment in chosen.values() {
            self.bytes -= segment.counted_bytes();
            self.sizes
                .get_mut(&segment.size)
                .expect("it has blocks there")
                .bytes -= segment.counted_bytes();
        }
        for class in self.sizes.values_mut() {
            let removed = class.remove(|block| chosen.contains_key(&block.segment.serial));
            self.spare.extend(removed.map(|block| {
                let Block { index, given, .. } = *block;
                (index, given.into_inner().expect(POISONED))
            }));
        }
        self.segments
            .retain(|segment| !chosen.contains_key(&segment.serial));
        chosen.into_values().collect()
    }
}

impl SizeClass {
    /// A free block: one of the blocks given last, whose memory is in the caches; else a block that
    /// no peer was given; else one of the blocks given longest ago.
    fn take(&mut self, size: usize, search: u64) -> Option<Box<Block>> {
        // A peer returns the blocks of several messages under way in the order of the messages, so
        // the block given last comes back last. For a small block, more checks cost more than the
        // caches bring.
        let checks = if size < CACHE_MATTERS_FROM { 1 } else { CHECKS };
        let late = self.out.len().saturating_sub(checks)..self.out.len();
        if let Some(index) = late.rev().find(|index| self.out[*index].is_free(search)) {
            return self.out.remove(index);
        }
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        for _ in 0..self.out.len().min(CHECKS) {
            let mut block = self.out.pop_front()?;
            if block.is_free(search) {
                return Some(block);
            }
            self.out.push_back(block);
        }
        None
    }

    /// Whether a block of the segment of serial number `serial` is free.
    fn has_free(&mut self, serial: u32, search: u64) -> bool {
        let mut blocks = self.free.iter_mut().chain(&mut self.out);
        blocks.any(|block| block.segment.serial == serial && block.is_free(search))
    }

    /// Removes all blocks for which the condition holds.
    fn remove(&mut self, condition: impl Fn(&Block) -> bool) -> impl Iterator<Item = Box<Block>> {
        let free: Vec<_> = self.free.extract_if(.., |block| condition(block)).collect();
        let (removed, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.out)
            .into_iter()
            .partition(|block| condition(block));
        self.out = kept.into();
        free.into_iter().chain(removed)
    }
}

impl Block {
    /// Counts the block as given to a peer once more.
    pub(super) fn give(&self, returns: &Arc<Returns>) {
        let mut given = self.given.lock().expect(POISONED);
        given.retain(|count| !count.returns.is_dead());
        match given
            .iter_mut()
            .find(|count| Arc::ptr_eq(&count.returns, returns))
        {
            Some(count) => count.times = count.times.wrapping_add(1),
            None => given.push(GivenCount {
                returns: returns.clone(),
                times: 1,
            }),
        }
    }

    /// Unique among all blocks, past and future.
    pub(super) fn number(&self) -> u64 {
        block_number(self.segment.serial, self.index)
    }

    /// Index of the block's counts of returns.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Whether the block belongs to `pool`, whose peers know the segment.
    pub(super) fn is_of(&self, pool: &Arc<Pool>) -> bool {
        std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool))
    }

    fn is_free(&mut self, search: u64) -> bool {
        let index = self.index;
        self.given_counts()
            .iter()
            .all(|given| given.returns.has(index, given.times, search))
    }

    fn given_counts(&mut self) -> &mut Vec<GivenCount> {
        self.given.get_mut().expect(POISONED)
    }
}

impl BlockOwner for Block {
    fn take_back(self: Box<Self>) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(self);
        }
    }
}

/// The block of a pool where a payload lies, if there is such a block.
pub(super) fn block_of(buffer: &Buffer) -> Option<&Block> {
    let owner: &dyn Any = buffer.block_owner()?;
    owner.downcast_ref()
}

/// Segments withdrawn by the pool. The holders hear of the withdrawal once the pool is unlocked.
#[derive(Debug, Default)]
struct WithdrawnSegments(Vec<Arc<Segment>>);

impl WithdrawnSegments {
    fn tell(&mut self) {
        self.0
            .drain(..)
            .for_each(|segment| segment.tell_withdrawn());
    }
}

impl Drop for WithdrawnSegments {
    fn drop(&mut self) {
        self.tell();
    }
}

impl SegmentPlan {
    fn make(&self) -> io::Result<Segment> {
        let start = (self.serial, self.first);
        Segment::make(start, self.size, self.given.len(), self.is_extra)
    }

    fn bytes(&self) -> usize {
        self.size * self.given.len()
    }

    /// The bytes counted against the ceiling.
    fn counted_bytes(&self) -> usize {
        if self.is_extra { 0 } else { self.bytes() }
    }
}

/// The size of a block for `length` bytes: one of four sizes between a power of two and the next.
/// So payloads that grow slowly find their blocks again.
fn rounded(length: usize) -> Option<usize> {
    let step = (length / 8).next_power_of_two().max(PAGE);
    length.max(1).checked_next_multiple_of(step)
}

const POISONED: &str = "nothing panics while the pool is locked";

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::segment::split_block_number;
    use super::*;

    impl OwnBlock {
        fn block(&self) -> &Block {
            let owner: &dyn Any = self.owner().unwrap();
            owner.downcast_ref().unwrap()
        }

        fn number(&self) -> u64 {
            self.block().number()
        }

        fn give(&self, returns: &Arc<Returns>) {
            self.block().give(returns);
        }
    }

    fn peer() -> Arc<Returns> {
        Returns::here(BLOCKS, None)
    }

    #[test]
    fn a_block_is_free_when_all_peers_have_returned_it() {
        let (pool, peers) = (Pool::new(Some(1 << 30)), [peer(), peer()]);
        let block = pool.take(100_000).unwrap();
        let number = block.number();
        block.give(&peers[0]);
        block.give(&peers[1]);
        block.give(&peers[1]);
        drop(block);
        let next = || pool.take(100_000).unwrap().number();
        assert_ne!(next(), number);
        peers[0].add(split_block_number(number).1);
        peers[1].add(split_block_number(number).1);
        assert_ne!(next(), number);
        peers[1].add(split_block_number(number).1);
        assert_eq!(next(), number);
        // The counts go on in the next round.
        let block = pool.take(100_000).unwrap();
        block.give(&peers[0]);
        drop(block);
        assert_ne!(next(), number);
    }

    /// A process that lives until its input is closed, and its counts of returns.
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
    fn a_process_that_has_ended_holds_nothing() {
        let ((mut child, peer), pool) = (process(), Pool::new(Some(1 << 30)));
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
        let pool = Pool::new(Some(1 << 30));
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
        let pool = Pool::new(Some(10 << 20));
        let blocks: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
        assert_eq!(blocks.len(), 10);
        drop(blocks);
        assert!(pool.take(1 << 20).is_some());
        assert!(pool.take(11 << 20).is_none() && pool.take(usize::MAX).is_none());
        assert_eq!(
            [pool.shortage(), pool.shortage()],
            [Some(Shortage::Ceiling(10 << 20)), None]
        );
    }

    #[test]
    fn smaller_payloads_find_room_in_larger_blocks() {
        let pool = Pool::new(Some(10 << 20));
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
        let pool = Pool::new(Some(10 << 20));
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
        let whole = (0..BLOCKS / BLOCKS_PER_SKIPPED_SEARCH).find_map(|_| pool.take(8 << 20));
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
    fn indices_serve_again_and_their_counts_go_on() {
        let (pool, peer) = (Pool::new(Some(1 << 30)), peer());
        let small: Vec<_> = std::iter::from_fn(|| pool.take(4096)).collect();
        assert_eq!(small.len(), BLOCKS);
        small.iter().for_each(|block| block.give(&peer));
        drop(small);
        assert!(pool.take(20_000).is_none(), "the peer has them all");
        assert_eq!(pool.shortage(), Some(Shortage::Blocks(BLOCKS)));
        (0..BLOCKS).for_each(|place| peer.add(place));
        let missing = (0..BLOCKS)
            .take_while(|_| pool.take(20_000).is_none())
            .count();
        assert_eq!(
            missing,
            BLOCKS / BLOCKS_PER_SKIPPED_SEARCH,
            "it is not looked for every time"
        );
        let block = pool.take(20_000).unwrap();
        let number = block.number();
        block.give(&peer);
        drop(block);
        let numbers = |count| {
            let blocks: Vec<_> = (0..count).map(|_| pool.take(20_000).unwrap()).collect();
            blocks.iter().map(OwnBlock::number).collect::<Vec<_>>()
        };
        assert!(!numbers(200).contains(&number), "it was not returned");
        peer.add(split_block_number(number).1);
        assert!(numbers(300).contains(&number));
    }

    #[test]
    fn only_threads_that_need_its_size_wait_while_a_segment_is_made() {
        let pool = Pool::new(Some(10 << 20));
        let plan = pool.lock().plan(1 << 20, 10 << 20).unwrap();
        assert!(pool.take(5000).is_some(), "one of another size");
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.take(1 << 20).map(|block| block.number())
        });
        let made = plan.make();
        let first = pool.lock().add(plan, made, &pool.this).unwrap();
        pool.give_back(first);
        pool.grown.notify_all();
        assert_eq!(
            waiting.join().unwrap(),
            Some(block_number(1, 0)),
            "it made another one"
        );
        // A segment that cannot be made leaves room for another.
        let plan = pool.lock().plan(2 << 20, 10 << 20).unwrap();
        assert!(
            pool.lock()
                .add(plan, Err(io::ErrorKind::OutOfMemory.into()), &pool.this)
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
    fn a_returned_block_is_found_among_those_that_peers_hold() {
        let (pool, peer) = (Pool::new(Some(11 << 20)), peer());
        let blocks: Vec<OwnBlock> = (0..11).map(|_| pool.take(1 << 20).unwrap()).collect();
        blocks.iter().for_each(|block| block.give(&peer));
        let tenth = blocks[9].number();
        blocks.into_iter().for_each(drop);
        peer.add(split_block_number(tenth).1);
        assert_eq!(pool.take(1 << 20).unwrap().number(), tenth);
        assert!(
            pool.take(1 << 20).is_some(),
            "it has come back, since nobody was given it"
        );
        assert_eq!(pool.shortage(), None);
    }

    #[test]
    fn an_array_beyond_the_default_ceiling_has_memory_of_its_own() {
        let pool = Pool::new(None);
        pool.default_ceiling.set(1 << 20).unwrap();
        let extras = |pool: &Pool| {
            let state = pool.lock();
            (
                state.extras.len(),
                state
                    .segments
                    .iter()
                    .filter(|segment| segment.is_extra)
                    .count(),
                state.bytes,
            )
        };
        let mut huge = pool.take(8 << 20).expect("so much is free");
        huge.fill(7);
        let number = huge.number();
        assert_eq!(extras(&pool), (1, 1, 0));
        let small: Vec<OwnBlock> = std::iter::from_fn(|| pool.take(200_000)).collect();
        assert_eq!(small.len(), 4, "it takes nothing from the others");
        let again = pool.take(8 << 20).expect("so much is free");
        drop(huge);
        assert_eq!(pool.take(8 << 20).unwrap().number(), number);
        drop(small);
        assert!(pool.take(5000).is_some());
        assert_eq!(extras(&pool).0, 1, "the one that is in use");
        drop(again);
        assert!(pool.take(5000).is_some());
        assert_eq!((extras(&pool).0, extras(&pool).1), (0, 0));
        assert!(
            pool.lock().plan_extra(8 << 20, 10 << 20).is_none(),
            "some is left to others"
        );

        let pool = Pool::new(Some(1 << 20));
        assert!(pool.take(8 << 20).is_none());
        assert_eq!(pool.shortage(), Some(Shortage::Ceiling(1 << 20)));
    }
}
