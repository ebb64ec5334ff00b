//! `titin.Instance`.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use crate::argument::{Fallback, Slot, Text, Words, unicode};
use crate::array::Array;
use crate::field::{Declaration, Field};
use crate::loan::Loan;
use crate::message::Message;
use crate::options::{Checks, Options, OverlayUse, ReceivingRanks, reason_of};
use crate::payload::Payload;
use crate::port::Port;
use crate::ranks::Ranks;
use crate::region::Region;
use crate::session::{Call, Session};
use crate::setting;
use crate::value::{self, Data, Value};
use crate::{error, filter, sys};

thread_local! {
    /// The instance assigned to this thread by `titin.run`, with the run's manager.
    static ASSIGNMENT: RefCell<Option<Assignment>> = const { RefCell::new(None) };
}

struct Assignment {
    name: String,
    manager: String,
    opened: Option<Weak<Session>>,
}

/// Notes that this thread has opened an instance.
fn note_opened(session: &Arc<Session>) {
    let opened = Arc::downgrade(session);
    ASSIGNMENT.with_borrow_mut(|assigned| {
        if let Some(assigned) = assigned {
            assigned.opened = Some(opened);
        }
    });
}

/// The name and the manager that an instance of this thread has, unless the program says otherwise.
fn assignment() -> Option<(String, String)> {
    ASSIGNMENT.with_borrow(|assigned| {
        let own = assigned.as_ref()?;
        Some((own.name.clone(), own.manager.clone()))
    })
}

/// The instance that this thread has opened, unless the instance is closed.
fn unclosed_session() -> Option<Arc<Session>> {
    let opened = ASSIGNMENT.with_borrow(|assigned| assigned.as_ref()?.opened.as_ref()?.upgrade());
    opened.filter(|session| !session.is_closed())
}

#[doc = doc!("place")]
#[pyfunction]
pub fn place(name: String, manager: String) {
    ASSIGNMENT.set(Some(Assignment {
        name,
        manager,
        opened: None,
    }));
}

#[doc = doc!("opened")]
#[pyfunction]
pub fn opened() -> bool {
    ASSIGNMENT.with_borrow(|assigned| assigned.as_ref().is_some_and(|own| own.opened.is_some()))
}

#[doc = doc!("unclosed")]
#[pyfunction]
pub fn unclosed() -> bool {
    unclosed_session().is_some()
}

#[doc = doc!("abandon")]
#[pyfunction]
pub fn abandon(raised: Bound<'_, PyAny>) -> PyResult<()> {
    let py = raised.py();
    unclosed_session().map_or(Ok(()), |session| {
        session.abandon(py, &PyErr::from_value(raised))
    })
}

#[doc = doc!("Instance")]
#[pyclass(frozen, weakref, module = "titin")]
pub struct Instance {
    session: Arc<Session>,
    /// Ports by name.
    ports: Py<PyDict>,
    #[doc = doc!("Instance.name")]
    #[pyo3(get)]
    name: String,
    workdir: String,
    time_unit: String,
}

/// The arguments of a send, without the data.
pub struct Sending {
    pub port: *mut sys::titin_port,
    pub slot: c_int,
    pub timestamp: f64,
    pub next: f64,
    pub settings: *const sys::titin_value,
}

impl Sending {
    /// # Safety
    /// The port and the settings live as long as this function.
    pub unsafe fn send(&self, py: Python<'_>, call: &Call<'_>, data: &mut Data) -> PyResult<()> {
        let &Sending {
            port,
            slot,
            timestamp,
            next,
            settings,
        } = self;
        // SAFETY: as the caller promises; the caller holds the data.
        call.wait(py, || unsafe {
            match data {
                Data::Nil => sys::titin_send_nil(port, slot, timestamp, next, settings),
                Data::Loan(loan) => {
                    let loan = loan.handle_address();
                    sys::titin_send_loan(port, slot, loan, timestamp, next, settings)
                }
                Data::Value(value) => {
                    let value = value.as_ptr();
                    sys::titin_send_value(port, slot, value, timestamp, next, settings)
                }
                Data::Array(array) => sys::titin_send_array(
                    port,
                    slot,
                    array.dtype,
                    array.rank(),
                    array.extents(),
                    array.strides(),
                    sys::ORDER_C,
                    array.names(),
                    array.data(),
                    timestamp,
                    next,
                    settings,
                ),
            }
        })
    }
}

/// An argument for a port: the port's name, or the port itself.
type PortArgument<'a, 'py> = &'a Bound<'py, PyAny>;

#[pymethods]
impl Instance {
    #[new]
    #[pyo3(signature = (*, f_init=None, o_i=None, s=None, o_f=None, name=None, manager=None, unchecked=None, checks=None, overlays=None, comm=None, receive=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        f_init: Option<Bound<'_, PyAny>>,
        o_i: Option<Bound<'_, PyAny>>,
        s: Option<Bound<'_, PyAny>>,
        o_f: Option<Bound<'_, PyAny>>,
        name: Option<Text>,
        manager: Option<Text>,
        unchecked: Option<Bound<'_, PyAny>>,
        checks: Option<Checks>,
        overlays: Option<OverlayUse>,
        comm: Option<Bound<'_, PyAny>>,
        receive: Option<ReceivingRanks>,
    ) -> PyResult<Self> {
        let options = options(
            py,
            [f_init, o_i, s, o_f],
            name,
            manager,
            unchecked,
            checks,
            overlays,
        )?;
        receive.map_or(Ok(()), |receive| options.set_receive(py, receive))?;
        let ranks = comm.as_ref().map(Ranks::new).transpose()?;
        ranks
            .iter()
            .try_for_each(|ranks| ranks.offer(py, options.as_ptr()))?;
        let session = Session::open(py, &options, ranks.as_deref())?;
        // Only now: where opening fails, `titin.run` fails the run in place of the instance.
        note_opened(&session);
        forget_secret(py);
        Self::with(py, session)
    }

    #[doc = doc!("Instance.reuse")]
    fn reuse(&self, py: Python<'_>) -> PyResult<bool> {
        let call = self.session.enter(py)?;
        let mut again = 0;
        let instance = call.instance();
        // SAFETY: the instance is open while the call lives.
        call.wait(py, || unsafe { sys::titin_reuse(instance, &mut again) })?;
        Ok(again != 0)
    }

    #[doc = doc!("Instance.send")]
    #[pyo3(signature = (port, data=None, *, timestamp, next_timestamp=None, slot=None, settings=None))]
    #[allow(clippy::too_many_arguments)]
    fn send(
        &self,
        py: Python<'_>,
        port: PortArgument<'_, '_>,
        data: Option<Bound<'_, PyAny>>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        slot: Option<Slot>,
        settings: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        let settings = settings.map(|settings| Value::settings(&settings));
        let settings = settings.transpose()?;
        let sending = Sending {
            port: port.get().as_ptr(),
            slot: slot_of(slot),
            timestamp,
            next: next_timestamp.unwrap_or(sys::NO_NEXT),
            settings: value::pointer(settings.as_ref()),
        };
        let mut data = data.map_or(Ok(Data::Nil), |data| Data::new(&data))?;
        // SAFETY: the port lives as long as the call; this function holds the data and settings
        // until the function returns.
        unsafe { sending.send(py, &call, &mut data) }
    }

    #[doc = doc!("Instance.loan")]
    #[pyo3(signature = (port, shape, dtype, *, slot=None, order="C"))]
    fn loan<'py>(
        &self,
        py: Python<'py>,
        port: PortArgument<'_, 'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        slot: Option<Slot>,
        order: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        // SAFETY: the port lives as long as the call.
        unsafe { Loan::lend(port.get().as_ptr(), slot_of(slot), shape, dtype, order) }
    }

    #[doc = doc!("Instance.receive")]
    #[pyo3(signature = (port, *, slot=None, timeout=None, default=Fallback::Missing))]
    fn receive(
        &self,
        py: Python<'_>,
        port: PortArgument<'_, '_>,
        slot: Option<Slot>,
        timeout: Option<f64>,
        default: Fallback<'_>,
    ) -> PyResult<Py<Message>> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        let port = port.get();
        if let Fallback::Given(default) = default
            && !port.is_connected(py)?
        {
            return own_message(default);
        }
        let (port, slot, timeout) = (port.as_ptr(), slot_of(slot), timeout.unwrap_or(sys::WAIT));
        let mut message = std::ptr::null_mut();
        // SAFETY: the port lives as long as the call.
        call.wait(py, || unsafe {
            sys::titin_receive(port, slot, timeout, &mut message)
        })?;
        // SAFETY: the call has handed the message out.
        unsafe { taken(py, message) }
    }

    #[doc = doc!("Instance.try_receive")]
    #[pyo3(signature = (port, *, slot=None))]
    fn try_receive(
        &self,
        py: Python<'_>,
        port: PortArgument<'_, '_>,
        slot: Option<Slot>,
    ) -> PyResult<Option<Py<Message>>> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        let (port, slot) = (port.get().as_ptr(), slot_of(slot));
        let mut message = std::ptr::null_mut();
        // SAFETY: the port lives as long as the call.
        call.wait(py, || unsafe {
            sys::titin_try_receive(port, slot, &mut message)
        })?;
        if message.is_null() {
            return Ok(None);
        }
        // SAFETY: the call has handed the message out.
        unsafe { taken(py, message) }.map(Some)
    }

    #[doc = doc!("Instance.receive_any")]
    #[pyo3(signature = (*ports, timeout=None))]
    fn receive_any<'py>(
        &self,
        py: Python<'py>,
        ports: &Bound<'py, PyTuple>,
        timeout: Option<f64>,
    ) -> PyResult<(String, Option<c_int>, Py<Message>)> {
        let call = self.session.enter(py)?;
        let ports = self.find_all(&call, ports)?;
        let handles = ports
            .iter()
            .map(|port| port.get().as_ptr())
            .collect::<Vec<_>>();
        let (pointer, count) = (handles.as_ptr(), handles.len() as c_int);
        let timeout = timeout.unwrap_or(sys::WAIT);
        let (mut index, mut slot, mut message) = (0, sys::NO_SLOT, std::ptr::null_mut());
        // SAFETY: the ports live as long as the call, and the list as long as this function.
        call.wait(py, || unsafe {
            sys::titin_receive_any(pointer, count, timeout, &mut index, &mut slot, &mut message)
        })?;
        // SAFETY: the call has handed the message out.
        let message = unsafe { taken(py, message) }?;
        let name = ports[index as usize].get().name.clone();
        Ok((name, (slot != sys::NO_SLOT).then_some(slot), message))
    }

    #[doc = doc!("Instance.receive_into")]
    #[pyo3(signature = (port, buffer, *, slot=None, timeout=None))]
    fn receive_into(
        &self,
        py: Python<'_>,
        port: PortArgument<'_, '_>,
        buffer: &Bound<'_, PyAny>,
        slot: Option<Slot>,
        timeout: Option<f64>,
    ) -> PyResult<Py<Message>> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        let target = Array::to_fill(buffer)?;
        let (port, slot, timeout) = (
            port.get().as_ptr(),
            slot_of(slot),
            timeout.unwrap_or(sys::WAIT),
        );
        let mut message = std::ptr::null_mut();
        // SAFETY: the port lives as long as the call; this function holds the target's memory until
        // the function returns.
        call.wait(py, || unsafe {
            sys::titin_receive_into(
                port,
                slot,
                timeout,
                target.dtype,
                target.rank(),
                target.extents(),
                target.strides(),
                sys::ORDER_C,
                target.data(),
                &mut message,
            )
        })?;
        // SAFETY: the call has handed the message out.
        unsafe { taken(py, message) }
    }

    #[doc = doc!("Instance.field")]
    #[pyo3(signature = (port, shape, dtype, *, owned=None, halo=None, region=None, order="C"))]
    #[allow(clippy::too_many_arguments)]
    fn field(
        &self,
        py: Python<'_>,
        port: PortArgument<'_, '_>,
        shape: &Bound<'_, PyAny>,
        dtype: &Bound<'_, PyAny>,
        owned: Option<Bound<'_, PyAny>>,
        halo: Option<Bound<'_, PyAny>>,
        region: Option<Bound<'_, PyAny>>,
        order: &str,
    ) -> PyResult<Field> {
        let call = self.session.enter(py)?;
        let port = self.find(&call, port)?;
        let halo = halo.unwrap_or(0i64.into_pyobject(py)?.into_any());
        let declaration = Declaration {
            shape,
            dtype,
            owned,
            halo,
            region,
            order,
        };
        // SAFETY: the instance is open while the call lives, and the port belongs to the instance.
        unsafe { declaration.declare(&self.session, call.instance(), port.get().as_ptr()) }
    }

    #[doc = doc!("Instance.rank")]
    #[getter]
    fn rank(&self, py: Python<'_>) -> PyResult<c_int> {
        let call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        Ok(unsafe { sys::titin_rank(call.instance()) })
    }

    #[doc = doc!("Instance.ranks")]
    #[getter]
    fn ranks(&self, py: Python<'_>) -> PyResult<c_int> {
        let call = self.session.enter(py)?;
        // SAFETY: as above.
        Ok(unsafe { sys::titin_ranks(call.instance()) })
    }

    #[doc = doc!("Instance.port")]
    fn port(&self, py: Python<'_>, name: PortArgument<'_, '_>) -> PyResult<Py<Port>> {
        let call = self.session.enter(py)?;
        Ok(self.find(&call, name)?.unbind())
    }

    #[doc = doc!("Instance.ports")]
    #[getter]
    fn ports(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.ports.bind(py).copy()?.into_any().unbind())
    }

    #[doc = doc!("Instance.setting")]
    #[pyo3(signature = (name, kind=None, default=Fallback::Missing))]
    fn setting(
        &self,
        py: Python<'_>,
        name: Text,
        kind: Option<Bound<'_, PyAny>>,
        default: Fallback<'_>,
    ) -> PyResult<Py<PyAny>> {
        let call = self.session.enter(py)?;
        setting::read(py, &call, &name, kind.as_ref(), default)
    }

    #[doc = doc!("Instance.settings")]
    #[getter]
    fn settings(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let call = self.session.enter(py)?;
        setting::all(py, &call)
    }

    #[doc = doc!("Instance.overlay")]
    #[getter]
    fn overlay(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let call = self.session.enter(py)?;
        setting::overlay(py, &call)
    }

    #[doc = doc!("Instance.scale")]
    #[getter]
    fn scale(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let call = self.session.enter(py)?;
        // SAFETY: the map belongs to the instance, and the instance is open while the call lives.
        let scale = unsafe { value::settings_to_python(py, sys::titin_scale(call.instance())) }?;
        Ok(py
            .import("titin.data")?
            .call_method1("scale", (scale,))?
            .unbind())
    }

    #[doc = doc!("Instance.workdir")]
    #[getter]
    fn workdir(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py
            .import("pathlib")?
            .call_method1("Path", (&self.workdir,))?
            .unbind())
    }

    #[doc = doc!("Instance.time_unit")]
    #[getter]
    fn time_unit(&self) -> &str {
        &self.time_unit
    }

    #[doc = doc!("Instance.will_stop")]
    fn will_stop(&self, py: Python<'_>, timestamp: f64) -> PyResult<bool> {
        let call = self.session.enter(py)?;
        let mut stops = 0;
        // SAFETY: the instance is open while the call lives.
        error::check(py, unsafe {
            sys::titin_will_stop(call.instance(), timestamp, &mut stops)
        })?;
        Ok(stops != 0)
    }

    #[doc = doc!("Instance.log")]
    fn log(&self, py: Python<'_>, level: &Bound<'_, PyAny>, text: Words) -> PyResult<()> {
        let call = self.session.enter(py)?;
        let level = match level.extract::<c_int>() {
            Ok(level) => level,
            Err(_) => level_named(level)?,
        };
        // SAFETY: the instance is open while the call lives; the text is copied.
        error::check(py, unsafe {
            sys::titin_log(call.instance(), level, text.0.as_ptr())
        })
    }

    #[doc = doc!("Instance.skip_checks")]
    fn skip_checks(&self, py: Python<'_>, reason: Words) -> PyResult<()> {
        let call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives; the text is copied.
        error::check(py, unsafe {
            sys::titin_skip_checks(call.instance(), reason.0.as_ptr())
        })
    }

    #[doc = doc!("Instance.fail")]
    fn fail(&self, py: Python<'_>, text: Words) -> PyResult<()> {
        self.session.fail(py, &text)
    }

    #[doc = doc!("Instance._cancel")]
    #[pyo3(name = "_cancel", signature = (port=None, slot=None))]
    fn cancel(
        &self,
        py: Python<'_>,
        port: Option<PortArgument<'_, '_>>,
        slot: Option<Slot>,
    ) -> PyResult<()> {
        let call = self.session.enter(py)?;
        let port = port.map(|port| self.find(&call, port)).transpose()?;
        let handle = port
            .as_ref()
            .map_or(std::ptr::null_mut(), |port| port.get().as_ptr());
        // SAFETY: the instance is open while the call lives, and the port lives as long as the
        // instance.
        error::check(py, unsafe {
            sys::titin_cancel(call.instance(), handle, slot_of(slot))
        })
    }

    #[doc = doc!("Instance._skip_deadlocks")]
    #[pyo3(name = "_skip_deadlocks")]
    fn skip_deadlocks(&self, py: Python<'_>) -> PyResult<()> {
        let call = self.session.enter(py)?;
        // SAFETY: the instance is open while the call lives.
        error::check(py, unsafe { sys::titin_skip_deadlocks(call.instance()) })
    }

    #[doc = doc!("Instance.region")]
    fn region(&self, name: Text) -> PyResult<Region> {
        Ok(Region::new(self.session.clone(), name.into_c()))
    }

    #[doc = doc!("Instance.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.session.close(py, false)
    }

    #[doc = doc!("Instance.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.session.is_closed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: Option<Bound<'_, PyType>>,
        raised: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if self.session.is_closed() {
            return Ok(());
        }
        let raised = match raised {
            Some(raised) => PyErr::from_value(raised),
            None => match self.session.close(py, false) {
                Ok(()) => return Ok(()),
                Err(error) if self.session.is_closed() => return Err(error),
                // A signal came, or another thread is in a call: the run fails.
                Err(error) => {
                    self.session.abandon(py, &error)?;
                    return Err(error);
                }
            },
        };
        self.session.abandon(py, &raised)
    }

    fn __repr__(&self) -> String {
        format!(
            "<titin.Instance {}{}>",
            self.name,
            if self.session.is_closed() {
                ", closed"
            } else {
                ""
            }
        )
    }
}

/// The options of an instance. On a thread of `titin.run`, the thread's name and run are the
/// defaults.
pub fn options(
    py: Python<'_>,
    ports: [Option<Bound<'_, PyAny>>; 4],
    name: Option<Text>,
    manager: Option<Text>,
    unchecked: Option<Bound<'_, PyAny>>,
    checks: Option<Checks>,
    overlays: Option<OverlayUse>,
) -> PyResult<Options> {
    let reason = unchecked.map(|reason| reason_of(&reason)).transpose()?;
    let (own_name, own_manager) = assignment().unzip();
    let name = given_or(py, name, own_name)?;
    let manager = given_or(py, manager, own_manager)?;
    let options = Options::new(py)?;
    // SAFETY: the options live until the end of this function.
    error::check(py, unsafe { filter::offer(options.as_ptr()) })?;
    name.map_or(Ok(()), |name| options.set_instance(py, &name))?;
    manager.map_or(Ok(()), |manager| options.set_manager(py, &manager))?;
    reason.map_or(Ok(()), |reason| options.set_unchecked(py, &reason))?;
    checks.map_or(Ok(()), |checks| options.set_checks(py, checks))?;
    overlays.map_or(Ok(()), |overlays| options.set_overlays(py, overlays))?;
    for (operator, names) in (1..).zip(ports) {
        if let Some(names) = names {
            options.add_ports(operator, &names)?;
        }
    }
    Ok(options)
}

/// The given text, or else `default`.
fn given_or(
    py: Python<'_>,
    given: Option<Text>,
    default: Option<String>,
) -> PyResult<Option<Text>> {
    match (given, default) {
        (None, Some(default)) => Text::new(py, &default).map(Some),
        (given, _) => Ok(given),
    }
}

impl Instance {
    pub(crate) fn with(py: Python<'_>, session: Arc<Session>) -> PyResult<Self> {
        let call = session.enter(py)?;
        let ports = PyDict::new(py);
        // SAFETY: the instance is open while the call lives; the instance's ports live as long.
        let (name, workdir, time_unit) = unsafe {
            for index in 0..sys::titin_port_count(call.instance()) {
                let handle = sys::titin_port_at(call.instance(), index);
                let port = Port::new(handle_of(py, handle)?, &session);
                ports.set_item(PyString::intern(py, &port.name), Py::new(py, port)?)?;
            }
            (
                error::text(sys::titin_instance_name(call.instance())),
                error::text(sys::titin_workdir(call.instance())),
                error::text(sys::titin_time_unit(call.instance())),
            )
        };
        drop(call);
        Ok(Instance {
            session,
            ports: ports.unbind(),
            name,
            workdir,
            time_unit,
        })
    }

    /// The port for an argument: a port, or a port's name.
    fn find<'py>(
        &self,
        call: &Call<'_>,
        port: PortArgument<'_, 'py>,
    ) -> PyResult<Bound<'py, Port>> {
        let py = port.py();
        if let Ok(port) = port.cast::<Port>() {
            return match port.get().is_of(&self.session) {
                true => Ok(port.clone()),
                false => Err(error::usage(
                    py,
                    format!("{} is a port of another instance", port.get().name),
                )),
            };
        }
        let Ok(name) = port.cast::<PyString>() else {
            let text = format!(
                "a port is given by its name or as instance.port(name); found {}",
                port.repr()?
            );
            return Err(error::mismatch(py, text));
        };
        self.find_named(call, name)
    }

    fn find_named<'py>(
        &self,
        call: &Call<'_>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, Port>> {
        let py = name.py();
        if let Some(found) = self.ports.bind(py).get_item(name)? {
            // SAFETY: this crate puts only ports into the dict. Programs get copies of the dict.
            return Ok(unsafe { found.cast_into_unchecked() });
        }
        let name = Text::new(py, unicode(name)?)?;
        // SAFETY: the instance is open while the call lives. The call fails, and the error lists
        // the ports.
        let handle = unsafe { sys::titin_port_find(call.instance(), name.as_c().as_ptr()) };
        // SAFETY: as above.
        Bound::new(py, unsafe {
            Port::new(handle_of(py, handle)?, &self.session)
        })
    }

    /// The ports for all arguments. An argument is a single port, or a list or tuple of ports.
    fn find_all<'py>(
        &self,
        call: &Call<'_>,
        ports: &Bound<'py, PyTuple>,
    ) -> PyResult<Vec<Bound<'py, Port>>> {
        let mut found = Vec::new();
        for given in ports {
            if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
                for port in given.try_iter()? {
                    found.push(self.find(call, &port?)?);
                }
            } else {
                found.push(self.find(call, &given)?);
            }
        }
        Ok(found)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.session.is_closed() {
            return;
        }
        Python::attach(|py| {
            // An exception may be on the way, and may have dropped the instance. This function
            // keeps the exception.
            let raised = PyErr::take(py);
            let _ = self.session.fail(
                py,
                &Words::new("the program let go of the instance without closing it"),
            );
            let _ = self.session.close(py, true);
            raised.into_iter().for_each(|raised| raised.restore(py));
        });
    }
}

/// A handle from libtitin, or libtitin's last error if the handle is NULL.
fn handle_of<T>(py: Python<'_>, handle: *mut T) -> PyResult<NonNull<T>> {
    NonNull::new(handle).ok_or_else(|| error::last(py))
}

/// A message of the program's own: the object itself, or a message with the object as data.
fn own_message(object: Bound<'_, PyAny>) -> PyResult<Py<Message>> {
    let py = object.py();
    match object.cast::<Message>() {
        Ok(message) => Ok(message.clone().unbind()),
        Err(_) => Py::new(py, Message::own(py, object.unbind())),
    }
}

/// A message that a call has handed out.
///
/// # Safety
/// `message` is the caller's to free.
pub unsafe fn taken(py: Python<'_>, message: *mut sys::titin_message) -> PyResult<Py<Message>> {
    let message = handle_of(py, message)?;
    // SAFETY: as the caller promises.
    Py::new(py, Message::received(unsafe { Payload::new(message) }))
}

/// Deletes the secret in `os.environ`: child processes get their environment from there. libtitin
/// has deleted the secret in the environment of the process.
fn forget_secret(py: Python<'_>) {
    let environment = py
        .import(intern!(py, "os"))
        .and_then(|os| os.getattr(intern!(py, "environ")));
    // Another thread may have opened an instance, and deleted the variable already.
    let _ = environment.and_then(|environment| environment.del_item("TITIN_SECRET"));
}

/// A slot in the numbering of libtitin.
pub fn slot_of(slot: Option<Slot>) -> c_int {
    slot.map_or(sys::NO_SLOT, |slot| slot.0)
}

/// The number of a level given by name; the numbers are those of `logging`.
fn level_named(level: &Bound<'_, PyAny>) -> PyResult<c_int> {
    match level.extract::<String>()?.to_ascii_lowercase().as_str() {
        "debug" => Ok(10),
        "info" => Ok(20),
        "warning" => Ok(30),
        "error" => Ok(40),
        "critical" => Ok(50),
        other => {
            let text = format!(
                "\"{other}\" is no level: use debug, info, warning, error or critical, or a number"
            );
            Err(error::usage(level.py(), text))
        }
    }
}
