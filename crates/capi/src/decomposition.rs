//! Decompositions: how an array is spread over the ranks of an instance. A program describes a
//! decomposition call by call.

use std::ffi::c_int;

use titin_runtime::array::{
    self, Decomposition, Dims, Halo, LocalLayout, Ownership, Region, Side, Spread,
};
use titin_runtime::{Error, Result, StorageOrder};

use crate::error::{null, status, usage, value};
use crate::input;

/// The `titin_decomposition` of the header.
#[derive(Clone)]
pub struct DecompositionSpec {
    shape: Vec<u64>,
    /// For each dimension, the number of processes and the spread.
    grid: Vec<(u32, Spread)>,
    boxes: Vec<Region>,
    indices: Option<Vec<u64>>,
    region: Option<Region>,
    halo: Vec<(u64, u64)>,
    order: array::Order,
    /// The order in which ranks count through the grid.
    ranks: array::Order,
    /// The first error of a call on the decomposition. After an error, the decomposition may not be
    /// the decomposition that the program means.
    failed: Option<Error>,
}

/// The part of a rank, if the part has the dimensions of the whole array.
enum OwnedShape<'a> {
    Rule,
    Box(&'a Region),
    Indices(&'a [u64]),
}

impl DecompositionSpec {
    fn new(shape: Vec<u64>) -> Self {
        let dims = shape.len();
        let grid = vec![(1, Spread::Even); dims];
        let halo = vec![(0, 0); dims];
        let (boxes, order) = (Vec::new(), array::Order::C);
        DecompositionSpec {
            shape,
            grid,
            boxes,
            indices: None,
            region: None,
            halo,
            order,
            ranks: order,
            failed: None,
        }
    }

    pub(crate) fn dims(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn dim(&self, dim: c_int) -> Result<usize> {
        let found = usize::try_from(dim).ok().filter(|dim| *dim < self.dims());
        found.ok_or_else(|| {
            let dims = self.dims();
            usage(format!(
                "there is no dimension {dim}: the array has {dims}, which count from 0"
            ))
        })
    }

    /// Fails if a call on the decomposition has failed. The program might have ignored the failed
    /// call.
    pub(crate) fn whole(&self) -> Result<()> {
        let Some(first) = &self.failed else {
            return Ok(());
        };
        Err(usage(format!(
            "a call on its decomposition has failed: {}",
            first.text
        )))
    }

    /// This side of an exchange, as told to the other end.
    pub(crate) fn side(&self, ranks: u32) -> Result<Side> {
        let decomposition = match (&self.indices, &self.boxes[..]) {
            (Some(_), []) => Decomposition::indices(&self.shape, ranks),
            (Some(_), _) => {
                return Err(usage(
                    "a decomposition by boxes and by indices: give one of them",
                ));
            }
            (None, []) => {
                let (grid, spreads): (Vec<u32>, Vec<Spread>) = self.grid.iter().cloned().unzip();
                Decomposition::regular(&self.shape, &grid, &spreads, self.ranks, ranks)
            }
            (None, _) => Decomposition::boxes(&self.shape, ranks),
        };
        let side = Side::new(decomposition.map_err(wrong)?).order(self.order);
        Ok(match &self.region {
            Some(region) => side.region(*region),
            None => side,
        })
    }

    /// The parts of the calling rank.
    pub(crate) fn parts(&self) -> Ownership {
        match (&self.indices, &self.boxes[..]) {
            (Some(indices), _) => Ownership::indices(indices.iter().copied()),
            (None, []) => Ownership::Rule,
            (None, boxes) => Ownership::Boxes(boxes.to_vec()),
        }
    }

    /// The part of the calling rank, if the part has the dimensions of the whole. `None` if the
    /// rank's arrays are flat.
    fn shaped(&self) -> Option<OwnedShape<'_>> {
        match (&self.indices, &self.boxes[..]) {
            (Some(indices), _) => (self.dims() == 1).then_some(OwnedShape::Indices(indices)),
            (None, []) => Some(OwnedShape::Rule),
            (None, [one]) => Some(OwnedShape::Box(one)),
            (None, _) => None,
        }
    }

    /// The extents of the rank's part; `None` if the rank's arrays are flat.
    pub(crate) fn owned(&self, side: &Side, rank: u32) -> Option<Dims> {
        match self.shaped()? {
            OwnedShape::Rule => side.decomposition.extents(rank),
            OwnedShape::Box(one) => Some(one.extents()),
            OwnedShape::Indices(_) => self.parts().elements().map(|count| Dims::all(1, count)),
        }
    }

    /// The rank's indices along a dimension; `None` if the rank's arrays are flat.
    pub(crate) fn owned_along(
        &self,
        side: &Side,
        rank: u32,
        dim: c_int,
    ) -> Result<Option<Vec<u64>>> {
        let dim = self.dim(dim)?;
        Ok(self.shaped().and_then(|shaped| match shaped {
            OwnedShape::Rule => side
                .decomposition
                .indices_along(rank, dim)
                .map(Iterator::collect),
            OwnedShape::Box(one) => Some((one.lower()[dim]..one.upper()[dim]).collect()),
            OwnedShape::Indices(indices) => Some(indices.to_vec()),
        }))
    }

    /// The layout of the rank's elements by default: one after the other, with the halo.
    pub(crate) fn local(&self, side: &Side, rank: u32) -> Result<LocalLayout> {
        let halo = self.halo();
        let halo = halo
            .as_ref()
            .filter(|_| self.halo.iter().any(|widths| *widths != (0, 0)));
        LocalLayout::dense(&side.decomposition, rank, &self.parts(), halo, self.order)
            .map_err(wrong)
    }

    pub(crate) fn halo(&self) -> Option<Halo> {
        Dims::new(&self.halo).ok()
    }
}

/// An error of the array crate, as an error of a call.
pub(crate) fn wrong(error: impl Into<array::Error>) -> titin_runtime::Error {
    usage(error.into().to_string())
}

/// Extents, indices or bounds. Negative numbers are refused.
///
/// # Safety
/// As [`input::list`].
unsafe fn numbers(items: *const i64, count: c_int, what: &str) -> Result<Vec<u64>> {
    // SAFETY: as the caller promises.
    let items = unsafe { input::list(items, count, what) }?;
    let wrong = |item: &i64| {
        usage(format!(
            "{item} is among the {what}, which are not negative"
        ))
    };
    let number = |item: &i64| u64::try_from(*item).map_err(|_| wrong(item));
    items.iter().map(number).collect()
}

/// # Safety
/// `spec` is NULL or a decomposition that no other code uses meanwhile.
unsafe fn change(
    spec: *mut DecompositionSpec,
    body: impl FnOnce(&mut DecompositionSpec) -> Result<()>,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let spec = unsafe { spec.as_mut() }
            .ok_or_else(|| null("decomposition", "titin_decomposition_new"))?;
        body(spec).inspect_err(|error| _ = spec.failed.get_or_insert_with(|| error.clone()))
    })
}

/// # Safety
/// As [`numbers`], for the bounds of a box.
unsafe fn region(spec: &DecompositionSpec, lower: *const i64, upper: *const i64) -> Result<Region> {
    let count = spec.dims() as c_int;
    // SAFETY: as the caller promises.
    let (lower, upper) = unsafe {
        (
            numbers(lower, count, "lower bounds")?,
            numbers(upper, count, "upper bounds")?,
        )
    };
    Region::new(&lower, &upper).map_err(wrong)
}

/// # Safety
/// `shape` is NULL or has `dims` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_new(
    dims: c_int,
    shape: *const i64,
) -> *mut DecompositionSpec {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let shape = unsafe { numbers(shape, dims, "extents") }?;
        if shape.is_empty() {
            return Err(usage(
                "an array of a field has 1 to 7 dimensions, and not 0",
            ));
        }
        // Refuses a shape that no array can have.
        Decomposition::serial(&shape).map_err(wrong)?;
        Ok(Box::into_raw(Box::new(DecompositionSpec::new(shape))))
    })
}

/// # Safety
/// `spec` is NULL or a decomposition that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_free(spec: *mut DecompositionSpec) {
    if !spec.is_null() {
        // SAFETY: made by `titin_decomposition_new`.
        drop(unsafe { Box::from_raw(spec) });
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; `grid` is NULL or has an entry for each dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_grid(
    spec: *mut DecompositionSpec,
    grid: *const c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let grid = input::list(grid, spec.dims() as c_int, "processes")?;
            for (known, processes) in spec.grid.iter_mut().zip(grid) {
                known.0 = u32::try_from(*processes)
                    .map_err(|_| usage(format!("{processes} processes along a dimension")))?;
            }
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_spread(
    spec: *mut DecompositionSpec,
    dim: c_int,
    spread: c_int,
    block: i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let dim = spec.dim(dim)?;
            spec.grid[dim].1 = match (spread, u64::try_from(block)) {
                (1, _) => Spread::Even,
                (2, _) => Spread::Block,
                (3, Ok(block)) if block > 0 => Spread::Cyclic(block),
                (3, _) => {
                    return Err(usage(format!(
                        "a cyclic dimension in blocks of {block}: at least 1"
                    )));
                }
                _ => {
                    let known = "TITIN_EVEN, TITIN_BLOCK or TITIN_CYCLIC";
                    return Err(usage(format!(
                        "{spread} is no way to spread a dimension: {known}"
                    )));
                }
            };
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; `bounds` is NULL or has `count` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_bounds(
    spec: *mut DecompositionSpec,
    dim: c_int,
    count: c_int,
    bounds: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let (dim, bounds) = (spec.dim(dim)?, numbers(bounds, count, "bounds")?);
            spec.grid[dim].1 = Spread::Bounds(bounds);
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; the bounds are NULL or have an entry for each dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_box(
    spec: *mut DecompositionSpec,
    lower: *const i64,
    upper: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let owned = region(spec, lower, upper)?;
            spec.boxes.push(owned);
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; `indices` is NULL or has `count` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_indices(
    spec: *mut DecompositionSpec,
    count: i64,
    indices: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let count = usize::try_from(count).map_err(|_| usage(format!("{count} indices")))?;
            if indices.is_null() && count > 0 {
                return Err(usage(format!("NULL was given for {count} indices")));
            }
            let given = if count == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(indices, count)
            };
            let wrong = |index: &i64| {
                usage(format!(
                    "{index} is among the indices, which are not negative: element 0 is the first one (number 1 in Fortran)"
                ))
            };
            let number = |index: &i64| u64::try_from(*index).map_err(|_| wrong(index));
            spec.indices = Some(given.iter().map(number).collect::<Result<_>>()?);
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; the bounds are NULL or have an entry for each dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_region(
    spec: *mut DecompositionSpec,
    lower: *const i64,
    upper: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            spec.region = Some(region(spec, lower, upper)?);
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition; the widths are NULL or have an entry for each dimension.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_halo(
    spec: *mut DecompositionSpec,
    below: *const i64,
    above: *const i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            let count = spec.dims() as c_int;
            let below = numbers(below, count, "halo widths")?;
            let above = numbers(above, count, "halo widths")?;
            spec.halo = below.into_iter().zip(above).collect();
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_order(
    spec: *mut DecompositionSpec,
    order: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            spec.order = order_of(order)?;
            Ok(())
        })
    }
}

/// # Safety
/// `spec` is NULL or a decomposition.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_decomposition_ranks(
    spec: *mut DecompositionSpec,
    order: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(spec, |spec| {
            spec.ranks = order_of(order)?;
            Ok(())
        })
    }
}

fn order_of(order: c_int) -> Result<array::Order> {
    Ok(match input::order(order)? {
        StorageOrder::C => array::Order::C,
        StorageOrder::Fortran => array::Order::Fortran,
    })
}
