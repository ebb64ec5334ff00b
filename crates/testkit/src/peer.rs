//! A peer that speaks tcp by hand, byte by byte and wrongly if a test likes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use titin_wire::frame::{Frame, Head, Header};
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::meta::{Content, Meta};
use titin_wire::{Address, ConduitId, Secret};

/// A plain socket, connected to a listener of titin's.
pub struct Peer(pub TcpStream);

impl Peer {
    /// Connects, and says nothing.
    pub fn connect(address: &Address) -> Self {
        let Address::Tcp(host, port) = address else { panic!("{address} is not of tcp") };
        let stream = TcpStream::connect((host.as_str(), *port)).expect("somebody listens");
        stream.set_nodelay(true).expect("a socket option");
        Peer(stream)
    }

    /// Connects and proves that it knows the secret; `write` sends the bytes, the last of them with `behind` added.
    pub fn enter(address: &Address, secret: &Secret, behind: &[u8], write: fn(&mut Self, &[u8])) -> Self {
        let mut peer = Peer::connect(address);
        let (mut handshake, hello) = Handshake::dial(secret.clone(), Purpose::Data);
        write(&mut peer, &hello);
        let mut proved = false;
        loop {
            let mut bytes = [0; 1];
            assert_eq!(peer.0.read(&mut bytes).expect("bytes of the handshake"), 1, "the listener hung up");
            let progress = handshake.advance(&bytes).expect("the listener knows the secret");
            if progress.agreed.is_some() {
                return peer;
            }
            if !progress.reply.is_empty() && !std::mem::replace(&mut proved, true) {
                write(&mut peer, &[&progress.reply, behind].concat());
            }
        }
    }

    /// Writes bytes all at once. That the other end has hung up meanwhile is no error.
    pub fn write(&mut self, bytes: &[u8]) {
        match self.0.write_all(bytes) {
            Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                panic!("writing failed: {error}")
            }
            _ => {}
        }
    }

    /// Writes bytes one at a time.
    pub fn write_slowly(&mut self, bytes: &[u8]) {
        bytes.chunks(1).for_each(|byte| self.write(byte));
    }

    /// Reads until the other end hangs up.
    pub fn drain(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("reading failed: {error}"),
            _ => bytes,
        }
    }
}

/// The bytes of a message whose payload is cut into pieces of this length.
pub fn message(conduit: u32, sequence: u64, body: &[u8], piece: usize) -> Vec<u8> {
    let conduit = ConduitId(conduit);
    let meta = Meta { content: Content::Structure, ..Meta::default() }.encode();
    let head = Head {
        conduit,
        source: 0,
        destination: 0,
        tag: 0,
        sequence,
        timestamp: sequence as f64,
        next_timestamp: None,
    };
    let first = piece.min(body.len());
    let data = Frame::Data { head, meta: meta.len() as u32, body: first as u64, total: body.len() as u64 };
    let mut bytes = [&header(&data)[..], &meta, &body[..first]].concat();
    for (index, rest) in body[first..].chunks(piece.max(1)).enumerate() {
        let offset = (first + index * piece) as u64;
        bytes.extend(header(&Frame::More { conduit, sequence, body: rest.len() as u64, offset }));
        bytes.extend_from_slice(rest);
    }
    bytes
}

/// The bytes of a frame's header.
pub fn header(frame: &Frame) -> [u8; 64] {
    Header::from(frame).encode()
}
