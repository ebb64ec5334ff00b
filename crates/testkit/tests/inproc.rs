//! The contract of carriers within a process.

use std::sync::Arc;

use titin_testkit::{Pair, conformance};
use titin_transport::Outgoing;
use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Meta};

conformance!(Pair::inproc);

#[test]
fn receivers_of_a_multicast_share_one_buffer() {
    let pair = Pair::inproc();
    let inlets: Vec<_> = (0..3)
        .map(|number| pair.right.inlet(number, Default::default()))
        .collect();
    let (meta, parts) = (
        Arc::new(Meta {
            content: Content::Structure,
            ..Meta::default()
        }),
        [std::io::IoSlice::new(b"one")],
    );
    let mut copy = None;
    for number in 0..3 {
        let head = Head::new(ConduitId(number), 0, 0.0, None);
        let outgoing = Outgoing::new(head, &meta, &parts);
        copy.into_iter().for_each(|copy| outgoing.share(copy));
        pair.left.carrier.send(&outgoing).unwrap();
        copy = outgoing.copied();
    }
    let bodies: Vec<_> = inlets.iter().map(|inlet| inlet.receive().body).collect();
    assert!(
        bodies
            .iter()
            .all(|body| body.is_same(&bodies[0]) && body[..] == *b"one")
    );
}
