//! The contract of carriers over tcp, and the cases of this medium alone.

use std::sync::{Arc, Mutex};

use titin_testkit::{Host, Pair, conformance, pattern, until};
use titin_transport::{Acknowledge, InboxOptions, Link, LinkError};
use titin_wire::frame::Ack;
use titin_wire::{ConduitId, Secret};

conformance!(Pair::tcp);

/// Notes the order in which conduits are acknowledged. Their inboxes discard, so that each message is
/// acknowledged as it comes in.
struct Acknowledged(Mutex<Vec<ConduitId>>);

impl Acknowledge for Acknowledged {
    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        if ack.received > 0 {
            self.0.lock().unwrap().push(conduit);
        }
    }
}

#[test]
fn small_and_control_messages_go_before_the_rest_of_large_ones() {
    let pair = Pair::tcp();
    let order = Arc::new(Acknowledged(Mutex::default()));
    for number in 1..4 {
        let inbox = pair.right.conduits.inbox(ConduitId(number));
        let options = InboxOptions {
            messages: 1,
            ..InboxOptions::default()
        };
        inbox.attach(pair.right.bell.clone(), order.clone(), options);
        inbox.discard();
    }
    let outlet = |number| pair.left.outlet(number, InboxOptions::default());
    let stall = pair.stall();
    outlet(1).send(&pattern(0, 64 << 20));
    outlet(2).send(&pattern(0, 64 << 20));
    outlet(3).send(&pattern(0, 100));
    link(&pair).tell(b"control");
    drop(stall);
    let (right, _) = pair.right.tcp.as_ref().unwrap();
    assert_eq!(right.events.control(), b"control");
    assert!(
        !order.0.lock().unwrap().iter().any(|conduit| conduit.0 < 3),
        "a large message came first"
    );
    until(&pair.right.bell, None, || {
        (order.0.lock().unwrap().len() == 3).then_some(())
    });
    assert_eq!(order.0.lock().unwrap()[0], ConduitId(3));
}

#[test]
fn a_caller_that_waits_reads_by_itself_and_then_leaves_it_to_the_reactor() {
    let pair = Pair::tcp();
    let (outlet, inlet) = pair.conduit(1);
    let (right, right_link) = pair.right.tcp.as_ref().unwrap();
    let mut begun = false;
    let mut read = 0;
    // The reactor may read still, since the link has just been opened.
    while !begun {
        right_link.carrier().attend(&mut |count| {
            // From the first call on only this thread reads.
            if !std::mem::replace(&mut begun, true) {
                outlet.send(&pattern(0, 1 << 20));
                link(&pair).tell(b"control");
            }
            read += count;
            inlet.inbox.ready() && right.events.count() > 0
        });
    }
    assert!(read > 1 << 20, "{read} bytes");
    assert_eq!(inlet.inbox.take().unwrap().body[..], pattern(0, 1 << 20));
    assert_eq!(right.events.control(), b"control");
    outlet.send(&pattern(1, 100));
    until(&pair.right.bell, None, || inlet.inbox.take());
}

#[test]
fn what_a_caller_finds_wrong_is_told_as_ever() {
    for wrong in [false, true] {
        let pair = Pair::tcp();
        let (outlet, _inlet) = pair.conduit(1);
        let (right, right_link) = pair.right.tcp.as_ref().unwrap();
        let mut begun = false;
        while !begun {
            right_link.carrier().attend(&mut |_| {
                if !std::mem::replace(&mut begun, true) {
                    match wrong {
                        true => drop(outlet.send_numbered(7, &[])),
                        false => link(&pair).close(),
                    }
                }
                false
            });
        }
        assert_eq!(
            matches!(right.events.lost(), LinkError::Malformed(_)),
            wrong
        );
    }
}

#[test]
fn a_sender_learns_that_the_receiver_is_gone() {
    let pair = Pair::tcp();
    let (outlet, _) = pair.conduit(1);
    let Pair { left, right, .. } = pair;
    drop(right);
    let (host, _) = left.tcp.as_ref().unwrap();
    assert_eq!(host.events.lost(), LinkError::Closed);
    // The operating system may take a few messages before it knows of the close.
    let failure = (0..).find_map(|sequence| outlet.send_numbered(sequence, &[]).err());
    assert_eq!(failure, Some(LinkError::Closed));
}

#[test]
fn a_sender_is_told_though_it_waits_for_a_stalled_receiver() {
    let pair = Pair::tcp();
    let (outlet, _) = pair.conduit(1);
    let stall = pair.stall();
    let bytes = pattern(0, 1 << 20);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            (0..).find_map(|sequence| {
                outlet
                    .send_numbered(sequence, &[std::io::IoSlice::new(&bytes)])
                    .err()
            })
        });
        let (right, right_link) = pair.right.tcp.as_ref().unwrap();
        right_link.close();
        drop(stall);
        assert_eq!(sender.join().unwrap(), Some(LinkError::Closed));
        assert_eq!(right.events.count(), 0, "a link that we close is not lost");
    });
}

#[test]
fn what_was_told_before_a_close_arrives() {
    let pair = Pair::tcp();
    // The other end sends all the while. Unread bytes at a close must not destroy bytes on their
    // way.
    let (left, right) = (link(&pair), pair.right.tcp.as_ref().unwrap());
    for _ in 0..1000 {
        right.1.tell(b"noise");
    }
    for number in 0..1000u32 {
        left.tell(&number.to_le_bytes());
    }
    left.close();
    right.1.tell(b"noise");
    for number in 0..1000u32 {
        assert_eq!(right.0.events.control(), number.to_le_bytes());
    }
    assert_eq!(right.0.events.lost(), LinkError::Closed);
}

#[test]
fn both_may_dial_at_once() {
    let secret = Secret::random();
    let (one, other) = (Host::start(&secret), Host::start(&secret));
    let (here, there) = (one.listen(), other.listen());
    one.dial(&[there], 1);
    other.dial(&[here], 2);
    for (host, tag) in [(&one, 1), (&other, 2)] {
        let mut tags = [host.events.opened(), host.events.opened()].map(|link| link.tag());
        tags.sort();
        assert_eq!(tags, [None, Some(tag)]);
    }
}

#[test]
fn one_host_may_have_many_links() {
    let secret = Secret::random();
    let hub = Host::start(&secret);
    let address = hub.listen();
    let hosts: Vec<_> = (0..100).map(|_| Host::start(&secret)).collect();
    hosts
        .iter()
        .zip(0..)
        .for_each(|(host, tag)| host.dial(std::slice::from_ref(&address), tag));
    for (host, number) in hosts.iter().zip(0u32..) {
        host.events.opened().tell(&number.to_le_bytes());
    }
    let mut heard: Vec<_> = hosts.iter().map(|_| hub.events.control()).collect();
    heard.sort();
    let mut said: Vec<_> = (0u32..100)
        .map(|number| number.to_le_bytes().to_vec())
        .collect();
    said.sort();
    assert_eq!(heard, said);
}

fn link(pair: &Pair) -> &Arc<Link> {
    &pair.left.tcp.as_ref().expect("a pair over tcp").1
}
