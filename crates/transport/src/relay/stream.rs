//! The bytes of a circuit behind the proofs: records of a session, sealed from end to end unless the
//! run says otherwise.

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use titin_os::Descriptor;
use titin_wire::seal::{Opener, Sealer};
use titin_wire::session::{Session, SessionGreeting};

use crate::error::LinkError;
use crate::medium::ProvedConnection;

/// The most bytes moved by a call of the system.
pub(super) const AT_A_CALL: usize = 64 << 10;

/// A circuit whose ends have proved themselves.
pub(super) struct CircuitStream {
    pub(super) socket: Descriptor,
    seal: Option<Box<(Sealer, Opener)>>,
    /// Records before the seal.
    records: Vec<u8>,
    /// Bytes on their way into the socket.
    out: Vec<u8>,
    /// How many bytes of `out` are in the socket.
    sent: usize,
    /// Bytes from the socket, before they are opened.
    input: Vec<u8>,
}

impl CircuitStream {
    /// The circuit, and the records that have come already.
    ///
    /// # Errors
    /// If these were not sealed by the other end.
    pub(super) fn begin(
        proved: ProvedConnection,
        is_sealed: bool,
    ) -> Result<(Self, Vec<u8>), LinkError> {
        let mut stream = CircuitStream {
            socket: proved.socket,
            seal: is_sealed.then(|| Box::new(proved.keys.ends())),
            records: Vec::new(),
            out: Vec::new(),
            sent: 0,
            input: proved.first_bytes,
        };
        let mut records = Vec::new();
        stream.open_input(&mut records)?;
        Ok((stream, records))
    }

    /// Whether all bytes are in the socket.
    pub(super) fn is_flushed(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Writes records of the session, until the socket is full, the session has no more, or `most`
    /// bytes are written.
    ///
    /// # Errors
    /// If the circuit is broken.
    pub(super) fn write(&mut self, session: &mut Session, most: usize) -> Result<(), LinkError> {
        let mut moved = 0;
        while moved < most {
            if self.is_flushed() {
                self.records.clear();
                session.write(&mut self.records, AT_A_CALL);
                if self.records.is_empty() {
                    break;
                }
                self.seal_records();
            }
            match net::send(&self.socket, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.sent += count;
                    moved += count;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Tells the other end that the session is not known here, or not any more.
    pub(super) fn say_gone(mut self) {
        if !self.is_flushed() {
            return;
        }
        self.records = SessionGreeting::gone();
        self.seal_records();
        let _ = net::send(&self.socket, &self.out, SendFlags::NOSIGNAL);
    }

    fn seal_records(&mut self) {
        self.sent = 0;
        self.out.clear();
        match self.seal.as_deref_mut() {
            Some((sealer, _)) => sealer.seal(&self.records, &mut self.out),
            None => std::mem::swap(&mut self.records, &mut self.out),
        }
    }

    /// Reads once, and adds the records that have come to `records`. Returns how many bytes the
    /// socket had: 0 at the end of the circuit, `None` if nothing is there yet.
    ///
    /// # Errors
    /// If the circuit is broken, or the bytes were not sealed by the other end.
    pub(super) fn read(&mut self, records: &mut Vec<u8>) -> Result<Option<usize>, LinkError> {
        self.input.clear();
        self.input.reserve(AT_A_CALL);
        loop {
            match rustix::io::read(&self.socket, spare_capacity(&mut self.input)) {
                Ok(count) => {
                    self.open_input(records)?;
                    return Ok(Some(count));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn open_input(&mut self, records: &mut Vec<u8>) -> Result<(), LinkError> {
        match self.seal.as_deref_mut() {
            Some((_, opener)) => opener.open(&self.input, records)?,
            None => records.extend_from_slice(&self.input),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::RecvFlags;
    use titin_wire::Secret;
    use titin_wire::handshake::{Handshake, Purpose};
    use titin_wire::session::SessionId;

    use super::*;
    use crate::pump::socket_pair;

    impl CircuitStream {
        pub(in crate::relay) fn unsealed(socket: Descriptor) -> Self {
            CircuitStream {
                socket,
                seal: None,
                records: Vec::new(),
                out: Vec::new(),
                sent: 0,
                input: Vec::new(),
            }
        }
    }

    /// The dialling and the listening end after the proofs.
    fn proved() -> [ProvedConnection; 2] {
        let secret = Secret::random();
        let (mut dialler, hello) = Handshake::dial(secret.clone(), Purpose::Session);
        let mut listener = Handshake::listen(secret);
        let answer = listener.advance(&hello).unwrap().reply;
        let proof = dialler.advance(&answer).unwrap().reply;
        dialler
            .advance(&listener.advance(&proof).unwrap().reply)
            .unwrap();
        let [near, far] = socket_pair().unwrap();
        [(dialler, near), (listener, far)].map(|(shake, socket)| ProvedConnection {
            socket,
            first_bytes: Vec::new(),
            keys: shake.seal_keys().unwrap(),
        })
    }

    fn joined(are_sealed: [bool; 2]) -> [(CircuitStream, Session); 2] {
        let mut are_sealed = are_sealed.into_iter();
        let mut ends = proved().map(|proved| {
            let is_sealed = are_sealed.next().unwrap();
            let (stream, _) = CircuitStream::begin(proved, is_sealed).unwrap();
            (stream, Session::new(SessionId(9)))
        });
        for (stream, session) in &mut ends {
            session.connect();
            stream.write(session, usize::MAX).unwrap();
        }
        ends
    }

    fn receive((stream, session): &mut (CircuitStream, Session)) -> Result<Vec<u8>, LinkError> {
        let mut got = Vec::new();
        let mut records = Vec::new();
        while stream.read(&mut records)?.is_some() {
            session.read(&records, &mut got)?;
            records.clear();
        }
        Ok(got)
    }

    #[test]
    fn records_are_sealed_on_the_way_and_open_at_the_other_end() {
        for is_sealed in [true, false] {
            let mut ends = joined([is_sealed; 2]);
            for end in &mut ends {
                receive(end).unwrap();
                assert!(end.1.is_up());
            }
            let [(stream, session), far] = &mut ends;
            session.send(&[7; 200_000]);
            stream.write(session, 1000).unwrap();
            let mut piece = [0; 1000];
            net::recv(&far.0.socket, &mut piece, RecvFlags::PEEK).unwrap();
            let shows = piece.windows(9).any(|window| window == [7; 9]);
            assert_eq!(shows, !is_sealed);
            let mut got = Vec::new();
            while got.len() < 200_000 {
                stream.write(session, usize::MAX).unwrap();
                got.extend(receive(far).unwrap());
            }
            assert!(got == [7; 200_000]);
        }
    }

    #[test]
    fn ends_of_which_one_does_not_seal_refuse_each_other() {
        let [mut sealed, mut plain] = joined([true, false]);
        receive(&mut sealed).unwrap_err();
        receive(&mut plain).unwrap_err();
    }
}
