//! Arrays in the description of C.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};

use smallvec::SmallVec;
use titin_runtime::array::Footprint;
use titin_runtime::{
    CallerLayout, Content, Dtype, ElementValue, Error, Filling, Kind, Layout, LayoutRef, Message,
    Result, StorageOrder,
};

use crate::elements::{Elements, shown};
use crate::error::{Mismatch, usage};
use crate::language::Getter;
use crate::number::{element, range, rounded};
use crate::strided::Strides;
use crate::value::Value;
use crate::{input, strided};

/// Most dimensions; the header has the same number.
const MAX_RANK: c_int = titin_runtime::MAX_RANK as c_int;

/// An array in the caller's memory.
pub(crate) struct CallerArray<'a> {
    dtype: Dtype,
    /// The order asked for.
    order: StorageOrder,
    shape: &'a [u64],
    names: Vec<String>,
    /// `None` if the elements follow each other in `order`.
    strides: Option<Strides>,
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
}

/// C's arguments for an array.
#[derive(Clone, Copy)]
pub(crate) struct ArrayArguments {
    pub(crate) dtype: c_int,
    pub(crate) rank: c_int,
    pub(crate) extents: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) order: c_int,
    pub(crate) names: *const *const c_char,
    pub(crate) data: *const c_void,
}

/// An array as the caller expects the array to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedArray<'a> {
    pub(crate) dtype: Dtype,
    /// The extent in each dimension, or [`ANY`]; None for any rank.
    pub(crate) extents: Option<&'a [i64]>,
    /// None for either order.
    pub(crate) order: Option<StorageOrder>,
}

/// Stands for any extent, rank or order; the header has the same number.
const ANY: i64 = -1;

/// Advice for data of another type or shape.
const OTHERWISE: &str = "let its sender send what is expected, or ask for what it sends";

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
    // SAFETY: `extents` as unsigned numbers; none of the extents is negative.
    let shape =
        unsafe { std::slice::from_raw_parts(extents.as_ptr().cast::<u64>(), extents.len()) };
    Ok(LayoutRef {
        dtype,
        order,
        shape,
        names: &[],
    })
}

/// Index names of an array of rank `rank`.
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

impl ArrayArguments {
    /// Type, order and shape, and the number of bytes, which are there unless it is 0.
    ///
    /// # Safety
    /// As [`ArrayArguments::read`].
    #[inline(always)]
    unsafe fn form<'a>(&self) -> Result<(LayoutRef<'a>, usize)> {
        // SAFETY: as the caller promises.
        let form = unsafe { form(self.dtype, self.rank, self.extents, self.order) }?;
        let bytes = form.bytes().and_then(|bytes| isize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| too_large(form.shape))?;
        if self.data.is_null() && bytes > 0 {
            return Err(no_data(form.shape));
        }
        Ok((form, bytes as usize))
    }

    /// The layout of an array whose elements follow each other, have no names and need no check, as
    /// the caller gives it; `None` for any other array. The data may be missing.
    ///
    /// # Safety
    /// As [`ArrayArguments::read`].
    #[inline(always)]
    pub(crate) unsafe fn caller_layout<'a>(&self) -> Option<CallerLayout<'a>> {
        let is_plain = self.strides.is_null() && self.names.is_null();
        let rank = usize::try_from(self.rank).ok()?;
        let has_extents = rank <= MAX_RANK as usize && (rank == 0 || !self.extents.is_null());
        if !is_plain || !has_extents || self.dtype == Dtype::Bool as c_int {
            return None;
        }
        let shape: &[u64] = match rank {
            0 => &[],
            // SAFETY: `rank` extents are there, as the caller promises; a negative extent is a number
            // too large for any array.
            rank => unsafe { std::slice::from_raw_parts(self.extents.cast(), rank) },
        };
        Some(CallerLayout {
            dtype: self.dtype,
            order: input::order(self.order).ok()?,
            shape,
        })
    }

    /// Type, order, shape and elements of an array whose elements follow each other, have no names
    /// and need no check; `None` for any other array.
    ///
    /// # Safety
    /// As [`ArrayArguments::read`]; all elements may be read, and do not change while the result
    /// lives.
    #[inline(always)]
    pub(crate) unsafe fn plain<'a>(&self) -> Result<Option<(LayoutRef<'a>, &'a [u8])>> {
        let is_plain = self.strides.is_null() && self.names.is_null();
        if !is_plain || self.dtype == Dtype::Bool as c_int {
            return Ok(None);
        }
        // SAFETY: as the caller promises.
        let (form, bytes) = unsafe { self.form() }?;
        let elements = match bytes {
            0 => &[],
            // SAFETY: the elements follow each other and may be read, as the caller promises.
            bytes => unsafe { std::slice::from_raw_parts(self.data.cast(), bytes) },
        };
        Ok(Some((form, elements)))
    }

    /// Makes the description safe, except for the memory behind `data`.
    ///
    /// # Safety
    /// `extents` and `strides` are NULL or point to `rank` numbers. The extents do not change while
    /// the result lives. `names` is NULL or points to `rank` texts that end with a NUL.
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(self) -> Result<CallerArray<'a>> {
        // SAFETY: as the caller promises.
        let (form, bytes) = unsafe { self.form() }?;
        let LayoutRef {
            dtype,
            order,
            shape,
            ..
        } = form;
        let strides = if self.strides.is_null() {
            None
        } else {
            // SAFETY: as the caller promises.
            let strides = unsafe { input::list(self.strides, self.rank, "strides") }?;
            Some(strides.iter().map(|stride| *stride as isize).collect())
        };
        // SAFETY: as the caller promises.
        let names = unsafe { names(self.names, self.rank) }?;
        Ok(CallerArray {
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

#[cold]
fn too_large(shape: &[u64]) -> Error {
    usage(if shape.contains(&0) {
        format!(
            "an array of {shape:?} is too large along its other dimensions, though it has no elements"
        )
    } else {
        format!("an array of {shape:?} does not fit into memory")
    })
}

#[cold]
fn no_data(shape: &[u64]) -> Error {
    usage(format!(
        "NULL was given for the data of an array of {shape:?}"
    ))
}

impl CallerArray<'_> {
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

    /// The order in which the elements follow each other; `None` if there are gaps, or another
    /// order.
    #[inline(always)]
    fn contiguous_order(&self) -> Option<StorageOrder> {
        let strides = self.strides.as_ref();
        strides.map_or(Some(self.order), |strides| {
            strided::order_of(self.shape, strides, self.size(), self.order)
        })
    }

    /// The strides of the elements, in bytes.
    fn strides(&self) -> Cow<'_, [isize]> {
        match &self.strides {
            Some(strides) => Cow::Borrowed(strides),
            None => Cow::Owned(strided::contiguous(self.shape, self.size(), self.order).into_vec()),
        }
    }

    /// The elements without gaps: in place, or as a packed copy. `self.order` becomes the order of
    /// the elements.
    ///
    /// # Safety
    /// All elements may be read, and do not change while the result lives.
    pub(crate) unsafe fn elements(&mut self) -> Result<Elements> {
        match self.contiguous_order() {
            // SAFETY: the elements follow each other, and may be read, as the caller promises.
            Some(order) if unsafe { self.is_sound() } => {
                self.order = order;
                Ok(Elements::Borrowed(self.data, self.bytes))
            }
            // SAFETY: as the caller promises.
            _ => unsafe { self.copied() },
        }
    }

    /// Whether all elements are valid values of the type: bools are the bytes 0 and 1.
    ///
    /// # Safety
    /// All elements may be read, and follow each other.
    unsafe fn is_sound(&self) -> bool {
        // SAFETY: as the caller promises; an array without bytes may be NULL.
        self.dtype != Dtype::Bool
            || self.bytes == 0
            || !has_other_bytes(unsafe { std::slice::from_raw_parts(self.data, self.bytes) })
    }

    /// A copy of the elements without gaps.
    ///
    /// # Safety
    /// All elements may be read.
    pub(crate) unsafe fn copied(&mut self) -> Result<Elements> {
        let from = self.strides().into_owned();
        self.order = self.contiguous_order().unwrap_or(self.order);
        let mut filling = filling(self.bytes as u64)?;
        let to = (
            filling.rest().as_mut_ptr(),
            &strided::contiguous(self.shape, self.size(), self.order)[..],
        );
        // SAFETY: the elements may be read, as the caller promises; the fresh buffer has room for
        // all.
        unsafe { strided::copy(self.shape, self.size(), (self.data, &from), to) };
        if self.dtype == Dtype::Bool && self.bytes > 0 {
            // SAFETY: the bytes were written just now.
            make_bools(unsafe { std::slice::from_raw_parts_mut(to.0.cast(), self.bytes) });
        }
        filling.advance(self.bytes);
        Ok(Elements::Shared(filling.finish().into(), 0..self.bytes))
    }

    /// Fails if elements share memory: a received element would overwrite another one.
    pub(crate) fn check_distinct(&self) -> Result<()> {
        let Some(strides) = &self.strides else {
            return Ok(());
        };
        if self.contiguous_order().is_some() {
            return Ok(());
        }
        let elements = self.footprint();
        if elements.is_none_or(|elements| !elements.overlaps_itself()) {
            return Ok(());
        }
        Err(usage(format!(
            "an array of extents {:?} and strides of {:?} bytes has elements that share memory, where one would overwrite another: \
             receive into an array without overlaps",
            self.shape,
            &strides[..]
        )))
    }

    /// Whether an element shares memory with an element of another array.
    pub(crate) fn overlaps(&self, other: &CallerArray<'_>) -> bool {
        let both = self.footprint().zip(other.footprint());
        both.is_some_and(|(own, others)| own.overlaps(&others))
    }

    /// The memory of the elements; `None` for an array without elements.
    fn footprint(&self) -> Option<Footprint> {
        let strides = self.strides();
        let steps = strides.iter().map(|stride| *stride as i64);
        Footprint::new(self.data.addr(), self.shape, steps, self.size())
    }

    /// The error for data that are not an array of the right type and shape.
    #[cold]
    fn misfit(&self, found: &str) -> Error {
        let extents: SmallVec<[i64; 4]> = self.shape.iter().map(|extent| *extent as i64).collect();
        ExpectedArray {
            dtype: self.dtype,
            extents: Some(&extents),
            order: None,
        }
        .otherwise(found, OTHERWISE)
    }

    /// Fails unless an array has the type and shape of this one.
    pub(crate) fn check(&self, found: &Layout) -> Result<()> {
        if found.dtype == self.dtype && found.shape.iter().eq(self.shape) {
            return Ok(());
        }
        Err(self.misfit(&shown(found.dtype, &found.shape)))
    }

    /// Writes a message's array here; a single value may also come as a number.
    ///
    /// # Safety
    /// All elements may be written, and no other code uses the elements meanwhile.
    pub(crate) unsafe fn fill(&self, message: &Message) -> Result<()> {
        let structure = || Value::received(message.structure(), &message.buffer());
        if matches!(message.content(), Content::Structure) && self.shape.is_empty() {
            let element = self.single(&structure())?;
            // SAFETY: the only element may be written, as the caller promises.
            unsafe {
                self.data
                    .copy_from_nonoverlapping(element.as_ptr(), element.len())
            };
            return Ok(());
        }
        let Content::Array(layout) = message.content() else {
            return Err(self.misfit(&structure().summary()));
        };
        self.check(layout)?;
        // SAFETY: the layout of a received message fits the message's elements. The rest is as the caller promises.
        unsafe { self.fill_with(layout, message.bytes()) };
        Ok(())
    }

    /// Whether the bytes of an array of this type and shape are the bytes of this one.
    pub(crate) fn is_alike(&self, found: &Layout) -> bool {
        self.strides.is_none() && (found.order == self.order || found.shape.len() < 2)
    }

    /// The memory of an array whose elements follow each other.
    ///
    /// # Safety
    /// All elements may be written, and no other code uses the elements while the result lives.
    pub(crate) unsafe fn memory<'m>(&self) -> &'m mut [u8] {
        match self.bytes {
            0 => &mut [],
            // SAFETY: as the caller promises.
            bytes => unsafe { std::slice::from_raw_parts_mut(self.data, bytes) },
        }
    }

    /// Writes the elements of an array of this type and shape here.
    ///
    /// # Safety
    /// `elements` has all elements of `layout`. The elements here may be written, and no other code uses them meanwhile.
    pub(crate) unsafe fn fill_with(&self, layout: &Layout, elements: &[u8]) {
        if self.is_alike(layout) {
            // SAFETY: as the caller promises.
            unsafe { self.memory() }.copy_from_slice(elements);
            return;
        }
        let from = strided::contiguous(&layout.shape, self.size(), layout.order);
        // SAFETY: as the caller promises.
        unsafe {
            strided::copy(
                &layout.shape,
                self.size(),
                (elements.as_ptr(), &from),
                (self.data, &self.strides()),
            );
        }
    }

    /// The bytes of the single element that represents a number.
    fn single(&self, value: &Value) -> Result<Vec<u8>> {
        let number = value.number();
        if let Some(why) = number.and_then(|number| rounded(number, self.dtype)) {
            return Err(Error::new(Kind::TypeMismatch, why));
        }
        number
            .and_then(|number| element(number, self.dtype))
            .ok_or_else(|| value.mismatch(&format!("{}, a single value", range(self.dtype))))
    }
}

impl ExpectedArray<'_> {
    /// Fails unless an array is as expected.
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
        Err(self.otherwise(&found, otherwise))
    }

    /// The error for a value other than the expected array, with the call that reads the value.
    pub(crate) fn mismatch(
        &self,
        found: &Value,
        getter: impl FnOnce(ElementValue) -> Getter,
    ) -> Mismatch {
        match found.number() {
            None => self.otherwise(&found.summary(), OTHERWISE).into(),
            Some(number) => {
                let text = self.instead(&found.summary());
                Mismatch::readable(Error::new(Kind::TypeMismatch, text), getter(number))
            }
        }
    }

    /// The error for other data than expected, and advice.
    fn otherwise(&self, found: &str, otherwise: &str) -> Error {
        let text = format!("{}: {otherwise}", self.instead(found));
        Error::new(Kind::TypeMismatch, text)
    }

    /// The array expected, and the data found instead, in words.
    fn instead(&self, found: &str) -> String {
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
        format!("expected an array of {dtype}{shape}{order}, found {found}")
    }
}

/// Whether a byte is neither 0 nor 1.
fn has_other_bytes(flags: &[u8]) -> bool {
    // No exit inside a chunk, so that the compiler makes vector instructions of the loop.
    flags
        .chunks(4096)
        .any(|chunk| chunk.iter().fold(0, |all, flag| all | flag) > 1)
}

/// Makes each byte other than 0 a 1. Programs in C++ and Fortran that read another byte as bool go
/// wrong without any message.
pub(crate) fn make_bools(flags: &mut [u8]) {
    if has_other_bytes(flags) {
        flags
            .iter_mut()
            .for_each(|flag| *flag = u8::from(*flag != 0));
    }
}

/// Whether the elements of an array follow each other in `order`. With fewer than two dimensions of
/// more than one element, the elements follow each other in both orders.
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

/// The elements of an array, if `find` finds the array that C expects. Each extent given as [`ANY`]
/// becomes the array's extent, or 0 on an error.
///
/// # Safety
/// `extents` is NULL or points to `rank` writable numbers; for any rank, `extents` is not used.
pub(crate) unsafe fn elements_of<'a>(
    (dtype, rank, extents, order): (c_int, c_int, *mut i64, c_int),
    find: impl FnOnce(&ExpectedArray<'_>) -> std::result::Result<(&'a Layout, *const c_void), Mismatch>,
) -> std::result::Result<*const c_void, Mismatch> {
    let any_rank = i64::from(rank) == ANY;
    // SAFETY: as the caller promises.
    let extents = unsafe { input::list_mut(extents, if any_rank { 0 } else { rank }, "extents") }?;
    let found = expected(dtype, (!any_rank).then_some(&*extents), order)
        .map_err(Mismatch::from)
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

fn expected(dtype: c_int, extents: Option<&[i64]>, order: c_int) -> Result<ExpectedArray<'_>> {
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
    Ok(ExpectedArray {
        dtype: input::dtype(dtype)?,
        extents,
        order,
    })
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
            let arguments = ArrayArguments {
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
