//! The calls that send and receive.

use std::ffi::{c_char, c_int, c_longlong};

use titin_runtime::Result;

use crate::error::usage;
use crate::input;
use crate::mpwide::area::Area;
use crate::mpwide::dynamic::exchange_any;
use crate::mpwide::ending;
use crate::mpwide::memory::ExactMemory;
use crate::mpwide::table::{Carrier, table};
use crate::mpwide::transfer::{self, Posted, messages, wait_for_all};

/// A list of channels. NULL stands for the first ones: `int *channel = {0}` in programs of MPWide is NULL.
///
/// # Safety
/// `channels` is NULL or points to `count` numbers.
pub(super) unsafe fn channel_list(channels: *const c_int, count: c_int) -> Result<Vec<c_int>> {
    if channels.is_null() {
        return Ok((0..count).collect());
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { input::list(channels, count, "channels") }?.to_vec())
}

/// The open connections of a list of channels.
///
/// # Safety
/// As [`channel_list`].
unsafe fn carriers(channels: *const c_int, count: c_int) -> Result<Vec<Carrier>> {
    // SAFETY: as the caller promises.
    let channels = unsafe { channel_list(channels, count) }?;
    table().carriers(&channels)
}

/// A message by one connection. No bytes are no message, as in MPWide.
pub(super) fn one(carrier: &Carrier, area: Area) -> Vec<(Carrier, Area)> {
    let carriers = std::slice::from_ref(carrier);
    split(carriers, area)
}

/// A message by several connections, a piece each. No bytes are no message. Of a few bytes some pieces are empty
/// messages, so that the ends find out when they give different sizes.
fn split(carriers: &[Carrier], area: Area) -> Vec<(Carrier, Area)> {
    if area.length == 0 {
        return Vec::new();
    }
    let pieces = area.pieces(carriers.len());
    carriers.iter().cloned().zip(pieces).collect()
}

/// Sends by some connections and receives by some.
///
/// # Safety
/// The bytes do not change, and no other code uses the memory, until the call returns.
unsafe fn exchange(sends: Vec<(Carrier, Area)>, receives: Vec<(Carrier, Area)>) -> Result<()> {
    // SAFETY: as the caller promises.
    let (outgoing, incoming) = unsafe { messages(sends, receives) }?;
    transfer::transfer(outgoing, incoming)
}

/// Memory for a call that only sends or only receives.
fn nothing() -> Vec<(Carrier, Area)> {
    Vec::new()
}

/// # Safety
/// `bytes` is NULL or points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_send_path(bytes: *mut c_char, size: c_longlong, path: c_int) {
    ending("MPW_Send", || {
        let carrier = table().carrier_of_path(path)?;
        let sends = one(&carrier, Area::new(bytes, size)?);
        // SAFETY: as the caller promises.
        unsafe { exchange(sends, nothing()) }
    });
}

/// # Safety
/// `memory` is NULL or points to `size` writable bytes, which no other code uses meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_recv_path(memory: *mut c_char, size: c_longlong, path: c_int) {
    ending("MPW_Recv", || {
        let carrier = table().carrier_of_path(path)?;
        let receives = one(&carrier, Area::new(memory, size)?);
        // SAFETY: as the caller promises.
        unsafe { exchange(nothing(), receives) }
    });
}

/// # Safety
/// As of `titin_mpw_send_path` and `titin_mpw_recv_path`. The two places may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_sendrecv_path(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    path: c_int,
) {
    ending("MPW_SendRecv", || {
        let carrier = table().carrier_of_path(path)?;
        let sends = one(&carrier, Area::new(bytes, size)?);
        let receives = one(&carrier, Area::new(memory, room)?);
        // SAFETY: as the caller promises.
        unsafe { exchange(sends, receives) }
    });
}

/// # Safety
/// As of `titin_mpw_sendrecv_path`.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_dsendrecv_path(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    path: c_int,
) -> c_int {
    ending("MPW_DSendRecv", || {
        let carriers = vec![table().carrier_of_path(path)?];
        let (bytes, room) = (Area::new(bytes, size)?, Area::new(memory, room)?);
        let most = c_int::MAX as u64;
        // SAFETY: as the caller promises.
        let length = unsafe { exchange_any((carriers.clone(), bytes), (carriers, room), most) }?;
        Ok(length as c_int)
    })
}

/// # Safety
/// `bytes` is NULL or points to `size` bytes; `channels` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_send(
    bytes: *mut c_char,
    size: c_longlong,
    channels: *const c_int,
    count: c_int,
) {
    // SAFETY: as the caller promises.
    ending("MPW_Send", || unsafe {
        let carriers = carriers(channels, count)?;
        exchange(split(&carriers, Area::new(bytes, size)?), nothing())
    });
}

/// # Safety
/// `memory` is NULL or points to `size` writable bytes, which no other code uses meanwhile; `channels` is NULL or points to
/// `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_recv(
    memory: *mut c_char,
    size: c_longlong,
    channels: *const c_int,
    count: c_int,
) {
    // SAFETY: as the caller promises.
    ending("MPW_Recv", || unsafe {
        let carriers = carriers(channels, count)?;
        exchange(nothing(), split(&carriers, Area::new(memory, size)?))
    });
}

/// # Safety
/// As of `titin_mpw_send` and `titin_mpw_recv`. The two places may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_sendrecv(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    channels: *const c_int,
    count: c_int,
) {
    // SAFETY: as the caller promises.
    ending("MPW_SendRecv", || unsafe {
        let carriers = carriers(channels, count)?;
        let (bytes, room) = (Area::new(bytes, size)?, Area::new(memory, room)?);
        exchange(split(&carriers, bytes), split(&carriers, room))
    });
}

/// # Safety
/// As of `titin_mpw_sendrecv`.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_dsendrecv(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    channels: *const c_int,
    count: c_int,
) -> c_longlong {
    // SAFETY: as the caller promises.
    ending("MPW_DSendRecv", || unsafe {
        let carriers = carriers(channels, count)?;
        let (bytes, room) = (Area::new(bytes, size)?, Area::new(memory, room)?);
        let length = exchange_any((carriers.clone(), bytes), (carriers, room), u64::MAX)?;
        Ok(length as c_longlong)
    })
}

/// # Safety
/// As of `titin_mpw_sendrecv`, for the two lists of channels.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_cycle(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    to: *const c_int,
    to_count: c_int,
    from: *const c_int,
    from_count: c_int,
) {
    // SAFETY: as the caller promises.
    ending("MPW_Cycle", || unsafe {
        let (to, from) = (carriers(to, to_count)?, carriers(from, from_count)?);
        let (bytes, room) = (Area::new(bytes, size)?, Area::new(memory, room)?);
        exchange(split(&to, bytes), split(&from, room))
    });
}

/// # Safety
/// As of `titin_mpw_cycle`.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_dcycle(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    to: *const c_int,
    to_count: c_int,
    from: *const c_int,
    from_count: c_int,
) -> c_longlong {
    // SAFETY: as the caller promises.
    ending("MPW_DCycle", || unsafe {
        let (to, from) = (carriers(to, to_count)?, carriers(from, from_count)?);
        let (bytes, room) = (Area::new(bytes, size)?, Area::new(memory, room)?);
        let length = exchange_any((to, bytes), (from, room), u64::MAX)?;
        Ok(length as c_longlong)
    })
}

/// A message for each channel, from or to a place of its own. The messages of a path go one after the other.
///
/// # Safety
/// `places` and `sizes` are NULL or point to `count` entries each.
unsafe fn scattered(
    carriers: &[Carrier],
    places: *const *mut c_char,
    sizes: *const c_longlong,
    count: c_int,
) -> Result<Vec<(Carrier, Area)>> {
    // SAFETY: as the caller promises.
    let (places, sizes) = unsafe {
        (
            input::list(places, count, "buffers")?,
            input::list(sizes, count, "sizes")?,
        )
    };
    let mut messages = Vec::new();
    for (number, (place, size)) in places.iter().zip(sizes).enumerate() {
        let carrier = carriers.get(number).unwrap_or(&carriers[0]);
        messages.extend(one(carrier, Area::new(*place, *size)?));
    }
    Ok(messages)
}

/// # Safety
/// The lists are NULL or point to `count` entries each. Each place is NULL or points to as many bytes as its size says; no
/// other code uses those to receive into meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_psendrecv(
    bytes: *const *mut c_char,
    sizes: *const c_longlong,
    memory: *const *mut c_char,
    rooms: *const c_longlong,
    channels: *const c_int,
    count: c_int,
) {
    // SAFETY: as the caller promises.
    ending("MPW_PSendRecv", || unsafe {
        let carriers = carriers(channels, count)?;
        exchange(
            scattered(&carriers, bytes, sizes, count)?,
            scattered(&carriers, memory, rooms, count)?,
        )
    });
}

/// # Safety
/// Both lists are NULL or point to `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_relay(one: *const c_int, other: *const c_int, count: c_int) {
    // SAFETY: as the caller promises.
    ending("MPW_Relay", || unsafe {
        let (one, other) = (carriers(one, count)?, carriers(other, count)?);
        if one.len() != other.len() {
            return Err(usage(
                "one list of channels is a path and the other one is not: give two paths, or channels of MPW_Init twice",
            ));
        }
        let relays = one.iter().zip(&other).map(|(one, other)| {
            let request = one.path.post_relay(&other.path);
            Posted::new(one, request)
        });
        wait_for_all(&relays.collect::<Vec<_>>())
    });
}

/// An empty message each way, which also goes through a relay.
#[unsafe(no_mangle)]
extern "C" fn titin_mpw_barrier(channel: c_int) {
    ending("MPW_Barrier", || {
        let table = table();
        let carrier = table.carrier(table.first_of_channel(channel)?)?;
        drop(table);
        transfer::exchange(&carrier, &[], ExactMemory(&mut []))?;
        Ok(())
    });
}
