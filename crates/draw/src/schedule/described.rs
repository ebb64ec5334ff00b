//! A field described by the user in YAML, both sides, before any program declares the sides.

use titin_array::{Decomposition, Dims, IndexRange, Order, Ownership, Region, Side, Spread};
use titin_model::array_description::{self, Bounds, CoupledArrays, DecompositionDescription};

use super::{FieldCoupling, FieldSide};
use crate::{DrawError, Result};

/// The field between two sides described by the user.
///
/// # Errors
/// A side is wrong, or neither side gives the extents of the array.
pub fn described_field(described: &CoupledArrays) -> Result<FieldCoupling> {
    let CoupledArrays { from, to, dtypes } = described;
    Ok(FieldCoupling {
        from: keyed_side("from", from, to)?,
        to: keyed_side("to", to, from)?,
        bytes: dtypes.iter().map(|dtype| dtype.size() as u64).sum(),
        arrays: dtypes.len(),
        pattern: None,
        more: 0,
    })
}

/// A side of the field. An error names `key`.
fn keyed_side(
    key: &'static str,
    own: &array_description::ArrayDescription,
    other: &array_description::ArrayDescription,
) -> Result<FieldSide> {
    let shape = shape(own, other).ok_or(DrawError::NoExtents)?;
    side(own, &shape).map_err(|error| DrawError::Side {
        key,
        error: Box::new(error),
    })
}

/// The extents of a side's array. A side without extents takes the extents of the other side's
/// region, or else of the other side's array.
fn shape(
    own: &array_description::ArrayDescription,
    other: &array_description::ArrayDescription,
) -> Option<Vec<u64>> {
    let coupled = || {
        let region = other.region.as_ref()?;
        Some(region.iter().map(|(lower, upper)| upper - lower).collect())
    };
    own.shape
        .clone()
        .or_else(coupled)
        .or_else(|| other.shape.clone())
}

fn side(described: &array_description::ArrayDescription, shape: &[u64]) -> Result<FieldSide> {
    let dims = shape.len();
    Dims::new(shape).map_err(titin_array::Error::from)?;
    let parts = parts(&described.owned)?;
    let decomposition = decomposition(&described.owned, shape)?;
    for (rank, parts) in (0..).zip(parts.iter().flatten()) {
        parts.check(&decomposition, rank)?;
    }
    let mut side = Side::new(decomposition).order(order(described.fortran));
    if let Some(bounds) = &described.region {
        side = side.region(region(bounds)?);
    }
    let halo = per_dimension(&described.halo, dims, "halo widths")?.unwrap_or_default();
    Ok(FieldSide {
        port: None,
        side,
        parts,
        halo,
    })
}

/// The parts of each rank; `None` if a rule gives the parts.
fn parts(owned: &DecompositionDescription) -> Result<Option<Vec<Ownership>>> {
    let boxes = |rank: &Vec<Vec<Bounds>>| {
        let boxes: Result<_> = rank.iter().map(|bounds| region(bounds)).collect();
        boxes.map(Ownership::Boxes)
    };
    let run = |(lower, upper): &Bounds| IndexRange {
        first: *lower,
        length: upper - lower,
    };
    let indices = |rank: &Vec<Bounds>| Ok(Ownership::Indices(rank.iter().map(run).collect()));
    match owned {
        DecompositionDescription::Whole | DecompositionDescription::Grid { .. } => Ok(None),
        DecompositionDescription::Boxes(ranks) => {
            ranks.iter().map(boxes).collect::<Result<_>>().map(Some)
        }
        DecompositionDescription::Indices(ranks) => {
            ranks.iter().map(indices).collect::<Result<_>>().map(Some)
        }
    }
}

fn decomposition(owned: &DecompositionDescription, shape: &[u64]) -> Result<Decomposition> {
    let decomposition = match owned {
        DecompositionDescription::Whole => Decomposition::serial(shape),
        DecompositionDescription::Grid {
            processes,
            spread,
            fortran,
        } => {
            let dims = shape.len();
            let spreads = per_dimension(spread, dims, "ways to spread")?
                .unwrap_or_else(|| vec![array_description::SpreadDescription::Even; dims]);
            let spreads: Vec<Spread> = spreads.iter().map(array_spread).collect();
            let ranks = processes
                .iter()
                .try_fold(1u32, |product, count| product.checked_mul(*count))
                .ok_or(DrawError::GridTooLarge)?;
            Decomposition::regular(shape, processes, &spreads, order(*fortran), ranks)
        }
        DecompositionDescription::Boxes(ranks) => Decomposition::boxes(shape, ranks.len() as u32),
        DecompositionDescription::Indices(ranks) => {
            Decomposition::indices(shape, ranks.len() as u32)
        }
    };
    Ok(decomposition?)
}

/// A list with an element for each dimension. A list with a single element is repeated; an empty
/// list gives `None`. `noun` names the elements in the error.
fn per_dimension<T: Clone>(given: &[T], dims: usize, noun: &'static str) -> Result<Option<Vec<T>>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(vec![one.clone(); dims])),
        all if all.len() == dims => Ok(Some(all.to_vec())),
        all => Err(DrawError::PerDimension {
            given: all.len(),
            noun,
            dims,
        }),
    }
}

fn array_spread(spread: &array_description::SpreadDescription) -> Spread {
    match spread {
        array_description::SpreadDescription::Even => Spread::Even,
        array_description::SpreadDescription::Block => Spread::Block,
        array_description::SpreadDescription::Cyclic(block) => Spread::Cyclic(*block),
        array_description::SpreadDescription::Bounds(bounds) => Spread::Bounds(bounds.clone()),
    }
}

fn order(fortran: bool) -> Order {
    if fortran { Order::Fortran } else { Order::C }
}

fn region(bounds: &[Bounds]) -> Result<Region> {
    let (lower, upper): (Vec<u64>, Vec<u64>) = bounds.iter().copied().unzip();
    Ok(Region::new(&lower, &upper).map_err(titin_array::Error::from)?)
}
