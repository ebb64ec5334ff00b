//! Two ends over a simulated network: cuts at any byte, which each end notices at another time, lost answers, ends
//! in any order.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// The most bytes that an end of the simulation keeps.
const KEPT: usize = 1000;

/// An end, and the program above it.
struct End {
    session: Session,
    to_send: VecDeque<u8>,
    sent: Vec<u8>,
    got: Vec<u8>,
    /// The number of the circuit that the end uses.
    circuit: Option<usize>,
}

/// A circuit: the bytes on their way to each of the two ends.
#[derive(Default)]
struct Circuit {
    to: [VecDeque<u8>; 2],
    /// Whether the circuit takes no more bytes. Those on their way may still arrive.
    is_broken: bool,
}

impl End {
    fn new(id: SessionId, first: u8, length: usize) -> Self {
        let sent: Vec<u8> = (0..length)
            .map(|at| (at as u8).wrapping_mul(31) ^ first)
            .collect();
        End {
            session: Session::new(id),
            to_send: sent.clone().into(),
            sent,
            got: Vec::new(),
            circuit: None,
        }
    }

    /// The program sends up to `most` bytes, as far as there is room.
    fn feed(&mut self, most: usize) {
        let room = KEPT - self.session.kept();
        let length = most.min(room).min(self.to_send.len());
        let bytes: Vec<u8> = self.to_send.drain(..length).collect();
        if length > 0 {
            self.session.send(&bytes);
        }
        if self.to_send.is_empty() && !self.session.is_ended {
            self.session.end();
        }
    }

    /// Goes on with a circuit, or with none.
    fn use_circuit(&mut self, circuit: Option<usize>) {
        if self.circuit.is_some() {
            self.session.cut();
        }
        if circuit.is_some() {
            self.session.connect();
        }
        self.circuit = circuit;
    }
}

/// A deterministic source of numbers, so that a failing schedule is one number.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % bound
    }
}

/// Runs a random schedule, after which both streams must have come whole.
fn run(seed: u64) {
    let mut numbers = Numbers(seed);
    let id = SessionId(u128::from(seed) << 64 | 7);
    let mut ends = [1, 2].map(|first| End::new(id, first, numbers.below(5000)));
    let mut circuits: Vec<Circuit> = Vec::new();
    // The last circuit that the end which listens has taken.
    let mut taken = None;
    for step in 0..200_000 {
        let [first, second] = &ends;
        if first.session.is_over() && second.session.is_over() {
            break;
        }
        assert!(step < 199_999, "seed {seed} does not come to an end");
        let at = numbers.below(2);
        let newest = circuits.len().checked_sub(1);
        // Few cuts towards the end, so that each schedule ends.
        let may_cut = step < 400;
        match numbers.below(14) {
            0 if may_cut && numbers.below(3) == 0 => {
                if let Some(circuit) = circuits.last_mut() {
                    circuit.is_broken = true;
                    // A relay that is killed takes the bytes on their way with it.
                    if numbers.below(2) == 0 {
                        circuit.to = Default::default();
                    }
                }
            }
            // An end notices the loss, perhaps long after the other end has.
            1 if ends[at].circuit.is_some_and(|own| circuits[own].is_broken) => {
                ends[at].use_circuit(None);
            }
            2 | 3 if at == 0 && ends[0].circuit.is_none() => {
                circuits.push(Circuit::default());
                ends[0].use_circuit(Some(circuits.len() - 1));
            }
            // The end that listens goes on with the newest circuit, even if it takes the last one for whole.
            2 | 3 if at == 1 && taken < newest => {
                ends[1].use_circuit(newest);
                taken = newest;
            }
            4..=6 => ends[at].feed(1 + numbers.below(400)),
            7..=9 => {
                let mut out = Vec::new();
                ends[at].session.write(&mut out, 1 + numbers.below(300));
                if let Some(circuit) = ends[at].circuit.map(|own| &mut circuits[own])
                    && !circuit.is_broken
                {
                    circuit.to[1 - at].extend(out);
                }
            }
            10 if ends[at].circuit.is_some() => ends[at].session.probe(),
            11.. => {
                if let Some(own) = ends[at].circuit {
                    let line = &mut circuits[own].to[at];
                    let most = (1 + numbers.below(500)).min(line.len());
                    let bytes: Vec<u8> = line.drain(..most).collect();
                    let End { session, got, .. } = &mut ends[at];
                    session.read(&bytes, got).unwrap();
                }
            }
            _ => {}
        }
        ends.iter()
            .for_each(|end| assert!(end.session.kept() <= KEPT));
    }
    let [first, second] = ends;
    assert_eq!(first.got, second.sent, "seed {seed}");
    assert_eq!(second.got, first.sent, "seed {seed}");
}

#[test]
fn random_schedules_lose_and_double_nothing() {
    // `TITIN_SCHEDULES=1000000` for a long run.
    let wanted = std::env::var("TITIN_SCHEDULES").ok();
    let count = wanted.and_then(|text| text.parse().ok()).unwrap_or(3000);
    (0..count).for_each(run);
}

fn joined() -> [Session; 2] {
    let id = SessionId(5);
    let mut ends = [Session::new(id), Session::new(id)];
    reconnect(&mut ends);
    ends
}

fn reconnect(ends: &mut [Session; 2]) {
    ends.iter_mut().for_each(Session::connect);
    pass(ends, 0);
    pass(ends, 1);
    // The other end does not know yet that its answer has come.
    assert!(ends[0].is_confirmed() && !ends[1].is_confirmed());
    pass(ends, 0);
    assert!(ends[1].is_confirmed());
}

/// Takes the records of the end `from` to the other end. Returns the bytes that the other end got.
fn pass(ends: &mut [Session; 2], from: usize) -> Vec<u8> {
    let (mut line, mut got) = (Vec::new(), Vec::new());
    ends[from].write(&mut line, usize::MAX);
    ends[1 - from].read(&line, &mut got).unwrap();
    got
}

#[test]
fn bytes_wait_for_the_next_connection() {
    let mut ends = joined();
    ends[0].send(b"one ");
    assert_eq!(pass(&mut ends, 0), b"one ");
    ends.iter_mut().for_each(Session::cut);
    assert!(!ends[0].is_confirmed());
    ends[0].send(b"two ");
    let mut line = Vec::new();
    ends[0].write(&mut line, 100);
    assert!(line.is_empty() && !ends[0].is_up());
    // The acknowledgement of the first bytes was lost with the connection.
    assert_eq!(ends[0].kept(), 8);
    reconnect(&mut ends);
    assert_eq!(ends[0].kept(), 4);
    // `two ` went with the acknowledgement of the resumption.
    pass(&mut ends, 1);
    assert_eq!((ends[0].kept(), ends[1].received), (0, 8));
}

#[test]
fn an_end_whose_acknowledgement_is_lost_is_known_from_the_resumption() {
    let mut ends = joined();
    ends.iter_mut().for_each(Session::end);
    pass(&mut ends, 0);
    pass(&mut ends, 1);
    assert!(ends[0].is_over() && !ends[1].is_over());
    ends.iter_mut().for_each(Session::cut);
    reconnect(&mut ends);
    assert!(ends[0].is_told() && ends[1].is_over());
}

#[test]
fn a_probe_is_echoed() {
    let mut ends = joined();
    ends[0].probe();
    pass(&mut ends, 0);
    let mut echo = Vec::new();
    ends[1].write(&mut echo, 100);
    assert_eq!(echo, [6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    ends[0].read(&echo, &mut Vec::new()).unwrap();
}

#[test]
fn an_end_that_has_forgotten_the_session_ends_it() {
    let mut fresh = Session::new(SessionId(4));
    fresh.connect();
    let mut line = Vec::new();
    fresh.write(&mut line, 100);
    assert!(SessionGreeting::read(&line).unwrap().may_be_new);

    let mut ends = joined();
    ends[0].send(b"one");
    pass(&mut ends, 0);
    pass(&mut ends, 1);
    ends[0].cut();
    ends[0].connect();
    let mut line = Vec::new();
    ends[0].write(&mut line, 100);
    let greeting = SessionGreeting::read(&line).unwrap();
    assert_eq!((greeting.id, greeting.may_be_new), (SessionId(5), false));
    ends[0]
        .read(&SessionGreeting::gone(), &mut Vec::new())
        .unwrap();
    assert!(ends[0].is_gone());
    ends[0].cut();
    assert!(ends[0].is_gone());
}

#[test]
fn an_end_that_wants_a_new_session_no_more_ends_it() {
    let mut asked = Session::new(SessionId(4));
    asked.connect();
    let mut dialled = Session::new(SessionId(4));
    dialled.connect();
    let mut line = Vec::new();
    dialled.write(&mut line, 100);
    line.extend(SessionGreeting::gone());
    asked.read(&line, &mut Vec::new()).unwrap();
    assert!(asked.is_gone());
}

fn read_all(session: &mut Session, records: &[Record]) -> Result<Vec<u8>, Malformed> {
    let (mut line, mut got) = (Vec::new(), Vec::new());
    records.iter().for_each(|record| record.encode(&mut line));
    session.read(&line, &mut got).map(|()| got)
}

#[test]
fn records_out_of_place_are_refused() {
    let resume = |received, acknowledged| Record::Resume {
        id: SessionId(5),
        received,
        acknowledged,
    };
    let other = Record::Resume {
        id: SessionId(6),
        received: 0,
        acknowledged: 0,
    };
    let data = Record::Data {
        position: 1,
        length: 0,
    };
    let cases: [(&[Record], &str); 9] = [
        (&[data], "while Resuming"),
        (&[other], "another session"),
        (&[resume(0, 0), data], "from position 1"),
        (&[resume(0, 0), Record::End(1)], "while Up"),
        (
            &[resume(0, 0), Record::Acknowledge(1)],
            "1 bytes acknowledged",
        ),
        (&[resume(1, 0)], "1 bytes acknowledged"),
        (&[resume(0, 1)], "counts 1 bytes as received"),
        (&[resume(0, 0), resume(0, 0)], "while Up"),
        (
            &[resume(0, 0), Record::Acknowledge(0), Record::Gone],
            "while Up",
        ),
    ];
    for (records, expected) in cases {
        let mut session = Session::new(SessionId(5));
        session.connect();
        let refused = read_all(&mut session, records).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    let mut session = Session::new(SessionId(5));
    session.connect();
    let after_end = [
        resume(0, 0),
        Record::End(0),
        Record::Data {
            position: 0,
            length: 0,
        },
    ];
    let refused = read_all(&mut session, &after_end).unwrap_err();
    assert!(refused.to_string().contains("follow the end"), "{refused}");
}

/// The bytes of this release, for later releases.
#[test]
fn the_format_stays() {
    let mut session = Session::new(SessionId(0x0102));
    session.connect();
    let mut line = Vec::new();
    session.write(&mut line, 100);
    assert_eq!(line.len(), RESUME);
    assert_eq!(
        line[..26],
        [
            1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0
        ]
    );
    let answer = [
        Record::Resume {
            id: SessionId(0x0102),
            received: 0,
            acknowledged: 0,
        },
        Record::Probe(9),
    ];
    read_all(&mut session, &answer).unwrap();
    session.send(b"ab");
    session.end();
    line.clear();
    session.write(&mut line, 100);
    let echo = [6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let data = [2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'a', b'b'];
    let end = [4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    let acknowledge = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(line, [&acknowledge[..], &echo, &data, &end].concat());
}

proptest! {
    #[test]
    fn hostile_bytes_neither_panic_nor_grow(bytes: Vec<u8>, is_up: bool) {
        let mut session = Session::new(SessionId(5));
        session.connect();
        if is_up {
            let resume = Record::Resume { id: SessionId(5), received: 0, acknowledged: 0 };
            read_all(&mut session, &[resume]).unwrap();
        }
        let mut got = Vec::new();
        let _ = session.read(&bytes, &mut got);
        let _ = SessionGreeting::read(&bytes);
        prop_assert!(got.len() <= bytes.len() && session.urgent.len() <= 5);
    }
}
