//! An open instance. The `Instance` shares the session with all ports and regions of the instance.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;

use crate::argument::Words;
use crate::options::Options;
use crate::ranks::Ranks;
use crate::{error, sys};

/// A bit beside the number of calls. The bit marks that the instance is closed.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// An instance of libtitin. No call is made while the instance closes, or afterwards.
pub struct Session {
    instance: NonNull<sys::titin_instance>,
    /// The number of calls in progress, in all threads.
    calls: AtomicUsize,
    /// The exception of a signal handler while a call waited. libtitin keeps the address.
    raised: Box<Mutex<Option<PyErr>>>,
}

// SAFETY: any thread may call libtitin (titin.h, "Threads"); `calls` keeps the end apart from other
// calls.
unsafe impl Send for Session {}
// SAFETY: as above; the other fields are safe to share.
unsafe impl Sync for Session {}

/// A call in progress. The instance is open while the call lives.
pub struct Call<'a>(&'a Session);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Release);
    }
}

impl Call<'_> {
    /// The instance. The instance lives as long as the call.
    pub fn instance(&self) -> *mut sys::titin_instance {
        self.0.instance.as_ptr()
    }

    /// Runs a call of libtitin without the GIL. Fails with the call's error, or with an exception
    /// raised by a signal handler meanwhile.
    pub fn wait(&self, py: Python<'_>, call: impl FnOnce() -> c_int) -> PyResult<()> {
        let call = Unattached(call);
        let code = py.detach(move || call.run());
        outcome(py, code, &self.0.raised)
    }
}

impl Session {
    /// Opens an instance. Ctrl-C interrupts this call and later calls. `ranks` is the communicator
    /// of a parallel program.
    pub fn open(py: Python<'_>, options: &Options, ranks: Option<&Ranks>) -> PyResult<Arc<Self>> {
        let raised = Box::new(Mutex::new(None));
        let options = options.as_ptr();
        let data = (&raw const *raised).cast::<c_void>().cast_mut();
        // SAFETY: the options live as long as this function; the target of `data` lives until the
        // instance is closed.
        error::check(py, unsafe {
            sys::titin_options_interrupt(options, interrupted, data)
        })?;
        let mut instance = std::ptr::null_mut();
        let open = Unattached(|| {
            // SAFETY: as above.
            unsafe { sys::titin_open(std::ptr::null(), options, &mut instance) }
        });
        let code = py.detach(move || open.run());
        if let Some(raised) = ranks.and_then(Ranks::raised) {
            return Err(raised);
        }
        outcome(py, code, &raised)?;
        let instance = NonNull::new(instance).ok_or_else(|| error::last(py))?;
        Ok(Arc::new(Session {
            instance,
            calls: AtomicUsize::new(0),
            raised,
        }))
    }

    /// The session of a light instance.
    ///
    /// # Safety
    /// The instance is open, and only this session closes the instance.
    pub unsafe fn light(instance: NonNull<sys::titin_instance>) -> Arc<Self> {
        Arc::new(Session {
            instance,
            calls: AtomicUsize::new(0),
            raised: Box::default(),
        })
    }

    /// Begins a call.
    pub fn enter(&self, py: Python<'_>) -> PyResult<Call<'_>> {
        if self.calls.fetch_add(1, Ordering::Acquire) & CLOSED != 0 {
            self.calls.fetch_sub(1, Ordering::Release);
            return Err(error::error(
                py,
                sys::CLOSED,
                "the instance is closed: no call follows close()",
            ));
        }
        Ok(Call(self))
    }

    /// Fails the run, with this instance as the culprit.
    pub fn fail(&self, py: Python<'_>, text: &Words) -> PyResult<()> {
        let call = self.enter(py)?;
        // SAFETY: the instance is open while the call lives; the text is copied.
        error::check(py, unsafe {
            sys::titin_fail(call.instance(), text.0.as_ptr())
        })
    }

    /// Ends an instance after an exception. The run fails with the exception, unless the run has
    /// failed before.
    pub fn abandon(&self, py: Python<'_>, raised: &PyErr) -> PyResult<()> {
        let errors = py.import(intern!(py, "titin.errors"))?;
        if !errors
            .call_method1(intern!(py, "is_echo"), (raised.value(py),))?
            .is_truthy()?
        {
            errors.call_method1(intern!(py, "add_hint"), (raised.value(py),))?;
            let text = errors.call_method1(intern!(py, "last_lines"), (raised.value(py),))?;
            // The call fails in a forked child, since the child's instance is dead.
            let _ = self.fail(py, &text.extract::<Words>()?);
        }
        // The caller raises the exception; an error of closing would hide the exception.
        let _ = self.close(py, true);
        Ok(())
    }

    /// Whether the instance is closed.
    pub fn is_closed(&self) -> bool {
        self.calls.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Closes the instance, unless the instance is already closed. With `patient`, `close` waits
    /// for calls of other threads; a failed run ends such calls. Without `patient`, a call of
    /// another thread is an error.
    pub fn close(&self, py: Python<'_>, patient: bool) -> PyResult<()> {
        while let Err(calls) =
            self.calls
                .compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire)
        {
            if calls & CLOSED != 0 {
                return Ok(());
            }
            if !patient {
                let text = "close() while another thread is in a call on the instance; join the thread first";
                return Err(error::usage(py, text));
            }
            py.detach(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        let close = Unattached(|| {
            // SAFETY: the instance is open, and CLOSED keeps every other call away.
            unsafe { sys::titin_close(self.instance.as_ptr()) }
        });
        let code = py.detach(move || close.run());
        if code == sys::INTERRUPTED || code == sys::PENDING {
            // The instance is still open.
            self.calls.store(0, Ordering::Release);
        }
        outcome(py, code, &self.raised)
    }
}

/// The outcome of a call: success, the call's error, or an exception raised by a signal handler
/// meanwhile.
pub fn outcome(py: Python<'_>, code: c_int, raised: &Mutex<Option<PyErr>>) -> PyResult<()> {
    if code == sys::INTERRUPTED
        && let Some(raised) = raised
            .lock()
            .expect("nothing panics while it is locked")
            .take()
    {
        return Err(raised);
    }
    error::check(py, code)
}

/// A call made on this thread without the GIL.
///
/// pyo3 wants a closure that runs without the GIL to be `Send`: this keeps Python objects out of
/// the closure. Raw pointers are not `Send`, though raw pointers are fine here.
pub struct Unattached<F>(pub F);

// SAFETY: `Python::detach` runs the closure in the same thread. The closures of this crate touch no
// Python object: the closures call libtitin with pointers to memory, and the caller holds the
// memory until the call has returned.
unsafe impl<F> Send for Unattached<F> {}

impl<F: FnOnce() -> c_int> Unattached<F> {
    pub fn run(self) -> c_int {
        (self.0)()
    }
}

/// Called by libtitin while a call waits. 1 if a signal handler has raised an exception.
pub extern "C" fn interrupted(data: *mut c_void) -> c_int {
    let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    let Some(raised) = raised else { return 0 };
    // SAFETY: the caller of libtitin gave this pointer with the function, and keeps the place as long as the instance, the
    // path or the listener lives.
    let place = unsafe { &*data.cast::<Mutex<Option<PyErr>>>() };
    *place.lock().expect("nothing panics while it is locked") = Some(raised);
    1
}
