//! A process has one copy of titin, and the children that the process forks have none.

use std::sync::OnceLock;

use titin_os::{Descriptor, descriptors};

use crate::{Error, Kind, Result};

/// Keeps the mark open. By the mark another copy of the runtime would notice this copy.
static MARK: OnceLock<Descriptor> = OnceLock::new();

/// Called in the child after a fork. Gives the descriptors for the child to close.
///
/// Takes no lock and allocates nothing, so the function may run in a `pthread_atfork` handler.
pub fn fork_child() -> impl Iterator<Item = i32> {
    descriptors::take_all()
}

/// Refuses calls in a forked child: only the parent's process can use the instances.
///
/// # Errors
/// [`Kind::Forked`] in a child forked from a process that uses titin.
pub fn not_forked() -> Result<()> {
    if forked() {
        Err(forked_error())
    } else {
        Ok(())
    }
}

/// Whether this process is a child forked from a process with titin.
pub(crate) fn forked() -> bool {
    descriptors::forked()
}

fn forked_error() -> Error {
    Error::new(
        Kind::Forked,
        "this process was forked from one that uses titin: the instance stays with the parent; open instances after \
         forking, or start the child as a new program (multiprocessing: the \"spawn\" method)",
    )
}

/// Refuses a second copy of the runtime in one process: both copies would act as the instance.
///
/// The mark is a named memory file. Any copy finds the file among the process's descriptors.
pub(super) fn mark() -> Result<()> {
    if MARK.get().is_some() {
        return Ok(());
    }
    let name = format!("titin-runtime-{}", std::process::id());
    let wanted = format!("/memfd:{name}");
    let taken = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|target| target.to_string_lossy().starts_with(&wanted))
        });
    if taken {
        return Err(Error::new(
            Kind::Usage,
            "another copy of titin's library is in use in this process; link only one libtitin.so (see `titin config \
             --libs`), the one that the Python package brings, and no static copy beside it",
        ));
    }
    if let Ok(descriptor) = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC) {
        let _ = MARK.set(descriptor.into());
    }
    Ok(())
}
