//! What a program of MPWide sets and asks, and how it splits its memory.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_double, c_int, c_longlong};
use std::net::{IpAddr, ToSocketAddrs as _};

use titin_runtime::Result;

use crate::error::{c_text, usage};
use crate::input;
use crate::mpwide::area::Area;
use crate::mpwide::ending;
use crate::mpwide::table::{Table, table};

thread_local! {
    /// The last text that a call of this thread has returned.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps a text for the program until the thread's next text.
fn kept(text: &str) -> *mut c_char {
    TEXT.with_borrow_mut(|kept| {
        *kept = c_text(text);
        kept.as_ptr().cast_mut()
    })
}

/// # Safety
/// `host` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_dns_resolve(host: *const c_char) -> *mut c_char {
    ending("MPW_DNSResolve", || {
        // SAFETY: as the caller promises.
        let host = unsafe { input::text(host, "host") }?;
        let unknown = |why: &dyn std::fmt::Display| usage(format!("the host '{host}': {why}"));
        let found = (host, 0).to_socket_addrs().map_err(|why| unknown(&why))?;
        let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        let address = addresses.iter().find(|address| address.is_ipv4());
        let address = address.or(addresses.first());
        let address = address.ok_or_else(|| unknown(&"it has no address"))?;
        Ok(kept(&address.to_string()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_description() -> *const c_char {
    ending(
        "MPW_Print",
        || Ok(kept(&table().description()).cast_const()),
    )
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_num_channels() -> c_int {
    ending("MPW_NumChannels", || {
        let table = table();
        let streams = table.connections.values();
        Ok(streams
            .map(|connection| connection.route.streams as c_int)
            .sum())
    })
}

/// Sets the size of buffers of a connection that is opened later.
fn set_buffers(size: c_int, first: impl FnOnce(&Table) -> Result<c_int>) -> Result<()> {
    let mut table = table();
    let first = first(&table)?;
    if let Some(connection) = table.connections.get_mut(&first) {
        connection.buffers = u64::try_from(size).ok().filter(|size| *size > 0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_set_win(channel: c_int, size: c_int) {
    ending("MPW_setWin", || {
        set_buffers(size, |table| table.first_of_channel(channel))
    });
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_set_path_win(path: c_int, size: c_int) {
    ending("MPW_setPathWin", || {
        set_buffers(size, |table| table.first_of_path(path))
    });
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_pacing_rate() -> c_double {
    ending("MPW_getPacingRate", || Ok(table().pacing.unwrap_or(-1.0)))
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_set_pacing_rate(rate: c_double) {
    ending("MPW_setPacingRate", || {
        if !rate.is_finite() {
            return Err(usage(format!(
                "the rate is {rate}: give bytes per second, or -1 for no limit"
            )));
        }
        table().pacing = (rate > 0.0).then_some(rate);
        Ok(())
    });
}

/// # Safety
/// `pieces` and `sizes` are NULL or point to `count` writable entries each.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_split_buf(
    bytes: *mut c_char,
    size: c_longlong,
    count: c_int,
    pieces: *mut *mut c_char,
    sizes: *mut c_longlong,
) {
    ending("MPW_splitBuf", || {
        if count < 1 {
            return Err(usage(format!("{count} pieces: give 1 or more")));
        }
        // SAFETY: as the caller promises.
        let (pieces, sizes) = unsafe {
            (
                input::list_mut(pieces, count, "pieces")?,
                input::list_mut(sizes, count, "sizes of pieces")?,
            )
        };
        let areas = Area::new(bytes, size)?.pieces(count as usize);
        for ((area, piece), size) in areas.into_iter().zip(pieces).zip(sizes) {
            *piece = area.address();
            *size = area.length as c_longlong;
        }
        Ok(())
    });
}
