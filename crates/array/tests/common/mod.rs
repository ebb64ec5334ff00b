//! The common parts of the tests: random cases, and an exchange that is played in one process.
#![allow(dead_code)] // Each test file uses its part.

use proptest::prelude::*;
use titin_array::{
    Bytes, Decomposition, Dims, DirectoryEntries, ElementRequest, Error, Exchange, Halo,
    IndexRange, LocalLayout, Order, Ownership, Region, Register, Role, Schedule, Side, Spread,
};

/// One side of a case, and the things that only its ranks know.
#[derive(Debug, Clone)]
pub struct End {
    pub side: Side,
    pub parts: Vec<Ownership>,
    /// The halo of each rank's array.
    pub halo: Halo,
    pub order: Order,
}

impl End {
    pub fn ranks(&self) -> u32 {
        self.side.decomposition.ranks()
    }

    pub fn local(&self, rank: u32) -> LocalLayout {
        let parts = &self.parts[rank as usize];
        LocalLayout::dense(
            &self.side.decomposition,
            rank,
            parts,
            Some(&self.halo),
            self.order,
        )
        .unwrap()
    }

    /// Returns the indices and the place of each element that a rank holds. The function goes
    /// element by element, so that it is simple enough to trust.
    pub fn elements(&self, rank: u32) -> Vec<(Dims, u64)> {
        let decomposition = &self.side.decomposition;
        let (shape, mut elements, mut begin) = (decomposition.shape(), Vec::new(), 0);
        let mut hold = |axes: &[Vec<u64>]| {
            let owned = Dims::from_fn(axes.len(), |dim| axes[dim].len() as u64);
            let memory = Dims::from_fn(axes.len(), |dim| {
                owned[dim] + self.halo[dim].0 + self.halo[dim].1
            });
            for number in 0..owned.volume() {
                let at = Order::C.point(number, &owned);
                let point = Dims::from_fn(axes.len(), |dim| axes[dim][at[dim] as usize]);
                let inside: Dims = Dims::from_fn(axes.len(), |dim| at[dim] + self.halo[dim].0);
                elements.push((point, begin + self.order.number(&inside, &memory)));
            }
            begin += memory.volume();
        };
        match &self.parts[rank as usize] {
            Ownership::Rule if decomposition.coordinates(rank).is_some() => {
                // The indices along a dimension at which the rank owns an element.
                let mine = |dim: usize, index: u64| {
                    (0..shape.volume()).any(|number| {
                        let point = Order::C.point(number, shape);
                        point[dim] == index && decomposition.owner(&point) == Some(rank)
                    })
                };
                let axis = |dim| (0..shape[dim]).filter(|index| mine(dim, *index)).collect();
                hold(&(0..shape.len()).map(axis).collect::<Vec<_>>());
            }
            Ownership::Rule => {}
            Ownership::Boxes(boxes) => boxes.iter().for_each(|region| {
                let axis = |dim: usize| (region.lower()[dim]..region.upper()[dim]).collect();
                hold(&(0..shape.len()).map(axis).collect::<Vec<_>>());
            }),
            Ownership::Indices(ranges) => {
                let numbers = ranges
                    .iter()
                    .flat_map(|range: &IndexRange| range.first..range.end());
                let element = |(at, number)| (self.side.order.point(number, shape), at as u64);
                elements.extend(numbers.enumerate().map(element));
            }
        }
        elements
    }
}

/// Writes a value and reads the bytes again, as a message between ranks does.
fn sent<T: Bytes + PartialEq + std::fmt::Debug>(value: T) -> T {
    let there = T::from_bytes(&value.to_bytes()).unwrap();
    assert_eq!(there, value);
    there
}

/// Returns the schedules of all ranks of both sides. Each rank makes its schedule alone, or with a
/// directory over `ranks` ranks.
pub fn schedules(
    from: &End,
    to: &End,
    ranks: u32,
) -> Result<(Vec<Schedule>, Vec<Schedule>), Error> {
    let exchange = Exchange::new(sent(from.side.clone()), sent(to.side.clone()))?;
    if exchange.is_regular() {
        let all = |role, count| {
            (0..count)
                .map(|rank| exchange.schedule(role, rank))
                .collect::<Result<_, _>>()
        };
        return Ok((
            all(Role::Sender, from.ranks())?,
            all(Role::Receiver, to.ranks())?,
        ));
    }
    let map = exchange.map(ranks);
    let mut answers = vec![Vec::new(); to.ranks() as usize];
    if exchange.needs_directory() {
        let mut registers: Vec<_> = (0..ranks)
            .map(|_| Register::new(exchange.clone()))
            .collect();
        for rank in 0..from.ranks() {
            for (at, entries) in exchange.entries(rank, &from.parts[rank as usize], &map)? {
                registers[at as usize].enter(rank, &sent::<DirectoryEntries>(entries))?;
            }
        }
        let directories = registers
            .into_iter()
            .map(Register::directory)
            .collect::<Result<Vec<_>, _>>()?;
        for rank in 0..to.ranks() {
            for (at, query) in exchange.queries(rank, &to.parts[rank as usize], &map)? {
                answers[rank as usize]
                    .push(sent(directories[at as usize].answer(rank, &sent(query))?));
            }
        }
    }
    let mut wanted: Vec<Vec<(u32, ElementRequest)>> = vec![Vec::new(); from.ranks() as usize];
    let mut receiving = Vec::new();
    for (rank, answers) in answers.into_iter().enumerate() {
        let (schedule, wants) = exchange.receiving(rank as u32, &to.parts[rank], answers)?;
        for (sender, wants) in wants {
            wanted[sender as usize].push((rank as u32, sent(wants)));
        }
        receiving.push(schedule);
    }
    let sending = wanted.iter().enumerate();
    let sending =
        sending.map(|(rank, wants)| exchange.sending(rank as u32, &from.parts[rank], wants));
    Ok((sending.collect::<Result<_, _>>()?, receiving))
}

/// Small pseudo-random numbers. proptest draws the seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % most.max(1)
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// Divides a box into boxes, at random.
fn divide(random: &mut Random, region: Region, depth: u32, boxes: &mut Vec<Region>) {
    let dims = region.lower().len() as u64;
    let dim = random.below(dims) as usize;
    let length = region.extents().get(dim).copied().unwrap_or(0);
    if depth == 0 || length < 2 {
        return boxes.push(region);
    }
    let cut = region.lower()[dim] + 1 + random.below(length - 1);
    let half = |lower: bool| {
        let (mut from, mut to) = (*region.lower(), *region.upper());
        if lower {
            to[dim] = cut
        } else {
            from[dim] = cut
        }
        Region::new(&from, &to).unwrap()
    };
    divide(random, half(true), depth - 1, boxes);
    divide(random, half(false), depth - 1, boxes);
}

pub fn spread(extent: u64, procs: u32, random: &mut Random) -> Spread {
    match random.below(5) {
        0 => Spread::Block,
        1 => Spread::Even,
        2 => {
            let mut bounds: Vec<u64> = (0..procs - 1).map(|_| random.below(extent + 1)).collect();
            bounds.extend([0, extent]);
            bounds.sort_unstable();
            Spread::Bounds(bounds)
        }
        _ => Spread::Cyclic(1 + random.below(4)),
    }
}

/// A side that couples `domain` of an array that may be larger, decomposed in one of three ways.
fn end(domain: &[u64], kind: u8, seed: u64, most_ranks: u32) -> End {
    let mut random = Random(seed);
    let dims = domain.len();
    let lower: Dims = Dims::from_fn(dims, |_| random.below(3));
    let upper: Dims = Dims::from_fn(dims, |dim| lower[dim] + domain[dim]);
    let shape: Dims = Dims::from_fn(dims, |dim| upper[dim] + random.below(3));
    let order = |random: &mut Random| [Order::C, Order::Fortran][random.below(2) as usize];
    let (own, memory, numbers) = (order(&mut random), order(&mut random), order(&mut random));
    let mut ranks = 1 + random.below(u64::from(most_ranks)) as u32;
    let mut parts = vec![Ownership::Rule; ranks as usize];
    let decomposition = match kind {
        0 => {
            let mut grid = vec![1; dims];
            for _ in 0..4 * dims {
                let dim = random.below(dims as u64) as usize;
                let larger = grid.iter().product::<u32>() / grid[dim] * (grid[dim] + 1);
                grid[dim] += u32::from(larger <= ranks);
            }
            ranks += random.below(2) as u32;
            parts = vec![Ownership::Rule; ranks as usize];
            let spreads: Vec<_> = (0..dims)
                .map(|dim| spread(shape[dim], grid[dim], &mut random))
                .collect();
            Decomposition::regular(&shape, &grid, &spreads, own, ranks)
        }
        1 => {
            let (mut boxes, mut lists) = (Vec::new(), vec![Vec::new(); ranks as usize]);
            divide(&mut random, Region::whole(&shape).unwrap(), 4, &mut boxes);
            random.shuffle(&mut boxes);
            boxes
                .into_iter()
                .for_each(|region| lists[random.below(u64::from(ranks)) as usize].push(region));
            parts = lists.into_iter().map(Ownership::Boxes).collect();
            Decomposition::boxes(&shape, ranks)
        }
        _ => {
            let (mut numbers, mut lists) = (
                (0..shape.volume()).collect::<Vec<_>>(),
                vec![Vec::new(); ranks as usize],
            );
            // Some numbers stay in ranges, and the others are shuffled.
            let ordered = random.below(numbers.len() as u64 + 1) as usize;
            random.shuffle(&mut numbers[ordered..]);
            let mut owner = 0;
            for number in numbers {
                if random.below(5) == 0 {
                    owner = random.below(u64::from(ranks)) as usize;
                }
                lists[owner].push(number);
            }
            parts = lists.into_iter().map(Ownership::indices).collect();
            Decomposition::indices(&shape, ranks)
        }
    };
    let width = |random: &mut Random| if kind == 2 { 0 } else { random.below(3) };
    let halo = Halo::from_fn(dims, |_| (width(&mut random), width(&mut random)));
    let side = Side::new(decomposition.unwrap())
        .region(Region::new(&lower, &upper).unwrap())
        .order(numbers);
    End {
        side,
        parts,
        halo,
        order: memory,
    }
}

/// Draws two sides that couple the same number of elements, in up to `most_dims` dimensions of up
/// to `most` elements each. Also draws the number of ranks of the directory.
pub fn pairs(
    most_dims: usize,
    most: u64,
    most_ranks: u32,
) -> impl Strategy<Value = (End, End, u32)> {
    pairs_of(
        proptest::collection::vec(1..=most, 1..=most_dims),
        most_ranks,
    )
}

/// As [`pairs`], with the extents of `domain`.
pub fn pairs_of(
    domain: impl Strategy<Value = Vec<u64>>,
    most_ranks: u32,
) -> impl Strategy<Value = (End, End, u32)> {
    (domain, 0..3u8, 0..3u8, any::<u64>(), any::<u64>(), 1..6u32).prop_map(
        move |(domain, from, to, one, other, directory)| {
            (
                end(&domain, from, one, most_ranks),
                end(&domain, to, other, most_ranks),
                directory,
            )
        },
    )
}
