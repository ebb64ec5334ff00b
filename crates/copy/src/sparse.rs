//! Files with holes: ranges of zeros that take no room.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The zeros that a hash takes at a time.
const ZEROS: &[u8] = &[0; 64 << 10];

/// The bytes of the blocks by which the system counts the room of files.
const BLOCK: u64 = 512;

/// Whether a file takes less room than it has bytes. Files on which the file system saves room in other ways do, too.
pub(crate) fn may_have_holes(metadata: &Metadata) -> bool {
    metadata.blocks().saturating_mul(BLOCK) < metadata.len()
}

/// The next bytes of a file from `offset` on that are no hole, up to `size`. All of the rest where the file system
/// does not know holes.
pub(crate) fn next_data(file: &File, offset: u64, size: u64) -> Range<u64> {
    let rest = offset.min(size)..size;
    let begin = match seek(file, SeekFrom::Data(offset)) {
        Ok(begin) => begin.min(size),
        // Nothing but a hole follows.
        Err(Errno::NXIO) => return size..size,
        Err(_) => return rest,
    };
    match seek(file, SeekFrom::Hole(begin)) {
        Ok(end) => begin..end.min(size),
        Err(_) => begin..size,
    }
}

/// Copies the first bytes of a file to an empty one. Holes stay holes.
///
/// # Errors
/// Those of reading and writing.
pub(crate) fn copy_data(from: &File, mut to: &File, length: u64) -> io::Result<()> {
    let mut offset = 0;
    while offset < length {
        let data = next_data(from, offset, length);
        seek(from, SeekFrom::Start(data.start))?;
        seek(to, SeekFrom::Start(data.start))?;
        io::copy(&mut from.take(data.end - data.start), &mut to)?;
        offset = data.end;
    }
    to.set_len(length)
}

/// Adds zeros to a hash.
pub(crate) fn hash_zeros(hasher: &mut blake3::Hasher, mut count: u64) {
    while count > 0 {
        let step = count.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..step as usize]);
        count -= step;
    }
}
