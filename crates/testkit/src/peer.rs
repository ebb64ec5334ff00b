//! A peer that writes the bytes of tcp by hand, and can write wrong bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use titin_wire::frame::{Frame, Head, Header};
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::meta::{Content, Meta};
use titin_wire::{Address, ConduitId, EndpointId, Secret};

/// A plain socket that is connected to a listener of titin.
pub struct RawPeer(pub TcpStream);

impl RawPeer {
    /// Connects, and writes nothing.
    pub fn connect(address: &Address) -> Self {
        let Address::Tcp(host, port) = address else {
            panic!("{address} is not of tcp")
        };
        let stream = TcpStream::connect((host.as_str(), *port)).expect("somebody listens");
        stream.set_nodelay(true).expect("a socket option");
        RawPeer(stream)
    }

    /// Connects and proves that the peer knows the secret. `write` sends the bytes; the bytes
    /// `behind` follow the last bytes of the handshake in the same write.
    pub fn enter(
        address: &Address,
        secret: &Secret,
        behind: &[u8],
        write: fn(&mut Self, &[u8]),
    ) -> Self {
        RawPeer::enter_for(Purpose::Data, address, secret, behind, write)
    }

    /// Makes a link of `count` further streams. Returns the dialler's end of each stream once all
    /// streams have joined, the first stream first.
    pub fn enter_streams(address: &Address, secret: &Secret, count: u64) -> Vec<Self> {
        let key = EndpointId::random().0 as u64;
        let mut first = RawPeer::enter_first(address, secret, key, count);
        let mut answer = [0; 64];
        first
            .0
            .read_exact(&mut answer)
            .expect("the listener agrees");
        let further =
            (1..=count).map(|number| RawPeer::enter_further(address, secret, key, number, &[]));
        std::iter::once(first).chain(further).collect()
    }

    /// Makes the first stream of a link that is to have `count` further streams.
    pub fn enter_first(address: &Address, secret: &Secret, key: u64, count: u64) -> Self {
        let streams = header(&Frame::Streams {
            key,
            count,
            is_count_set: false,
            pacing: 0,
            send_buffer: 0,
            receive_buffer: 0,
        });
        RawPeer::enter_for(Purpose::Streams, address, secret, &streams, RawPeer::write)
    }

    /// Makes a further stream. The bytes `behind` follow the handshake in the same write.
    pub fn enter_further(
        address: &Address,
        secret: &Secret,
        key: u64,
        number: u64,
        behind: &[u8],
    ) -> Self {
        let bytes = [&header(&Frame::Join { key, number })[..], behind].concat();
        RawPeer::enter_for(Purpose::Stream, address, secret, &bytes, RawPeer::write)
    }

    /// Connects for a purpose. The bytes `behind` follow the handshake in the same write.
    pub fn enter_with(purpose: Purpose, address: &Address, secret: &Secret, behind: &[u8]) -> Self {
        RawPeer::enter_for(purpose, address, secret, behind, RawPeer::write)
    }

    fn enter_for(
        purpose: Purpose,
        address: &Address,
        secret: &Secret,
        behind: &[u8],
        write: fn(&mut Self, &[u8]),
    ) -> Self {
        let mut peer = RawPeer::connect(address);
        let (mut handshake, hello) = Handshake::dial(secret.clone(), purpose);
        write(&mut peer, &hello);
        let mut proved = false;
        loop {
            let mut bytes = [0; 1];
            assert_eq!(
                peer.0.read(&mut bytes).expect("bytes of the handshake"),
                1,
                "the listener hung up"
            );
            let progress = handshake
                .advance(&bytes)
                .expect("the listener knows the secret");
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
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
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
            Err(error) if error.kind() != ErrorKind::ConnectionReset => {
                panic!("reading failed: {error}")
            }
            _ => bytes,
        }
    }
}

/// Returns the bytes of a message whose payload is cut into pieces of length `piece`.
pub fn message(conduit: u32, sequence: u64, body: &[u8], piece: usize) -> Vec<u8> {
    let conduit = ConduitId(conduit);
    let meta = Meta {
        content: Content::Structure,
        ..Meta::default()
    }
    .encode();
    let head = Head::new(conduit, sequence, sequence as f64, None);
    let first = piece.min(body.len());
    let data = Frame::Data {
        head,
        meta: meta.len() as u32,
        body: first as u64,
        total: body.len() as u64,
    };
    let mut bytes = [&header(&data)[..], &meta, &body[..first]].concat();
    for (index, rest) in body[first..].chunks(piece.max(1)).enumerate() {
        let offset = (first + index * piece) as u64;
        bytes.extend(header(&Frame::More {
            conduit,
            sequence,
            body: rest.len() as u64,
            offset,
        }));
        bytes.extend_from_slice(rest);
    }
    bytes
}

/// Returns the bytes of a message that comes over several streams: the head of the message, for the
/// first stream, and the pieces that begin at these offsets.
pub fn striped(
    conduit: u32,
    sequence: u64,
    body: &[u8],
    offsets: &[usize],
) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut whole = message(conduit, sequence, body, 0);
    whole.truncate(128);
    let ends = offsets[1..].iter().copied().chain([body.len()]);
    let piece = |(offset, end): (usize, usize)| {
        let (offset, bytes) = (offset as u64, &body[offset..end]);
        let (conduit, total) = (ConduitId(conduit), body.len() as u64);
        let frame = Frame::Piece {
            conduit,
            sequence,
            body: bytes.len() as u64,
            offset,
            total,
        };
        [&header(&frame)[..], bytes].concat()
    };
    (
        whole,
        offsets.iter().copied().zip(ends).map(piece).collect(),
    )
}

/// Returns the bytes of a frame's header.
pub fn header(frame: &Frame) -> [u8; 64] {
    Header::from(frame).encode()
}
