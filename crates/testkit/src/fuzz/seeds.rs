//! The inputs that fuzzing begins with.

use titin_wire::circuit::{
    self, CircuitRefusal, CircuitRequest, Destination, RelayAnswer, RelayRequest, RunPermit,
};
use titin_wire::connection::Connection;
use titin_wire::control::{
    self, Greeting, PortDeclaration, Profile, Registration, ToManager, ToProgram, WaitOn,
};
use titin_wire::frame::Frame;
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::line::{ControlMessage, LinePurpose, PeerAnswer, PeerGreeting, RunRefusal};
use titin_wire::meta::{Codec, Content, Dtype, Layout, Meta, StorageOrder};
use titin_wire::observation::{AwaitedPort, ObservedInstance, ObservedRun, ProcessPlace};
use titin_wire::path::{LongMessage, PathControl};
use titin_wire::ranks::{
    CollectiveReport, CollectiveResult, FieldSteps, Invitation, Outcome, RankMessage, RankProcess,
    RepeatedAnnouncement,
};
use titin_wire::session::{Session, SessionId};
use titin_wire::settings::Setting;
use titin_wire::structure::{self, Value};
use titin_wire::token::{Token, TokenAnswer, TokenRelay, TokenRequest};
use titin_wire::{Address, ConduitId, EndpointId};

use super::{SESSION, secret};
use crate::{header, message, pattern, striped};

/// The inputs that fuzzing of this target begins with, and their names. This release and all later
/// releases accept the inputs whose name begins with `good`.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds: Vec<(&str, Vec<u8>)> = match target {
        "stream" => stream_seeds(),
        "streams" => streams_seeds(),
        "meta" => meta_seeds(),
        "structure" => structure_seeds(),
        "control" => control_seeds(),
        "handshake" => handshake_seeds(),
        "session" => session_seeds(),
        "relay" => relay_seeds(),
        "line" => line_seeds(),
        "token" => token_seeds(),
        "path" => path_seeds(),
        "array" => super::array::seeds(),
        // Fuzzing of descriptions begins with the descriptions of the model's tests.
        "description" => Vec::new(),
        other => panic!("no target is called {other}"),
    };
    seeds
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

fn stream_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let conduit = ConduitId(1);
    let frames = [
        Frame::Ask {
            conduit,
            sequence: 3,
        },
        Frame::Acknowledge {
            conduit,
            ack: Default::default(),
        },
        Frame::End {
            conduit,
            sequence: 2,
        },
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
        (
            "good_pieces",
            cut(
                12,
                &[&pieces[..64 + 64 + 30], &small, &pieces[64 + 64 + 30..]],
            ),
        ),
        (
            "good_others",
            cut(
                100,
                &[
                    &frames.map(|frame| header(&frame)).concat(),
                    &control,
                    &superseding,
                ],
            ),
        ),
        (
            "follows_nothing",
            cut(7, &[&small, &pieces[64 + 64 + 30..]]),
        ),
        ("unknown_kind", cut(7, &[&[7; 64]])),
        (
            "large_claim",
            cut(7, &[&small[..40], &[0xff; 8], &small[48..]]),
        ),
    ]
}

fn streams_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let say = |number: u8, bytes: &[u8]| {
        let mut said = vec![number, (bytes.len() / 16) as u8];
        assert_eq!(bytes.len() % 16, 0);
        said.extend_from_slice(bytes);
        said
    };
    let (head, pieces) = striped(1, 0, &pattern(0, 96), &[0, 16, 64]);
    let (second, rest) = striped(1, 1, &pattern(1, 64), &[0, 32]);
    let end = header(&Frame::End {
        conduit: ConduitId(1),
        sequence: 2,
    });
    let small = message(2, 0, &pattern(2, 16), 16);
    let first = say(0, &[&head[..], &second, &end[..], &small].concat());
    let torn = [&first[..], &say(1, &pieces[0]), &say(1, &pieces[0])].concat();
    vec![
        (
            "good_head_first",
            [
                &first[..],
                &say(1, &[&pieces[1][..], &rest[1]].concat()),
                &say(2, &pieces[0]),
                &say(1, &rest[0]),
                &say(2, &pieces[2]),
            ]
            .concat(),
        ),
        (
            "good_head_last",
            [
                &say(2, &[&pieces[2][..], &pieces[0]].concat()),
                &say(1, &pieces[1][..32]),
                &say(2, &rest[0]),
                &say(1, &pieces[1][32..]),
                &first[..],
                &say(1, &rest[1]),
            ]
            .concat(),
        ),
        ("twice", torn),
        ("head_on_second", say(1, &head)),
    ]
}

fn meta_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let with = |total: u64, meta: &[u8]| [&total.to_le_bytes()[..], meta].concat();
    let mut layout = Layout::new(Dtype::Complex128, StorageOrder::Fortran, [2, 3, 4]);
    layout.names = vec!["x".into(), "größe".into(), String::new()];
    let full = Meta {
        content: Content::Array(layout),
        slot: Some((4, 10)),
        overlay: 3,
        definition: Some(vec![0x80]),
        codings: vec![(Codec::Zstd, 384)],
        ..Meta::default()
    };
    let counted = Meta {
        iteration: Some(vec![2, 0]),
        supersedes: Some(7),
        over: Some(vec![2]),
        ..Meta::default()
    };
    let structure = Meta {
        content: Content::Structure,
        ..Meta::default()
    };
    let scalar = Meta {
        content: Content::Array(Layout::new(Dtype::Bool, StorageOrder::C, [])),
        ..Meta::default()
    };
    let unknown = [&[0xe7, 3, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4][..], &full.encode()].concat();
    vec![
        ("good_full", with(17, &full.encode())),
        ("good_structure", with(1 << 40, &structure.encode())),
        ("good_scalar", with(1, &scalar.encode())),
        ("good_nil", with(0, &[])),
        ("good_counted", with(0, &counted.encode())),
        ("good_unknown_field", with(17, &unknown)),
        ("too_few_bytes", with(1, &full.encode()[..40])),
        ("nothing_described", with(1, &[])),
    ]
}

fn structure_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |value: &Value<Vec<u8>>| structure::encode(value).expect("a good one").to_bytes();
    let array = Value::Array(
        Layout::new(Dtype::Int16, StorageOrder::C, [2, 3]),
        pattern(1, 12),
    );
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
        (
            "good_settings",
            bytes(&Value::Settings(vec![
                ("k".into(), Value::Float(0.5)),
                ("single".into(), Value::Float32(0.1)),
                ("list".into(), Value::List(vec![])),
            ])),
        ),
        ("good_deep", bytes(&deep)),
        (
            "too_deep",
            [&1000u64.to_le_bytes()[..], &[0x91; 1000]].concat(),
        ),
        ("lying_counts", [&250u64.to_le_bytes()[..], &lying].concat()),
        (
            "longer_than_it_is",
            [&u64::MAX.to_le_bytes()[..], &[0xc0]].concat(),
        ),
    ]
}

fn control_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let registration = Registration {
        instance: "macro[3]".into(),
        endpoint: EndpointId(7),
        addresses: vec![
            Address::Tcp("127.0.0.1".into(), 9),
            Address::Other("ucx:1".into()),
        ],
        pid: 7,
        host: "here".into(),
        ports: Some(vec![PortDeclaration {
            name: "out".into(),
            operator: "o_f".into(),
            vector: true,
        }]),
        language: "python".into(),
        release: "0.1.0".into(),
        ranks: Vec::new(),
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
        field: false,
        closes: false,
        joins: false,
    };
    let to_join = WaitOn {
        joins: true,
        ..waiting.clone()
    };
    let observed = ObservedRun {
        model: "demo".into(),
        host: "here".into(),
        seconds: 1.5,
        failure: Some("micro ended with exit code 3".into()),
        instances: vec![ObservedInstance {
            name: "micro".into(),
            state: "waiting".into(),
            simulated: Some(0.5),
            end: Some(2.0),
            messages: 4,
            bytes: 1 << 40,
            process: Some(ProcessPlace {
                host: Some("node1".into()),
                pid: 7,
            }),
            text: Some("waits".into()),
            waits: vec![AwaitedPort {
                port: "in[2]".into(),
                peer: "macro".into(),
                peer_port: "out".into(),
                sends: true,
            }],
        }],
    };
    let instance = || "micro".to_owned();
    let profile = Profile {
        instance: instance(),
        start: 1.5,
        regions: vec![("io".into(), 3, 0.5)],
        ..Profile::default()
    };
    let deep = [
        &[0x81, 0xa4][..],
        b"Done",
        &[0x82, 0xa8],
        b"instance",
        &[0xa1, b'a', 0xa1, b'x'],
        &[0x91; 5000],
    ];
    let connection = Connection {
        addresses: vec![Address::Tcp("node1".into(), 4000)],
        secret: secret(),
        spans_hosts: true,
        folders: Default::default(),
        patience: 300.0,
        site: None,
        network: None,
    };
    let process = RankProcess {
        endpoint: EndpointId(3),
        addresses: vec![Address::Tcp("127.0.0.1".into(), 9)],
        pid: 8,
        host: "here".into(),
    };
    let use_begins = CollectiveResult::Use {
        overlay: [("k".to_owned(), Setting::Float(0.5))].into(),
        steps: vec![4, 1],
        f_init: vec![(0, 2, "in[2]".into())],
    };
    let report = CollectiveReport {
        call: "reuse".into(),
        outcome: Outcome::Done(use_begins),
        steps: FieldSteps::default(),
        changed: Vec::new(),
        data: None,
    };
    let of_field = CollectiveReport {
        changed: vec![(1, 300)],
        data: Some(vec![7]),
        outcome: Outcome::Done(CollectiveResult::Nothing),
        ..report.clone()
    };
    let mut repeated = Vec::new();
    RepeatedAnnouncement {
        port: 1,
        number: 300,
        time: 0.5,
        changed: vec![(1, 300)],
    }
    .encode_into(&mut repeated);
    let message = RankMessage {
        instance: instance(),
        conduit: ConduitId(3),
        of_sender: true,
        rank: 1,
        kind: 5,
        body: Vec::new(),
    };
    let invitation = Invitation {
        instance: instance(),
        connection: connection.clone(),
    };
    vec![
        ("good_rank", control::encode(&Outcome::Done(process))),
        ("good_report", control::encode(&report)),
        ("good_report_of_field", control::encode(&of_field)),
        ("good_repeated_announcement", repeated),
        ("good_rank_message", control::encode(&message)),
        ("good_invitation", control::encode(&invitation)),
        ("good_register", control::encode(&ToManager::Register(registration))),
        (
            "good_waiting",
            control::encode(&ToManager::Waiting { instance: instance(), wait: 1, on: vec![waiting] }),
        ),
        ("good_profile", control::encode(&ToManager::Profile(profile))),
        (
            "good_waiting_to_join",
            control::encode(&ToManager::Waiting { instance: instance(), wait: 1, on: vec![to_join] }),
        ),
        (
            "good_resume",
            control::encode(&ToManager::Resume { instance: instance(), member: "micro[1]~2".into() }),
        ),
        ("good_observe", control::encode(&ToManager::Observe {})),
        ("good_observed", control::encode(&ToProgram::Observed(Box::new(observed)))),
        (
            "good_member_failed",
            control::encode(&ToProgram::MemberFailed { instance: instance(), text: "why".into(), again: false }),
        ),
        (
            "good_member_starts_again",
            control::encode(&ToProgram::MemberFailed { instance: "micro[1]~2".into(), text: "why".into(), again: true }),
        ),
        ("good_done", control::encode(&ToManager::Done { instance: instance() })),
        ("good_refused", control::encode(&ToProgram::Refused { instance: instance(), text: "why".into() })),
        ("good_peers", control::encode(&ToProgram::Peers { peers: Vec::new() })),
        (
            "good_greeting",
            control::encode(&Greeting {
                endpoint: EndpointId(1),
                to: EndpointId(2),
                pinned: false,
                detour: None,
                is_rank_to_rank: false,
            }),
        ),
        (
            "good_overlay",
            b"\x83\xa1k\xcb\x3f\xe0\0\0\0\0\0\0\xa2dt\xa510 ms\xa1n\x93\x01\x02\xcb\x3f\xe0\0\0\0\0\0\0"
                .to_vec(),
        ),
        ("good_connection_with_patience", connection.to_json().into_bytes()),
        ("nested_beyond_reason", deep.concat()),
    ]
}

/// The records of another end of the same session.
fn session_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut end = Session::new(SessionId(SESSION));
    end.connect();
    let mut resume = vec![3];
    end.write(&mut resume, usize::MAX);
    let record = |kind: u8, length: u32, number: u64, body: &[u8]| {
        [
            &[kind, 0, 0, 0],
            &length.to_le_bytes()[..],
            &number.to_le_bytes(),
            body,
        ]
        .concat()
    };
    let whole = [
        resume.clone(),
        record(2, 3, 0, b"abc"),
        record(5, 0, 9, &[]),
        record(3, 0, 0, &[]),
        record(2, 2, 3, b"de"),
        record(4, 0, 5, &[]),
    ];
    vec![
        ("good_records", whole.concat()),
        ("good_gone", [vec![1], record(7, 0, 0, &[])].concat()),
        ("doubled", [&whole[..2], &whole[1..2]].concat().concat()),
        ("torn", [&resume[..], &[2, 0, 0, 0, 255]].concat()),
    ]
}

fn relay_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let destination = Destination {
        site: "north".into(),
        host: "node1".into(),
        port: 9,
    };
    let permit = RunPermit {
        run: 7,
        permit: secret(),
        name: "model".into(),
        sites: vec!["north".into()],
        is_over: false,
        hops: 0,
    };
    vec![
        (
            "good_circuit",
            circuit::encode(&RelayRequest::Circuit(CircuitRequest {
                destination,
                from: Some("south".into()),
            })),
        ),
        ("good_admit", circuit::encode(&RelayRequest::Admit(permit))),
        (
            "good_opened",
            circuit::encode(&RelayAnswer::Opened)[..3].to_vec(),
        ),
        (
            "refused_run",
            circuit::encode(&RelayAnswer::RefusedRun(vec!["full".into()])),
        ),
        ("long", vec![255; 8]),
    ]
}

fn line_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let destination = Destination {
        site: "north".into(),
        host: "node1".into(),
        port: 9,
    };
    let permit = RunPermit {
        run: 7,
        permit: secret(),
        name: "model".into(),
        sites: vec!["north".into(), "south".into()],
        is_over: false,
        hops: 0,
    };
    let greeting = |purpose| {
        circuit::encode(&PeerGreeting {
            versions: (1, 1),
            purpose,
        })
    };
    let refused = PeerAnswer::Refused(CircuitRefusal::passing("no such run"));
    let circuit_of = |run| LinePurpose::Circuit {
        run,
        destination: destination.clone(),
        hops: 0,
    };
    let messages = [
        ControlMessage::RefusedRuns(vec![RunRefusal {
            run: 7,
            to: Some("south".into()),
            why: "full".into(),
            hops: 1,
        }]),
        ControlMessage::Call { call: 3 },
        ControlMessage::Ping(5),
        ControlMessage::Pong(5),
    ];
    vec![
        ("good_control", greeting(LinePurpose::Control)),
        ("good_circuit", greeting(circuit_of(u64::MAX))),
        ("good_callback", greeting(LinePurpose::Callback { call: 3 })),
        ("good_welcome", circuit::encode(&PeerAnswer::Welcome)),
        ("good_refused", circuit::encode(&refused)),
        (
            "good_runs",
            circuit::encode(&ControlMessage::Runs(vec![permit])),
        ),
        (
            "good_others",
            messages.map(|m| circuit::encode(&m)).concat(),
        ),
        ("good_part", greeting(LinePurpose::Control)[..9].to_vec()),
        ("odd_purpose", circuit::encode(&("dance", 3))),
        ("long", vec![255; 8]),
    ]
}

fn token_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let token = Token {
        number: 7,
        key: secret(),
        host: "box".into(),
        addresses: vec![Address::from("relay:north/node1:9".to_owned())],
        relay: Some(TokenRelay {
            site: None,
            address: "login1:4710".into(),
            run: 5,
            permit: secret(),
        }),
    };
    let request = TokenRequest {
        host: "box".into(),
        system_name: "node2".into(),
        release: "1".into(),
    };
    let answer = TokenAnswer::Refused { why: "no".into() };
    vec![
        ("good_token", control::encode(&token)),
        ("good_text", token.reveal().into_bytes()),
        ("good_request", circuit::encode(&request)),
        ("good_answer", circuit::encode(&answer)),
        ("odd_text", b"abc".to_vec()),
    ]
}

fn path_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let why = "it is no array".to_owned();
    let long = LongMessage {
        length: 8 << 20,
        meta: Meta {
            content: Content::Array(Layout::new(Dtype::Float64, StorageOrder::C, [1 << 20])),
            ..Meta::default()
        },
    };
    let controls = [
        (
            "good_open",
            PathControl::Open {
                name: "mesh".into(),
                outage: 60_000,
                by_relays: false,
            },
        ),
        ("good_opened", PathControl::Opened),
        (
            "good_refused",
            PathControl::Refused {
                why: why.clone(),
                may_pass: true,
            },
        ),
        ("good_dropped", PathControl::Dropped { message: 7, why }),
        ("good_barrier", PathControl::Barrier),
        ("good_closing", PathControl::Closing { received: 9 }),
    ];
    let controls = controls.map(|(name, control)| (name, control.encode()));
    let mut seeds = controls.to_vec();
    seeds.push(("good_head", long.encode()));
    let mut short = long.clone();
    short.length -= 1;
    seeds.push(("odd_head", short.encode()));
    seeds
}

fn handshake_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (_, hello) = Handshake::dial(secret(), Purpose::Control);
    let fixed = |hello: &[u8]| [&hello[..32], &pattern(3, 32)].concat();
    let hello = fixed(&hello);
    let mut later = hello.clone();
    later[16..20].copy_from_slice(&[9, 0, 12, 0]);
    let mut odd = hello.clone();
    odd[8] = 77;
    let mut of_token = hello.clone();
    of_token[8] = Purpose::Token as u8;
    vec![
        ("good_hello", [&[255][..], &hello].concat()),
        ("wrong_proof", [&[10][..], &hello, &pattern(4, 32)].concat()),
        ("later_versions", [&[255][..], &later, &[0]].concat()),
        ("good_token", [&[255][..], &of_token].concat()),
        ("unknown_purpose", [&[63][..], &odd].concat()),
        ("no_titin", [&[0][..], b"GET / HTTP/1.1\r\n\r\n"].concat()),
    ]
}
