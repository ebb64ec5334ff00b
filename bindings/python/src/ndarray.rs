//! Arrays of NumPy, by NumPy's C interface. The interface takes a tenth of the time of the buffer
//! protocol, for which NumPy describes the elements in a text.

use std::ffi::{c_int, c_void};

use numpy::npyffi::{self, NPY_TYPES, PyArray_Descr, PyArrayObject, npy_intp};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::loaded_class::loaded_class;
use crate::sys;

/// The most dimensions of an [`NdArray`]. Other arrays go by the buffer protocol.
const DIMENSIONS: usize = 4;

/// NumPy's mark of the byte order that titin's processors do not have.
const FOREIGN: u8 = b'>';

/// The memory of an array of class `numpy.ndarray`. The `NdArray` holds the array.
///
/// Extents and strides are copies: another thread may reshape the array while a call of libtitin
/// runs. The memory itself stays, unless the program resizes the array without NumPy's check for
/// other references (`resize(refcheck=False)`).
pub struct NdArray {
    array: Py<PyAny>,
    pub data: *mut c_void,
    pub rank: usize,
    pub extents: [i64; DIMENSIONS],
    pub strides: [i64; DIMENSIONS],
    /// Bytes of an element.
    pub size: usize,
}

/// What the caller does with the elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

impl NdArray {
    /// The memory of an array, and the number of the array's element type. `None` for objects of
    /// other classes, and for arrays that only the buffer protocol can describe or refuse: arrays
    /// of more dimensions, of other elements, in foreign byte order, or read-only where the caller
    /// writes.
    pub fn of(object: &Bound<'_, PyAny>, access: Access) -> Option<(Self, c_int)> {
        if !is_ndarray(object) {
            return None;
        }
        // SAFETY: the object is an array of NumPy. The GIL is held, so no other thread changes the
        // array's description.
        let (array, descr) = unsafe {
            let array = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
            (array, &(*array.descr.cast::<PyArray_Descr>()).fields)
        };
        let rank = array.nd as usize;
        let is_foreign = descr.byteorder as u8 == FOREIGN;
        let is_writable = array.flags & npyffi::NPY_ARRAY_WRITEABLE != 0;
        if rank > DIMENSIONS || is_foreign || access == Access::Write && !is_writable {
            return None;
        }
        let (number, size) = element_type(object.py(), descr.type_num)?;
        let (mut extents, mut strides) = ([0; DIMENSIONS], [0; DIMENSIONS]);
        for dimension in 0..rank {
            // SAFETY: an array has an extent and a stride for each dimension.
            unsafe {
                extents[dimension] = *array.dimensions.add(dimension) as i64;
                strides[dimension] = *array.strides.add(dimension) as i64;
            }
        }
        let memory = NdArray {
            array: object.clone().unbind(),
            data: array.data.cast(),
            rank,
            extents,
            strides,
            size,
        };
        Some((memory, number))
    }

    /// The array itself.
    pub fn array(&self) -> &Py<PyAny> {
        &self.array
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        let elements: i64 = self.extents[..self.rank].iter().product();
        elements as usize * self.size
    }

    /// Whether the elements lie one after the other, with the last index the fastest (`b'C'`) or
    /// the first (`b'F'`).
    pub fn is_contiguous(&self, order: u8) -> bool {
        let mut expected = self.size as i64;
        let mut fits = |dimension: usize| {
            let (extent, stride) = (self.extents[dimension], self.strides[dimension]);
            let fits = extent == 1 || stride == expected;
            expected *= extent;
            fits
        };
        self.extents[..self.rank].contains(&0)
            || match order {
                b'F' => (0..self.rank).all(&mut fits),
                _ => (0..self.rank).rev().all(&mut fits),
            }
    }
}

/// The base of an array: the object with the array's memory. `None` if the array has memory of its
/// own.
pub fn base<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if !is_ndarray(array) {
        return None;
    }
    // SAFETY: the object is an array of NumPy, and the array holds its base.
    unsafe {
        let base = (*array.as_ptr().cast::<PyArrayObject>()).fields.base;
        Bound::from_borrowed_ptr_or_opt(array.py(), base)
    }
}

/// A read-only array over memory of `owner`.
///
/// # Safety
/// `data` is aligned for the elements, and readable as long as `owner` lives; NULL only without
/// elements. `dtype` is a `numpy.dtype` in the byte order of the host, `order` an order of libtitin.
pub unsafe fn over<'py>(
    owner: Bound<'py, PyAny>,
    data: *const c_void,
    dtype: &Bound<'py, PyAny>,
    extents: &[i64],
    order: c_int,
) -> PyResult<Bound<'py, PyAny>> {
    /// Stands for the memory of an array without elements: NumPy allocates where it gets no address.
    static NOTHING: u64 = 0;
    let py = owner.py();
    let class = loaded_ndarray(py)?;
    let mut flags = npyffi::NPY_ARRAY_ALIGNED;
    if order == sys::ORDER_FORTRAN {
        flags |= npyffi::NPY_ARRAY_F_CONTIGUOUS;
    }
    let data = match data.is_null() {
        true => (&raw const NOTHING).cast(),
        false => data,
    };
    let interface = &npyffi::PY_ARRAY_API;
    // SAFETY: NumPy copies the extents, and takes over a reference to the dtype and to the owner.
    // Without the flag for writing NumPy only reads the memory.
    unsafe {
        let array = interface.PyArray_NewFromDescr(
            py,
            class.as_type_ptr(),
            dtype.clone().into_ptr().cast(),
            extents.len() as c_int,
            extents.as_ptr().cast::<npy_intp>().cast_mut(),
            std::ptr::null_mut(),
            data.cast_mut(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        match interface.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// `numpy.ndarray`. Loads NumPy.
fn loaded_ndarray(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    if ndarray(py).is_none() {
        py.import(intern!(py, "numpy"))?;
    }
    Ok(ndarray(py).expect("NumPy is loaded"))
}

/// The number of the element type with the given number in NumPy, and the bytes of an element.
fn element_type(py: Python<'_>, number: c_int) -> Option<(c_int, usize)> {
    /// By NumPy's number.
    static TYPES: PyOnceLock<[Option<(c_int, usize)>; NPY_TYPES::NPY_NTYPES_LEGACY as usize]> =
        PyOnceLock::new();
    let known = TYPES.get_or_init(py, || {
        let mut known = [None; _];
        for (number, name, size) in NAMES {
            let titin = sys::element_type(name).expect("libtitin knows NAMES");
            known[number as usize] = Some((titin, size));
        }
        known
    });
    *known.get(usize::try_from(number).ok()?)?
}

/// NumPy's numbers, the names of the types and the bytes of an element, where `long` has 64 bits.
const NAMES: [(NPY_TYPES, &str, usize); 16] = [
    (NPY_TYPES::NPY_BOOL, "bool", 1),
    (NPY_TYPES::NPY_BYTE, "int8", 1),
    (NPY_TYPES::NPY_UBYTE, "uint8", 1),
    (NPY_TYPES::NPY_SHORT, "int16", 2),
    (NPY_TYPES::NPY_USHORT, "uint16", 2),
    (NPY_TYPES::NPY_INT, "int32", 4),
    (NPY_TYPES::NPY_UINT, "uint32", 4),
    (NPY_TYPES::NPY_LONG, "int64", 8),
    (NPY_TYPES::NPY_ULONG, "uint64", 8),
    (NPY_TYPES::NPY_LONGLONG, "int64", 8),
    (NPY_TYPES::NPY_ULONGLONG, "uint64", 8),
    (NPY_TYPES::NPY_HALF, "float16", 2),
    (NPY_TYPES::NPY_FLOAT, "float32", 4),
    (NPY_TYPES::NPY_DOUBLE, "float64", 8),
    (NPY_TYPES::NPY_CFLOAT, "complex64", 8),
    (NPY_TYPES::NPY_CDOUBLE, "complex128", 16),
];

const _: () = assert!(size_of::<std::ffi::c_long>() == 8 && size_of::<npy_intp>() == 8);

/// `numpy.ndarray`, if NumPy is loaded. Without NumPy no object is an array of NumPy.
pub fn ndarray(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    loaded_class(&NDARRAY, intern!(py, "numpy"), intern!(py, "ndarray"))
}

/// An object as an array, by `numpy.asarray`.
pub fn asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    numpy.call_method1(intern!(py, "asarray"), (object,))
}

/// Whether an object is of class `numpy.ndarray` itself, and not of a derived class with methods of
/// its own.
pub fn is_ndarray(object: &Bound<'_, PyAny>) -> bool {
    ndarray(object.py()).is_some_and(|ndarray| object.get_type().is(ndarray))
}
