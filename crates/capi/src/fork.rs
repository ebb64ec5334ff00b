//! A forked child keeps nothing of its parent's instances.

use std::sync::Once;

/// Sees to it that children forked from now on close what the parent holds.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler may run after a fork; without memory for it children keep descriptors, nothing worse.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Runs in the child, where only calls that are safe in a signal handler may be made: atomics and `close`.
unsafe extern "C" fn in_child() {
    for descriptor in titin_runtime::fork_child() {
        // SAFETY: the descriptors are the runtime's, whose instances are dead in this process.
        unsafe { libc::close(descriptor) };
    }
}
