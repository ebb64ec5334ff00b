//! Measures how long a rank computes its schedule, with many ranks on both sides. One process plays
//! all ranks:
//!
//!     cargo run --release -p titin-array --example schedule              a table
//!     cargo run --release -p titin-array --example schedule -- --json    a line for each row, for programs
//!
//! Each line has the mean and the longest processor time of a rank, in microseconds, for arrays of 1 GB and of 8 GB of doubles. A rank
//! of an irregular sender works for its own schedule and for its share of the directory.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use titin_array::{
    Bytes, Decomposition, Directory, DirectoryEntries, Exchange, IndexRange, Order, Ownership,
    Region, Register, Role, Schedule, Side, Spread,
};

fn main() {
    if !as_json() {
        println!(
            "{:<28}{:>10}{:>16}{:>16}{:>10}{:>10}{:>10}{:>10}",
            "", "ranks", "sender us", "receiver us", "partners", "messages", "bytes", "memory"
        );
    }
    let grids = [
        ([4, 3], [3, 4]),
        ([32, 32], [16, 16]),
        ([64, 32], [32, 16]),
        ([64, 64], [32, 32]),
        ([128, 64], [64, 32]),
    ];
    for (from, to) in grids {
        // The blocks of a block-cyclic array grow with the array.
        for (gigabytes, shape, blocks) in
            [(1, [8192, 16384], [32, 32]), (8, [32768, 32768], [128, 64])]
        {
            let name = |case| Name { case, gigabytes };
            let block = |grid: [u32; 2]| Decomposition::block(&shape, &grid).unwrap();
            let cyclic = |blocks: [u64; 2]| {
                let spread = blocks.map(Spread::Cyclic);
                Decomposition::regular(&shape, &to, &spread, Order::C, to[0] * to[1]).unwrap()
            };
            regular(name("block to block"), block(from), block([to[1], to[0]]));
            regular(name("block to block-cyclic"), block(from), cyclic(blocks));
            regular(name("block to cyclic"), block(from), cyclic([1, 1]));
            boxes(
                name("boxes to boxes"),
                &shape,
                from[0] * from[1],
                to[0] * to[1],
                1,
            );
            boxes(
                name("8 boxes a rank"),
                &shape,
                from[0] * from[1],
                to[0] * to[1],
                8,
            );
        }
        if from[0] > 4 {
            indices(
                Name {
                    case: "indices, 2048 a sender",
                    gigabytes: 0,
                },
                from[0] * from[1],
                to[0] * to[1],
            );
        }
    }
}

fn as_json() -> bool {
    std::env::args().any(|word| word == "--json")
}

/// The case of a row. An array that does not have two sizes has 0 GB.
struct Name {
    case: &'static str,
    gigabytes: u32,
}

fn regular(name: Name, from: Decomposition, to: Decomposition) {
    let exchange = Exchange::new(Side::new(from), Side::new(to)).unwrap();
    let found = |role, rank| {
        let schedule = exchange.schedule(role, rank).unwrap();
        // The schedule makes its partners only on request, as a rank requests them when it opens
        // its conduits.
        schedule.partners().for_each(|partner| {
            black_box(partner);
        });
        schedule
    };
    let all = |role, ranks| timed(ranks, |rank| found(role, rank));
    let (sending, senders) = all(Role::Sender, exchange.from().decomposition.ranks());
    let (receiving, receivers) = all(Role::Receiver, exchange.to().decomposition.ranks());
    report(name, &senders, &receivers, &sending, &receiving, (0, 0));
}

fn boxes(name: Name, shape: &[u64], senders: u32, receivers: u32, each: u32) {
    let whole = Region::whole(shape).unwrap();
    let side = |ranks| Side::new(Decomposition::boxes(shape, ranks).unwrap());
    let exchange = Exchange::new(side(senders), side(receivers)).unwrap();
    irregular(
        name,
        exchange,
        &bisected(whole, senders, each, 1),
        &bisected(whole, receivers, each, 2),
    );
}

/// An unstructured mesh: 2048 elements for each rank of the sender, 16 by 16 in no order.
fn indices(name: Name, senders: u32, receivers: u32) {
    let ranges = u64::from(senders) * 128;
    let side = |ranks| Side::new(Decomposition::indices(&[ranges * 16], ranks).unwrap());
    // There are 2ⁿ elements. So the product of a number and an odd number, modulo 2ⁿ, takes every
    // value once.
    let dealt = |ranks: u32, by: u64| -> Vec<Ownership> {
        let list = |rank: u32| {
            (u64::from(rank)..ranges)
                .step_by(ranks as usize)
                .map(|n| n * by % ranges * 16)
        };
        let parts = |rank| {
            Ownership::Indices(
                list(rank)
                    .map(|first| IndexRange { first, length: 16 })
                    .collect(),
            )
        };
        (0..ranks).map(parts).collect()
    };
    let exchange = Exchange::new(side(senders), side(receivers)).unwrap();
    irregular(
        name,
        exchange,
        &dealt(senders, 0x9E37_79B9),
        &dealt(receivers, 0x85EB_CA6B),
    );
}

fn irregular(name: Name, exchange: Exchange, from: &[Ownership], to: &[Ownership]) {
    let (senders, receivers) = (from.len() as u32, to.len() as u32);
    let map = exchange.map(senders);
    let (mut messages, mut bytes) = (0, 0);

    let (entries, mut sender_time) = timed(senders, |rank| {
        exchange.entries(rank, &from[rank as usize], &map).unwrap()
    });
    let mut told: Vec<_> = (0..senders).map(|_| Vec::new()).collect();
    for (rank, entries) in entries.into_iter().enumerate() {
        for (at, entries) in entries {
            (messages, bytes) = (messages + 1, bytes + entries.to_bytes().len());
            told[at as usize].push((rank as u32, entries));
        }
    }
    let (directories, times): (Vec<Directory>, _) = timed(senders, |at| {
        let mut register = Register::new(exchange.clone());
        told[at as usize]
            .iter()
            .for_each(|(rank, entries)| register.enter(*rank, entries).unwrap());
        register.directory().unwrap()
    });
    add(&mut sender_time, &times);

    let (queries, mut receiver_time) = timed(receivers, |rank| {
        exchange.queries(rank, &to[rank as usize], &map).unwrap()
    });
    let mut asked: Vec<_> = (0..senders).map(|_| Vec::new()).collect();
    for (rank, queries) in queries.into_iter().enumerate() {
        for (at, query) in queries {
            (messages, bytes) = (messages + 1, bytes + query.to_bytes().len());
            asked[at as usize].push((rank as u32, query));
        }
    }
    let (answered, times) = timed(senders, |at| {
        let answer = |(rank, query): &(u32, DirectoryEntries)| {
            (
                *rank,
                directories[at as usize].answer(*rank, query).unwrap(),
            )
        };
        asked[at as usize].iter().map(answer).collect::<Vec<_>>()
    });
    add(&mut sender_time, &times);
    let mut answers: Vec<_> = (0..receivers).map(|_| Vec::new()).collect();
    for (rank, answer) in answered.into_iter().flatten() {
        (messages, bytes) = (messages + 1, bytes + answer.to_bytes().len());
        answers[rank as usize].push(answer);
    }

    let (found, times) = timed(receivers, |rank| {
        let answers = std::mem::take(&mut answers[rank as usize]);
        exchange
            .receiving(rank, &to[rank as usize], answers)
            .unwrap()
    });
    add(&mut receiver_time, &times);
    let mut wants: Vec<_> = (0..senders).map(|_| Vec::new()).collect();
    let mut receiving = Vec::new();
    for (rank, (schedule, wanted)) in found.into_iter().enumerate() {
        for (sender, wanted) in wanted {
            (messages, bytes) = (messages + 1, bytes + wanted.to_bytes().len());
            wants[sender as usize].push((rank as u32, wanted));
        }
        receiving.push(schedule);
    }
    let (sending, times) = timed(senders, |rank| {
        exchange
            .sending(rank, &from[rank as usize], &wants[rank as usize])
            .unwrap()
    });
    add(&mut sender_time, &times);
    report(
        name,
        &sender_time,
        &receiver_time,
        &sending,
        &receiving,
        (messages, bytes),
    );
}

/// The work of each rank, and its time.
fn timed<T>(ranks: u32, mut work: impl FnMut(u32) -> T) -> (Vec<T>, Vec<Duration>) {
    (0..ranks)
        .map(|rank| {
            let start = now();
            let done = work(rank);
            (done, now() - start)
        })
        .unzip()
}

/// Returns the processor time of this thread, without the time of other threads.
fn now() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .expect("a time since the start")
}

fn add(times: &mut [Duration], more: &[Duration]) {
    times
        .iter_mut()
        .zip(more)
        .for_each(|(time, more)| *time += *more);
}

/// `messages` and `bytes` count the messages that the ranks exchange to find the schedule, and
/// `memory` the bytes of the schedule. These numbers and `partners` are per rank of both sides.
fn report(
    name: Name,
    senders: &[Duration],
    receivers: &[Duration],
    sending: &[Schedule],
    receiving: &[Schedule],
    (messages, bytes): (usize, usize),
) {
    let total = |schedules: &[Schedule]| schedules.iter().map(Schedule::elements).sum::<u64>();
    assert_eq!(total(sending), total(receiving));
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = |times: &[Duration]| micros(times.iter().sum()) / times.len() as f64;
    let most = |times: &[Duration]| micros(times.iter().copied().max().unwrap_or_default());
    let all = (senders.len() + receivers.len()) as f64;
    let sum = |of: fn(&Schedule) -> usize| {
        sending.iter().chain(receiving).map(of).sum::<usize>() as f64 / all
    };
    let (memory, partners) = (sum(Schedule::footprint), sum(Schedule::count));
    let (messages, bytes) = (messages as f64 / all, bytes as f64 / all);
    let Name { case, gigabytes } = name;
    if as_json() {
        println!(
            "{{\"case\": \"{case}\", \"gigabytes\": {gigabytes}, \"senders\": {}, \"receivers\": {}, \"sender\": {}, \
             \"receiver\": {}, \"slowest\": {}, \"partners\": {partners}, \"messages\": {messages}, \"bytes\": {bytes}, \
             \"memory\": {memory}}}",
            senders.len(),
            receivers.len(),
            mean(senders),
            mean(receivers),
            most(senders).max(most(receivers)),
        );
        return;
    }
    let name = if gigabytes > 0 {
        format!("{case}, {gigabytes} GB")
    } else {
        case.to_owned()
    };
    let ranks = format!("{}x{}", senders.len(), receivers.len());
    let times = |times: &[Duration]| format!("{:.1} / {:.0}", mean(times), most(times));
    println!(
        "{name:<28}{ranks:>10}{:>16}{:>16}{partners:>10.1}{messages:>10.1}{bytes:>10.0}{memory:>10.0}",
        times(senders),
        times(receivers),
    );
}

/// Makes `each` boxes for each rank. The cuts are random, and the boxes of a rank are not beside
/// each other.
fn bisected(whole: Region, ranks: u32, each: u32, seed: u64) -> Vec<Ownership> {
    let (mut seed, mut open, mut boxes) = (seed, vec![(whole, ranks * each)], Vec::new());
    while let Some((region, ranks)) = open.pop() {
        if ranks == 1 {
            boxes.push(region);
            continue;
        }
        let extents = region.extents();
        let dim = usize::from(extents[1] > extents[0]);
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let share = 0.4 + 0.2 * ((seed >> 33) as f64 / (1u64 << 31) as f64);
        let cut =
            region.lower()[dim] + ((extents[dim] as f64 * share) as u64).clamp(1, extents[dim] - 1);
        let (mut upper, mut lower) = (*region.upper(), *region.lower());
        (upper[dim], lower[dim]) = (cut, cut);
        open.push((Region::new(region.lower(), &upper).unwrap(), ranks / 2));
        open.push((
            Region::new(&lower, region.upper()).unwrap(),
            ranks - ranks / 2,
        ));
    }
    let of = |rank| {
        boxes
            .iter()
            .skip(rank)
            .step_by(ranks as usize)
            .copied()
            .collect()
    };
    (0..ranks as usize)
        .map(|rank| Ownership::Boxes(of(rank)))
        .collect()
}
