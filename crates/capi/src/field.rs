//! Fields: arrays spread over the ranks of an instance.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use titin_runtime::array::{Dims, Footprint, Halo, LocalLayout, SourceArray, TargetArray};
use titin_runtime::{Dtype, FieldId, Result};

use crate::decomposition::{DecompositionSpec, wrong};
use crate::error::{keep, null, status, usage, value};
use crate::handle::{Port, StickyInstance, on_port};
use crate::input;
use crate::text::Text;

/// The `titin_field` of the header.
pub struct Field {
    shared: Arc<StickyInstance>,
    port: &'static Text,
    id: FieldId,
    spec: DecompositionSpec,
    dtypes: Vec<Dtype>,
    /// How much this rank owns in each dimension; `None` if this rank's arrays are flat.
    owned: Option<Dims>,
    /// The layout of an array without a layout from the program: one element after the other.
    dense: ArrayLayout,
    /// Where the elements of each array lie.
    layouts: Mutex<Arc<Vec<ArrayLayout>>>,
}

/// The layout of an array's elements, seen from the program's pointer.
#[derive(Clone)]
struct ArrayLayout {
    local: LocalLayout,
    /// Bytes from the beginning of the memory to the pointer.
    before: usize,
    /// Whether elements share memory.
    overlaps_itself: bool,
    /// The program's layout, if the program gave a layout. Fortran gives the same layout with each
    /// call.
    given: Option<GivenLayout>,
}

/// A program's extents, and strides in bytes.
#[derive(Clone, PartialEq)]
struct GivenLayout {
    extents: Dims<i64>,
    strides: Dims<i64>,
}

impl GivenLayout {
    /// Bytes from the beginning of the memory to the element at all zeros. Along a dimension with a
    /// negative stride, the element at zero is the last element in memory.
    fn before(&self) -> usize {
        let below = self
            .extents
            .iter()
            .zip(self.strides.iter())
            .map(|(extent, stride)| {
                let steps = extent.unsigned_abs().saturating_sub(1);
                match *stride {
                    stride if stride < 0 => steps.saturating_mul(stride.unsigned_abs()),
                    _ => 0,
                }
            });
        below.fold(0u64, u64::saturating_add) as usize
    }
}

impl ArrayLayout {
    /// Bytes from the beginning to the end of the last element.
    fn length(&self, dtype: Dtype) -> usize {
        self.local.length() as usize * dtype.size()
    }
}

impl Field {
    fn new(port: &Port, spec: &DecompositionSpec, dtypes: Vec<Dtype>) -> Result<Self> {
        spec.whole().map_err(|error| {
            let port = port.name().as_str();
            usage(format!("field on port '{port}': {}", error.text))
        })?;
        let instance = &port.shared.instance;
        let side = spec.side(instance.ranks())?;
        let dense = ArrayLayout {
            local: spec.local(&side, instance.rank())?,
            before: 0,
            overlaps_itself: false,
            given: None,
        };
        let owned = spec.owned(&side, instance.rank());
        let id = instance.field(port.id, side, spec.parts(), &dtypes)?;
        Ok(Field {
            shared: port.shared.clone(),
            port: port.name(),
            id,
            spec: spec.clone(),
            owned,
            layouts: Mutex::new(Arc::new(vec![dense.clone(); dtypes.len()])),
            dense,
            dtypes,
        })
    }

    /// The index of an array among the arrays of the field.
    fn number(&self, array: c_int) -> Result<usize> {
        let count = self.dtypes.len();
        let number = usize::try_from(array).ok().filter(|number| *number < count);
        number.ok_or_else(|| {
            let port = self.port.as_str();
            usage(format!(
                "field on port '{port}': array {array} of its {count}, which count from 0"
            ))
        })
    }

    /// An array of the field in words, for errors.
    fn name(&self, array: usize) -> String {
        let port = self.port.as_str();
        match self.dtypes.len() {
            1 => format!("field on port '{port}': its array"),
            count => {
                format!("field on port '{port}': array {array} of its {count}, which count from 0,")
            }
        }
    }

    /// The extents of an array on this rank, halo and all; `None` if the array is flat.
    fn extents(&self) -> Option<Dims> {
        let (owned, halo) = (self.owned?, self.halo());
        let whole = |dim: usize| {
            owned[dim]
                .saturating_add(halo[dim].0)
                .saturating_add(halo[dim].1)
        };
        Some(Dims::from_fn(owned.len(), whole))
    }

    fn halo(&self) -> Halo {
        self.spec
            .halo()
            .unwrap_or_else(|| Dims::all(self.spec.dims(), (0, 0)))
    }

    /// Fails unless an array's extents fit the part of this rank and the halo. The array of a rank
    /// without elements may have any extents.
    fn check_extents(&self, array: usize, extents: &[u64]) -> Result<()> {
        let Some(wanted) = self.extents() else {
            let text = format!(
                "{} is flat here, one part after the other, and has no layout",
                self.name(array)
            );
            return Err(usage(text));
        };
        let owns_nothing = self.owned.is_some_and(|owned| owned.contains(&0));
        if owns_nothing || *extents == *wanted {
            return Ok(());
        }
        let given = Dims::new(extents).map_err(wrong)?;
        let name = self.name(array);
        Err(usage(format!(
            "{name} is {wanted} here, halo and all; one of {given} was given"
        )))
    }

    /// Calls `make` with the memory, layout and element size of each array, and gives the results.
    ///
    /// # Safety
    /// `arrays` is NULL or points to a pointer for each array.
    unsafe fn arrays<'a, T>(
        &self,
        arrays: *const *mut c_void,
        layouts: &'a [ArrayLayout],
        make: impl Fn((*mut u8, usize), &'a LocalLayout, usize) -> T,
    ) -> Result<SmallVec<[T; 1]>> {
        // SAFETY: as the caller promises.
        let pointers = unsafe { input::list(arrays, self.dtypes.len() as c_int, "arrays")? };
        let each = pointers.iter().zip(layouts).zip(&self.dtypes).enumerate();
        each.map(|(number, ((pointer, layout), dtype))| {
            let memory = memory(*pointer, layout, *dtype);
            let memory =
                memory.ok_or_else(|| usage(format!("{} was given as NULL", self.name(number))))?;
            Ok(make(memory, &layout.local, dtype.size()))
        })
        .collect()
    }

    /// Fails if elements of the arrays share memory: a received element would overwrite another one.
    ///
    /// # Safety
    /// As of [`Field::arrays`].
    unsafe fn check_distinct(
        &self,
        arrays: *const *mut c_void,
        layouts: &[ArrayLayout],
    ) -> Result<()> {
        if let Some(number) = layouts.iter().position(|layout| layout.overlaps_itself) {
            return Err(usage(format!(
                "{} has elements that share memory, where one would overwrite another: receive into an array without overlaps",
                self.name(number)
            )));
        }
        if layouts.len() < 2 {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        let pointers = unsafe { input::list(arrays, self.dtypes.len() as c_int, "arrays")? };
        let each = pointers.iter().zip(layouts).zip(&self.dtypes);
        let footprints = each.map(|((pointer, layout), dtype)| {
            let (begin, _) = memory(*pointer, layout, *dtype)?;
            layout.local.footprint(begin.addr(), dtype.size())
        });
        let footprints: Vec<Option<Footprint>> = footprints.collect();
        for (number, own) in footprints.iter().enumerate() {
            let share = |other: &Option<Footprint>| {
                own.as_ref()
                    .zip(other.as_ref())
                    .is_some_and(|(own, other)| own.overlaps(other))
            };
            if let Some(first) = footprints[..number].iter().position(share) {
                return Err(usage(format!(
                    "field on port '{}': arrays {first} and {number}, which count from 0, share memory: each array of a field is \
                     received into memory of its own",
                    self.port.as_str()
                )));
            }
        }
        Ok(())
    }

    /// The error for a program that asks for dimensions of flat arrays.
    fn is_flat(&self) -> titin_runtime::Error {
        let port = self.port.as_str();
        usage(format!(
            "field on port '{port}': its arrays are flat on this rank, one part after the other, and have no dimensions"
        ))
    }

    /// The layout of an array with the given extents and strides, if the field can have such a
    /// layout.
    fn layout(&self, array: usize, given: GivenLayout) -> Result<ArrayLayout> {
        let size = self.dtypes[array].size() as i64;
        let mut steps = given.extents.iter().zip(&*given.strides);
        if let Some((_, odd)) = steps.find(|(extent, stride)| **extent > 1 && **stride % size != 0)
        {
            let name = self.name(array);
            let text = format!(
                "{name} was given a stride of {odd} bytes, which is no multiple of the {size} bytes of an element, as in an array of \
                 packed records: give a copy, as a contiguous array"
            );
            return Err(usage(text));
        }
        let extents = given.extents.iter();
        let extents = extents.map(|extent| self.extent(array, *extent));
        let extents: Vec<u64> = extents.collect::<Result<_>>()?;
        let steps: Vec<i64> = given.strides.iter().map(|stride| stride / size).collect();
        self.check_extents(array, &extents)?;
        let local = LocalLayout::array(&extents, &steps, &self.halo()).map_err(wrong)?;
        let footprint = local.footprint(0, size as usize);
        Ok(ArrayLayout {
            local,
            before: given.before(),
            overlaps_itself: footprint.is_some_and(|elements| elements.overlaps_itself()),
            given: Some(given),
        })
    }

    /// An extent that the program has given for an array.
    fn extent(&self, array: usize, extent: i64) -> Result<u64> {
        u64::try_from(extent).map_err(|_| {
            let name = self.name(array);
            usage(format!(
                "{name} was given an extent of {extent}: give one from 0 on"
            ))
        })
    }

    fn layouts(&self) -> Arc<Vec<ArrayLayout>> {
        self.layouts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_layout(&self, array: usize, layout: ArrayLayout) {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut layouts)[array] = layout;
    }
}

/// The field behind a handle.
///
/// # Safety
/// `handle` is NULL or a field that is not freed while the result is used.
unsafe fn behind<'a>(handle: *const Field) -> Result<&'a Field> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("field", "titin_field_new"))
}

/// A call on a field.
///
/// # Safety
/// `handle` is NULL or a field that is not freed during the call.
unsafe fn on_field(handle: *const Field, body: impl FnOnce(&Field) -> Result<()>) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { behind(handle) } {
        Ok(field) => field.shared.run_unless_stuck(|| body(field)),
        Err(error) => keep(error),
    }
}

/// The memory of an array: the beginning, and the number of bytes. `None` if the pointer is NULL,
/// unless there are no bytes.
fn memory(pointer: *mut c_void, layout: &ArrayLayout, dtype: Dtype) -> Option<(*mut u8, usize)> {
    match layout.length(dtype) {
        0 if pointer.is_null() => Some((std::ptr::NonNull::dangling().as_ptr(), 0)),
        _ if pointer.is_null() => None,
        length => Some((pointer.cast::<u8>().wrapping_sub(layout.before), length)),
    }
}

/// # Safety
/// `port` is NULL or a port; `spec` is NULL or a decomposition; `dtypes` is NULL or has `count`
/// entries; `field` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_new(
    port: *mut Port,
    spec: *const DecompositionSpec,
    count: c_int,
    dtypes: *const c_int,
    field: *mut *mut Field,
) -> c_int {
    if field.is_null() {
        return keep(usage("NULL was given where the field was to be written"));
    }
    // SAFETY: not NULL, so the caller allows writing.
    unsafe { field.write(std::ptr::null_mut()) };
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            let spec = spec
                .as_ref()
                .ok_or_else(|| null("decomposition", "titin_decomposition_new"))?;
            let dtypes = input::list(dtypes, count, "element types")?;
            let dtypes = dtypes.iter().map(|dtype| input::dtype(*dtype));
            let made = Field::new(port, spec, dtypes.collect::<Result<_>>()?)?;
            field.write(Box::into_raw(Box::new(made)));
            Ok(())
        })
    }
}

/// # Safety
/// `field` is NULL or a field that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_free(field: *mut Field) {
    if !field.is_null() {
        // SAFETY: made by `titin_field_new`.
        drop(unsafe { Box::from_raw(field) });
    }
}

/// # Safety
/// `field` is NULL or a field.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_bytes(field: *const Field, array: c_int) -> i64 {
    value(0, || {
        // SAFETY: as the caller promises.
        let field = unsafe { behind(field) }?;
        let number = field.number(array)?;
        Ok((field.layouts()[number].length(field.dtypes[number])) as i64)
    })
}

/// # Safety
/// `field` is NULL or a field.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_dtype(field: *const Field, array: c_int) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        let field = unsafe { behind(field) }?;
        Ok(field.dtypes[field.number(array)?] as c_int)
    })
}

/// # Safety
/// `field` is NULL or a field; `extents` is NULL or has an entry for each dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_extents(field: *const Field, extents: *mut i64) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let field = unsafe { behind(field) }?;
        let found = field.extents().ok_or_else(|| field.is_flat())?;
        if extents.is_null() {
            return Err(usage("NULL was given where the extents were to be written"));
        }
        // SAFETY: as the caller promises.
        unsafe { fill(extents, &found) };
        Ok(())
    })
}

/// # Safety
/// `field` is NULL or a field; `indices` is NULL or has an entry for each of the rank's indices
/// along the dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_owned(field: *const Field, dim: c_int, indices: *mut i64) -> i64 {
    value(-1, || {
        // SAFETY: as the caller promises.
        let field = unsafe { behind(field) }?;
        let counts = field.owned.ok_or_else(|| field.is_flat())?;
        let count = counts[field.spec.dim(dim)?];
        if !indices.is_null() {
            let instance = &field.shared.instance;
            let side = field.spec.side(instance.ranks())?;
            let found = field
                .spec
                .owned_along(&side, instance.rank(), dim)?
                .ok_or_else(|| field.is_flat())?;
            // SAFETY: as the caller promises.
            unsafe { fill(indices, &found) };
        }
        Ok(count as i64)
    })
}

/// Writes numbers to memory of the program.
///
/// # Safety
/// `place` has room for all.
unsafe fn fill(place: *mut i64, numbers: &[u64]) {
    for (index, number) in numbers.iter().enumerate() {
        // SAFETY: as the caller promises.
        unsafe { place.add(index).write(*number as i64) };
    }
}

/// # Safety
/// `field` is NULL or a field; `extents` and `strides` are NULL or have an entry for each
/// dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_layout(
    field: *mut Field,
    array: c_int,
    extents: *const i64,
    strides: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_field(field, |field| {
            let number = field.number(array)?;
            if extents.is_null() && strides.is_null() {
                field.set_layout(number, field.dense.clone());
                return Ok(());
            }
            let dims = field.spec.dims() as c_int;
            let given = GivenLayout {
                extents: Dims::new(input::list(extents, dims, "extents")?).map_err(wrong)?,
                strides: Dims::new(input::list(strides, dims, "strides")?).map_err(wrong)?,
            };
            if field.layouts()[number].given.as_ref() != Some(&given) {
                field.set_layout(number, field.layout(number, given)?);
            }
            Ok(())
        })
    }
}

/// # Safety
/// `field` is NULL or a field. `arrays` is NULL or points to a pointer for each of the field's
/// arrays. All elements in the layout of each array may be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_send(
    field: *mut Field,
    arrays: *const *const c_void,
    timestamp: f64,
    next_timestamp: f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_field(field, |field| {
            let layouts = field.layouts();
            let sources =
                field.arrays(arrays.cast(), &layouts, |(begin, length), local, size| {
                    SourceArray {
                        memory: std::slice::from_raw_parts(begin, length),
                        local,
                        size,
                    }
                })?;
            field.shared.instance.send_field(
                field.id,
                &sources,
                timestamp,
                input::next(next_timestamp),
            )
        })
    }
}

/// # Safety
/// `field` is NULL or a field. `arrays` is NULL or points to a pointer for each of the field's
/// arrays. All elements in the layout of each array may be written, and no other code uses the
/// elements meanwhile. `timestamp` and `next_timestamp` are NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_receive(
    field: *mut Field,
    arrays: *const *mut c_void,
    timeout: f64,
    timestamp: *mut f64,
    next_timestamp: *mut f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { receive(field, arrays, None, timeout, (timestamp, next_timestamp)) }
}

/// # Safety
/// As of `titin_field_receive`.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_receive_at(
    field: *mut Field,
    arrays: *const *mut c_void,
    at: f64,
    timeout: f64,
    timestamp: *mut f64,
    next_timestamp: *mut f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        receive(
            field,
            arrays,
            Some(at),
            timeout,
            (timestamp, next_timestamp),
        )
    }
}

/// # Safety
/// `field` is NULL or a field.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_field_withdraw(field: *mut Field) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_field(field, |field| {
            field.shared.instance.withdraw_field(field.id)
        })
    }
}

/// # Safety
/// As of `titin_field_receive`.
unsafe fn receive(
    field: *mut Field,
    arrays: *const *mut c_void,
    at: Option<f64>,
    timeout: f64,
    (timestamp, next_timestamp): (*mut f64, *mut f64),
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_field(field, |field| {
            let layouts = field.layouts();
            field.check_distinct(arrays, &layouts)?;
            let mut targets = field.arrays(arrays, &layouts, |(begin, length), local, size| {
                TargetArray {
                    memory: std::slice::from_raw_parts_mut(begin, length),
                    local,
                    size,
                }
            })?;
            let patience = input::patience(timeout)?;
            let stamps =
                field
                    .shared
                    .instance
                    .receive_field(field.id, &mut targets, at, patience)?;
            if let Some(timestamp) = timestamp.as_mut() {
                *timestamp = stamps.map_or(f64::NAN, |stamps| stamps.timestamp);
            }
            if let Some(next) = next_timestamp.as_mut() {
                *next = stamps
                    .and_then(|stamps| stamps.next_timestamp)
                    .unwrap_or(crate::input::NO_NEXT);
            }
            Ok(())
        })
    }
}
