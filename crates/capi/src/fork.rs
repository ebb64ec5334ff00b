//! A forked child keeps nothing of its parent's instances, but for the messages that it sees.

use std::sync::Once;

use crate::error::caught;

/// Sees to it that children forked from now on close what the parent holds, and that shared memory which they see stays as
/// it is.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers may run around a fork; without memory for them children keep descriptors, nothing worse.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Runs in the parent, where anything may be done but to fork.
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
            // SAFETY: it was made for this fork, and the child has its own.
            unsafe { libc::close(descriptor) };
        }
        Ok(())
    });
}

/// Runs in the child, where only calls that are safe in a signal handler may be made: atomics and `close`.
unsafe extern "C" fn in_child() {
    for descriptor in titin_runtime::fork_child() {
        // SAFETY: the descriptors are the runtime's, whose instances are dead in this process.
        unsafe { libc::close(descriptor) };
    }
}
