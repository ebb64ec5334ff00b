//! Sending.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::{Kind, Payload, Result};

use crate::array::Arguments;
use crate::error::null;
use crate::handle::{Port, on_port};
use crate::input;
use crate::value::{Node, Value, encode};

/// What goes with every send.
pub(crate) struct Stamps {
    pub(crate) slot: c_int,
    pub(crate) timestamp: f64,
    pub(crate) next: f64,
    pub(crate) settings: *const Value,
}

/// # Safety
/// The overlay is NULL or a value.
pub(crate) unsafe fn send(port: &Port, payload: &Payload<'_>, stamps: &Stamps) -> Result<()> {
    let slot = input::slot(stamps.slot, port.name())?;
    // SAFETY: as the caller promises.
    let overlay = unsafe { stamps.settings.as_ref() }
        .map(Value::to_overlay)
        .transpose()?;
    let next = input::next(stamps.next);
    let sent = port.shared.instance.send(
        port.id,
        slot,
        payload,
        stamps.timestamp,
        next,
        overlay.as_ref(),
    );
    // A closed port ends a loop that receives; a message that nobody takes is lost.
    sent.inspect_err(|error| {
        if error.kind == Kind::PortClosed {
            port.shared.hold(error);
        }
    })
}

/// # Safety
/// `port` is NULL or a port; the arguments describe an array, as the header says.
unsafe fn send_described(port: *mut Port, arguments: Arguments, stamps: &Stamps) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            if port.shared.instance.rank() > 0 {
                // Rank 0 sends; the others need not have the data.
                if !arguments.data.is_null() {
                    arguments.read()?;
                }
                return send(port, &Payload::nil(), stamps);
            }
            let mut described = arguments.read()?;
            let elements = described.elements()?;
            send(
                port,
                &Payload::array(described.form(), elements.as_ref()),
                stamps,
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
    let arguments = Arguments {
        dtype,
        rank,
        extents,
        strides,
        order: 0,
        names,
        data,
    };
    let stamps = Stamps {
        slot,
        timestamp,
        next,
        settings: std::ptr::null(),
    };
    // SAFETY: as the caller promises.
    unsafe { send_described(port, arguments, &stamps) }
}

/// # Safety
/// `port` is NULL or a port; the arguments describe an array, as the header says; `settings` is NULL or a value.
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
    let arguments = Arguments {
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
            &Stamps {
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
            send(
                port,
                &Payload::nil(),
                &Stamps {
                    slot,
                    timestamp,
                    next,
                    settings,
                },
            )
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
    let stamps = Stamps {
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
                Node::Nil => send(port, &Payload::nil(), &stamps),
                Node::Array(array) => send(
                    port,
                    &Payload::array(&array.layout, array.data.as_ref()),
                    &stamps,
                ),
                _ => {
                    let plain = data.plain();
                    send(port, &Payload::structure(&encode(&plain)?), &stamps)
                }
            }
        })
    }
}
