//! How a rank holds its part in memory.

use crate::decomposition::Rule;
use crate::{Decomposition, Dims, Error, MOST_ELEMENTS, Order, Ownership};

/// The widths of a halo in each dimension: how many elements lie below and above those that the rank owns.
pub type Halo = Dims<(u64, u64)>;

/// Where the elements of a rank lie in its memory, counted in elements from where that begins.
///
/// Cyclic dimensions are packed as in ScaLAPACK: a rank's indices lie beside each other in their order. Boxes lie one after the
/// other. Indices are an array of one dimension, in the order of their list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLayout {
    pub(crate) blocks: Vec<LocalBlock>,
    length: u64,
}

/// One array in memory: the rule's part, one box, or the list of indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalBlock {
    pub extents: Dims,
    /// Where the first owned element lies.
    pub offset: u64,
    pub strides: Dims<i64>,
    /// How many elements the blocks before have.
    pub before: u64,
}

impl LocalLayout {
    /// Arrays without gaps, each with a halo around it. `None` stands for no halo; indices have none.
    pub fn dense(
        decomposition: &Decomposition,
        rank: u32,
        parts: &Ownership,
        halo: Option<&Halo>,
        order: Order,
    ) -> Result<Self, Error> {
        let dims = decomposition.shape().len();
        let none = Halo::all(dims, (0, 0));
        let halo = halo.unwrap_or(&none);
        if halo.len() != dims {
            let count = halo.len();
            return Err(Error::Invalid(format!(
                "{count} halo widths for an array of {dims} dimensions"
            )));
        }
        if decomposition.rule == Rule::Indices && *halo != none {
            return Err(Error::Invalid("an array by indices has no halo".into()));
        }
        let (mut blocks, mut length, mut before) = (Vec::new(), 0u64, 0u64);
        for extents in shapes(decomposition, rank, parts)? {
            let width = |dim: usize| {
                halo.get(dim)
                    .map_or(0, |(below, above)| below.saturating_add(*above))
            };
            let with_halo =
                Dims::from_fn(extents.len(), |dim| extents[dim].saturating_add(width(dim)));
            if with_halo.volume() > MOST_ELEMENTS {
                return Err(Error::Invalid(format!(
                    "an array of {with_halo}, halo and all, is too large"
                )));
            }
            let strides = order.strides(&with_halo);
            let below = Dims::from_fn(extents.len(), |dim| {
                halo.get(dim).map_or(0, |(below, _)| *below)
            });
            let inside: u64 = below
                .iter()
                .zip(&*strides)
                .map(|(width, stride)| width.saturating_mul(*stride))
                .sum();
            let strides = Dims::from_fn(extents.len(), |dim| strides[dim] as i64);
            blocks.push(LocalBlock {
                extents,
                offset: length.saturating_add(inside),
                strides,
                before,
            });
            length = length.saturating_add(with_halo.volume());
            before += extents.volume();
        }
        Ok(Self { blocks, length })
    }

    /// One array as the program has it: where its first owned element lies, and how far apart neighbours of each dimension are.
    /// Strides may be negative, as long as every element lies at or after the beginning.
    pub fn strided(extents: &[u64], offset: u64, strides: &[i64]) -> Result<Self, Error> {
        let (extents, strides) = (Dims::new(extents)?, Dims::new(strides)?);
        if extents.len() != strides.len() {
            let (shape, steps) = (extents.len(), strides.len());
            return Err(Error::Invalid(format!(
                "an array of {shape} dimensions with {steps} strides"
            )));
        }
        let (mut first, mut last) = (i128::from(offset), i128::from(offset));
        for (extent, stride) in extents.iter().zip(&*strides) {
            let reach = i128::from(extent.saturating_sub(1)) * i128::from(*stride);
            if reach < 0 {
                first += reach
            } else {
                last += reach
            }
        }
        if !extents.contains(&0) && (first < 0 || last >= i128::from(MOST_ELEMENTS)) {
            return Err(Error::Invalid(format!(
                "an array of {extents} reaches from element {first} to {last}"
            )));
        }
        let length = if extents.contains(&0) {
            0
        } else {
            last as u64 + 1
        };
        Ok(Self {
            blocks: vec![LocalBlock {
                extents,
                offset,
                strides,
                before: 0,
            }],
            length,
        })
    }

    /// An array as a program declares it, halo and all: its extents and strides, as NumPy or a Fortran descriptor gives them. The
    /// memory begins at the lowest of its elements.
    pub fn array(extents: &[u64], strides: &[i64], halo: &Halo) -> Result<Self, Error> {
        let fits = extents.len() == halo.len()
            && extents
                .iter()
                .zip(&**halo)
                .all(|(extent, (below, above))| below.checked_add(*above) <= Some(*extent));
        if !fits || extents.len() != strides.len() {
            let (extents, strides) = (Dims::new(extents)?, strides.len());
            return Err(Error::Invalid(format!(
                "an array of {extents} with {strides} strides and the halo {halo:?}, which does not fit into it"
            )));
        }
        let whole =
            |dim: usize| i128::from(extents[dim].saturating_sub(1)) * i128::from(strides[dim]);
        let below = |dim: usize| i128::from(halo[dim].0) * i128::from(strides[dim]);
        let offset: i128 = (0..extents.len())
            .map(|dim| below(dim) - whole(dim).min(0))
            .sum();
        let owned = Dims::from_fn(extents.len(), |dim| {
            extents[dim] - halo[dim].0 - halo[dim].1
        });
        // Nothing lies where there is only halo, and what would be its place may be before an array that ranges backwards.
        let offset = if owned.contains(&0) { 0 } else { offset };
        let offset =
            u64::try_from(offset).map_err(|_| Error::Invalid("an array is too large".into()))?;
        Self::strided(&owned, offset, strides)
    }

    /// How many elements the memory must have.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// The extents of the arrays that a rank holds.
pub(crate) fn shapes(
    decomposition: &Decomposition,
    rank: u32,
    parts: &Ownership,
) -> Result<Vec<Dims>, Error> {
    parts.check(decomposition, rank)?;
    Ok(match parts {
        // Without dimensions the extents do not say whether the rank has the one element.
        Ownership::Rule => {
            let elements = decomposition.elements(rank);
            decomposition
                .extents(rank)
                .into_iter()
                .filter(|own| Some(own.volume()) == elements)
                .collect()
        }
        Ownership::Boxes(boxes) => boxes.iter().map(|region| region.extents()).collect(),
        Ownership::Indices(_) => vec![Dims::all(1, parts.elements().unwrap_or(0))],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Region, Spread};

    #[test]
    fn a_halo_lies_around_what_is_owned() {
        let decomposition = Decomposition::block(&[8, 6], &[2, 1]).unwrap();
        let halo = Dims::new(&[(1, 2), (0, 3)]).unwrap();
        let local =
            LocalLayout::dense(&decomposition, 1, &Ownership::Rule, Some(&halo), Order::C).unwrap();
        assert_eq!(local.length(), 7 * 9);
        assert_eq!(
            (local.blocks[0].offset, &*local.blocks[0].strides),
            (9, &[9, 1][..])
        );
        let local = LocalLayout::dense(
            &decomposition,
            1,
            &Ownership::Rule,
            Some(&halo),
            Order::Fortran,
        )
        .unwrap();
        assert_eq!(
            (local.blocks[0].offset, &*local.blocks[0].strides),
            (1, &[1, 7][..])
        );
    }

    #[test]
    fn cyclic_indices_are_packed_and_boxes_follow_each_other() {
        let cyclic =
            Decomposition::regular(&[10], &[3], &[Spread::Cyclic(2)], Order::C, 3).unwrap();
        assert_eq!(
            LocalLayout::dense(&cyclic, 0, &Ownership::Rule, None, Order::C)
                .unwrap()
                .length(),
            4
        );
        let boxes = Decomposition::boxes(&[10, 10], 1).unwrap();
        let parts = Ownership::Boxes(vec![
            Region::new(&[0, 0], &[2, 3]).unwrap(),
            Region::new(&[4, 4], &[6, 5]).unwrap(),
        ]);
        let local =
            LocalLayout::dense(&boxes, 0, &parts, Some(&Dims::all(2, (1, 1))), Order::C).unwrap();
        assert_eq!(local.length(), 4 * 5 + 4 * 3);
        assert_eq!(
            (local.blocks[1].offset, local.blocks[1].before),
            (20 + 3 + 1, 6)
        );
    }

    #[test]
    fn an_array_of_the_program_s_has_its_halo_inside() {
        let halo = Dims::new(&[(1, 2), (0, 3)]).unwrap();
        let local = LocalLayout::array(&[7, 9], &[9, 1], &halo).unwrap();
        assert_eq!(
            (local.blocks[0].offset, local.blocks[0].extents),
            (9, Dims::new(&[4, 6]).unwrap())
        );
        // Upside down: the row that is first in the array is last in memory.
        let local = LocalLayout::array(&[7, 9], &[-9, 1], &halo).unwrap();
        assert_eq!(local.blocks[0].offset, 5 * 9);
        assert_eq!(local.length(), 5 * 9 + 6);
        // All of it is halo.
        assert_eq!(
            LocalLayout::array(&[3, 9], &[-9, 1], &Halo::new(&[(2, 1), (0, 0)]).unwrap())
                .unwrap()
                .length(),
            0
        );
        let error = LocalLayout::array(&[7, 2], &[2, 1], &halo)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("an array of 7 × 2 with 2 strides and the halo [(1, 2), (0, 3)]"),
            "{error}"
        );
        assert!(LocalLayout::array(&[u64::MAX], &[i64::MIN], &Halo::all(1, (0, 0))).is_err());
    }

    #[test]
    fn layouts_that_leave_memory_are_refused() {
        assert_eq!(LocalLayout::strided(&[4], 3, &[-1]).unwrap().length(), 4);
        assert!(
            LocalLayout::strided(&[4], 2, &[-1])
                .unwrap_err()
                .to_string()
                .contains("from element -1 to 2")
        );
        assert!(LocalLayout::strided(&[4, 4], 0, &[1]).is_err());
        assert!(LocalLayout::strided(&[u64::MAX], 0, &[i64::MAX]).is_err());
        let indices = Decomposition::indices(&[9], 1).unwrap();
        let halo = Dims::all(1, (1, 1));
        let error =
            LocalLayout::dense(&indices, 0, &Ownership::indices([1]), Some(&halo), Order::C)
                .unwrap_err();
        assert_eq!(error.to_string(), "an array by indices has no halo");
        let block = Decomposition::block(&[9], &[1]).unwrap();
        let endless = Dims::all(1, (u64::MAX, u64::MAX));
        assert!(LocalLayout::dense(&block, 0, &Ownership::Rule, Some(&endless), Order::C).is_err());
    }
}
