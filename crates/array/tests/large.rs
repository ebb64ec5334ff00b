//! An exchange between 4096 ranks on each side, played in one process. Partners list each other, a
//! message has the same length at both ends, and no element is missing.

mod common;

use std::collections::HashMap;

use common::Random;
use titin_array::{
    Decomposition, ElementRequest, Exchange, Order, Ownership, Partner, Region, Register, Role,
    Schedule, Side, Spread,
};

const RANKS: u32 = 4096;
const SHAPE: [u64; 2] = [6000, 10_007];

/// Checks a sample of one side's ranks. Each partner of a rank must list this rank, with the same
/// number of elements.
fn symmetric(one: impl Fn(u32) -> Schedule, other: impl Fn(u32) -> Schedule) {
    let mut others: HashMap<u32, Schedule> = HashMap::new();
    for rank in (0..RANKS).step_by(251) {
        let schedule = one(rank);
        assert!(
            schedule
                .partners()
                .is_sorted_by(|one, next| one.rank < next.rank)
        );
        for partner in schedule.partners() {
            let theirs = others
                .entry(partner.rank)
                .or_insert_with(|| other(partner.rank));
            let back = theirs
                .find(rank)
                .unwrap_or_else(|| panic!("{} does not list {rank}", partner.rank));
            assert_eq!(theirs.partner(back), Some(Partner { rank, ..partner }));
        }
        for (other, theirs) in &others {
            assert_eq!(
                theirs.find(rank).is_some(),
                schedule.find(*other).is_some(),
                "{rank} and {other}"
            );
        }
    }
}

fn regular(from: Decomposition, to: Decomposition) {
    let exchange = Exchange::new(Side::new(from), Side::new(to)).unwrap();
    let of = |role| {
        let exchange = &exchange;
        move |rank| exchange.schedule(role, rank).unwrap()
    };
    symmetric(of(Role::Sender), of(Role::Receiver));
    symmetric(of(Role::Receiver), of(Role::Sender));
    for role in [Role::Sender, Role::Receiver] {
        let total: u64 = (0..RANKS)
            .map(of(role))
            .map(|schedule| schedule.elements())
            .sum();
        assert_eq!(total, exchange.elements());
    }
}

#[test]
fn block_to_other_blocks() {
    let block = |grid: [u32; 2]| Decomposition::block(&SHAPE, &grid).unwrap();
    regular(block([64, 64]), block([32, 128]));
    regular(block([4096, 1]), block([64, 64]));
}

#[test]
fn block_to_block_cyclic() {
    let spread = [Spread::Cyclic(25), Spread::Even];
    let cyclic = Decomposition::regular(&SHAPE, &[64, 64], &spread, Order::Fortran, RANKS).unwrap();
    regular(Decomposition::block(&SHAPE, &[128, 32]).unwrap(), cyclic);
}

#[test]
fn boxes_to_boxes_through_a_directory_over_all_ranks() {
    let mut random = Random(7);
    let (from, to) = (bisected(&mut random), bisected(&mut random));
    let side = || Side::new(Decomposition::boxes(&SHAPE, RANKS).unwrap());
    let exchange = Exchange::new(side(), side()).unwrap();
    let map = exchange.map(RANKS);
    let mut registers: Vec<_> = (0..RANKS)
        .map(|_| Register::new(exchange.clone()))
        .collect();
    let mut most = 0;
    for rank in 0..RANKS {
        let entries = exchange.entries(rank, &from[rank as usize], &map).unwrap();
        most = most.max(entries.len());
        for (at, entries) in entries {
            registers[at as usize].enter(rank, &entries).unwrap();
        }
    }
    assert!(most <= 32, "a rank tells {most} ranks of the directory");
    let directories: Vec<_> = registers
        .into_iter()
        .map(|register| register.directory().unwrap())
        .collect();
    let mut wanted: Vec<Vec<(u32, ElementRequest)>> = vec![Vec::new(); RANKS as usize];
    let mut receiving = Vec::new();
    for rank in 0..RANKS {
        let queries = exchange.queries(rank, &to[rank as usize], &map).unwrap();
        let answers = queries
            .iter()
            .map(|(at, query)| directories[*at as usize].answer(rank, query).unwrap());
        let (schedule, wants) = exchange
            .receiving(rank, &to[rank as usize], answers.collect())
            .unwrap();
        wants
            .into_iter()
            .for_each(|(sender, wants)| wanted[sender as usize].push((rank, wants)));
        receiving.push(schedule);
    }
    let sending = |rank: u32| {
        exchange
            .sending(rank, &from[rank as usize], &wanted[rank as usize])
            .unwrap()
    };
    let total: u64 = (0..RANKS).map(|rank| sending(rank).elements()).sum();
    assert_eq!(total, exchange.elements());
    symmetric(sending, |rank| receiving[rank as usize].clone());
}

/// Makes a box for each rank. The cuts are random.
fn bisected(random: &mut Random) -> Vec<Ownership> {
    let (mut open, mut boxes) = (vec![(Region::whole(&SHAPE).unwrap(), RANKS)], Vec::new());
    while let Some((region, ranks)) = open.pop() {
        if ranks == 1 {
            boxes.push(Ownership::Boxes(vec![region]));
            continue;
        }
        let extents = region.extents();
        let dim = usize::from(extents[1] > extents[0]);
        let cut = region.lower()[dim]
            + (extents[dim] * (40 + random.below(20)) / 100).clamp(1, extents[dim] - 1);
        let (mut upper, mut lower) = (*region.upper(), *region.lower());
        (upper[dim], lower[dim]) = (cut, cut);
        open.push((Region::new(region.lower(), &upper).unwrap(), ranks / 2));
        open.push((
            Region::new(&lower, region.upper()).unwrap(),
            ranks - ranks / 2,
        ));
    }
    boxes
}
