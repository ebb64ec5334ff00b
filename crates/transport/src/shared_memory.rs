//! Memory mapped by several processes. The code that the compiler cannot check is here.
//!
//! A region is a memory file (memfd). The file has no name, and the system frees it with the last
//! process that holds it. The file is sealed: no process can truncate it while others use it. A
//! region for payloads is allocated whole, so no access fails later.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::bell::BellWords;
use titin_os::host;

/// A mapping of a memory file.
#[derive(Debug)]
pub(crate) struct SharedRegion {
    map: MmapRaw,
    writable: bool,
}

/// Memory of a ring. The model checker has another implementation.
pub(crate) trait RingMemory {
    /// The word at `offset`.
    fn word(&self, offset: usize) -> &impl AtomicWord;

    /// Copies bytes in. The other process reads the bytes only once a word says so.
    fn write(&self, offset: usize, bytes: &[u8]);

    /// Copies bytes out. A process that breaks the protocol may change the bytes at any time.
    fn read(&self, offset: usize, out: &mut [u8]);

    /// Prefetches the cache line at `offset`, for writing.
    fn fetch(&self, offset: usize) {
        let _ = offset;
    }
}

/// An atomic word.
pub(crate) trait AtomicWord {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn swap(&self, value: u64, order: Ordering) -> u64;
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;

    /// Stores a value. All threads see the store before the calling thread's later loads.
    fn publish(&self, value: u64) {
        // An exchange is faster than a store and a fence.
        self.swap(value, Ordering::SeqCst);
    }
}

impl AtomicWord for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_or(value, order)
    }
}

/// Types for memory that other processes may change at any time.
///
/// # Safety
/// Every field is an atomic, and every bit pattern is a valid value.
#[allow(unsafe_code)]
pub(crate) unsafe trait Shareable {}

// SAFETY: an atomic.
#[allow(unsafe_code)]
unsafe impl Shareable for AtomicU32 {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Shareable for AtomicU64 {}
// SAFETY: every field is an atomic.
#[allow(unsafe_code)]
unsafe impl Shareable for BellWords {}

/// The processes that may write to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// All processes that map the region.
    All,
    /// The process that has made the region.
    Maker,
}

impl SharedRegion {
    /// A new region of zeros, and the descriptor by which other processes map the region.
    ///
    /// # Errors
    /// If the system has no memory or no descriptor.
    pub(crate) fn create(
        name: &str,
        length: usize,
        writers: Writers,
    ) -> io::Result<(Self, OwnedFd)> {
        // The system kills a process that exceeds the limit.
        let most = getrlimit(Resource::Fsize).current;
        if let Some(most) = most.filter(|most| *most < length as u64) {
            let text =
                format!("files of at most {most} bytes are allowed (ulimit -f), of memory, too");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, length as u64)?;
        let map = map(&file, length, false, true)?;
        // A region with many writers is small, or the pages come as they are used.
        if writers == Writers::Maker {
            let _ = map.advise(Advice::HugePage);
            allocate(&file, length, || map.advise(Advice::PopulateWrite))?;
        }
        let file = seal(file, writers)?;
        let writable = true;
        Ok((SharedRegion { map, writable }, file))
    }

    /// Maps a region of `length` bytes, made by another process. No process can truncate the
    /// region. Only the maker can write to the region if `writers` says so.
    ///
    /// # Errors
    /// If the file is no such region, or the system cannot map the file.
    pub(crate) fn open(file: &OwnedFd, length: usize, writers: Writers) -> io::Result<Self> {
        let invalid = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
        if !rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return invalid("shared memory that could be cut short");
        }
        if rustix::fs::fstat(file)?.st_size != length as i64 {
            return invalid("shared memory that is not as long as was said");
        }
        let writable = writers == Writers::All;
        // Mapping fills in all pages, so the pages must be allocated.
        if !writable && !is_allocated(file, length)? {
            return invalid("shared memory that was not allocated");
        }
        Ok(SharedRegion {
            map: map(file, length, !writable, writable)?,
            writable,
        })
    }

    pub(crate) fn length(&self) -> usize {
        self.map.len()
    }

    /// Has the system map the first `length` bytes now, where the system can: a page fault costs more
    /// than a small message.
    pub(crate) fn prefault(&self, length: usize) {
        let _ = self.map.advise_range(Advice::PopulateWrite, 0, length);
    }

    /// The atomic at `offset`.
    #[allow(unsafe_code)]
    pub(crate) fn at<T: Shareable>(&self, offset: usize) -> &T {
        assert!(
            self.writable
                && offset.is_multiple_of(align_of::<T>())
                && offset + size_of::<T>() <= self.length()
        );
        // SAFETY: within the mapping, aligned and writable; other processes may change a
        // `Shareable`.
        unsafe { &*self.map.as_ptr().add(offset).cast::<T>() }
    }
}

impl RingMemory for SharedRegion {
    fn word(&self, offset: usize) -> &impl AtomicWord {
        self.at::<AtomicU64>(offset)
    }

    #[allow(unsafe_code)]
    fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(self.writable && offset <= self.length() && bytes.len() <= self.length() - offset);
        // SAFETY: within the mapping and writable. Another process that reads meanwhile breaks the
        // protocol, and reads arbitrary bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.map.as_mut_ptr().add(offset),
                bytes.len(),
            )
        }
    }

    #[allow(unsafe_code)]
    fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(offset <= self.length() && out.len() <= self.length() - offset);
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.map.as_ptr().add(offset),
                out.as_mut_ptr(),
                out.len(),
            )
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    fn fetch(&self, offset: usize) {
        let line = self.map.as_ptr().wrapping_add(offset);
        // SAFETY: a hint without effect for an invalid address; older processors ignore the hint.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
    }
}

/// The limit of the system that a new region of `length` bytes would exceed, in words.
pub(crate) fn shortage(why: &io::Error, length: usize) -> String {
    let most = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    let address_space = || address_space() + length as u64 > most(Resource::As);
    match Errno::from_io_error(why) {
        Some(Errno::MFILE) => {
            format!(
                "a process may have {} open files (ulimit -n)",
                most(Resource::Nofile)
            )
        }
        Some(Errno::NFILE) => "the host allows no more open files (fs.file-max)".to_owned(),
        Some(Errno::AGAIN) => {
            format!(
                "this process locks its memory, of which it may lock {} bytes (ulimit -l)",
                most(Resource::Memlock)
            )
        }
        Some(Errno::NOMEM) if address_space() => {
            format!(
                "a process may have {} bytes of address space (ulimit -v)",
                most(Resource::As)
            )
        }
        Some(Errno::NOMEM | Errno::NOSPC | Errno::FAULT) => {
            format!(
                "of the memory that it may use, {} bytes, too little is left ({why})",
                host::memory()
            )
        }
        _ => why.to_string(),
    }
}

/// The bytes of address space that this process uses.
fn address_space() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().next();
    let pages = pages.and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Seals a memory file: no process can truncate the file, and only the present mapping can write if
/// `writers` says so. Returns the descriptor for other processes.
fn seal(file: OwnedFd, writers: Writers) -> io::Result<OwnedFd> {
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    if writers == Writers::All {
        rustix::fs::fcntl_add_seals(&file, seals)?;
        return Ok(file);
    }
    match rustix::fs::fcntl_add_seals(&file, seals | SealFlags::FUTURE_WRITE) {
        // Linux before 5.1 lacks `FUTURE_WRITE`: other processes get a descriptor for reading
        // alone.
        Err(Errno::INVAL) => {
            rustix::fs::fcntl_add_seals(&file, seals)?;
            read_only(&file)
        }
        outcome => outcome.map(|()| file).map_err(io::Error::from),
    }
}

/// Allocates all pages of a file now: page faults cost more than copies. `populate` advises the
/// system to fill in the pages of a mapping of the file, which is faster than `fallocate`.
///
/// A system may ignore the advice and report success: an emulator of another processor (qemu-user)
/// does. So the pages count as allocated only if the file says so.
fn allocate(
    file: &OwnedFd,
    length: usize,
    populate: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    if populate().is_ok() && is_allocated(file, length)? {
        return Ok(());
    }
    // The kernel is older than 5.14 or ignores the advice, or memory is short: `fallocate` tells
    // the last of these apart.
    let flags = FallocateFlags::empty();
    Ok(rustix::fs::fallocate(file, flags, 0, length as u64)?)
}

/// Whether the system has allocated all pages of a memory file.
fn is_allocated(file: &OwnedFd, length: usize) -> io::Result<bool> {
    // In units of 512 bytes, whatever the size of a page is.
    let blocks = rustix::fs::fstat(file)?.st_blocks as u64;
    Ok(blocks * 512 >= length as u64)
}

fn map(file: &OwnedFd, length: usize, populate: bool, writable: bool) -> io::Result<MmapRaw> {
    let mut options = MmapOptions::new();
    options.len(length);
    if populate {
        options.populate();
    }
    if writable {
        options.map_raw(file.as_fd().as_raw_fd())
    } else {
        options.map_raw_read_only(file.as_fd().as_raw_fd())
    }
}

/// A second descriptor of a memory file, for reading alone.
fn read_only(file: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Bytes of a region, used as a slice. The code that makes a `SharedBytes` guarantees two things:
/// no process writes to the bytes meanwhile, and no other slice of the bytes exists where they are
/// changed. The pool of blocks gives out the blocks of a segment under both guarantees.
#[derive(Debug)]
pub(crate) struct SharedBytes {
    region: Arc<SharedRegion>,
    start: usize,
    length: usize,
}

impl SharedBytes {
    /// The bytes of `range` in a region.
    ///
    /// # Panics
    /// If the range is not within the region.
    pub(crate) fn new(region: &Arc<SharedRegion>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= region.length());
        SharedBytes {
            region: region.clone(),
            start: range.start,
            length: range.len(),
        }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the mapping, which lives as long as the region. A peer that writes to a
        // block after handing the block over breaks the protocol; every bit pattern is a valid
        // byte.
        unsafe { std::slice::from_raw_parts(self.region.map.as_ptr().add(self.start), self.length) }
    }
}

impl DerefMut for SharedBytes {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.region.writable);
        // SAFETY: as above; the pool has given the block to no other message.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.region.map.as_mut_ptr().add(self.start),
                self.length,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processes_read_the_makers_bytes_and_cannot_change_them() {
        let (mine, file) = SharedRegion::create("test", 8192, Writers::Maker).unwrap();
        let theirs = Arc::new(SharedRegion::open(&file, 8192, Writers::Maker).unwrap());
        mine.write(4096, b"hello");
        assert_eq!(&SharedBytes::new(&theirs, 4096..4101)[..], b"hello");
        assert!(map(&file, 8192, false, true).is_err(), "mapped for writing");
        assert!(rustix::fs::ftruncate(&file, 0).is_err(), "cut short");
        assert!(
            SharedRegion::open(&file, 4096, Writers::Maker).is_err(),
            "of another length"
        );
    }

    #[test]
    fn memory_is_allocated_where_the_system_ignores_or_refuses_advice() {
        for populate in [|| Ok(()), || Err(Errno::INVAL.into())] {
            let (_, file) = SharedRegion::create("test", 8192, Writers::All).unwrap();
            assert!(!is_allocated(&file, 8192).unwrap(), "before");
            allocate(&file, 8192, populate).unwrap();
            assert!(is_allocated(&file, 8192).unwrap());
            SharedRegion::open(&file, 8192, Writers::Maker).unwrap();
        }
    }

    #[test]
    fn memory_that_was_not_allocated_is_refused() {
        let (_, file) = SharedRegion::create("test", 8192, Writers::All).unwrap();
        let refused = SharedRegion::open(&file, 8192, Writers::Maker).unwrap_err();
        assert!(refused.to_string().contains("not allocated"));
    }

    #[test]
    fn a_descriptor_for_reading_alone_is_enough_for_others() {
        // As on a system without the seal against writes by other processes.
        let (mine, file) = SharedRegion::create("test", 8192, Writers::All).unwrap();
        allocate(&file, 8192, || mine.map.advise(Advice::PopulateWrite)).unwrap();
        let file = read_only(&file).unwrap();
        let theirs = Arc::new(SharedRegion::open(&file, 8192, Writers::Maker).unwrap());
        mine.write(0, b"hello");
        assert_eq!(&SharedBytes::new(&theirs, 0..5)[..], b"hello");
        assert!(map(&file, 8192, false, true).is_err(), "mapped for writing");
    }

    #[test]
    fn atomics_are_seen_by_both() {
        let (mine, file) = SharedRegion::create("test", 4096, Writers::All).unwrap();
        let theirs = SharedRegion::open(&file, 4096, Writers::All).unwrap();
        theirs.at::<AtomicU64>(64).store(7, Ordering::SeqCst);
        assert_eq!(mine.at::<AtomicU64>(64).load(Ordering::SeqCst), 7);
    }

    #[test]
    fn the_limit_that_was_met_is_named() {
        let text = |errno: Errno| shortage(&errno.into(), 4096);
        assert!(text(Errno::MFILE).ends_with("open files (ulimit -n)"));
        assert!(text(Errno::AGAIN).ends_with("bytes (ulimit -l)"));
        assert!(
            text(Errno::NOMEM).contains(&format!("{} bytes, too little is left", host::memory()))
        );
        let own = io::Error::new(io::ErrorKind::FileTooLarge, "files of at most 5 bytes");
        assert_eq!(shortage(&own, 4096), "files of at most 5 bytes");
    }

    #[test]
    fn memory_that_could_be_cut_short_is_refused() {
        let file =
            rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
                .unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert!(
            SharedRegion::open(&file, 4096, Writers::All)
                .unwrap_err()
                .to_string()
                .contains("cut short")
        );
    }
}
