//! A reader finds the same frames in a stream, however the network cuts the stream and however much
//! room the reader gives.

use std::io::IoSliceMut;

use titin_testkit::{header, message, pattern};
use titin_transport::{FrameReader, LinkError, Received};
use titin_wire::frame::Frame;
use titin_wire::{ConduitId, Malformed};

/// A stream with several kinds of frames. The messages interleave; some are empty, some come in one
/// piece, and some in several pieces.
fn stream() -> Vec<u8> {
    let conduit = ConduitId(1);
    let split = |bytes: Vec<u8>, at: usize| (bytes[..at].to_vec(), bytes[at..].to_vec());
    let (first, second) = split(message(1, 0, &pattern(0, 40), 13), 64 + 64 + 13);
    let (third, fourth) = split(message(2, 0, &pattern(1, 30), 29), 64 + 64 + 29);
    [
        header(&Frame::Control { body: 5 }).to_vec(),
        b"hello".to_vec(),
        first,
        third,
        header(&Frame::Acknowledge {
            conduit,
            ack: Default::default(),
        })
        .to_vec(),
        second,
        message(1, 1, b"", 1),
        header(&Frame::Ask {
            conduit,
            sequence: 2,
        })
        .to_vec(),
        fourth,
        header(&Frame::End {
            conduit,
            sequence: 2,
        })
        .to_vec(),
    ]
    .concat()
}

/// Returns the frames that a reader finds in a stream that is cut at these places.
fn read(stream: &[u8], ends: impl IntoIterator<Item = usize>) -> (Vec<String>, Option<LinkError>) {
    let (mut reader, mut out, mut at) = (FrameReader::new(&[]), Vec::new(), 0);
    let mut lost = None;
    'cut: for end in ends.into_iter().chain([stream.len()]) {
        while at < end {
            let mut fill = |slices: &mut [IoSliceMut<'_>]| {
                let before = at;
                for slice in slices {
                    let take = slice.len().min(end - at);
                    slice[..take].copy_from_slice(&stream[at..at + take]);
                    at += take;
                }
                Ok(at - before)
            };
            if let Err(why) = reader.read(&mut out, &mut fill) {
                lost = Some(why);
                break 'cut;
            }
        }
    }
    (out.iter().map(describe).collect(), lost)
}

fn describe(received: &Received) -> String {
    match received {
        Received::Message(message) => {
            format!(
                "{} {} {:?}",
                message.head.conduit,
                message.head.sequence,
                &message.body[..]
            )
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn whole() {
    let (found, lost) = read(&stream(), []);
    let said = |conduit, sequence, body: &[u8]| format!("{conduit} {sequence} {body:?}");
    let expected = [
        format!("{:?}", Received::Control(b"hello".to_vec())),
        format!(
            "{:?}",
            Received::Acknowledged(ConduitId(1), Default::default())
        ),
        said(1, 0, &pattern(0, 40)),
        said(1, 1, b""),
        format!("{:?}", Received::Asked(ConduitId(1), 2)),
        said(2, 0, &pattern(1, 30)),
        format!("{:?}", Received::Ended(ConduitId(1), 2)),
    ];
    assert_eq!((found, lost), (expected.to_vec(), None));
}

#[test]
fn every_two_and_three_parts() {
    let stream = stream();
    let whole = read(&stream, []);
    for first in 0..=stream.len() {
        assert_eq!(read(&stream, [first]), whole, "cut at {first}");
        // Every seventh place is enough. Every place would take longer.
        for second in (first..stream.len()).step_by(7) {
            assert_eq!(
                read(&stream, [first, second]),
                whole,
                "cut at {first} and {second}"
            );
        }
    }
}

#[test]
fn equal_parts_of_every_size() {
    let stream = stream();
    let whole = read(&stream, []);
    for size in 1..stream.len() {
        assert_eq!(
            read(&stream, (size..stream.len()).step_by(size)),
            whole,
            "parts of {size}"
        );
    }
}

#[test]
fn parts_of_random_sizes() {
    let stream: Vec<u8> = (0..20).flat_map(|_| stream()).collect();
    // The same numbers come again and again. A reader does not check the numbers of messages; it
    // only puts pieces together.
    let whole = read(&stream, []);
    assert_eq!((whole.0.len(), &whole.1), (140, &None));
    for seed in 0..200 {
        let sizes = pattern(seed, 4000);
        let ends = sizes.iter().scan(0, |at, size| {
            *at += usize::from(*size) / (1 + seed as usize % 7);
            Some(*at)
        });
        assert_eq!(
            read(&stream, ends.take_while(|end| *end < stream.len())),
            whole,
            "seed {seed}"
        );
    }
}

#[test]
fn what_came_before_an_error_is_there_however_it_is_cut() {
    let mut stream = stream();
    stream.extend([77; 64]);
    stream.extend(message(3, 0, b"never read", 10));
    let whole = read(&stream, []);
    assert_eq!(whole.0.len(), 7);
    assert_eq!(
        whole.1,
        Some(LinkError::Malformed(Malformed::new(
            "frame header",
            "unknown kind 77"
        )))
    );
    for size in 1..stream.len() {
        assert_eq!(
            read(&stream, (size..stream.len()).step_by(size)),
            whole,
            "parts of {size}"
        );
    }
}

/// How much room the reader gives behind a payload, for each read of a stream that is cut nowhere.
fn room(reader: &mut FrameReader, stream: &[u8]) -> Vec<usize> {
    let (mut out, mut at, mut room) = (Vec::new(), 0, Vec::new());
    while at < stream.len() {
        let fill = |slices: &mut [IoSliceMut<'_>]| {
            let before = at;
            room.push(slices.last().map_or(0, |slice| slice.len()));
            for slice in slices {
                let take = slice.len().min(stream.len() - at);
                slice[..take].copy_from_slice(&stream[at..at + take]);
                at += take;
            }
            Ok(at - before)
        };
        reader.read(&mut out, fill).unwrap();
    }
    room
}

#[test]
fn little_is_read_ahead_behind_a_large_message_and_much_among_small_ones() {
    let mut reader = FrameReader::new(&[]);
    let large = |sequence| message(1, sequence, &pattern(0, 1 << 20), 1 << 20);
    assert_eq!(room(&mut reader, &large(0))[0], 64 << 10);
    assert!(
        room(&mut reader, &large(1))
            .iter()
            .all(|room| *room <= 4 << 10)
    );
    let small: Vec<u8> = (0..2000)
        .flat_map(|sequence| message(2, sequence, b"small", 5))
        .collect();
    let found = room(&mut reader, &small);
    assert_eq!(found[..4], [4, 8, 16, 32].map(|kib| kib << 10));
    assert!(found[4] > 60 << 10);
}
