//! A forked child holds no descriptor of titin, so the peer notices the end of the parent although
//! the child lives on.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use titin_os::descriptors;
use titin_testkit::{Pair, pattern};
use titin_transport::LinkError;

#[test]
fn a_child_keeps_no_connection_open() {
    let pair = Pair::tcp();
    beside_a_child(|_| {
        let Pair { left, right, .. } = pair;
        drop(left);
        let (host, _) = right.tcp.as_ref().unwrap();
        assert_eq!(host.events.lost(), LinkError::Closed);
    });
}

#[test]
fn a_child_keeps_no_segment_open() {
    let pair = Pair::file();
    let (outlet, inlet) = pair.conduit(1);
    let stall = pair.stall();
    outlet.send(&pattern(0, 4 << 20));
    let is_segment = |path: &Path| {
        path.parent()
            .is_some_and(|folder| folder.ends_with("there"))
    };
    // A segment is open while the link's socket is full.
    while !open_files(std::process::id()).any(|path| is_segment(&path)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    beside_a_child(|child| {
        let kept: Vec<_> = open_files(child).filter(|path| is_segment(path)).collect();
        assert!(kept.is_empty(), "{kept:?}");
    });
    drop(stall);
    assert_eq!(inlet.receive().body[..], pattern(0, 4 << 20));
}

/// The files that a process has open.
fn open_files(process: u32) -> impl Iterator<Item = std::path::PathBuf> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// Forks a child, which closes titin's descriptors and lives on. Calls `check` with the child's
/// process id.
#[allow(unsafe_code)]
fn beside_a_child(check: impl FnOnce(u32)) {
    let (mut told, mut tell) = std::io::pipe().unwrap();
    let (mut lives, mut live) = std::io::pipe().unwrap();
    // SAFETY: the child of this process, which has several threads, makes plain system calls only and leaves by one.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            drop(live);
            for raw in descriptors::take_all() {
                // SAFETY: the descriptor was taken out of the table, so no other code of this process
                // closes it.
                unsafe { nix::libc::close(raw) };
            }
            let _ = tell.write_all(b"1");
            let _ = lives.read(&mut [0]);
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { nix::libc::_exit(0) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            drop(lives);
            told.read_exact(&mut [0]).unwrap();
            check(child.as_raw().cast_unsigned());
            live.write_all(b"1").unwrap();
            let status = nix::sys::wait::waitpid(child, None).unwrap();
            assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
        }
    }
}
