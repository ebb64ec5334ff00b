//! A process that gets no more memory. The test runs alone in its process, because other tests
//! would get no memory either.

use std::io::IoSlice;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use titin_testkit::{Host, PairEnd, RawPeer};
use titin_transport::{InboxOptions, LinkError};
use titin_wire::Secret;

/// The operating system has taken the beginning of a message, and there is no memory for a copy of
/// the rest.
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
    // The limit is below the size of a copy, and leaves enough memory for threads that have just
    // started.
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
