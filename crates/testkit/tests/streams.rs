//! The contract of carriers over several streams, and the cases of several streams alone.

use std::io::Read;
use std::net::Shutdown;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use titin_testkit::{Host, Pair, PairEnd, RawPeer, conformance, header, message, pattern, striped};
use titin_transport::{InboxOptions, LinkError, Medium};
use titin_wire::frame::{Frame, HEADER, Header};
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings, Secret};

mod one {
    use super::*;
    conformance!(|| Pair::streams(1));
}

mod two {
    use super::*;
    conformance!(|| Pair::streams(2));
}

mod four {
    use super::*;
    conformance!(|| Pair::streams(4));
}

mod sixteen {
    use super::*;
    conformance!(|| Pair::streams(16));
}

/// Returns a host, and a peer played by hand with `count` further streams.
fn visited(count: u64) -> (Host, Vec<RawPeer>) {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let peers = RawPeer::enter_streams(&host.listen(), &secret, count);
    host.events.opened();
    (host, peers)
}

#[test]
fn a_link_has_as_many_streams_as_are_wished_for() {
    for count in [1, 2, 128, 256] {
        let pair = Pair::streams(count);
        for side in [&pair.left, &pair.right] {
            assert_eq!(
                (side.carrier.streams(), side.carrier.medium()),
                (count as usize, Medium::Tcp)
            );
        }
        let (outlet, inlet) = pair.conduit(1);
        outlet.send(&pattern(0, 40 << 20));
        assert!(inlet.receive().body[..] == pattern(0, 40 << 20));
    }
}

#[test]
fn one_stream_is_chosen_for_a_near_host() {
    assert_eq!(Pair::tcp().left.carrier.streams(), 1);
}

#[test]
fn pieces_may_come_in_any_order_and_before_their_head() {
    let (host, mut peers) = visited(2);
    let inlet = PairEnd::of(&host).inlet(1, InboxOptions::default());
    let bodies = [
        pattern(0, 1000),
        pattern(1, 3),
        pattern(2, 500),
        pattern(3, 0),
    ];
    let (head, pieces) = striped(1, 0, &bodies[0], &[0, 1, 600]);
    let (late_head, late) = striped(1, 2, &bodies[2], &[0, 250]);
    peers[2].write(&[&pieces[2][..], &late[1], &pieces[0]].concat());
    peers[1].write(&late[0]);
    // The end and the small message wait behind the large message that was sent before them.
    let end = header(&Frame::End {
        conduit: ConduitId(1),
        sequence: 4,
    });
    let small = [
        message(1, 1, &bodies[1], 3),
        late_head,
        message(1, 3, &bodies[3], 1),
    ]
    .concat();
    peers[0].write(&[&head, &small, &end[..], &message(2, 0, b"passes", 6)].concat());
    PairEnd::of(&host)
        .inlet(2, InboxOptions::default())
        .receive();
    assert_eq!((inlet.inbox.received(), inlet.inbox.ended()), (0, false));
    peers[1].write(&pieces[1]);
    for body in &bodies {
        assert!(inlet.receive().body[..] == body[..]);
    }
    inlet.wait(|inbox| inbox.ended());
}

#[test]
fn pieces_may_come_one_byte_at_a_time_and_right_behind_the_handshake() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let (address, key) = (host.listen(), 7);
    let body = pattern(0, 1000);
    let (head, pieces) = striped(1, 0, &body, &[0, 300]);
    let mut first = RawPeer::enter_first(&address, &secret, key, 2);
    first.0.read_exact(&mut [0; 64]).unwrap();
    first.write_slowly(&head);
    let _one = RawPeer::enter_further(&address, &secret, key, 2, &pieces[0]);
    let mut other = RawPeer::enter_further(&address, &secret, key, 1, &pieces[1][..100]);
    other.write_slowly(&pieces[1][100..]);
    assert!(
        PairEnd::of(&host)
            .inlet(1, InboxOptions::default())
            .receive()
            .body[..]
            == body[..]
    );
}

/// Reads the header of a frame.
fn read_frame(peer: &mut RawPeer) -> Option<Frame> {
    let mut bytes = [0; HEADER];
    peer.0.read_exact(&mut bytes).ok()?;
    Some(Header::decode(&bytes).unwrap().frame().unwrap())
}

/// Reads pieces to the end of a stream, about 25 MB a second. Passes on the offsets and the bytes.
fn read_pieces(mut peer: RawPeer, stream: usize, pieces: &Sender<(usize, usize, Vec<u8>)>) {
    while let Some(frame) = read_frame(&mut peer) {
        let Frame::Piece { body, offset, .. } = frame else {
            panic!("{frame:?} on a further stream");
        };
        let mut bytes = vec![0; body as usize];
        peer.0.read_exact(&mut bytes).unwrap();
        std::thread::sleep(Duration::from_nanos(40 * body));
        pieces.send((stream, offset as usize, bytes)).unwrap();
    }
}

#[test]
fn a_listener_whose_streams_are_full_asks_for_more_and_uses_them() {
    const KEY: u64 = 7;
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let mut first = RawPeer::enter_first(&address, &secret, KEY, 1);
    first.0.read_exact(&mut [0; HEADER]).unwrap();
    let further =
        |number, behind: &[u8]| RawPeer::enter_further(&address, &secret, KEY, number, behind);
    let one = further(1, &[]);
    let side = PairEnd::from(host);
    let limits = InboxOptions {
        messages: u64::MAX,
        bytes: u64::MAX,
    };
    let (outlet, inlet) = (side.outlet(1, limits), side.inlet(2, limits));
    let (sent, told) = (pattern(0, 64 << 20), pattern(1, 1000));
    std::thread::scope(|scope| {
        let (sender, pieces) = channel();
        let to_read_one = sender.clone();
        scope.spawn(move || read_pieces(one, 1, &to_read_one));
        scope.spawn(|| outlet.send(&sent));
        // A sender that is held up leaves the rest to the link, whose head of the message then comes first.
        let asked = loop {
            match read_frame(&mut first).unwrap() {
                Frame::Data { meta, .. } => {
                    first.0.read_exact(&mut vec![0; meta as usize]).unwrap()
                }
                other => break other,
            }
        };
        assert_eq!(asked, Frame::MoreStreams { count: 2 });

        // Bytes may come right behind the handshake of the new stream.
        let (head, told_pieces) = striped(2, 0, &told, &[0]);
        let mut two = further(2, &told_pieces[0]);
        let joined = read_frame(&mut two).unwrap();
        assert_eq!(
            joined,
            Frame::Join {
                key: KEY,
                number: 2
            }
        );
        first.write(&head);
        assert!(inlet.receive().body[..] == told[..]);
        scope.spawn(move || read_pieces(two, 2, &sender));

        let (mut got, mut count, mut by_two) = (vec![0; sent.len()], 0, 0);
        while count < sent.len() {
            let (stream, offset, bytes) = pieces.recv().unwrap();
            got[offset..offset + bytes.len()].copy_from_slice(&bytes);
            count += bytes.len();
            by_two += if stream == 2 { bytes.len() } else { 0 };
        }
        assert!(got == sent);
        assert!(by_two > sent.len() / 16, "{by_two} bytes");
        assert_eq!(side.carrier.streams(), 2);
        side.tcp.as_ref().unwrap().1.close();
    });
}

#[test]
fn a_link_whose_rate_is_count_set_sends_by_no_stream_that_joins() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let streams = header(&Frame::Streams {
        key: 7,
        count: 1,
        is_count_set: false,
        pacing: 1 << 30,
        send_buffer: 0,
        receive_buffer: 0,
    });
    let purpose = titin_wire::handshake::Purpose::Streams;
    let mut first = RawPeer::enter_with(purpose, &address, &secret, &streams);
    first.0.read_exact(&mut [0; HEADER]).unwrap();
    let _one = RawPeer::enter_further(&address, &secret, 7, 1, &[]);
    let link = host.events.opened();
    let mut two = RawPeer::enter_further(&address, &secret, 7, 2, &[]);
    // The link says that the stream has joined.
    two.0.read_exact(&mut [0; HEADER]).unwrap();
    assert_eq!(link.carrier().streams(), 1);
}

/// Returns the reason for which the link is lost once these bytes have come, `first` on the first
/// stream and `second` on the last.
fn verdict(first: &[u8], second: &[u8]) -> String {
    let (host, mut peers) = visited(2);
    peers[2].write(second);
    peers[0].write(first);
    let why = host.events.lost();
    for peer in &mut peers {
        peer.drain();
    }
    why.to_string()
}

#[test]
fn what_does_not_belong_on_a_stream() {
    let (head, pieces) = striped(1, 0, &pattern(0, 1000), &[0, 300]);
    let streams = header(&Frame::Streams {
        key: 1,
        count: 2,
        is_count_set: true,
        pacing: 0,
        send_buffer: 0,
        receive_buffer: 0,
    });
    let cases = [
        (
            pieces[0].clone(),
            vec![],
            "does not belong on stream 0 of 3",
        ),
        (vec![], head.clone(), "does not belong on stream 2 of 3"),
        (
            vec![],
            header(&Frame::Control { body: 3 }).to_vec(),
            "does not belong on stream 2",
        ),
        (vec![], vec![77; 64], "unknown kind 77"),
        (streams.to_vec(), vec![], "does not belong"),
        (
            header(&Frame::Join { key: 1, number: 1 }).to_vec(),
            vec![],
            "does not belong",
        ),
        ([&head[..], &head].concat(), vec![], "has begun before"),
        (vec![], [&pieces[0][..], &pieces[0]].concat(), "came twice"),
        (
            vec![],
            [
                &pieces[1][..],
                &striped(1, 0, &pattern(0, 999), &[0, 300]).1[0],
            ]
            .concat(),
            "1000 bytes and 999",
        ),
        (
            striped(1, 0, &pattern(0, 999), &[0]).0,
            pieces[1].clone(),
            "bytes and",
        ),
        (
            message(1, 1, b"early", 5),
            vec![],
            "number 1 on conduit 1, expected 0",
        ),
    ];
    for (first, second, expected) in cases {
        let found = verdict(&first, &second);
        assert!(found.contains(expected), "{found}, expected {expected}");
    }
}

#[test]
fn lengths_that_no_memory_has() {
    for total in [u64::MAX, 1 << 63, 1 << 60] {
        let piece = Frame::Piece {
            conduit: ConduitId(1),
            sequence: 0,
            body: 10,
            offset: 5,
            total,
        };
        assert!(verdict(&[], &header(&piece)).contains("no memory"));
    }
}

/// Each byte of a piece's header in turn is changed. The host goes on and accepts the next link.
#[test]
fn pieces_with_one_byte_changed() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let (head, pieces) = striped(1, 0, &pattern(0, 1000), &[0, 300]);
    for at in 0..64 {
        let mut bytes = pieces[1].clone();
        bytes[at] ^= 0xff;
        let mut peers = RawPeer::enter_streams(&address, &secret, 1);
        peers[1].write(&[&pieces[0], &bytes].map(|bytes| &bytes[..]).concat());
        peers[0].write(&head);
        drop(peers);
        host.events.opened();
        host.events.lost();
    }
}

#[track_caller]
fn assert_broke(why: &LinkError, stream: usize, streams: usize) {
    let is_broken = matches!(why, LinkError::Stream { number, count, .. } if (*number, *count) == (stream, streams));
    assert!(is_broken, "{why}");
}

#[test]
fn a_stream_that_ends_in_the_middle_of_a_piece_ends_the_link() {
    let (host, mut peers) = visited(4);
    let (head, pieces) = striped(1, 0, &pattern(0, 1000), &[0, 300]);
    peers[0].write(&head);
    peers[3].write(&pieces[1][..100]);
    peers[3].0.shutdown(Shutdown::Write).unwrap();
    let why = host.events.lost();
    assert_broke(&why, 3, 4);
    assert!(
        why.to_string()
            .contains("stream 3 of 4 of the connection broke"),
        "{why}"
    );
    assert_eq!(host.conduits.inbox(ConduitId(1)).received(), 0);
    for peer in &mut peers {
        peer.drain();
    }
}

#[test]
fn a_stream_that_ends_between_pieces_ends_the_link() {
    let (host, mut peers) = visited(4);
    let (head, pieces) = striped(1, 0, &pattern(0, 1000), &[0, 300]);
    peers[0].write(&head);
    peers[3].write(&pieces[1]);
    peers[3].0.shutdown(Shutdown::Write).unwrap();
    let why = host.events.lost();
    assert_broke(&why, 3, 4);
    for peer in &mut peers {
        peer.drain();
    }
}

/// The operating system has taken all bytes of a message, so the sender writes no more. Then a
/// stream breaks, and some of these bytes never arrive.
#[test]
fn a_sender_learns_of_a_stream_that_breaks_behind_its_last_message() {
    for length in [1 << 20, 256 << 20] {
        let secret = Secret::random();
        let host = Host::start(&secret);
        let mut peers = RawPeer::enter_streams(&host.listen(), &secret, 2);
        let side = PairEnd::from(host);
        let outlet = side.outlet(
            1,
            InboxOptions {
                messages: u64::MAX,
                bytes: u64::MAX,
            },
        );
        let copied = outlet.send(&pattern(0, length)).copied;
        assert_eq!(
            copied > 0,
            length > 1 << 20,
            "the system has taken all but {copied} of {length} bytes"
        );
        // The peer closes the stream without reading all bytes, so the connection is reset.
        peers[2].0.read_exact(&mut [0; 64]).unwrap();
        drop(peers.pop());
        let (host, _) = side.tcp.as_ref().unwrap();
        let why = host.events.lost();
        assert_broke(&why, 2, 2);
    }
}

#[test]
fn an_end_in_the_middle_of_a_message_is_no_message() {
    let (host, mut peers) = visited(2);
    let (head, pieces) = striped(1, 0, &pattern(0, 1000), &[0, 300]);
    peers[0].write(&head);
    peers[1].write(&pieces[0]);
    drop(peers);
    assert_eq!(host.events.lost(), LinkError::Closed);
    assert_eq!(host.conduits.inbox(ConduitId(1)).received(), 0);
}

/// Sends over four streams through a relay, which breaks one stream or all. Returns the error of
/// the send, and the reason that the sender's reactor gives.
fn sender(break_one: bool) -> (LinkError, LinkError) {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let relay = titin_testkit::Relay::start(host.listen());
    let dialler = Host::start(&secret);
    let streams = LinkSettings {
        streams: Some(4),
        ..LinkSettings::default()
    };
    dialler.dial_with(&[relay.address()], 0, streams);
    host.events.opened();
    let side = PairEnd::from(dialler);
    let outlet = side.outlet(
        1,
        InboxOptions {
            messages: u64::MAX,
            bytes: u64::MAX,
        },
    );
    if break_one {
        relay.cut(2)
    } else {
        relay.cut_all()
    }
    let bytes = pattern(0, 4 << 20);
    let why = (0..).find_map(|sequence| {
        outlet
            .send_numbered(sequence, &[std::io::IoSlice::new(&bytes)])
            .err()
    });
    let (dialler, _) = side.tcp.as_ref().unwrap();
    (why.unwrap(), dialler.events.lost())
}

#[test]
fn a_sender_learns_which_stream_broke() {
    let (why, told) = sender(true);
    assert!(matches!(why, LinkError::Stream { count: 4, .. }), "{why}");
    assert_eq!(why, told);
}

#[test]
fn a_sender_learns_that_the_other_end_has_gone() {
    let (why, told) = sender(false);
    assert_eq!(told, LinkError::Closed, "{why}");
}

#[test]
fn streams_that_do_not_come_make_no_link() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let key = EndpointId::random().0 as u64;
    let mut first = RawPeer::enter_first(&address, &secret, key, 2);
    first.0.read_exact(&mut [0; 64]).unwrap();
    // Streams whose number or key the host does not expect.
    assert_eq!(
        RawPeer::enter_further(&address, &secret, key ^ 1, 1, &[]).drain(),
        b""
    );
    let mut again = RawPeer::enter_first(&address, &secret, key, 1);
    let answer = again.drain();
    assert!(answer.len() <= 64, "a key that is taken");
    let _one = RawPeer::enter_further(&address, &secret, key, 1, &[]);
    RawPeer::enter_further(&address, &secret, key, 1, &[]).drain();
    assert_eq!(first.drain(), b"", "the link is given up");
    assert_eq!(host.events.count(), 0);
    // Other links are made as before.
    let peers = RawPeer::enter_streams(&address, &secret, 3);
    assert_eq!(host.events.opened().tag(), None);
    drop(peers);
}

#[test]
fn what_says_not_what_it_is_for_is_shown_out() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let (join, look) = (
        header(&Frame::Join { key: 1, number: 1 }),
        header(&Frame::Look),
    );
    for (first, key) in [(true, look), (false, look), (true, join)] {
        let mut peer = match first {
            true => RawPeer::enter_with(
                titin_wire::handshake::Purpose::Streams,
                &address,
                &secret,
                &key,
            ),
            false => RawPeer::enter_with(
                titin_wire::handshake::Purpose::Stream,
                &address,
                &secret,
                &key,
            ),
        };
        assert_eq!(peer.drain(), b"");
    }
    assert_eq!(host.events.count(), 0);
}

#[test]
fn a_dialler_says_which_stream_did_not_come() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let relay = titin_testkit::Relay::start(host.listen());
    relay.admit(2);
    let dialler = Host::start(&secret);
    let streams = LinkSettings {
        streams: Some(4),
        ..LinkSettings::default()
    };
    dialler.dial_with(&[relay.address()], 3, streams);
    let why = dialler.events.unreachable(3).to_string();
    let Address::Tcp(ip, port) = relay.address() else {
        unreachable!()
    };
    assert!(
        why.contains(&format!("{ip}:{port}")) && why.contains("stream "),
        "{why}"
    );
    assert_eq!(host.events.count(), 0);
}

#[test]
fn the_rate_is_kept() {
    for streams in [1, 4] {
        let rate = 40 << 20;
        let settings = LinkSettings {
            streams: Some(streams),
            pacing: Some(rate),
            ..LinkSettings::default()
        };
        let pair = Pair::set(settings);
        for (from, to) in [(&pair.left, &pair.right), (&pair.right, &pair.left)] {
            let (outlet, inlet) = (
                from.outlet(1, InboxOptions::default()),
                to.inlet(1, InboxOptions::default()),
            );
            let bytes = pattern(0, 16 << 20);
            let start = Instant::now();
            outlet.send(&bytes);
            assert!(inlet.receive().body[..] == bytes[..]);
            // The operating system sends a few bytes at once at the beginning, hence the factor
            // 0.8.
            let least = Duration::from_secs_f64(0.8 * bytes.len() as f64 / rate as f64);
            assert!(
                start.elapsed() >= least,
                "{:?} by {streams} streams",
                start.elapsed()
            );
            outlet.end();
            inlet.wait(|inbox| inbox.ended());
            to.conduits.forget(ConduitId(1), true);
            from.conduits.forget(ConduitId(1), false);
        }
    }
}

#[test]
fn buffers_are_as_said() {
    let of = |bytes: u64| LinkSettings {
        streams: Some(2),
        send_buffer: Some(bytes),
        receive_buffer: Some(bytes),
        ..LinkSettings::default()
    };
    // The receiver stands still. So the sender copies all bytes that the buffers of the system do
    // not hold.
    let held = [64 << 10, 1 << 20].map(|bytes| {
        let pair = Pair::set(of(bytes));
        let (outlet, inlet) = pair.conduit(1);
        let stall = pair.stall();
        let held = (24 << 20) - outlet.send(&pattern(0, 24 << 20)).copied;
        drop(stall);
        assert!(inlet.receive().body[..] == pattern(0, 24 << 20));
        held
    });
    assert!(held[0] < 1 << 20 && held[0] < held[1], "{held:?}");
}
