//! Joining arrays along an axis, and splitting an array along an axis.
//!
//! An array in Fortran order is an array in C order with reversed axes, so everything is done in C
//! order: along an axis, memory has `outer` blocks of `extent` pieces of `inner` bytes.

use std::borrow::Cow;

use titin_runtime::{Layout, StorageOrder};

/// A part of an array. A part that is one stretch of the whole array borrows memory; other parts
/// are copied.
pub(crate) type ArrayPart<'a> = (Layout, Cow<'a, [u8]>);

/// The memory layout along an axis.
struct AxisBlocks {
    outer: usize,
    extent: usize,
    inner: usize,
}

fn blocks(layout: &Layout, axis: usize) -> AxisBlocks {
    let product = |extents: &[u64]| extents.iter().product::<u64>() as usize;
    let (before, after) = (
        product(&layout.shape[..axis]),
        product(&layout.shape[axis + 1..]),
    );
    let (outer, inner) = match layout.order {
        StorageOrder::C => (before, after),
        StorageOrder::Fortran => (after, before),
    };
    AxisBlocks {
        outer,
        extent: layout.shape[axis] as usize,
        inner: inner * layout.dtype.size(),
    }
}

/// Why arrays cannot be joined, or an array cannot be split.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ArrayError {
    #[error("there is no array to {0}")]
    NoArray(&'static str),
    #[error("single values have no axis to be joined along; use `how: stack`")]
    SingleValues,
    #[error("a single value has no axis to be split along")]
    SingleValue,
    #[error("there is no axis {axis} in an array of rank {rank}; axes are counted from 0")]
    NoAxis { axis: usize, rank: usize },
    #[error("a new axis {axis} does not fit an array of rank {rank}; it can be 0 to {rank}")]
    NewAxis { axis: usize, rank: usize },
    #[error(
        "array {number} is {array}, the first is {first}; they may differ in the extent of axis {axis} only"
    )]
    Differs {
        number: usize,
        array: String,
        first: String,
        axis: usize,
    },
    #[error("array {number} is {array}, the first is {first}; `how: stack` needs equal ones")]
    Unequal {
        number: usize,
        array: String,
        first: String,
    },
    #[error("the sizes {sizes:?} do not add up to {extent}, the extent of axis {axis}")]
    Sizes {
        sizes: Vec<u64>,
        extent: u64,
        axis: usize,
    },
}

/// Joins arrays along an axis common to all arrays: the inverse of [`split`].
///
/// # Errors
/// An array does not fit the first array.
pub(crate) fn concatenate<'a>(
    arrays: &[(&Layout, &'a [u8])],
    axis: usize,
) -> Result<(Layout, Vec<u8>), ArrayError> {
    let whole = joined_layout(arrays, axis)?;
    let order = whole.order;
    let in_order = |(layout, bytes): &(&Layout, &'a [u8])| {
        let bytes = reorder(layout, bytes, order);
        let layout = (*layout).clone();
        (blocks(&Layout { order, ..layout }, axis), bytes)
    };
    let parts: Vec<(AxisBlocks, Cow<'_, [u8]>)> = arrays.iter().map(in_order).collect();
    let mut joined = Vec::with_capacity(parts.iter().map(|(_, bytes)| bytes.len()).sum());
    for outer in 0..parts[0].0.outer {
        for (blocks, bytes) in &parts {
            let length = blocks.extent * blocks.inner;
            joined.extend_from_slice(&bytes[outer * length..(outer + 1) * length]);
        }
    }
    Ok((whole, joined))
}

/// The layout of the joined array. Arrays in different orders are joined in C order.
fn joined_layout(arrays: &[(&Layout, &[u8])], axis: usize) -> Result<Layout, ArrayError> {
    let (first, _) = *arrays.first().ok_or(ArrayError::NoArray("join"))?;
    match first.shape.len() {
        0 => return Err(ArrayError::SingleValues),
        rank if axis >= rank => return Err(ArrayError::NoAxis { axis, rank }),
        _ => {}
    }
    let differs = |layout: &Layout| !differ_along_only(layout, first, axis);
    if let Some((number, array, first)) = first_misfit(arrays, differs) {
        return Err(ArrayError::Differs {
            number,
            array,
            first,
            axis,
        });
    }
    let mut whole = first.clone();
    whole.shape[axis] = arrays.iter().map(|(layout, _)| layout.shape[axis]).sum();
    if arrays.iter().any(|(layout, _)| layout.order != first.order) {
        whole.order = StorageOrder::C;
    }
    Ok(whole)
}

/// The first array that does not fit the first of all: the number of the array, and descriptions of
/// both.
fn first_misfit(
    arrays: &[(&Layout, &[u8])],
    misfits: impl Fn(&Layout) -> bool,
) -> Option<(usize, String, String)> {
    let mut layouts = arrays.iter().map(|(layout, _)| *layout);
    let first = layouts.clone().next()?;
    let number = layouts.position(misfits)?;
    Some((number, describe(arrays[number].0), describe(first)))
}

/// Whether two arrays have equal layouts, except for the order and the extent of `axis`.
fn differ_along_only(a: &Layout, b: &Layout, axis: usize) -> bool {
    let mut extents = a.shape.iter().zip(&b.shape).enumerate();
    a.dtype == b.dtype
        && a.names == b.names
        && a.shape.len() == b.shape.len()
        && extents.all(|(other, (a, b))| other == axis || a == b)
}

/// Joins arrays of the same shape along a new axis: the inverse of [`unstack`].
///
/// # Errors
/// An array differs from the first array.
pub(crate) fn stack(
    arrays: &[(&Layout, &[u8])],
    axis: usize,
) -> Result<(Layout, Vec<u8>), ArrayError> {
    let (first, _) = arrays.first().ok_or(ArrayError::NoArray("stack"))?;
    let rank = first.shape.len();
    if axis > rank {
        return Err(ArrayError::NewAxis { axis, rank });
    }
    let differs = |layout: &Layout| {
        (layout.dtype, &layout.shape, &layout.names) != (first.dtype, &first.shape, &first.names)
    };
    if let Some((number, array, first)) = first_misfit(arrays, differs) {
        return Err(ArrayError::Unequal {
            number,
            array,
            first,
        });
    }
    let layouts = arrays.iter().map(|(layout, _)| with_axis(layout, axis));
    let layouts: Vec<Layout> = layouts.collect();
    let bytes = arrays.iter().map(|(_, bytes)| *bytes);
    let thick: Vec<(&Layout, &[u8])> = layouts.iter().zip(bytes).collect();
    concatenate(&thick, axis)
}

/// The layout with a new axis of extent 1.
fn with_axis(layout: &Layout, axis: usize) -> Layout {
    let mut thick = layout.clone();
    thick.shape.insert(axis, 1);
    if !thick.names.is_empty() {
        thick.names.insert(axis, "slot".to_owned());
    }
    thick
}

/// Splits an array along an axis into parts of `sizes`. A part that is one stretch of memory is not
/// copied.
///
/// # Errors
/// The array lacks the axis, or the sizes do not add up to the extent of the axis.
pub(crate) fn split<'a>(
    layout: &Layout,
    bytes: &'a [u8],
    axis: usize,
    sizes: &[u64],
) -> Result<Vec<ArrayPart<'a>>, ArrayError> {
    let extent = extent(layout, axis)?;
    let mut sum = sizes.iter();
    if sum.try_fold(0u64, |sum, size| sum.checked_add(*size)) != Some(extent) {
        return Err(ArrayError::Sizes {
            sizes: sizes.to_vec(),
            extent,
            axis,
        });
    }
    let blocks = blocks(layout, axis);
    let mut first = 0;
    let part = |size: &u64| {
        let mut part = layout.clone();
        part.shape[axis] = *size;
        let memory = blocks.slice(bytes, first, *size as usize);
        first += *size as usize;
        (part, memory)
    };
    Ok(sizes.iter().map(part).collect())
}

impl AxisBlocks {
    /// The memory of `size` indices of the axis from `first` on.
    fn slice<'a>(&self, bytes: &'a [u8], first: usize, size: usize) -> Cow<'a, [u8]> {
        let stretch = |outer: usize| {
            let start = (outer * self.extent + first) * self.inner;
            &bytes[start..start + size * self.inner]
        };
        match self.outer {
            1 => Cow::Borrowed(stretch(0)),
            outer => Cow::Owned((0..outer).flat_map(stretch).copied().collect()),
        }
    }
}

/// Splits an array into the parts at each index of an axis. The parts do not have the axis.
///
/// # Errors
/// There is no such axis.
pub(crate) fn unstack<'a>(
    layout: &Layout,
    bytes: &'a [u8],
    axis: usize,
) -> Result<Vec<ArrayPart<'a>>, ArrayError> {
    let extent = extent(layout, axis)?;
    let mut parts = split(layout, bytes, axis, &vec![1; extent as usize])?;
    for (part, _) in &mut parts {
        part.shape.remove(axis);
        if !part.names.is_empty() {
            part.names.remove(axis);
        }
    }
    Ok(parts)
}

/// The extent of an axis.
fn extent(layout: &Layout, axis: usize) -> Result<u64, ArrayError> {
    match layout.shape.len() {
        0 => Err(ArrayError::SingleValue),
        rank if axis >= rank => Err(ArrayError::NoAxis { axis, rank }),
        _ => Ok(layout.shape[axis]),
    }
}

/// The elements in `order`.
pub(crate) fn reorder<'a>(layout: &Layout, bytes: &'a [u8], order: StorageOrder) -> Cow<'a, [u8]> {
    let flat = layout.shape.iter().filter(|extent| **extent != 1).count() < 2;
    if layout.order == order || flat || bytes.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let size = layout.dtype.size();
    let mut extents: Vec<usize> = layout.shape.iter().map(|extent| *extent as usize).collect();
    if order == StorageOrder::C {
        extents.reverse();
    }
    let mut reordered = Vec::with_capacity(bytes.len());
    let mut walk = ReversedWalk::new(extents, size);
    while reordered.len() < bytes.len() {
        reordered.extend_from_slice(&bytes[walk.position..walk.position + size]);
        walk.step();
    }
    Cow::Owned(reordered)
}

/// A walk over the elements of an array in the other order of storage.
struct ReversedWalk {
    /// The extents; first the extent of the index that changes fastest in the walk.
    extents: Vec<usize>,
    /// The distance in memory between two elements along each dimension.
    strides: Vec<usize>,
    indices: Vec<usize>,
    /// The position of the current element in memory.
    position: usize,
}

impl ReversedWalk {
    fn new(extents: Vec<usize>, size: usize) -> ReversedWalk {
        let mut strides = vec![0; extents.len()];
        let mut stride = size;
        for (own, extent) in strides.iter_mut().zip(&extents).rev() {
            *own = stride;
            stride *= extent;
        }
        ReversedWalk {
            indices: vec![0; extents.len()],
            extents,
            strides,
            position: 0,
        }
    }

    fn step(&mut self) {
        for dim in 0..self.extents.len() {
            self.indices[dim] += 1;
            self.position += self.strides[dim];
            if self.indices[dim] < self.extents[dim] {
                return;
            }
            self.position -= self.strides[dim] * self.extents[dim];
            self.indices[dim] = 0;
        }
    }
}

fn describe(layout: &Layout) -> String {
    let names = match layout.names.as_slice() {
        [] => String::new(),
        names => format!(" and index names {names:?}"),
    };
    format!(
        "{} with shape {:?}{names}",
        layout.dtype.name(),
        layout.shape
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use titin_runtime::Dtype;

    /// An array of distinct elements, and the element at each index by definition.
    fn counted(shape: &[u64], order: StorageOrder) -> (Layout, Vec<u8>) {
        let layout = Layout::new(Dtype::UInt16, order, shape);
        let count = layout.elements().unwrap() as u16;
        (layout, (0..count).flat_map(u16::to_le_bytes).collect())
    }

    fn element(layout: &Layout, bytes: &[u8], index: &[u64]) -> u16 {
        let axes: Vec<usize> = match layout.order {
            StorageOrder::C => (0..index.len()).collect(),
            StorageOrder::Fortran => (0..index.len()).rev().collect(),
        };
        let at = axes
            .iter()
            .fold(0, |at, axis| at * layout.shape[*axis] + index[*axis]) as usize
            * 2;
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    }

    fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
        shape.iter().fold(vec![Vec::new()], |all, extent| {
            all.iter()
                .flat_map(|index| (0..*extent).map(|i| [index.as_slice(), &[i]].concat()))
                .collect()
        })
    }

    fn order() -> impl Strategy<Value = StorageOrder> {
        prop_oneof![Just(StorageOrder::C), Just(StorageOrder::Fortran)]
    }

    proptest! {
        #[test]
        fn split_and_concatenate_are_inverse(
            shape in prop::collection::vec(0u64..5, 1..4), order in order(), axis: prop::sample::Index, cut: prop::sample::Index,
        ) {
            let axis = axis.index(shape.len());
            let (layout, bytes) = counted(&shape, order);
            let cut = cut.index(shape[axis] as usize + 1) as u64;
            let parts = split(&layout, &bytes, axis, &[cut, 0, shape[axis] - cut]).unwrap();
            for index in indices(&parts[2].0.shape) {
                let mut there = index.clone();
                there[axis] += cut;
                prop_assert_eq!(element(&parts[2].0, &parts[2].1, &index), element(&layout, &bytes, &there));
            }
            let parts: Vec<(&Layout, &[u8])> = parts.iter().map(|(layout, bytes)| (layout, &bytes[..])).collect();
            prop_assert_eq!(concatenate(&parts, axis).unwrap(), (layout, bytes));
        }

        #[test]
        fn unstack_and_stack_are_inverse(
            shape in prop::collection::vec(1u64..5, 1..4), order in order(), axis: prop::sample::Index,
        ) {
            let axis = axis.index(shape.len());
            let (layout, bytes) = counted(&shape, order);
            let parts = unstack(&layout, &bytes, axis).unwrap();
            prop_assert_eq!(parts.len() as u64, shape[axis]);
            let parts: Vec<(&Layout, &[u8])> = parts.iter().map(|(layout, bytes)| (layout, &bytes[..])).collect();
            prop_assert_eq!(stack(&parts, axis).unwrap(), (layout, bytes));
        }

        #[test]
        fn reordering_moves_no_element(shape in prop::collection::vec(0u64..5, 0..4), from in order(), to in order()) {
            let (layout, bytes) = counted(&shape, from);
            let turned = reorder(&layout, &bytes, to);
            let there = Layout { order: to, ..layout.clone() };
            for index in indices(&shape) {
                prop_assert_eq!(element(&there, &turned, &index), element(&layout, &bytes, &index));
            }
            prop_assert_eq!(turned.len(), bytes.len());
        }
    }

    #[test]
    fn orders_that_differ_meet_in_c_order() {
        let ((a, a_bytes), (b, b_bytes)) = (
            counted(&[2, 3], StorageOrder::C),
            counted(&[2, 3], StorageOrder::Fortran),
        );
        let (whole, bytes) = concatenate(&[(&a, &a_bytes), (&b, &b_bytes)], 0).unwrap();
        assert_eq!(
            (whole.order, whole.shape.as_slice()),
            (StorageOrder::C, &[4, 3][..])
        );
        for index in indices(&[2, 3]) {
            let below = [index[0] + 2, index[1]];
            assert_eq!(
                element(&whole, &bytes, &index),
                element(&a, &a_bytes, &index)
            );
            assert_eq!(
                element(&whole, &bytes, &below),
                element(&b, &b_bytes, &index)
            );
        }
    }

    #[test]
    fn index_names_follow_the_axes() {
        let (mut layout, bytes) = counted(&[2, 3], StorageOrder::C);
        layout.names = vec!["x".into(), "y".into()];
        let parts = unstack(&layout, &bytes, 0).unwrap();
        assert_eq!(parts[0].0.names, ["y"]);
        let other = Layout {
            names: vec!["y".into(), "x".into()],
            ..layout.clone()
        };
        for join in [concatenate, stack] {
            let why = join(&[(&layout, &bytes), (&other, &bytes)], 0)
                .unwrap_err()
                .to_string();
            assert!(
                why.contains("index names [\"y\", \"x\"], the first is uint16"),
                "{why}"
            );
        }
        let (stacked, _) = stack(&[(&layout, &bytes), (&layout, &bytes)], 1).unwrap();
        assert_eq!(stacked.names, ["x", "slot", "y"]);
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let ((a, a_bytes), (b, b_bytes)) = (
            counted(&[2, 3], StorageOrder::C),
            counted(&[2, 4], StorageOrder::C),
        );
        let pair = [(&a, &a_bytes[..]), (&b, &b_bytes[..])];
        assert!(
            concatenate(&pair, 0)
                .unwrap_err()
                .to_string()
                .contains("array 1 is uint16 with shape [2, 4]")
        );
        assert_eq!(concatenate(&pair, 1).unwrap().0.shape[..], [2, 7]);
        assert!(
            stack(&pair, 0)
                .unwrap_err()
                .to_string()
                .contains("needs equal ones")
        );
        assert!(
            split(&a, &a_bytes, 1, &[1, 1])
                .unwrap_err()
                .to_string()
                .contains("do not add up to 3")
        );
        assert!(
            split(&a, &a_bytes, 2, &[1])
                .unwrap_err()
                .to_string()
                .contains("no axis 2")
        );
        let (single, bytes) = counted(&[], StorageOrder::C);
        assert!(
            concatenate(&[(&single, &bytes)], 0)
                .unwrap_err()
                .to_string()
                .contains("how: stack")
        );
        assert_eq!(
            stack(&[(&single, &bytes), (&single, &bytes)], 0)
                .unwrap()
                .0
                .shape[..],
            [2]
        );
    }
}
