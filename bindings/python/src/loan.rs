//! Memory of titin's for arrays that are sent from where they lie.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use crate::array::{Array, is_ndarray};
use crate::{error, sys};

/// One loan, for NumPy to look at: every array over it keeps it, and so its memory.
#[pyclass(frozen, module = "titin._core")]
pub struct Loan {
    handle: NonNull<sys::titin_loan>,
    data: *mut c_void,
    length: isize,
    dtype: c_int,
    shape: Vec<i64>,
    order: c_int,
    /// From then on the memory does not change any more.
    sent: AtomicBool,
}

// SAFETY: loans may be used by any thread (titin.h, "Threads"); the memory is NumPy's to guard, as that of any array.
unsafe impl Send for Loan {}
// SAFETY: as above.
unsafe impl Sync for Loan {}

/// One more owner of a loan, to be sent.
pub struct Share(*mut sys::titin_loan);

impl Loan {
    /// An array over memory that is lent for it.
    ///
    /// # Safety
    /// `port` is one of an instance that is open.
    pub unsafe fn lend<'py>(
        port: *mut sys::titin_port,
        slot: c_int,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        order: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = shape.py();
        let numpy = py.import(intern!(py, "numpy"))?;
        let dtype = numpy.call_method1(intern!(py, "dtype"), (dtype,))?;
        let number = number(&dtype)?;
        let extents = match shape.extract::<i64>() {
            Ok(extent) => vec![extent],
            Err(_) => shape
                .try_iter()?
                .map(|extent| extent?.extract())
                .collect::<PyResult<Vec<i64>>>()?,
        };
        let order_number = match order {
            "C" => sys::ORDER_C,
            "F" => sys::ORDER_FORTRAN,
            other => {
                return Err(error::usage(
                    py,
                    format!("an array of order {other:?}: there are C and F"),
                ));
            }
        };
        let mut loan = std::ptr::null_mut();
        // SAFETY: as the caller promises; the extents live until the call returns.
        let status = unsafe {
            sys::titin_loan_new(
                port,
                slot,
                number,
                extents.len() as c_int,
                extents.as_ptr(),
                order_number,
                std::ptr::null(),
                &mut loan,
            )
        };
        error::check(py, status)?;
        let handle = NonNull::new(loan).ok_or_else(|| error::last(py))?;
        // SAFETY: the loan was just made.
        let data = unsafe { sys::titin_loan_data(loan) };
        let size = dtype.getattr(intern!(py, "itemsize"))?.extract::<i64>()?;
        let length = extents.iter().product::<i64>() * size;
        let loan = Loan {
            handle,
            data,
            length: length as isize,
            dtype: number,
            shape: extents.clone(),
            order: order_number,
            sent: AtomicBool::new(false),
        };
        let given = PyDict::new(py);
        given.set_item("shape", PyTuple::new(py, extents)?)?;
        given.set_item("dtype", dtype)?;
        given.set_item("buffer", Bound::new(py, loan)?)?;
        given.set_item("order", order)?;
        numpy.call_method(intern!(py, "ndarray"), (), Some(&given))
    }

    /// One more owner of the loan that this array is all of, which is read-only from here on; `None` for others.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Share>> {
        let py = object.py();
        if !is_ndarray(object) {
            return Ok(None);
        }
        let base = object.getattr(intern!(py, "base"))?;
        let Ok(base) = base.cast::<Loan>() else {
            return Ok(None);
        };
        let loan = base.get();
        if !loan.is_all_of(&Array::to_send(object)?) {
            return Ok(None);
        }
        object
            .getattr(intern!(py, "flags"))?
            .setattr(intern!(py, "writeable"), false)?;
        loan.sent.store(true, Ordering::Relaxed);
        // SAFETY: the loan lives as long as its object.
        Ok(Some(Share(unsafe {
            sys::titin_loan_retain(loan.handle.as_ptr())
        })))
    }

    fn is_all_of(&self, array: &Array) -> bool {
        let shape: &[i64] = match array.rank() {
            0 => &[],
            // SAFETY: so many extents are there as long as the array is.
            rank => unsafe { std::slice::from_raw_parts(array.extents(), rank as usize) },
        };
        let same = array.data() == self.data && array.dtype == self.dtype && shape == self.shape;
        same && array.is_contiguous(if self.order == sys::ORDER_C {
            b'C'
        } else {
            b'F'
        })
    }
}

#[pymethods]
impl Loan {
    /// # Safety
    /// Python calls this with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let sent = this.sent.load(Ordering::Relaxed);
        if sent && flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(PyBufferError::new_err(
                "this array was sent from where it lies, so it is read-only; ask for another loan, or work on a .copy()",
            ));
        }
        // SAFETY: the memory lives as long as this object, to which the view takes a reference.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.data,
                this.length,
                c_int::from(sent),
                flags,
            )
        };
        if code == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // SAFETY: this was one owner.
        unsafe { sys::titin_loan_free(self.handle.as_ptr()) }
    }
}

impl Share {
    /// Where libtitin takes the loan from, once it is sent.
    pub fn place(&mut self) -> *mut *mut sys::titin_loan {
        &mut self.0
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // SAFETY: NULL, or an owner that was not sent.
        unsafe { sys::titin_loan_free(self.0) }
    }
}

/// The number of a type of NumPy's.
pub fn number(dtype: &Bound<'_, PyAny>) -> PyResult<c_int> {
    let py = dtype.py();
    let name = dtype.getattr(intern!(py, "name"))?.extract::<String>()?;
    let native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
    let number = sys::element_type(&name).filter(|_| native);
    number.ok_or_else(|| {
        let text = format!(
            "arrays of {dtype} do not travel so: elements are bool, integers of 8 to 64 bits, float16 to float64, bfloat16, \
             complex64 or complex128, in this machine's byte order"
        );
        error::mismatch(py, text)
    })
}
