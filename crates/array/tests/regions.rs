//! The intersection and the difference of boxes, checked element by element.

use proptest::prelude::*;
use titin_array::{Dims, Order, Region};

fn region(dims: usize) -> impl Strategy<Value = Region> {
    proptest::collection::vec((0..6u64, 0..4u64), dims).prop_map(|bounds| {
        let lower: Vec<_> = bounds.iter().map(|(lower, _)| *lower).collect();
        let upper: Vec<_> = bounds
            .iter()
            .map(|(lower, length)| lower + length)
            .collect();
        Region::new(&lower, &upper).unwrap()
    })
}

proptest! {
    #[test]
    fn boxes_are_sets((one, other) in (0..4usize).prop_flat_map(|dims| (region(dims), region(dims)))) {
        let all: Dims = Dims::all(one.lower().len(), 9);
        let (shared, rest) = (one.intersection(&other), one.difference(&other));
        let mut count = 0;
        for number in 0..all.volume() {
            let point = Order::C.point(number, &all);
            let (inside, outside) = (one.contains(&point), other.contains(&point));
            count += u64::from(inside);
            prop_assert_eq!(shared.is_some_and(|shared| shared.contains(&point)), inside && outside);
            let pieces = rest.iter().filter(|piece| piece.contains(&point)).count();
            prop_assert_eq!(pieces, usize::from(inside && !outside));
        }
        prop_assert_eq!(one.volume(), count);
        prop_assert_eq!(one.is_empty(), count == 0);
        prop_assert_eq!(one.covers(&other), other.difference(&one).is_empty());
        let by: Vec<i64> = (0..all.len() as i64).collect();
        let back: Vec<i64> = by.iter().map(|by| -by).collect();
        prop_assert_eq!(one.shift(&by).and_then(|moved| moved.shift(&back)), Some(one));
    }
}
