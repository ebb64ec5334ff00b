//! A peer that belongs to the run and sends wrong bytes.

use std::io::Read;

use titin_runtime::*;
use titin_testkit::{RawPeer, header, message};
use titin_wire::connection::Connection;
use titin_wire::control::{self, Greeting, PortDeclaration, Registration, ToManager, ToProgram};
use titin_wire::frame::{Frame, Head, Header};
use titin_wire::handshake::Purpose;
use titin_wire::{Address, ConduitId, EndpointId};

use crate::stage::Stage;

/// The smallest id. Of two processes the process with the smaller id dials.
const OWN: EndpointId = EndpointId(1);

/// The instance `a`, which the test plays by hand.
struct Hand {
    manager: RawPeer,
    peer: RawPeer,
}

impl Hand {
    /// Joins the run, and greets the process of the instance `b`, which has joined.
    fn join(stage: &Stage) -> Self {
        let connection =
            Connection::from_json(&std::fs::read_to_string(&stage.manager).unwrap()).unwrap();
        let (address, secret) = (&connection.addresses[0], &connection.secret);
        let out = PortDeclaration {
            name: "out".into(),
            operator: "o_i".into(),
            vector: false,
        };
        let registration = Registration {
            instance: "a".into(),
            endpoint: OWN,
            addresses: Vec::new(),
            pid: 1,
            host: "elsewhere".into(),
            ports: Some(vec![out]),
            language: String::new(),
            release: String::new(),
            ranks: Vec::new(),
        };
        let asks = said(&control::encode(&ToManager::Register(registration)));
        let mut manager = RawPeer::enter_with(Purpose::Control, address, secret, &asks);
        let peer = loop {
            if let ToProgram::Peers { peers } = hear(&mut manager) {
                break peers
                    .into_iter()
                    .find(|peer| peer.instance == "b")
                    .expect("it has joined");
            }
        };
        let is_tcp = |address: &&Address| matches!(address, Address::Tcp(..));
        let address = peer.addresses.iter().find(is_tcp).expect("it listens");
        let greeting = Greeting {
            endpoint: OWN,
            to: peer.endpoint,
            pinned: false,
            detour: None,
            is_rank_to_rank: false,
        };
        let greets = said(&control::encode(&greeting));
        let peer = RawPeer::enter_with(Purpose::Data, address, secret, &greets);
        Hand { manager, peer }
    }

    /// Sends a message, which `b` takes, and waits for the acknowledgement. From then on the
    /// process of `b` knows that `a` is at the other end: the manager's message about `a` may come
    /// after the link.
    fn become_known(&mut self, b: &Instance) {
        let conduit = ConduitId(0);
        let meta = Meta::default().encode();
        let data = Frame::Data {
            head: Head::new(conduit, 0, 0.0, None),
            meta: meta.len() as u32,
            body: 0,
            total: 0,
        };
        let ask = Frame::Ask {
            conduit,
            sequence: 1,
        };
        self.peer
            .write(&[&header(&data)[..], &meta, &header(&ask)].concat());
        b.receive(b.port("in").unwrap(), None, Patience::Forever)
            .unwrap();
        let mut answer = [0; 64];
        self.peer.0.read_exact(&mut answer).unwrap();
        let answer = Header::decode(&answer).unwrap().frame().unwrap();
        assert!(matches!(answer, Frame::Acknowledge { .. }), "{answer:?}");
    }
}

/// Returns the bytes of a control message on a link.
fn said(body: &[u8]) -> Vec<u8> {
    [
        &header(&Frame::Control {
            body: body.len() as u64,
        })[..],
        body,
    ]
    .concat()
}

fn hear(manager: &mut RawPeer) -> ToProgram {
    let mut bytes = [0; 64];
    manager.0.read_exact(&mut bytes).unwrap();
    let Frame::Control { body } = Header::decode(&bytes).unwrap().frame().unwrap() else {
        panic!("no control frame")
    };
    let mut bytes = vec![0; body as usize];
    manager.0.read_exact(&mut bytes).unwrap();
    control::decode(&bytes).unwrap()
}

/// Returns the error of a receiver whose peer sends these bytes.
fn verdict(bytes: &[u8]) -> Error {
    verdict_after(|_, _| (), bytes)
}

/// As [`verdict`], after the receiver and the peer have made the calls of `begin`.
fn verdict_after(begin: fn(&mut Hand, &Instance), bytes: &[u8]) -> Error {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let b = stage.join("b");
    assert!(b.reuse().unwrap());
    let mut hand = Hand::join(&stage);
    begin(&mut hand, &b);
    hand.peer.write(bytes);
    let error = b
        .receive(b.port("in").unwrap(), None, Patience::Forever)
        .unwrap_err();
    b.note(&error);
    assert_eq!(b.close(), Err(error.clone()));
    // The run fails by this error, and no other instance is blamed.
    loop {
        if let ToProgram::RunFailed { culprit, text, .. } = hear(&mut hand.manager) {
            assert!(
                culprit == "b" && text.contains(&error.text),
                "{culprit}: {text}"
            );
            return error;
        }
    }
}

#[test]
fn settings_that_were_never_sent_are_missed() {
    let meta = Meta {
        overlay: 3,
        ..Meta::default()
    }
    .encode();
    let head = Head::new(ConduitId(0), 0, 0.0, None);
    let data = Frame::Data {
        head,
        meta: meta.len() as u32,
        body: 0,
        total: 0,
    };
    let error = verdict(&[&header(&data)[..], &meta].concat());
    assert_eq!(error.kind, Kind::TypeMismatch);
    let text =
        "b: port 'in': message 1 of a.out is to go with settings overlay 3, which was never sent";
    assert!(error.text.starts_with(text), "{error}");
}

#[test]
fn a_link_that_brings_garbage_is_given_up_at_once_and_named() {
    let error = verdict_after(Hand::become_known, &[0xee; 64]);
    assert_eq!(error.kind, Kind::Connection);
    assert!(
        error
            .text
            .starts_with("the connection to the process of \"a\" brings what cannot be understood"),
        "{error}"
    );
}

#[test]
fn data_for_a_conduit_that_nobody_has_are_missed() {
    let error = verdict(&message(77, 0, b"x", 1));
    assert_eq!(error.kind, Kind::Connection);
    let text = "the process of \"a\" has sent a message by conduit 77, which no instance of this process has";
    assert!(error.text.starts_with(text), "{error}");
}
