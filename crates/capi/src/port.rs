//! Ports: how to find a port, and facts about a port.

use std::ffi::{c_char, c_int};

use titin_runtime::PortInfo;

use crate::error::{keep, usage, value};
use crate::handle::{Handle, Port, instance, on_instance, port};
use crate::input;

/// A fact about a port; the fallback without a port.
///
/// # Safety
/// As [`port`].
unsafe fn fact<T>(handle: *const Port, fallback: T, body: impl FnOnce(PortInfo) -> T) -> T {
    value(fallback, || {
        // SAFETY: as the caller promises.
        unsafe { port(handle) }.map(|port| body(port.shared.instance.info(port.id)))
    })
}

/// # Safety
/// `handle` is NULL or an instance; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_find(handle: *mut Handle, name: *const c_char) -> *mut Port {
    let mut found = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let id = handle
                .shared
                .instance
                .port(input::text(name, "name of the port")?)?;
            let port = handle.ports.iter().find(|port| port.id == id);
            found = port.map_or(found, |port| (&raw const *port).cast_mut());
            Ok(())
        })
    };
    found
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_count(handle: *const Handle) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        unsafe { instance(handle) }.map(|handle| handle.ports.len() as c_int)
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_at(handle: *mut Handle, index: c_int) -> *mut Port {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let ports = &unsafe { instance(handle) }?.ports;
        let port = usize::try_from(index)
            .ok()
            .and_then(|index| ports.get(index));
        let port = port.ok_or_else(|| {
            usage(format!(
                "no port {index}: the instance has {} ports",
                ports.len()
            ))
        })?;
        Ok((&raw const *port).cast_mut())
    })
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_name(handle: *const Port) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        unsafe { port(handle) }.map(|port| port.name().as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_operator(handle: *const Port) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { fact(handle, 0, |port| input::operator_number(port.operator)) }
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_is_vector(handle: *const Port) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { fact(handle, 0, |port| c_int::from(port.vector)) }
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_is_resizable(handle: *const Port) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { fact(handle, 0, |port| c_int::from(port.resizable)) }
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_is_connected(handle: *const Port) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { fact(handle, 0, |port| c_int::from(port.connected)) }
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_slots(handle: *const Port) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        fact(handle, 0, |port| {
            c_int::try_from(port.slots).unwrap_or(c_int::MAX)
        })
    }
}

/// # Safety
/// `handle` is NULL or a port.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_port_set_slots(handle: *mut Port, slots: c_int) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { port(handle) } {
        Err(error) => keep(error),
        Ok(port) => port.shared.run(|| {
            let slots = u32::try_from(slots).map_err(|_| {
                usage(format!(
                    "port '{}' cannot have {slots} slots: give a number from 0 on",
                    port.name().as_str()
                ))
            })?;
            port.shared.instance.set_slots(port.id, slots)
        }),
    }
}
