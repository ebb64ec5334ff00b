//! Fields: `titin.Field`, and how it is declared.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::Array;
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
    /// Whether a local array has as many dimensions as the whole.
    whole: bool,
    /// Taken by a call, which says how its arrays lie before it sends or receives them.
    busy: AtomicBool,
    /// The arrays of calls that were interrupted, and may have some of what is to be received: so no others are at their places.
    halfway: Mutex<Vec<Py<PyTuple>>>,
}

/// A call on a field, of which there is one at a time.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
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
        // SAFETY: it is ours, and no call goes on.
        unsafe { sys::titin_field_free(self.handle.as_ptr()) }
    }
}

/// A decomposition of libtitin.
struct Decomposition(NonNull<sys::titin_decomposition>);

impl Drop for Decomposition {
    fn drop(&mut self) {
        // SAFETY: it is ours.
        unsafe { sys::titin_decomposition_free(self.0.as_ptr()) }
    }
}

type Bounds = (Vec<i64>, Vec<i64>);

/// What a field is declared with, as `titin.Instance.field` takes it.
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
    /// `port` is one of this session's instance, which is open, as `instance` is.
    pub unsafe fn declare(
        self,
        session: &Arc<Session>,
        instance: *mut sys::titin_instance,
        port: *mut sys::titin_port,
    ) -> PyResult<Field> {
        let py = self.shape.py();
        let shape = match self.shape.extract::<i64>() {
            Ok(extent) => vec![extent],
            Err(_) => self
                .shape
                .try_iter()?
                .map(|extent| extent?.extract())
                .collect::<PyResult<Vec<i64>>>()?,
        };
        let dtypes = dtypes(self.dtype)?;
        let order = match self.order {
            "C" => sys::ORDER_C,
            "F" => sys::ORDER_FORTRAN,
            other => {
                return Err(error::usage(
                    py,
                    format!("a field of order {other:?}: there are C and F"),
                ));
            }
        };
        let dims = shape.len() as c_int;
        // SAFETY: the shape has so many entries; what is made is freed by its owner here.
        let made = unsafe { sys::titin_decomposition_new(dims, shape.as_ptr()) };
        let made = Decomposition(NonNull::new(made).ok_or_else(|| error::last(py))?);
        let spec = made.0.as_ptr();
        // SAFETY: the instance is open.
        let (rank, count) = unsafe { (sys::titin_rank(instance), sys::titin_ranks(instance)) };
        let fields = py.import(intern!(py, "titin.fields"))?;
        let (below, above): Bounds = fields.call_method1("halo", (&self.halo, dims))?.extract()?;
        let region: Option<Bounds> = fields
            .call_method1("region", (self.region, &shape))?
            .extract()?;
        let parts =
            fields.call_method1("describe", (self.owned, &shape, self.order, rank, count))?;
        let (kind, what, spreads, ranks) =
            parts.extract::<(String, Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let whole;
        // SAFETY: the decomposition lives, and each list has an entry for each dimension: Python has seen to it, and the
        // lengths are compared where it has not.
        unsafe {
            error::check(py, sys::titin_decomposition_order(spec, order))?;
            error::check(
                py,
                sys::titin_decomposition_halo(spec, below.as_ptr(), above.as_ptr()),
            )?;
            if let Some((lower, upper)) = &region {
                same(py, &[lower.len(), upper.len()], shape.len())?;
                error::check(
                    py,
                    sys::titin_decomposition_region(spec, lower.as_ptr(), upper.as_ptr()),
                )?;
            }
            match kind.as_str() {
                "grid" => {
                    let processes: Vec<c_int> = what.extract()?;
                    error::check(py, sys::titin_decomposition_grid(spec, processes.as_ptr()))?;
                    for (dim, spread) in spreads.try_iter()?.enumerate() {
                        let (spread, dim) = (spread?, dim as c_int);
                        error::check(
                            py,
                            match spread.extract::<(c_int, i64)>() {
                                Ok((kind, block)) if spread.is_instance_of::<PyTuple>() => {
                                    sys::titin_decomposition_spread(spec, dim, kind, block)
                                }
                                _ => {
                                    let bounds: Vec<i64> = spread.extract()?;
                                    let count = bounds.len() as c_int;
                                    sys::titin_decomposition_bounds(
                                        spec,
                                        dim,
                                        count,
                                        bounds.as_ptr(),
                                    )
                                }
                            },
                        )?;
                    }
                    if ranks.extract::<String>()? == "F" {
                        error::check(py, sys::titin_decomposition_ranks(spec, sys::ORDER_FORTRAN))?;
                    }
                    whole = true;
                }
                "boxes" => {
                    let boxes: Vec<Bounds> = what.extract()?;
                    whole = boxes.len() == 1;
                    for (lower, upper) in &boxes {
                        same(py, &[lower.len(), upper.len()], shape.len())?;
                        error::check(
                            py,
                            sys::titin_decomposition_box(spec, lower.as_ptr(), upper.as_ptr()),
                        )?;
                    }
                }
                _ => {
                    let numbers = Array::to_send(&what)?;
                    let count = if numbers.rank() == 1 {
                        *numbers.extents()
                    } else {
                        0
                    };
                    let given =
                        sys::titin_decomposition_indices(spec, count, numbers.data().cast());
                    error::check(py, given)?;
                    whole = false;
                }
            }
            let mut field = std::ptr::null_mut();
            let call = session.enter(py)?;
            call.wait(py, || {
                sys::titin_field_new(
                    port,
                    spec,
                    dtypes.len() as c_int,
                    dtypes.as_ptr(),
                    &mut field,
                )
            })?;
            let handle = NonNull::new(field).ok_or_else(|| error::last(py))?;
            let port = error::text(sys::titin_port_name(port));
            let (session, busy, halfway) =
                (session.clone(), AtomicBool::new(false), Mutex::default());
            Ok(Field {
                handle,
                session,
                port,
                dims,
                dtypes,
                whole,
                busy,
                halfway,
            })
        }
    }
}

/// Fails unless there are as many bounds as dimensions.
fn same(py: Python<'_>, lengths: &[usize], dims: usize) -> PyResult<()> {
    match lengths.iter().find(|length| **length != dims) {
        None => Ok(()),
        Some(odd) => Err(error::usage(
            py,
            format!("a box with {odd} bounds in an array of {dims} dimensions"),
        )),
    }
}

/// One element type or a list of them.
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
        // SAFETY: the field lives, and the arrays are held until this function returns.
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
        let mut halfway = self
            .halfway
            .lock()
            .expect("nothing panics while it is locked");
        match &received {
            Ok(()) => {
                let before = std::mem::take(&mut *halfway);
                drop(halfway);
                // Arrays that nobody else has any more go now, which may run the program's code.
                drop(before);
            }
            Err(raised) if !error::is_of_titin(py, raised)? => {
                halfway.push(arrays.clone().unbind())
            }
            Err(_) => {}
        }
        received?;
        if timestamp.is_nan() {
            return Ok(None);
        }
        let next = (next != sys::NO_NEXT).then_some(next);
        let stamps = py
            .import(intern!(py, "titin.fields"))?
            .getattr(intern!(py, "Stamps"))?;
        Ok(Some(stamps.call1((timestamp, next))?.unbind()))
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
        let (field, numpy) = (self.handle.as_ptr(), py.import(intern!(py, "numpy"))?);
        let along = |dim: c_int| {
            // SAFETY: the field lives.
            let count = unsafe { sys::titin_field_owned(field, dim, std::ptr::null_mut()) };
            let count = usize::try_from(count).map_err(|_| error::last(py))?;
            let indices =
                numpy.call_method1(intern!(py, "empty"), (count, intern!(py, "int64")))?;
            if count > 0 {
                let place = Array::to_fill(&indices)?.data();
                // SAFETY: there is room for as many as it has said; the array lives, and nobody else has it.
                unsafe { sys::titin_field_owned(field, dim, place.cast()) };
            }
            Ok(indices)
        };
        PyTuple::new(py, (0..self.dims).map(along).collect::<PyResult<Vec<_>>>()?)
    }

    #[doc = doc!("Field.withdraw")]
    fn withdraw(&self, py: Python<'_>) -> PyResult<()> {
        let (field, call) = (self.handle.as_ptr(), self.session.enter(py)?);
        // SAFETY: the field lives.
        call.wait(py, || unsafe { sys::titin_field_withdraw(field) })
    }
}

impl Field {
    fn take(&self, py: Python<'_>) -> PyResult<Busy<'_>> {
        match self.busy.swap(true, Ordering::Acquire) {
            false => Ok(Busy(&self.busy)),
            true => Err(error::usage(
                py,
                "two calls at once on a field: each thread needs one of its own",
            )),
        }
    }

    /// The arrays of a call, each of its element type; libtitin learns how they lie.
    fn hold(
        &self,
        arrays: &Bound<'_, PyTuple>,
        look: impl Fn(&Bound<'_, PyAny>) -> PyResult<Array>,
    ) -> PyResult<Vec<Array>> {
        let py = arrays.py();
        if arrays.len() != self.dtypes.len() {
            let (given, wanted) = (arrays.len(), self.dtypes.len());
            let text = format!(
                "field on port '{}': {given} arrays were given, where it has {wanted}",
                self.port
            );
            return Err(error::usage(py, text));
        }
        let mut held = Vec::new();
        for (number, (object, dtype)) in arrays.iter().zip(&self.dtypes).enumerate() {
            let array = look(&object)?;
            if array.dtype != *dtype {
                let [given, wanted] = [array.dtype, *dtype].map(sys::element_name);
                let (port, place) = (&self.port, number + 1);
                let text = format!(
                    "field on port '{port}': argument {place} is of {given}, where the field was declared with {wanted}"
                );
                return Err(error::mismatch(py, text));
            }
            if self.whole && array.rank() == self.dims {
                // SAFETY: the array's extents and strides have as many entries as the field has dimensions.
                let told = unsafe {
                    let field = self.handle.as_ptr();
                    sys::titin_field_layout(
                        field,
                        number as c_int,
                        array.extents(),
                        array.strides(),
                    )
                };
                error::check(py, told)?;
            } else {
                // SAFETY: the field lives; NULL is one element after the other, whatever the last call had.
                let told = unsafe {
                    let (field, none) = (self.handle.as_ptr(), std::ptr::null());
                    sys::titin_field_layout(field, number as c_int, none, none)
                };
                error::check(py, told)?;
                // SAFETY: the field lives.
                let wanted =
                    unsafe { sys::titin_field_bytes(self.handle.as_ptr(), number as c_int) };
                if array.rank() != 1 || !array.is_contiguous(b'C') || array.bytes() as i64 != wanted
                {
                    let text = format!(
                        "field on port '{}': argument {} has to be flat and contiguous here, one part after the other, of \
                         {wanted} bytes; it has rank {} and {} bytes",
                        self.port,
                        number + 1,
                        array.rank(),
                        array.bytes()
                    );
                    return Err(error::mismatch(py, text));
                }
            }
            held.push(array);
        }
        Ok(held)
    }
}
