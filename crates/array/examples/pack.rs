//! Measures how fast messages are packed and unpacked, compared with a plain copy of the same
//! number of bytes:
//!
//!     cargo run --release -p titin-array --example pack
//!
//! Rank 0 of four packs its part of an array of doubles for all of its partners, or unpacks the
//! messages of its partners. The time is the shortest of many turns. The ratio compares this time
//! with a plain copy in the same turns.

use std::time::Instant;

use titin_array::{
    Decomposition, Exchange, LocalLayout, Order, Ownership, Register, Role, Schedule, Side,
    SourceArray, Spread, TargetArray,
};

fn main() {
    println!(
        "{:<44}{:>10}{:>10}{:>10}{:>8}{:>8}",
        "", "copy us", "pack us", "unpack us", "pack", "unpack"
    );
    for edge in [1024, 4096] {
        let shape = [edge, edge];
        let block = |grid: &[u32]| Side::new(Decomposition::block(&shape, grid).unwrap());
        let cyclic = |width, grid: &[u32]| {
            let spread = [Spread::Cyclic(width), Spread::Cyclic(width)];
            Side::new(Decomposition::regular(&shape, grid, &spread, Order::C, 4).unwrap())
        };
        let (rows, columns, square) = (block(&[4, 1]), block(&[1, 4]), block(&[2, 2]));
        measure(
            &format!("{edge}²: rows to rows"),
            rows.clone(),
            rows.clone(),
        );
        measure(
            &format!("{edge}²: rows to columns"),
            rows.clone(),
            columns.clone(),
        );
        measure(
            &format!("{edge}²: C rows to Fortran columns"),
            rows.clone(),
            columns.clone().order(Order::Fortran),
        );
        for width in [1, 2, 3, 8, 64] {
            measure(
                &format!("{edge}²: block-cyclic ({width}) to block"),
                cyclic(width, &[2, 2]),
                square.clone(),
            );
        }
        measure(
            &format!("{edge}²: block to block-cyclic (8)"),
            square.clone(),
            cyclic(8, &[2, 2]),
        );
        measure(
            &format!("{edge}²: block-cyclic (2) to (3)"),
            cyclic(2, &[2, 2]),
            cyclic(3, &[2, 2]),
        );
        unstructured(edge);
    }
}

/// Single elements in no order, which are sent to a side of rows.
fn unstructured(edge: u64) {
    let count = edge * edge;
    // There are 2ⁿ elements. So the product of a number and an odd number, modulo 2ⁿ, takes every
    // value once.
    let parts =
        |rank| Ownership::indices((0..count / 4).map(|n| (n * 4 + rank) * 0x9E37_79B1 % count));
    let from = Side::new(Decomposition::indices(&[count], 4).unwrap());
    let exchange = Exchange::new(
        from,
        Side::new(Decomposition::block(&[count], &[4]).unwrap()),
    )
    .unwrap();
    let mut register = Register::new(exchange.clone());
    let map = exchange.map(1);
    for rank in 0..4 {
        for (_, entries) in exchange
            .entries(rank, &parts(u64::from(rank)), &map)
            .unwrap()
        {
            register.enter(rank, &entries).unwrap();
        }
    }
    let directory = register.directory().unwrap();
    let mut receive = |rank| {
        let queries = exchange.queries(rank, &Ownership::Rule, &map).unwrap();
        let answers = queries
            .iter()
            .map(|(_, query)| directory.answer(rank, query).unwrap())
            .collect();
        exchange.receiving(rank, &Ownership::Rule, answers).unwrap()
    };
    let all: Vec<_> = (0..4).map(&mut receive).collect();
    let mut wants = Vec::new();
    for (rank, (_, wanted)) in all.iter().enumerate() {
        wants.extend(
            wanted
                .iter()
                .filter(|(sender, _)| *sender == 0)
                .map(|(_, wants)| (rank as u32, wants.clone())),
        );
    }
    let sending = exchange.sending(0, &parts(0), &wants).unwrap();
    range(
        &format!("{edge}²: single elements to rows"),
        &exchange,
        &sending,
        &all[0].0,
        &parts(0),
    );
}

const SIZE: usize = 8;

fn measure(name: &str, from: Side, to: Side) {
    let exchange = Exchange::new(from, to).unwrap();
    let [sending, receiving] =
        [Role::Sender, Role::Receiver].map(|role| exchange.schedule(role, 0).unwrap());
    range(name, &exchange, &sending, &receiving, &Ownership::Rule);
}

fn range(
    name: &str,
    exchange: &Exchange,
    sending: &Schedule,
    receiving: &Schedule,
    parts: &Ownership,
) {
    let dense = |side: &Side, parts| {
        LocalLayout::dense(&side.decomposition, 0, parts, None, side.order).unwrap()
    };
    let (here, there) = (
        dense(exchange.from(), parts),
        dense(exchange.to(), &Ownership::Rule),
    );
    let memory = |local: &LocalLayout| {
        (0..local.length() as usize * SIZE)
            .map(|n| n as u8)
            .collect::<Vec<_>>()
    };
    let (sources, mut targets) = (memory(&here), memory(&there));
    let mut copies = sources.clone();

    let messages = |schedule: &Schedule| {
        let message = |place| vec![1u8; schedule.bytes(place, [SIZE]) as usize];
        (0..schedule.count()).map(message).collect::<Vec<_>>()
    };
    let (mut sent, received) = (messages(sending), messages(receiving));

    let mut best = [f64::MAX; 3];
    for _ in 0..(1 << 26) / sources.len().max(1) + 3 {
        let times = [
            timed(|| copies.copy_from_slice(std::hint::black_box(&sources))),
            timed(|| {
                for (place, message) in sent.iter_mut().enumerate() {
                    let field = SourceArray {
                        memory: &sources,
                        local: &here,
                        size: SIZE,
                    };
                    sending.pack(place, &[field], 0, message).unwrap();
                }
            }),
            timed(|| {
                for (place, message) in received.iter().enumerate() {
                    let field = TargetArray {
                        memory: &mut targets,
                        local: &there,
                        size: SIZE,
                    };
                    receiving.unpack(place, 0, message, &mut [field]).unwrap();
                }
            }),
        ];
        best = std::array::from_fn(|at| best[at].min(times[at]));
    }
    let [copy, pack, unpack] = best;
    println!(
        "{name:<44}{copy:>10.0}{pack:>10.0}{unpack:>10.0}{:>8.2}{:>8.2}",
        pack / copy,
        unpack / copy
    );
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}
