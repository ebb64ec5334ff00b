//! Hostile peers that know the secret: each peer loses its link, and nothing else is harmed.

use titin_testkit::{Host, RawPeer, header, message, pattern};
use titin_transport::{InboxOptions, LinkError, Medium};
use titin_wire::frame::{Ack, Frame, Head};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Secret};

const CONDUIT: ConduitId = ConduitId(1);

/// Returns the reason for which the link is lost once these bytes have come.
fn verdict(bytes: &[u8]) -> String {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let mut peer = RawPeer::enter(&address, &secret, bytes, RawPeer::write);
    let why = host.events.lost();
    peer.drain();
    // Another peer is served as before.
    let body = pattern(0, 1000);
    let _friend = RawPeer::enter(
        &address,
        &secret,
        &message(2, 0, &body, 1000),
        RawPeer::write,
    );
    let side = titin_testkit::PairEnd::of(&host);
    assert!(side.inlet(2, InboxOptions::default()).receive().body[..] == body[..]);
    why.to_string()
}

fn assert_verdict(bytes: &[u8], expected: &str) {
    let found = verdict(bytes);
    assert!(found.contains(expected), "{found}");
}

#[test]
fn unknown_frames() {
    assert_verdict(&[77; 64], "unknown kind 77");
    assert_verdict(&[0; 64], "unknown kind 0");
}

#[test]
fn pieces_that_follow_nothing() {
    let more = |offset, sequence| {
        header(&Frame::More {
            conduit: CONDUIT,
            sequence,
            body: 10,
            offset,
        })
    };
    assert_verdict(&more(0, 0), "follow nothing");
    let begun = message(1, 0, &pattern(0, 100), 50)[..64 + 64 + 50].to_vec();
    assert_verdict(&[&begun[..], &more(51, 0)].concat(), "follow nothing");
    assert_verdict(&[&begun[..], &more(50, 1)].concat(), "follow nothing");
    assert_verdict(&[&begun[..], &more(95, 0)].concat(), "follow nothing");
    assert_verdict(
        &[&begun[..], &begun[..]].concat(),
        "before the last one has ended",
    );
}

#[test]
fn lengths_that_no_memory_has() {
    let bytes = message(1, 0, &pattern(0, 100), 50);
    let with = |at: usize, value: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    for length in [u64::MAX, u64::MAX - 100, 1 << 63, 1 << 60] {
        assert_verdict(&with(40, length), "no memory");
    }
    assert_verdict(&with(32, 1 << 60), "piece of");
    let mut control = header(&Frame::Control { body: u64::MAX }).to_vec();
    control.resize(1000, 0);
    assert_verdict(&control, "control message of");
    let mut meta = bytes.clone();
    meta[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_verdict(&meta, "bytes of metadata");
}

#[test]
fn metadata_that_does_not_describe_the_payload() {
    let mut bytes = message(1, 0, &pattern(0, 100), 100);
    bytes[64] = 1;
    assert_verdict(&bytes, "array layout");
}

#[test]
fn messages_out_of_order() {
    assert_verdict(
        &message(1, 1, b"early", 10),
        "number 1 on conduit 1, expected 0",
    );
    let twice = [message(1, 0, b"once", 10), message(1, 0, b"again", 10)].concat();
    assert_verdict(&twice, "number 0 on conduit 1, expected 1");
    let end = header(&Frame::End {
        conduit: CONDUIT,
        sequence: 1,
    });
    assert_verdict(&end, "after 1 messages on conduit 1, of 0 received");
    let behind = [&message(1, 0, b"", 10)[..], &end, &message(1, 1, b"", 10)].concat();
    assert_verdict(&behind, "number 1 on conduit 1");
}

#[test]
fn an_end_in_the_middle_of_a_frame() {
    for length in [1, 63, 64, 100, 128, 150] {
        let secret = Secret::random();
        let host = Host::start(&secret);
        let bytes = message(1, 0, &pattern(0, 100), 50);
        drop(RawPeer::enter(
            &host.listen(),
            &secret,
            &bytes[..length],
            RawPeer::write,
        ));
        assert_eq!(host.events.lost(), LinkError::Closed);
        assert_eq!(host.conduits.inbox(CONDUIT).received(), 0);
    }
}

#[test]
fn answers_about_conduits_that_are_not() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let ack = Ack {
        received: u64::MAX,
        consumed: u64::MAX,
        bytes: u64::MAX,
        ended: true,
    };
    let side = titin_testkit::PairEnd::of(&host);
    let outlet = side.outlet(9, InboxOptions::default());
    let bytes = [
        header(&Frame::Acknowledge {
            conduit: CONDUIT,
            ack,
        }),
        header(&Frame::Acknowledge {
            conduit: outlet.conduit,
            ack,
        }),
        header(&Frame::Ask {
            conduit: CONDUIT,
            sequence: u64::MAX,
        }),
        header(&Frame::Control { body: 0 }),
    ]
    .concat();
    let _peer = RawPeer::enter(&host.listen(), &secret, &bytes, RawPeer::write);
    assert_eq!(host.events.control(), b"");
    assert!(!outlet.window.settled());
}

#[test]
fn data_for_a_process_that_has_no_conduits() {
    let secret = Secret::random();
    let events = std::sync::Arc::new(titin_testkit::Events::default());
    let reactor = titin_transport::Reactor::start(secret.clone(), events.clone()).unwrap();
    let address = reactor.listen(Medium::Tcp, "127.0.0.1").unwrap();
    let _peer = RawPeer::enter(
        &address,
        &secret,
        &message(1, 0, b"data", 10),
        RawPeer::write,
    );
    assert!(events.lost().to_string().contains("carries none"));
    reactor.stop();
}

/// Each byte of a header in turn is changed. The host goes on and serves another peer.
#[test]
fn headers_with_one_byte_changed() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let frames = [
        message(1, 0, &pattern(0, 100), 50)[..64].to_vec(),
        header(&Frame::End {
            conduit: CONDUIT,
            sequence: 0,
        })
        .to_vec(),
        header(&Frame::Control { body: 3 }).to_vec(),
    ];
    let mut friend = RawPeer::enter(&address, &secret, &[], RawPeer::write);
    host.events.opened();
    for (number, frame) in (0..).zip(&frames) {
        for at in 0..64 {
            let mut bytes = frame.clone();
            // Each try has a conduit of its own, so that no try finds messages of another try.
            bytes[9] = at as u8;
            bytes[10] = number;
            bytes[at] ^= 0xff;
            drop(RawPeer::enter(&address, &secret, &bytes, RawPeer::write));
            host.events.opened();
            host.events.lost();
        }
    }
    let body = pattern(0, 1000);
    friend.write(&message(2, 0, &body, 1000));
    let side = titin_testkit::PairEnd::of(&host);
    assert!(side.inlet(2, InboxOptions::default()).receive().body[..] == body[..]);
}

#[test]
fn numbers_behind_which_there_is_none() {
    let superseding = |first| {
        let meta = Meta {
            supersedes: Some(first),
            ..Meta::default()
        }
        .encode();
        let head = Head::new(CONDUIT, u64::MAX, 0.0, None);
        let frame = Frame::Data {
            head,
            meta: meta.len() as u32,
            body: 0,
            total: 0,
        };
        [&header(&frame)[..], &meta].concat()
    };
    assert_verdict(&superseding(0), "there is no number behind");
    assert_verdict(&superseding(1), "expected 0");
}
