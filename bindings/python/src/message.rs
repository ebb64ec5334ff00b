//! `titin.Message`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::payload::Payload;
use crate::{error, sys, value};

#[doc = doc!("Message")]
#[pyclass(frozen, module = "titin")]
pub struct Message {
    #[doc = doc!("Message.timestamp")]
    #[pyo3(get)]
    timestamp: f64,
    #[doc = doc!("Message.next_timestamp")]
    #[pyo3(get)]
    next_timestamp: Option<f64>,
    /// `None` for a message of the program's own.
    payload: Option<Payload>,
    data: PyOnceLock<Py<PyAny>>,
    settings: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (data=None, timestamp=0.0, next_timestamp=None, settings=None))]
    fn new(
        py: Python<'_>,
        data: Option<Py<PyAny>>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        settings: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let settings =
            settings.map_or_else(|| Ok(PyDict::new(py)), |settings| value::dict(&settings))?;
        Ok(Message {
            timestamp,
            next_timestamp,
            payload: None,
            data: known(py, data.unwrap_or_else(|| py.None())),
            settings: known(py, settings.into_any().unbind()),
        })
    }

    #[doc = doc!("Message.port")]
    #[getter]
    fn port(&self) -> Option<String> {
        let payload = self.payload.as_ref()?;
        // SAFETY: the message lives as long as `payload`, and the text as long as the message.
        let name = unsafe { error::text(sys::titin_message_port(payload.as_ptr())) };
        Some(name).filter(|name| !name.is_empty())
    }

    #[doc = doc!("Message.data")]
    #[getter]
    pub fn data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let read = || match &self.payload {
            None => Ok(py.None()),
            // SAFETY: the value belongs to the message, and `payload` holds the message.
            Some(payload) => unsafe {
                value::to_python(py, sys::titin_message_value(payload.as_ptr()), payload)
            },
        };
        Ok(self.data.get_or_try_init(py, read)?.clone_ref(py))
    }

    #[doc = doc!("Message.settings")]
    #[getter]
    pub fn settings(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let read = || -> PyResult<Py<PyAny>> {
            let Some(payload) = &self.payload else {
                return Ok(PyDict::new(py).into_any().unbind());
            };
            // SAFETY: the map belongs to the message, and `payload` holds the message.
            let settings = unsafe { sys::titin_message_settings(payload.as_ptr()) };
            match settings.is_null() {
                true => Ok(PyDict::new(py).into_any().unbind()),
                // SAFETY: as above.
                false => unsafe { value::to_python(py, settings, payload) },
            }
        };
        Ok(self.settings.get_or_try_init(py, read)?.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data(py)?;
        let data = data.bind(py);
        let shown = match (data.getattr("dtype"), data.getattr("shape")) {
            (Ok(dtype), Ok(shape)) => format!("<{dtype} array of shape {shape}>"),
            _ => data.repr()?.to_string(),
        };
        let next = self
            .next_timestamp
            .map(|next| format!(", next_timestamp={next:?}"))
            .unwrap_or_default();
        Ok(format!(
            "Message(timestamp={:?}{next}, data={shown})",
            self.timestamp
        ))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a message cannot be pickled; send or keep its data: message.data.copy()",
        ))
    }
}

impl Message {
    /// A message of the program's own with the given data, at time 0.
    pub fn own(py: Python<'_>, data: Py<PyAny>) -> Self {
        let (data, settings) = (
            known(py, data),
            known(py, PyDict::new(py).into_any().unbind()),
        );
        Message {
            timestamp: 0.0,
            next_timestamp: None,
            payload: None,
            data,
            settings,
        }
    }

    /// The timestamps in the form that libtitin takes.
    pub fn timestamps(&self) -> (f64, f64) {
        (self.timestamp, self.next_timestamp.unwrap_or(sys::NO_NEXT))
    }

    /// The timestamps, the data and the settings of a received message, without an object for the message.
    pub fn parts(py: Python<'_>, payload: &Payload) -> PyResult<Received> {
        let (timestamp, next_timestamp) = stamps(payload);
        let message = payload.as_ptr();
        // SAFETY: the values belong to the message, and `payload` holds the message.
        unsafe {
            let data = value::to_python(py, sys::titin_message_value(message), payload)?;
            let settings = sys::titin_message_settings(message);
            let settings = match settings.is_null() {
                true => None,
                false => Some(value::to_python(py, settings, payload)?),
            };
            Ok((timestamp, next_timestamp, data, settings))
        }
    }

    /// A received message.
    pub fn received(payload: Payload) -> Self {
        let (timestamp, next_timestamp) = stamps(&payload);
        let (data, settings) = (PyOnceLock::new(), PyOnceLock::new());
        Message {
            timestamp,
            next_timestamp,
            payload: Some(payload),
            data,
            settings,
        }
    }
}

fn known(py: Python<'_>, object: Py<PyAny>) -> PyOnceLock<Py<PyAny>> {
    let cell = PyOnceLock::new();
    let _ = cell.set(py, object);
    cell
}

/// Timestamp, next timestamp, data and settings of a received message; no settings where the message has none.
pub type Received = (f64, Option<f64>, Py<PyAny>, Option<Py<PyAny>>);

/// The timestamp of a received message, and that of the next one.
fn stamps(payload: &Payload) -> (f64, Option<f64>) {
    let message = payload.as_ptr();
    // SAFETY: the message lives as long as `payload`.
    unsafe {
        let next = sys::titin_message_has_next(message) == 1;
        let next_timestamp = next.then(|| sys::titin_message_next_timestamp(message));
        (sys::titin_message_timestamp(message), next_timestamp)
    }
}
