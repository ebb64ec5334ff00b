//! For any two decompositions, an exchange has the same result as a gather of the whole array and a
//! scatter.

mod common;

use std::collections::HashMap;
use std::ops::Range;

use common::{End, pairs, pairs_of, schedules};
use proptest::prelude::*;
use titin_array::{Dims, Ownership, Schedule, SourceArray, TargetArray, copy};

/// Returns the bytes of an element, which depend on the indices of the element and on the field.
fn value(point: &Dims, field: usize, size: usize) -> Vec<u8> {
    let mut hash = field as u64 + 1;
    for index in point.iter() {
        hash = (hash ^ index)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(23);
    }
    hash.to_le_bytes()
        .iter()
        .cycle()
        .take(size)
        .copied()
        .collect()
}

const UNTOUCHED: u8 = 0xA5;

/// Returns the memory of every rank of a side, for fields whose elements have these sizes.
fn memories(end: &End, sizes: &[usize], filled: bool) -> Vec<Vec<Vec<u8>>> {
    let memory = |rank: u32, field: usize, size: usize| {
        let mut memory = vec![UNTOUCHED; end.local(rank).length() as usize * size];
        for (point, at) in end.elements(rank).into_iter().filter(|_| filled) {
            memory[at as usize * size..][..size].copy_from_slice(&value(&point, field, size));
        }
        memory
    };
    let fields = |rank| {
        sizes
            .iter()
            .enumerate()
            .map(|(field, size)| memory(rank, field, *size))
            .collect()
    };
    (0..end.ranks()).map(fields).collect()
}

/// Gathers and scatters. Returns the memory that each rank of the receiver must have after an
/// exchange.
fn expected(from: &End, to: &End, sizes: &[usize]) -> Vec<Vec<Vec<u8>>> {
    let mut memories = memories(to, sizes, false);
    for (rank, fields) in memories.iter_mut().enumerate() {
        for (point, at) in to.elements(rank as u32) {
            if to.side.region.contains(&point) {
                let (lower, other) = (to.side.region.lower(), from.side.region.lower());
                let source = Dims::from_fn(point.len(), |dim| point[dim] - lower[dim] + other[dim]);
                for (field, size) in sizes.iter().enumerate() {
                    fields[field][at as usize * size..][..*size]
                        .copy_from_slice(&value(&source, field, *size));
                }
            }
        }
    }
    memories
}

/// More elements than any message has, so that a message is packed and unpacked in one part.
const WHOLE: (u64, u64) = (1 << 40, 1 << 40);

/// Cuts a message into parts of `at_once` elements. Returns the range of bytes of each part.
fn parts(sizes: &[usize], elements: u64, at_once: u64) -> impl Iterator<Item = Range<usize>> {
    let total = elements * sizes.len() as u64;
    let byte = move |number: u64| {
        let (field, inside) = ((number / elements) as usize, (number % elements) as usize);
        let before: usize = sizes[..field].iter().sum();
        before * elements as usize + inside * sizes.get(field).unwrap_or(&0)
    };
    (0..total)
        .step_by(at_once as usize)
        .map(move |from| byte(from)..byte(total.min(from + at_once)))
}

/// Packs every message of every sender, and unpacks every message at its receiver. `at_once` is the
/// number of elements of a part when packing and when unpacking.
fn play(
    at_once: (u64, u64),
    from: &End,
    to: &End,
    sizes: &[usize],
    sending: &[Schedule],
    receiving: &[Schedule],
) -> Vec<Vec<Vec<u8>>> {
    let (sources, mut targets) = (memories(from, sizes, true), memories(to, sizes, false));
    let mut mail = HashMap::new();
    for (rank, schedule) in sending.iter().enumerate() {
        let local = from.local(rank as u32);
        let fields = sources[rank].iter().zip(sizes);
        let fields: Vec<_> = fields
            .map(|(memory, size)| SourceArray {
                memory,
                local: &local,
                size: *size,
            })
            .collect();
        for (place, partner) in schedule.partners().enumerate() {
            let mut message = vec![0; schedule.bytes(place, sizes.iter().copied()) as usize];
            for part in parts(sizes, partner.elements, at_once.0) {
                schedule
                    .pack(place, &fields, part.start as u64, &mut message[part])
                    .unwrap();
            }
            check_prepared(schedule, place, &fields, &message);
            mail.insert((rank as u32, partner.rank), message);
        }
    }
    for (rank, schedule) in receiving.iter().enumerate() {
        let local = to.local(rank as u32);
        let fields = targets[rank].iter_mut().zip(sizes);
        let mut fields: Vec<_> = fields
            .map(|(memory, size)| TargetArray {
                memory,
                local: &local,
                size: *size,
            })
            .collect();
        for (place, partner) in schedule.partners().enumerate() {
            let message = mail
                .remove(&(partner.rank, rank as u32))
                .expect("a message");
            let prepared = schedule.prepare_unpack(place, &fields).unwrap();
            if let Some(prepared) = prepared.filter(|_| at_once == WHOLE) {
                assert!(prepared.fits_targets(&fields) && prepared.length() == message.len());
                prepared.unpack(|from, to| to.copy_from_slice(from), &message, &mut fields);
                continue;
            }
            for part in parts(sizes, partner.elements, at_once.1) {
                schedule
                    .unpack(place, part.start as u64, &message[part], &mut fields)
                    .unwrap();
            }
        }
    }
    assert!(mail.is_empty(), "nobody took {:?}", mail.keys());
    targets
}

/// Checks the prepared copies of a message: they give the same bytes, and find the same place in
/// the array as the schedule.
fn check_prepared(schedule: &Schedule, place: usize, fields: &[SourceArray], message: &[u8]) {
    let Some(prepared) = schedule.prepare_pack(place, fields).unwrap() else {
        return;
    };
    assert!(prepared.fits_sources(fields) && prepared.length() == message.len());
    let mut packed = vec![0; message.len()];
    prepared.pack(|from, to| to.copy_from_slice(from), fields, &mut packed);
    assert!(packed == message);
    if let [field] = fields {
        let in_place = schedule.in_place(place, field.local, field.size);
        assert_eq!(prepared.in_place(), in_place);
    }
}

/// As [`play`], for the first field and without messages: elements are copied from array to array.
fn play_copies(
    from: &End,
    to: &End,
    size: usize,
    sending: &[Schedule],
    receiving: &[Schedule],
) -> Vec<Vec<u8>> {
    let sources = memories(from, &[size], true);
    let mut targets: Vec<_> = memories(to, &[size], false)
        .into_iter()
        .map(|mut fields| fields.remove(0))
        .collect();
    for (rank, schedule) in receiving.iter().enumerate() {
        for (place, partner) in schedule.partners().enumerate() {
            let sender = &sending[partner.rank as usize];
            let source = SourceArray {
                memory: &sources[partner.rank as usize][0],
                local: &from.local(partner.rank),
                size,
            };
            let mut target = TargetArray {
                memory: &mut targets[rank],
                local: &to.local(rank as u32),
                size,
            };
            copy(
                sender,
                sender.find(rank as u32).unwrap(),
                &source,
                schedule,
                place,
                &mut target,
            )
            .unwrap();
        }
    }
    targets
}

fn check((from, to, directory): (End, End, u32), sizes: &[usize]) {
    let (sending, receiving) = schedules(&from, &to, directory).unwrap();
    let expected = expected(&from, &to, sizes);
    for at_once in [WHOLE, (5, 3)] {
        let got = play(at_once, &from, &to, sizes, &sending, &receiving);
        assert!(
            got == expected,
            "what arrived is not what a gather and a scatter give"
        );
    }
    let copied = play_copies(&from, &to, sizes[0], &sending, &receiving);
    assert!(
        copied
            .iter()
            .zip(&expected)
            .all(|(got, fields)| *got == fields[0]),
        "copies differ from messages"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_exchange_is_gather_then_scatter(pair in pairs(4, 6, 12), sizes in proptest::sample::subsequence(vec![1usize, 4, 8, 3, 16], 1..3)) {
        check(pair, &sizes);
    }

    #[test]
    fn long_arrays_of_one_dimension(pair in pairs(1, 200, 9)) {
        check(pair, &[8]);
    }

    #[test]
    fn receivers_may_want_elements_twice_or_not_at_all((from, mut to, directory) in pairs(3, 6, 6)) {
        // Each rank also wants the elements of the next rank, as for a halo. The last rank wants no
        // elements.
        for rank in 0..to.parts.len() {
            let next = to.parts.get(rank + 1).cloned();
            match (&mut to.parts[rank], next) {
                (Ownership::Boxes(own), Some(Ownership::Boxes(next))) => own.extend(next),
                (Ownership::Indices(own), Some(Ownership::Indices(next))) => own.extend(next),
                (Ownership::Boxes(own), _) => own.clear(),
                (Ownership::Indices(own), _) => own.clear(),
                _ => {}
            }
        }
        check((from, to, directory), &[4]);
    }

    #[test]
    fn there_and_back_is_what_it_was((from, to, directory) in pairs(3, 7, 8)) {
        let (sending, receiving) = schedules(&from, &to, directory).unwrap();
        let there = play(WHOLE, &from, &to, &[4], &sending, &receiving);
        let (back, home) = schedules(&to, &from, directory).unwrap();
        // The same as `play`, with the received elements as the source.
        let mut again: Vec<_> = memories(&from, &[4], false).into_iter().map(|mut fields| fields.remove(0)).collect();
        for (rank, schedule) in home.iter().enumerate() {
            for (place, partner) in schedule.partners().enumerate() {
                let sender = &back[partner.rank as usize];
                let source = SourceArray { memory: &there[partner.rank as usize][0], local: &to.local(partner.rank), size: 4 };
                let mut target = TargetArray { memory: &mut again[rank], local: &from.local(rank as u32), size: 4 };
                copy(sender, sender.find(rank as u32).unwrap(), &source, schedule, place, &mut target).unwrap();
            }
        }
        for (rank, memory) in again.iter().enumerate() {
            for (point, at) in from.elements(rank as u32) {
                let inside = from.side.region.contains(&point);
                let expected = if inside { value(&point, 0, 4) } else { vec![UNTOUCHED; 4] };
                prop_assert_eq!(&memory[at as usize * 4..][..4], &expected[..]);
            }
        }
    }

    #[test]
    fn partners_know_each_other((from, to, directory) in pairs(3, 8, 12)) {
        let (sending, receiving) = schedules(&from, &to, directory).unwrap();
        let list = |schedules: &[Schedule], turned: bool| {
            let of = |(rank, schedule): (usize, &Schedule)| {
                let ends = |other: u32| if turned { (other, rank as u32) } else { (rank as u32, other) };
                schedule.partners().map(|partner| (ends(partner.rank), partner.elements)).collect::<Vec<_>>()
            };
            let mut all: Vec<_> = schedules.iter().enumerate().flat_map(of).collect();
            all.sort_unstable();
            all
        };
        let sent = list(&sending, false);
        prop_assert_eq!(&sent, &list(&receiving, true));
        prop_assert!(sent.iter().all(|(_, elements)| *elements > 0));
        prop_assert_eq!(sent.iter().map(|(_, elements)| elements).sum::<u64>(), from.side.region.volume());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn seven_dimensions(pair in pairs(7, 2, 6)) {
        check(pair, &[4]);
    }
    #[test]
    fn empty_arrays_and_such_without_dimensions(pair in pairs_of(proptest::collection::vec(0..=2u64, 0..=3), 4)) {
        check(pair, &[4]);
    }
}
