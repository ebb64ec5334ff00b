//! Ports.

use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::argument::Slot;
use crate::instance::{Sending, slot_of};
use crate::message::{Message, Received};
use crate::payload::Payload;
use crate::session::Session;
use crate::value::{self, Data, Value};
use crate::{error, sys};

#[doc = doc!("Port")]
#[pyclass(frozen, module = "titin")]
pub struct Port {
    handle: NonNull<sys::titin_port>,
    session: Arc<Session>,
    #[doc = doc!("Port.name")]
    #[pyo3(get)]
    pub name: String,
    #[doc = doc!("Port.operator")]
    #[pyo3(get)]
    operator: &'static str,
    #[doc = doc!("Port.vector")]
    #[pyo3(get)]
    vector: bool,
}

// SAFETY: any thread may call libtitin (titin.h, "Threads"); the handle is used only within a call
// of the session.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// # Safety
    /// `handle` is a port of the session's instance.
    pub unsafe fn new(handle: NonNull<sys::titin_port>, session: &Arc<Session>) -> Self {
        let port = handle.as_ptr();
        // SAFETY: as the caller promises.
        let (name, operator, vector) = unsafe {
            (
                error::text(sys::titin_port_name(port)),
                sys::titin_port_operator(port),
                sys::titin_port_is_vector(port) == 1,
            )
        };
        let operator = sys::OPERATORS
            .get(operator as usize - 1)
            .copied()
            .unwrap_or("");
        Port {
            handle,
            session: session.clone(),
            name,
            operator,
            vector,
        }
    }

    /// The handle, to be used only within a call of the session.
    pub fn as_ptr(&self) -> *mut sys::titin_port {
        self.handle.as_ptr()
    }

    /// Whether the port belongs to this session.
    pub fn is_of(&self, session: &Arc<Session>) -> bool {
        Arc::ptr_eq(&self.session, session)
    }

    /// Whether anything is connected to the port.
    pub fn is_connected(&self, py: Python<'_>) -> PyResult<bool> {
        let _call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        Ok(unsafe { sys::titin_port_is_connected(self.as_ptr()) } == 1)
    }
}

#[pymethods]
impl Port {
    #[doc = doc!("Port.connected")]
    #[getter]
    fn connected(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_connected(py)
    }

    #[doc = doc!("Port.resizable")]
    #[getter]
    fn resizable(&self, py: Python<'_>) -> PyResult<bool> {
        let _call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        Ok(unsafe { sys::titin_port_is_resizable(self.as_ptr()) } == 1)
    }

    #[doc = doc!("Port.slots")]
    #[getter]
    fn slots(&self, py: Python<'_>) -> PyResult<i32> {
        let _call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        Ok(unsafe { sys::titin_port_slots(self.as_ptr()) })
    }

    #[setter]
    fn set_slots(&self, py: Python<'_>, slots: Slot) -> PyResult<()> {
        let _call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        error::check(py, unsafe {
            sys::titin_port_set_slots(self.as_ptr(), slots.0)
        })
    }

    /// Sends as `Instance.send` does, with positional arguments. libmuscle makes this call for each message.
    #[pyo3(signature = (data, timestamp, next_timestamp, slot, settings, /))]
    fn _send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        slot: Option<Slot>,
        settings: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let call = self.session.enter(py)?;
        let settings = settings.map(|settings| Value::settings(&settings));
        let settings = settings.transpose()?;
        let sending = Sending {
            port: self.as_ptr(),
            slot: slot_of(slot),
            timestamp,
            next: next_timestamp.unwrap_or(sys::NO_NEXT),
            settings: value::pointer(settings.as_ref()),
        };
        // SAFETY: the port lives as long as the call; this function holds the data and settings until the
        // function returns.
        unsafe { sending.send(py, &call, &mut Data::new(data)?) }
    }

    /// Receives as `Instance.receive` does: timestamp, next timestamp, data, and the settings overlay, None for none.
    #[pyo3(signature = (slot, /))]
    fn _receive(&self, py: Python<'_>, slot: Option<Slot>) -> PyResult<Received> {
        let call = self.session.enter(py)?;
        let (port, slot) = (self.as_ptr(), slot_of(slot));
        let mut message = std::ptr::null_mut();
        // SAFETY: the port lives as long as the call.
        call.wait(py, || unsafe {
            sys::titin_receive(port, slot, sys::WAIT, &mut message)
        })?;
        let message = NonNull::new(message).ok_or_else(|| error::last(py))?;
        // SAFETY: the call has handed the message out.
        let payload = unsafe { Payload::new(message) };
        Message::parts(py, &payload)
    }

    fn __repr__(&self) -> String {
        format!(
            "<port {}{} ({})>",
            self.name,
            if self.vector { "[]" } else { "" },
            self.operator
        )
    }
}
