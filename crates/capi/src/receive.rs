//! Receiving.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Error, PortChoice, PortId, Result};

use crate::array::Arguments;
use crate::error::{keep, usage};
use crate::handle::{Port, on_port, port};
use crate::input;
use crate::message::{Message, Origin};

/// Receives into a place for a message, which is NULL if there is none.
///
/// # Safety
/// `handle` is NULL or a port; `out` is NULL or may be written.
unsafe fn receive(
    handle: *mut Port,
    out: *mut *mut Message,
    body: impl FnOnce(&Port) -> Result<Option<(Origin, titin_runtime::Message)>>,
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
            if let Some((origin, message)) = body(port)? {
                *out = Message::received(message, origin).into_raw();
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
            let message = port.shared.instance.receive(port.id, slot, patience)?;
            Ok(Some((port.origin(slot), message)))
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
            let message = port.shared.instance.try_receive(port.id, slot)?;
            Ok(message.map(|message| (port.origin(slot), message)))
        })
    }
}

/// # Safety
/// `ports` is NULL or points to `count` ports; `index`, `slot` and `out` are NULL or may be written.
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
            let chosen = chosen(first, ports)?;
            let instance = &first.shared.instance;
            let (id, number, message) =
                instance.receive_from(&chosen.choice, input::patience(timeout)?)?;
            let (place, vector) = chosen.places[&id];
            // The port is one of those that were looked at when they were chosen.
            let port = port(ports[place])?;
            *index = place as c_int;
            let number = vector.then_some(number);
            *slot = input::slot_number(number);
            Ok(Some((port.origin(number), message)))
        })
    }
}

/// Ports that a program receives from any of, again and again.
pub(crate) struct Chosen {
    /// Where the program's list had them.
    handles: Vec<usize>,
    choice: Arc<PortChoice>,
    /// Where in that list a port is, and whether it has slots.
    places: HashMap<PortId, (usize, bool)>,
}

/// What stands for these ports: what was made for the last call, if that was given the same.
///
/// # Safety
/// All are NULL or ports.
unsafe fn chosen(first: &Port, handles: &[*const Port]) -> Result<Arc<Chosen>> {
    let mut last = first.shared.chosen();
    let same = |chosen: &&Arc<Chosen>| {
        // SAFETY: a pointer is as long as its number, and any number may be looked at.
        chosen.handles
            == unsafe {
                std::slice::from_raw_parts(handles.as_ptr().cast::<usize>(), handles.len())
            }
    };
    if let Some(chosen) = last.as_ref().filter(same) {
        return Ok(chosen.clone());
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
    let choice = first.shared.instance.choice(&ids)?;
    let vector = |id| first.shared.instance.info(id).vector;
    let places = ids
        .into_iter()
        .enumerate()
        .map(|(place, id)| (id, (place, vector(id))))
        .collect();
    let handles = handles.iter().map(|handle| handle.addr()).collect();
    Ok(last
        .insert(Arc::new(Chosen {
            handles,
            choice,
            places,
        }))
        .clone())
}

fn no_port() -> Error {
    usage("receive_any was given no port")
}

/// # Safety
/// `handle` is NULL or a port; the arguments describe an array whose elements may be written and are used by nobody
/// else meanwhile; `out` is NULL or may be written.
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
    let arguments = Arguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names: std::ptr::null(),
        data,
    };
    let fill = |port: &Port| {
        // SAFETY: as the caller promises.
        let described = unsafe { arguments.read() }?;
        let (slot, patience) = (input::slot(slot, port.name())?, input::patience(timeout)?);
        port.shared
            .instance
            .receive_that(port.id, slot, patience, |message| {
                // SAFETY: as the caller promises.
                let filled = unsafe { described.fill(message) };
                filled.map_err(|error| port.shared.recipient.located(port.place, slot, error))
            })
    };
    // SAFETY: as the caller promises.
    unsafe {
        if out.is_null() {
            return on_port(handle, |port| fill(port).map(|_| ()));
        }
        receive(handle, out, |port| {
            let slot = input::slot(slot, port.name())?;
            Ok(Some((port.origin(slot), fill(port)?)))
        })
    }
}
