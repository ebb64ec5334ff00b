//! Arrays of other libraries by DLPack, <https://dmlc.github.io/dlpack/latest/c_api.html>.
//!
//! The types here have the layout of version 1 of the specification. The header names only the
//! outermost type, so that programs use the `dlpack.h` of their own library.

use std::ffi::{c_char, c_int, c_void};

use smallvec::SmallVec;
use titin_runtime::{Dtype, ElementKind, Error, Kind, Result};

use crate::array::ArrayArguments;
use crate::error::{null, status, usage, value};
use crate::handle::{Port, on_port};
use crate::message::{Message, SharedMessage};
use crate::receive::{into_array, receive_array};
use crate::send::{SendArguments, send_described};
use crate::value::Value;
use crate::{input, strided};

/// The version of DLPack that is spoken. A library with another minor version can read the layout,
/// a library with another major version cannot.
const VERSION: Version = Version { major: 1, minor: 0 };
/// The bit of the flags for memory that must not be written to.
const READ_ONLY: u64 = 1;
/// The device type of the host's ordinary memory.
const CPU: i32 = 1;

/// `DLManagedTensorVersioned`. Every member up to the flags has the same place in every version.
#[repr(C)]
pub struct ManagedTensor {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
    flags: u64,
    tensor: Tensor,
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: ElementType,
    shape: *mut i64,
    /// In elements; NULL for an array in C order without gaps.
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct ElementType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl ElementType {
    fn of(dtype: Dtype) -> Self {
        let code = match dtype.kind() {
            ElementKind::Signed => 0,
            ElementKind::Unsigned => 1,
            ElementKind::Float if dtype == Dtype::BFloat16 => 4,
            ElementKind::Float => 2,
            ElementKind::Complex => 5,
            ElementKind::Bool => 6,
        };
        ElementType {
            code,
            bits: 8 * dtype.size() as u8,
            lanes: 1,
        }
    }

    fn dtype(self) -> Option<Dtype> {
        let mut all = Dtype::ALL.into_iter();
        all.find(|dtype| ElementType::of(*dtype) == self)
    }
}

/// What owns the memory behind a tensor that was handed out.
struct Owner {
    _message: SharedMessage,
    /// The shape, then the strides.
    _numbers: Vec<i64>,
}

/// An array that a tensor describes, in titin's terms.
struct Described {
    dtype: Dtype,
    rank: c_int,
    shape: *const i64,
    /// In bytes; empty for an array in C order without gaps.
    strides: SmallVec<[i64; 8]>,
    data: *const c_void,
}

impl Described {
    fn arguments(&self) -> ArrayArguments {
        let strides = match &self.strides[..] {
            [] => std::ptr::null(),
            strides => strides.as_ptr(),
        };
        ArrayArguments {
            dtype: self.dtype as c_int,
            rank: self.rank,
            extents: self.shape,
            strides,
            order: 0,
            names: std::ptr::null(),
            data: self.data,
        }
    }
}

/// The name of a device type; `None` if the host can use the memory as its own.
fn device_name(kind: i32) -> Option<&'static std::ffi::CStr> {
    Some(match kind {
        // CPU, and memory of CUDA and ROCm on the host, pinned or managed.
        CPU | 3 | 11 | 13 => return None,
        2 => c"CUDA",
        4 => c"OpenCL",
        7 => c"Vulkan",
        8 => c"Metal",
        9 => c"VPI",
        10 => c"ROCm",
        12 => c"an extension",
        14 => c"oneAPI",
        15 => c"WebGPU",
        16 => c"Hexagon",
        17 => c"MAIA",
        18 => c"Trainium",
        _ => c"unknown",
    })
}

/// Reads a tensor's description. `what` names the call in errors.
///
/// # Safety
/// `tensor` is NULL or points to a tensor, of any version. Its shape and strides have as many
/// numbers as it has dimensions, and do not change while the result lives.
unsafe fn described(tensor: *const ManagedTensor, what: &str) -> Result<Described> {
    let mismatch = |why: String| Error::new(Kind::TypeMismatch, format!("cannot {what}: {why}"));
    // SAFETY: a tensor of any version has its version here.
    let version = unsafe { tensor.cast::<Version>().as_ref() };
    let version = version.ok_or_else(|| null("tensor", "a library with DLPack"))?;
    if version.major != VERSION.major {
        return Err(mismatch(format!(
            "the tensor is of DLPack {}.{}, and titin reads version {}: ask the library that made it for that one",
            version.major, version.minor, VERSION.major
        )));
    }
    // SAFETY: the version has this layout, as the caller promises.
    let tensor = unsafe { &(*tensor).tensor };
    if let Some(name) = device_name(tensor.device.kind) {
        return Err(mismatch(format!(
            "the tensor is in the memory of a device ({}, DLPack device type {}, number {}), and titin uses that of the \
             host: copy between the two, and give the tensor on the host",
            name.to_string_lossy(),
            tensor.device.kind,
            tensor.device.number
        )));
    }
    let ElementType { code, bits, lanes } = tensor.dtype;
    let dtype = tensor.dtype.dtype().ok_or_else(|| {
        mismatch(format!(
            "its element type, DLPack code {code} with {bits} bits and {lanes} lanes, is not one that is sent: convert the \
             tensor"
        ))
    })?;
    // SAFETY: the form is checked by `ArrayArguments::read`, and the shape is there.
    let shape = unsafe { input::list(tensor.shape, tensor.rank, "extents of a tensor") }?;
    let mut strides = SmallVec::new();
    if !tensor.strides.is_null() {
        // SAFETY: strides that are there are as many as the dimensions.
        let given = unsafe { input::list(tensor.strides, tensor.rank, "strides of a tensor") }?;
        let size = dtype.size() as i64;
        for stride in given {
            let bytes = stride.checked_mul(size).ok_or_else(|| {
                usage(format!(
                    "a tensor with a stride of {stride} elements is too large"
                ))
            })?;
            strides.push(bytes);
        }
        if is_dense(shape, &strides, dtype) {
            strides.clear();
        }
    }
    // An array without elements may have NULL, which stays NULL.
    let mut data = tensor.data;
    if !data.is_null() {
        data = data.wrapping_byte_add(tensor.byte_offset as usize);
    }
    Ok(Described {
        dtype,
        rank: tensor.rank,
        shape: tensor.shape,
        strides,
        data,
    })
}

/// Whether these strides are those of an array in C order without gaps.
fn is_dense(shape: &[i64], strides: &[i64], dtype: Dtype) -> bool {
    let mut next = dtype.size() as i64;
    shape
        .iter()
        .zip(strides)
        .rev()
        .all(|(extent, stride)| match next.checked_mul(*extent) {
            Some(after) => *stride == std::mem::replace(&mut next, after),
            None => false,
        })
}

/// A tensor over the memory of a message, which lives as long as the tensor.
fn tensor_of(message: SharedMessage) -> Result<*mut ManagedTensor> {
    let (layout, data) = message.any_array()?;
    let size = layout.dtype.size();
    let rank = layout.shape.len();
    let strides = strided::contiguous(&layout.shape, size, layout.order);
    let shape = layout.shape.iter().map(|extent| *extent as i64);
    let strides = strides
        .iter()
        .map(|stride| (*stride / size as isize) as i64);
    let mut numbers: Vec<i64> = shape.chain(strides).collect();
    let tensor = Tensor {
        data: data.cast_mut(),
        device: Device {
            kind: CPU,
            number: 0,
        },
        rank: rank as i32,
        dtype: ElementType::of(layout.dtype),
        shape: numbers.as_mut_ptr(),
        strides: numbers.as_mut_ptr().wrapping_add(rank),
        byte_offset: 0,
    };
    let owner = Owner {
        _message: message,
        _numbers: numbers,
    };
    Ok(Box::into_raw(Box::new(ManagedTensor {
        version: VERSION,
        context: Box::into_raw(Box::new(owner)).cast(),
        deleter: Some(give_up),
        flags: READ_ONLY,
        tensor,
    })))
}

/// The deleter of the tensors of [`tensor_of`].
///
/// # Safety
/// `tensor` is NULL or came from [`tensor_of`], and is not used any more.
unsafe extern "C" fn give_up(tensor: *mut ManagedTensor) {
    let _ = status(|| {
        if !tensor.is_null() {
            // SAFETY: both were boxed by `tensor_of`, as the caller promises.
            unsafe {
                let tensor = Box::from_raw(tensor);
                drop(Box::from_raw(tensor.context.cast::<Owner>()));
            }
        }
        Ok(())
    });
}

/// # Safety
/// `port` is NULL or a port; `tensor` is NULL or a tensor, whose elements may be read if its device is
/// the host; `settings` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_dlpack(
    port: *mut Port,
    slot: c_int,
    tensor: *const ManagedTensor,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    let with = SendArguments {
        slot,
        timestamp,
        next,
        settings,
    };
    // SAFETY: as the caller promises.
    unsafe {
        match described(tensor, "send the tensor") {
            Ok(described) => send_described(port, described.arguments(), &with),
            Err(error) => on_port(port, |_| Err(error)),
        }
    }
}

/// # Safety
/// `port` is NULL or a port; `tensor` is NULL or a tensor. If its device is the host and the tensor may
/// be written to, the elements may be written, and no other code uses them meanwhile. `out` is NULL or
/// may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_receive_into_dlpack(
    port: *mut Port,
    slot: c_int,
    timeout: f64,
    tensor: *mut ManagedTensor,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        into_array(port, out, |port| {
            let described = described(tensor, "receive into the tensor")?;
            if (*tensor).flags & READ_ONLY != 0 {
                let text = "cannot receive into the tensor: it may only be read, as its flags say; receive into another";
                return Err(Error::new(Kind::TypeMismatch, text));
            }
            receive_array(port, slot, timeout, described.arguments())
        })
    }
}

/// # Safety
/// `message` is NULL or a message; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_dlpack(
    message: *mut Message,
    out: *mut *mut ManagedTensor,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let out = unsafe { out.as_mut() }.ok_or_else(|| usage("NULL was given for the tensor"))?;
        *out = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let message = unsafe { SharedMessage::of(message) }?;
        *out = tensor_of(message)?;
        Ok(())
    })
}

/// # Safety
/// `tensor` is NULL or a tensor that is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_dlpack_free(tensor: *mut ManagedTensor) {
    // SAFETY: the deleter has the same place in a tensor of any version.
    if let Some(deleter) = unsafe { tensor.as_ref() }.and_then(|tensor| tensor.deleter) {
        // SAFETY: as the caller promises.
        unsafe { deleter(tensor) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn titin_dlpack_device(kind: c_int) -> *const c_char {
    value(std::ptr::null(), || {
        Ok(device_name(kind).map_or(std::ptr::null(), std::ffi::CStr::as_ptr))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_specification() {
        // Of dlpack.h on a 64-bit machine, where every member is aligned to its size.
        assert_eq!(std::mem::offset_of!(ManagedTensor, context), 8);
        assert_eq!(std::mem::offset_of!(ManagedTensor, deleter), 16);
        assert_eq!(std::mem::offset_of!(ManagedTensor, flags), 24);
        assert_eq!(std::mem::offset_of!(ManagedTensor, tensor), 32);
        assert_eq!(std::mem::offset_of!(Tensor, device), 8);
        assert_eq!(std::mem::offset_of!(Tensor, rank), 16);
        assert_eq!(std::mem::offset_of!(Tensor, dtype), 20);
        assert_eq!(std::mem::offset_of!(Tensor, shape), 24);
        assert_eq!(std::mem::offset_of!(Tensor, strides), 32);
        assert_eq!(std::mem::offset_of!(Tensor, byte_offset), 40);
        assert_eq!(std::mem::size_of::<ManagedTensor>(), 80);
    }

    #[test]
    fn each_element_type_has_a_code_of_its_own() {
        for dtype in Dtype::ALL {
            let code = ElementType::of(dtype);
            assert_eq!(code.dtype(), Some(dtype));
            assert_eq!(ElementType { lanes: 2, ..code }.dtype(), None);
        }
        let float8 = ElementType {
            code: 10,
            bits: 8,
            lanes: 1,
        };
        assert_eq!(float8.dtype(), None);
    }

    #[test]
    fn dense_arrays_are_known_by_their_strides() {
        assert!(is_dense(&[2, 3], &[24, 8], Dtype::Float64));
        assert!(is_dense(&[], &[], Dtype::Float64));
        assert!(!is_dense(&[2, 3], &[8, 16], Dtype::Float64));
        assert!(!is_dense(&[2, 3], &[32, 8], Dtype::Float64));
        assert!(!is_dense(&[2, i64::MAX], &[8, 8], Dtype::Float64));
    }
}
