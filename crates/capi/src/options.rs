//! The options with which a program opens an instance.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Checks, Operator, OverlayUse, ReadyList, ReceivingRanks, Result};

use crate::communicator::{Communicator, RawCommunicator};
use crate::error::{null, status, usage, value};
use crate::filter::{CallFilter, FilterCallbacks, FindFilter, ReleaseFilter};
use crate::input;
use crate::pointer::Pointer;
use crate::ready::{ReadyHandle, list};

/// The target of the header's `titin_options`.
#[derive(Default, Clone)]
pub struct Options {
    pub(crate) instance: Option<String>,
    pub(crate) manager: Option<String>,
    pub(crate) ports: Vec<(String, Operator)>,
    pub(crate) unchecked: Option<String>,
    pub(crate) checks: Checks,
    pub(crate) overlays: OverlayUse,
    pub(crate) receiving: ReceivingRanks,
    pub(crate) language: Option<String>,
    pub(crate) exceptions: bool,
    pub(crate) filters: Option<FilterCallbacks>,
    pub(crate) interrupt: Option<InterruptCallback>,
    pub(crate) ready: Option<(Arc<ReadyList>, u64)>,
    pub(crate) communicator: Option<Communicator>,
}

/// A function of the caller, with the caller's data. The function says whether to interrupt a
/// waiting call.
#[derive(Clone, Copy)]
pub(crate) struct InterruptCallback {
    ask: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: Pointer,
}

impl InterruptCallback {
    /// # Safety
    /// The function may be called with the data, in any thread, as long as the result lives.
    pub(crate) unsafe fn new(
        ask: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> Result<Self> {
        let ask = ask.ok_or_else(|| usage("NULL was given for the interrupt callback"))?;
        Ok(InterruptCallback {
            ask,
            data: Pointer(data),
        })
    }

    pub(crate) fn is_yes(self) -> bool {
        // SAFETY: as the caller of `new` has promised.
        unsafe { (self.ask)(self.data.raw()) != 0 }
    }
}

/// # Safety
/// `options` is NULL or options that no other code uses meanwhile.
unsafe fn change(options: *mut Options, body: impl FnOnce(&mut Options) -> Result<()>) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        body(unsafe { options.as_mut() }.ok_or_else(|| null("options", "titin_options_new"))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_options_new() -> *mut Options {
    value(std::ptr::null_mut(), || Ok(Box::into_raw(Box::default())))
}

/// # Safety
/// `options` is NULL or options that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_free(options: *mut Options) {
    if !options.is_null() {
        // SAFETY: made by `titin_options_new`.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// # Safety
/// `options` is NULL or options; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_instance(options: *mut Options, name: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.instance = Some(input::text(name, "name of the instance")?.to_owned());
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `manager` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_manager(options: *mut Options, manager: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.manager = Some(input::text(manager, "manager")?.to_owned());
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_port(
    options: *mut Options,
    name: *const c_char,
    operator: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let (name, operator) = (
                input::text(name, "name of the port")?,
                input::operator(operator)?,
            );
            // A wrong name is an error of this call, and not of the later call that opens the
            // instance.
            titin_runtime::Options::default().port(name, operator)?;
            options.ports.push((name.to_owned(), operator));
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `reason` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_unchecked(
    options: *mut Options,
    reason: *const c_char,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.unchecked = Some(input::reason(reason)?.to_owned());
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_checks(options: *mut Options, checks: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.checks = input::checks(checks)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_receive(options: *mut Options, ranks: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.receiving = input::receiving_ranks(ranks)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_overlays(options: *mut Options, overlays: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.overlays = input::overlays(overlays)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `language` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_language(
    options: *mut Options,
    language: *const c_char,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.language = Some(input::text(language, "language")?.to_owned());
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_exceptions(options: *mut Options) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.exceptions = true;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `interrupted` may be called with `data` until the instances opened
/// with `options` are closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_interrupt(
    options: *mut Options,
    interrupted: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.interrupt = Some(InterruptCallback::new(interrupted, data)?);
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options. `communicator` is NULL or a communicator. The communicator's
/// functions may be called with the context until opening an instance with `options` has ended.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_communicator(
    options: *mut Options,
    communicator: *const RawCommunicator,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let given = communicator
                .as_ref()
                .ok_or_else(|| null("communicator", "the caller"))?;
            options.communicator = Some(Communicator::new(given)?);
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; the functions may be called, with `data`, as long as the instance
/// lives.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_filters(
    options: *mut Options,
    find: Option<FindFilter>,
    call: Option<CallFilter>,
    release: Option<ReleaseFilter>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let (Some(find), Some(call)) = (find, call) else {
                return Err(usage(
                    "NULL was given for the callback that finds or calls filters",
                ));
            };
            options.filters = Some(FilterCallbacks {
                find,
                call,
                release,
                data: Pointer(data),
            });
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options, `list` is NULL or a list.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_ready(
    options: *mut Options,
    ready: *mut ReadyHandle,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.ready = Some((list(ready)?.clone(), data as u64));
            Ok(())
        })
    }
}
