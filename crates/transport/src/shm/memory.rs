//! Memory that several processes map. What cannot be checked by the compiler stands in this file.
//!
//! A region is a memory file (memfd): it has no name, and is gone with the last process that holds it. It is sealed, so
//! that nobody can cut it short under another's hands. Where payloads lie it is allocated whole, so that using it cannot
//! fail later.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::doorbell::Bell;
use titin_os::host;

/// A mapping of a memory file.
#[derive(Debug)]
pub(crate) struct Region {
    map: MmapRaw,
    writable: bool,
}

/// Memory as a ring uses it, of which the model checker has its own.
pub(crate) trait Memory {
    /// The word at this place.
    fn word(&self, place: usize) -> &impl Word;

    /// Copies bytes in. Nobody else is to look at them before some word says so.
    fn write(&self, place: usize, bytes: &[u8]);

    /// Copies bytes out. If the other process does not keep to the order of things they may be any.
    fn read(&self, place: usize, out: &mut [u8]);

    /// Has the processor bring the line at this place here, which is written next, while it does something else.
    fn fetch(&self, place: usize) {
        let _ = place;
    }
}

/// An atomic word.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn swap(&self, value: u64, order: Ordering) -> u64;
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;

    /// Stores so that everybody sees it before anything that this thread loads afterwards.
    fn publish(&self, value: u64) {
        // An exchange is faster than a store and a fence.
        self.swap(value, Ordering::SeqCst);
    }
}

impl Word for AtomicU64 {
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

/// What may lie in memory that others change at any time.
///
/// # Safety
/// Only types all of whose parts are atomics, and for which every pattern of bits is a value.
#[allow(unsafe_code)]
pub(crate) unsafe trait Shareable {}

// SAFETY: they are atomics.
#[allow(unsafe_code)]
unsafe impl Shareable for AtomicU32 {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Shareable for AtomicU64 {}
// SAFETY: it is made of atomics.
#[allow(unsafe_code)]
unsafe impl Shareable for Bell {}

/// Who may write to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// All who map it.
    All,
    /// Who has made it.
    Maker,
}

impl Region {
    /// A new region of zeros, and the descriptor by which others map it.
    ///
    /// # Errors
    /// If the system has no memory or no descriptor for it.
    pub(crate) fn create(
        name: &str,
        length: usize,
        writers: Writers,
    ) -> io::Result<(Self, OwnedFd)> {
        // To pass this limit is to be killed.
        let most = getrlimit(Resource::Fsize).current;
        if let Some(most) = most.filter(|most| *most < length as u64) {
            let text =
                format!("files of at most {most} bytes are allowed (ulimit -f), of memory, too");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, length as u64)?;
        let map = map(&file, length, false, true)?;
        // A region that all write to is small, or touched only as far as it is used.
        if writers == Writers::Maker {
            allocate(&file, &map)?;
        }
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let seal = |seals| rustix::fs::fcntl_add_seals(&file, seals);
        let maker_only = writers == Writers::Maker;
        match seal(if maker_only {
            seals | SealFlags::FUTURE_WRITE
        } else {
            seals
        }) {
            // Before Linux 5.1 others get a descriptor that cannot write.
            Err(Errno::INVAL) if maker_only => {
                seal(seals)?;
                return Ok((
                    Region {
                        map,
                        writable: true,
                    },
                    read_only(&file)?,
                ));
            }
            outcome => outcome?,
        }
        Ok((
            Region {
                map,
                writable: true,
            },
            file,
        ))
    }

    /// Maps what another process has made: `length` bytes, which it can neither cut short nor, but for the maker, change
    /// if `writers` says so.
    ///
    /// # Errors
    /// If it is not so, or the system cannot map it.
    pub(crate) fn open(file: &OwnedFd, length: usize, writers: Writers) -> io::Result<Self> {
        let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
        if !rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return wrong("shared memory that could be cut short");
        }
        let status = rustix::fs::fstat(file)?;
        if status.st_size != length as i64 {
            return wrong("shared memory that is not as long as was said");
        }
        let writable = writers == Writers::All;
        // To map it is to fill in all of its pages: they must be there.
        if !writable && (status.st_blocks as u64) * 512 < length as u64 {
            return wrong("shared memory that was not allocated");
        }
        Ok(Region {
            map: map(file, length, !writable, writable)?,
            writable,
        })
    }

    pub(crate) fn length(&self) -> usize {
        self.map.len()
    }

    /// The atomic at this place.
    #[allow(unsafe_code)]
    pub(crate) fn at<T: Shareable>(&self, place: usize) -> &T {
        assert!(
            self.writable
                && place.is_multiple_of(align_of::<T>())
                && place + size_of::<T>() <= self.length()
        );
        // SAFETY: within the mapping, aligned, writable, and a `Shareable` may be changed by others.
        unsafe { &*self.map.as_ptr().add(place).cast::<T>() }
    }
}

impl Memory for Region {
    fn word(&self, place: usize) -> &impl Word {
        self.at::<AtomicU64>(place)
    }

    #[allow(unsafe_code)]
    fn write(&self, place: usize, bytes: &[u8]) {
        assert!(self.writable && place <= self.length() && bytes.len() <= self.length() - place);
        // SAFETY: within the mapping and writable. The other process reads only what was published; if it does not keep
        // to that, it reads bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.map.as_mut_ptr().add(place),
                bytes.len(),
            )
        }
    }

    #[allow(unsafe_code)]
    fn read(&self, place: usize, out: &mut [u8]) {
        assert!(place <= self.length() && out.len() <= self.length() - place);
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(self.map.as_ptr().add(place), out.as_mut_ptr(), out.len())
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    fn fetch(&self, place: usize) {
        let line = self.map.as_ptr().wrapping_add(place);
        // SAFETY: a hint, which does nothing where there is no memory; processors that do not know it pass it over.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
    }
}

/// Which limit of the system's it was that a region of so many bytes could not be made for.
pub(crate) fn shortage(why: &io::Error, length: usize) -> String {
    let most = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    let address_space = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages
            .split_whitespace()
            .next()
            .and_then(|pages| pages.parse::<u64>().ok())
            .unwrap_or(0);
        pages * rustix::param::page_size() as u64 + length as u64 > most(Resource::As)
    };
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

/// Has the system provide all pages now, huge ones if it has them for those who ask: faults cost more than copies.
fn allocate(file: &OwnedFd, map: &MmapRaw) -> io::Result<()> {
    let _ = map.advise(Advice::HugePage);
    if map.advise(Advice::PopulateWrite).is_ok() {
        return Ok(());
    }
    // An older kernel, or there is not that much: this tells.
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::empty(),
        0,
        map.len() as u64,
    )?)
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

/// Another descriptor of a memory file, for reading alone.
fn read_only(file: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// A part of a region. Whoever makes one sees to it that nobody writes there meanwhile, or, for changing it, that
/// nobody else has one: the blocks of a segment are given out so (see [`super::pool`]).
#[derive(Debug)]
pub(crate) struct Piece {
    region: Arc<Region>,
    start: usize,
    length: usize,
}

impl Piece {
    /// These bytes of a region.
    ///
    /// # Panics
    /// If it does not have them.
    pub(crate) fn new(region: &Arc<Region>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= region.length());
        Piece {
            region: region.clone(),
            start: range.start,
            length: range.len(),
        }
    }
}

impl Deref for Piece {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the mapping, which lives as long as the region. A peer that writes to what it has handed over
        // breaks the contract; the bytes may then be any, which every pattern of bits allows.
        unsafe { std::slice::from_raw_parts(self.region.map.as_ptr().add(self.start), self.length) }
    }
}

impl DerefMut for Piece {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.region.writable);
        // SAFETY: as above; the block that this is was given to nobody else.
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
    fn what_the_maker_writes_others_read_and_cannot_change() {
        let (mine, file) = Region::create("test", 8192, Writers::Maker).unwrap();
        let theirs = Arc::new(Region::open(&file, 8192, Writers::Maker).unwrap());
        mine.write(4096, b"hello");
        assert_eq!(&Piece::new(&theirs, 4096..4101)[..], b"hello");
        assert!(map(&file, 8192, false, true).is_err(), "mapped for writing");
        assert!(rustix::fs::ftruncate(&file, 0).is_err(), "cut short");
        assert!(
            Region::open(&file, 4096, Writers::Maker).is_err(),
            "of another length"
        );
    }

    #[test]
    fn a_descriptor_for_reading_alone_is_enough_for_others() {
        // As where the system cannot keep others from writing by a seal.
        let (mine, file) = Region::create("test", 8192, Writers::All).unwrap();
        allocate(&file, &mine.map).unwrap();
        let file = read_only(&file).unwrap();
        let theirs = Arc::new(Region::open(&file, 8192, Writers::Maker).unwrap());
        mine.write(0, b"hello");
        assert_eq!(&Piece::new(&theirs, 0..5)[..], b"hello");
        assert!(map(&file, 8192, false, true).is_err(), "mapped for writing");
    }

    #[test]
    fn atomics_are_seen_by_both() {
        let (mine, file) = Region::create("test", 4096, Writers::All).unwrap();
        let theirs = Region::open(&file, 4096, Writers::All).unwrap();
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
            Region::open(&file, 4096, Writers::All)
                .unwrap_err()
                .to_string()
                .contains("cut short")
        );
    }
}
