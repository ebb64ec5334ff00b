//! The contract of carriers through shared memory, and the cases of this medium alone.

use std::io::IoSlice;
use std::sync::Arc;

use titin_testkit::{Host, Inlet, Outlet, Pair, PairEnd, Watchdog, conformance, pattern};
use titin_transport::{Carrier, InboxOptions, IncomingMessage, Outgoing, SharedBuffer, Shortage};
use titin_wire::Secret;
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};

conformance!(Pair::shm);

/// The contract when no payload finds a block. Every message that does not fit the ring goes by the
/// socket, in its turn.
mod without_blocks {
    use titin_testkit::{Pair, conformance};

    fn pair() -> Pair {
        Pair::shm_with_ceiling(0)
    }

    conformance!(pair);
}

/// The contract when some payloads find a block and others do not.
mod with_few_blocks {
    use titin_testkit::{Pair, conformance};

    fn pair() -> Pair {
        Pair::shm_with_ceiling(2 << 20)
    }

    conformance!(pair);
}

/// Lengths of each kind in turn: a message in the ring, in a block, and in a large block.
fn length(step: u64) -> usize {
    [100, 3_000, 70_000, 0, 300_000][step as usize % 5]
}

fn no_limits() -> InboxOptions {
    InboxOptions {
        messages: u64::MAX,
        bytes: u64::MAX,
    }
}

#[test]
fn what_goes_by_the_socket_keeps_its_place() {
    let pair = Pair::shm_with_ceiling(500_000);
    let (outlet, inlet) = pair.limited(1, no_limits());
    let (mut held, mut by_socket) = (Vec::new(), 0);
    for step in 0..500 {
        let bytes = pattern(step, length(step));
        let sent = outlet.send(&bytes);
        assert!(sent.copied as usize >= bytes.len() || bytes.len() <= 2048);
        by_socket += usize::from(sent.by_socket);
        if step % 7 == 0 {
            held.push(inlet.receive());
        }
    }
    while held.len() < 500 {
        held.push(inlet.receive());
    }
    assert!(0 < by_socket && by_socket < 500);
    let short = || pair.left.conduits.ran_out();
    assert_eq!([short(), short()], [Some(Shortage::Ceiling(500_000)), None]);
    assert!(
        (0..)
            .zip(&held)
            .all(|(step, message)| message.body[..] == pattern(step, length(step))[..])
    );
}

#[test]
fn views_are_let_go_in_any_order_and_their_memory_is_used_again() {
    let pair = Pair::shm();
    let (outlet, inlet) = pair.conduit(1);
    let mut held: Vec<(u64, IncomingMessage)> = Vec::new();
    let mut places = std::collections::BTreeSet::new();
    let mut state = 1u64;
    for step in 0..20_000 {
        outlet.send(&pattern(step, 3_000));
        let message = inlet.receive();
        places.insert(message.body.as_ptr() as usize);
        held.push((step, message));
        while held.len() > 2_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (step, message) = held.swap_remove((state >> 33) as usize % held.len());
            assert!(message.body[..] == pattern(step, 3_000)[..]);
        }
    }
    assert!(
        held.iter()
            .all(|(step, message)| message.body[..] == pattern(*step, 3_000)[..])
    );
    assert!(
        places.len() < 10_000,
        "{} places for 2,000 views",
        places.len()
    );
}

#[test]
fn views_outlive_the_sender_its_pool_and_the_link() {
    let pair = Pair::shm();
    let (outlet, inlet) = pair.conduit(1);
    let messages: Vec<IncomingMessage> = (0..50)
        .map(|step| {
            outlet.send(&pattern(step, length(step)));
            inlet.receive()
        })
        .collect();
    let Pair { left, right, .. } = pair;
    drop((outlet, inlet, left, right));
    assert!(
        (0..)
            .zip(&messages)
            .all(|(step, message)| message.body[..] == pattern(step, length(step))[..])
    );
}

#[test]
fn sizes_that_come_later_find_room_where_others_were() {
    let pair = Pair::shm_with_ceiling(4 << 20);
    let (outlet, inlet) = pair.limited(1, no_limits());
    let mut sequence = 0;
    for length in [5_000, 100_000, 1 << 20, 4 << 20, 5_000, 300_000, 3 << 20] {
        let mut held = Vec::new();
        for _ in 0..((2 << 20) / length).max(1) {
            outlet.send(&pattern(sequence, length));
            held.push((sequence, inlet.receive()));
            sequence += 1;
        }
        assert!(
            held.iter()
                .all(|(sequence, message)| message.body[..] == pattern(*sequence, length)[..])
        );
        assert_eq!(pair.left.conduits.ran_out(), None, "at {length} bytes");
    }
}

#[test]
fn blocks_of_superseded_messages_come_back_from_a_receiver_that_stands_still() {
    let pair = Pair::shm();
    let (outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    for step in 0..30_000 {
        // Every third message lies in the ring.
        outlet.send(&pattern(step, if step % 3 == 0 { 100 } else { 3_000 }));
    }
    assert_eq!(
        pair.left.conduits.ran_out(),
        None,
        "they are more than there are blocks"
    );
    drop(stall);
    outlet.send(&pattern(30_000, 5_000));
    inlet.wait(|inbox| inbox.received() == 30_001);
    assert_eq!(inlet.receive().body[..], pattern(30_000, 5_000));
}

#[test]
fn messages_that_take_each_others_place_need_two_blocks_while_the_receiver_stands_still() {
    let pair = Pair::shm_with_ceiling(2 << 20);
    let (outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    for step in 0..500 {
        let sent = outlet.send(&pattern(step, 1 << 20));
        assert!(!sent.by_socket, "message {step} found no block");
    }
    drop(stall);
    let mut step = 500;
    // Also while the receiver takes a message from time to time.
    while step < 700 || inlet.inbox.received() < 500 {
        let bytes = pattern(step, 5_000);
        outlet.send(&bytes);
        if let Some(message) = inlet.inbox.take() {
            let length = if message.head.sequence < 500 {
                1 << 20
            } else {
                5_000
            };
            assert!(message.body[..] == pattern(message.head.sequence, length)[..]);
        }
        step += 1;
    }
    outlet.end();
    inlet.wait(|inbox| inbox.ended());
    assert_eq!(inlet.inbox.received(), step);
}

#[test]
fn what_lies_between_messages_that_take_each_others_place_is_not_missed() {
    let pair = Pair::shm();
    let (mut outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    for supersedes in [Some(0), Some(0), None, Some(0), Some(4), Some(4)] {
        outlet.supersedes = supersedes;
        outlet.send(&pattern(0, 5_000));
    }
    drop(stall);
    outlet.end();
    // Message 3 takes the place of all messages before it, and message 5 the place of message 4.
    inlet.wait(|inbox| inbox.ended());
    assert_eq!(
        [inlet.receive(), inlet.receive()].map(|message| message.head.sequence),
        [3, 5]
    );
    assert!(inlet.inbox.exhausted());
}

#[test]
fn superseded_messages_that_went_by_the_socket_give_way_too() {
    let pair = Pair::shm_with_ceiling(1 << 20);
    let (outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    for step in 0..20_000 {
        outlet.send(&pattern(step, length(step)));
    }
    drop(stall);
    for step in 20_000..20_100 {
        outlet.send(&pattern(step, length(step)));
    }
    outlet.end();
    inlet.wait(|inbox| inbox.ended());
    let last = inlet.receive();
    assert_eq!(
        (last.head.sequence, &last.body[..]),
        (20_099, &pattern(20_099, length(20_099))[..])
    );
    assert!(inlet.inbox.exhausted());
}

#[test]
fn what_goes_by_the_socket_for_its_metadata_is_copied_into_no_block() {
    let pair = Pair::shm();
    let (outlet, inlet) = pair.conduit(1);
    let bytes = pattern(0, 100_000);
    let names = vec!["n".repeat(3_000)];
    let layout = Layout {
        names,
        ..Layout::new(Dtype::UInt8, StorageOrder::C, [bytes.len() as u64])
    };
    let meta = Arc::new(Meta {
        content: Content::Array(layout),
        ..Meta::default()
    });
    let parts = [IoSlice::new(&bytes)];
    let message = Outgoing::new(
        Head::new(outlet.conduit, outlet.claim(100_000), 0.0, None),
        &meta,
        &parts,
    );
    let sent = pair.left.carrier.send(&message).unwrap();
    assert!(
        message.copied().is_none() && !sent.by_socket,
        "shared memory is not what was missing"
    );
    let message = inlet.receive();
    assert!(message.meta == meta && message.body[..] == bytes[..]);
}

/// Three hosts. One host sends to the other two, over two conduits each.
struct Fan {
    outlets: Vec<(Arc<dyn Carrier>, Outlet)>,
    inlets: Vec<Inlet>,
    sender: Host,
    _receivers: Vec<PairEnd>,
    _watchdog: Watchdog,
}

impl Fan {
    fn new() -> Self {
        let secret = Secret::random();
        let sender = Host::start(&secret);
        let (mut outlets, mut inlets, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        for process in 0..2 {
            let receiver = Host::start(&secret);
            sender.dial(&[receiver.listen_shm()], process);
            let carrier = sender.events.opened().carrier();
            let receiver = PairEnd::from(receiver);
            let side = PairEnd {
                carrier: carrier.clone(),
                ..PairEnd::of(&sender)
            };
            for number in 0..2 {
                let conduit = process as u32 * 2 + number;
                outlets.push((
                    carrier.clone(),
                    side.outlet(conduit, InboxOptions::default()),
                ));
                inlets.push(receiver.inlet(conduit, InboxOptions::default()));
            }
            receivers.push(receiver);
        }
        Fan {
            outlets,
            inlets,
            sender,
            _receivers: receivers,
            _watchdog: Watchdog::start(),
        }
    }

    /// Sends to all receivers as the runtime does. Returns the number of copied bytes.
    fn send(&self, sequence: u64, parts: &[IoSlice<'_>], lent: Option<SharedBuffer>) -> u64 {
        let mut shared = lent;
        let mut copied = 0;
        for (carrier, outlet) in &self.outlets {
            let meta = Arc::new(Meta {
                content: Content::Structure,
                ..Meta::default()
            });
            let head = Head::new(outlet.conduit, sequence, 0.0, None);
            let message = Outgoing::new(head, &meta, parts);
            if let Some(copy) = shared.take() {
                message.share(copy);
            }
            copied += carrier
                .send(&message)
                .expect("the other end is there")
                .copied;
            shared = message.copied();
        }
        copied
    }
}

#[test]
fn a_multicast_writes_the_payload_once() {
    let fan = Fan::new();
    let bytes = pattern(0, 100_000);
    assert_eq!(fan.send(0, &[IoSlice::new(&bytes)], None), 100_000);
    let messages: Vec<IncomingMessage> = fan.inlets.iter().map(Inlet::receive).collect();
    assert!(messages.iter().all(|message| message.body[..] == bytes[..]));
    // Both conduits of one process deliver the same memory.
    assert_eq!(messages[0].body.as_ptr(), messages[1].body.as_ptr());
}

#[test]
fn a_copy_that_no_peer_can_read_is_made_once_where_all_can() {
    let fan = Fan::new();
    let bytes = pattern(0, 100_000);
    // A multicast whose first receiver is in the sender's process makes such a copy.
    let private = titin_transport::Buffer::gather(&[IoSlice::new(&bytes)]).unwrap();
    assert_eq!(
        fan.send(0, &[IoSlice::new(&bytes)], Some(private.into())),
        100_000
    );
    assert!(
        fan.inlets
            .iter()
            .all(|inlet| inlet.receive().body[..] == bytes[..])
    );
}

#[test]
fn a_block_is_used_again_once_all_receivers_have_let_it_go() {
    let fan = Fan::new();
    let lend = |number: u64| {
        let mut loan = fan.sender.conduits.loan(100_000).unwrap();
        loan.rest().copy_from_slice(&pattern(number, 100_000));
        loan.advance(100_000);
        SharedBuffer::from(loan.finish())
    };
    let first = lend(0);
    let place = first.as_ptr() as usize;
    assert_eq!(fan.send(0, &[IoSlice::new(&first)], Some(first.clone())), 0);
    drop(first);
    let mut views: Vec<IncomingMessage> = fan.inlets.iter().map(Inlet::receive).collect();
    while let Some(view) = views.pop() {
        let others: Vec<_> = (1..100).map(lend).collect();
        assert!(others.iter().all(|other| other.as_ptr() as usize != place));
        assert!(view.body[..] == pattern(0, 100_000)[..]);
    }
    let others: Vec<_> = (1..1_000).map(lend).collect();
    assert!(
        others.iter().any(|other| other.as_ptr() as usize == place),
        "it never came back"
    );
}
