//! Files with holes. A copy keeps the holes of its source.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The next bytes of a file, at or behind an offset, that are not a hole. The range is empty, and at the
/// end of the file, if no such bytes follow. Moves the position in the file.
///
/// # Errors
/// If the system does not say how long the file is.
pub(crate) fn next_data(file: &File, offset: u64) -> io::Result<Range<u64>> {
    let length = file.metadata()?.len();
    match seek(file, SeekFrom::Data(offset)) {
        Ok(start) => Ok(start..seek(file, SeekFrom::Hole(start)).unwrap_or(length)),
        Err(Errno::NXIO) => Ok(length..length),
        // The file system does not know holes.
        Err(_) => Ok(offset.min(length)..length),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn data_is_found_behind_holes() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), 0..0);
        file.write_all_at(&[1; 5000], 1 << 20).unwrap();
        file.set_len(3 << 20).unwrap();
        let data = next_data(&file, 0).unwrap();
        // A hole begins and ends at a block of the file system.
        assert!(data.contains(&(1 << 20)) && data.contains(&((1 << 20) + 4999)));
        assert!(data.end - data.start < 100_000, "{data:?}");
        assert_eq!(
            next_data(&file, data.start + 7).unwrap().start,
            data.start + 7
        );
        for offset in [data.end, 4 << 20] {
            assert_eq!(next_data(&file, offset).unwrap(), 3 << 20..3 << 20);
        }
    }
}
