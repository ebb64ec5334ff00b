//! A forked child holds none of our descriptors: the peer sees the parent's end though the child lives on.

use std::io::{Read, Write};
use std::os::fd::FromRawFd;

use titin_os::descriptors;
use titin_testkit::Pair;
use titin_transport::Lost;

#[test]
#[allow(unsafe_code)]
fn a_child_keeps_no_connection_open() {
    let pair = Pair::tcp();
    let (mut told, mut tell) = std::io::pipe().unwrap();
    let (mut lives, mut live) = std::io::pipe().unwrap();
    // SAFETY: the child of this process, which has several threads, makes plain system calls only and leaves by one.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            drop(live);
            // SAFETY: taken out of the table, they are ours to close, and nobody else will.
            descriptors::take_all()
                .for_each(|raw| drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(raw) }));
            let _ = tell.write_all(b"1");
            let _ = lives.read(&mut [0]);
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { nix::libc::_exit(0) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            drop(lives);
            told.read_exact(&mut [0]).unwrap();
            let Pair { left, right, .. } = pair;
            drop(left);
            let (host, _) = right.tcp.as_ref().unwrap();
            assert_eq!(host.events.lost(), Lost::Closed);
            live.write_all(b"1").unwrap();
            let status = nix::sys::wait::waitpid(child, None).unwrap();
            assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
        }
    }
}
