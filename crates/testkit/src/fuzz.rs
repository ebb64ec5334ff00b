//! What hostile bytes are put through: by cargo-fuzz (`fuzz/` at the top), by the mutation loop that needs no nightly
//! compiler (`examples/mutate.rs`), and by the tests, which run the corpus.
//!
//! Each function panics if a decoder does, or if what it accepts does not hold together. It returns why the bytes were
//! refused, if they were.

use std::io::IoSliceMut;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use titin_transport::{Reader, Received};
use titin_wire::connection::Connection;
use titin_wire::control::{self, Greeting, ToManager, ToProgram};
use titin_wire::frame::Frame;
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::meta::{Codec, Content, Dtype, Layout, Meta, Order};
use titin_wire::settings::decode_overlay;
use titin_wire::structure::{self, Value};
use titin_wire::{ConduitId, Malformed, Secret};

use crate::{header, message, pattern};

/// Why bytes were refused, if they were.
pub type Outcome = Result<(), String>;

/// A function to put bytes through, and its name.
pub type Target = (&'static str, fn(&[u8]) -> Outcome);

/// All of them.
pub const TARGETS: [Target; 5] = [
    ("stream", stream),
    ("meta", meta),
    ("structure", structure),
    ("control", control),
    ("handshake", handshake),
];

/// The frames of a link, behind a byte that says how they are cut: however that is, they say the same.
pub fn stream(bytes: &[u8]) -> Outcome {
    let (step, bytes) = bytes.split_first().map_or((0, bytes), |(step, bytes)| (usize::from(*step), bytes));
    let (whole, outcome) = read(bytes, bytes.len().max(1));
    let (cut, cut_outcome) = read(bytes, step + 1);
    assert_eq!((&whole, &outcome), (&cut, &cut_outcome), "read {} bytes at a time", step + 1);
    outcome
}

/// The metadata of a message, behind eight bytes for the length of its payload.
pub fn meta(bytes: &[u8]) -> Outcome {
    let (total, bytes) =
        bytes.split_first_chunk().map_or((0, bytes), |(total, rest)| (u64::from_le_bytes(*total), rest));
    let meta = Meta::decode(bytes, total).map_err(text)?;
    assert_eq!(Meta::decode(&meta.encode(), total).as_ref(), Ok(&meta));
    Ok(())
}

/// The payload of a structure.
pub fn structure(bytes: &[u8]) -> Outcome {
    let value = structure::decode(bytes).map_err(text)?;
    let value = within(&value, bytes);
    let encoded = structure::encode(&value).expect("what was decoded can be encoded");
    let again = encoded.parts.iter().flat_map(|part| part.as_ref().iter().copied()).collect::<Vec<u8>>();
    assert_eq!(again.len() as u64, encoded.length);
    let decoded = structure::decode(&again).expect("what was encoded can be decoded");
    // Not compared as values: a number may be none.
    assert_eq!(format!("{:?}", within(&decoded, &again)), format!("{value:?}"));
    Ok(())
}

/// Whatever comes as MessagePack or JSON: control messages, overlays, the connection file.
pub fn control(bytes: &[u8]) -> Outcome {
    fn accepts<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Outcome {
        let message: T = control::decode(bytes).map_err(text)?;
        let encoded = control::encode(&message);
        let again: T = control::decode(&encoded).expect("what was encoded can be decoded");
        assert_eq!(control::encode(&again), encoded);
        Ok(())
    }
    let outcomes = [
        accepts::<ToManager>(bytes),
        accepts::<ToProgram>(bytes),
        accepts::<Greeting>(bytes),
        decode_overlay(bytes).map(drop).map_err(text),
        Connection::from_json(&String::from_utf8_lossy(bytes)).map(drop).map_err(text),
    ];
    outcomes.into_iter().reduce(|found, next| if found.is_ok() { found } else { next }).expect("not empty")
}

/// What a stranger says to a listener and to a dialler, behind a byte that says how it is cut: it never gets in.
pub fn handshake(bytes: &[u8]) -> Outcome {
    let (step, bytes) = bytes.split_first().map_or((0, bytes), |(step, bytes)| (usize::from(*step), bytes));
    let secret = secret();
    let ends = [Handshake::listen(secret.clone()), Handshake::dial(secret, Purpose::Data).0];
    let mut outcome = Ok(());
    for mut end in ends {
        for piece in bytes.chunks(step + 1) {
            match end.advance(piece) {
                Ok(progress) => {
                    assert!(
                        progress.agreed.is_none()
                            && progress.used <= piece.len()
                            && progress.reply.len() <= 64
                    );
                }
                Err(refusal) => {
                    outcome = Err(refusal.to_string());
                    break;
                }
            }
        }
    }
    outcome
}

/// Inputs to begin with, by name; those that are called good are accepted, by this release and by all later ones.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds: Vec<(&str, Vec<u8>)> = match target {
        "stream" => stream_seeds(),
        "meta" => meta_seeds(),
        "structure" => structure_seeds(),
        "control" => control_seeds(),
        "handshake" => handshake_seeds(),
        other => panic!("no target is called {other}"),
    };
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

fn read(bytes: &[u8], step: usize) -> (Vec<String>, Outcome) {
    let (mut reader, mut left, mut out) = (Reader::new(&[]), bytes, Vec::new());
    let mut outcome = Ok(());
    while !left.is_empty() && outcome.is_ok() {
        let fill = |slices: &mut [IoSliceMut<'_>]| {
            let mut count = 0;
            for slice in slices {
                let take = slice.len().min(left.len()).min(step - count);
                slice[..take].copy_from_slice(&left[..take]);
                left = &left[take..];
                count += take;
            }
            Ok(count)
        };
        outcome = reader.read(&mut out, fill).map(drop).map_err(|lost| lost.to_string());
    }
    let describe = |received: &Received| match received {
        Received::Message(message, supersedes) => {
            format!("{:?} {:?} {supersedes} {:?}", message.head, message.meta, &message.body[..])
        }
        other => format!("{other:?}"),
    };
    (out.iter().map(describe).collect(), outcome)
}

fn within<'a>(value: &Value<Range<usize>>, payload: &'a [u8]) -> Value<&'a [u8]> {
    match value {
        Value::Nil => Value::Nil,
        Value::Bool(value) => Value::Bool(*value),
        Value::Int(value) => Value::Int(*value),
        Value::UInt(value) => Value::UInt(*value),
        Value::Float(value) => Value::Float(*value),
        Value::Text(value) => Value::Text(value.clone()),
        Value::Bytes(span) => Value::Bytes(&payload[span.clone()]),
        Value::Array(layout, span) => Value::Array(layout.clone(), &payload[span.clone()]),
        Value::List(values) => Value::List(values.iter().map(|value| within(value, payload)).collect()),
        Value::Map(entries) => {
            let entry = |(name, value): &(String, _)| (name.clone(), within(value, payload));
            Value::Map(entries.iter().map(entry).collect())
        }
    }
}

fn text(error: Malformed) -> String {
    error.to_string()
}

fn secret() -> Secret {
    "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2".parse().expect("64 digits")
}

fn stream_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let conduit = ConduitId(1);
    let frames = [
        Frame::Ask { conduit, sequence: 3 },
        Frame::Acknowledge { conduit, ack: Default::default() },
        Frame::End { conduit, sequence: 2 },
        Frame::Control { body: 0 },
    ];
    let cut = |step: u8, bytes: &[&[u8]]| [&[step][..], &bytes.concat()].concat();
    let small = message(1, 0, &pattern(0, 10), 10);
    let pieces = message(2, 0, &pattern(1, 100), 30);
    let control = [&header(&Frame::Control { body: 7 })[..], b"control"].concat();
    let mut superseding = message(1, 5, b"", 1);
    superseding[1] |= 2;
    vec![
        ("good_small", cut(0, &[&small, &message(1, 1, b"", 1)])),
        ("good_pieces", cut(12, &[&pieces[..64 + 64 + 30], &small, &pieces[64 + 64 + 30..]])),
        ("good_others", cut(100, &[&frames.map(|frame| header(&frame)).concat(), &control, &superseding])),
        ("follows_nothing", cut(7, &[&small, &pieces[64 + 64 + 30..]])),
        ("unknown_kind", cut(7, &[&[7; 64]])),
        ("large_claim", cut(7, &[&small[..40], &[0xff; 8], &small[48..]])),
    ]
}

fn meta_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let with = |total: u64, meta: &[u8]| [&total.to_le_bytes()[..], meta].concat();
    let mut layout = Layout::new(Dtype::Complex128, Order::Fortran, [2, 3, 4]);
    layout.names = vec!["x".into(), "größe".into(), String::new()];
    let full = Meta {
        content: Content::Array(layout),
        slot: Some((4, 10)),
        overlay: 3,
        definition: Some(vec![0x80]),
        codings: vec![(Codec::Zstd, 384)],
    };
    let structure = Meta { content: Content::Structure, ..Meta::default() };
    let scalar = Meta { content: Content::Array(Layout::new(Dtype::Bool, Order::C, [])), ..Meta::default() };
    let unknown = [&[0xe7, 3, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4][..], &full.encode()].concat();
    vec![
        ("good_full", with(17, &full.encode())),
        ("good_structure", with(1 << 40, &structure.encode())),
        ("good_scalar", with(1, &scalar.encode())),
        ("good_nil", with(0, &[])),
        ("good_unknown_field", with(17, &unknown)),
        ("too_few_bytes", with(1, &full.encode()[..40])),
        ("nothing_described", with(1, &[])),
    ]
}

fn structure_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |value: &Value<Vec<u8>>| {
        let encoded = structure::encode(value).expect("a good one");
        encoded.parts.iter().flat_map(|part| part.as_ref().to_vec()).collect::<Vec<u8>>()
    };
    let array = Value::Array(Layout::new(Dtype::Int16, Order::C, [2, 3]), pattern(1, 12));
    let leaves = vec![
        Value::Nil,
        Value::Bool(true),
        Value::Int(-70_000),
        Value::UInt(u64::MAX),
        Value::Float(-0.5),
        Value::Text("größe".into()),
        Value::Bytes(pattern(2, 70)),
        array.clone(),
    ];
    let tree = Value::Map(vec![
        ("list".into(), Value::List(leaves)),
        ("".into(), Value::Map(vec![("array".into(), array)])),
    ]);
    let deep = (0..structure::MAX_DEPTH).fold(Value::Nil, |inner, _| Value::List(vec![inner]));
    let lying = [0xdd, 0xff, 0xff, 0xff, 0xff].repeat(50);
    vec![
        ("good_tree", bytes(&tree)),
        ("good_nil", bytes(&Value::Nil)),
        ("good_deep", bytes(&deep)),
        ("too_deep", [&1000u64.to_le_bytes()[..], &[0x91; 1000]].concat()),
        ("lying_counts", [&250u64.to_le_bytes()[..], &lying].concat()),
        ("longer_than_it_is", [&u64::MAX.to_le_bytes()[..], &[0xc0]].concat()),
    ]
}

fn control_seeds() -> Vec<(&'static str, Vec<u8>)> {
    use titin_wire::control::{PortDeclaration, Profile, Registration, WaitOn};
    use titin_wire::{Address, EndpointId};

    let registration = Registration {
        instance: "macro[3]".into(),
        endpoint: EndpointId(7),
        addresses: vec![Address::Tcp("127.0.0.1".into(), 9), Address::Other("ucx:1".into())],
        pid: 7,
        host: "here".into(),
        ports: Some(vec![PortDeclaration { name: "out".into(), operator: "o_f".into(), vector: true }]),
        language: "python".into(),
        release: "0.1.0".into(),
    };
    let waiting = WaitOn {
        conduit: ConduitId(3),
        port: "in[2]".into(),
        peer: "micro".into(),
        peer_port: "out".into(),
        sends: true,
        count: 4,
        ahead: 64,
        ahead_bytes: 1 << 40,
    };
    let instance = || "micro".to_owned();
    let profile = Profile {
        instance: instance(),
        start: 1.5,
        regions: vec![("io".into(), 3, 0.5)],
        ..Profile::default()
    };
    let deep =
        [&[0x81, 0xa4][..], b"Done", &[0x82, 0xa8], b"instance", &[0xa1, b'a', 0xa1, b'x'], &[0x91; 5000]];
    let connection = Connection {
        addresses: vec![Address::Tcp("node1".into(), 4000)],
        run: None,
        secret: secret(),
        spans_hosts: true,
    };
    vec![
        ("good_register", control::encode(&ToManager::Register(registration))),
        (
            "good_waiting",
            control::encode(&ToManager::Waiting { instance: instance(), wait: 1, on: vec![waiting] }),
        ),
        ("good_profile", control::encode(&ToManager::Profile(profile))),
        ("good_done", control::encode(&ToManager::Done { instance: instance() })),
        ("good_refused", control::encode(&ToProgram::Refused { instance: instance(), text: "why".into() })),
        ("good_peers", control::encode(&ToProgram::Peers { peers: Vec::new() })),
        ("good_greeting", control::encode(&Greeting { endpoint: EndpointId(1), to: EndpointId(2) })),
        (
            "good_overlay",
            b"\x83\xa1k\xcb\x3f\xe0\0\0\0\0\0\0\xa2dt\xa510 ms\xa1n\x93\x01\x02\xcb\x3f\xe0\0\0\0\0\0\0"
                .to_vec(),
        ),
        ("good_connection", connection.to_json().into_bytes()),
        ("nested_beyond_reason", deep.concat()),
    ]
}

fn handshake_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (_, hello) = Handshake::dial(secret(), Purpose::Control);
    let fixed = |hello: &[u8]| [&hello[..32], &pattern(3, 32)].concat();
    let hello = fixed(&hello);
    let mut later = hello.clone();
    later[16..20].copy_from_slice(&[9, 0, 12, 0]);
    let mut odd = hello.clone();
    odd[8] = 77;
    vec![
        ("good_hello", [&[255][..], &hello].concat()),
        ("wrong_proof", [&[10][..], &hello, &pattern(4, 32)].concat()),
        ("later_versions", [&[255][..], &later, &[0]].concat()),
        ("unknown_purpose", [&[63][..], &odd].concat()),
        ("no_titin", [&[0][..], b"GET / HTTP/1.1\r\n\r\n"].concat()),
    ]
}
