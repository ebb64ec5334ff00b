//! The services of the operating system for titin: locks of folders, files with secrets, regular files, the resources of this host,
//! descriptors for a forked child to close, memory still in sight of forked children, options of
//! sockets, and times for system calls.
//!
//! This crate knows Linux and nothing of titin: no frames, no conduits, no instances.
//!
//! ```
//! let folder = std::env::temp_dir().join(format!("titin-os-example-{}", std::process::id()));
//! let lock = titin_os::folder_lock::enter(&folder, "titin-os-example-").unwrap();
//! assert!(folder.exists());
//! titin_os::folder_lock::leave(&folder, lock);
//! assert!(!folder.exists());
//! ```

#![forbid(unsafe_code)]

pub mod descriptors;
pub mod folder_lock;
pub mod forks;
pub mod host;
pub mod private_file;
pub mod process_use;
pub mod regular_file;
pub mod sockets;
pub mod threads;
pub mod time;

pub use descriptors::Descriptor;
