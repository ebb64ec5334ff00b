//! Two sides that are given in YAML, before there is a program that declares them.

use titin_array::{Decomposition, Dims, Order, Parts, Region, Run, Side, Spread};
use titin_model::array_description::{self, Bounds, DecompositionDescription, Exchange};

use super::{Coupling, End};

/// Decompositions of what is written; what cannot be is told in words.
pub(crate) fn coupling(given: &Exchange) -> Result<Coupling, String> {
    let (from, to) = (&given.from, &given.to);
    // Who says nothing of the extents has those that the other side couples.
    let shape = |own: &array_description::ArrayDescription,
                 other: &array_description::ArrayDescription| {
        let coupled = || {
            other
                .region
                .as_ref()
                .map(|region| region.iter().map(|(lower, upper)| upper - lower).collect())
        };
        own.shape
            .clone()
            .or_else(coupled)
            .or_else(|| other.shape.clone())
    };
    let ends = [("from", from, to), ("to", to, from)].map(|(key, own, other)| {
        let missing = || {
            "the array has no extents: write \"shape\" at one side, for example 'from: {shape: [8, 12], grid: [4, 1]}'"
                .to_owned()
        };
        let shape = shape(own, other).ok_or_else(missing)?;
        end(own, &shape).map_err(|why| format!("\"{key}\": {why}"))
    });
    let [from, to] = ends;
    let bytes = given.dtypes.iter().map(|dtype| dtype.size() as u64).sum();
    Ok(Coupling {
        from: from?,
        to: to?,
        bytes,
        arrays: given.dtypes.len(),
        pattern: None,
    })
}

fn end(given: &array_description::ArrayDescription, shape: &[u64]) -> Result<End, String> {
    let wrong = |error: titin_array::Error| error.to_string();
    let dims = shape.len();
    Dims::new(shape).map_err(wrong)?;
    let mut parts = None;
    let decomposition = match &given.owned {
        DecompositionDescription::Whole => Decomposition::serial(shape),
        DecompositionDescription::Grid {
            processes,
            spread,
            fortran,
        } => {
            let spreads = each(spread, dims, "ways to spread")?
                .unwrap_or_else(|| vec![array_description::SpreadDescription::Even; dims]);
            let spreads: Vec<Spread> = spreads.iter().map(rule).collect();
            let ranks = processes
                .iter()
                .try_fold(1u32, |product, count| product.checked_mul(*count));
            let ranks = ranks.ok_or("its grid has more than 2³² processes; give fewer")?;
            Decomposition::regular(shape, processes, &spreads, order(*fortran), ranks)
        }
        DecompositionDescription::Boxes(ranks) => {
            let boxes = |rank: &Vec<Vec<Bounds>>| {
                rank.iter()
                    .map(|bounds| region(bounds))
                    .collect::<Result<_, _>>()
            };
            let each: Result<Vec<_>, _> = ranks
                .iter()
                .map(|rank| boxes(rank).map(Parts::Boxes))
                .collect();
            parts = Some(each.map_err(wrong)?);
            Decomposition::boxes(shape, ranks.len() as u32)
        }
        DecompositionDescription::Indices(ranks) => {
            let runs = |(lower, upper): &Bounds| Run {
                first: *lower,
                length: upper - lower,
            };
            parts = Some(
                ranks
                    .iter()
                    .map(|rank| Parts::Indices(rank.iter().map(runs).collect()))
                    .collect(),
            );
            Decomposition::indices(shape, ranks.len() as u32)
        }
    };
    let decomposition = decomposition.map_err(wrong)?;
    for (rank, parts) in (0..).zip(parts.iter().flatten()) {
        parts.check(&decomposition, rank).map_err(wrong)?;
    }
    let mut side = Side::new(decomposition).order(order(given.fortran));
    if let Some(bounds) = &given.region {
        side = side.region(region(bounds).map_err(wrong)?);
    }
    let halo = each(&given.halo, dims, "halo widths")?.unwrap_or_default();
    Ok(End {
        port: None,
        side,
        parts,
        halo,
    })
}

/// One for all dimensions becomes one for each; `None` if there is none.
fn each<T: Clone>(given: &[T], dims: usize, what: &str) -> Result<Option<Vec<T>>, String> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(vec![one.clone(); dims])),
        all if all.len() == dims => Ok(Some(all.to_vec())),
        all => Err(format!(
            "{} {what} for an array of {dims} dimensions: give one for all, or one for each",
            all.len()
        )),
    }
}

fn rule(spread: &array_description::SpreadDescription) -> Spread {
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

fn region(bounds: &[Bounds]) -> Result<Region, titin_array::Error> {
    let (lower, upper): (Vec<u64>, Vec<u64>) = bounds.iter().copied().unzip();
    Region::new(&lower, &upper)
}
