//! The layout of the elements of a rank in memory.

use crate::decomposition::Rule;
use crate::{Decomposition, Dims, Error, Footprint, MOST_ELEMENTS, Order, Ownership};

/// The widths of a halo in each dimension: the number of elements below and above the owned
/// elements.
pub type Halo = Dims<(u64, u64)>;

/// The places of the elements of a rank in memory, counted in elements from the beginning.
///
/// Cyclic dimensions are packed as in ScaLAPACK: the indices of a rank are neighbours in memory.
/// Boxes are one after the other. Elements by indices are an array of one dimension, in the order
/// of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLayout {
    pub(crate) blocks: Vec<LocalBlock>,
    length: u64,
}

/// One array in memory: the part of a regular decomposition, one box, or the list of indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalBlock {
    pub extents: Dims,
    /// The place of the first owned element.
    pub offset: u64,
    pub strides: Dims<i64>,
    /// The number of elements in all blocks before.
    pub before: u64,
}

impl LocalLayout {
    /// Contiguous arrays, each with a halo around. `None` is no halo; a decomposition by indices
    /// has no halo.
    pub fn dense(
        decomposition: &Decomposition,
        rank: u32,
        ownership: &Ownership,
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
        let mut layout = Self {
            blocks: Vec::new(),
            length: 0,
        };
        let mut before = 0;
        for extents in shapes(decomposition, rank, ownership)? {
            layout.push_dense(extents, halo, order, before)?;
            before += extents.volume();
        }
        Ok(layout)
    }

    /// Adds a contiguous array with a halo behind the others. A list of indices has no halo,
    /// because its number of dimensions differs from the halo's.
    fn push_dense(
        &mut self,
        extents: Dims,
        halo: &Halo,
        order: Order,
        before: u64,
    ) -> Result<(), Error> {
        let halo = |dim: usize| halo.get(dim).copied().unwrap_or((0, 0));
        let with_halo = Dims::from_fn(extents.len(), |dim| {
            let (below, above) = halo(dim);
            extents[dim].saturating_add(below.saturating_add(above))
        });
        if with_halo.volume() > MOST_ELEMENTS {
            return Err(Error::Invalid(format!(
                "an array of {with_halo}, halo and all, is too large"
            )));
        }
        let strides = order.strides(&with_halo);
        let inside: u64 = (0..extents.len())
            .map(|dim| halo(dim).0.saturating_mul(strides[dim]))
            .sum();
        self.blocks.push(LocalBlock {
            extents,
            offset: self.length.saturating_add(inside),
            strides: Dims::from_fn(extents.len(), |dim| strides[dim] as i64),
            before,
        });
        self.length = self.length.saturating_add(with_halo.volume());
        Ok(())
    }

    /// One array of the program: the place of the first owned element, and the distance of
    /// neighbours in each dimension. A stride may be negative, as long as no element is before the
    /// beginning of the memory.
    pub fn strided(extents: &[u64], offset: u64, strides: &[i64]) -> Result<Self, Error> {
        let (extents, strides) = (Dims::new(extents)?, Dims::new(strides)?);
        if extents.len() != strides.len() {
            let (shape, steps) = (extents.len(), strides.len());
            return Err(Error::Invalid(format!(
                "an array of {shape} dimensions with {steps} strides"
            )));
        }
        let is_empty = extents.contains(&0);
        let (first, last) = reach(&extents, offset, &strides);
        if !is_empty && (first < 0 || last >= i128::from(MOST_ELEMENTS)) {
            return Err(Error::Invalid(format!(
                "an array of {extents} reaches from element {first} to {last}"
            )));
        }
        Ok(Self {
            blocks: vec![LocalBlock {
                extents,
                offset,
                strides,
                before: 0,
            }],
            length: if is_empty { 0 } else { last as u64 + 1 },
        })
    }

    /// An array of the program with the halo: extents and strides as NumPy or a Fortran descriptor
    /// gives them. The memory begins at the lowest element.
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
        let owned = Dims::from_fn(extents.len(), |dim| {
            extents[dim] - halo[dim].0 - halo[dim].1
        });
        // Without owned elements the offset has no meaning, and with negative strides might be
        // negative.
        let offset = if owned.contains(&0) {
            0
        } else {
            offset_of_owned(extents, strides, halo)
        };
        let offset =
            u64::try_from(offset).map_err(|_| Error::Invalid("an array is too large".into()))?;
        Self::strided(&owned, offset, strides)
    }

    /// The owned elements, of `size` bytes each, in memory that begins at an address. Several blocks
    /// count as one piece, with their halos. `None` without elements.
    pub fn footprint(&self, begin: usize, size: usize) -> Option<Footprint> {
        let bytes = |elements: i64| elements.saturating_mul(size as i64);
        match &self.blocks[..] {
            [block] => {
                let first = begin.saturating_add((block.offset as usize).saturating_mul(size));
                Footprint::new(
                    first,
                    &block.extents,
                    block.strides.iter().copied().map(bytes),
                    size,
                )
            }
            _ => Footprint::new(begin, &[self.length], [bytes(1)], size),
        }
    }

    /// The least size of the memory, in elements.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// The lowest and the highest place of an element, if the first element has the place `offset`.
fn reach(extents: &Dims, offset: u64, strides: &Dims<i64>) -> (i128, i128) {
    let (mut first, mut last) = (i128::from(offset), i128::from(offset));
    for (extent, stride) in extents.iter().zip(&**strides) {
        let reach = i128::from(extent.saturating_sub(1)) * i128::from(*stride);
        if reach < 0 {
            first += reach
        } else {
            last += reach
        }
    }
    (first, last)
}

/// The distance of the first owned element from the lowest element of an array with a halo.
fn offset_of_owned(extents: &[u64], strides: &[i64], halo: &Halo) -> i128 {
    let along = |dim: usize| {
        let stride = i128::from(strides[dim]);
        let whole = i128::from(extents[dim].saturating_sub(1)) * stride;
        i128::from(halo[dim].0) * stride - whole.min(0)
    };
    (0..extents.len()).map(along).sum()
}

/// The extents of the arrays of a rank.
pub(crate) fn shapes(
    decomposition: &Decomposition,
    rank: u32,
    ownership: &Ownership,
) -> Result<Vec<Dims>, Error> {
    ownership.check(decomposition, rank)?;
    Ok(match ownership {
        // An array without dimensions has one element on one rank; its extents do not say which
        // rank that is.
        Ownership::Rule => {
            let elements = decomposition.elements(rank);
            decomposition
                .extents(rank)
                .into_iter()
                .filter(|own| Some(own.volume()) == elements)
                .collect()
        }
        Ownership::Boxes(boxes) => boxes.iter().map(|region| region.extents()).collect(),
        Ownership::Indices(_) => vec![Dims::all(1, ownership.elements().unwrap_or(0))],
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
        // The first row of the array is the last row in memory.
        let local = LocalLayout::array(&[7, 9], &[-9, 1], &halo).unwrap();
        assert_eq!(local.blocks[0].offset, 5 * 9);
        assert_eq!(local.length(), 5 * 9 + 6);
        // The whole array is halo.
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
    fn owned_elements_are_those_that_may_overlap() {
        let halo = Dims::new(&[(0, 0), (1, 1)]).unwrap();
        // The halo of each row is the end of the row before and the beginning of the next row.
        let rows = |stride| LocalLayout::array(&[3, 6], &[stride, 1], &halo).unwrap();
        let overlaps = |local: &LocalLayout| local.footprint(64, 8).unwrap().overlaps_itself();
        assert!(!overlaps(&rows(6)));
        assert!(!overlaps(&rows(-4)));
        assert!(overlaps(&rows(3)));
        let [one, other] = [64, 64 + 6 * 8].map(|begin| rows(12).footprint(begin, 8).unwrap());
        assert!(!one.overlaps(&other));
        assert!(one.overlaps(&rows(12).footprint(64 + 3 * 8, 8).unwrap()));

        let boxes = Decomposition::boxes(&[10], 1).unwrap();
        let parts = [(0, 2), (4, 6)].map(|(lower, upper)| Region::new(&[lower], &[upper]).unwrap());
        let parts = Ownership::Boxes(parts.to_vec());
        let flat = LocalLayout::dense(&boxes, 0, &parts, None, Order::C).unwrap();
        assert!(!overlaps(&flat));
        let [one, other] = [64, 64 + 4 * 8].map(|begin| flat.footprint(begin, 8).unwrap());
        assert!(!one.overlaps(&other));
        assert!(one.overlaps(&flat.footprint(64 + 3 * 8, 8).unwrap()));
        let none = LocalLayout::array(&[0, 4], &[0, 0], &Dims::all(2, (0, 0))).unwrap();
        assert!(none.footprint(64, 8).is_none());
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
