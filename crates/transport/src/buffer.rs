//! Aligned memory for payloads. The memory is recycled: page faults cost more than copies.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, Mutex};

use memmap2::{Advice, MmapMut};
use titin_wire::ALIGNMENT;

use crate::shared_memory::SharedBytes;
use titin_os::forks::{self, ForkTime};
use titin_os::host;

/// The pool keeps buffers of at least `POOLED` bytes. The allocator recycles smaller buffers, except
/// for those of [`SMALL`] bytes.
const POOLED: usize = 64 << 10;

/// The allocator keeps freed memory of at most 1 KiB at hand for each thread. Larger memory costs
/// some 700 instructions to get and to free, so each thread keeps buffers of one size, enough for
/// a payload in a ring, for the next messages.
const AT_HAND: usize = 1 << 10;
const SMALL: usize = (2 << 10) + ALIGNMENT;
const SMALL_BUFFERS: usize = 16;

thread_local! {
    static SMALL_FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Larger buffers have mappings of their own. The system grants a process some ten thousand
/// mappings.
const MAPPED: usize = 1 << 20;

/// The most that the pool keeps, in bytes and in buffers. Where larger buffers are in use the pool
/// keeps two, each at most a `POOL_PART`-th of the process's memory.
const POOL_BYTES: usize = 256 << 20;
const POOL_BUFFERS: usize = 32;
const POOL_PART: u64 = 16;

static POOL: Mutex<Recycled> = Mutex::new(Recycled {
    free: Vec::new(),
    bytes: 0,
    largest: 0,
});

static LARGEST: LazyLock<usize> = LazyLock::new(|| {
    usize::try_from(host::memory() / POOL_PART)
        .unwrap_or(usize::MAX)
        .max(POOL_BYTES)
});

/// A medium's handle of a block with a payload of the process, readable by peers on the host.
pub(crate) trait BlockOwner: Any + Send + Sync {
    /// Takes the block back from the last message.
    fn take_back(self: Box<Self>);
}

/// The medium's counts of blocks returned to a peer.
pub(crate) trait PeerBlocks: Send + Sync {
    /// Notes the return of the block numbered `block`.
    fn give_back(&self, block: usize);
}

/// The memory of a payload. Fresh memory is zeroed.
enum Memory {
    Heap(Vec<u8>),
    /// Pages straight from the system, added by the system at the first write.
    Mapped(MmapMut),
    Own(OwnBlock),
    Peer(PeerBlock),
}

/// A block of the process's own, readable by peers on the host. Dropping gives the block back.
pub(crate) struct OwnBlock {
    bytes: SharedBytes,
    /// `None` only while the block is dropped.
    owner: Option<Box<dyn BlockOwner>>,
}

/// A block of a peer's.
struct PeerBlock {
    bytes: SharedBytes,
    blocks: Arc<dyn PeerBlocks>,
    number: usize,
}

impl OwnBlock {
    pub(crate) fn new(bytes: SharedBytes, owner: Box<dyn BlockOwner>) -> Self {
        OwnBlock {
            bytes,
            owner: Some(owner),
        }
    }

    pub(crate) fn owner(&self) -> Option<&dyn BlockOwner> {
        self.owner.as_deref()
    }
}

impl Deref for OwnBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for OwnBlock {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for OwnBlock {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.take_back();
        }
    }
}

impl Drop for PeerBlock {
    fn drop(&mut self) {
        self.blocks.give_back(self.number);
    }
}

/// The bytes of one payload, aligned to 64. The bytes do not change any more.
#[derive(Default)]
pub struct Buffer {
    memory: Memory,
    start: usize,
    length: usize,
    acquired: ForkTime,
}

/// A payload with any number of owners. The payload of no bytes has no count of owners: to count
/// an owner and to forget it costs two atomic operations, and many messages are empty.
#[derive(Debug, Clone, Default)]
pub struct SharedBuffer(Option<Arc<Buffer>>);

/// A buffer under construction, filled from beginning to end.
pub struct Filling {
    buffer: Buffer,
    filled: usize,
}

impl Buffer {
    /// A copy of the parts, one after the other.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] if there is no memory for the copy.
    pub fn gather(parts: &[IoSlice<'_>]) -> io::Result<Self> {
        Ok(Filling::new(parts.iter().map(|part| part.len() as u64).sum())?.with(parts))
    }

    /// The payload in a peer's block numbered `number`.
    pub(crate) fn in_peer_block(
        bytes: SharedBytes,
        blocks: Arc<dyn PeerBlocks>,
        number: usize,
    ) -> Self {
        let length = bytes.len();
        Buffer {
            memory: Memory::Peer(PeerBlock {
                bytes,
                blocks,
                number,
            }),
            start: 0,
            length,
            acquired: ForkTime::now(),
        }
    }

    /// Whether the memory is private, and at most as large as that of a payload in a ring.
    fn is_small(&self) -> bool {
        matches!(&self.memory, Memory::Heap(bytes) if bytes.len() <= SMALL)
    }

    /// The memory, made a payload of `length` bytes, if the memory is small and holds as many.
    fn reuse(&mut self, length: usize) -> Option<&mut [u8]> {
        let end = self.start + length;
        if !self.is_small() || end > self.memory.len() {
            return None;
        }
        self.length = length;
        Some(&mut self.memory[self.start..end])
    }

    /// The owner of the payload's block, if the payload lies in a block of the process's own.
    pub(crate) fn block_owner(&self) -> Option<&dyn BlockOwner> {
        match &self.memory {
            Memory::Own(block) => block.owner(),
            _ => None,
        }
    }
}

impl SharedBuffer {
    /// Whether both are the same memory. All payloads of no bytes are the same memory.
    pub fn is_same(&self, other: &SharedBuffer) -> bool {
        std::ptr::eq(&**self, &**other)
    }

    /// The memory, made a payload of `length` bytes to be overwritten, if nothing else owns the
    /// memory and the memory is as small as that of a payload in a ring. A payload of no bytes needs
    /// no memory, and lets go of any.
    #[inline(always)]
    pub(crate) fn reuse(&mut self, length: usize) -> Option<&mut [u8]> {
        if length == 0 {
            self.0 = None;
            return Some(&mut []);
        }
        Arc::get_mut(self.0.as_mut()?)?.reuse(length)
    }

    /// Lets go of the payload, unless [`SharedBuffer::reuse`] may use its memory again.
    pub fn keep_if_small(&mut self) {
        let is_small =
            |buffer: &mut Arc<Buffer>| Arc::get_mut(buffer).is_some_and(|buffer| buffer.is_small());
        if !self.0.as_mut().is_none_or(is_small) {
            self.0 = None;
        }
    }
}

impl From<Buffer> for SharedBuffer {
    fn from(buffer: Buffer) -> Self {
        SharedBuffer((buffer.length > 0).then(|| Arc::new(buffer)))
    }
}

impl Deref for SharedBuffer {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        static EMPTY: Buffer = Buffer {
            memory: Memory::Heap(Vec::new()),
            start: 0,
            length: 0,
            acquired: ForkTime::NONE,
        };
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a payload of {} bytes", self.length)
    }
}

impl fmt::Debug for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes, {} of them filled",
            self.buffer.length, self.filled
        )
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if matches!(self.memory, Memory::Own(_) | Memory::Peer(_)) {
            return forks::drop_when_unseen(std::mem::take(&mut self.memory), self.acquired);
        }
        if self.memory.len() == SMALL {
            return keep_small(std::mem::take(&mut self.memory));
        }
        if self.memory.len() >= POOLED {
            // In a forked child the lock may be held for ever, by a thread of the parent.
            for _ in 0..100 {
                if let Ok(mut pool) = POOL.try_lock() {
                    let gone = pool.give(std::mem::take(&mut self.memory), *LARGEST);
                    drop(pool);
                    return drop(gone);
                }
                std::thread::yield_now();
            }
        }
    }
}

/// Memory from the pool, or fresh memory. Fresh memory is rounded up, so that payloads that grow
/// slowly find their buffer again.
fn pooled_or_fresh(wanted: usize) -> Option<Memory> {
    let mut pool = POOL.lock().expect("the pool's holder cannot panic");
    let pooled = pool.take(wanted);
    drop(pool);
    pooled.or_else(|| {
        let step = (wanted / 8).next_power_of_two().max(4096);
        Memory::fresh(wanted.checked_next_multiple_of(step)?)
    })
}

impl Filling {
    /// Room for `length` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] if there is none.
    pub fn new(length: u64) -> io::Result<Self> {
        let none = || {
            let text = format!("no memory for a message of {length} bytes");
            io::Error::new(io::ErrorKind::OutOfMemory, text)
        };
        let length = usize::try_from(length).map_err(|_| none())?;
        let spare = if length == 0 { 0 } else { ALIGNMENT };
        let wanted = length.checked_add(spare).ok_or_else(none)?;
        let memory = match wanted {
            wanted if wanted <= AT_HAND => Memory::fresh(wanted),
            wanted if wanted <= SMALL => small_memory(),
            wanted if wanted < POOLED => Memory::fresh(wanted),
            _ => pooled_or_fresh(wanted),
        };
        let memory = memory.ok_or_else(none)?;
        let start = if length == 0 {
            0
        } else {
            memory.as_ptr().align_offset(ALIGNMENT)
        };
        Ok(Filling {
            buffer: Buffer {
                memory,
                start,
                length,
                acquired: ForkTime::default(),
            },
            filled: 0,
        })
    }

    /// The room of a block of the process's own.
    pub(crate) fn in_block(block: OwnBlock) -> Self {
        Filling {
            buffer: Buffer {
                start: 0,
                length: block.len(),
                memory: Memory::Own(block),
                acquired: ForkTime::now(),
            },
            filled: 0,
        }
    }

    /// The unfilled part. [`Filling::advance`] counts filled bytes.
    pub fn rest(&mut self) -> &mut [u8] {
        let Buffer { start, length, .. } = self.buffer;
        &mut self.buffer.memory[start + self.filled..start + length]
    }

    /// `length` bytes from `from` on, for a caller that fills the buffer in any order and counts
    /// nothing.
    pub(crate) fn part(&mut self, from: usize, length: usize) -> &mut [u8] {
        let start = self.buffer.start + from;
        assert!(
            from + length <= self.buffer.length,
            "a buffer of {} bytes was overfilled",
            self.buffer.length
        );
        &mut self.buffer.memory[start..start + length]
    }

    /// Counts bytes written to the beginning of [`Filling::rest`].
    pub fn advance(&mut self, bytes: usize) {
        self.filled += bytes;
        assert!(
            self.filled <= self.buffer.length,
            "a buffer of {} bytes was overfilled",
            self.buffer.length
        );
    }

    /// Copies bytes to the beginning of the rest.
    pub fn push(&mut self, bytes: &[u8]) {
        crate::copy::copy(bytes, &mut self.rest()[..bytes.len()]);
        self.advance(bytes.len());
    }

    /// The buffer filled with `parts`, one after the other.
    pub(crate) fn with(mut self, parts: &[IoSlice<'_>]) -> Buffer {
        parts.iter().for_each(|part| self.push(part));
        self.finish()
    }

    /// Bytes filled so far.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// The filled bytes.
    pub fn beginning(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The whole buffer. Unfilled bytes are zeros, or bytes of the process's earlier messages.
    pub fn finish(self) -> Buffer {
        self.buffer
    }
}

/// Memory of [`SMALL`] bytes: the memory of an earlier message of this thread, or new memory.
fn small_memory() -> Option<Memory> {
    let kept = SMALL_FREE.try_with(|free| free.borrow_mut().pop());
    match kept.ok().flatten() {
        Some(bytes) => Some(Memory::Heap(bytes)),
        None => Memory::fresh(SMALL),
    }
}

/// Keeps memory of [`SMALL`] bytes for the thread's next messages, unless the thread has enough or
/// ends.
fn keep_small(memory: Memory) {
    let Memory::Heap(bytes) = memory else { return };
    let _ = SMALL_FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < SMALL_BUFFERS {
            free.push(bytes);
        }
    });
}

impl Default for Memory {
    fn default() -> Self {
        Memory::Heap(Vec::new())
    }
}

impl Memory {
    /// `length` bytes; `None` where `vec!` would abort.
    fn fresh(length: usize) -> Option<Self> {
        if length >= MAPPED {
            let pages = MmapMut::map_anon(length).ok()?;
            // Huge pages if the system offers them: page faults cost more than copies.
            let _ = pages.advise(Advice::HugePage);
            return Some(Memory::Mapped(pages));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        Some(Memory::Heap(bytes))
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(pages) => pages,
            Memory::Own(block) => block,
            Memory::Peer(block) => &block.bytes,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(pages) => pages,
            Memory::Own(block) => block,
            Memory::Peer(_) => unreachable!("a peer's block is never filled here"),
        }
    }
}

/// Free buffers, the oldest first.
struct Recycled {
    free: Vec<Memory>,
    bytes: usize,
    /// The largest returned buffer, less a sixteenth for each later return.
    largest: usize,
}

impl Recycled {
    fn take(&mut self, length: usize) -> Option<Memory> {
        let fits = |memory: &Memory| memory.len() >= length && memory.len() / 2 <= length;
        let best = (0..self.free.len())
            .filter(|i| fits(&self.free[*i]))
            .min_by_key(|i| self.free[*i].len())?;
        let memory = self.free.remove(best);
        self.bytes -= memory.len();
        Some(memory)
    }

    /// Adds a buffer of at most `most` bytes, in place of the oldest buffers. Returns the buffers
    /// to be freed. The caller drops them after the release of the lock.
    fn give(&mut self, memory: Memory, most: usize) -> Vec<Memory> {
        if memory.len() > most {
            return vec![memory];
        }
        self.largest = memory.len().max(self.largest - self.largest / 16);
        let limit = POOL_BYTES.max(2 * self.largest);
        self.bytes += memory.len();
        self.free.push(memory);
        let (mut bytes, mut gone) = (self.bytes, 0);
        while bytes > limit || self.free.len() - gone > POOL_BUFFERS {
            bytes -= self.free[gone].len();
            gone += 1;
        }
        self.bytes = bytes;
        self.free.drain(..gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_aligned_and_whole() {
        for length in [
            1,
            63,
            64,
            1000,
            SMALL - ALIGNMENT,
            SMALL,
            POOLED,
            3 * POOLED + 5,
            MAPPED,
        ] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let (left, right) = bytes.split_at(length / 3);
            let buffer = Buffer::gather(&[IoSlice::new(left), IoSlice::new(right)]).unwrap();
            assert_eq!(&*buffer, &bytes[..]);
            assert_eq!(buffer.as_ptr().align_offset(ALIGNMENT), 0);
        }
        assert!(Buffer::gather(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_payload_of_no_bytes_has_no_owners() {
        let owners = |payload: &SharedBuffer| payload.0.as_ref().map(Arc::strong_count);
        let empty = SharedBuffer::from(Buffer::gather(&[IoSlice::new(&[])]).unwrap());
        let other = SharedBuffer::from(Buffer::gather(&[IoSlice::new(b"x")]).unwrap());
        let copies = (empty.clone(), other.clone());
        assert_eq!((owners(&empty), owners(&other)), (None, Some(2)));
        assert!(empty.is_empty() && empty.is_same(&copies.0) && other.is_same(&copies.1));
        assert!(!other.is_same(&empty));
    }

    #[test]
    fn small_memory_serves_again_unless_another_message_shares_it() {
        let payload = |length: usize| {
            let bytes = vec![1; length];
            SharedBuffer::from(Buffer::gather(&[IoSlice::new(&bytes)]).unwrap())
        };
        let mut small = payload(100);
        let before = small.as_ptr();
        small.reuse(90).unwrap().fill(2);
        assert_eq!((&small[..], small.as_ptr()), (&[2; 90][..], before));
        assert_eq!(small.reuse(100).map(|bytes| bytes.len()), Some(100));
        assert!(small.reuse(200).is_none(), "the memory is too small");
        let shared = small.clone();
        assert!(small.reuse(10).is_none(), "another message has the memory");
        small.keep_if_small();
        assert!(small.is_empty() && shared.len() == 100);
        let (mut small, mut large) = (shared, payload(SMALL + 1));
        assert!(large.reuse(10).is_none());
        small.keep_if_small();
        large.keep_if_small();
        assert!(small.len() == 100 && large.is_empty());
        assert_eq!(small.reuse(0), Some(&mut [][..]));
        assert!(small.is_empty() && small.reuse(1).is_none());
    }

    #[test]
    fn memory_that_the_system_lacks_is_an_error() {
        for length in [u64::MAX, u64::MAX - 64, u64::MAX - 100, 1 << 63] {
            assert_eq!(
                Filling::new(length).unwrap_err().kind(),
                io::ErrorKind::OutOfMemory
            );
        }
        let error = Filling::new(1 << 60).unwrap_err();
        assert!(error.to_string().contains("1152921504606846976"), "{error}");
    }

    #[test]
    fn a_thread_uses_a_few_small_buffers_again() {
        let length = (SMALL - ALIGNMENT) as u64;
        let kept = || SMALL_FREE.with(|free| free.borrow().len());
        let buffers: Vec<Buffer> = (0..SMALL_BUFFERS + 3)
            .map(|_| Filling::new(length).unwrap().finish())
            .collect();
        assert_eq!(kept(), 0);
        drop(buffers);
        assert_eq!(kept(), SMALL_BUFFERS);
        let again = Filling::new(length - 500).unwrap().finish();
        assert_eq!(again.len() as u64, length - 500);
        assert_eq!(kept(), SMALL_BUFFERS - 1);
        let larger = Filling::new(length + 1).unwrap().finish();
        let smaller = Filling::new((AT_HAND - ALIGNMENT) as u64).unwrap().finish();
        assert_eq!(kept(), SMALL_BUFFERS - 1);
        drop((again, larger, smaller));
        assert_eq!(kept(), SMALL_BUFFERS);
    }

    fn recycled() -> Recycled {
        Recycled {
            free: Vec::new(),
            bytes: 0,
            largest: 0,
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut pool = recycled();
        pool.give(Memory::fresh(1000).unwrap(), POOL_BYTES);
        pool.give(Memory::fresh(1500).unwrap(), POOL_BYTES);
        assert_eq!(pool.take(900).unwrap().len(), 1000);
        assert!(
            pool.take(100).is_none(),
            "far too large a buffer is not wasted on a small message"
        );
        assert_eq!(pool.take(1500).unwrap().len(), 1500);
        assert_eq!(pool.bytes, 0);
    }

    #[test]
    fn unused_sizes_give_way() {
        let mut pool = recycled();
        for size in 0..POOL_BUFFERS {
            assert!(
                pool.give(Memory::fresh(POOLED + size).unwrap(), POOL_BYTES)
                    .is_empty()
            );
        }
        for _ in 0..3 {
            let gone = pool.give(Memory::fresh(64 << 20).unwrap(), POOL_BYTES);
            assert!(
                gone.iter().all(|memory| memory.len() < 2 * POOLED),
                "the last buffer stays"
            );
            assert_eq!(pool.take(64 << 20).unwrap().len(), 64 << 20);
        }
        assert_eq!(
            pool.give(Memory::fresh(POOL_BYTES + 1).unwrap(), POOL_BYTES)
                .len(),
            1
        );
    }

    #[test]
    fn the_pool_keeps_as_much_as_is_in_use() {
        const LARGE: usize = 1 << 30;
        let mut pool = recycled();
        let give = |pool: &mut Recycled, size| pool.give(Memory::fresh(size).unwrap(), LARGE).len();
        assert_eq!(
            (0..3).map(|_| give(&mut pool, LARGE)).collect::<Vec<_>>(),
            [0, 0, 1],
            "two of the largest"
        );
        assert_eq!(
            give(&mut pool, LARGE + 1),
            1,
            "it is more than one may have"
        );
        // From now on smaller buffers are in use.
        let gone: usize = (0..POOL_BUFFERS).map(|_| give(&mut pool, POOLED)).sum();
        assert_eq!(gone, 2, "the large ones went first");
        assert!(pool.bytes <= POOL_BYTES);
    }
}
