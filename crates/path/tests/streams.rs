//! The number of streams of an open path, and their pieces.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use titin_path::{Key, Listener, Path, PathSettings, parse_addresses};
use titin_testkit::{Relay, Watchdog};

/// The two media of a path, as in addresses.
const MEDIA: [&str; 2] = ["tcp:", "session:"];

/// A path over a medium, from the end that opens it to the end that listens.
fn pair(medium: &str, settings: &PathSettings) -> (Path, Path, Listener) {
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let place = listener.address().to_string();
    let place = place.replacen("tcp:", medium, 1);
    let here = Path::open(&parse_addresses(&place).unwrap(), "mesh", &key, settings).unwrap();
    let there = listener.accept(None).unwrap();
    (here, there, listener)
}

fn with_streams(streams: Option<u32>) -> PathSettings {
    PathSettings {
        streams,
        ..PathSettings::default()
    }
}

/// Waits until large messages of an end go by so many streams.
fn await_streams(path: &Path, count: usize) {
    while path.streams() != count {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The bytes of the message numbered `number`, which differ from place to place.
fn message(number: usize) -> Vec<u8> {
    let length = [3_000_001, 140_000, 17, 700_000][number % 4];
    (0..length)
        .map(|place| ((place + number) % 251) as u8)
        .collect()
}

/// Sends messages until `is_over`, and then an empty one.
fn send_until(path: &Path, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        path.send(&message(number), None).unwrap();
        number += 1;
    }
    path.send(&[], None).unwrap();
}

/// Receives messages up to an empty one, and counts them.
fn receive_all(path: &Path, count: &AtomicUsize) {
    loop {
        let received = path.receive(None).unwrap();
        if received.bytes.is_empty() {
            return;
        }
        let number = count.fetch_add(1, Ordering::Relaxed);
        assert!(received.bytes[..] == message(number), "{number}");
    }
}

#[test]
fn streams_come_and_go_while_data_flow() {
    let _watchdog = Watchdog::start();
    for medium in MEDIA {
        for begins_with in [Some(1), Some(4), None] {
            let (here, there, _listener) = &pair(medium, &with_streams(begins_with));
            let (is_over, counts) = (&AtomicBool::new(false), &[0, 0].map(AtomicUsize::new));
            thread::scope(|scope| {
                for (from, to, count) in [(here, there, &counts[0]), (there, here, &counts[1])] {
                    scope.spawn(|| send_until(from, is_over));
                    scope.spawn(|| receive_all(to, count));
                }
                for (one, other) in [(2, 3), (6, 1), (1, 9), (5, 5)] {
                    here.set_streams(Some(one));
                    there.set_streams(Some(other));
                    await_streams(here, one as usize);
                    await_streams(there, other as usize);
                    for count in counts {
                        let before = count.load(Ordering::Relaxed);
                        while count.load(Ordering::Relaxed) < before + 8 {
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
    }
}

#[test]
fn a_program_that_waits_receives_by_streams_that_join() {
    let _watchdog = Watchdog::start();
    for medium in MEDIA {
        for is_back in [false, true] {
            let (here, there, _listener) = &pair(medium, &with_streams(Some(1)));
            let (from, to) = if is_back {
                (there, here)
            } else {
                (here, there)
            };
            let large = vec![7; 40 << 20];
            thread::scope(|scope| {
                let receiver = scope.spawn(|| to.receive(None).unwrap());
                // The receiver sleeps at the socket of the only stream.
                thread::sleep(Duration::from_millis(200));
                from.set_streams(Some(4));
                await_streams(from, 4);
                from.send(&large, None).unwrap();
                assert!(receiver.join().unwrap().bytes[..] == large);
            });
        }
    }
}

#[test]
fn titin_chooses_again_when_it_may() {
    let _watchdog = Watchdog::start();
    for medium in MEDIA {
        let (here, there, _listener) = pair(medium, &with_streams(Some(2)));
        here.set_streams(Some(7));
        await_streams(&here, 7);
        here.set_streams(Some(3));
        assert_eq!(here.streams(), 3);
        here.set_streams(None);
        assert_eq!(here.streams(), 7);
        // What the other end sends is its own affair.
        assert_eq!(there.streams(), 2);
    }
}

#[test]
fn an_end_for_which_titin_chooses_sends_by_what_the_other_one_has_opened() {
    let _watchdog = Watchdog::start();
    for medium in MEDIA {
        for is_back in [false, true] {
            let (here, there, _listener) = &pair(medium, &with_streams(None));
            let (one, other) = match is_back {
                true => (there, here),
                false => (here, there),
            };
            one.set_streams(Some(9));
            await_streams(one, 9);
            await_streams(other, 9);
        }
    }
}

#[test]
fn streams_that_join_share_the_pacing() {
    let _watchdog = Watchdog::start();
    let paced = PathSettings {
        streams: Some(1),
        pacing: Some(40_000_000),
        ..PathSettings::default()
    };
    for medium in MEDIA {
        let (here, there, _listener) = &pair(medium, &paced);
        here.set_streams(Some(8));
        await_streams(here, 8);
        let bytes = vec![1; 40 << 20];
        let begun = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| there.receive(None).unwrap());
            here.send(&bytes, None).unwrap();
            here.flush(None).unwrap();
        });
        let rate = bytes.len() as f64 / begun.elapsed().as_secs_f64();
        assert!(rate < 1.3 * 40e6, "{medium} {rate}");
    }
}

#[test]
fn pieces_of_all_sizes_make_whole_messages() {
    let _watchdog = Watchdog::start();
    for medium in MEDIA {
        let (here, there, _listener) = &pair(medium, &with_streams(Some(3)));
        for piece in [Some(1 << 10), Some(5_003), Some(1 << 20), None] {
            here.set_piece(piece);
            assert_eq!(here.statistics().piece, piece);
            assert_eq!(there.statistics().piece, None);
            thread::scope(|scope| {
                scope.spawn(|| here.send(&message(0), None).unwrap());
                assert!(there.receive(None).unwrap().bytes[..] == message(0));
            });
        }
    }
}

#[test]
fn streams_come_and_go_while_the_line_is_cut() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let line = Relay::start(listener.address());
    let place = line.address().to_string().replacen("tcp:", "session:", 1);
    let addresses = parse_addresses(&place).unwrap();
    let here = &Path::open(&addresses, "mesh", &key, &with_streams(Some(1))).unwrap();
    let there = &listener.accept(None).unwrap();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
                line.reset_all();
            }
        });
        for (path, factor) in [(here, 3), (there, 5)] {
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    path.set_streams(Some(1 + factor * number % 8));
                    thread::sleep(Duration::from_millis(17));
                }
            });
        }
        let flows = [(here, there), (there, here)].map(|(from, to)| {
            scope.spawn(move || {
                for number in 0..40 {
                    from.send(&message(number), None).unwrap();
                }
                from.send(&[], None).unwrap();
            });
            scope.spawn(move || receive_all(to, &AtomicUsize::new(0)))
        });
        let ended = flows.map(|flow| flow.join());
        is_over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|flow| flow.unwrap());
    });
    for path in [here, there] {
        path.set_streams(Some(4));
        await_streams(path, 4);
    }
    here.send(&message(0), None).unwrap();
    assert!(there.receive(None).unwrap().bytes[..] == message(0));
}
