//! Tests that measure the memory of the process. They run alone in their process, because the
//! memory of other tests would be counted too.

use titin_testkit::conformance::the_latest_message_does_so_while_the_receiver_is_stalled as case;
use titin_testkit::{Pair, Watchdog, conformance::resident, pattern};

#[test]
fn the_latest_message_does_so_while_the_receiver_is_stalled_on_every_medium() {
    let _watchdog = Watchdog::start();
    case(Pair::inproc);
    case(Pair::tcp);
    case(without_blocks);
    superseded_in_the_ring();
}

fn without_blocks() -> Pair {
    Pair::shm_with_ceiling(0)
}

/// Messages supersede each other while the receiver stands still and the ring is full. The sender
/// does not keep the superseded messages.
fn superseded_in_the_ring() {
    let pair = Pair::shm();
    let (outlet, inlet) = pair.superseding(1);
    let stall = pair.stall();
    let bytes = pattern(0, 2_000);
    let send = |_| {
        outlet.send(&bytes);
    };
    (0..1_000).for_each(send);
    let before = resident();
    (0..100_000).for_each(send);
    let more = resident().saturating_sub(before);
    assert!(more < 64 << 20, "{} MiB are held", more >> 20);
    let before = resident();
    (0..100_000).for_each(send);
    let more = resident().saturating_sub(before);
    assert!(more < 2 << 20, "{} KiB more are held", more >> 10);
    drop(stall);
    inlet.wait(|inbox| inbox.received() == 201_000);
}
