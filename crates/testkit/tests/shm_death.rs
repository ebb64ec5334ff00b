//! Processes that share memory are killed or stopped at any moment. The received messages are whole
//! and in order.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use titin_testkit::{Host, PairEnd, Watchdog, pattern, play_part, start_part};
use titin_transport::InboxOptions;
use titin_wire::EndpointId;

/// Lengths of each kind: messages in the ring, in blocks, and in large blocks.
const LENGTHS: [usize; 6] = [0, 100, 2_000, 5_000, 100_000, 700_000];

fn bytes(step: u64) -> Vec<u8> {
    pattern(step, LENGTHS[(step % 6) as usize])
}

/// Starts another process, which plays a part. Returns the process, and this end of the link to the
/// process.
fn start(part: &str) -> (Child, PairEnd) {
    start_part(part, Host::listen_shm)
}

/// The code of the other process, which is not a test.
#[test]
#[ignore = "started by the other tests"]
fn part() {
    let (part, side, _) = play_part();
    match part.as_str() {
        "send" => {
            let outlet = side.outlet(1, InboxOptions::default());
            for step in 0.. {
                outlet.send(&bytes(step));
            }
        }
        "receive" => {
            let inlet = side.inlet(1, InboxOptions::default());
            (0..200).for_each(|step| assert!(inlet.receive().body[..] == bytes(step)[..]));
            let outlet = side.outlet(2, InboxOptions::default());
            outlet.send(b"all");
            outlet.end();
            outlet.wait(|window| window.settled());
        }
        other => panic!("no part {other}"),
    }
}

#[test]
fn a_sender_that_is_killed_at_any_moment_shows_nothing_torn() {
    let _watchdog = Watchdog::start();
    for _ in 0..25 {
        let random = EndpointId::random().0 as u64;
        let (mut child, side) = start("send");
        let inlet = side.inlet(1, InboxOptions::default());
        let mut views = Vec::new();
        let count = random % 300;
        for step in 0..count {
            let message = inlet.receive();
            assert!(
                message.body[..] == bytes(step)[..],
                "message {step} of {count} is torn"
            );
            if step % 3 == 0 {
                views.push((step, message));
            }
        }
        // A random pause, so that the kill hits the process at any place.
        for _ in 0..(random >> 32) % 200_000 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (host, _) = side.tcp.as_ref().unwrap();
        host.events.lost();
        let mut next = count;
        while let Some(message) = inlet.inbox.take() {
            assert!(
                message.body[..] == bytes(next)[..],
                "message {next}, the rest after {count}, is torn"
            );
            next += 1;
        }
        assert!(
            views
                .iter()
                .all(|(step, view)| view.body[..] == bytes(*step)[..]),
            "a view has changed"
        );
    }
}

#[test]
fn a_receiver_that_is_killed_is_noticed() {
    let _watchdog = Watchdog::start();
    for _ in 0..10 {
        let (mut child, side) = start("receive");
        let outlet = side.outlet(1, InboxOptions::default());
        let count = EndpointId::random().0 as u64 % 64;
        for step in 0..count {
            outlet.send(&bytes(step));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (host, _) = side.tcp.as_ref().unwrap();
        host.events.lost();
        let sent = outlet.send_numbered(count, &[std::io::IoSlice::new(b"nobody is there")]);
        assert!(sent.is_err());
    }
}

#[test]
fn a_peer_that_is_stopped_goes_on_later() {
    let _watchdog = Watchdog::start();
    let (mut child, side) = start("receive");
    let outlet = side.outlet(
        1,
        InboxOptions {
            messages: u64::MAX,
            bytes: u64::MAX,
        },
    );
    let inlet = side.inlet(2, InboxOptions::default());
    let pid = Pid::from_raw(child.id() as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    // Far more messages than the ring holds. The sender does not wait for the stopped process.
    for step in 0..200 {
        outlet.send(&bytes(step));
    }
    kill(pid, Signal::SIGCONT).unwrap();
    assert_eq!(&inlet.receive().body[..], b"all");
    assert!(child.wait().unwrap().success());
    drop((inlet, outlet));
}
