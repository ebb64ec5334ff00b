//! Non-blocking calls, and messages that go on from one path to another.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use titin_path::{Key, Listener, Path, PathError, PathSettings, Request, wait_any};
use titin_testkit::Watchdog;
use titin_wire::meta::{Content, Dtype, Layout, StorageOrder};
use titin_wire::path::{BYTES_AHEAD, PART};

const SOON: Option<Duration> = Some(Duration::from_millis(50));

/// Pairs of ends: the ends of path `i` are `here[i]` and `there[i]`.
struct Paths {
    here: Vec<Path>,
    there: Vec<Path>,
    _watchdog: Watchdog,
}

fn paths(count: usize) -> Paths {
    let watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let (here, there) = (0..count)
        .map(|_| {
            let settings = PathSettings::default();
            let here = Path::open(&[listener.address()], "", &key, &settings).unwrap();
            (here, listener.accept(None).unwrap())
        })
        .unzip();
    Paths {
        here,
        there,
        _watchdog: watchdog,
    }
}

/// Bytes that differ from place to place, also by multiples of a part, and from number to number.
fn bytes(length: u64, number: u64) -> Vec<u8> {
    (0..length)
        .map(|place| ((place + number) % 251) as u8)
        .collect()
}

/// The bytes that a finished call has received.
fn received(request: &Request) -> Vec<u8> {
    let message = request.outcome().unwrap().expect("a message");
    assert_eq!(message.bytes.len() as u64, message.length);
    message.bytes.to_vec()
}

#[test]
fn calls_are_completed_in_order_among_calls_that_wait() {
    let Paths { here, there, .. } = &paths(1);
    let sizes = [0, 1, PART, 9, 3 * PART + 5, 4096, PART + 1, 63];
    for (from, to) in [(&here[0], &there[0]), (&there[0], &here[0])] {
        let receives: Vec<Request> = (0..sizes.len()).map(|_| to.post_receive(())).collect();
        let mut sends = Vec::new();
        for (number, size) in (0..).zip(sizes) {
            let message = bytes(size, number);
            match number % 3 {
                0 => from.send(&message, None).unwrap(),
                _ => sends.push(from.post_send(message, None)),
            }
        }
        // Behind all of the others.
        let last = to.post_receive(());
        from.send(b"last", None).unwrap();
        last.wait(None).unwrap();
        assert_eq!(received(&last), b"last");
        for ((number, size), receive) in (0..).zip(sizes).zip(&receives) {
            assert!(receive.test(), "message {number}");
            assert!(received(receive) == bytes(size, number), "message {number}");
        }
        for send in &sends {
            assert!(send.test() && send.outcome().unwrap().is_none());
        }
    }
}

#[test]
fn any_number_of_calls_is_under_way_at_once() {
    let Paths { here, there, .. } = &paths(1);
    let count = 5000;
    let sends: Vec<Request> = (0..count)
        .map(|number| here[0].post_send(bytes(number % 77, number), None))
        .collect();
    assert!(!sends[4999].test(), "more messages are ahead than may be");
    let receives: Vec<Request> = (0..count).map(|_| there[0].post_receive(())).collect();
    for (number, (send, receive)) in (0..).zip(sends.iter().zip(&receives)) {
        receive.wait(None).unwrap();
        assert_eq!(received(receive), bytes(number % 77, number));
        send.wait(None).unwrap();
    }
}

#[test]
fn a_call_goes_on_while_no_thread_waits_for_it() {
    let Paths { here, there, .. } = &paths(1);
    let length = 3 * BYTES_AHEAD + 7;
    let send = here[0].post_send(bytes(length, 3), None);
    let receive = there[0].post_receive(());
    let told = Arc::new(AtomicUsize::new(0));
    for request in [&send, &receive] {
        let told = told.clone();
        request.notify(move || {
            told.fetch_add(1, Ordering::SeqCst);
        });
    }
    while told.load(Ordering::SeqCst) < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(received(&receive) == bytes(length, 3));
    // Of a call that is done `notify` tells at once.
    let told_late = told.clone();
    send.notify(move || {
        told_late.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(told.load(Ordering::SeqCst), 3);
}

#[test]
fn messages_are_scattered_and_gathered_with_and_without_waiting() {
    let Paths { here, there, .. } = &paths(1);
    for unit in [1, PART] {
        let whole = bytes(6 * unit, 1);
        let whole: &'static [u8] = Box::leak(whole.into_boxed_slice());
        let cuts = [0, unit, unit, 3 * unit, 6 * unit].map(|cut| cut as usize);
        let parts: Vec<IoSlice<'static>> = cuts
            .windows(2)
            .map(|cut| IoSlice::new(&whole[cut[0]..cut[1]]))
            .collect();
        let layout = Layout::new(Dtype::UInt16, StorageOrder::Fortran, [unit, 3]);
        let send = here[0].post_send(parts.clone(), Some(layout.clone()));
        let (mut a, mut b) = (vec![0; 2 * unit as usize], vec![0; 5 * unit as usize]);
        let places: Vec<&mut [u8]> = vec![&mut a, &mut b];
        let message = there[0].receive_to(places, None).unwrap();
        assert_eq!(message.meta.content, Content::Array(layout));
        let all = [a, b].concat();
        assert!(all[..whole.len()] == *whole && all[whole.len()..].iter().all(|byte| *byte == 0));
        send.wait(None).unwrap();
        // One byte too little.
        let send = here[0].post_send(parts, None);
        let (mut a, mut b) = (vec![0; 2 * unit as usize], vec![0; 4 * unit as usize - 1]);
        let places: Vec<&mut [u8]> = vec![&mut a, &mut b];
        let unfit = there[0].receive_to(places, None).unwrap_err();
        assert!(matches!(unfit, PathError::Unfit(_)), "{unfit}");
        send.wait(None).unwrap();
        let barriers = [here[0].post_barrier(), there[0].post_barrier()];
        barriers
            .iter()
            .for_each(|barrier| barrier.wait(None).unwrap());
        assert!(matches!(
            barriers[0].outcome(),
            Err(PathError::Dropped { .. })
        ));
        barriers[1].outcome().unwrap();
    }
    let wrong = Layout::new(Dtype::Float64, StorageOrder::C, [2]);
    let wrong = here[0].post_send(vec![0; 15], Some(wrong));
    wrong.wait(None).unwrap();
    assert!(matches!(wrong.outcome(), Err(PathError::Message(_))));
}

#[test]
fn the_first_of_several_calls_is_found_on_any_path() {
    let Paths { here, there, .. } = &paths(3);
    let requests: Vec<Request> = there.iter().map(|path| path.post_receive(())).collect();
    let all: Vec<&Request> = requests.iter().collect();
    assert!(matches!(wait_any(&all, SOON), Err(PathError::Late { .. })));
    assert!(matches!(
        wait_any(&all[..1], SOON),
        Err(PathError::Late { .. })
    ));
    for number in [2, 0, 1] {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(10));
                here[number].send(&[number as u8], None).unwrap();
            });
            let left: Vec<&Request> = all
                .iter()
                .copied()
                .filter(|request| !request.test())
                .collect();
            let first = wait_any(&left, None).unwrap();
            assert_eq!(received(left[first]), [number as u8]);
        });
    }
    assert_eq!(wait_any(&all, SOON), Ok(0));
    assert!(matches!(wait_any(&[], None), Err(PathError::Message(_))));
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    let Paths { here, there, .. } = &paths(1);
    let length = 3 * BYTES_AHEAD;
    let (first, second) = (there[0].post_receive(()), there[0].post_receive(()));
    let send = here[0].post_send(bytes(length, 5), None);
    thread::sleep(Duration::from_millis(3));
    // The first call may be in the middle of the message; the second one has not begun.
    let (is_first, is_second) = (first.cancel(), second.cancel());
    let message = match is_first {
        true => there[0].receive(None).unwrap().bytes.to_vec(),
        false => received(&first),
    };
    assert!(message == bytes(length, 5));
    assert!(is_second);
    assert_eq!(second.outcome().unwrap_err(), PathError::Cancelled);
    assert!(!second.cancel());
    send.wait(None).unwrap();
    here[0].send(b"next", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"next");
}

#[test]
fn a_cancelled_send_is_given_up_and_those_behind_it_go_on() {
    let Paths { here, there, .. } = &paths(1);
    let large = here[0].post_send(bytes(2 * BYTES_AHEAD, 1), None);
    let waits = here[0].post_send(b"never".to_vec(), None);
    let next = here[0].post_send(b"next".to_vec(), None);
    assert!(!large.test() && !waits.test());
    drop(here[0].post_send(bytes(PART + 1, 2), None));
    assert!(waits.cancel() && large.cancel() && !large.cancel());
    let given_up = there[0].receive(None).unwrap_err();
    assert!(
        matches!(given_up, PathError::Abandoned(bytes) if bytes > 0),
        "{given_up}"
    );
    next.wait(None).unwrap();
    here[0].send(b"last", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"next");
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"last");
}

#[test]
fn a_call_that_waits_for_its_turn_behind_one_that_does_not_wait() {
    let Paths { here, there, .. } = &paths(1);
    let first = there[0].post_receive(());
    assert!(matches!(
        there[0].receive(SOON),
        Err(PathError::Late { .. })
    ));
    here[0].send(b"one", None).unwrap();
    here[0].send(b"two", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"two");
    assert_eq!(received(&first), b"one");
}

#[test]
fn exchanges_and_barriers_without_waiting() {
    let Paths { here, there, .. } = &paths(1);
    let large = 2 * BYTES_AHEAD;
    let requests: Vec<Request> = (0..6)
        .flat_map(|number| {
            let message = |side| bytes(if number == side { large } else { number }, number + side);
            [
                here[0].post_exchange(message(0), None, ()),
                there[0].post_exchange(message(1), None, ()),
            ]
        })
        .collect();
    for (place, request) in (0..).zip(&requests) {
        request.wait(None).unwrap();
        let (number, side) = (place / 2, place % 2);
        // Each end has the message of the other side.
        let other = 1 - side;
        let length = if number == other { large } else { number };
        assert!(received(request) == bytes(length, number + other));
    }
    let early = here[0].post_barrier();
    thread::sleep(Duration::from_millis(5));
    assert!(!early.test());
    let there_first = there[0].post_barrier();
    early.wait(None).unwrap();
    there_first.wait(None).unwrap();
    // A barrier that was cancelled is come to by the next call.
    assert!(here[0].post_barrier().cancel());
    there[0].barrier(None).unwrap();
    here[0].barrier(None).unwrap();
    assert!(!here[0].post_barrier().test());
}

#[test]
fn an_exchange_whose_sending_fails_has_the_received_message() {
    let Paths { here, there, .. } = &paths(1);
    let layout = Layout::new(Dtype::Float64, StorageOrder::C, [2]);
    let exchange = here[0].post_exchange(b"not two numbers".to_vec(), Some(layout), ());
    there[0].send(b"there", None).unwrap();
    exchange.wait(None).unwrap();
    assert!(matches!(exchange.outcome(), Err(PathError::Message(_))));
    assert_eq!(&exchange.received().unwrap().bytes[..], b"there");
}

#[test]
fn a_path_that_closes_has_sent_all_and_one_that_is_dropped_ends_its_calls() {
    let Paths {
        mut here,
        mut there,
        ..
    } = paths(2);
    let (to_close, other) = (here.remove(0), there.remove(0));
    let sends: Vec<Request> = (0..4)
        .map(|number| to_close.post_send(bytes(BYTES_AHEAD, number), None))
        .collect();
    let receive = to_close.post_receive(());
    thread::scope(|scope| {
        scope.spawn(move || to_close.close(None).unwrap());
        for number in 0..4 {
            assert!(other.receive(None).unwrap().bytes[..] == bytes(BYTES_AHEAD, number));
        }
        assert_eq!(other.receive(None).unwrap_err(), PathError::Closed);
    });
    assert!(
        sends
            .iter()
            .all(|send| send.test() && send.outcome().is_ok())
    );
    assert!(receive.test());
    assert_eq!(receive.outcome().unwrap_err(), PathError::ClosedHere);

    let (dropped, other) = (here.remove(0), there.remove(0));
    let send = dropped.post_send(bytes(3 * BYTES_AHEAD, 0), None);
    let (receive, barrier) = (dropped.post_receive(()), dropped.post_barrier());
    let far = [other.post_receive(()), other.post_cycle(&other, None::<()>)];
    drop(dropped);
    for request in [&send, &receive, &barrier] {
        assert!(request.test());
        assert_eq!(request.outcome().unwrap_err(), PathError::ClosedHere);
    }
    // A part of the message may be there. Whether the system drops what comes behind it is a matter of time.
    for request in far {
        request.wait(None).unwrap();
        let told = request.outcome().unwrap_err();
        assert!(
            is_end(&told) || matches!(told, PathError::Abandoned(_)),
            "{told}"
        );
    }
}

/// Whether an error says that the other end is gone.
fn is_end(why: &PathError) -> bool {
    matches!(why, PathError::Closed | PathError::Lost(_))
}

#[test]
fn a_message_goes_on_from_path_to_path() {
    // Three programs in a row.
    let Paths { here, there, .. } = &paths(2);
    let (first, middle) = (&here[0], (&there[0], &here[1]));
    let last = &there[1];
    for size in [0, 5, PART, PART + 3, 3 * BYTES_AHEAD + 1] {
        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [1, size]);
        for keeps in [false, true] {
            let cycle = middle.0.post_cycle(middle.1, keeps.then_some(()));
            let send = first.post_send(bytes(size, 8), Some(layout.clone()));
            let message = last.receive(None).unwrap();
            assert!(message.bytes[..] == bytes(size, 8));
            assert_eq!(message.meta.content, Content::Array(layout.clone()));
            send.wait(None).unwrap();
            cycle.wait(None).unwrap();
            let passed = cycle.outcome().unwrap().unwrap();
            assert_eq!(passed.length, size);
            let kept = if keeps { bytes(size, 8) } else { Vec::new() };
            assert!(passed.bytes[..] == kept);
        }
    }
    // A message that a call has kept goes on, too.
    for size in [2 * PART, 2 * BYTES_AHEAD] {
        let receive = middle.0.post_receive(());
        let send = first.post_send(bytes(size, 4), None);
        thread::sleep(Duration::from_millis(1));
        if receive.cancel() {
            let cycle = middle.0.post_cycle(middle.1, Some(()));
            assert!(last.receive(None).unwrap().bytes[..] == bytes(size, 4));
            cycle.wait(None).unwrap();
            assert!(received(&cycle) == bytes(size, 4));
        }
        send.wait(None).unwrap();
    }
}

#[test]
fn a_message_in_a_ring_passes_all_programs() {
    // Path `i` goes from program `i` to program `i + 1`.
    let count = 3;
    let Paths { here, there, .. } = &paths(count);
    // More than may be on its way, with what waits in a pipe.
    let large = BYTES_AHEAD + 6 * PART;
    let mut cycles = Vec::new();
    let mut sends = Vec::new();
    for program in 0..count {
        let (to, from) = (&here[program], &there[(program + count - 1) % count]);
        sends.push(to.post_send(bytes(large, program as u64), None));
        // All messages but the last one go on.
        let passed: Vec<Request> = (0..count - 2)
            .map(|_| from.post_cycle(to, Some(())))
            .collect();
        cycles.push((passed, from.post_receive(())));
    }
    for (program, (passed, last)) in cycles.iter().enumerate() {
        for (distance, request) in (1..).zip(passed.iter().chain([last])) {
            request.wait(None).unwrap();
            let source = (program + count - distance) % count;
            assert!(
                received(request) == bytes(large, source as u64),
                "{program} from {source}"
            );
        }
    }
    for send in sends {
        send.wait(None).unwrap();
    }
}

#[test]
fn what_ends_a_message_on_its_way_on_is_told() {
    let Paths { here, there, .. } = &paths(4);
    // The source gives up.
    let cycle = there[0].post_cycle(&here[1], None::<()>);
    here[0]
        .send(&bytes(2 * BYTES_AHEAD, 0), Some(Duration::from_millis(1)))
        .unwrap_err();
    cycle.wait(None).unwrap();
    assert!(matches!(cycle.outcome(), Err(PathError::Abandoned(_))));
    let given_up = there[1].receive(None).unwrap_err();
    assert!(matches!(given_up, PathError::Abandoned(_)), "{given_up}");
    // The one in the middle gives up.
    let cycle = there[0].post_cycle(&here[1], None::<()>);
    let before = here[1].statistics().messages_sent;
    let send = here[0].post_send(bytes(4 * BYTES_AHEAD, 0), None);
    while here[1].statistics().messages_sent == before {
        thread::yield_now();
    }
    assert!(cycle.cancel());
    let given_up = there[1].receive(None).unwrap_err();
    assert!(matches!(given_up, PathError::Abandoned(_)), "{given_up}");
    let next = there[0].post_receive(());
    send.wait(None).unwrap();
    assert!(
        matches!(send.outcome(), Err(PathError::Dropped { .. })),
        "{:?}",
        send.outcome()
    );
    here[0].send(b"next", None).unwrap();
    next.wait(None).unwrap();
    assert_eq!(received(&next), b"next");
    // The way on is closed: the message waits for the next call.
    let Paths {
        here: closed,
        there: gone,
        ..
    } = paths(1);
    drop(gone);
    while closed[0].send(b"", None).is_ok() {}
    let cycle = there[2].post_cycle(&closed[0], None::<()>);
    here[2].send(b"kept", None).unwrap();
    cycle.wait(None).unwrap();
    let told = cycle.outcome().unwrap_err();
    assert!(is_end(&told), "{told}");
    assert_eq!(&there[2].receive(None).unwrap().bytes[..], b"kept");
}

#[test]
fn a_relay_passes_all_on_both_ways_until_a_program_closes() {
    let Paths {
        mut here,
        mut there,
        ..
    } = paths(2);
    let (a, b) = (here.remove(0), there.pop().unwrap());
    let (left, right) = (there.remove(0), here.pop().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            let relay = left.post_relay(&right);
            relay.wait(None).unwrap();
            assert!(relay.outcome().unwrap().is_none() && !relay.cancel());
            right.close(None).unwrap();
        });
        scope.spawn(move || {
            for number in 0..200 {
                let size = if number % 50 == 7 { 3 * PART } else { number };
                a.send(&bytes(size, number), None).unwrap();
                let back = a.receive(None).unwrap();
                assert!(back.bytes[..] == bytes(size + 1, number));
            }
            a.send(&bytes(BYTES_AHEAD + 1, 1), None).unwrap();
            a.close(None).unwrap();
        });
        for number in 0..200 {
            let size = if number % 50 == 7 { 3 * PART } else { number };
            assert!(b.receive(None).unwrap().bytes[..] == bytes(size, number));
            b.send(&bytes(size + 1, number), None).unwrap();
        }
        assert!(b.receive(None).unwrap().bytes[..] == bytes(BYTES_AHEAD + 1, 1));
        assert_eq!(b.receive(None).unwrap_err(), PathError::Closed);
    });
}

#[test]
fn a_relay_that_is_cancelled_leaves_the_paths_alone() {
    let Paths { here, there, .. } = &paths(2);
    let relay = there[0].post_relay(&here[1]);
    here[0].send(b"one", None).unwrap();
    assert_eq!(&there[1].receive(None).unwrap().bytes[..], b"one");
    assert!(matches!(relay.wait(SOON), Err(PathError::Late { .. })));
    assert!(relay.cancel() && !relay.cancel());
    assert_eq!(relay.outcome().unwrap_err(), PathError::Cancelled);
    here[0].send(b"two", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"two");
    drop(there[0].post_relay(&here[1]));
    here[0].send(b"three", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"three");
}

#[test]
fn what_a_relay_passes_on_is_told_to_its_source_when_it_does_not_fit() {
    let Paths { here, there, .. } = &paths(2);
    // Other messages have other numbers on the two paths.
    for _ in 0..3 {
        here[0].send(b"before", None).unwrap();
        there[0].receive(None).unwrap();
    }
    let _relay = there[0].post_relay(&here[1]);
    let mut messages = 3;
    for size in [9, 2 * BYTES_AHEAD] {
        let send = here[0].post_send(bytes(size, 0), None);
        let unfit = there[1].receive_into(&mut [0; 2], None).unwrap_err();
        assert!(matches!(unfit, PathError::Unfit(_)), "{unfit}");
        send.wait(None).unwrap();
        let (unfit, mut outcome) = (messages, send.outcome().map(|_| ()));
        messages += 1;
        while outcome.is_ok() {
            outcome = here[0].send(b"next", None);
            if outcome.is_ok() {
                messages += 1;
                assert_eq!(&there[1].receive(None).unwrap().bytes[..], b"next");
            }
        }
        assert!(
            matches!(outcome, Err(PathError::Dropped { message, .. }) if message == unfit),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_relay_passes_all_on_of_a_program_that_has_closed() {
    let Paths {
        mut here,
        mut there,
        ..
    } = paths(2);
    let (a, b) = (here.remove(0), there.pop().unwrap());
    let (left, right) = (there.remove(0), here.pop().unwrap());
    let count = 1500;
    thread::scope(|scope| {
        scope.spawn(move || {
            let relay = left.post_relay(&right);
            relay.complete("relay", None).unwrap();
            right.close(None).unwrap();
        });
        // The relay holds messages of both ways when `a` closes.
        b.send(b"back", None).unwrap();
        for number in 0..count {
            a.send(&bytes(7, number), None).unwrap();
        }
        a.close(None).unwrap();
        let _ = b.send(b"nobody takes it", None);
        thread::sleep(Duration::from_millis(20));
        // A receive that waits is told that nobody has taken the message.
        let receive = || match b.receive(None) {
            Err(PathError::Dropped { message: 1, .. }) => b.receive(None),
            received => received,
        };
        for number in 0..count {
            assert_eq!(receive().unwrap().bytes[..], bytes(7, number));
        }
        assert_eq!(receive().unwrap_err(), PathError::Closed);
    });
}

#[test]
fn a_path_that_closes_does_not_wait_for_a_cycle_whose_message_has_not_come() {
    let Paths {
        mut here, there, ..
    } = paths(2);
    let to = here.remove(1);
    let [first, relay] = [
        there[0].post_cycle(&to, None::<()>),
        there[0].post_relay(&to),
    ];
    let send = to.post_send(bytes(BYTES_AHEAD + PART, 0), None);
    assert!(!send.test());
    thread::scope(|scope| {
        scope.spawn(|| there[1].receive(None).unwrap());
        to.close(None).unwrap();
    });
    for request in [&first, &relay] {
        request.wait(None).unwrap();
        assert_eq!(request.outcome().unwrap_err(), PathError::ClosedHere);
    }
    here[0].send(b"on", None).unwrap();
    assert_eq!(&there[0].receive(None).unwrap().bytes[..], b"on");
}

#[test]
fn cycles_of_several_threads_keep_the_order() {
    let Paths { here, there, .. } = &paths(2);
    let (count, threads) = (2000, 4);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..count / threads {
                    let cycle = there[0].post_cycle(&here[1], None::<()>);
                    cycle.complete("cycle", None).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for number in 0..count {
                here[0].send(&bytes(number % 50, number), None).unwrap();
            }
        });
        for number in 0..count {
            let message = there[1].receive(None).unwrap();
            assert_eq!(message.bytes[..], bytes(number % 50, number));
        }
    });
}

#[test]
fn a_thread_that_waits_for_a_call_that_another_one_cancels() {
    let Paths { here, .. } = &paths(1);
    let (first, second) = (here[0].post_receive(()), here[0].post_receive(()));
    for request in [&second, &first] {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| request.wait(None));
            thread::sleep(Duration::from_millis(20));
            assert!(request.cancel());
            waiting.join().unwrap().unwrap();
            assert_eq!(request.outcome().unwrap_err(), PathError::Cancelled);
        });
    }
}

#[test]
fn a_message_that_has_gone_whole_is_not_late() {
    let Paths { here, there, .. } = &paths(1);
    let at_once = Some(Duration::ZERO);
    for parts in [1, 2, 7, 8, 15] {
        let sent = here[0].send(&bytes(parts * PART, 0), at_once);
        let received = there[0].receive(None);
        match sent {
            Ok(()) => assert_eq!(received.unwrap().length, parts * PART),
            Err(PathError::Late { .. }) => {
                assert!(parts > 7, "{parts} parts");
                let told = received.unwrap_err();
                assert!(matches!(told, PathError::Abandoned(_)), "{told}");
            }
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn a_message_that_does_not_go_on_is_told_to_its_sender() {
    let Paths { here, there, .. } = &paths(2);
    let (source, middle, far) = (&here[0], (&there[0], &here[1]), &there[1]);
    // The account may come while the message is on its way.
    let dropped = |number: u64, send: &Request| {
        send.wait(None).unwrap();
        let mut told = send.outcome().map(|_| ());
        loop {
            match told {
                Err(PathError::Dropped { message, why }) => {
                    assert_eq!(message, number, "{why}");
                    break why;
                }
                other => other.unwrap(),
            }
            told = source.flush(None);
        }
    };
    for (turn, size) in (0..).zip([5, PART + 5]) {
        // It does not fit in the middle.
        let small: &'static mut [u8] = Box::leak(Box::new([0; 4]));
        let cycle = middle.0.post_cycle(middle.1, Some(small));
        let send = source.post_send(bytes(size, 0), None);
        cycle.wait(None).unwrap();
        assert!(matches!(cycle.outcome(), Err(PathError::Unfit(_))));
        // The parts of a long message are taken with the next message.
        let next = middle.0.post_cycle(middle.1, None::<()>);
        assert!(dropped(3 * turn, &send).contains("there is room for 4"));
        source.send(b"next", None).unwrap();
        assert_eq!(&far.receive(None).unwrap().bytes[..], b"next");
        next.wait(None).unwrap();
        // It waits in the middle behind a message that does not end, and is given up there.
        let endless = middle.1.post_cycle(middle.1, None::<()>);
        let cycle = middle.0.post_cycle(middle.1, None::<()>);
        let send = source.post_send(bytes(size, 0), None);
        while middle.0.statistics().messages_received < 2 * turn + 2 {
            thread::yield_now();
        }
        assert!(cycle.cancel());
        drop(endless);
        let next = middle.0.post_receive(());
        assert!(dropped(3 * turn + 2, &send).contains("has given up"));
        drop(next);
    }
}

#[test]
fn parts_of_a_message_that_does_not_go_on_are_not_kept() {
    let Paths { here, there, .. } = &paths(2);
    let relay = there[0].post_relay(&here[1]);
    let large = here[0].post_send(bytes(20 * BYTES_AHEAD, 0), None);
    assert!(there[1].receive_into(&mut [0; 2], None).is_err());
    large.wait(None).unwrap();
    assert!(matches!(
        large.outcome(),
        Err(PathError::Dropped { message: 0, .. })
    ));
    here[0].send(b"next", None).unwrap();
    assert_eq!(&there[1].receive(None).unwrap().bytes[..], b"next");
    drop(relay);
}
