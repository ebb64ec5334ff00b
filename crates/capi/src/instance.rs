//! Opening, using and closing an instance.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Error, Kind, Opening, Result};

use crate::error::{OK, caught, dealt_with, keep, null, status, usage, value};
use crate::filter::functions;
use crate::fork;
use crate::handle::{Handle, Port, instance, on_instance, port};
use crate::input;
use crate::options::{InterruptCallback, Options};
use crate::ready::ReadyEntry;
use crate::value::Value;

/// An instance that joins the run, and is not open yet: the target of the header's `titin_opening`.
pub struct OpeningHandle {
    /// `None` once the instance is open, or could not be opened.
    opening: Option<Opening>,
    /// The entry of a light instance on the ready list, until the instance owns the entry.
    light: Option<ReadyEntry>,
    unchecked: Option<String>,
    sticky: bool,
}

/// Begins to join the run with `options`, under `name` or else the name in the options.
pub(crate) fn begin(
    ports: Option<&str>,
    options: &Options,
    name: Option<&str>,
) -> Result<OpeningHandle> {
    fork::prepare();
    let light = options
        .ready
        .as_ref()
        .map(|(list, number)| ReadyEntry(list.entry(*number)));
    let mut asked = runtime_options(ports, options, name)?;
    if let Some(ReadyEntry(entry)) = &light {
        asked = asked.ready(entry.clone());
    }
    let opening = Opening::begin(asked)?;
    // Programs started by this program get no secret of the run. SAFETY: the name ends with a NUL.
    unsafe { libc::unsetenv(c"TITIN_SECRET".as_ptr()) };
    Ok(OpeningHandle {
        opening: Some(opening),
        light,
        unchecked: options.unchecked.clone(),
        sticky: !options.exceptions,
    })
}

/// The options for the runtime, without the options of light instances.
fn runtime_options(
    ports: Option<&str>,
    options: &Options,
    name: Option<&str>,
) -> Result<titin_runtime::Options> {
    let mut asked = titin_runtime::Options::default()
        .language(options.language.as_deref().unwrap_or("C"))
        .checks(options.checks)
        .overlays(options.overlays)
        .receiving(options.receiving)
        .functions(functions(options.filters));
    if let Some(name) = name.or(options.instance.as_deref()) {
        asked = asked.instance(name);
    }
    if let Some(manager) = &options.manager {
        asked = asked.manager(manager);
    }
    if let Some(interrupted) = options.interrupt {
        asked = asked.on_interrupt(move || interrupted.is_yes());
    }
    if let Some(communicator) = options.communicator {
        asked = asked.communicator(communicator);
    }
    for (name, operator) in &options.ports {
        asked = asked.port(name, *operator)?;
    }
    match ports {
        Some(ports) => asked.ports(ports),
        None => Ok(asked),
    }
}

impl OpeningHandle {
    /// Waits until the instance is open. A light instance does not wait: `None` until the instance
    /// is open.
    pub(crate) fn end(&mut self) -> Result<Option<Handle>> {
        let Some(mut opening) = self.opening.take() else {
            return Err(usage("the instance was opened already"));
        };
        let instance = match &self.light {
            None => opening.wait()?,
            Some(_) => match opening.poll()? {
                Some(instance) => instance,
                None => {
                    self.opening = Some(opening);
                    return Ok(None);
                }
            },
        };
        if let Some(reason) = &self.unchecked {
            instance.skip_checks(reason);
        }
        Ok(Some(Handle::new(instance, self.light.take(), self.sticky)))
    }

    /// Fails the run, since the host of the instance cannot begin.
    pub(crate) fn fail(self, text: &str) {
        if let Some(opening) = self.opening {
            opening.fail(text);
        }
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_rank(handle: *const Handle) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        Ok(unsafe { instance(handle) }?.shared.instance.rank() as c_int)
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ranks(handle: *const Handle) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        Ok(unsafe { instance(handle) }?.shared.instance.ranks() as c_int)
    })
}

/// Closes an instance. The first error that stuck to the instance is the reason given to the run.
pub(crate) fn close(handle: &Handle) -> Result<()> {
    let shared = &handle.shared;
    if let Some(error) = shared.stuck().as_ref() {
        shared.instance.note(error);
    }
    shared.instance.close()
}

/// # Safety
/// `ports` is NULL or ends with a NUL, `options` is NULL or options, `handle` is NULL or may be
/// written.
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
        let standard = Options::default();
        let options = options.unwrap_or(&standard);
        if options.ready.is_some() {
            let text = "titin_open waits, and these options are for instances that do not: call titin_open_begin";
            return Err(usage(text));
        }
        let opened = begin(ports, options, None)?.end()?;
        *handle = opened.map_or(std::ptr::null_mut(), |opened| {
            Box::into_raw(Box::new(opened))
        });
        Ok(())
    })
}

/// # Safety
/// `ports` is NULL or ends with a NUL, `options` is NULL or options, `opening` is NULL or may be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_open_begin(
    ports: *const c_char,
    options: *const Options,
    opening: *mut *mut OpeningHandle,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let opening = unsafe { input::out(opening, "the opening") }?;
        *opening = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let (ports, options) = unsafe { (input::optional_text(ports, "ports")?, options.as_ref()) };
        let standard = Options::default();
        *opening = Box::into_raw(Box::new(begin(ports, options.unwrap_or(&standard), None)?));
        Ok(())
    })
}

/// # Safety
/// `opening` is NULL or comes from `titin_open_begin`, and is not used again unless this call is
/// pending; `handle` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_open_end(
    opening: *mut OpeningHandle,
    handle: *mut *mut Handle,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { input::out(handle, "the instance") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let asked =
            unsafe { opening.as_mut() }.ok_or_else(|| null("opening", "titin_open_begin"))?;
        let outcome = caught(|| asked.end());
        if let Ok(None) = outcome {
            return Err(Error::pending());
        }
        // SAFETY: made by `titin_open_begin`, and not used again.
        drop(unsafe { Box::from_raw(opening) });
        *handle = Box::into_raw(Box::new(outcome?.expect("it is there")));
        Ok(())
    })
}

/// # Safety
/// `opening` is NULL or comes from `titin_open_begin`, and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_open_cancel(opening: *mut OpeningHandle) {
    if !opening.is_null() {
        let _ = caught(|| {
            // SAFETY: made by `titin_open_begin`, and not used again.
            drop(unsafe { Box::from_raw(opening) });
            Ok(())
        });
    }
}

/// # Safety
/// `handle` is NULL or an instance; `named` is NULL or a port of the instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_cancel(handle: *mut Handle, named: *const Port, slot: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            if named.is_null() {
                return handle.shared.instance.cancel(None, None);
            }
            let port = port(named)?;
            if !Arc::ptr_eq(&port.shared, &handle.shared) {
                return Err(usage("titin_cancel was given a port of another instance"));
            }
            handle
                .shared
                .instance
                .cancel(Some(port.id), input::slot(slot, port.name())?)
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_skip_deadlocks(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            handle.shared.instance.skip_deadlocks();
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance that no other call uses. The instance is gone afterwards, unless
/// the call was interrupted or is pending, or the instance is hosted.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_close(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promises.
    let open = match unsafe { instance(handle) } {
        Ok(open) => open,
        Err(error) => return keep(error),
    };
    let outcome = caught(|| close(open));
    let lasts = |error: &Error| matches!(error.kind, Kind::Interrupted | Kind::Pending);
    let lasts = outcome.as_ref().is_err_and(lasts);
    // An instance in use by a call of another thread stays for ever: the other thread may go on
    // with the instance.
    let in_use = open.shared.instance.was_in_use();
    if !lasts && !open.hosted && !in_use {
        // Regions may keep `shared`, and so the entry, alive. So the instance leaves the ready list
        // here.
        open.shared
            .enlisted
            .iter()
            .for_each(|enlisted| enlisted.0.leave());
        let _ = caught(|| {
            // SAFETY: the handle was made by `titin_open`, and no code uses it any more. A panic in
            // here must not unwind either.
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
            let text =
                input::text(text, "reason for failing").unwrap_or("the program gave no reason");
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
/// `handle` is NULL or an instance; `stops` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_will_stop(
    handle: *const Handle,
    timestamp: f64,
    stops: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let stops = match unsafe { input::out(stops, "whether the next step would pass the end") } {
        Ok(stops) => stops,
        Err(error) => return keep(error),
    };
    // On an error, a loop that ignores the status ends.
    *stops = 1;
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            *stops = c_int::from(handle.shared.instance.will_stop(timestamp)?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_recover(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            *handle.shared.stuck() = None;
            dealt_with();
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_instance_name(handle: *const Handle) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(unsafe { instance(handle) }?.name.as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_workdir(handle: *const Handle) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(unsafe { instance(handle) }?.workdir.as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_time_unit(handle: *const Handle) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(unsafe { instance(handle) }?.time_unit.as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or an instance.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_scale(handle: *const Handle) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(&raw const unsafe { instance(handle) }?.scale)
    })
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
                usage(format!(
                    "a log level of {level}; they go from 10, debug, to 50, critical"
                ))
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

/// # Safety
/// `handle` is NULL or an instance; `interrupted` may be called with `data` until the instance is
/// closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_on_interrupt(
    handle: *mut Handle,
    interrupted: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let interrupted = InterruptCallback::new(interrupted, data)?;
            handle
                .shared
                .instance
                .on_interrupt(move || interrupted.is_yes())
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
