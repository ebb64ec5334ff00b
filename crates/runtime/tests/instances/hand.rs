//! An instance that a test plays by hand: it belongs to the run, and sends any bytes.

use std::io::Read;

use titin_runtime::*;
use titin_testkit::{RawPeer, header};
use titin_wire::connection::Connection;
use titin_wire::control::{
    self, FieldEnd, Greeting, PortDeclaration, Registration, ToManager, ToProgram,
};
use titin_wire::frame::{Frame, Head, Header};
use titin_wire::handshake::Purpose;
use titin_wire::{Address, ConduitId, EndpointId};

use crate::stage::Stage;

/// The smallest id. Of two processes the process with the smaller id dials.
const OWN: EndpointId = EndpointId(1);

/// An instance with one port, which the test plays by hand.
pub struct Hand {
    instance: &'static str,
    pub manager: RawPeer,
    /// The link to the process of the instance at the other end.
    pub peer: RawPeer,
}

impl Hand {
    /// Joins the run as an instance with a port, and greets the process of the instance `other`,
    /// which has joined.
    pub fn join(
        stage: &Stage,
        (instance, operator, port): (&'static str, &str, &str),
        other: &str,
    ) -> Self {
        let connection =
            Connection::from_json(&std::fs::read_to_string(&stage.manager).unwrap()).unwrap();
        let (address, secret) = (&connection.addresses[0], &connection.secret);
        let port = PortDeclaration {
            name: port.into(),
            operator: operator.into(),
            vector: false,
        };
        let registration = Registration {
            instance: instance.into(),
            endpoint: OWN,
            addresses: Vec::new(),
            pid: 1,
            host: "elsewhere".into(),
            ports: Some(vec![port]),
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
                    .find(|peer| peer.instance == other)
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
        Hand {
            instance,
            manager,
            peer,
        }
    }

    /// Sends a message, which `b` takes, and waits for the acknowledgement. From then on the
    /// process of `b` knows that `a` is at the other end: the manager's message about `a` may come
    /// after the link.
    pub fn become_known(&mut self, b: &Instance) {
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

    /// Declares a field, and waits for the declaration of the other end. Returns the conduit of the
    /// pieces, and that declaration.
    pub fn declare(&mut self, port: &str, field: FieldEnd) -> (ConduitId, FieldEnd) {
        let declares = ToManager::Field {
            instance: self.instance.into(),
            port: port.into(),
            field,
        };
        self.manager.write(&said(&control::encode(&declares)));
        loop {
            if let ToProgram::Field { first, field, .. } = hear(&mut self.manager) {
                return (first, field);
            }
        }
    }

    /// The next message from the other end: the conduit, the metadata and the payload. Other frames
    /// are passed over.
    pub fn next_message(&mut self) -> (ConduitId, Meta, Vec<u8>) {
        loop {
            match self.next_frame() {
                Frame::Data {
                    head,
                    meta,
                    body,
                    total,
                } => {
                    assert_eq!(body, total, "a short message goes in one frame");
                    let meta = Meta::decode(&self.read(meta.into()), total).unwrap();
                    return (head.conduit, meta, self.read(body));
                }
                Frame::Control { body } => drop(self.read(body)),
                _ => {}
            }
        }
    }

    fn next_frame(&mut self) -> Frame {
        let mut bytes = [0; 64];
        self.peer.0.read_exact(&mut bytes).unwrap();
        Header::decode(&bytes).unwrap().frame().unwrap()
    }

    fn read(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.peer.0.read_exact(&mut bytes).unwrap();
        bytes
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

/// The next control message of the manager.
pub fn hear(manager: &mut RawPeer) -> ToProgram {
    let mut bytes = [0; 64];
    manager.0.read_exact(&mut bytes).unwrap();
    let Frame::Control { body } = Header::decode(&bytes).unwrap().frame().unwrap() else {
        panic!("no control frame")
    };
    let mut bytes = vec![0; body as usize];
    manager.0.read_exact(&mut bytes).unwrap();
    control::decode(&bytes).unwrap()
}
