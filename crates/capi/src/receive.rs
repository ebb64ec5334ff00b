//! Receiving.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Error, IncomingMessage, NoteCall, ReceivedAtOnce, ReceivedFrom, Result};

use crate::array::ArrayArguments;
use crate::error::{keep, usage};
use crate::handle::{Port, on_port, port};
use crate::input;
use crate::message::Message;
use crate::port_set::PortSet;

/// Runs a call that receives, and writes the message. Without a message, writes NULL.
///
/// # Safety
/// `handle` is NULL or a port; `out` is NULL or may be written.
unsafe fn receive(
    handle: *mut Port,
    out: *mut *mut Message,
    body: impl FnOnce(&Port) -> Result<Option<Box<Message>>>,
) -> c_int {
    // SAFETY: as the caller promises.
    let out = unsafe { input::out(out, "the message") };
    let out = out.map(|out| {
        *out = std::ptr::null_mut();
        out
    });
    // SAFETY: as the caller promises.
    unsafe {
        on_port(handle, |port| {
            let out = out?;
            if let Some(message) = body(port)? {
                *out = Box::into_raw(message);
            }
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a port; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_receive(
    handle: *mut Port,
    slot: c_int,
    timeout: f64,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        receive(handle, out, |port| {
            let (slot, patience) = (input::slot(slot, port.name())?, input::patience(timeout)?);
            match Message::spare().receive_repeated(port, slot, true) {
                Ok(received) => received.map(Some),
                Err(memory) => {
                    let received = port.shared.instance.receive(port.id, slot, patience)?;
                    Ok(Some(memory.holding(received, port, slot)))
                }
            }
        })
    }
}

/// # Safety
/// `handle` is NULL or a port; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_try_receive(
    handle: *mut Port,
    slot: c_int,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        receive(handle, out, |port| {
            let slot = input::slot(slot, port.name())?;
            match Message::spare().receive_repeated(port, slot, false) {
                Ok(received) => received.map(Some),
                Err(memory) => match port.shared.instance.try_receive(port.id, slot)? {
                    Some(received) => Ok(Some(memory.holding(received, port, slot))),
                    None => {
                        memory.keep_memory();
                        Ok(None)
                    }
                },
            }
        })
    }
}

/// # Safety
/// `ports` is NULL or points to `count` ports; `index`, `slot` and `out` are NULL or may be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_receive_any(
    ports: *const *const Port,
    count: c_int,
    timeout: f64,
    index: *mut c_int,
    slot: *mut c_int,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        input::preset(index, 0);
        input::preset(slot, -1);
    }
    // SAFETY: as the caller promises.
    let found = unsafe { input::list(ports, count, "ports") }.and_then(|ports| {
        ports
            .first()
            .map(|first| (ports, *first))
            .ok_or_else(no_port)
    });
    let (ports, first) = match found {
        Ok(found) => found,
        Err(error) => return keep(error),
    };
    // SAFETY: as the caller promises.
    unsafe {
        receive(first.cast_mut(), out, |first| {
            let index = input::out(index, "the port's place")?;
            let slot = input::out(slot, "the slot")?;
            let set = port_set(first, ports)?;
            let patience = input::patience(timeout)?;
            let instance = &first.shared.instance;
            let mut memory = Message::spare();
            let (message, at, number) =
                match instance.receive_from_repeated(&set.choice, memory.arrived_mut()) {
                    Some(received) => {
                        let ReceivedFrom {
                            index,
                            slot,
                            message,
                        } = received?;
                        (message, index, slot)
                    }
                    None => {
                        let (id, slot, message) = instance.receive_from(&set.choice, patience)?;
                        let (at, vector) = set.ports[&id];
                        (ReceivedAtOnce::Other(message), at, vector.then_some(slot))
                    }
                };
            // `port_set` has looked at all these ports.
            let port = port(ports[at])?;
            *index = at as c_int;
            *slot = input::slot_number(number);
            Ok(Some(memory.received_at_once(message, port, number)))
        })
    }
}

/// The set of the ports `handles`. The set of the last call serves again, if the last call had the
/// same ports.
///
/// # Safety
/// All are NULL or ports.
unsafe fn port_set(first: &Port, handles: &[*const Port]) -> Result<Arc<PortSet>> {
    let mut last = first.shared.last_ports();
    if let Some(known) = last.as_ref().filter(|known| known.is_of(handles)) {
        return Ok(known.clone());
    }
    // SAFETY: as the caller promises.
    let ports: Vec<&Port> = handles
        .iter()
        .map(|handle| unsafe { port(*handle) })
        .collect::<Result<_>>()?;
    if ports
        .iter()
        .any(|port| !Arc::ptr_eq(&port.shared, &first.shared))
    {
        return Err(usage("receive_any was given ports of several instances"));
    }
    let ids: Vec<_> = ports.iter().map(|port| port.id).collect();
    let set = PortSet::new(&first.shared.instance, handles, &ids)?;
    Ok(last.insert(Arc::new(set)).clone())
}

fn no_port() -> Error {
    usage("receive_any was given no port")
}

/// # Safety
/// `handle` is NULL or a port. The arguments describe an array: the elements may be written, and no
/// other code uses the elements meanwhile. `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_receive_into(
    handle: *mut Port,
    slot: c_int,
    timeout: f64,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    data: *mut c_void,
    out: *mut *mut Message,
) -> c_int {
    let arguments = ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names: std::ptr::null(),
        data,
    };
    // SAFETY: as the caller promises.
    unsafe {
        into_array(handle, out, |port| {
            receive_array(port, slot, timeout, arguments)
        })
    }
}

/// Runs a call that receives into the caller's memory, and writes the message if `out` is not NULL.
///
/// # Safety
/// `handle` is NULL or a port; `out` is NULL or may be written.
#[inline(always)]
pub(crate) unsafe fn into_array(
    handle: *mut Port,
    out: *mut *mut Message,
    body: impl FnOnce(&Port) -> Result<Box<Message>>,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if out.is_null() {
            return on_port(handle, |port| {
                body(port)?.keep_memory();
                Ok(())
            });
        }
        receive(handle, out, |port| body(port).map(Some))
    }
}

/// Receives a message into the memory of an array.
///
/// # Safety
/// As [`titin_receive_into`].
pub(crate) unsafe fn receive_array(
    port: &Port,
    slot: c_int,
    timeout: f64,
    arguments: ArrayArguments,
) -> Result<Box<Message>> {
    // SAFETY: as the caller promises.
    let described = unsafe { arguments.read() }?;
    described.check_distinct()?;
    let (slot, patience) = (input::slot(slot, port.name())?, input::patience(timeout)?);
    let fill = |message: &titin_runtime::Message| {
        // SAFETY: as the caller promises.
        let filled = unsafe { described.fill(message) };
        filled.map_err(|error| port.recipient.located(slot, error))
    };
    let instance = &port.shared.instance;
    let mut memory = Message::spare();
    // SAFETY: as the caller promises.
    if let Some(layout) = unsafe { arguments.caller_layout() } {
        let takes = |message: &IncomingMessage, note: &mut NoteCall<'_>| {
            let is_alike = layout.is_of(&message.meta) && note();
            if is_alike {
                // SAFETY: the memory is of an array with the layout of the message.
                unsafe { copy_elements(&message.body, arguments.data.cast_mut()) };
            }
            is_alike
        };
        let arrived = memory.arrived_mut();
        if let Some(received) =
            instance.receive_repeated_that(port.id, slot, true, arrived, takes, fill)
        {
            return Ok(memory.received_at_once(received?, port, slot));
        }
    }
    let received = instance.receive_that(port.id, slot, patience, fill)?;
    Ok(memory.holding(received, port, slot))
}

/// Copies the elements of an array.
///
/// # Safety
/// `to` may be written, as many bytes as `from` has.
unsafe fn copy_elements(from: &[u8], to: *mut c_void) {
    if !from.is_empty() {
        // SAFETY: as the caller promises. Received memory is titin's, so the two do not
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), from.len()) }
    }
}
