//! Hostile peers that know the secret and write wrong bytes to shared memory: each peer loses its
//! link, and nothing else is harmed.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use titin_testkit::{Host, PairEnd, header};
use titin_transport::InboxOptions;
use titin_wire::frame::{Ack, Frame, Head, Header};
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::meta::{Content, Meta};
use titin_wire::{Address, ConduitId, Secret};

const LINE: usize = 64;
const ENTRIES: usize = 64 * LINE;
const RING: usize = 256 << 10;
const BLOCKS: usize = 1 << 14;
const REGION: usize = ENTRIES + RING + 4 * BLOCKS;
const BELLS: usize = BLOCKS * 64;

/// A peer that the test plays by hand, after the handshake.
struct Hand {
    socket: UnixStream,
    ring: std::fs::File,
}

/// Makes memory as titin makes it.
fn memory(length: usize, seals: SealFlags) -> OwnedFd {
    let file =
        rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, length as u64).unwrap();
    rustix::fs::fcntl_add_seals(&file, seals).unwrap();
    file
}

fn sealed(length: usize) -> OwnedFd {
    let file = memory(length, SealFlags::SHRINK | SealFlags::GROW);
    let all = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, all, 0, length as u64).unwrap();
    file
}

impl Hand {
    fn enter(address: &Address, secret: &Secret) -> Self {
        let Address::Shm(path) = address else {
            panic!("{address} is no file")
        };
        let mut socket = UnixStream::connect(path).unwrap();
        let (mut handshake, hello) = Handshake::dial(secret.clone(), Purpose::Data);
        socket.write_all(&hello).unwrap();
        let mut proved = false;
        loop {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            let progress = handshake.advance(&byte).unwrap();
            if progress.agreed.is_some() {
                return Hand {
                    socket,
                    ring: std::fs::File::from(sealed(REGION)),
                };
            }
            if !progress.reply.is_empty() && !std::mem::replace(&mut proved, true) {
                socket.write_all(&progress.reply).unwrap();
            }
        }
    }

    fn send(&self, frame: &Frame, files: &[OwnedFd]) {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
        }
        let bytes = header(frame);
        // The write fails if the other end has hung up.
        let _ = rustix::net::sendmsg(
            &self.socket,
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        );
    }

    /// Shares memory as a well-behaved peer does.
    fn share(&mut self) {
        let files = [self.ring.try_clone().unwrap().into(), sealed(BELLS)];
        self.send(
            &Frame::Share {
                ring: RING as u64,
                blocks: BLOCKS as u64,
            },
            &files,
        );
        self.send(&Frame::Shared, &[]);
        let mut answer = [0; 2 * LINE];
        self.socket.read_exact(&mut answer).unwrap();
    }

    /// Writes bytes at the beginning of the ring, and asks the other end to look.
    fn put(&self, bytes: &[u8]) {
        self.ring.write_all_at(bytes, ENTRIES as u64).unwrap();
        self.send(&Frame::Look, &[]);
    }

    fn drain(&mut self) {
        let _ = self.socket.read_to_end(&mut Vec::new());
    }
}

/// Returns a host, and a peer played by hand that shares memory with the host.
fn met() -> (Host, Hand) {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let mut hand = Hand::enter(&host.listen_shm(), &secret);
    hand.share();
    (host, hand)
}

/// Returns the reason for which the link of this peer is lost.
fn verdict(act: impl FnOnce(&mut Hand)) -> String {
    let (host, mut hand) = met();
    act(&mut hand);
    let why = host.events.lost();
    hand.drain();
    why.to_string()
}

fn assert_verdict(expected: &str, act: impl FnOnce(&mut Hand)) {
    let found = verdict(act);
    assert!(found.contains(expected), "{found}");
}

fn head(sequence: u64) -> Head {
    let conduit = ConduitId(1);
    Head::new(conduit, sequence, 0.0, None)
}

fn meta() -> Vec<u8> {
    Meta {
        content: Content::Structure,
        ..Meta::default()
    }
    .encode()
}

fn entry(frame: &Frame) -> Vec<u8> {
    [&Header::from(frame).encode()[..], &meta()].concat()
}

fn placed(block: u64, total: u64) -> Vec<u8> {
    entry(&Frame::Placed {
        head: head(0),
        meta: meta().len() as u32,
        block,
        total,
    })
}

#[test]
fn entries_that_do_not_belong_in_a_ring() {
    assert_verdict("does not belong there", |hand| {
        hand.put(&entry(&Frame::Control { body: 5 }))
    });
    assert_verdict("does not belong there", |hand| {
        hand.put(&entry(&Frame::Look))
    });
    assert_verdict("unknown kind 77", |hand| hand.put(&[77; LINE]));
}

/// Fills the whole ring with acknowledgements of an unknown conduit, so that the reader finds no
/// end. The bytes `last` stand at the end of the ring.
fn all_round(last: &[u8]) -> Vec<u8> {
    let ack = Ack {
        received: 0,
        consumed: 0,
        bytes: 0,
        ended: false,
    };
    let one = header(&Frame::Acknowledge {
        conduit: ConduitId(9),
        ack,
    });
    let mut bytes = one.repeat(RING / LINE);
    bytes.truncate(RING - last.len());
    bytes.extend_from_slice(last);
    bytes
}

#[test]
fn a_ring_that_has_no_end_does_not_keep_anybody() {
    // An entry of kind 255 fills the ring up to its end. Here it stands at the beginning, where no
    // such entry may stand.
    assert_verdict("unknown kind 255", |hand| {
        hand.put(&[255, 0, 0, 0, 0, 0, 0, 0])
    });
    assert_verdict("unknown kind 77", |hand| {
        let bytes = all_round(&[]);
        hand.put(&bytes);
        hand.put(&bytes);
        hand.put(&[77; LINE]);
    });
}

#[test]
fn frames_that_do_not_come_by_the_socket() {
    let ack = Ack {
        received: 0,
        consumed: 0,
        bytes: 0,
        ended: false,
    };
    let conduit = ConduitId(1);
    for frame in [
        Frame::Acknowledge { conduit, ack },
        Frame::End {
            conduit,
            sequence: 0,
        },
        Frame::Ask {
            conduit,
            sequence: 0,
        },
    ] {
        assert_verdict("belongs in the ring", |hand| hand.send(&frame, &[]));
    }
}

#[test]
fn lengths_that_no_ring_has() {
    let meta = meta().len() as u32;
    let data = |meta, body, total| {
        entry(&Frame::Data {
            head: head(0),
            meta,
            body,
            total,
        })
    };
    assert_verdict("lengths that no entry has", |hand| {
        hand.put(&data(meta, 1 << 40, 1 << 40))
    });
    assert_verdict("bytes of metadata", |hand| {
        hand.put(&data(u32::MAX - 63, 1, 1))
    });
    assert_verdict("lengths that no entry has", |hand| {
        hand.put(&data(1 << 20, 1, 1))
    });
    assert_verdict("lengths that no entry has", |hand| {
        hand.put(&data(meta, 1, 1 << 50))
    });
    assert_verdict("lengths that no entry has", |hand| hand.put(&data(1, 0, 0)));
    assert_verdict("beyond its end", |hand| {
        hand.put(&all_round(&data(meta, 2000, 2000)[..LINE]))
    });
}

#[test]
fn metadata_that_nobody_has_sent() {
    let same = |_: &mut Hand| {
        let frame = Frame::Data {
            head: head(0),
            meta: 0,
            body: 0,
            total: 0,
        };
        Header::from(&frame).with_same_meta().encode()
    };
    assert_verdict("there were none", |hand| {
        let bytes = same(hand);
        hand.put(&bytes);
    });
}

#[test]
fn payloads_that_are_larger_than_their_block() {
    assert_verdict("bytes in a block of 4096", |hand| {
        hand.send(
            &Frame::Segment {
                first: 0,
                size: 4096,
                count: 4,
            },
            &[sealed(4 * 4096)],
        );
        hand.put(&placed(2, 4097));
    });
}

#[test]
fn blocks_that_do_not_exist_are_waited_for_and_harm_nobody() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen_shm();
    let hands: Vec<Hand> = [3, 4, BLOCKS as u64, u64::MAX]
        .into_iter()
        .map(|block| {
            let mut hand = Hand::enter(&address, &secret);
            hand.share();
            hand.send(
                &Frame::Segment {
                    first: 0,
                    size: 4096,
                    count: 3,
                },
                &[sealed(3 * 4096)],
            );
            hand.put(&placed(block, 10));
            hand
        })
        .collect();
    for hand in hands {
        drop(hand);
        assert_eq!(
            host.events.lost().to_string(),
            "the connection was closed by the other end"
        );
    }
    assert_eq!(host.conduits.inbox(ConduitId(1)).received(), 0);
}

#[test]
fn segments_that_are_not_what_they_are_said_to_be() {
    let segment = |first, size, count| Frame::Segment { first, size, count };
    let cases: [(Frame, Vec<OwnedFd>, &str); 9] = [
        (
            segment(0, 4096, 4),
            vec![sealed(4096)],
            "not as long as was said",
        ),
        (
            segment(0, 4096, 4),
            vec![sealed(1 << 20)],
            "not as long as was said",
        ),
        (
            segment(0, 4096, 4),
            vec![memory(4 * 4096, SealFlags::empty())],
            "cut short",
        ),
        (
            segment(0, 4096, 4),
            vec![std::fs::File::open("/dev/null").unwrap().into()],
            "cannot be mapped",
        ),
        (
            segment(0, 4096, 4),
            vec![UnixStream::pair().unwrap().0.into()],
            "cannot be mapped",
        ),
        (segment(0, 4096, 4), vec![], "descriptor"),
        (segment(0, 0, 4), vec![sealed(4096)], "4 blocks of 0 bytes"),
        (segment(0, 1 << 63, 4), vec![sealed(4096)], "blocks of"),
        (
            segment(BLOCKS as u64, 4096, 1),
            vec![sealed(4096)],
            "from number",
        ),
    ];
    for (frame, files, expected) in cases {
        assert_verdict(expected, |hand| hand.send(&frame, &files));
    }
}

/// Makes a segment of 4096 bytes of this value.
fn filled(byte: u8) -> OwnedFd {
    let file = std::fs::File::from(sealed(4096));
    file.write_all_at(&[byte; 4096], 0).unwrap();
    file.into()
}

#[test]
fn a_block_is_looked_for_in_no_segment_that_had_its_place_before() {
    let (host, hand) = met();
    let segment = |serial: u64| Frame::Segment {
        first: serial << 32,
        size: 4096,
        count: 1,
    };
    hand.send(&segment(0), &[filled(1)]);
    hand.put(&placed(1 << 32, 10));
    hand.send(&segment(1), &[filled(2)]);
    let inlet = PairEnd::of(&host).inlet(1, InboxOptions::default());
    assert_eq!(inlet.receive().body[..], [2; 10]);
}

#[test]
fn a_block_goes_back_though_nobody_has_seen_what_it_had() {
    let (_host, hand) = met();
    let meta = Meta {
        content: Content::Structure,
        supersedes: Some(0),
        ..Meta::default()
    }
    .encode();
    let superseding = |sequence: u64, block: u64| {
        let frame = Frame::Placed {
            head: head(sequence),
            meta: meta.len() as u32,
            block,
            total: 10,
        };
        [&Header::from(&frame).encode()[..], &meta, &[0; LINE]].concat()
    };
    // All three messages lie in segments that have not come, and each message takes the place of
    // the message before.
    hand.put(&[placed(5, 10), superseding(1, u64::MAX), superseding(2, 7)].concat());
    let returned = |block: u64| {
        let mut count = [0; 4];
        hand.ring
            .read_exact_at(&mut count, (ENTRIES + RING) as u64 + 4 * block)
            .unwrap();
        u32::from_le_bytes(count)
    };
    while returned(5) == 0 {
        std::thread::yield_now();
    }
    assert_eq!((returned(5), returned(7)), (1, 0));
}

#[test]
fn what_was_taken_back_is_not_seen_and_holds_up_nothing() {
    let (host, hand) = met();
    let meta = Meta {
        content: Content::Structure,
        supersedes: Some(0),
        ..Meta::default()
    }
    .encode();
    let superseding = |sequence: u64, block: u64, taken: u8| {
        let frame = Frame::Placed {
            head: head(sequence),
            meta: meta.len() as u32,
            block,
            total: 10,
        };
        [&Header::from(&frame).encode()[..], &meta, &[taken; LINE]].concat()
    };
    hand.send(
        &Frame::Segment {
            first: 0,
            size: 4096,
            count: 1,
        },
        &[filled(3)],
    );
    // The sender has taken back the first and the last message, so their block numbers may be
    // wrong.
    hand.put(
        &[
            superseding(0, u64::MAX, 1),
            superseding(1, 0, 0),
            superseding(2, 9, 0xff),
        ]
        .concat(),
    );
    let inlet = PairEnd::of(&host).inlet(1, InboxOptions::default());
    let message = inlet.receive();
    assert_eq!(
        (message.head.sequence, &message.body[..]),
        (1, &[3; 10][..])
    );
    let end = header(&Frame::End {
        conduit: ConduitId(1),
        sequence: 2,
    });
    let entries = 3 * (2 * LINE + meta.len());
    hand.ring
        .write_all_at(&end, (ENTRIES + entries) as u64)
        .unwrap();
    hand.send(&Frame::Look, &[]);
    inlet.wait(|inbox| inbox.exhausted());
}

#[test]
fn what_comes_by_the_socket_holds_up_its_own_conduit_only() {
    let (host, mut hand) = met();
    let meta = meta();
    let small = |conduit: u32, sequence: u64| {
        let head = Head::new(ConduitId(conduit), sequence, 0.0, None);
        entry(&Frame::Data {
            head,
            meta: meta.len() as u32,
            body: 0,
            total: 0,
        })
    };
    let large = header(&Frame::Elsewhere {
        conduit: ConduitId(1),
        sequence: 0,
    });
    let end = header(&Frame::End {
        conduit: ConduitId(1),
        sequence: 2,
    });
    hand.put(&[&large[..], &small(1, 1), &end, &small(2, 0)].concat());
    let side = PairEnd::of(&host);
    let [held, free] = [1, 2].map(|conduit| side.inlet(conduit, InboxOptions::default()));
    assert_eq!(free.receive().head.sequence, 0);
    assert_eq!((held.inbox.received(), held.inbox.ended()), (0, false));
    let late = Frame::Data {
        head: head(0),
        meta: meta.len() as u32,
        body: 10,
        total: 10,
    };
    hand.socket
        .write_all(&[&header(&late)[..], &meta, &[3; 10]].concat())
        .unwrap();
    assert_eq!(held.receive().body[..], [3; 10]);
    assert_eq!(held.receive().head.sequence, 1);
    held.wait(|inbox| inbox.exhausted());
}

#[test]
fn segments_are_let_go_when_they_are_withdrawn() {
    let (host, hand) = met();
    let files = [filled(1), filled(2)];
    let is_mapped = |file: &OwnedFd| {
        let inode = rustix::fs::fstat(file).unwrap().st_ino.to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines()
            .any(|line| line.split_whitespace().nth(4) == Some(&inode))
    };
    let copy = |index: usize| [files[index].try_clone().unwrap()];
    hand.send(
        &Frame::Segment {
            first: 0,
            size: 4096,
            count: 1,
        },
        &copy(0),
    );
    // A peer may withdraw segments that do not exist. Nothing is harmed.
    hand.send(&Frame::Withdrawn { first: 1 << 32 }, &[]);
    hand.send(&Frame::Withdrawn { first: u64::MAX }, &[]);
    hand.put(&placed(0, 10));
    let inlet = PairEnd::of(&host).inlet(1, InboxOptions::default());
    let message = inlet.receive();
    hand.send(&Frame::Withdrawn { first: 0 }, &[]);
    hand.send(
        &Frame::Segment {
            first: 5,
            size: 4096,
            count: 1,
        },
        &copy(1),
    );
    let next = Frame::Placed {
        head: head(1),
        meta: meta().len() as u32,
        block: 5,
        total: 10,
    };
    hand.ring
        .write_all_at(&entry(&next), (ENTRIES + 2 * LINE) as u64)
        .unwrap();
    hand.send(&Frame::Look, &[]);
    assert_eq!(inlet.receive().body[..], [2; 10]);
    assert!(is_mapped(&files[1]));
    assert!(
        is_mapped(&files[0]) && message.body[..] == [1; 10],
        "a view keeps its own"
    );
    drop(message);
    assert!(!is_mapped(&files[0]));
}

#[test]
fn offers_that_are_none_leave_no_link() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen_shm();
    let share = |ring: usize, blocks| Frame::Share {
        ring: ring as u64,
        blocks,
    };
    let blocks = BLOCKS as u64;
    let unsealed = || memory(REGION, SealFlags::empty());
    let cases: [(Frame, Vec<OwnedFd>); 8] = [
        (share(RING, blocks), vec![]),
        (share(RING, blocks), vec![sealed(REGION)]),
        (share(RING, blocks), vec![unsealed(), sealed(BELLS)]),
        (share(RING, blocks), vec![sealed(LINE), sealed(BELLS)]),
        (share(RING, blocks), vec![sealed(REGION), sealed(LINE)]),
        (share(RING, 1), vec![sealed(REGION), sealed(BELLS)]),
        (share(0, blocks), vec![sealed(REGION), sealed(BELLS)]),
        (
            share(usize::MAX, blocks),
            vec![sealed(REGION), sealed(BELLS)],
        ),
    ];
    for (frame, files) in cases {
        let mut hand = Hand::enter(&address, &secret);
        hand.send(&frame, &files);
        hand.drain();
    }
    assert_eq!(host.events.count(), 0, "one of them became a link");
    // A well-behaved peer is served as before.
    let friend = Host::start(&secret);
    friend.dial(&[address], 0);
    friend.events.opened();
}

/// Draws a valid entry or frame of some kind, for any block and number.
fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    let length = meta().len() as u32;
    let small = 0..4u64;
    prop_oneof![
        (small.clone(), 0..70usize).prop_map(move |(sequence, size)| {
            let size = size as u64;
            let frame = Frame::Data {
                head: head(sequence),
                meta: length,
                body: size,
                total: size,
            };
            let padding = vec![7; (size as usize).next_multiple_of(LINE)];
            [entry(&frame), padding].concat()
        }),
        (0..8u64, 0..5000u64).prop_map(|(block, total)| placed(block, total)),
        small.clone().prop_map(|sequence| {
            header(&Frame::Elsewhere {
                conduit: ConduitId(1),
                sequence,
            })
            .to_vec()
        }),
        (small.clone(), any::<bool>()).prop_map(|(received, ended)| {
            let ack = Ack {
                received,
                consumed: received,
                bytes: received,
                ended,
            };
            header(&Frame::Acknowledge {
                conduit: ConduitId(1),
                ack,
            })
            .to_vec()
        }),
        small.clone().prop_map(|sequence| header(&Frame::End {
            conduit: ConduitId(1),
            sequence
        })
        .to_vec()),
        small.prop_map(|sequence| header(&Frame::Ask {
            conduit: ConduitId(1),
            sequence
        })
        .to_vec()),
    ]
}

/// Draws a frame that hands over or withdraws memory. The numbers are often close to right numbers.
fn any_memory() -> impl Strategy<Value = Frame> {
    let number = || {
        prop_oneof![
            0..9u64,
            Just(BLOCKS as u64 - 1),
            Just(1 << 32),
            any::<u64>()
        ]
    };
    let size = || {
        prop_oneof![
            Just(0u64),
            Just(4096),
            Just(64),
            Just(1 << 63),
            any::<u64>()
        ]
    };
    prop_oneof![
        (number(), size(), number()).prop_map(|(first, size, count)| Frame::Segment {
            first,
            size,
            count
        }),
        (size(), number()).prop_map(|(ring, blocks)| Frame::Share { ring, blocks }),
        number().prop_map(|first| Frame::Withdrawn { first }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Entries with some changed bytes, and frames about memory. The link may be lost, and nothing
    /// else is harmed.
    #[test]
    fn whatever_a_peer_puts_there_harms_nobody_else(
        entries in vec(any_entry(), 0..6),
        changes in vec((0..600usize, any::<u8>()), 0..4),
        memory in vec((any_memory(), 0..3usize), 0..3),
    ) {
        let secret = Secret::random();
        let host = Host::start(&secret);
        let address = host.listen_shm();
        let mut hand = Hand::enter(&address, &secret);
        hand.share();
        let mut bytes = entries.concat();
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        for (frame, files) in memory {
            hand.send(&frame, &[sealed(4096), sealed(BELLS)][..files]);
        }
        hand.put(&bytes);
        let inlet = PairEnd::of(&host).inlet(1, InboxOptions::default());
        drop(hand);
        host.events.lost();
        prop_assert!(inlet.inbox.received() <= entries.len() as u64);
        // Other peers are let in as before.
        Hand::enter(&address, &secret).share();
        host.events.lost();
    }
}
