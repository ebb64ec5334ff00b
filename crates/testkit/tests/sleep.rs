//! A caller that waits for a message by tcp sleeps at the sockets of the link, and wakes for rings of its doorbell, too.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, gettid};
use rustix::event::{EventfdFlags, eventfd};
use titin_os::descriptors;
use titin_testkit::{Host, Inlet, Outlet, Pair, PairEnd, pattern, play_part, start_part, until};
use titin_transport::{Doorbell, InboxOptions, LinkError};

/// Messages of each sender in a test.
const ROUNDS: u64 = 2000;

/// Passes about as much time as a caller spins before it sleeps, a little less or more from round to round.
fn about_a_spin(round: u64) {
    let time = Duration::from_micros(round * 37 % 130);
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::thread::yield_now();
    }
}

/// Sends messages, each after the last one was taken.
fn send_one_by_one(outlet: &Outlet, taken: &AtomicU32) {
    for round in 0..ROUNDS {
        about_a_spin(round);
        outlet.send(&pattern(round, (round % 5 * 3000) as usize));
        while u64::from(taken.load(Ordering::Acquire)) <= round {
            std::thread::yield_now();
        }
    }
}

fn take_one_by_one(inlet: &Inlet, taken: &AtomicU32) {
    for round in 0..ROUNDS {
        let message = inlet.receive();
        assert_eq!(
            message.body[..],
            pattern(round, (round % 5 * 3000) as usize)
        );
        taken.fetch_add(1, Ordering::Release);
    }
}

#[test]
fn senders_by_tcp_and_by_shared_memory_all_wake_the_callers_at_one_bell() {
    for streams in [1, 3] {
        let bell = Arc::new(Doorbell::default());
        let mut pairs = [Pair::streams(streams), Pair::tcp(), Pair::shm()];
        for pair in &mut pairs {
            pair.right.bell = bell.clone();
        }
        let rings = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for pair in &pairs {
                for number in 1..3 {
                    let (outlet, inlet) = pair.conduit(number);
                    let taken = Arc::new(AtomicU32::new(0));
                    let told = taken.clone();
                    scope.spawn(move || send_one_by_one(&outlet, &told));
                    scope.spawn(move || take_one_by_one(&inlet, &taken));
                }
            }
            // And a thread that waits for rings alone, beside a carrier that brings it nothing.
            let carrier = &*pairs[1].right.carrier;
            scope.spawn(|| {
                for round in 0..ROUNDS as u32 {
                    until(&bell, Some(carrier), || {
                        (rings.load(Ordering::Acquire) > round).then_some(())
                    });
                }
            });
            for round in 0..ROUNDS {
                about_a_spin(round);
                rings.fetch_add(1, Ordering::Release);
                bell.ring();
            }
        });
    }
}

#[test]
fn every_ring_wakes_a_caller_that_sleeps_at_sockets() {
    let pair = Pair::tcp();
    let (bell, carrier) = (&pair.right.bell, &*pair.right.carrier);
    let (asked, answered) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=2 * ROUNDS as u32 {
                until(bell, Some(carrier), || {
                    (asked.load(Ordering::Acquire) == round).then_some(())
                });
                answered.store(round, Ordering::Release);
            }
        });
        for round in 1..=2 * ROUNDS as u32 {
            about_a_spin(round.into());
            asked.store(round, Ordering::Release);
            bell.ring();
            // Nothing but the ring wakes the caller.
            while answered.load(Ordering::Acquire) != round {
                std::thread::yield_now();
            }
        }
    });
}

/// Calls `act` while another thread waits at the end of a link, with the number of that thread.
fn with_a_sleeper(end: &PairEnd, act: impl FnOnce(Pid)) {
    let (bell, carrier) = (&*end.bell, &*end.carrier);
    let over = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tell.send(gettid()).unwrap();
            until(bell, Some(carrier), || {
                over.load(Ordering::Acquire).then_some(())
            });
        });
        // The other thread ends even if `act` panics.
        let _end = EndOfWait { bell, over: &over };
        act(told.recv().unwrap());
    });
}

/// Ends the wait of another thread once dropped.
struct EndOfWait<'a> {
    bell: &'a Doorbell,
    over: &'a AtomicBool,
}

impl Drop for EndOfWait<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// Waits until a thread of this process sleeps.
fn until_asleep(thread: Pid) {
    let sleeps = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        // The name of the thread, in parentheses, may have any letters.
        stat.rsplit_once(") ").unwrap().1.starts_with('S')
    };
    while !sleeps() {
        std::thread::yield_now();
    }
}

#[test]
fn the_reactor_learns_of_the_end_though_a_caller_sleeps() {
    for round in 0..50 {
        let pair = if round % 2 == 0 {
            Pair::tcp()
        } else {
            Pair::streams(3)
        };
        with_a_sleeper(&pair.right, |_| {
            about_a_spin(round);
            let (left, link) = pair.left.tcp.as_ref().unwrap();
            match round % 3 {
                0 => link.close(),
                _ => left.reactor.stop(),
            }
            let (right, _) = pair.right.tcp.as_ref().unwrap();
            assert_eq!(right.events.lost(), LinkError::Closed);
        });
    }
}

#[test]
fn the_reactor_stops_though_a_caller_sleeps() {
    for round in 0..50 {
        let pair = Pair::tcp();
        with_a_sleeper(&pair.right, |_| {
            about_a_spin(round);
            pair.right.tcp.as_ref().unwrap().0.reactor.stop();
        });
    }
}

/// The other process. No test of its own.
#[test]
#[ignore = "started by the other tests"]
fn part() {
    let (_, _side, mut lines) = play_part();
    // Until the caller ends the process.
    lines.next();
}

#[test]
fn the_reactor_learns_of_the_death_of_the_peer_though_a_caller_sleeps() {
    for _ in 0..5 {
        let (mut child, end) = start_part("stay", Host::listen);
        with_a_sleeper(&end, |thread| {
            until_asleep(thread);
            child.kill().unwrap();
            child.wait().unwrap();
            let (host, _) = end.tcp.as_ref().unwrap();
            assert_eq!(host.events.lost(), LinkError::Closed);
        });
    }
}

#[test]
fn a_sender_without_room_learns_of_the_death_of_the_peer() {
    let (mut child, end) = start_part("stay", Host::listen);
    // The process reads nothing any more, and the message is far larger than the sockets' buffers.
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGSTOP).unwrap();
    let outlet = end.outlet(1, InboxOptions::default());
    let bytes = vec![0; 256 << 20];
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tell.send(gettid()).unwrap();
            // The sender fails, or has copied the rest of the message before the death.
            let _ = outlet.send_numbered(0, &[IoSlice::new(&bytes)]);
        });
        until_asleep(told.recv().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        let (host, _) = end.tcp.as_ref().unwrap();
        assert_eq!(host.events.lost(), LinkError::Closed);
    });
}

#[test]
#[allow(unsafe_code)]
fn a_ring_in_a_forked_child_touches_no_descriptor_of_the_child() {
    let pair = Pair::tcp();
    let bell = &pair.right.bell;
    with_a_sleeper(&pair.right, |thread| {
        until_asleep(thread);
        // SAFETY: the child of this process, which has several threads, makes plain system calls
        // only and leaves by one.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                for raw in descriptors::take_all() {
                    // SAFETY: taken out of the table, it is the child's to close, once.
                    unsafe { nix::libc::close(raw) };
                }
                // The child opens files with the numbers of the closed ones.
                let flags = EventfdFlags::NONBLOCK;
                let own = [(); 256].map(|()| eventfd(0, flags).ok());
                bell.ring();
                let is_set = |event: &OwnedFd| rustix::io::read(event, &mut [0; 8]).is_ok();
                let touched = own.iter().flatten().any(is_set);
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { nix::libc::_exit(i32::from(touched)) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            }
        }
    });
}

#[test]
fn control_messages_are_heard_while_a_caller_sleeps_and_after() {
    let pair = Pair::tcp();
    let (left, right) = (
        pair.left.tcp.as_ref().unwrap(),
        pair.right.tcp.as_ref().unwrap(),
    );
    for round in 0..300u64 {
        with_a_sleeper(&pair.right, |_| {
            about_a_spin(round);
            left.1.tell(&round.to_le_bytes());
            assert_eq!(right.0.events.control(), round.to_le_bytes());
        });
        left.1.tell(b"after");
        assert_eq!(right.0.events.control(), b"after");
    }
}

/// Sends and then receives, again and again, as the other end does at the same time.
fn exchange(end: &PairEnd, (out, back): (u32, u32), bytes: &[u8], start: &Barrier) {
    let outlet = end.outlet(out, InboxOptions::default());
    let inlet = end.inlet(back, InboxOptions::default());
    start.wait();
    for _ in 0..12 {
        outlet.send(bytes);
        assert!(inlet.receive().body[..] == *bytes);
    }
}

#[test]
fn both_ends_send_at_once() {
    for (streams, threads) in [(1, 1), (1, 3), (4, 1), (4, 3)] {
        let pair = Pair::streams(streams);
        let bytes = pattern(7, (12 << 20) + 5);
        let start = Barrier::new(2 * threads as usize);
        std::thread::scope(|scope| {
            for number in 0..threads {
                let (there, back) = (2 * number + 1, 2 * number + 2);
                let (left, right) = (&pair.left, &pair.right);
                let (bytes, start) = (&bytes, &start);
                scope.spawn(move || exchange(left, (there, back), bytes, start));
                scope.spawn(move || exchange(right, (back, there), bytes, start));
            }
        });
    }
}
