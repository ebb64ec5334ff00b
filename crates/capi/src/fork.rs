//! Forks: a forked child keeps nothing of the parent's instances except the messages of the parent.

use std::sync::Once;

use crate::error::caught;

/// Prepares for forks. From now on forked children close the descriptors of the parent's instances.
/// A block of shared memory that a child sees is not used again while the child lives.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers may run around a fork. If there is no memory to register the
        // handlers, children keep descriptors.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Runs in the parent before the fork. Anything may be done there but a fork.
unsafe extern "C" fn before() {
    let _ = caught(|| {
        titin_runtime::before_fork();
        Ok(())
    });
}

/// As [`before`].
unsafe extern "C" fn in_parent() {
    let _ = caught(|| {
        if let Some(descriptor) = titin_runtime::after_fork() {
            // SAFETY: the descriptor was made for this fork, and the child has a copy of the
            // descriptor.
            unsafe { libc::close(descriptor) };
        }
        Ok(())
    });
}

/// Runs in the child. Only calls that are safe in a signal handler are allowed: atomics and
/// `close`.
unsafe extern "C" fn in_child() {
    for descriptor in titin_runtime::fork_child() {
        // SAFETY: the descriptors belong to the runtime, and the runtime's instances are dead in
        // this process.
        unsafe { libc::close(descriptor) };
    }
}
