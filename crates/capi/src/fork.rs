//! Forks: a forked child keeps nothing of its parent's instances but the messages that the parent had.

use std::sync::Once;

use crate::error::caught;

/// From now on forked children close the descriptors of the parent's instances, and blocks of shared memory that a child
/// sees are not used again while the child lives.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers may run around a fork. If there is no memory to register them, children keep descriptors.
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
            // SAFETY: the descriptor was made for this fork, and the child has a copy of its own.
            unsafe { libc::close(descriptor) };
        }
        Ok(())
    });
}

/// Runs in the child. Only calls that are safe in a signal handler may be made there: atomics and `close`.
unsafe extern "C" fn in_child() {
    for descriptor in titin_runtime::fork_child() {
        // SAFETY: the descriptors are the runtime's, whose instances are dead in this process.
        unsafe { libc::close(descriptor) };
    }
}
