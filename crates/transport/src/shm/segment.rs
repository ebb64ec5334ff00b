//! Segments: shared memory of several blocks of one size.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, Weak};

use titin_os::Descriptor;
use titin_wire::frame::Frame;

use crate::link::Link;
use crate::shared_memory::{SharedRegion, Writers};

/// The memory of several blocks. The owning process writes the memory, and peers read it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) region: Arc<SharedRegion>,
    file: Descriptor,
    /// Distinguishes the segment from earlier segments of the same block indices.
    pub(crate) serial: u32,
    /// Index of the first block.
    pub(crate) first: usize,
    /// Bytes of a block.
    pub(crate) size: usize,
    pub(crate) count: usize,
    /// Whether the only block exceeds the pool's ceiling.
    pub(super) is_extra: bool,
    /// The links of the peers with the segment.
    holders: Mutex<Vec<Weak<Link>>>,
}

impl Segment {
    /// Makes a segment of `count` blocks of `size` bytes.
    pub(super) fn make(
        (serial, first): (u32, usize),
        size: usize,
        count: usize,
        is_extra: bool,
    ) -> io::Result<Self> {
        let (region, file) = SharedRegion::create("titin-segment", size * count, Writers::Maker)?;
        Ok(Segment {
            region: Arc::new(region),
            file: file.into(),
            serial,
            first,
            size,
            count,
            is_extra,
            holders: Mutex::default(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.size * self.count
    }

    /// The bytes counted against the pool's ceiling.
    pub(super) fn counted_bytes(&self) -> usize {
        if self.is_extra { 0 } else { self.bytes() }
    }

    /// Number of the first block.
    pub(crate) fn number(&self) -> u64 {
        block_number(self.serial, self.first)
    }

    /// Notes the handing over by a link.
    pub(crate) fn note_holder(&self, link: &Weak<Link>) {
        self.holders.lock().expect(POISONED).push(link.clone());
    }

    /// Tells all holders about the withdrawal.
    pub(super) fn tell_withdrawn(&self) {
        let holders = std::mem::take(&mut *self.holders.lock().expect(POISONED));
        let first = self.number();
        for link in holders.iter().filter_map(Weak::upgrade) {
            link.tell_frame(&Frame::Withdrawn { first }, None);
        }
    }
}

impl AsFd for Segment {
    /// The file for peers to map.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The number of a block: the segment's serial number above, the index below.
pub(crate) fn block_number(serial: u32, index: usize) -> u64 {
    u64::from(serial) << 32 | index as u64
}

/// The segment's serial number and the index in a block number.
pub(crate) fn split_block_number(number: u64) -> (u32, usize) {
    ((number >> 32) as u32, number as u32 as usize)
}

const POISONED: &str = "nothing panics while the holders are locked";
