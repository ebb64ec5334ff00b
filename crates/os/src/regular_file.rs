//! Regular files in folders into which others may have put anything.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a link in the place of a file is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file behind the link is opened.
    Followed,
    /// A link is an error.
    Refused,
}

/// Opens a file to read it; `None` for a pipe, a device or a folder. Never waits for another process, as the opening of
/// a pipe does.
///
/// # Errors
/// If there is no such file, if it is a link that is refused, or if the system refuses.
pub fn open(path: &Path, links: Links) -> io::Result<Option<File>> {
    let flags = match links {
        Links::Followed => OFlags::NONBLOCK,
        Links::Refused => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}
