//! Where the process may have no more memory, alone in one: other tests would have none either.

use std::io::IoSlice;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use titin_testkit::{Host, PairEnd, RawPeer};
use titin_transport::{InboxOptions, LinkError};
use titin_wire::Secret;

/// The system has taken the beginning, and for a copy of what it does not take there is no memory.
#[test]
fn a_message_of_which_half_is_out_ends_the_link() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let mut peer = RawPeer::enter(&host.listen(), &secret, &[], RawPeer::write);
    let side = PairEnd::from(host);
    let outlet = side.outlet(
        1,
        InboxOptions {
            messages: u64::MAX,
            bytes: u64::MAX,
        },
    );
    let bytes = vec![0; 256 << 20];
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().next().unwrap().parse().unwrap();
    let (before, most) = getrlimit(Resource::RLIMIT_AS).unwrap();
    // Less than a copy takes, and enough for what threads take that have only just begun.
    setrlimit(Resource::RLIMIT_AS, pages * 4096 + (192 << 20), most).unwrap();
    let why = outlet
        .send_numbered(0, &[IoSlice::new(&bytes)])
        .unwrap_err();
    setrlimit(Resource::RLIMIT_AS, before, most).unwrap();
    assert!(matches!(why, LinkError::NoMemory(_)), "{why}");
    let seen = peer.drain().len();
    assert!(
        seen > 1 << 16 && seen < bytes.len(),
        "{seen} bytes are not half of it"
    );
    let (host, _) = side.tcp.as_ref().unwrap();
    assert_eq!(host.events.lost(), LinkError::Closed);
}
