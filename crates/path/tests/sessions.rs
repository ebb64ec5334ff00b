//! Paths by sessions, as to another host: encrypted, and unharmed by cuts of the line.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use titin_path::{Key, Listener, Path, PathError, PathSettings, parse_addresses};
use titin_testkit::{Relay, Watchdog};
use titin_transport::LinkError;
use titin_wire::Address;
use titin_wire::path::PART;

/// A path over a line that can be cut, and its two ends.
struct Pair {
    here: Path,
    there: Path,
    line: Relay,
    key: Key,
    listener: Listener,
    _watchdog: Watchdog,
}

fn session(to: &Address) -> Vec<Address> {
    let place = to.to_string();
    parse_addresses(&place.replacen("tcp:", "session:", 1)).unwrap()
}

fn pair(settings: &PathSettings) -> Pair {
    let watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let line = Relay::start(listener.address());
    let here = Path::open(&session(&line.address()), "mesh", &key, settings).unwrap();
    Pair {
        there: listener.accept(None).unwrap(),
        here,
        line,
        key,
        listener,
        _watchdog: watchdog,
    }
}

fn with_streams(streams: u32) -> PathSettings {
    PathSettings {
        streams: Some(streams),
        ..PathSettings::default()
    }
}

/// Bytes that differ from message to message, and from place to place, also by multiples of a part.
fn bytes(number: u64, length: u64) -> Vec<u8> {
    (0..length)
        .map(|place| ((place + number) % 251) as u8)
        .collect()
}

#[test]
fn messages_of_all_sizes_outlive_cuts_both_ways() {
    let sizes = [0, 1, 4096, PART - 1, PART + 1, 5 * PART + 3, 63];
    for streams in [1, 4] {
        let Pair {
            here, there, line, ..
        } = &pair(&with_streams(streams));
        let (is_over, cuts) = (&AtomicBool::new(false), &AtomicUsize::new(0));
        thread::scope(|scope| {
            // Also if a thread of the test fails.
            let _over = SetAtEnd(is_over);
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(150));
                    let had_connections = line.reset_all() > 0;
                    cuts.fetch_add(usize::from(had_connections), Ordering::Relaxed);
                }
            });
            let rounds: Vec<_> = [(here, there), (there, here)]
                .into_iter()
                .map(|(from, to)| {
                    scope.spawn(move || {
                        for number in 0..40 {
                            from.send(&bytes(number, sizes[number as usize % 7]), None)
                                .unwrap();
                        }
                        from.flush(None).unwrap();
                    });
                    scope.spawn(move || {
                        for number in 0..40 {
                            let received = to.receive(None).unwrap();
                            assert!(
                                received.bytes[..] == bytes(number, sizes[number as usize % 7]),
                                "message {number}"
                            );
                        }
                    })
                })
                .collect();
            rounds.into_iter().for_each(|round| round.join().unwrap());
        });
        let cuts = cuts.load(Ordering::Relaxed);
        assert!(cuts > 1, "{cuts} cuts");
        here.barrier_both(there);
    }
}

/// Sets a mark when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A barrier of both ends, which are in one process.
trait BarrierBoth {
    fn barrier_both(&self, other: &Path);
}

impl BarrierBoth for Path {
    fn barrier_both(&self, other: &Path) {
        thread::scope(|scope| {
            scope.spawn(|| self.barrier(None).unwrap());
            other.barrier(None).unwrap();
        });
    }
}

#[test]
fn a_line_that_is_away_for_a_while_costs_time_and_nothing_else() {
    let Pair {
        here, there, line, ..
    } = pair(&PathSettings::default());
    line.break_line();
    here.send(b"during the cut", None).unwrap();
    assert!(there.receive(Some(Duration::from_millis(200))).is_err());
    line.mend();
    assert_eq!(there.receive(None).unwrap().bytes[..], *b"during the cut");
    here.close(None).unwrap();
    assert!(matches!(there.receive(None), Err(PathError::Closed)));
}

#[test]
fn the_user_says_how_long_a_line_may_be_away() {
    let Pair {
        here, there, line, ..
    } = pair(&PathSettings {
        outage: Duration::from_millis(700),
        ..with_streams(3)
    });
    let begun = Instant::now();
    line.break_line();
    for end in [&here, &there] {
        let why = end.receive(None).unwrap_err().to_string();
        assert!(why.contains("for 0.7 s (`outage`)"), "{why}");
    }
    assert!(begun.elapsed() >= Duration::from_millis(700));
}

#[test]
fn a_host_where_nobody_listens_any_more_is_told_soon() {
    let pair = pair(&PathSettings::default());
    pair.line.admit(0);
    pair.line.reset_all();
    let why = pair.here.receive(None).unwrap_err();
    assert!(
        matches!(why, PathError::Lost(LinkError::Closed)),
        "a reason of its own: {why}"
    );
}

#[test]
fn what_is_under_way_is_encrypted() {
    let Pair {
        here, there, line, ..
    } = pair(&with_streams(1));
    let secret = b"only the two ends can read this";
    here.send(secret, None).unwrap();
    there.receive(None).unwrap();
    assert!(!line.has_seen(secret));
    // The same by a plain connection.
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let line = Relay::start(listener.address());
    let plain = Path::open(&[line.address()], "", &key, &PathSettings::default()).unwrap();
    plain.send(secret, None).unwrap();
    listener.accept(None).unwrap().receive(None).unwrap();
    assert!(line.has_seen(secret));
}

#[test]
fn another_key_is_told_at_once() {
    let pair = pair(&PathSettings::default());
    let other = Path::open(
        &session(&pair.line.address()),
        "",
        &Key::random(),
        &PathSettings::default(),
    );
    let why = other.err().unwrap();
    assert!(matches!(why, PathError::OtherKey), "{why}");
}

#[test]
fn the_first_of_several_places_that_answers_serves() {
    let pair = pair(&PathSettings::default());
    let place = pair.line.address().to_string();
    let place = place.replacen("tcp:", "session:", 1);
    let addresses = parse_addresses(&format!("session:127.0.0.1:1 {place}")).unwrap();
    let path = Path::open(&addresses, "second", &pair.key, &PathSettings::default()).unwrap();
    assert_eq!(pair.listener.accept(None).unwrap().name(), "second");
    path.close(None).unwrap();
}

#[test]
fn another_program_at_an_address_is_passed_over() {
    let _watchdog = Watchdog::start();
    let (key, other_key) = (Key::random(), Key::random());
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let line = Relay::start(listener.address());
    // One without the key comes first when the path is opened; one with the key is there after the cut.
    let stranger = Listener::start("127.0.0.1:0", &other_key).unwrap();
    let twin = Listener::start("127.0.0.1:0", &key).unwrap();
    let places = [stranger.address(), line.address(), twin.address()];
    let addresses = places.each_ref().map(session).concat();
    let path = Path::open(&addresses, "", &key, &with_streams(1)).unwrap();
    let other = listener.accept(None).unwrap();
    line.break_line();
    path.send(b"again", None).unwrap();
    assert!(matches!(
        path.receive(Some(Duration::from_millis(1500))),
        Err(PathError::Late { .. })
    ));
    line.mend();
    assert_eq!(other.receive(None).unwrap().bytes[..], *b"again");
    let all_strangers = [&stranger, &stranger].map(|listener| session(&listener.address()));
    let refused = Path::open(&all_strangers.concat(), "", &key, &with_streams(1));
    assert!(matches!(refused.err(), Some(PathError::OtherKey)));
}

#[test]
fn an_address_that_never_answers_keeps_no_other_from_its_turn() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let silent = Relay::start_reluctant(listener.address(), 0, usize::MAX);
    let line = Relay::start(listener.address());
    let addresses = [&silent, &line]
        .map(|relay| session(&relay.address()))
        .concat();
    let settings = PathSettings {
        patience: Duration::from_secs(15),
        ..with_streams(1)
    };
    let path = Path::open(&addresses, "", &key, &settings).unwrap();
    let other = listener.accept(None).unwrap();
    // After a cut the address that has served is the first.
    line.reset_all();
    path.send(b"again", None).unwrap();
    assert_eq!(other.receive(None).unwrap().bytes[..], *b"again");
}

#[test]
fn a_host_that_is_not_known_is_told_at_once() {
    let _watchdog = Watchdog::start();
    let addresses = parse_addresses("no-such-host.invalid:4711").unwrap();
    let opened = Path::open(&addresses, "", &Key::random(), &PathSettings::default());
    let why = opened.err().unwrap().to_string();
    assert!(why.contains("no-such-host.invalid:4711"), "{why}");
}

#[test]
fn a_plain_path_is_lost_with_one_of_its_streams() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let line = Relay::start(listener.address());
    let here = Path::open(&[line.address()], "", &key, &with_streams(4)).unwrap();
    let there = listener.accept(None).unwrap();
    line.cut(2);
    for end in [&here, &there] {
        let lost = end.receive(Some(Duration::from_secs(20))).unwrap_err();
        assert!(matches!(lost, PathError::Lost(_)), "{lost}");
    }
}

#[test]
fn opening_waits_for_the_listener_and_says_where_it_has_tried() {
    let _watchdog = Watchdog::start();
    let (key, settings) = (
        Key::random(),
        PathSettings {
            patience: Duration::from_millis(300),
            ..PathSettings::default()
        },
    );
    let addresses = parse_addresses("session:127.0.0.1:1").unwrap();
    let why = Path::open(&addresses, "", &key, &settings).err().unwrap();
    assert!(
        why.to_string().contains("127.0.0.1:1: Connection refused"),
        "{why}"
    );
    let begun = Instant::now();
    let place = Listener::start("127.0.0.1:0", &key).unwrap().place();
    let addresses = parse_addresses(&format!("session:{place}")).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            let listener = Listener::start(&place, &key).unwrap();
            listener.accept(None).unwrap().receive(None).unwrap_err();
        });
        Path::open(&addresses, "", &key, &PathSettings::default()).unwrap();
    });
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[test]
fn an_accepted_path_comes_back_although_its_listener_is_gone() {
    let Pair {
        here,
        there,
        line,
        key,
        listener,
        ..
    } = pair(&PathSettings::default());
    let place = listener.place();
    drop(listener);
    line.reset_all();
    here.send(b"after the cut", None).unwrap();
    assert_eq!(there.receive(None).unwrap().bytes[..], *b"after the cut");

    // Nobody listens, so a new path waits; and the port serves the same program again.
    let addresses = parse_addresses(&format!("session:{place}")).unwrap();
    let settings = PathSettings {
        patience: Duration::from_millis(300),
        ..PathSettings::default()
    };
    let why = Path::open(&addresses, "", &key, &settings).err().unwrap();
    assert!(why.to_string().contains("does not listen"), "{why}");
    let again = Listener::start(&place, &key).unwrap();
    let second = Path::open(&addresses, "second", &key, &settings).unwrap();
    assert_eq!(again.accept(None).unwrap().name(), "second");
    let other = Listener::start(&place, &Key::random()).err().unwrap();
    assert!(other.to_string().contains("in use"), "{other}");

    drop((again, second, here, there));
    let begun = Instant::now();
    while Listener::start(&place, &Key::random()).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the port stays taken"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn figures_pacing_and_buffers_are_those_of_the_line() {
    let Pair { here, there, .. } = pair(&with_streams(1));
    here.send(&[7; 100], None).unwrap();
    there.receive(None).unwrap();
    let figures = here.statistics();
    assert!(figures.round_trip.is_some() && figures.retransmissions.is_some());
    here.set_buffers(Some(3 << 20), Some(2 << 20));
    assert_eq!(here.statistics().buffers, Some([3 << 20, 2 << 20]));
    here.set_buffers(None, Some(5 << 20));
    assert_eq!(here.statistics().buffers, Some([3 << 20, 5 << 20]));

    here.set_pacing(Some(8 << 20));
    assert_eq!(here.statistics().pacing, Some(8 << 20));
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| there.receive(None).unwrap());
        here.send(&bytes(0, 4 << 20), None).unwrap();
        here.flush(None).unwrap();
    });
    assert!(begun.elapsed() > Duration::from_millis(300));
    here.set_pacing(None);
    assert_eq!(here.statistics().pacing, None);
}
