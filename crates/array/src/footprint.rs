//! The bytes of arrays in memory: whether two elements share some.
//!
//! The distance in bytes between two elements is a sum of multiples of the strides. Two elements
//! share bytes if the distance is smaller than an element. So the question is whether a sum of
//! multiples, each with a limit, can lie in an interval. The search goes from the largest stride to
//! the smallest, and is exact. Where the dimensions are nested, as in all slices and transposed
//! arrays, at most a few multiples of each stride come into question.

/// The elements of an array in memory.
#[derive(Debug, Clone)]
pub struct Footprint {
    /// The address of the lowest element.
    begin: i128,
    /// Bytes of an element.
    size: i128,
    /// The dimensions of more than one element, the largest step first.
    dimensions: Vec<Multiples>,
}

/// The multiples of a step: the zeroth to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Multiples {
    step: i128,
    last: i128,
}

impl Multiples {
    fn span(&self) -> i128 {
        self.step.saturating_mul(self.last)
    }
}

impl Footprint {
    /// The elements of an array: `first` is the address of the element at all zeros, `strides` and
    /// `size` are in bytes. `None` for an array without elements.
    pub fn new(
        first: usize,
        extents: &[u64],
        strides: impl IntoIterator<Item = i64>,
        size: usize,
    ) -> Option<Self> {
        if extents.contains(&0) {
            return None;
        }
        let mut begin = first as i128;
        let mut dimensions = Vec::with_capacity(extents.len());
        let several = extents
            .iter()
            .zip(strides)
            .filter(|(extent, _)| **extent > 1);
        for (extent, stride) in several {
            let multiples = Multiples {
                step: i128::from(stride.unsigned_abs()),
                last: i128::from(extent - 1),
            };
            if stride < 0 {
                begin = begin.saturating_sub(multiples.span());
            }
            dimensions.push(multiples);
        }
        sort(&mut dimensions);
        Some(Footprint {
            begin,
            size: size as i128,
            dimensions,
        })
    }

    /// The address behind the highest element.
    fn end(&self) -> i128 {
        let last = self.begin.saturating_add(span(&self.dimensions));
        last.saturating_add(self.size)
    }

    /// Whether two elements of the array share bytes.
    pub fn overlaps_itself(&self) -> bool {
        (0..self.dimensions.len()).any(|first| self.overlaps_from(first))
    }

    /// Whether an element shares bytes with an element of a higher index along dimension `first`
    /// and of the same indices along the dimensions before.
    fn overlaps_from(&self, first: usize) -> bool {
        let (own, inner) = (self.dimensions[first], &self.dimensions[first + 1..]);
        // Along each inner dimension the other element may have a lower index, too.
        let zero = span(inner).saturating_sub(own.step);
        if zero + self.size <= 0 {
            // As in most arrays, the step is longer than the inner dimensions altogether.
            return false;
        }
        let mut dimensions = vec![Multiples {
            last: own.last - 1,
            ..own
        }];
        dimensions.extend(inner.iter().map(|inner| Multiples {
            last: 2 * inner.last,
            ..*inner
        }));
        reaches(&dimensions, zero - (self.size - 1), zero + (self.size - 1))
    }

    /// Whether an element of this array shares bytes with an element of another array.
    pub fn overlaps(&self, other: &Footprint) -> bool {
        let [own_end, other_end] = [self, other].map(Footprint::end);
        if own_end <= other.begin || other_end <= self.begin {
            return false;
        }
        let zero = other.begin + span(&other.dimensions) - self.begin;
        let mut dimensions = [&self.dimensions[..], &other.dimensions[..]].concat();
        sort(&mut dimensions);
        dimensions.dedup_by(|next, one| {
            let is_alike = next.step == one.step;
            if is_alike {
                one.last += next.last;
            }
            is_alike
        });
        reaches(&dimensions, zero - (self.size - 1), zero + (other.size - 1))
    }
}

fn sort(dimensions: &mut [Multiples]) {
    dimensions.sort_unstable_by_key(|multiples| std::cmp::Reverse(multiples.step));
}

fn span(dimensions: &[Multiples]) -> i128 {
    let spans = dimensions.iter().map(Multiples::span);
    spans.fold(0, i128::saturating_add)
}

/// Whether a sum of one multiple of each step lies in an interval. The largest step comes first.
fn reaches(dimensions: &[Multiples], low: i128, high: i128) -> bool {
    let Some((largest, rest)) = dimensions.split_first() else {
        return low <= 0 && high >= 0;
    };
    // Every sum is a multiple of the steps' common divisor.
    let divisor = dimensions
        .iter()
        .fold(0, |all, next| divisor(all, next.step));
    if divisor == 0 {
        return low <= 0 && high >= 0;
    }
    if high.div_euclid(divisor) * divisor < low {
        return false;
    }
    let missing = low.saturating_sub(span(rest)).max(0);
    let first = missing.div_euclid(largest.step) + i128::from(missing % largest.step > 0);
    let last = high.div_euclid(largest.step).min(largest.last);
    (first..=last).any(|multiple| {
        let taken = multiple * largest.step;
        reaches(rest, low - taken, high - taken)
    })
}

/// The greatest common divisor.
fn divisor(one: i128, other: i128) -> i128 {
    match one {
        0 => other,
        _ => divisor(other % one, one),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn itself(extents: &[u64], strides: &[i64], size: usize) -> bool {
        Footprint::new(1 << 20, extents, strides.to_vec(), size)
            .is_some_and(|array| array.overlaps_itself())
    }

    #[test]
    fn slices_and_transposed_arrays_do_not_overlap() {
        for (extents, strides) in [
            (&[3, 4][..], &[32, 8][..]),
            (&[4, 3], &[8, 32]),
            (&[3, 4], &[-32, -8]),
            (&[3, 4], &[64, 16]),
            (&[6, 5, 4], &[8, 240, 48]),
            (&[5], &[-24]),
            (&[1, 5], &[0, 8]),
            (&[7, 0], &[0, 0]),
            (&[], &[]),
            // A stride that is no multiple of the size, as in a packed record.
            (&[9], &[12]),
            // Dimensions between each other.
            (&[2, 2], &[24, 16]),
            (&[1 << 40, 1 << 20], &[1 << 23, 8]),
        ] {
            assert!(!itself(extents, strides, 8), "{extents:?} {strides:?}");
        }
    }

    #[test]
    fn windows_and_repeated_rows_overlap() {
        for (extents, strides) in [
            (&[3, 4][..], &[8, 8][..]),
            (&[3, 4], &[0, 8]),
            (&[5], &[0]),
            (&[5], &[-4]),
            (&[2, 5], &[32, 8]),
            (&[2, 5], &[-32, 8]),
            (&[3, 2], &[24, 48]),
            (&[1 << 40, 1 << 40], &[8, 8]),
            (&[u64::MAX, u64::MAX], &[i64::MIN, i64::MIN]),
        ] {
            assert!(itself(extents, strides, 8), "{extents:?} {strides:?}");
        }
    }

    #[test]
    fn columns_of_records_and_parts_of_an_array_do_not_overlap() {
        let array = |first, extents: &[u64], strides: &[i64], size| {
            Footprint::new(first, extents, strides.to_vec(), size).unwrap()
        };
        let many = 1 << 40;
        let column = |first, size| array(first, &[many], &[12], size);
        assert!(!column(100, 4).overlaps(&column(104, 8)));
        assert!(column(100, 8).overlaps(&column(104, 8)));
        assert!(column(100, 4).overlaps(&array(106, &[many], &[-12], 8)));
        let part = |first| array(first, &[3, 4], &[80, 8], 8);
        assert!(!part(0).overlaps(&part(32)));
        assert!(part(0).overlaps(&part(24)));
        assert!(part(24).overlaps(&part(0)));
        assert!(!part(0).overlaps(&part(240)));
        assert!(part(0).overlaps(&part(160)));
        let turned = array(0, &[5], &[72], 8);
        assert!(turned.overlaps(&array(8, &[3, 9], &[72, 8], 8)));
    }

    fn addresses(first: i64, extents: &[u64], strides: &[i64]) -> Vec<i64> {
        let mut all = vec![first];
        for (extent, stride) in extents.iter().zip(strides) {
            let step = |index: u64| move |address: &i64| address + index as i64 * stride;
            all = (0..*extent)
                .flat_map(|index| all.iter().map(step(index)).collect::<Vec<_>>())
                .collect();
        }
        all
    }

    fn arrays() -> impl Strategy<Value = (i64, Vec<(u64, i64)>, i64)> {
        let dimension = (0..5u64, -40..40i64);
        (
            1000..1060i64,
            prop::collection::vec(dimension, 0..4),
            1..9i64,
        )
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_comparison_of_all_elements_finds(
            one in arrays(),
            other in arrays(),
        ) {
            let parts = |(first, dimensions, size): (i64, Vec<(u64, i64)>, i64)| {
                let (extents, strides): (Vec<u64>, Vec<i64>) = dimensions.into_iter().unzip();
                let footprint = Footprint::new(first as usize, &extents, strides.clone(), size as usize);
                (footprint, addresses(first, &extents, &strides), size)
            };
            let (one, ones, size) = parts(one);
            let (other, others, other_size) = parts(other);
            let is_within = |i: usize| ones[..i].iter().any(|address| (address - ones[i]).abs() < size);
            let expected = (0..ones.len()).any(is_within);
            prop_assert_eq!(one.as_ref().is_some_and(Footprint::overlaps_itself), expected);
            let expected = ones.iter().any(|own| others.iter().any(|address| *address < own + size && *own < address + other_size));
            let found = one.zip(other).is_some_and(|(one, other)| one.overlaps(&other));
            prop_assert_eq!(found, expected);
        }
    }
}
