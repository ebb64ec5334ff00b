//! Arrays as C describes them.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use titin_runtime::{
    Buffer, Content, Dtype, Error, Filling, Kind, Layout, LayoutRef, Message, Result, StorageOrder,
};

use crate::error::usage;
use crate::strided::Strides;
use crate::value::Value;
use crate::value::number::{element, range, rounded};
use crate::{input, strided};

/// Most dimensions; the header has the same number.
const MAX_RANK: c_int = titin_runtime::MAX_RANK as c_int;

/// An array in the caller's memory.
pub(crate) struct Described<'a> {
    dtype: Dtype,
    /// The order that is wanted.
    order: StorageOrder,
    shape: &'a [u64],
    names: Vec<String>,
    /// Where its elements do not simply follow each other in that order.
    strides: Option<Strides>,
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
}

/// An array as C hands it in.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) dtype: c_int,
    pub(crate) rank: c_int,
    pub(crate) extents: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) order: c_int,
    pub(crate) names: *const *const c_char,
    pub(crate) data: *const c_void,
}

/// What a caller takes an array to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) dtype: Dtype,
    /// What is wanted in each dimension, [`ANY`] for whatever it is; None for any rank.
    pub(crate) extents: Option<&'a [i64]>,
    /// None for either order.
    pub(crate) order: Option<StorageOrder>,
}

/// Stands for any extent, rank or order; the header has the same number.
const ANY: i64 = -1;

/// What to do about data of another type or shape.
pub(crate) const OTHERWISE: &str = "let its sender send what is expected, or ask for what it sends";

/// Elements, and what keeps them.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// A part of a payload.
    Shared(Arc<Buffer>, Range<usize>),
    /// Memory of the caller's, which stays as it is for as long as this lives.
    Borrowed(*const u8, usize),
}

// SAFETY: the memory behind is only read, and the lender promises that it does not change.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

/// Type, order and shape.
///
/// # Safety
/// `extents` is NULL or points to `rank` numbers that do not change while the result lives.
#[inline(always)]
pub(crate) unsafe fn form<'a>(
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    order: c_int,
) -> Result<LayoutRef<'a>> {
    let (dtype, order) = (input::dtype(dtype)?, input::order(order)?);
    if rank > MAX_RANK {
        return Err(usage(format!(
            "an array of rank {rank}; at most {MAX_RANK} dimensions can be sent"
        )));
    }
    // SAFETY: as the caller promises.
    let extents = unsafe { input::list(extents, rank, "extents") }?;
    if extents.iter().any(|extent| *extent < 0) {
        return Err(usage(format!("an array of extents {extents:?}")));
    }
    // SAFETY: the same numbers, none of which is negative.
    let shape =
        unsafe { std::slice::from_raw_parts(extents.as_ptr().cast::<u64>(), extents.len()) };
    Ok(LayoutRef {
        dtype,
        order,
        shape,
        names: &[],
    })
}

/// Index names of an array of this rank.
///
/// # Safety
/// `names` is NULL or points to `rank` texts that end with a NUL.
#[inline(always)]
pub(crate) unsafe fn names(names: *const *const c_char, rank: c_int) -> Result<Vec<String>> {
    if names.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller promises.
    let names = unsafe { input::list(names, rank, "index names") }?;
    // SAFETY: as the caller promises.
    names
        .iter()
        .map(|name| unsafe { input::text(*name, "index name") }.map(str::to_owned))
        .collect()
}

impl Arguments {
    /// Makes the description safe, but for the memory that it points to.
    ///
    /// # Safety
    /// `extents` and `strides` are NULL or point to `rank` numbers, of which the former do not change while the result
    /// lives; `names` is NULL or points to `rank` texts that end with a NUL.
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(self) -> Result<Described<'a>> {
        // SAFETY: as the caller promises.
        let form = unsafe { form(self.dtype, self.rank, self.extents, self.order) }?;
        let LayoutRef {
            dtype,
            order,
            shape,
            ..
        } = form;
        let bytes = form.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(|| {
            usage(if shape.contains(&0) {
                format!(
                    "an array of {shape:?} is too large along its other dimensions, though it has no elements"
                )
            } else {
                format!("an array of {shape:?} does not fit into memory")
            })
        })?;
        if self.data.is_null() && bytes > 0 {
            return Err(usage(format!(
                "NULL was given for the data of an array of {shape:?}"
            )));
        }
        let strides = if self.strides.is_null() {
            None
        } else {
            // SAFETY: as the caller promises.
            let strides = unsafe { input::list(self.strides, self.rank, "strides") }?;
            Some(strides.iter().map(|stride| *stride as isize).collect())
        };
        // SAFETY: as the caller promises.
        let names = unsafe { names(self.names, self.rank) }?;
        Ok(Described {
            dtype,
            order,
            shape,
            names,
            strides,
            data: self.data.cast_mut().cast(),
            bytes,
        })
    }
}

impl Described<'_> {
    /// Type, order, shape and index names.
    pub(crate) fn form(&self) -> LayoutRef<'_> {
        LayoutRef {
            dtype: self.dtype,
            order: self.order,
            shape: self.shape,
            names: &self.names,
        }
    }

    fn size(&self) -> usize {
        self.dtype.size()
    }

    /// The order in which the elements follow each other, if they do.
    #[inline(always)]
    fn found(&self) -> Option<StorageOrder> {
        let strides = self.strides.as_ref();
        strides.map_or(Some(self.order), |strides| {
            strided::order_of(self.shape, strides, self.size(), self.order)
        })
    }

    /// How far apart they are.
    fn strides(&self) -> Cow<'_, [isize]> {
        match &self.strides {
            Some(strides) => Cow::Borrowed(strides),
            None => Cow::Owned(strided::contiguous(self.shape, self.size(), self.order).into_vec()),
        }
    }

    /// The elements as one piece: where they lie, or packed. The order becomes that of the piece.
    ///
    /// # Safety
    /// All elements may be read, and do not change while the result lives.
    pub(crate) unsafe fn elements(&mut self) -> Result<Data> {
        match self.found() {
            // SAFETY: they follow each other, and may be read, as the caller promises.
            Some(order) if unsafe { self.is_sound() } => {
                self.order = order;
                Ok(Data::Borrowed(self.data, self.bytes))
            }
            // SAFETY: as the caller promises.
            _ => unsafe { self.copied() },
        }
    }

    /// Whether elements that follow each other are what their type has: of bytes that are bool only 0 and 1 are.
    ///
    /// # Safety
    /// All elements may be read, and follow each other.
    unsafe fn is_sound(&self) -> bool {
        // SAFETY: as the caller promises; one without bytes may be NULL.
        self.dtype != Dtype::Bool
            || self.bytes == 0
            || !has_other_bytes(unsafe { std::slice::from_raw_parts(self.data, self.bytes) })
    }

    /// A copy of the elements in one piece.
    ///
    /// # Safety
    /// All elements may be read.
    pub(crate) unsafe fn copied(&mut self) -> Result<Data> {
        let from = self.strides().into_owned();
        self.order = self.found().unwrap_or(self.order);
        let mut filling = filling(self.bytes as u64)?;
        let to = (
            filling.rest().as_mut_ptr(),
            &strided::contiguous(self.shape, self.size(), self.order)[..],
        );
        // SAFETY: the elements may be read, as the caller promises; the fresh buffer has room for all.
        unsafe { strided::copy(self.shape, self.size(), (self.data, &from), to) };
        if self.dtype == Dtype::Bool && self.bytes > 0 {
            // SAFETY: they were written just now.
            make_bools(unsafe { std::slice::from_raw_parts_mut(to.0.cast(), self.bytes) });
        }
        filling.advance(self.bytes);
        Ok(Data::Shared(Arc::new(filling.finish()), 0..self.bytes))
    }

    /// The error for a message that is no array of this type and shape.
    #[cold]
    fn misfit(&self, message: &Message) -> Error {
        let extents: SmallVec<[i64; 4]> = self.shape.iter().map(|extent| *extent as i64).collect();
        let found = match message.content() {
            Content::Array(layout) => shown(layout.dtype, &layout.shape),
            _ => Value::received(message.structure(), &message.buffer()).what(),
        };
        Expected {
            dtype: self.dtype,
            extents: Some(&extents),
            order: None,
        }
        .mismatch(&found, OTHERWISE)
    }

    /// Writes a message's array here; a single value may also come as a number.
    ///
    /// # Safety
    /// All elements may be written, and nobody else uses them meanwhile.
    pub(crate) unsafe fn fill(&self, message: &Message) -> Result<()> {
        if matches!(message.content(), Content::Structure) && self.shape.is_empty() {
            let value = Value::received(message.structure(), &message.buffer());
            if let Some(why) = value
                .number()
                .and_then(|number| rounded(number, self.dtype))
            {
                return Err(Error::new(Kind::TypeMismatch, why));
            }
            let element = value
                .number()
                .and_then(|number| element(number, self.dtype));
            let element = element
                .ok_or_else(|| value.mismatch(&format!("{}, a single value", range(self.dtype))))?;
            // SAFETY: the one element may be written, as the caller promises.
            unsafe {
                self.data
                    .copy_from_nonoverlapping(element.as_ptr(), element.len())
            };
            return Ok(());
        }
        let (layout, elements) = match message.content() {
            Content::Array(layout)
                if layout.dtype == self.dtype && layout.shape.iter().eq(self.shape) =>
            {
                (layout, message.bytes())
            }
            _ => return Err(self.misfit(message)),
        };
        let alike = layout.order == self.order || layout.shape.len() < 2;
        if self.strides.is_none() && alike {
            if !elements.is_empty() {
                // SAFETY: a layout that came in fits its elements; the memory may be written, as the caller promises.
                unsafe {
                    self.data
                        .copy_from_nonoverlapping(elements.as_ptr(), elements.len())
                };
            }
            return Ok(());
        }
        let from = strided::contiguous(&layout.shape, self.size(), layout.order);
        // SAFETY: as above.
        unsafe {
            strided::copy(
                &layout.shape,
                self.size(),
                (elements.as_ptr(), &from),
                (self.data, &self.strides()),
            );
        }
        Ok(())
    }
}

impl Expected<'_> {
    /// That an array is this.
    pub(crate) fn check(&self, found: &Layout) -> Result<()> {
        let fits = |(wanted, extent): (&i64, &u64)| {
            *wanted == ANY || u64::try_from(*wanted) == Ok(*extent)
        };
        let same_shape = self.extents.is_none_or(|extents| {
            extents.len() == found.shape.len() && extents.iter().zip(&found.shape).all(fits)
        });
        let same_type = found.dtype == self.dtype;
        if same_type && same_shape && self.order.is_none_or(|order| lies_in(order, found)) {
            return Ok(());
        }
        let order = if self.order.is_some() && found.shape.len() > 1 {
            in_order(found.order)
        } else {
            ""
        };
        let found = format!("{}{order}", shown(found.dtype, &found.shape));
        let otherwise = match same_type && same_shape {
            false => OTHERWISE,
            true => {
                "let its sender send that order, or receive it into memory of your own, where each element finds its place"
            }
        };
        Err(self.mismatch(&found, otherwise))
    }

    /// The error where something else was found, and what to do then.
    pub(crate) fn mismatch(&self, found: &str, otherwise: &str) -> Error {
        let dtype = self.dtype.name();
        let shape = match self.extents {
            None => String::new(),
            Some([]) => ", a single value".to_owned(),
            Some(extents) if extents.iter().all(|extent| *extent == ANY) => {
                format!(" of rank {}", extents.len())
            }
            Some(extents) => {
                let extent = |extent: &i64| {
                    if *extent == ANY {
                        "any".to_owned()
                    } else {
                        extent.to_string()
                    }
                };
                format!(
                    " of shape [{}]",
                    extents.iter().map(extent).collect::<Vec<_>>().join(", ")
                )
            }
        };
        let order = self
            .order
            .filter(|_| self.extents.is_none_or(|extents| extents.len() > 1))
            .map_or("", in_order);
        let text =
            format!("expected an array of {dtype}{shape}{order}, found {found}: {otherwise}");
        Error::new(Kind::TypeMismatch, text)
    }
}

/// Whether there is another byte than 0 and 1.
fn has_other_bytes(flags: &[u8]) -> bool {
    // All of a piece at once; the compiler does many of them by one instruction.
    flags
        .chunks(4096)
        .any(|piece| piece.iter().fold(0, |all, flag| all | flag) > 1)
}

/// Makes bytes other than 0 those of bool: a program in C++ or Fortran that reads any other one is wrong in ways that nobody sees.
pub(crate) fn make_bools(flags: &mut [u8]) {
    if has_other_bytes(flags) {
        flags
            .iter_mut()
            .for_each(|flag| *flag = u8::from(*flag != 0));
    }
}

/// Whether the elements of an array follow each other in this order: where no two dimensions have a next element they do in both.
fn lies_in(order: StorageOrder, layout: &Layout) -> bool {
    layout.order == order
        || layout.shape.contains(&0)
        || layout.shape.iter().filter(|extent| **extent > 1).count() < 2
}

fn in_order(order: StorageOrder) -> &'static str {
    match order {
        StorageOrder::C => " in C order",
        StorageOrder::Fortran => " in Fortran order",
    }
}

/// Where the elements of an array lie that `find` finds to be what C expects. Extents of any size become what they are; on an
/// error 0.
///
/// # Safety
/// `extents` is NULL or points to `rank` numbers that may be written; it is not used for any rank.
pub(crate) unsafe fn look<'a>(
    (dtype, rank, extents, order): (c_int, c_int, *mut i64, c_int),
    find: impl FnOnce(&Expected<'_>) -> Result<(&'a Layout, *const c_void)>,
) -> Result<*const c_void> {
    let any_rank = i64::from(rank) == ANY;
    // SAFETY: as the caller promises.
    let extents = unsafe { input::list_mut(extents, if any_rank { 0 } else { rank }, "extents") }?;
    let found = expected(dtype, (!any_rank).then_some(&*extents), order)
        .and_then(|expected| find(&expected));
    if let Ok((layout, data)) = found {
        extents
            .iter_mut()
            .zip(&layout.shape)
            .for_each(|(extent, found)| *extent = *found as i64);
        return Ok(data);
    }
    extents
        .iter_mut()
        .filter(|extent| **extent == ANY)
        .for_each(|extent| *extent = 0);
    found.map(|(_, data)| data)
}

fn expected(dtype: c_int, extents: Option<&[i64]>, order: c_int) -> Result<Expected<'_>> {
    if let Some(extent) = extents.into_iter().flatten().find(|extent| **extent < ANY) {
        return Err(usage(format!(
            "an array with an extent of {extent} is wanted: give one from 0 on, or TITIN_ANY"
        )));
    }
    let order = if i64::from(order) == ANY {
        None
    } else {
        Some(input::order(order)?)
    };
    Ok(Expected {
        dtype: input::dtype(dtype)?,
        extents,
        order,
    })
}

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        match self {
            Data::Shared(buffer, range) => &buffer[range.clone()],
            Data::Borrowed(_, 0) => &[],
            // SAFETY: the code that made this promised that the memory is there and does not change.
            Data::Borrowed(data, length) => unsafe { std::slice::from_raw_parts(*data, *length) },
        }
    }
}

/// Type and shape, for people.
pub(crate) fn shown(dtype: Dtype, shape: &[u64]) -> String {
    match shape {
        [] => format!("{}, a single value", dtype.name()),
        shape => format!("{} of shape {shape:?}", dtype.name()),
    }
}

/// Stride in bytes of a dimension of a contiguous array; 0 if there is no such dimension.
pub(crate) fn stride(layout: &Layout, dimension: c_int) -> i64 {
    let strides = strided::contiguous(&layout.shape, layout.dtype.size(), layout.order);
    usize::try_from(dimension)
        .ok()
        .and_then(|index| strides.get(index).copied())
        .unwrap_or(0) as i64
}

/// Extent of a dimension; 0 if there is no such dimension.
pub(crate) fn extent(layout: &Layout, dimension: c_int) -> i64 {
    usize::try_from(dimension)
        .ok()
        .and_then(|index| layout.shape.get(index).copied())
        .unwrap_or(0) as i64
}

pub(crate) fn order_number(order: StorageOrder) -> c_int {
    order as c_int
}

/// Room for a payload.
pub(crate) fn filling(bytes: u64) -> Result<Filling> {
    Filling::new(bytes).map_err(|error| Error::new(Kind::NoMemory, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_other_than_0_are_true() {
        let flags = [0u8, 1, 2, 255, 0, 7];
        let elements = |count: i64, stride: Option<i64>| {
            let arguments = Arguments {
                dtype: 1,
                rank: 1,
                extents: &raw const count,
                strides: stride
                    .as_ref()
                    .map_or(std::ptr::null(), |stride| &raw const *stride),
                order: 0,
                names: std::ptr::null(),
                data: flags.as_ptr().cast(),
            };
            // SAFETY: the flags are there, and so are count and stride.
            unsafe {
                arguments
                    .read()
                    .unwrap()
                    .elements()
                    .unwrap()
                    .as_ref()
                    .to_vec()
            }
        };
        assert_eq!(elements(6, None), [0, 1, 1, 1, 0, 1]);
        assert_eq!(elements(3, Some(2)), [0, 1, 0]);
        assert_eq!(elements(2, None), [0, 1]);
        let mut many = vec![1; 10_000];
        assert!(!has_other_bytes(&many));
        many[9_999] = 3;
        make_bools(&mut many);
        assert!(many.iter().all(|flag| *flag == 1));
    }
}
