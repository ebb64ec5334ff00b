//! A field of one small piece between two serial programs: the piece goes in the header's message if
//! the receiver has declared that it takes such messages. The other end is played by hand.

use std::time::Duration;

use titin_runtime::array::{
    Bytes as _, Decomposition, LocalLayout, Ownership, Side, SourceArray, TargetArray,
};
use titin_runtime::*;
use titin_testkit::header;
use titin_wire::ConduitId;
use titin_wire::control::FieldEnd;
use titin_wire::frame::{Frame, Head};

use crate::hand::Hand;
use crate::stage::Stage;

/// The conduit between the instances.
const ALONG: ConduitId = ConduitId(0);

/// The longest piece that goes in a header's message.
const SHORT: u64 = 2 << 10;

fn side(length: u64) -> Side {
    Side::new(Decomposition::serial(&[length]).unwrap())
}

/// The declaration of an array of bytes.
fn declaration(length: u64, takes_joined: bool) -> FieldEnd {
    FieldEnd {
        side: side(length).to_bytes(),
        dtypes: vec![Dtype::UInt8 as u8],
        takes_joined,
    }
}

fn declare(instance: &Instance, port: &str, length: u64) -> FieldId {
    let port = instance.port(port).unwrap();
    let declared = instance.field(port, side(length), Ownership::Rule, &[Dtype::UInt8]);
    declared.unwrap()
}

/// The place of the first element in each array.
const OFFSET: usize = 5;

/// An array of `length` bytes, with `stride` bytes from one element to the next.
fn layout(length: u64, stride: usize) -> LocalLayout {
    LocalLayout::strided(&[length], OFFSET as u64, &[stride as i64]).unwrap()
}

/// Sends an array of bytes; returns the elements.
fn send(
    instance: &Instance,
    field: FieldId,
    (length, stride): (u64, usize),
    step: usize,
) -> Vec<u8> {
    let memory: Vec<u8> = (0..OFFSET + length as usize * stride)
        .map(|place| (place + 7 * step) as u8)
        .collect();
    let source = SourceArray {
        memory: &memory,
        local: &layout(length, stride),
        size: 1,
    };
    instance
        .send_field(field, &[source], step as f64, None)
        .unwrap();
    let elements = memory[OFFSET..].iter().copied().step_by(stride);
    elements.collect()
}

/// Receives four bytes that lie together in memory, or all of the memory after an error.
fn receive(instance: &Instance, field: FieldId) -> std::result::Result<[u8; 4], (Error, Vec<u8>)> {
    let mut memory = [255; OFFSET + 4];
    let target = TargetArray {
        memory: &mut memory,
        local: &layout(4, 1),
        size: 1,
    };
    match instance.receive_field(field, &mut [target], None, Patience::Forever) {
        Ok(_) => Ok(memory[OFFSET..].try_into().unwrap()),
        Err(error) => Err((error, memory.into())),
    }
}

/// How an exchange of a field has come to a receiver.
#[derive(Debug, PartialEq)]
enum Messages {
    /// Header and piece in one message.
    Joined,
    /// The header, and the piece along a conduit of its own.
    Two,
}

/// Takes one exchange of a field, and compares the piece.
fn take_exchange(hand: &mut Hand, pieces: ConduitId, expected: &[u8]) -> Messages {
    let (conduit, meta, first) = hand.next_message();
    assert!(conduit == ALONG && meta.field, "{conduit:?}: {meta:?}");
    let (messages, piece) = match meta.content {
        Content::Array(_) => (Messages::Joined, first),
        _ => {
            let (conduit, _, piece) = hand.next_message();
            assert_eq!(conduit, pieces);
            (Messages::Two, piece)
        }
    };
    assert_eq!(piece, expected);
    messages
}

/// How the first exchanges of a field of bytes come to a receiver with this declaration. The
/// receiver has declared the field before the first send.
fn exchanges(length: u64, stride: usize, takes_joined: bool) -> [Messages; 3] {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let a = stage.join("a");
    let field = declare(&a, "out", length);
    assert!(a.reuse().unwrap());
    let mut hand = Hand::join(&stage, ("b", "s", "in"), "a");
    let (pieces, _) = hand.declare("in", declaration(length, takes_joined));
    [0, 1, 2].map(|step| {
        let expected = send(&a, field, (length, stride), step);
        take_exchange(&mut hand, pieces, &expected)
    })
}

/// The first send goes in two messages: until the links are open the sender does not look at the
/// receiver's declaration.
#[test]
fn header_and_piece_are_one_message_from_the_second_send_on() {
    for stride in [1, 3] {
        let expected = [Messages::Two, Messages::Joined, Messages::Joined];
        assert_eq!(exchanges(16, stride, true), expected, "stride {stride}");
    }
}

#[test]
fn a_receiver_of_an_older_release_gets_header_and_piece_as_two_messages() {
    for stride in [1, 3] {
        let expected = [Messages::Two, Messages::Two, Messages::Two];
        assert_eq!(exchanges(16, stride, false), expected, "stride {stride}");
    }
}

#[test]
fn a_piece_that_is_one_byte_too_long_goes_by_itself() {
    for stride in [1, 3] {
        let [_, second, _] = exchanges(SHORT, stride, true);
        assert_eq!(second, Messages::Joined, "stride {stride}");
        let [_, second, _] = exchanges(SHORT + 1, stride, true);
        assert_eq!(second, Messages::Two, "stride {stride}");
    }
}

/// The other receiver would get a piece along its own conduit beside the piece in the header.
#[test]
fn a_field_for_two_receivers_goes_in_two_messages() {
    let stage = Stage::open(
        &[("a", "o_i: out"), ("b", "s: in"), ("c", "s: in")],
        &["a.out b.in", "a.out c.in"],
    );
    let (a, c) = (stage.join("a"), stage.join("c"));
    let (sends, receives) = (declare(&a, "out", 4), declare(&c, "in", 4));
    assert!(a.reuse().unwrap() && c.reuse().unwrap());
    let mut hand = Hand::join(&stage, ("b", "s", "in"), "a");
    let (pieces, _) = hand.declare("in", declaration(4, true));
    for step in 0..3 {
        let expected = send(&a, sends, (4, 1), step);
        assert_eq!(receive(&c, receives).unwrap()[..], expected);
        assert_eq!(take_exchange(&mut hand, pieces, &expected), Messages::Two);
    }
}

/// A sender of the same release sends header and piece in one message only if the receiver says so.
#[test]
fn a_serial_receiver_declares_that_it_takes_joined_pieces() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    receiver(&stage);
}

/// The receiver takes versions of the field when it asks for them.
#[test]
fn a_pulled_field_goes_as_before() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out pull b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    let (sends, receives) = (declare(&a, "out", 4), declare(&b, "in", 4));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    for step in 0..3 {
        let expected = send(&a, sends, (4, 1), step);
        assert_eq!(receive(&b, receives).unwrap()[..], expected);
    }
}

/// The bytes of a message of a field.
fn message(head: Head, content: Content, body: &[u8]) -> Vec<u8> {
    let field = head.conduit == ALONG;
    let meta = Meta {
        content,
        field,
        ..Meta::default()
    }
    .encode();
    let length = body.len() as u64;
    let data = Frame::Data {
        head,
        meta: meta.len() as u32,
        body: length,
        total: length,
    };
    [&header(&data)[..], &meta, body].concat()
}

fn bytes(length: usize) -> Content {
    Content::Array(Layout::new(Dtype::UInt8, StorageOrder::C, [length as u64]))
}

/// A header with a piece in it, as number `sequence` along the conduit.
fn joined(sequence: u64, piece: &[u8]) -> Vec<u8> {
    let head = Head::new(ALONG, sequence, sequence as f64, None);
    message(head, bytes(piece.len()), piece)
}

/// The receiver of a field of four bytes, and the sender, played by hand, with the conduit of the
/// pieces.
fn receiver(stage: &Stage) -> (Instance, FieldId, Hand, ConduitId) {
    let b = stage.join("b");
    let field = declare(&b, "in", 4);
    assert!(b.reuse().unwrap());
    let mut hand = Hand::join(stage, ("a", "o_i", "out"), "b");
    let (pieces, declared) = hand.declare("out", declaration(4, true));
    assert_eq!(declared, declaration(4, true));
    (b, field, hand, pieces)
}

/// The number of exchanges before the call in question. The copies of a piece are worked out with the
/// first receive, and known with the later ones. After 70, the call goes the short way: the first 61
/// messages of a conduit are timed, and a timed message goes the long way.
const BEFORE: [u64; 3] = [0, 2, 70];

/// Gives a written message time to come to its inbox: a call that waits goes the long way.
fn until_it_is_there() {
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_field_that_goes_back_in_time_is_refused_and_not_written() {
    for before in [2, 70] {
        let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
        let (b, field, mut hand, _) = receiver(&stage);
        for step in 0..before {
            hand.peer.write(&joined(step, &[step as u8; 4]));
            assert_eq!(receive(&b, field), Ok([step as u8; 4]));
        }
        let head = Head::new(ALONG, before, -1.0, None);
        hand.peer.write(&message(head, bytes(4), &[7; 4]));
        until_it_is_there();
        let (error, memory) = receive(&b, field).unwrap_err();
        assert_eq!(error.kind, Kind::CallOrder, "{error}");
        assert_eq!(memory, [255; OFFSET + 4], "nothing of it is written");
    }
}

#[test]
fn a_piece_of_another_length_in_a_header_is_refused() {
    for (before, length) in BEFORE
        .into_iter()
        .flat_map(|before| [0, 3, 5, 8].map(|length| (before, length)))
    {
        let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
        let (b, field, mut hand, _) = receiver(&stage);
        for step in 0..before {
            hand.peer.write(&joined(step, &[step as u8; 4]));
            assert_eq!(receive(&b, field), Ok([step as u8; 4]));
        }
        hand.peer.write(&joined(before, &vec![7; length]));
        until_it_is_there();
        let (error, memory) = receive(&b, field).unwrap_err();
        assert_eq!(error.kind, Kind::TypeMismatch);
        let text = format!(
            "field on port 'in': a has sent {length} bytes in one message, where the field has pieces of [4] bytes"
        );
        assert!(error.text.starts_with(&text), "{error}");
        assert_eq!(memory, [255; OFFSET + 4], "nothing of it is written");
    }
}

/// No release of titin cuts so short a piece. The copies that are kept are those of a whole piece.
#[test]
fn a_short_piece_may_come_in_parts() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (b, field, mut hand, pieces) = receiver(&stage);
    hand.peer.write(&joined(0, &[9; 4]));
    assert_eq!(receive(&b, field), Ok([9; 4]));
    let text: structure::Value<&[u8]> = structure::Value::Text("a field".into());
    let text = structure::encode(&text).unwrap().to_bytes();
    let announces = message(Head::new(ALONG, 1, 1.0, None), Content::Structure, &text);
    let part = |sequence, part: &[u8]| {
        let head = Head {
            tag: 1,
            ..Head::new(pieces, sequence, 1.0, None)
        };
        message(head, bytes(part.len()), part)
    };
    hand.peer
        .write(&[announces, part(0, &[1]), part(1, &[2, 3, 4])].concat());
    assert_eq!(receive(&b, field), Ok([1, 2, 3, 4]));
}
