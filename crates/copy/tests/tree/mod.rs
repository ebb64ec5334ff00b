//! Trees of files, and two ends of a path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use titin_path::{Key, Listener, Path as MessagePath, PathSettings};

/// Files by their paths: permissions with the kind, time (seconds and nanoseconds), and content.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

pub(crate) fn pair() -> (MessagePath, MessagePath) {
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let here =
        MessagePath::open(&[listener.address()], "", &key, &PathSettings::default()).unwrap();
    (here, listener.accept(None).unwrap())
}

/// All that is below a directory: kind, permissions, time and content of each.
pub(crate) fn tree(root: &Path) -> Tree {
    try_tree(root).unwrap()
}

/// As [`tree`], of a directory that perhaps changes meanwhile.
pub(crate) fn try_tree(root: &Path) -> io::Result<Tree> {
    let mut found = BTreeMap::new();
    let mut next = vec![root.to_owned()];
    while let Some(path) = next.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        let content = if metadata.is_dir() {
            for item in fs::read_dir(&path)? {
                next.push(item?.path());
            }
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)?.into_os_string().into_vec()
        } else {
            fs::read(&path)?
        };
        let name = path.strip_prefix(root).expect("it is below").to_owned();
        let time = (metadata.mtime(), metadata.mtime_nsec());
        found.insert(name, (metadata.mode(), time.0, time.1, content));
    }
    Ok(found)
}

/// Bytes without a pattern that a wrong offset would keep.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |state: &mut u64| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8))
        .flat_map(|_| step(&mut state))
        .collect();
    bytes.truncate(length);
    bytes
}
