//! Two programs in one process, and paths between them over loopback.

use std::io::IoSlice;
use std::thread;
use std::time::{Duration, Instant};

use titin_path::{Key, Listener, Path, PathError, PathSettings};
use titin_testkit::Watchdog;
use titin_wire::meta::{Content, Dtype, Layout, StorageOrder};
use titin_wire::path::{BYTES_AHEAD, PART};

const SOON: Option<Duration> = Some(Duration::from_millis(50));

/// A path and its two ends.
struct Pair {
    key: Key,
    here: Path,
    there: Path,
    _listener: Listener,
    _watchdog: Watchdog,
}

fn pair() -> Pair {
    pair_with(&PathSettings::default())
}

fn pair_with(settings: &PathSettings) -> Pair {
    let watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let here = Path::open(&[listener.address()], "mesh", &key, settings).unwrap();
    Pair {
        there: listener.accept(None).unwrap(),
        here,
        key,
        _listener: listener,
        _watchdog: watchdog,
    }
}

/// Bytes that differ from place to place, also by multiples of a part.
fn bytes(length: u64) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

#[test]
fn messages_of_all_sizes_arrive_whole_and_in_order() {
    for streams in [1, 4] {
        let Pair { here, there, .. } = &pair_with(&PathSettings {
            streams: Some(streams),
            ..PathSettings::default()
        });
        let sizes = [0, 1, 63, 4096, PART - 1, PART, PART + 1, 3 * PART + 5, 0, 7];
        for (from, to) in [(here, there), (there, here)] {
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..2 {
                        for size in sizes {
                            from.send(&bytes(size), None).unwrap();
                        }
                    }
                });
                let mut memory = bytes(4 * PART);
                for size in sizes {
                    assert!(to.receive(None).unwrap().bytes[..] == bytes(size));
                }
                for size in sizes {
                    let received = to.receive_into(&mut memory, None).unwrap();
                    assert_eq!(received.length, size);
                    assert!(memory[..size as usize] == bytes(size));
                }
            });
        }
    }
}

#[test]
fn a_message_from_several_places_is_one_message_and_keeps_its_layout() {
    let Pair { here, there, .. } = &pair();
    for rows in [2, 1 << 20] {
        let whole = bytes(rows * 8 * 3);
        let parts: Vec<IoSlice<'_>> = whole
            .chunks(whole.len() / 3 + 1)
            .map(IoSlice::new)
            .collect();
        let layout = Layout::new(Dtype::Float64, StorageOrder::Fortran, [rows, 3]);
        thread::scope(|scope| {
            scope.spawn(|| here.send_parts(&parts, Some(layout.clone()), None).unwrap());
            let received = there.receive(None).unwrap();
            assert_eq!(received.meta.content, Content::Array(layout.clone()));
            assert!(received.bytes[..] == whole);
        });
    }
    let layout = Layout::new(Dtype::Float64, StorageOrder::C, [2]);
    let wrong = here.send_parts(&[IoSlice::new(&[0; 15])], Some(layout), None);
    assert!(matches!(wrong, Err(PathError::Message(_))), "{wrong:?}");
}

#[test]
fn both_ends_hear_of_a_message_without_room_and_the_path_goes_on() {
    let Pair { here, there, .. } = &pair();
    for (length, message) in [(100, 0), (2 * PART + 1, 2)] {
        here.send(&bytes(length), None).unwrap();
        let why = format!("it has {length} bytes, and there is room for 99");
        let small = there.receive_into(&mut [0; 99], None).unwrap_err();
        assert_eq!(small, PathError::Unfit(why.clone()));
        thread::scope(|scope| {
            scope.spawn(|| there.barrier(None));
            let dropped = PathError::Dropped { message, why };
            assert_eq!(here.barrier(None), Err(dropped));
        });
        here.send(b"next", None).unwrap();
        assert_eq!(&there.receive(None).unwrap().bytes[..], b"next");
    }
}

/// Both programs would wait for ever: one for the answer to its message, the other for a message that fits.
#[test]
fn a_waiting_receiver_hears_that_its_message_was_dropped() {
    let Pair { here, there, .. } = &pair();
    let is_told =
        |received: Result<_, PathError>| matches!(received, Err(PathError::Dropped { .. }));
    let mut room = [0; 4];
    for exchanges in [false, true] {
        thread::scope(|scope| {
            let asking = scope.spawn(move || match exchanges {
                true => here.exchange(b"too long", &mut [0; 9], None).map(|_| ()),
                false => here
                    .send(b"too long", None)
                    .and_then(|()| here.receive(None))
                    .map(|_| ()),
            });
            there.receive_into(&mut room, None).unwrap_err();
            assert!(is_told(asking.join().unwrap()));
            there.send(b"next", None).unwrap();
            assert_eq!(&here.receive(None).unwrap().bytes[..], b"next");
        });
    }
}

#[test]
fn a_receiver_whose_time_is_over_loses_nothing() {
    let Pair { here, there, .. } = &pair();
    assert_eq!(
        there.receive(SOON).unwrap_err(),
        PathError::Late {
            what: "a message",
            limit: SOON.unwrap()
        }
    );
    let length = 60 * PART;
    let mut late = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                here.send(&bytes(length), None).unwrap();
            }
        });
        let limit = Some(Duration::from_millis(3));
        let mut memory = vec![0; length as usize];
        while let Err(why) = there.receive_into(&mut memory, limit) {
            assert!(matches!(why, PathError::Late { .. }), "{why}");
            memory.fill(0);
            late += 1;
        }
        assert!(memory == bytes(length));
        let received = loop {
            match there.receive(limit) {
                Ok(message) => break message,
                Err(PathError::Late { .. }) => late += 1,
                Err(why) => panic!("{why}"),
            }
        };
        assert!(received.bytes[..] == bytes(length));
    });
    assert!(late > 2, "{late} calls were late");
}

#[test]
fn a_sender_whose_time_is_over_gives_its_message_up_and_the_path_goes_on() {
    let Pair { here, there, .. } = &pair();
    let late = here.send(&bytes(2 * BYTES_AHEAD), SOON).unwrap_err();
    assert!(matches!(late, PathError::Late { .. }), "{late}");
    let abandoned = there.receive(None).unwrap_err();
    assert!(
        matches!(abandoned, PathError::Abandoned(bytes) if bytes > 0 && bytes <= BYTES_AHEAD),
        "{abandoned}"
    );
    here.send(b"next", None).unwrap();
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"next");
}

#[test]
fn an_exchange_of_more_than_fits_on_the_way_ends() {
    let Pair { here, there, .. } = &pair();
    let (large, small) = (bytes(3 * BYTES_AHEAD / 2), bytes(BYTES_AHEAD + 9));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut memory = vec![0; large.len()];
            let received = there.exchange(&small, &mut memory, None).unwrap();
            assert!(received.length as usize == large.len() && memory == large);
        });
        let mut memory = vec![0; large.len()];
        let received = here.exchange(&large, &mut memory, None).unwrap();
        assert_eq!(received.length as usize, small.len());
        assert!(memory[..small.len()] == small);
    });
}

#[test]
fn a_barrier_waits_for_the_other_end_and_not_for_messages() {
    let Pair { here, there, .. } = &pair();
    here.send(b"first", None).unwrap();
    assert!(matches!(here.barrier(SOON), Err(PathError::Late { .. })));
    there.barrier(None).unwrap();
    here.barrier(None).unwrap();
    assert!(matches!(here.barrier(SOON), Err(PathError::Late { .. })));
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"first");
}

#[test]
fn a_closed_path_has_delivered_all() {
    let Pair { here, there, .. } = pair();
    for _ in 0..10 {
        here.send(&bytes(PART + 1), None).unwrap();
    }
    here.close(None).unwrap();
    for _ in 0..10 {
        assert!(there.receive(None).unwrap().bytes[..] == bytes(PART + 1));
    }
    assert_eq!(there.receive(None).unwrap_err(), PathError::Closed);
    assert_eq!(there.send(b"late", None).unwrap_err(), PathError::Closed);
    assert_eq!(there.barrier(None).unwrap_err(), PathError::Closed);
}

#[test]
fn a_waiting_call_ends_when_the_other_end_goes() {
    let Pair { here, there, .. } = pair();
    let waiting = thread::spawn(move || there.receive(None).unwrap_err());
    drop(here);
    assert_eq!(waiting.join().unwrap(), PathError::Closed);
}

#[test]
fn flush_waits_for_the_receiver() {
    let Pair { here, there, .. } = &pair();
    here.send(b"one", None).unwrap();
    assert!(matches!(here.flush(SOON), Err(PathError::Late { .. })));
    thread::scope(|scope| {
        scope.spawn(|| there.receive(None).unwrap());
        here.flush(None).unwrap();
    });
}

#[test]
fn one_port_serves_many_paths() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let settings = PathSettings::default();
    let paths: Vec<Path> = (0..50)
        .map(|number: u8| {
            let path =
                Path::open(&[listener.address()], &number.to_string(), &key, &settings).unwrap();
            path.send(&[number], None).unwrap();
            path
        })
        .collect();
    for _ in &paths {
        let there = listener.accept(None).unwrap();
        let number = there.receive(None).unwrap().bytes[0];
        assert_eq!(there.name(), number.to_string());
        there.send(&[number + 1], None).unwrap();
        there.close(None).unwrap();
    }
    for (number, path) in paths.iter().enumerate() {
        assert_eq!(
            usize::from(path.receive(None).unwrap().bytes[0]),
            number + 1
        );
    }
}

#[test]
fn a_wrong_key_and_a_closed_port_are_told() {
    let _watchdog = Watchdog::start();
    let settings = PathSettings {
        patience: Duration::from_millis(300),
        ..PathSettings::default()
    };
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let address = listener.address();
    let open = |key: &Key| match Path::open(std::slice::from_ref(&address), "", key, &settings) {
        Err(why @ (PathError::NotOpened(_) | PathError::OtherKey)) => why.to_string(),
        other => panic!("{:?}", other.err()),
    };
    let stranger = open(&Key::random());
    assert!(stranger.contains("another key"), "{stranger}");
    assert!(matches!(listener.accept(SOON), Err(PathError::Late { .. })));
    drop(listener);
    let closed = open(&key);
    assert!(closed.contains(&address.to_string()[4..]), "{closed}");
}

#[test]
fn flush_tells_of_a_message_that_did_not_fit() {
    let Pair { here, there, .. } = &pair();
    for size in [100, 2 * PART] {
        for _ in 0..50 {
            here.send(&bytes(size), None).unwrap();
            here.send(b"next", None).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    there.receive_into(&mut [0; 99], None).unwrap_err();
                    // Parts of the dropped message are taken with the next message.
                    there.receive(None).unwrap();
                });
                let flushed = here.flush(None);
                assert!(
                    matches!(flushed, Err(PathError::Dropped { .. })),
                    "{flushed:?}"
                );
            });
        }
    }
}

#[test]
fn a_call_that_waits_for_its_turn_has_its_time_limit() {
    let Pair { here, there, .. } = &pair();
    thread::scope(|scope| {
        let first = scope.spawn(|| there.receive(None).unwrap().bytes.to_vec());
        // Whichever of the two has the first turn.
        let second = there.receive(SOON);
        assert!(matches!(second, Err(PathError::Late { .. })), "{second:?}");
        here.send(b"one", None).unwrap();
        assert_eq!(first.join().unwrap(), b"one");
    });
}

#[test]
fn an_exchange_whose_sending_fails_keeps_the_received_message() {
    let Pair { here, there, .. } = &pair();
    let much = bytes(BYTES_AHEAD + 2 * PART);
    for size in [5, 3 * PART] {
        thread::scope(|scope| {
            let sent = bytes(size);
            scope.spawn(move || there.send(&sent, None).unwrap());
            let mut memory = vec![0; much.len()];
            let limit = Some(Duration::from_millis(500));
            let late = here.exchange(&much, &mut memory, limit);
            assert!(matches!(late, Err(PathError::Late { .. })), "{late:?}");
            let kept = here.receive(None).unwrap();
            assert!(kept.length == size && kept.bytes[..] == bytes(size));
            let given_up = there.receive(None);
            assert!(
                matches!(given_up, Err(PathError::Abandoned(_))),
                "{given_up:?}"
            );
        });
    }
}

#[test]
fn a_barrier_whose_time_is_over_is_come_to_by_the_next_call() {
    let Pair { here, there, .. } = &pair();
    for _ in 0..3 {
        assert!(matches!(here.barrier(SOON), Err(PathError::Late { .. })));
        thread::scope(|scope| {
            scope.spawn(|| there.barrier(None).unwrap());
            here.barrier(None).unwrap();
        });
    }
}

#[test]
fn a_dropped_message_holds_nobody_up() {
    let Pair { here, there, .. } = &pair();
    let much = bytes(BYTES_AHEAD + 4 * PART);
    thread::scope(|scope| {
        let sent = scope.spawn(|| here.send(&much, None));
        let unfit = there.receive_into(&mut [0; 99], None).unwrap_err();
        assert!(matches!(unfit, PathError::Unfit(_)), "{unfit}");
        let dropped = sent.join().unwrap();
        assert!(
            matches!(dropped, Err(PathError::Dropped { message: 0, .. })),
            "{dropped:?}"
        );
    });
    here.send(b"next", None).unwrap();
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"next");
}

#[test]
fn messages_that_nobody_has_received_are_told_at_the_end() {
    for (size, is_read) in [(100, false), (100, true), (2 * PART, false)] {
        let Pair { here, there, .. } = pair();
        here.send(&bytes(size), None).unwrap();
        if is_read {
            there.receive(None).unwrap();
        }
        thread::scope(|scope| {
            let closed = scope.spawn(move || there.close(None));
            let flushed = here.flush(None);
            assert_eq!(flushed.is_ok(), is_read, "{flushed:?}");
            closed.join().unwrap().unwrap();
        });
        let end = here.close(None);
        assert_eq!(
            end,
            if is_read {
                Ok(())
            } else {
                Err(PathError::Closed)
            }
        );
    }
    let Pair { here, there, .. } = pair();
    here.send(&bytes(100), None).unwrap();
    there.receive_into(&mut [0; 99], None).unwrap_err();
    let end = here.close(None);
    assert!(matches!(end, Err(PathError::Dropped { .. })), "{end:?}");
}

#[test]
fn paths_over_ipv6() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("[::1]:0", &key).unwrap();
    let place = listener.place();
    assert!(place.starts_with("[::1]:"), "{place}");
    let addresses = titin_path::parse_addresses(&place).unwrap();
    let here = Path::open(&addresses, "six", &key, &PathSettings::default()).unwrap();
    let there = listener.accept(None).unwrap();
    here.send(b"six", None).unwrap();
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"six");
}

#[test]
fn a_dropped_listener_frees_its_port_and_its_paths_live_on() {
    let Pair {
        key,
        here,
        there,
        _listener: listener,
        _watchdog,
    } = pair();
    let place = listener.place();
    let settings = PathSettings {
        patience: Duration::from_secs(20),
        ..PathSettings::default()
    };
    // Nobody accepts this one.
    let unwanted = Path::open(&[listener.address()], "unwanted", &key, &settings);
    drop(listener);
    let ended = unwanted.map(|path| path.receive(None).unwrap_err());
    assert!(ended.is_ok(), "{ended:?}");
    let key = Key::random();
    let again = loop {
        // The reactor closes the socket in a moment.
        if let Ok(again) = Listener::start(&place, &key) {
            break again;
        }
    };
    drop(Path::open(&[again.address()], "new", &key, &settings).unwrap());
    here.send(b"on", None).unwrap();
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"on");
}

#[test]
fn opening_waits_for_the_program_that_listens() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    // The port is free afterwards.
    let address = Listener::start("127.0.0.1:0", &key).unwrap().address();
    thread::scope(|scope| {
        let forever = PathSettings {
            patience: Duration::MAX,
            ..PathSettings::default()
        };
        let (addresses, key) = ([address.clone()], &key);
        let opened = scope.spawn(move || Path::open(&addresses, "early", key, &forever).unwrap());
        thread::sleep(Duration::from_millis(300));
        let listener = Listener::start(&address.to_string()[4..], key).unwrap();
        let there = listener.accept(None).unwrap();
        assert_eq!(there.name(), "early");
        drop(opened.join().unwrap());
    });
}

#[test]
fn a_port_that_is_in_use_is_told() {
    let _watchdog = Watchdog::start();
    let listener = Listener::start("127.0.0.1:0", &Key::random()).unwrap();
    let place = listener.address().to_string()[4..].to_owned();
    let refused = Listener::start(&place, &Key::random())
        .err()
        .unwrap()
        .to_string();
    assert!(
        refused.contains(&place) && refused.contains("in use"),
        "{refused}"
    );
}

#[test]
fn a_path_counts_what_it_carries() {
    for streams in [1, 3] {
        let Pair { here, there, .. } = &pair_with(&PathSettings {
            streams: Some(streams),
            ..PathSettings::default()
        });
        here.send(&bytes(5), None).unwrap();
        there.receive(None).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| here.send(&bytes(2 * PART + 1), None).unwrap());
            there.receive(None).unwrap();
        });
        assert!(there.receive(SOON).is_err());
        let (sender, receiver) = (here.statistics(), there.statistics());
        assert_eq!((sender.messages_sent, sender.bytes_sent), (2, 2 * PART + 6));
        assert_eq!((sender.messages_received, sender.bytes_received), (0, 0));
        assert_eq!(
            (receiver.messages_received, receiver.bytes_received),
            (2, 2 * PART + 6)
        );
        assert_eq!((receiver.messages_sent, receiver.bytes_sent), (0, 0));
        assert!(
            receiver.waited >= SOON.unwrap() / 2 && receiver.time >= receiver.waited,
            "{receiver:?}"
        );
        assert!(sender.waited < SOON.unwrap(), "{sender:?}");
        assert!(sender.round_trip.unwrap() > Duration::ZERO);
        assert!(sender.retransmissions.is_some());
    }
}

#[test]
fn a_path_is_paced_while_it_carries_messages() {
    for streams in [1, 4] {
        let Pair { here, there, .. } = &pair_with(&PathSettings {
            streams: Some(streams),
            ..PathSettings::default()
        });
        assert_eq!(here.statistics().pacing, None);
        // The kernel lets a burst go at once.
        let (rate, length) = (20_000_000, 30_000_000);
        here.set_pacing(Some(rate));
        let begun = Instant::now();
        let send = here.post_send(bytes(length), None);
        assert_eq!(there.receive(None).unwrap().length, length);
        let paced = begun.elapsed();
        assert!(
            paced >= Duration::from_millis(700),
            "{streams} streams: {paced:?}"
        );
        send.wait(None).unwrap();
        here.set_pacing(None);
        assert_eq!(here.statistics().pacing, None);
        here.set_buffers(Some(40_000), None);
        assert_eq!(here.statistics().buffers.unwrap()[0], 80_000);
    }
}
