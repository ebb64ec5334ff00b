//! Opening, using and closing an instance.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::{Instance, Kind, Result};

use crate::error::{OK, caught, keep, status, usage, value};
use crate::filter::functions;
use crate::fork;
use crate::handle::{Handle, instance, on_instance};
use crate::input;
use crate::options::{Options, Question};
use crate::value::Value;

/// Opens an instance by these options, under this name if one is given.
pub(crate) fn open(ports: Option<&str>, options: &Options, name: Option<&str>) -> Result<Handle> {
    fork::prepare();
    let mut wanted = titin_runtime::Options::default()
        .language(options.language.as_deref().unwrap_or("C"))
        .functions(functions(options.filters));
    if let Some(name) = name.or(options.instance.as_deref()) {
        wanted = wanted.instance(name);
    }
    if let Some(manager) = &options.manager {
        wanted = wanted.manager(manager);
    }
    if let Some(interrupted) = options.interrupt {
        wanted = wanted.on_interrupt(move || interrupted.is_yes());
    }
    for (name, operator) in &options.ports {
        wanted = wanted.port(name, *operator)?;
    }
    if let Some(ports) = ports {
        wanted = wanted.ports(ports)?;
    }
    let instance = Instance::open(wanted)?;
    // Programs that this one starts have no business with it. SAFETY: the name ends with a NUL.
    unsafe { libc::unsetenv(c"TITIN_SECRET".as_ptr()) };
    if let Some(reason) = &options.unchecked {
        instance.skip_checks(reason);
    }
    Handle::new(instance, !options.exceptions)
}

/// Closes an instance; the first error that stuck counts.
pub(crate) fn close(handle: &Handle) -> Result<()> {
    let shared = &handle.shared;
    if let Some(error) = shared.stuck().as_ref() {
        shared.instance.note(error);
    }
    shared.instance.close()
}

/// # Safety
/// `ports` is NULL or ends with a NUL, `options` is NULL or options, `handle` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_open(
    ports: *const c_char,
    options: *const Options,
    handle: *mut *mut Handle,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { input::out(handle, "the instance") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let (ports, options) = unsafe { (input::optional_text(ports, "ports")?, options.as_ref()) };
        let opened = match options {
            Some(options) => open(ports, options, None),
            None => open(ports, &Options::default(), None),
        }?;
        *handle = Box::into_raw(Box::new(opened));
        Ok(())
    })
}

/// # Safety
/// `handle` is NULL or an instance that no other call uses; it is gone afterwards, but if the call was interrupted or
/// the instance is hosted.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_close(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promises.
    let open = match unsafe { instance(handle) } {
        Ok(open) => open,
        Err(error) => return keep(error),
    };
    let outcome = caught(|| close(open));
    let interrupted = outcome.as_ref().is_err_and(|error| error.kind == Kind::Interrupted);
    if !interrupted && !open.hosted {
        let _ = caught(|| {
            // SAFETY: made by `titin_open`, and nobody uses it any more. A panic in here must not unwind either.
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
    outcome.map_or_else(keep, |()| OK)
}

/// # Safety
/// `handle` is NULL or an instance; `text` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_fail(handle: *mut Handle, text: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let text = input::text(text, "reason for failing").unwrap_or("the program gave no reason");
            handle.shared.instance.fail(text);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance; `again` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_reuse(handle: *mut Handle, again: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    let again = match unsafe { input::out(again, "whether there is another use") } {
        Ok(again) => again,
        Err(error) => return keep(error),
    };
    *again = 0;
    // SAFETY: as the caller promises.
    let handle = match unsafe { instance(handle) } {
        Ok(handle) => handle,
        Err(error) => return keep(error),
    };
    handle.shared.run_unless_stuck(|| {
        *again = c_int::from(handle.shared.instance.reuse()?);
        Ok(())
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_recover(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            *handle.shared.stuck() = None;
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_instance_name(handle: *const Handle) -> *const c_char {
    // SAFETY: as the caller promises.
    value(std::ptr::null(), || Ok(unsafe { instance(handle) }?.name.as_ptr()))
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_workdir(handle: *const Handle) -> *const c_char {
    // SAFETY: as the caller promises.
    value(std::ptr::null(), || Ok(unsafe { instance(handle) }?.workdir.as_ptr()))
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_scale(handle: *const Handle) -> *const Value {
    // SAFETY: as the caller promises.
    value(std::ptr::null(), || Ok(&raw const unsafe { instance(handle) }?.scale))
}

/// # Safety
/// `handle` is NULL or an instance; `text` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_log(handle: *mut Handle, level: c_int, text: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let text = input::text(text, "text to log")?;
            let level = u8::try_from(level).map_err(|_| {
                usage(format!("a log level of {level}; they go from 10, debug, to 50, critical"))
            })?;
            handle.shared.instance.log(level, text);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance; `reason` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_skip_checks(handle: *mut Handle, reason: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            handle.shared.instance.skip_checks(input::reason(reason)?);
            Ok(())
        })
    }
}

/// A caller's pointer, which goes wherever it wants.
#[derive(Clone, Copy)]
pub(crate) struct Pointer(pub(crate) *mut c_void);

// SAFETY: the library only hands it back to the caller's functions, which may run in any thread that waits.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// The pointer itself; a closure that calls this captures the whole, which may cross threads.
    pub(crate) fn raw(self) -> *mut c_void {
        self.0
    }
}

/// # Safety
/// `handle` is NULL or an instance; `interrupted` may be called with `data` until it is closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_on_interrupt(
    handle: *mut Handle,
    interrupted: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let interrupted = Question::new(interrupted, data)?;
            handle.shared.instance.on_interrupt(move || interrupted.is_yes())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_test_panic(handle: *mut Handle) -> c_int {
    let text = "the library panics, as a test has asked";
    if handle.is_null() {
        return status(|| panic!("{text}"));
    }
    // SAFETY: as the caller promises.
    unsafe { on_instance(handle, |_| panic!("{text}")) }
}
