//! Sending.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::{CallerLayout, Error, Kind, Payload, Result};

use crate::array::ArrayArguments;
use crate::error::null;
use crate::handle::{Port, on_port};
use crate::input;
use crate::value::{Node, Value, encode};

/// The arguments common to all calls that send.
pub(crate) struct SendArguments {
    pub(crate) slot: c_int,
    pub(crate) timestamp: f64,
    pub(crate) next: f64,
    pub(crate) settings: *const Value,
}

/// # Safety
/// The overlay is NULL or a value.
#[inline(always)]
pub(crate) unsafe fn send(port: &Port, payload: &Payload<'_>, with: &SendArguments) -> Result<()> {
    let slot = input::slot(with.slot, port.name())?;
    // SAFETY: as the caller promises.
    let overlay = unsafe { with.settings.as_ref() }
        .map(Value::to_overlay)
        .transpose()?;
    let next = input::next(with.next);
    let sent = port.shared.instance.send(
        port.id,
        slot,
        payload,
        with.timestamp,
        next,
        overlay.as_ref(),
    );
    sent.inspect_err(|error| hold_if_closed(port, error))
}

/// Sends an array by the short way of a message like the last on its slot; `None` if the call needs
/// more.
///
/// # Safety
/// The arguments describe an array, as the header says.
#[inline(always)]
unsafe fn send_array_repeated(
    port: &Port,
    arguments: &ArrayArguments,
    with: &SendArguments,
) -> Option<Result<()>> {
    // SAFETY: as the caller promises.
    let layout = unsafe { arguments.caller_layout() }?;
    let elements = |bytes| match bytes {
        0 => Some(&[][..]),
        _ if arguments.data.is_null() => None,
        // SAFETY: the array has the layout of an array that was sent before, so its bytes are as many,
        // and may be read, as the caller promises.
        bytes => Some(unsafe { std::slice::from_raw_parts(arguments.data.cast(), bytes) }),
    };
    send_repeated(port, Some(&layout), elements, with)
}

/// Sends an array with this layout, or no data without a layout, by the short way; `None` if the call
/// needs more.
#[inline(always)]
fn send_repeated<'a>(
    port: &Port,
    layout: Option<&CallerLayout<'_>>,
    elements: impl FnOnce(usize) -> Option<&'a [u8]>,
    with: &SendArguments,
) -> Option<Result<()>> {
    if !with.settings.is_null() {
        return None;
    }
    // The long way reports a wrong slot.
    let slot = input::slot(with.slot, port.name()).ok()?;
    let times = (with.timestamp, input::next(with.next));
    let instance = &port.shared.instance;
    let sent = instance.send_repeated(port.id, slot, layout, elements, times)?;
    Some(sent.inspect_err(|error| hold_if_closed(port, error)))
}

/// Keeps the error of a closed port. For a call that receives, a closed port is the end of a loop. A
/// call that sends loses a message, so the error sticks.
#[cold]
fn hold_if_closed(port: &Port, error: &Error) {
    if error.kind == Kind::PortClosed {
        port.shared.hold(error);
    }
}

/// # Safety
/// `port` is NULL or a port; the arguments describe an array, as the header says.
pub(crate) unsafe fn send_described(
    port: *mut Port,
    arguments: ArrayArguments,
    with: &SendArguments,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            if let Some(sent) = send_array_repeated(port, &arguments, with) {
                return sent;
            }
            if port.shared.instance.rank() > 0 {
                // Rank 0 sends. The other ranks need not have the data.
                if !arguments.data.is_null() {
                    arguments.read()?;
                }
                return send(port, &Payload::nil(), with);
            }
            if let Some((form, elements)) = arguments.plain()? {
                return send(port, &Payload::array(form, elements), with);
            }
            let mut described = arguments.read()?;
            let elements = described.elements()?;
            send(
                port,
                &Payload::array(described.form(), elements.as_ref()),
                with,
            )
        })
    }
}

/// # Safety
/// `port` is NULL or a port; `extents` and `data` describe an array, as the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send(
    port: *mut Port,
    slot: c_int,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    data: *const c_void,
    timestamp: f64,
    next: f64,
) -> c_int {
    let (strides, names) = (std::ptr::null(), std::ptr::null());
    let arguments = ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order: 0,
        names,
        data,
    };
    let with = SendArguments {
        slot,
        timestamp,
        next,
        settings: std::ptr::null(),
    };
    // SAFETY: as the caller promises.
    unsafe { send_described(port, arguments, &with) }
}

/// # Safety
/// `port` is NULL or a port; the arguments describe an array, as the header says; `settings` is
/// NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_array(
    port: *mut Port,
    slot: c_int,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    names: *const *const c_char,
    data: *const c_void,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    let arguments = ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names,
        data,
    };
    // SAFETY: as the caller promises.
    unsafe {
        send_described(
            port,
            arguments,
            &SendArguments {
                slot,
                timestamp,
                next,
                settings,
            },
        )
    }
}

/// # Safety
/// `port` is NULL or a port; `settings` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_nil(
    port: *mut Port,
    slot: c_int,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            let with = SendArguments {
                slot,
                timestamp,
                next,
                settings,
            };
            let sent = send_repeated(port, None, |_| Some(&[]), &with);
            sent.unwrap_or_else(|| send(port, &Payload::nil(), &with))
        })
    }
}

/// # Safety
/// `port` is NULL or a port; `data` and `settings` are NULL or values.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_value(
    port: *mut Port,
    slot: c_int,
    data: *const Value,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    let with = SendArguments {
        slot,
        timestamp,
        next,
        settings,
    };
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            let data = data
                .as_ref()
                .ok_or_else(|| null("value", "a titin_new_ call"))?;
            match &data.0 {
                Node::Nil => send(port, &Payload::nil(), &with),
                Node::Array(array) => send(
                    port,
                    &Payload::array(&array.layout, array.data.as_ref()),
                    &with,
                ),
                _ => {
                    let plain = data.plain();
                    send(port, &Payload::structure(&encode(&plain)?), &with)
                }
            }
        })
    }
}
