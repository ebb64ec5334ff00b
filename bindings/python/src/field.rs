//! Fields: `titin.Field`, and the declaration of a field.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{extents, order_number};
use crate::array::Array;
use crate::decomposition::{Bounds, Decomposition};
use crate::loan::number;
use crate::session::Session;
use crate::{error, sys};

#[doc = doc!("Field")]
#[pyclass(frozen, module = "titin")]
pub struct Field {
    handle: NonNull<sys::titin_field>,
    session: Arc<Session>,
    port: String,
    dims: c_int,
    dtypes: Vec<c_int>,
    /// Whether the local arrays have as many dimensions as the whole array.
    has_all_dimensions: bool,
    /// Set during a call: a second call would change the layouts that the first has set.
    busy: AtomicBool,
    /// The arrays of interrupted calls: such arrays may have a part of the next field. The `Field`
    /// keeps the arrays. Otherwise a new array could get the same memory, and libtitin would take
    /// the new array for the old array.
    interrupted: Mutex<Vec<Py<PyTuple>>>,
}

/// A call on a field. A field allows only one call at a time.
struct FieldCall<'a>(&'a AtomicBool);

impl Drop for FieldCall<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

// SAFETY: fields may be used by any thread (titin.h, "Threads").
unsafe impl Send for Field {}
// SAFETY: as above.
unsafe impl Sync for Field {}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the field is ours, and no call on the field goes on.
        unsafe { sys::titin_field_free(self.handle.as_ptr()) }
    }
}

/// The arguments of `titin.Instance.field`.
pub struct Declaration<'a, 'py> {
    pub shape: &'a Bound<'py, PyAny>,
    pub dtype: &'a Bound<'py, PyAny>,
    pub owned: Option<Bound<'py, PyAny>>,
    pub halo: Bound<'py, PyAny>,
    pub region: Option<Bound<'py, PyAny>>,
    pub order: &'a str,
}

impl Declaration<'_, '_> {
    /// Declares the field on a port.
    ///
    /// # Safety
    /// `instance` is the open instance of `session`; `port` is a port of `instance`.
    pub unsafe fn declare(
        self,
        session: &Arc<Session>,
        instance: *mut sys::titin_instance,
        port: *mut sys::titin_port,
    ) -> PyResult<Field> {
        let py = self.shape.py();
        let shape = extents(self.shape)?;
        let dtypes = dtypes(self.dtype)?;
        // SAFETY: the instance is open.
        let ranks = unsafe { (sys::titin_rank(instance), sys::titin_ranks(instance)) };
        let (decomposition, has_all_dimensions) = self.decomposition(&shape, ranks)?;
        let mut field = std::ptr::null_mut();
        let (count, spec) = (dtypes.len() as c_int, decomposition.as_ptr());
        // SAFETY: the instance is open, and the decomposition lives.
        session.enter(py)?.wait(py, || unsafe {
            sys::titin_field_new(port, spec, count, dtypes.as_ptr(), &mut field)
        })?;
        Ok(Field {
            handle: NonNull::new(field).ok_or_else(|| error::last(py))?,
            session: session.clone(),
            // SAFETY: the port lives as long as the instance, and the instance is open.
            port: unsafe { error::text(sys::titin_port_name(port)) },
            dims: shape.len() as c_int,
            dtypes,
            has_all_dimensions,
            busy: AtomicBool::new(false),
            interrupted: Mutex::default(),
        })
    }

    /// The decomposition of the field, and whether the local arrays have as many dimensions as the
    /// whole array. `ranks` are the number of this rank, and of all ranks.
    fn decomposition(
        self,
        shape: &[i64],
        ranks: (c_int, c_int),
    ) -> PyResult<(Decomposition, bool)> {
        let py = self.shape.py();
        let order = order_number(py, self.order, "a field")?;
        let decomposition = Decomposition::new(py, shape)?;
        let fields = py.import(intern!(py, "titin.fields"))?;
        let halo = fields.call_method1("halo", (&self.halo, shape.len()))?;
        let region = fields.call_method1("region", (self.region, shape))?;
        let owned = (self.owned, shape, self.order, ranks.0, ranks.1);
        let owned = fields.call_method1("describe", owned)?;
        decomposition.set_order(py, order)?;
        decomposition.set_halo(py, &halo.extract::<Bounds>()?)?;
        if let Some(region) = region.extract::<Option<Bounds>>()? {
            decomposition.set_region(py, &region)?;
        }
        let has_all_dimensions = decomposition.set_owned(&owned)?;
        Ok((decomposition, has_all_dimensions))
    }
}

/// Numbers of the element types: a single type, or each type of a list.
fn dtypes(given: &Bound<'_, PyAny>) -> PyResult<Vec<c_int>> {
    let py = given.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let one =
        |dtype: &Bound<'_, PyAny>| number(&numpy.call_method1(intern!(py, "dtype"), (dtype,))?);
    match given.is_instance_of::<pyo3::types::PyList>() {
        true => given.try_iter()?.map(|dtype| one(&dtype?)).collect(),
        false => Ok(vec![one(given)?]),
    }
}

#[pymethods]
impl Field {
    #[doc = doc!("Field.send")]
    #[pyo3(signature = (*arrays, timestamp, next_timestamp=None))]
    fn send(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyTuple>,
        timestamp: f64,
        next_timestamp: Option<f64>,
    ) -> PyResult<()> {
        let _busy = self.take(py)?;
        let held = self.hold(arrays, Array::to_read)?;
        let pointers: Vec<*const c_void> =
            held.iter().map(|array| array.data().cast_const()).collect();
        let (field, next) = (self.handle.as_ptr(), next_timestamp.unwrap_or(sys::NO_NEXT));
        let call = self.session.enter(py)?;
        // SAFETY: the field lives, and this function holds the arrays until the function returns.
        call.wait(py, || unsafe {
            sys::titin_field_send(field, pointers.as_ptr(), timestamp, next)
        })
    }

    #[doc = doc!("Field.receive")]
    #[pyo3(signature = (*arrays, at=None, timeout=None))]
    fn receive(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyTuple>,
        at: Option<f64>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let _busy = self.take(py)?;
        let held = self.hold(arrays, Array::to_fill)?;
        let pointers: Vec<*mut c_void> = held.iter().map(Array::data).collect();
        let (field, timeout) = (self.handle.as_ptr(), timeout.unwrap_or(sys::WAIT));
        let (mut timestamp, mut next) = (f64::NAN, sys::NO_NEXT);
        let call = self.session.enter(py)?;
        // SAFETY: as above.
        let received = call.wait(py, || unsafe {
            let (arrays, stamps) = (pointers.as_ptr(), (&raw mut timestamp, &raw mut next));
            match at {
                None => sys::titin_field_receive(field, arrays, timeout, stamps.0, stamps.1),
                Some(at) => {
                    sys::titin_field_receive_at(field, arrays, at, timeout, stamps.0, stamps.1)
                }
            }
        });
        self.note_interrupted(py, arrays, &received)?;
        received?;
        match timestamp.is_nan() {
            true => Ok(None),
            false => stamps(py, timestamp, next).map(Some),
        }
    }

    #[doc = doc!("Field.extents")]
    #[getter]
    fn extents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut extents = vec![0i64; self.dims as usize];
        // SAFETY: the field lives, and there is an entry for each dimension.
        error::check(py, unsafe {
            sys::titin_field_extents(self.handle.as_ptr(), extents.as_mut_ptr())
        })?;
        PyTuple::new(py, extents)
    }

    #[doc = doc!("Field.owned")]
    #[getter]
    fn owned<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let indices = (0..self.dims).map(|dim| self.owned_along(py, dim));
        PyTuple::new(py, indices.collect::<PyResult<Vec<_>>>()?)
    }

    #[doc = doc!("Field.withdraw")]
    fn withdraw(&self, py: Python<'_>) -> PyResult<()> {
        let (field, call) = (self.handle.as_ptr(), self.session.enter(py)?);
        // SAFETY: the field lives.
        call.wait(py, || unsafe { sys::titin_field_withdraw(field) })
    }
}

impl Field {
    /// The indices of this rank along a dimension.
    fn owned_along<'py>(&self, py: Python<'py>, dim: c_int) -> PyResult<Bound<'py, PyAny>> {
        let field = self.handle.as_ptr();
        // SAFETY: the field lives.
        let count = unsafe { sys::titin_field_owned(field, dim, std::ptr::null_mut()) };
        let count = usize::try_from(count).map_err(|_| error::last(py))?;
        let numpy = py.import(intern!(py, "numpy"))?;
        let indices = numpy.call_method1(intern!(py, "empty"), (count, intern!(py, "int64")))?;
        if count > 0 {
            let room = Array::to_fill(&indices)?.data();
            // SAFETY: there is room for the number of indices given by the call; the array lives,
            // and nothing else uses the array.
            unsafe { sys::titin_field_owned(field, dim, room.cast()) };
        }
        Ok(indices)
    }

    fn take(&self, py: Python<'_>) -> PyResult<FieldCall<'_>> {
        match self.busy.swap(true, Ordering::Acquire) {
            false => Ok(FieldCall(&self.busy)),
            true => Err(error::usage(
                py,
                "two calls at once on a field: each thread needs one of its own",
            )),
        }
    }

    /// The arrays of a call, each checked for the right element type. libtitin learns the layout of
    /// each array.
    fn hold(
        &self,
        arrays: &Bound<'_, PyTuple>,
        look: impl Fn(&Bound<'_, PyAny>) -> PyResult<Array>,
    ) -> PyResult<Vec<Array>> {
        let py = arrays.py();
        let (given, wanted) = (arrays.len(), self.dtypes.len());
        if given != wanted {
            let port = &self.port;
            let text =
                format!("field on port '{port}': {given} arrays were given, where it has {wanted}");
            return Err(error::usage(py, text));
        }
        let mut held = Vec::new();
        for (number, (object, dtype)) in arrays.iter().zip(&self.dtypes).enumerate() {
            let array = look(&object)?;
            self.check_dtype(py, number, &array, *dtype)?;
            self.describe(py, number, &array)?;
            held.push(array);
        }
        Ok(held)
    }

    /// Gives libtitin the layout of an array of a call.
    fn describe(&self, py: Python<'_>, number: usize, array: &Array) -> PyResult<()> {
        if self.has_all_dimensions && array.rank() == self.dims {
            return self.set_layout(py, number, array.extents(), array.strides());
        }
        // NULL sets the default layout, one element after the other. Without the call, libtitin
        // would keep the layout of the last call.
        self.set_layout(py, number, std::ptr::null(), std::ptr::null())?;
        self.check_flat(py, number, array)
    }

    fn check_dtype(
        &self,
        py: Python<'_>,
        number: usize,
        array: &Array,
        dtype: c_int,
    ) -> PyResult<()> {
        if array.dtype == dtype {
            return Ok(());
        }
        let [given, wanted] = [array.dtype, dtype].map(sys::element_name);
        let (port, place) = (&self.port, number + 1);
        let text = format!(
            "field on port '{port}': argument {place} is of {given}, where the field was declared with {wanted}"
        );
        Err(error::mismatch(py, text))
    }

    /// Gives libtitin the layout of an array: extents and strides for each dimension of the field,
    /// or NULL for both.
    fn set_layout(
        &self,
        py: Python<'_>,
        number: usize,
        extents: *const i64,
        strides: *const i64,
    ) -> PyResult<()> {
        let (field, number) = (self.handle.as_ptr(), number as c_int);
        // SAFETY: the field lives; the lists are NULL or have an entry for each dimension.
        error::check(py, unsafe {
            sys::titin_field_layout(field, number, extents, strides)
        })
    }

    /// Fails unless an array is flat, with as many bytes as the elements of this rank.
    fn check_flat(&self, py: Python<'_>, number: usize, array: &Array) -> PyResult<()> {
        // SAFETY: the field lives.
        let wanted = unsafe { sys::titin_field_bytes(self.handle.as_ptr(), number as c_int) };
        // SAFETY: the number of a type.
        let size = i64::from(unsafe { sys::titin_dtype_size(self.dtypes[number]) });
        let is_flat = array.rank() == 1 && array.is_contiguous(b'C');
        if is_flat && array.bytes() as i64 == wanted {
            return Ok(());
        }
        let gaps = if is_flat || array.rank() != 1 {
            ""
        } else {
            ", with gaps"
        };
        let shape = if self.has_all_dimensions {
            let shape = self.extents(py)?.repr()?;
            format!("one of shape {shape}, halo and all, or ")
        } else {
            String::new()
        };
        let text = format!(
            "field on port '{}': argument {} has the shape {}{gaps}; on this rank give {shape}a flat and contiguous one of {} elements",
            self.port,
            number + 1,
            PyTuple::new(py, array.shape())?.repr()?,
            wanted / size
        );
        Err(error::mismatch(py, text))
    }

    /// Keeps the arrays of a call interrupted by a signal. Lets all kept arrays go once a call has
    /// received.
    fn note_interrupted(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyTuple>,
        received: &PyResult<()>,
    ) -> PyResult<()> {
        let mut interrupted = self
            .interrupted
            .lock()
            .expect("nothing panics while it is locked");
        match received {
            Ok(()) => {
                let before = std::mem::take(&mut *interrupted);
                drop(interrupted);
                // Freeing an array may run the program's code, and this code must not find the lock
                // held.
                drop(before);
            }
            Err(raised) if !error::is_of_titin(py, raised)? => {
                interrupted.push(arrays.clone().unbind());
            }
            Err(_) => {}
        }
        Ok(())
    }
}

/// A `titin.Stamps`.
fn stamps(py: Python<'_>, timestamp: f64, next: f64) -> PyResult<Py<PyAny>> {
    let next = (next != sys::NO_NEXT).then_some(next);
    let stamps = py
        .import(intern!(py, "titin.fields"))?
        .getattr(intern!(py, "Stamps"))?;
    Ok(stamps.call1((timestamp, next))?.unbind())
}
