//! Arrays put together and taken apart along an axis, in the order of storage that they have.
//!
//! An array in Fortran order is an array in C order with its axes turned round, so all is done in C order: along an
//! axis, memory is `outer` blocks of `extent` pieces of `inner` bytes.

use std::borrow::Cow;

use titin_runtime::{Layout, StorageOrder};

/// A part of an array, where it lies if it lies in one stretch.
pub(crate) type Part<'a> = (Layout, Cow<'a, [u8]>);

/// How memory lies along an axis.
struct Blocks {
    outer: usize,
    extent: usize,
    inner: usize,
}

fn blocks(layout: &Layout, axis: usize) -> Blocks {
    let product = |extents: &[u64]| extents.iter().product::<u64>() as usize;
    let (before, after) = (
        product(&layout.shape[..axis]),
        product(&layout.shape[axis + 1..]),
    );
    let (outer, inner) = match layout.order {
        StorageOrder::C => (before, after),
        StorageOrder::Fortran => (after, before),
    };
    Blocks {
        outer,
        extent: layout.shape[axis] as usize,
        inner: inner * layout.dtype.size(),
    }
}

/// Joins arrays along an axis that they have: the inverse of [`split`].
///
/// # Errors
/// Says which array does not fit the first one.
pub(crate) fn concatenate(
    arrays: &[(&Layout, &[u8])],
    axis: usize,
) -> Result<(Layout, Vec<u8>), String> {
    let (first, _) = *arrays.first().ok_or("there is no array to join")?;
    if axis >= first.shape.len() {
        return Err(match first.shape.len() {
            0 => "single values have no axis to be joined along; use `how: stack`".to_owned(),
            rank => format!(
                "there is no axis {axis} in an array of rank {rank}; axes are counted from 0"
            ),
        });
    }
    let mut whole = first.clone();
    whole.shape[axis] = 0;
    for (number, (layout, _)) in arrays.iter().enumerate() {
        let rest = |layout: &Layout| {
            let mut shape = layout.shape.clone();
            shape
                .iter_mut()
                .skip(axis)
                .take(1)
                .for_each(|extent| *extent = 0);
            (layout.dtype, shape, layout.names.clone())
        };
        if rest(layout) != rest(first) {
            return Err(format!(
                "array {number} is {}, the first is {}; they may differ in the extent of axis {axis} only",
                describe(layout),
                describe(first)
            ));
        }
        whole.shape[axis] += layout.shape[axis];
    }
    let same = arrays.iter().all(|(layout, _)| layout.order == first.order);
    whole.order = if same { first.order } else { StorageOrder::C };
    let parts: Vec<(Blocks, Cow<'_, [u8]>)> = arrays
        .iter()
        .map(|(layout, bytes)| {
            let bytes = reorder(layout, bytes, whole.order);
            (
                blocks(
                    &Layout {
                        order: whole.order,
                        ..(*layout).clone()
                    },
                    axis,
                ),
                bytes,
            )
        })
        .collect();
    let mut joined = Vec::with_capacity(parts.iter().map(|(_, bytes)| bytes.len()).sum());
    for outer in 0..parts[0].0.outer {
        for (blocks, bytes) in &parts {
            let run = blocks.extent * blocks.inner;
            joined.extend_from_slice(&bytes[outer * run..(outer + 1) * run]);
        }
    }
    Ok((whole, joined))
}

/// Joins arrays of one shape along a new axis: the inverse of [`unstack`].
///
/// # Errors
/// Says which array does not fit the first one.
pub(crate) fn stack(arrays: &[(&Layout, &[u8])], axis: usize) -> Result<(Layout, Vec<u8>), String> {
    let (first, _) = arrays.first().ok_or("there is no array to stack")?;
    let rank = first.shape.len();
    if axis > rank {
        return Err(format!(
            "a new axis {axis} does not fit an array of rank {rank}; it can be 0 to {rank}"
        ));
    }
    for (number, (layout, _)) in arrays.iter().enumerate() {
        if (layout.dtype, &layout.shape, &layout.names) != (first.dtype, &first.shape, &first.names)
        {
            return Err(format!(
                "array {number} is {}, the first is {}; `how: stack` needs equal ones",
                describe(layout),
                describe(first)
            ));
        }
    }
    let thick: Vec<(Layout, &[u8])> = arrays
        .iter()
        .map(|(layout, bytes)| {
            let mut thick = (*layout).clone();
            thick.shape.insert(axis, 1);
            if !thick.names.is_empty() {
                thick.names.insert(axis, "slot".to_owned());
            }
            (thick, *bytes)
        })
        .collect();
    let thick: Vec<(&Layout, &[u8])> = thick
        .iter()
        .map(|(layout, bytes)| (layout, *bytes))
        .collect();
    concatenate(&thick, axis)
}

/// Takes an array apart along an axis, into pieces of these sizes. A piece that lies in one stretch is not copied.
///
/// # Errors
/// Says why the sizes do not fit.
pub(crate) fn split<'a>(
    layout: &Layout,
    bytes: &'a [u8],
    axis: usize,
    sizes: &[u64],
) -> Result<Vec<Part<'a>>, String> {
    let extent = *layout
        .shape
        .get(axis)
        .ok_or_else(|| no_axis(layout, axis))?;
    let sum = sizes
        .iter()
        .try_fold(0u64, |sum, size| sum.checked_add(*size));
    if sum != Some(extent) {
        return Err(format!(
            "the sizes {sizes:?} do not add up to {extent}, the extent of axis {axis}"
        ));
    }
    let Blocks {
        outer,
        extent,
        inner,
    } = blocks(layout, axis);
    let mut start = 0;
    let piece = |size: &u64| {
        let size = *size as usize;
        let mut part = layout.clone();
        part.shape[axis] = size as u64;
        let begin = start * inner;
        start += size;
        let stretch = |outer: usize| {
            let at = outer * extent * inner + begin;
            &bytes[at..at + size * inner]
        };
        let memory = match outer {
            1 => Cow::Borrowed(stretch(0)),
            _ => Cow::Owned((0..outer).flat_map(stretch).copied().collect()),
        };
        (part, memory)
    };
    Ok(sizes.iter().map(piece).collect())
}

/// Takes an array apart along an axis, which the parts do not have any more.
///
/// # Errors
/// Says that there is no such axis.
pub(crate) fn unstack<'a>(
    layout: &Layout,
    bytes: &'a [u8],
    axis: usize,
) -> Result<Vec<Part<'a>>, String> {
    let extent = *layout
        .shape
        .get(axis)
        .ok_or_else(|| no_axis(layout, axis))?;
    let mut parts = split(layout, bytes, axis, &vec![1; extent as usize])?;
    for (part, _) in &mut parts {
        part.shape.remove(axis);
        if !part.names.is_empty() {
            part.names.remove(axis);
        }
    }
    Ok(parts)
}

/// The elements in this order of storage.
pub(crate) fn reorder<'a>(layout: &Layout, bytes: &'a [u8], order: StorageOrder) -> Cow<'a, [u8]> {
    let flat = layout.shape.iter().filter(|extent| **extent != 1).count() < 2;
    if layout.order == order || flat || bytes.is_empty() {
        return Cow::Borrowed(bytes);
    }
    // Walk the result from its beginning to its end; `steps` says how far that moves in the source. The index that
    // varies fastest in the result comes first.
    let size = layout.dtype.size();
    let mut axes: Vec<usize> = (0..layout.shape.len()).collect();
    if order == StorageOrder::C {
        axes.reverse();
    }
    let extents: Vec<usize> = axes
        .iter()
        .map(|axis| layout.shape[*axis] as usize)
        .collect();
    let mut steps = vec![0; axes.len()];
    let mut step = size;
    for index in (0..axes.len()).rev() {
        steps[index] = step;
        step *= extents[index];
    }
    let mut turned = Vec::with_capacity(bytes.len());
    let mut counts = vec![0; axes.len()];
    let mut at = 0;
    while turned.len() < bytes.len() {
        turned.extend_from_slice(&bytes[at..at + size]);
        for index in 0..axes.len() {
            counts[index] += 1;
            at += steps[index];
            if counts[index] < extents[index] {
                break;
            }
            at -= steps[index] * extents[index];
            counts[index] = 0;
        }
    }
    Cow::Owned(turned)
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

fn no_axis(layout: &Layout, axis: usize) -> String {
    match layout.shape.len() {
        0 => "a single value has no axis to be split along".to_owned(),
        rank => {
            format!("there is no axis {axis} in an array of rank {rank}; axes are counted from 0")
        }
    }
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
            let why = join(&[(&layout, &bytes), (&other, &bytes)], 0).unwrap_err();
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
                .contains("array 1 is uint16 with shape [2, 4]")
        );
        assert_eq!(concatenate(&pair, 1).unwrap().0.shape[..], [2, 7]);
        assert!(stack(&pair, 0).unwrap_err().contains("needs equal ones"));
        assert!(
            split(&a, &a_bytes, 1, &[1, 1])
                .unwrap_err()
                .contains("do not add up to 3")
        );
        assert!(
            split(&a, &a_bytes, 2, &[1])
                .unwrap_err()
                .contains("no axis 2")
        );
        let (single, bytes) = counted(&[], StorageOrder::C);
        assert!(
            concatenate(&[(&single, &bytes)], 0)
                .unwrap_err()
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
