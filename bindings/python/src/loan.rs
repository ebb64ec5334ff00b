//! Loans: memory of titin for arrays, sent without a copy.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use crate::argument::{extents, order_number};
use crate::array::Array;
use crate::ndarray;
use crate::{error, sys};

/// A loan as a buffer for NumPy. Arrays over the buffer keep the loan, and so the loan's memory.
#[pyclass(frozen, module = "titin._core")]
pub struct Loan {
    handle: NonNull<sys::titin_loan>,
    data: *mut c_void,
    length: isize,
    array: LoanedArray,
    /// Whether the loan was sent; from then on the memory does not change any more.
    sent: AtomicBool,
}

/// The array of a loan, in libtitin's description.
struct LoanedArray {
    dtype: c_int,
    shape: Vec<i64>,
    order: c_int,
}

// SAFETY: any thread may use loans (titin.h, "Threads"). NumPy guards the memory, as NumPy guards
// the memory of any array.
unsafe impl Send for Loan {}
// SAFETY: as above.
unsafe impl Sync for Loan {}

/// Another owner of a loan, for sending.
pub struct LoanOwner(*mut sys::titin_loan);

impl Loan {
    /// An array over a new loan.
    ///
    /// # Safety
    /// `port` is a port of an open instance.
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
        let array = LoanedArray {
            dtype: number(&dtype)?,
            shape: extents(shape)?,
            order: order_number(py, order, "an array")?,
        };
        let arguments = PyDict::new(py);
        arguments.set_item("shape", PyTuple::new(py, &array.shape)?)?;
        arguments.set_item("dtype", &dtype)?;
        arguments.set_item("order", order)?;
        let size = dtype.getattr(intern!(py, "itemsize"))?.extract::<i64>()?;
        // SAFETY: as the caller promises.
        let loan = unsafe { Loan::new(py, port, slot, array, size) }?;
        arguments.set_item("buffer", Bound::new(py, loan)?)?;
        numpy.call_method(intern!(py, "ndarray"), (), Some(&arguments))
    }

    /// A new loan for an array with elements of `size` bytes.
    ///
    /// # Safety
    /// `port` is a port of an open instance.
    unsafe fn new(
        py: Python<'_>,
        port: *mut sys::titin_port,
        slot: c_int,
        array: LoanedArray,
        size: i64,
    ) -> PyResult<Self> {
        let LoanedArray {
            dtype,
            ref shape,
            order,
        } = array;
        let (rank, extents) = (shape.len() as c_int, shape.as_ptr());
        let mut loan = std::ptr::null_mut();
        // SAFETY: as the caller promises; the extents live until the call returns.
        error::check(py, unsafe {
            let names = std::ptr::null();
            sys::titin_loan_new(port, slot, dtype, rank, extents, order, names, &mut loan)
        })?;
        let handle = NonNull::new(loan).ok_or_else(|| error::last(py))?;
        Ok(Loan {
            handle,
            // SAFETY: the loan was just made.
            data: unsafe { sys::titin_loan_data(loan) },
            length: (shape.iter().product::<i64>() * size) as isize,
            array,
            sent: AtomicBool::new(false),
        })
    }

    /// Another owner of a loan, if `object` is an array over the whole memory of the loan. The
    /// array is read-only from here on. `None` for other objects.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<LoanOwner>> {
        let py = object.py();
        let Some(base) = ndarray::base(object) else {
            return Ok(None);
        };
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
        // SAFETY: the loan lives as long as the loan's object.
        Ok(Some(LoanOwner(unsafe {
            sys::titin_loan_retain(loan.handle.as_ptr())
        })))
    }

    fn is_all_of(&self, array: &Array) -> bool {
        let shape: &[i64] = match array.rank() {
            0 => &[],
            // SAFETY: an array has as many extents as the rank says.
            rank => unsafe { std::slice::from_raw_parts(array.extents(), rank as usize) },
        };
        let own = &self.array;
        let order = match own.order {
            sys::ORDER_C => b'C',
            _ => b'F',
        };
        let same = array.data() == self.data && array.dtype == own.dtype && shape == own.shape;
        same && array.is_contiguous(order)
    }
}

#[pymethods]
impl Loan {
    /// # Safety
    /// Python calls this method with a view to fill.
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
        // SAFETY: the memory lives as long as this object, and the view takes a reference to this
        // object.
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
        // SAFETY: this object was an owner, and frees once.
        unsafe { sys::titin_loan_free(self.handle.as_ptr()) }
    }
}

impl LoanOwner {
    /// The address of the handle. libtitin sets the handle to NULL once the loan is sent.
    pub fn handle_address(&mut self) -> *mut *mut sys::titin_loan {
        &mut self.0
    }
}

impl Drop for LoanOwner {
    fn drop(&mut self) {
        // SAFETY: the handle is NULL, or the handle of an owner that was not sent.
        unsafe { sys::titin_loan_free(self.0) }
    }
}

/// The number of an element type of NumPy.
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
