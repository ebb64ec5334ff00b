//! The contract of carriers, which holds on every medium. `titin_testkit::conformance!(Pair::tcp)`
//! makes a test of each function here. One function measures the memory of its process, and so
//! needs a process of its own: `tests/memory.rs` calls it.

#![allow(missing_docs)]

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use titin_transport::{InboxOptions, IncomingMessage, Room};
use titin_wire::frame::PIECE;

use crate::{Inlet, Outlet, Pair, pattern};

/// Makes a test of each case of the suite, on the pairs that the given function makes.
#[macro_export]
macro_rules! conformance {
    ($pair:expr) => {
        $crate::conformance!(
            $pair;
            messages_of_a_conduit_arrive_in_order,
            any_size_arrives_whole,
            a_payload_may_be_in_many_parts,
            heads_and_metadata_arrive_as_sent,
            messages_that_differ_in_one_thing_are_told_apart,
            memory_is_the_callers_again_after_a_send,
            memory_is_the_callers_again_though_the_receiver_is_stalled,
            ten_thousand_messages_can_be_held,
            messages_outlive_what_brought_them,
            the_latest_message_takes_the_place_of_earlier_ones,
            the_latest_message_does_so_before_anybody_receives,
            messages_give_way_only_from_the_number_on_that_is_said,
            one_message_larger_than_the_buffer_fits,
            a_full_buffer_takes_more_as_soon_as_it_can,
            a_full_conduit_leaves_others_free,
            acknowledgements_are_cumulative,
            an_end_comes_behind_all_messages,
            an_end_comes_behind_what_a_stalled_receiver_has_not_taken_in,
            a_receiver_that_is_done_holds_nobody_up,
            a_forgotten_conduit_holds_nobody_up,
            several_may_send_at_once,
            both_ends_may_send_large_messages_at_once,
            what_was_kept_for_a_stalled_receiver_arrives_in_order,
            what_is_posted_waits_for_nobody_and_keeps_its_place,
            messages_may_come_before_there_is_an_instance,
        );
    };
    ($pair:expr; $($case:ident,)*) => {$(
        #[test]
        fn $case() {
            $crate::conformance::$case($pair);
        }
    )*};
}

/// The length of a message that is larger than the buffers of any socket.
const LARGE: usize = 24 << 20;

/// The number of messages in a burst of small messages.
const BURST: u64 = 100_000;

fn limits(messages: u64, bytes: u64) -> InboxOptions {
    InboxOptions { messages, bytes }
}

/// Takes the next message, which must have this number and length.
fn expect(inlet: &Inlet, sequence: u64, length: usize) -> IncomingMessage {
    let message = inlet.receive();
    check(&message, sequence, length);
    message
}

fn send_all(outlet: &Outlet, numbers: Range<u64>, length: impl Fn(u64) -> usize) {
    for number in numbers {
        outlet.send(&pattern(number, length(number)));
    }
}

fn take_all(inlet: &Inlet, numbers: Range<u64>, length: impl Fn(u64) -> usize) {
    for number in numbers {
        expect(inlet, number, length(number));
    }
}

fn check(message: &IncomingMessage, sequence: u64, length: usize) {
    assert_eq!(message.head.sequence, sequence);
    assert_eq!(message.body.len(), length);
    assert!(
        message.body[..] == pattern(sequence, length),
        "message {sequence} is damaged"
    );
}

pub fn messages_of_a_conduit_arrive_in_order(make: fn() -> Pair) {
    let pair = make();
    let conduits: Vec<_> = (1..4).map(|number| pair.conduit(number)).collect();
    let length = |sequence: u64, number: usize| (sequence as usize * 37 * (number + 1)) % 5000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sequence in 0..1000 {
                for (number, (outlet, _)) in conduits.iter().enumerate() {
                    outlet.send(&pattern(sequence, length(sequence, number)));
                }
            }
        });
        for sequence in 0..1000 {
            for (number, (_, inlet)) in conduits.iter().enumerate() {
                expect(inlet, sequence, length(sequence, number));
            }
        }
    });
}

pub fn any_size_arrives_whole(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let sizes = [
        0,
        1,
        63,
        64,
        65,
        65_535,
        65_536,
        PIECE - 1,
        PIECE,
        PIECE + 1,
        3 * PIECE + 17,
        40 << 20,
    ];
    for (sequence, size) in (0..).zip(sizes) {
        outlet.send(&pattern(sequence, size));
        let message = expect(&inlet, sequence, size);
        assert_eq!(
            message
                .body
                .as_ptr()
                .align_offset(if size == 0 { 1 } else { 64 }),
            0
        );
    }
}

pub fn a_payload_may_be_in_many_parts(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    // More parts than one system call takes. Some parts are empty, and parts do not end where
    // pieces end.
    for (sequence, (length, part)) in
        (0..).zip([(1000, 7), (3 * PIECE, PIECE / 3), (2 * PIECE, 4999), (0, 1)])
    {
        let bytes = pattern(sequence, length);
        let mut parts = vec![IoSlice::new(&[])];
        for chunk in bytes.chunks(part) {
            parts.extend([IoSlice::new(chunk), IoSlice::new(&[])]);
        }
        outlet.send_parts(&parts);
        expect(&inlet, sequence, length);
    }
}

pub fn heads_and_metadata_arrive_as_sent(make: fn() -> Pair) {
    use titin_transport::Outgoing;
    use titin_wire::ConduitId;
    use titin_wire::frame::Head;
    use titin_wire::meta::{Codec, Content, Dtype, Layout, Meta, StorageOrder};

    let pair = make();
    let (_, inlet) = pair.conduit(7);
    let mut layout = Layout::new(Dtype::Float64, StorageOrder::Fortran, [3, 0]);
    layout.names = vec!["x".into(), "größe".into()];
    let metas = [
        Meta::default(),
        Meta {
            content: Content::Structure,
            slot: Some((3, 9)),
            ..Meta::default()
        },
        Meta {
            content: Content::Array(layout),
            overlay: 4,
            definition: Some(vec![1; 5000]),
            ..Meta::default()
        },
        Meta {
            content: Content::Structure,
            codings: vec![(Codec::Zstd, 1 << 40)],
            ..Meta::default()
        },
    ];
    for (sequence, meta) in (0..).zip(metas.map(Arc::new)) {
        let head = Head {
            conduit: ConduitId(7),
            source: 1,
            destination: 2,
            tag: 3,
            sequence,
            timestamp: -0.5,
            next_timestamp: (sequence % 2 == 0).then_some(f64::INFINITY),
        };
        pair.left
            .carrier
            .send(&Outgoing::new(head, &meta, &[]))
            .unwrap();
        let message = inlet.receive();
        assert_eq!((message.head, message.meta), (head, meta));
    }
}

/// Sends messages over two conduits. Most messages are like the message before; some differ in one
/// thing: the shape, the tag, the length, a next timestamp, or the conduit. The metadata of all
/// messages has the same length.
pub fn messages_that_differ_in_one_thing_are_told_apart(make: fn() -> Pair) {
    use titin_transport::Outgoing;
    use titin_wire::frame::Head;
    use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};

    let pair = make();
    let conduits = [pair.conduit(7), pair.conduit(8)];
    let array = |shape: [u64; 2]| Meta {
        content: Content::Array(Layout::new(Dtype::Float64, StorageOrder::C, shape)),
        ..Meta::default()
    };
    let metas = [[2, 3], [3, 2], [6, 2]].map(|shape| Arc::new(array(shape)));
    let (mut meta, mut tag, mut next, mut at) = (0, 0, None, 0);
    let mut sequences = [0, 0];
    for number in 0..2000_u64 {
        // About half of the messages are like the message before.
        let drawn = pattern(number, 2);
        match drawn[0] % 16 {
            0..4 => meta = usize::from(drawn[1]) % metas.len(),
            4 => tag = 1 - tag,
            5 => next = next.is_none().then_some(0.5),
            6 => at = 1 - at,
            _ => {}
        }
        let (outlet, inlet) = &conduits[at];
        let head = Head {
            tag,
            next_timestamp: next.map(|next: f64| next + number as f64),
            ..Head::new(outlet.conduit, sequences[at], number as f64, None)
        };
        sequences[at] += 1;
        let Content::Array(layout) = &metas[meta].content else {
            unreachable!("all are arrays")
        };
        let bytes = pattern(number, layout.bytes().expect("few") as usize);
        outlet.claim(bytes.len() as u64);
        let parts = [IoSlice::new(&bytes)];
        // Every seventh message has equal metadata at another place in memory.
        let copy = Arc::new((*metas[meta]).clone());
        let meta = if number % 7 == 0 { &copy } else { &metas[meta] };
        pair.left
            .carrier
            .send(&Outgoing::new(head, meta, &parts))
            .unwrap();
        let message = inlet.receive_directly();
        assert_eq!((message.head, &message.meta), (head, meta));
        assert!(message.body[..] == bytes, "message {number} is damaged");
    }
}

pub fn memory_is_the_callers_again_after_a_send(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    for (sequence, length) in (0..).zip([1, 1000, 100_000, LARGE]) {
        let mut bytes = pattern(sequence, length);
        outlet.send(&bytes);
        bytes.fill(0xee);
        expect(&inlet, sequence, length);
    }
}

pub fn memory_is_the_callers_again_though_the_receiver_is_stalled(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let stall = pair.stall();
    // Each stream has buffers of its own, which the message must exceed together.
    let large = LARGE.max(pair.left.carrier.streams() * (8 << 20));
    let lengths = [1000, large, 1, 100_000, 3 * PIECE];
    for (sequence, length) in (0..).zip(lengths) {
        let mut bytes = pattern(sequence, length);
        let sent = outlet.send(&bytes);
        bytes.fill(0xee);
        assert!(length < large || sent.copied > 0, "it cannot have left");
    }
    drop(stall);
    for (sequence, length) in (0..).zip(lengths) {
        expect(&inlet, sequence, length);
    }
}

pub fn ten_thousand_messages_can_be_held(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let length = |sequence: u64| 100 + sequence as usize % 3000;
    let held: Vec<IncomingMessage> = std::thread::scope(|scope| {
        scope.spawn(|| send_all(&outlet, 0..10_000, length));
        (0..10_000).map(|_| inlet.receive()).collect()
    });
    for (sequence, message) in (0..).zip(&held) {
        check(message, sequence, length(sequence));
    }
}

pub fn messages_outlive_what_brought_them(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let lengths = [0, 10, 100_000, 2 * PIECE];
    for (sequence, length) in (0..).zip(lengths) {
        outlet.send(&pattern(sequence, length));
    }
    inlet.wait(|inbox| inbox.received() == 4);
    let taken = inlet.receive();
    drop((outlet, pair));
    check(&taken, 0, 0);
    for (sequence, length) in (0..).zip(lengths).skip(1) {
        check(
            &inlet.inbox.take().expect("it had arrived"),
            sequence,
            length,
        );
    }
    assert!(!inlet.inbox.exhausted(), "its end has never come");
}

pub fn the_latest_message_takes_the_place_of_earlier_ones(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.superseding(1);
    for sequence in 0..BURST {
        outlet.send(&sequence.to_le_bytes());
        assert!(inlet.inbox.waiting() <= 1);
    }
    inlet.wait(|inbox| inbox.received() == BURST);
    let last = inlet.receive();
    assert_eq!(
        (last.head.sequence, &last.body[..]),
        (BURST - 1, &(BURST - 1).to_le_bytes()[..])
    );
    assert!(inlet.inbox.take().is_none());
    outlet.end();
    outlet.wait(|window| window.settled());
    assert!(inlet.inbox.exhausted());
}

pub fn the_latest_message_does_so_before_anybody_receives(make: fn() -> Pair) {
    let pair = make();
    let outlet = pair.left.superseding(1);
    let inbox = pair.right.conduits.inbox(outlet.conduit);
    for sequence in 0..1000u64 {
        outlet.send(&sequence.to_le_bytes());
        assert!(inbox.waiting() <= 1);
    }
    let inlet = pair.right.inlet(1, InboxOptions::default());
    inlet.wait(|inbox| inbox.received() == 1000);
    assert_eq!(inlet.receive().head.sequence, 999);
}

pub fn messages_give_way_only_from_the_number_on_that_is_said(make: fn() -> Pair) {
    for (stalled, length) in [(false, 8), (true, LARGE)] {
        let pair = make();
        let (mut outlet, inlet) = pair.superseding(1);
        let stall = stalled.then(|| pair.stall());
        for (sequence, first) in [
            (0, None),
            (1, Some(0)),
            (2, Some(0)),
            (3, None),
            (4, Some(3)),
        ] {
            outlet.supersedes = first;
            outlet.send(&pattern(sequence, length));
        }
        drop(stall);
        inlet.wait(|inbox| inbox.received() == 5);
        check(&inlet.receive(), 2, length);
        check(&inlet.receive(), 4, length);
        assert!(inlet.inbox.take().is_none());
        outlet.end();
        outlet.wait(|window| window.settled());
    }
}

/// Must run alone in its process, because the memory of the process is measured.
pub fn the_latest_message_does_so_while_the_receiver_is_stalled(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    // All messages together would fill the machine's memory.
    let bytes = pattern(0, 1 << 20);
    for sequence in 0..BURST {
        let length = if sequence < 100 {
            bytes.len()
        } else {
            bytes.len() * usize::from(sequence % 100 == 0)
        };
        outlet.send(&bytes[..length]);
    }
    assert!(resident() < 1 << 30, "{} MiB are held", resident() >> 20);
    outlet.end();
    drop(stall);
    inlet.wait(|inbox| inbox.ended());
    assert_eq!(inlet.receive().head.sequence, BURST - 1);
    assert!(inlet.inbox.exhausted());
}

pub fn one_message_larger_than_the_buffer_fits(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.limited(1, limits(64, 1000));
    for sequence in 0..3 {
        outlet.send(&pattern(sequence, 1 << 20));
        assert_eq!(outlet.window.claim(0), Room::Full);
        expect(&inlet, sequence, 1 << 20);
    }
}

/// The receiver has taken every message, but these were so small that the receiver has not
/// acknowledged them yet. The next message is large.
pub fn a_full_buffer_takes_more_as_soon_as_it_can(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.limited(1, limits(64, 1000));
    outlet.send(&pattern(0, 10));
    expect(&inlet, 0, 10);
    assert_eq!(outlet.window.claim(995), Room::Full);
    outlet.send(&pattern(1, 995));
    // The other order: the receiver takes the message only when the sender waits already.
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| outlet.send(&pattern(2, 10)));
        expect(&inlet, 1, 995);
        sender.join().unwrap();
        expect(&inlet, 2, 10);
    });
}

pub fn a_full_conduit_leaves_others_free(make: fn() -> Pair) {
    let pair = make();
    let (blocked, unread) = pair.limited(1, limits(2, 1 << 30));
    let (free, read) = pair.conduit(2);
    blocked.send(&pattern(0, LARGE));
    blocked.send(&pattern(1, LARGE));
    assert_eq!(blocked.window.claim(1), Room::Full);
    for sequence in 0..1000 {
        free.send(&pattern(sequence, 100));
        expect(&read, sequence, 100);
    }
    assert_eq!(blocked.window.claim(1), Room::Full);
    expect(&unread, 0, LARGE);
    blocked.send(&pattern(2, 1));
    expect(&unread, 1, LARGE);
    expect(&unread, 2, 1);
}

pub fn acknowledgements_are_cumulative(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.limited(1, limits(16, 1 << 30));
    send_all(&outlet, 0..16, |_| 100);
    assert_eq!(outlet.window.ahead(), (16, 1600));
    for sequence in 0..16 {
        expect(&inlet, sequence, 100);
    }
    // The receiver acknowledges every fourth message.
    outlet.wait(|window| window.ahead() == (0, 0));
    send_all(&outlet, 16..19, |_| 100);
    take_all(&inlet, 16..19, |_| 100);
    assert_eq!(outlet.window.ahead(), (3, 300));
    inlet.inbox.acknowledge_now();
    outlet.wait(|window| window.ahead() == (0, 0));
}

pub fn an_end_comes_behind_all_messages(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let (empty, nothing) = pair.conduit(2);
    send_all(&outlet, 0..3, |_| 2 * PIECE);
    outlet.end();
    empty.end();
    outlet.wait(|window| window.settled());
    for sequence in 0..3 {
        assert!(inlet.inbox.ended() && !inlet.inbox.exhausted());
        expect(&inlet, sequence, 2 * PIECE);
    }
    assert!(inlet.inbox.exhausted() && inlet.inbox.take().is_none());
    nothing.wait(|inbox| inbox.exhausted());
}

pub fn an_end_comes_behind_what_a_stalled_receiver_has_not_taken_in(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let stall = pair.stall();
    send_all(&outlet, 0..2, |_| LARGE);
    outlet.end();
    drop(stall);
    outlet.wait(|window| window.settled());
    expect(&inlet, 0, LARGE);
    expect(&inlet, 1, LARGE);
    assert!(inlet.inbox.exhausted());
}

pub fn a_receiver_that_is_done_holds_nobody_up(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.limited(1, limits(4, 1 << 30));
    outlet.send(&pattern(0, 100));
    inlet.inbox.discard();
    for sequence in 1..1000 {
        outlet.send(&pattern(sequence, 100));
    }
    outlet.end();
    outlet.wait(|window| window.settled() && window.ahead() == (0, 0));
    assert_eq!(inlet.inbox.waiting(), 0);
}

pub fn a_forgotten_conduit_holds_nobody_up(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.limited(1, limits(4, 1 << 30));
    outlet.send(&pattern(0, 100));
    expect(&inlet, 0, 100);
    pair.right.conduits.forget(outlet.conduit, true);
    for sequence in 1..1000 {
        outlet.send(&pattern(sequence, 100));
    }
    outlet.end();
    outlet.wait(|window| window.settled());
    assert_eq!(pair.right.conduits.inbox(outlet.conduit).waiting(), 0);
}

pub fn several_may_send_at_once(make: fn() -> Pair) {
    let pair = make();
    let conduits: Vec<_> = (0..6)
        .map(|number| pair.limited(number, limits(8, 64 << 20)))
        .collect();
    let length = |sequence: u64, number: u64| match (sequence + number) % 10 {
        0 => 2 * PIECE + sequence as usize,
        1 => 100_000,
        other => other as usize * 50,
    };
    std::thread::scope(|scope| {
        for ((outlet, inlet), number) in conduits.iter().zip(0..) {
            scope.spawn(move || send_all(outlet, 0..100, |s| length(s, number)));
            scope.spawn(move || take_all(inlet, 0..100, |s| length(s, number)));
        }
    });
}

pub fn both_ends_may_send_large_messages_at_once(make: fn() -> Pair) {
    let pair = make();
    let options = limits(2, 1 << 30);
    let (there, back) = (
        (pair.left.outlet(1, options), pair.right.inlet(1, options)),
        (pair.right.outlet(2, options), pair.left.inlet(2, options)),
    );
    // Each end sends first and receives then. If a send waited for the other end to receive, both
    // ends would wait for ever.
    std::thread::scope(|scope| {
        for (outlet, inlet) in [(&there.0, &back.1), (&back.0, &there.1)] {
            scope.spawn(move || {
                for sequence in 0..5 {
                    outlet.send(&pattern(sequence, LARGE));
                    expect(inlet, sequence, LARGE);
                }
            });
        }
    });
}

pub fn what_was_kept_for_a_stalled_receiver_arrives_in_order(make: fn() -> Pair) {
    let pair = make();
    let conduits: Vec<_> = (0..3).map(|number| pair.conduit(number)).collect();
    let length = |sequence: u64| {
        if sequence.is_multiple_of(7) {
            3 * PIECE + 1
        } else {
            sequence as usize * 100
        }
    };
    let stall = pair.stall();
    for sequence in 0..20 {
        conduits
            .iter()
            .for_each(|(outlet, _)| send_all(outlet, sequence..sequence + 1, length));
    }
    drop(stall);
    // Further messages come while the receiver takes in the messages that were kept.
    for sequence in 20..40 {
        conduits
            .iter()
            .for_each(|(outlet, _)| send_all(outlet, sequence..sequence + 1, length));
    }
    for (_, inlet) in &conduits {
        take_all(inlet, 0..40, length);
    }
}

pub fn what_is_posted_waits_for_nobody_and_keeps_its_place(make: fn() -> Pair) {
    let pair = make();
    let (outlet, inlet) = pair.conduit(1);
    let lengths = [LARGE, 0, 100, LARGE, 3 * PIECE, 1, LARGE, 70_000];
    let stall = pair.stall();
    for (sequence, length) in (0..).zip(lengths) {
        let bytes = pattern(sequence, length);
        match sequence % 3 {
            2 => drop(outlet.send(&bytes)),
            // A posted message is read from where it lies, so nothing is copied although the
            // receiver does not read.
            _ => {
                let sent = outlet.post(&bytes);
                assert!(
                    sent.copied == 0 || sent.by_socket,
                    "message {sequence}: {sent:?}"
                );
            }
        }
    }
    drop(stall);
    for (sequence, length) in (0..).zip(lengths) {
        expect(&inlet, sequence, length);
    }
}

pub fn messages_may_come_before_there_is_an_instance(make: fn() -> Pair) {
    let pair = make();
    let outlet = pair.left.outlet(1, limits(4, 1 << 30));
    send_all(&outlet, 0..4, |_| 10);
    let early = pair.right.conduits.inbox(outlet.conduit);
    while early.received() < 4 {
        pair.right.carrier.look();
        std::thread::yield_now();
    }
    let rings = pair.right.bell.rings();
    let inlet = pair.right.inlet(1, limits(4, 1 << 30));
    assert_ne!(pair.right.bell.rings(), rings, "who waits already is told");
    assert!(Arc::ptr_eq(&early, &inlet.inbox));
    take_all(&inlet, 0..4, |_| 10);
    outlet.send(&pattern(4, 10));
    expect(&inlet, 4, 10);
}

/// The number of bytes of memory that this process uses.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number of pages");
    pages * rustix::param::page_size()
}
