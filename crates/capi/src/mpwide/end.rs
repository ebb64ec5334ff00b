//! The ends of connections, and of the program.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use titin_path::Path;
use titin_runtime::Result;

use crate::error::{caught, usage};
use crate::mpwide::calls::channel_list;
use crate::mpwide::connection::Connection;
use crate::mpwide::table::{Table, free_table, table};
use crate::mpwide::{complain, ending, exchanges, number};
use crate::path::located;

/// How long the end of a program waits for the arrival of its last messages, and that of a program with an error.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_AFTER_ERROR: Duration = Duration::from_secs(2);

/// Whether an error ends the program.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Ends the program after an error.
pub(super) fn end_program() -> ! {
    if HAS_FAILED.swap(true, Ordering::SeqCst) {
        // Another thread ends the program: only one may call `exit`.
        loop {
            std::thread::park();
        }
    }
    // SAFETY: no other thread comes here.
    unsafe { libc::exit(1) }
}

/// From now on the end of the program closes the connections that are open, so that the last messages arrive.
pub(super) fn close_at_exit() {
    static ONCE: Once = Once::new();
    // SAFETY: the function may be called at the end of the program.
    ONCE.call_once(|| _ = unsafe { libc::atexit(close_all_at_exit) });
}

extern "C" fn close_all_at_exit() {
    let patience = match HAS_FAILED.load(Ordering::SeqCst) {
        true => PATIENCE_AFTER_ERROR,
        false => PATIENCE,
    };
    let _ = caught(|| {
        titin_runtime::not_forked()?;
        let until = Instant::now() + patience;
        // A thread that was in the middle of a call may have the table.
        let paths = free_table().map_or_else(Vec::new, |mut table| unused_paths(&mut table));
        for path in paths {
            let _ = path.close(Some(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    });
}

/// Takes the paths of titin that no call uses.
fn unused_paths(table: &mut Table) -> Vec<Path> {
    let connections = table.connections.values_mut();
    connections
        .filter_map(|connection| take_path(connection, "").ok().flatten())
        .collect()
}

/// Takes the path of titin of a connection, if it is open. The table is held, so no call begins to use the path.
fn take_path(connection: &mut Connection, label: &str) -> Result<Option<Path>> {
    let Some(shared) = connection.path.take() else {
        return Ok(None);
    };
    match std::sync::Arc::try_unwrap(shared) {
        Ok(path) => Ok(Some(path)),
        Err(shared) => {
            connection.path = Some(shared);
            Err(usage(format!(
                "a call of another thread uses {label}: wait until it has returned"
            )))
        }
    }
}

/// Closes a connection, by its first channel: waits until the other end has all messages.
fn close(first: c_int) -> Result<()> {
    let mut known = table();
    let Some(connection) = known.connections.get_mut(&first) else {
        return Ok(());
    };
    let label = connection.label(first);
    let path = take_path(connection, &label)?;
    drop(known);
    match path {
        Some(path) => path.close(None).map_err(|why| located(&label, why)),
        None => Ok(()),
    }
}

/// # Safety
/// `channels` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_close_channels(channels: *const c_int, count: c_int) {
    const CALL: &str = "MPW_CloseChannels";
    ending(CALL, || {
        // SAFETY: as the caller promises.
        let channels = unsafe { channel_list(channels, count) }?;
        let firsts = table().firsts(&channels)?;
        for first in firsts {
            // The channel is closed all the same, and may be opened again.
            close(first).unwrap_or_else(|why| complain(CALL, &why));
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_destroy_path(path: c_int) -> c_int {
    number("MPW_DestroyPath", || {
        let first = table().first_of_path(path)?;
        let closed = close(first);
        let mut table = table();
        let is_closed = |connection: &Connection| connection.path.is_none();
        if table.connections.get(&first).is_some_and(is_closed) {
            table.remove(first);
        }
        closed.map(|()| 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_finalize() -> c_int {
    const CALL: &str = "MPW_Finalize";
    number(CALL, || {
        let firsts: Vec<c_int> = table().connections.keys().copied().collect();
        let mut status = 0;
        for first in firsts {
            if let Err(why) = close(first) {
                complain(CALL, &why);
                status = -1;
            }
        }
        exchanges::forget_all();
        table().remove_closed();
        Ok(status)
    })
}
