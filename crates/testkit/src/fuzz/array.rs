//! Messages between ranks about a distributed array. Each function reads hostile bytes as such a
//! message, and uses the message as titin does.

use std::fmt::Debug;

use titin_array::{
    Bytes, Decomposition, DirectoryAnswer, DirectoryEntries, ElementRequest, Exchange, Order,
    Ownership, Register, Role, Side, Spread,
};

use super::Outcome;

/// The shape of the array whose ranks receive the bytes.
const SHAPE: [u64; 2] = [12, 5];

/// The largest number of ranks at the other end.
const MOST_RANKS: u32 = 1000;

/// Reads a message about a decomposition. The first byte chooses the kind of message, and whether
/// the receiving side is decomposed by boxes or by indices.
pub fn array(bytes: &[u8]) -> Outcome {
    let (kind, bytes) = bytes
        .split_first()
        .map_or((0, bytes), |(kind, bytes)| (*kind, bytes));
    let [boxes, indices] = ours();
    let exchange = if kind & 8 == 0 { boxes } else { indices };
    match kind & 7 {
        0 => side(bytes, &exchange),
        1 => parts(bytes, &exchange),
        2 => entered(bytes, exchange),
        3 => asked(bytes, exchange),
        4 => answered(bytes, &exchange),
        _ => wanted(bytes, &exchange),
    }
}

/// Exchanges between irregular sides: one by boxes, and one by indices. Rank 0 of the sender owns
/// the first three rows.
fn ours() -> [Exchange; 2] {
    let both = [
        Decomposition::boxes(&SHAPE, 2),
        Decomposition::indices(&SHAPE, 2),
    ];
    both.map(|decomposition| {
        let side = Side::new(decomposition.expect("a shape and ranks"));
        Exchange::new(side.clone(), side).expect("of one shape")
    })
}

/// What a rank of such a side owns: three rows, beginning with row `from`.
fn rows(exchange: &Exchange, from: u64) -> Ownership {
    if exchange.from().decomposition.is_by_boxes() {
        Ownership::Boxes(vec![
            titin_array::Region::new(&[from, 0], &[from + 3, SHAPE[1]]).expect("a box"),
        ])
    } else {
        Ownership::indices(from * SHAPE[1]..(from + 3) * SHAPE[1])
    }
}

/// Reads the decomposition that the other end declares.
fn side(bytes: &[u8], exchange: &Exchange) -> Outcome {
    let theirs: Side = read(bytes)?;
    // The runtime refuses a number of ranks that differs from the number that the manager knows. So
    // the number of ranks is bounded, and with it the directory.
    if theirs.decomposition.ranks() > MOST_RANKS {
        return Err(format!("{} ranks", theirs.decomposition.ranks()));
    }
    let ours = &exchange.from().decomposition;
    let regular = Side::new(Decomposition::block(&SHAPE, &[2, 1]).expect("a grid"));
    for ours in [Side::new(ours.clone()), regular] {
        for (from, to) in [
            (theirs.clone(), ours.clone()),
            (ours.clone(), theirs.clone()),
        ] {
            let Ok(exchange) = Exchange::new(from, to) else {
                continue;
            };
            for role in [Role::Sender, Role::Receiver] {
                let schedule = exchange.schedule(role, 1);
                let count = schedule.map_or(0, |schedule| schedule.partners().take(100).count());
                assert!(
                    count as u64 <= exchange.elements(),
                    "a partner shares an element at least"
                );
            }
            if exchange.needs_directory() {
                let map = exchange.map(exchange.from().decomposition.ranks());
                let parts = rows(
                    &Exchange::new(ours.clone(), ours.clone()).expect("of one shape"),
                    3,
                );
                let _ = exchange.queries(1, &parts, &map);
            }
        }
    }
    Ok(())
}

/// Reads what a rank owns.
fn parts(bytes: &[u8], exchange: &Exchange) -> Outcome {
    let parts: Ownership = read(bytes)?;
    parts
        .check(&exchange.from().decomposition, 0)
        .map_err(|error| error.to_string())?;
    let _ = exchange.entries(0, &parts, &exchange.map(2));
    let _ = exchange.queries(0, &parts, &exchange.map(2));
    let _ = exchange.sending(0, &parts, &[]);
    Ok(())
}

/// Reads entries for the directory. Afterwards the directory must answer a query for all rows.
fn entered(bytes: &[u8], exchange: Exchange) -> Outcome {
    let entries: DirectoryEntries = read(bytes)?;
    let map = exchange.map(2);
    let mut register = Register::new(exchange.clone());
    register
        .enter(1, &entries)
        .map_err(|error| error.to_string())?;
    let directory = register.directory().map_err(|error| error.to_string())?;
    for (_, query) in exchange
        .queries(0, &rows(&exchange, 0), &map)
        .expect("its own parts")
    {
        directory.answer(0, &query).expect("a query of its own");
    }
    Ok(())
}

/// Reads a query to the directory.
fn asked(bytes: &[u8], exchange: Exchange) -> Outcome {
    let query: DirectoryEntries = read(bytes)?;
    let mut register = Register::new(exchange.clone());
    for (_, entries) in exchange
        .entries(0, &rows(&exchange, 0), &exchange.map(2))
        .expect("its own parts")
    {
        register.enter(0, &entries).expect("entries of its own");
    }
    let directory = register.directory().expect("one owner");
    directory
        .answer(1, &query)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Reads the directory's answer to a rank of the receiver.
fn answered(bytes: &[u8], exchange: &Exchange) -> Outcome {
    let answer: DirectoryAnswer = read(bytes)?;
    let found = exchange.receiving(0, &rows(exchange, 0), vec![answer]);
    let (schedule, _) = found.map_err(|error| error.to_string())?;
    assert!(
        schedule.elements() <= 3 * SHAPE[1],
        "more than the rank has"
    );
    Ok(())
}

/// Reads the elements that a rank of the receiver requests.
fn wanted(bytes: &[u8], exchange: &Exchange) -> Outcome {
    let wants: ElementRequest = read(bytes)?;
    let schedule = exchange
        .sending(0, &rows(exchange, 0), &[(1, wants)])
        .map_err(|error| error.to_string())?;
    let elements: Vec<u64> = schedule
        .partners()
        .map(|partner| partner.elements)
        .collect();
    assert_eq!(elements.iter().sum::<u64>(), schedule.elements());
    Ok(())
}

/// Reads a value. The value, written and read again, must be the same value.
fn read<T: Bytes + PartialEq + Debug>(bytes: &[u8]) -> Result<T, String> {
    let value = T::from_bytes(bytes).map_err(|error| error.to_string())?;
    assert_eq!(T::from_bytes(&value.to_bytes()).as_ref(), Ok(&value));
    Ok(value)
}

/// The inputs that fuzzing begins with.
pub(super) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let [boxes, indices] = ours();
    let of = |kind: u8, bytes: Vec<u8>| [vec![kind], bytes].concat();
    let spreads = [Spread::Block, Spread::Cyclic(2)];
    let regular =
        Decomposition::regular(&SHAPE, &[2, 2], &spreads, Order::Fortran, 4).expect("a grid");
    let entries = |exchange: &Exchange| {
        let mut all = exchange
            .entries(0, &rows(exchange, 0), &exchange.map(2))
            .expect("parts");
        all.swap_remove(0).1
    };
    let answer = |exchange: &Exchange| {
        let mut register = Register::new(exchange.clone());
        register.enter(1, &entries(exchange)).expect("entries");
        let query = entries(exchange);
        register
            .directory()
            .expect("one owner")
            .answer(0, &query)
            .expect("a query")
    };
    let want = |exchange: &Exchange| {
        let (_, mut wants) = exchange
            .receiving(0, &rows(exchange, 0), vec![answer(exchange)])
            .expect("an answer");
        wants.swap_remove(0).1
    };
    let whole = Side::new(regular).order(Order::Fortran);
    vec![
        ("good_regular", of(0, whole.to_bytes())),
        ("good_boxes", of(0, boxes.from().to_bytes())),
        ("good_indices", of(8, indices.from().to_bytes())),
        ("good_parts", of(1, rows(&boxes, 0).to_bytes())),
        ("good_runs", of(9, rows(&indices, 0).to_bytes())),
        ("good_entered", of(2, entries(&boxes).to_bytes())),
        ("good_entered_runs", of(10, entries(&indices).to_bytes())),
        ("good_asked", of(3, entries(&boxes).to_bytes())),
        ("good_asked_runs", of(11, entries(&indices).to_bytes())),
        ("good_answered", of(4, answer(&boxes).to_bytes())),
        ("good_answered_runs", of(12, answer(&indices).to_bytes())),
        ("good_wanted", of(5, want(&boxes).to_bytes())),
        ("good_wanted_runs", of(13, want(&indices).to_bytes())),
        ("all_ones", vec![0xff; 100]),
    ]
}
