//! Arrays from Python: by NumPy's C interface, else by the buffer protocol.

use std::ffi::{CStr, CString, c_char, c_int};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern};

use crate::argument::Text;
use crate::loaded_class::loaded_class;
use crate::ndarray::{Access, NdArray, asarray, is_ndarray};
use crate::{error, sys};

/// An array in libtitin's description. The `Array` holds the memory.
pub struct Array {
    memory: Memory,
    /// Number of the element type.
    pub dtype: c_int,
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

enum Memory {
    NdArray(NdArray),
    View(View),
}

impl Array {
    /// An array to send: an array of NumPy, or by the object's buffer, else by DLPack or the array
    /// interface. Foreign byte order is swapped in a copy.
    pub fn to_send(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(array) = Array::of_numpy(object, Access::Read) {
            return Ok(array);
        }
        // SAFETY: any object may be asked.
        let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1;
        if has_buffer {
            refuse_masked("send", object)?;
            refuse_time(object)?;
            return Self::native(object);
        }
        Self::native(&as_numpy(object)?)
    }

    /// Memory to be read without a copy.
    pub fn to_read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(array) = Array::of_numpy(object, Access::Read) {
            return Ok(array);
        }
        refuse_masked("send", object)?;
        let (view, element) = view(object, ffi::PyBUF_RECORDS_RO).map_err(|_| refused(object))?;
        match element {
            Element::Native(dtype) => Ok(Array::new(view, dtype)),
            Element::Swapped => Err(swapped(
                "send",
                object,
                "send .astype(array.dtype.newbyteorder('='))",
            )),
            Element::Other => Err(refused(object)),
        }
    }

    /// As [`Array::to_send`], for a path, which carries arrays and bytes alone.
    pub fn to_send_by_path(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Array::to_send(object).map_err(|error| {
            let is_structure = match kind(object).as_deref() {
                // The error for an array in the memory of a device says how to copy it.
                None => !object.hasattr("__dlpack__").unwrap_or(true),
                Some(kind) => matches!(kind, "O" | "U" | "S" | "T" | "V"),
            };
            if !is_structure {
                return error;
            }
            let text = format!(
                "cannot send {} by a path, which carries arrays of numbers and bytes: send numpy.asarray(5.0), \
                 text.encode(), pickle.dumps(data) or the like",
                describe(object)
            );
            error::mismatch(object.py(), text)
        })
    }

    /// Memory to be written to.
    pub fn to_fill(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(array) = Array::of_numpy(object, Access::Write) {
            return Ok(array);
        }
        refuse_masked("receive into", object)?;
        let py = object.py();
        // SAFETY: any object may be asked.
        let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1;
        if !has_buffer && object.hasattr(intern!(py, "__dlpack__"))? {
            let array = from_dlpack("receive into", object)?;
            return Array::of_numpy(&array, Access::Write).ok_or_else(|| {
                let text = format!(
                    "cannot receive into {}: by DLPack it may only be read, or its element type is not one that is sent; \
                     receive into another one",
                    describe(object)
                );
                error::mismatch(py, text)
            });
        }
        let (view, element) = view(object, ffi::PyBUF_RECORDS).map_err(|error| {
            error::mismatch(
                py,
                format!(
                    "cannot receive into {}: {}",
                    describe(object),
                    error.value(py)
                ),
            )
        })?;
        match element {
            Element::Native(dtype) => Ok(Array::new(view, dtype)),
            // A swapped copy would be filled, and not the array.
            Element::Swapped => Err(swapped(
                "receive into",
                object,
                "receive into another one, native = numpy.empty(array.shape, array.dtype.newbyteorder('=')), and \
                 array[...] = native swaps them",
            )),
            Element::Other => Err(error::mismatch(
                py,
                format!(
                    "cannot receive into {}: its element type is not one that is sent",
                    describe(object)
                ),
            )),
        }
    }

    /// Takes over the index names, if the object is a `titin.Array` with names.
    fn with_names(mut self, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if is_ndarray(object) || !named(py).is_some_and(|named| object.get_type().is(named)) {
            return Ok(self);
        }
        if let Some(names) = object
            .getattr(intern!(py, "names"))?
            .extract::<Option<Vec<String>>>()?
        {
            self.names = names
                .iter()
                .map(|name| Ok(Text::new(py, name)?.into_c()))
                .collect::<PyResult<_>>()?;
            self.pointers = self.names.iter().map(|name| name.as_ptr()).collect();
        }
        Ok(self)
    }

    fn native(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (view, element) = view(object, ffi::PyBUF_RECORDS_RO).map_err(|_| refused(object))?;
        match element {
            Element::Native(dtype) => Array::new(view, dtype).with_names(object),
            Element::Swapped => {
                drop(view);
                let view = buffer(&native_copy(object)?, ffi::PyBUF_RECORDS_RO)?;
                match dtype(&view) {
                    Element::Native(dtype) => Array::new(view, dtype).with_names(object),
                    _ => Err(refused(object)),
                }
            }
            Element::Other => Err(refused(object)),
        }
    }

    fn of_numpy(object: &Bound<'_, PyAny>, access: Access) -> Option<Self> {
        let (array, dtype) = NdArray::of(object, access)?;
        Some(Array::over(Memory::NdArray(array), dtype))
    }

    fn new(view: View, dtype: c_int) -> Self {
        Array::over(Memory::View(view), dtype)
    }

    fn over(memory: Memory, dtype: c_int) -> Self {
        Array {
            memory,
            dtype,
            names: Vec::new(),
            pointers: Vec::new(),
        }
    }

    pub fn rank(&self) -> c_int {
        match &self.memory {
            Memory::NdArray(array) => array.rank as c_int,
            Memory::View(view) => view.ndim,
        }
    }

    pub fn shape(&self) -> &[i64] {
        match self.rank() {
            0 => &[],
            // SAFETY: there is an extent for each dimension.
            rank => unsafe { std::slice::from_raw_parts(self.extents(), rank as usize) },
        }
    }

    /// The extents. The pointers to extents, strides and elements are valid as long as the `Array`
    /// lives and stays in its place.
    pub fn extents(&self) -> *const i64 {
        match &self.memory {
            Memory::NdArray(array) => array.extents.as_ptr(),
            Memory::View(view) => view.shape.cast(),
        }
    }

    pub fn strides(&self) -> *const i64 {
        match &self.memory {
            Memory::NdArray(array) => array.strides.as_ptr(),
            Memory::View(view) => view.strides.cast(),
        }
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::NdArray(array) => array.bytes(),
            Memory::View(view) => view.len as usize,
        }
    }

    pub fn data(&self) -> *mut std::ffi::c_void {
        match &self.memory {
            Memory::NdArray(array) => array.data,
            Memory::View(view) => view.buf,
        }
    }

    /// The index names; NULL without any.
    pub fn names(&self) -> *const *const c_char {
        if self.pointers.is_empty() {
            std::ptr::null()
        } else {
            self.pointers.as_ptr()
        }
    }

    /// The order of the elements: Fortran if the elements lie in Fortran order and not in C order,
    /// else C.
    pub fn order(&self) -> c_int {
        if !self.is_contiguous(b'C') && self.is_contiguous(b'F') {
            sys::ORDER_FORTRAN
        } else {
            sys::ORDER_C
        }
    }

    /// Whether the elements lie one after the other in `order`, C or F.
    pub fn is_contiguous(&self, order: u8) -> bool {
        match &self.memory {
            Memory::NdArray(array) => array.is_contiguous(order),
            Memory::View(view) => view.is_contiguous(order),
        }
    }

    /// Copies the elements, in the order given by [`Array::order`].
    ///
    /// # Safety
    /// `target` has room for the elements.
    pub unsafe fn copy_to(&self, py: Python<'_>, target: *mut std::ffi::c_void) -> PyResult<()> {
        let order = if self.order() == sys::ORDER_FORTRAN {
            b'F'
        } else {
            b'C'
        };
        let described;
        let view = match &self.memory {
            Memory::View(view) => view,
            Memory::NdArray(array) => {
                described = buffer(array.array().bind(py), ffi::PyBUF_RECORDS_RO)?;
                if described.len as usize != array.bytes() {
                    let text = "another thread has resized the array during the call";
                    return Err(error::usage(py, text));
                }
                &described
            }
        };
        // SAFETY: Python has filled the view; the room is as the caller promises.
        match unsafe { ffi::PyBuffer_ToContiguous(target, &**view, view.len, order as c_char) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// A filled view of the buffer protocol. Boxed, since some exporters keep pointers into the view.
struct View(Box<ffi::Py_buffer>);

impl View {
    fn is_contiguous(&self, order: u8) -> bool {
        // SAFETY: Python has filled the view.
        unsafe { ffi::PyBuffer_IsContiguous(&*self.0, order as c_char) == 1 }
    }
}

impl std::ops::Deref for View {
    type Target = ffi::Py_buffer;

    fn deref(&self) -> &ffi::Py_buffer {
        &self.0
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the view was filled and is released only here; views are dropped with the GIL
        // held.
        unsafe { ffi::PyBuffer_Release(&mut *self.0) }
    }
}

fn buffer(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<View> {
    let mut view = Box::new(ffi::Py_buffer::new());
    // SAFETY: the view is fresh, and becomes a `View` only if Python has filled the view.
    match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } {
        0 => Ok(View(view)),
        _ => Err(PyErr::fetch(object.py())),
    }
}

/// A copy of an array in foreign byte order, in the byte order of this machine.
fn native_copy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let array = asarray(object)?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let native = dtype.call_method1("newbyteorder", ("=",))?;
    array.call_method1(intern!(py, "astype"), (native,))
}

/// The memory of an object, and the type of the object's elements.
fn view(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<(View, Element)> {
    match buffer(object, flags) {
        Ok(view) => {
            let element = dtype(&view);
            Ok((view, element))
        }
        Err(error) => match custom(object)? {
            Some((bits, number)) => Ok((buffer(&bits, flags)?, Element::Native(number))),
            None => Err(error),
        },
    }
}

/// An array of a type that libtitin knows by name and the buffer protocol does not know, such as
/// the types of `ml_dtypes`. Returns the array's bits as whole numbers of the same size, in the
/// same memory, and the number of the type.
fn custom<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, c_int)>> {
    let py = object.py();
    let Some((dtype, number)) = named_type(object) else {
        return Ok(None);
    };
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        return Ok(None);
    }
    let size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    let bits = asarray(object)?.call_method1(intern!(py, "view"), (format!("u{size}"),))?;
    Ok(Some((bits, number)))
}

/// The `dtype` of an object, and the number of the element type with the dtype's name.
fn named_type<'py>(object: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, c_int)> {
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype")).ok()?;
    let name = dtype.getattr(intern!(py, "name")).ok()?;
    let number = sys::element_type(&name.extract::<String>().ok()?)?;
    Some((dtype, number))
}

enum Element {
    /// An element type of libtitin, by number.
    Native(c_int),
    /// An element type of libtitin in the other byte order.
    Swapped,
    Other,
}

/// The element type, from the view's format in the notation of Python's `struct` with NumPy's `Z`
/// for complex.
fn dtype(view: &ffi::Py_buffer) -> Element {
    let format = match view.format.is_null() {
        true => &b"B"[..],
        // SAFETY: the exporter's format ends with a NUL and lives as long as the view.
        false => unsafe { CStr::from_ptr(view.format) }.to_bytes(),
    };
    let (swapped, code) = match format {
        [b'>' | b'!', code @ ..] => (true, code),
        [b'<' | b'@' | b'=', code @ ..] => (false, code),
        code => (false, code),
    };
    let is_of_type = |(codes, size, _): &&(&str, isize, &str)| {
        *size == view.itemsize && codes.split(' ').any(|known| known.as_bytes() == code)
    };
    match TYPES.iter().find(is_of_type) {
        None => Element::Other,
        Some(_) if swapped && view.itemsize > 1 => Element::Swapped,
        Some((_, _, name)) => {
            Element::Native(sys::element_type(name).expect("libtitin knows the names in TYPES"))
        }
    }
}

/// The codes of element types, the bytes of an element, and the name of the type.
const TYPES: [(&str, isize, &str); 14] = [
    ("?", 1, "bool"),
    ("b", 1, "int8"),
    ("h i l q n", 2, "int16"),
    ("h i l q n", 4, "int32"),
    ("h i l q n", 8, "int64"),
    ("B", 1, "uint8"),
    ("H I L Q N", 2, "uint16"),
    ("H I L Q N", 4, "uint32"),
    ("H I L Q N", 8, "uint64"),
    ("e", 2, "float16"),
    ("f", 4, "float32"),
    ("d g", 8, "float64"),
    ("Zf F", 8, "complex64"),
    ("Zd D Zg", 16, "complex128"),
];

/// A NumPy array over an object without a buffer.
fn as_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if object.hasattr(intern!(py, "__dlpack__"))? {
        return from_dlpack("send", object);
    }
    for interface in [intern!(py, "__array_interface__"), intern!(py, "__array__")] {
        if object.hasattr(interface)? {
            let array = asarray(object)?;
            refuse_masked("send", &array)?;
            return Ok(array);
        }
    }
    let text = format!(
        "cannot send {}: send a number, text, bytes, None, an array, or a list or dict of these",
        describe(object)
    );
    Err(error::mismatch(py, text))
}

/// A NumPy array over an object of DLPack, if the object is in the memory of the host. `call` names the
/// call in errors.
fn from_dlpack<'py>(call: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let (kind, number) = device.extract::<(c_int, c_int)>()?;
    // SAFETY: any number may be asked for.
    let name = unsafe { sys::titin_dlpack_device(kind) };
    if !name.is_null() {
        // SAFETY: the text ends with a NUL and is never freed.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let other = match call {
            "send" => "copy it to the host first, as with .cpu() or .get()",
            _ => "receive into an array on the host, and copy that to the device",
        };
        let text = format!(
            "cannot {call} {}: it is in the memory of a device ({name}, DLPack device type {kind}, number {number}); {other}",
            describe(object)
        );
        return Err(error::mismatch(py, text));
    }
    let numpy = py.import(intern!(py, "numpy"))?;
    numpy.call_method1(intern!(py, "from_dlpack"), (object,))
}

/// Refuses masked arrays: the buffer of such an array has the values under the mask too.
fn refuse_masked(call: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    if is_ndarray(object) {
        return Ok(());
    }
    if object.hasattr(intern!(py, "mask"))? && object.hasattr(intern!(py, "filled"))? {
        let hint = match call {
            "send" => "send .filled(value), or the data and the mask in a dict",
            _ => "receive into its .data",
        };
        let text = format!("cannot {call} {}, a masked array: {hint}", describe(object));
        return Err(error::mismatch(py, text));
    }
    Ok(())
}

/// Refuses a single time of NumPy: a single time gives bytes as a buffer. Arrays of times have no
/// buffer.
fn refuse_time(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_ndarray(object) {
        return Ok(());
    }
    match kind(object).as_deref() {
        Some("M" | "m") => Err(refused(object)),
        _ => Ok(()),
    }
}

/// The kind of an array's elements, by NumPy's letter.
fn kind(object: &Bound<'_, PyAny>) -> Option<String> {
    object
        .getattr("dtype")
        .ok()?
        .getattr("kind")
        .ok()?
        .extract()
        .ok()
}

/// The error for an array in foreign byte order where no copy can be used.
fn swapped(call: &str, object: &Bound<'_, PyAny>, hint: &str) -> PyErr {
    let text = format!(
        "cannot {call} {}: its bytes are in the order of other machines; {hint}",
        describe(object)
    );
    error::mismatch(object.py(), text)
}

/// The error for an array that cannot be sent. The error says how to send such data.
fn refused(object: &Bound<'_, PyAny>) -> PyErr {
    let py = object.py();
    let hint = match kind(object).as_deref() {
        Some("O") => "its elements are Python objects; send a list or a dict",
        Some("U" | "S" | "T") => "its elements are text; send a list of str, as .tolist() gives",
        Some("M" | "m") => {
            "its elements are times; send numbers, as (t - t0) / numpy.timedelta64(1, 's') gives"
        }
        Some("V") => "its elements are records; send its fields as a dict of arrays",
        Some("f" | "c") => {
            "its elements are wider than others can read; send .astype('float64') or 'complex128'"
        }
        None => "an array is needed; send numpy.asarray of it",
        _ => {
            "elements must be bool, integers of 8 to 64 bits, float16 to float64, bfloat16, or complex64 and complex128"
        }
    };
    error::mismatch(py, format!("cannot send {}: {hint}", describe(object)))
}

/// An object's description in errors: the type, and for arrays the dtype.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    let name = name.map_or_else(|_| "this object".to_owned(), |name| name.to_string());
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    match object.getattr("dtype").and_then(|dtype| dtype.str()) {
        Ok(dtype) => format!("{article} {name} of dtype {dtype}"),
        Err(_) => format!("{article} {name}"),
    }
}

/// `titin.Array`, if the module `titin.data` is loaded.
fn named(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    static NAMED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    loaded_class(&NAMED, intern!(py, "titin.data"), intern!(py, "Array"))
}
