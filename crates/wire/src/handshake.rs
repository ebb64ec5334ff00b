//! Proof, in both directions, that the other end knows the run's secret, before anything else is
//! read.
//!
//! Four messages of fixed size; the numbers are little-endian:
//!
//! 1. dialler → listener, 64 bytes: `"TITIN\r\n\0"`, u8 purpose (1 control, 2 data, 3 data with
//!    settings or further streams, 4 further stream, 5 agent, 6 relay, 7 session), 7 × 0, u16 lowest
//!    and u16 highest control version, u16 lowest and u16 highest data version (to and from a relay the
//!    versions of relay messages, twice), u64 number of the run for a relay (otherwise 0), 32 random
//!    bytes.
//! 2. listener → dialler, 64 bytes: the same with the listener's versions and random bytes. The 8 ×
//!    0 before the random bytes are the low half of the listener's endpoint id, if peers know that
//!    id.
//! 3. dialler → listener, 32 bytes: HMAC-SHA256(secret, "titin dialler" ‖ 1 ‖ 2).
//! 4. listener → dialler, 32 bytes: HMAC-SHA256(secret, "titin listener" ‖ 1 ‖ 2).
//!
//! The dialler proves first, so a stranger learns only the versions of a listener. A listener
//! answers a wrong proof with zeros, since a closed connection can have other reasons. Both ends
//! use the highest version in both ranges. [`Handshake`] is a state machine over bytes. The
//! transport reads and writes the bytes, and limits the time and the number of unproved
//! connections.

use std::ops::Range;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ids::random_bytes;
use crate::seal::SealKeys;
use crate::{EndpointId, Malformed, Secret, versions};

/// The first bytes of either end.
pub const MAGIC: &[u8; 8] = b"TITIN\r\n\0";
/// Bytes of the first message of either end.
pub const HELLO: usize = 64;
const PROOF: usize = 32;

/// The place of the versions in the hello.
const VERSIONS: Range<usize> = 16..24;

/// The place of the listener's endpoint id in the hello.
const PROCESS: Range<usize> = 24..32;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A program and its manager.
    Control = 1,
    /// Two programs.
    Data = 2,
    /// Two programs, where settings of the link come first and further streams may join the link.
    Streams = 3,
    /// A further stream of a link.
    Stream = 4,
    /// The agent of a host and the manager.
    Agent = 5,
    /// A process of a run and the relay of its site. The secret is the run's permit.
    Relay = 6,
    /// The two ends of a session, see [`crate::session`].
    Session = 7,
}

impl Purpose {
    /// The purpose of the link that the connection is part of.
    pub fn of_link(self) -> Self {
        match self {
            Purpose::Control | Purpose::Agent | Purpose::Relay | Purpose::Session => self,
            Purpose::Data | Purpose::Streams | Purpose::Stream => Purpose::Data,
        }
    }
}

/// The agreement of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The purpose that the dialler gave.
    pub purpose: Purpose,
    /// Version of the control messages.
    pub control: u16,
    /// Version of the data frames.
    pub data: u16,
}

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer does not speak titin's protocol.
    #[error("the other end is not a titin: {0}")]
    Stranger(#[from] Malformed),
    /// No version in common.
    #[error(
        "the other end speaks {what} versions {theirs:?}, this one {ours:?}: use releases of titin that share a version"
    )]
    Versions {
        /// Control, data or relay.
        what: &'static str,
        /// The range here.
        ours: (u16, u16),
        /// The range there.
        theirs: (u16, u16),
    },
    /// The other end does not know the secret of the run.
    #[error(
        "the other end does not know this run's secret: it belongs to another run, or TITIN_MANAGER or TITIN_SECRET is stale"
    )]
    Secret,
    /// A process of titin answers, but not the meant process.
    #[error(
        "another process of the run is at this address than the one that was meant: two hosts have the same address; name one that only \
         this host has with --listen ADDRESS"
    )]
    Elsewhere,
}

#[derive(Debug)]
enum HandshakeStage {
    /// The hello of the other end has to come.
    Hello,
    /// The proof `expected` has to come from the other end. The reply is `answer`: the own proof,
    /// unless already sent.
    Proof {
        expected: [u8; PROOF],
        answer: Vec<u8>,
        agreement: Agreement,
    },
    /// A listener has answered a refused dialler with the versions, of which none is in common, or
    /// with a wrong proof.
    Refused(Refusal),
    Done,
}

/// One end of a handshake.
#[derive(Debug)]
pub struct Handshake {
    secret: Secret,
    dialler: bool,
    hello: [u8; HELLO],
    /// The process that the dialler means.
    meant: Option<EndpointId>,
    received: Vec<u8>,
    stage: HandshakeStage,
    /// The hellos of the dialler and of the listener, once both are known.
    hellos: Option<[[u8; HELLO]; 2]>,
}

/// The actions of the caller after some bytes have come in.
#[derive(Debug, PartialEq, Eq)]
pub struct HandshakeProgress {
    /// Bytes to write to the other end.
    pub reply: Vec<u8>,
    /// The agreement, once the other end has proved its knowledge of the secret.
    pub agreed: Option<Agreement>,
    /// How many of the bytes belong to the handshake; the caller keeps the rest.
    pub used: usize,
}

impl Handshake {
    /// The dialling end, and the first bytes to send.
    pub fn dial(secret: Secret, purpose: Purpose) -> (Self, Vec<u8>) {
        let shake = Handshake::new(secret, true, hello(purpose));
        let hello = shake.hello.to_vec();
        (shake, hello)
    }

    /// As [`Handshake::dial`], for the relay of the site. The run's number tells the relay which
    /// permit proves.
    pub fn dial_relay(permit: Secret, run: u64) -> (Self, Vec<u8>) {
        let mut hello = hello(Purpose::Relay);
        hello[PROCESS].copy_from_slice(&run.to_le_bytes());
        (Handshake::new(permit, true, hello), hello.to_vec())
    }

    /// A dialling end that refuses every other process than the meant one.
    #[must_use]
    pub fn to(self, meant: Option<EndpointId>) -> Self {
        Handshake { meant, ..self }
    }

    /// The listening end, which sends nothing before the hello of the dialler.
    pub fn listen(secret: Secret) -> Self {
        Handshake::new(secret, false, hello(Purpose::Control))
    }

    /// A listening end whose hello has the id of the process.
    #[must_use]
    pub fn of(mut self, own: EndpointId) -> Self {
        self.hello[PROCESS].copy_from_slice(&short(own));
        self
    }

    fn new(secret: Secret, dialler: bool, hello: [u8; HELLO]) -> Self {
        Handshake {
            secret,
            dialler,
            hello,
            meant: None,
            received: Vec::new(),
            stage: HandshakeStage::Hello,
            hellos: None,
        }
    }

    /// Takes bytes from the other end.
    ///
    /// # Errors
    /// [`Refusal`] if the caller has to close the link.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<HandshakeProgress, Refusal> {
        let mut progress = HandshakeProgress {
            reply: Vec::new(),
            agreed: None,
            used: 0,
        };
        loop {
            let wanted = match &self.stage {
                HandshakeStage::Hello => HELLO,
                HandshakeStage::Proof { .. } => PROOF,
                HandshakeStage::Refused(refusal) if progress.used < bytes.len() => {
                    return Err(refusal.clone());
                }
                HandshakeStage::Refused(_) | HandshakeStage::Done => return Ok(progress),
            };
            let take = (wanted - self.received.len()).min(bytes.len() - progress.used);
            self.received
                .extend_from_slice(&bytes[progress.used..progress.used + take]);
            progress.used += take;
            self.check_mark()?;
            if self.received.len() < wanted {
                return Ok(progress);
            }
            let message = std::mem::take(&mut self.received);
            self.step(&message, &mut progress)?;
        }
    }

    /// Refuses a process that is no titin by the first bytes, before a whole hello has come.
    fn check_mark(&self) -> Result<(), Refusal> {
        let seen = self.received.len().min(MAGIC.len());
        if matches!(self.stage, HandshakeStage::Hello) && self.received[..seen] != MAGIC[..seen] {
            return Err(Malformed::new("greeting", "it does not begin with titin's mark").into());
        }
        Ok(())
    }

    /// Whether the hello of the other end has come, but not the proof.
    pub fn is_greeted(&self) -> bool {
        matches!(self.stage, HandshakeStage::Proof { .. })
    }

    /// Why this end has refused the other, once the refusal is on its way.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.stage {
            HandshakeStage::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the proof of the other end has come.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, HandshakeStage::Done)
    }

    /// Takes a whole message of the other end.
    fn step(&mut self, message: &[u8], progress: &mut HandshakeProgress) -> Result<(), Refusal> {
        match std::mem::replace(&mut self.stage, HandshakeStage::Done) {
            HandshakeStage::Hello => self.greeted(message, progress),
            HandshakeStage::Proof {
                expected,
                answer,
                agreement,
            } => {
                if same(&expected, message) {
                    progress.reply.extend_from_slice(&answer);
                    progress.agreed = Some(agreement);
                    return Ok(());
                }
                if self.dialler {
                    return Err(Refusal::Secret);
                }
                progress.reply.extend_from_slice(&[0; PROOF]);
                self.stage = HandshakeStage::Refused(Refusal::Secret);
                Ok(())
            }
            HandshakeStage::Refused(_) | HandshakeStage::Done => Ok(()),
        }
    }

    /// Takes the hello of the other end, and answers with the own hello or the own proof.
    fn greeted(&mut self, message: &[u8], progress: &mut HandshakeProgress) -> Result<(), Refusal> {
        let purpose = match self.dialler {
            true => purpose(self.hello[8])?,
            false => purpose(message[8])?,
        };
        if !self.dialler {
            write_versions(&mut self.hello, purpose);
        }
        let agreement = match agree(message, purpose) {
            Ok(agreement) => agreement,
            Err(refusal @ Refusal::Versions { .. }) if !self.dialler => {
                progress.reply.extend_from_slice(&self.hello);
                self.stage = HandshakeStage::Refused(refusal);
                return Ok(());
            }
            Err(refusal) => return Err(refusal),
        };
        self.check_process(&message[PROCESS])?;
        let (dialler, listener) = self.proofs(message.try_into().expect("a whole hello"));
        let (expected, answer) = if self.dialler {
            progress.reply.extend_from_slice(&dialler);
            (listener, Vec::new())
        } else {
            progress.reply.extend_from_slice(&self.hello);
            (dialler, listener.to_vec())
        };
        self.stage = HandshakeStage::Proof {
            expected,
            answer,
            agreement,
        };
        Ok(())
    }

    /// The proofs of the dialler and of the listener, after the hello of the other end.
    fn proofs(&mut self, hello: [u8; HELLO]) -> ([u8; PROOF], [u8; PROOF]) {
        let hellos = match self.dialler {
            true => [self.hello, hello],
            false => [hello, self.hello],
        };
        self.hellos = Some(hellos);
        (
            proof(&self.secret, b"titin dialler", &hellos),
            proof(&self.secret, b"titin listener", &hellos),
        )
    }

    /// The keys that only the two ends know; `None` before both have greeted.
    pub fn seal_keys(&self) -> Option<SealKeys> {
        let hellos = self.hellos.as_ref()?;
        let dialler = proof(&self.secret, b"titin seal dialler", hellos);
        let listener = proof(&self.secret, b"titin seal listener", hellos);
        let (outgoing, incoming) = match self.dialler {
            true => (dialler, listener),
            false => (listener, dialler),
        };
        Some(SealKeys { outgoing, incoming })
    }

    /// Refuses a process whose id differs from the meant id.
    fn check_process(&self, found: &[u8]) -> Result<(), Refusal> {
        match self.meant {
            Some(meant) if found != short(meant) && found != [0; 8] => Err(Refusal::Elsewhere),
            _ => Ok(()),
        }
    }
}

/// Whether a hello begins the handshake of the two ends of a session.
pub fn is_for_session(hello: &[u8; HELLO]) -> bool {
    hello.starts_with(MAGIC) && hello[8] == Purpose::Session as u8
}

/// The number of the run in the hello of a process that dials a relay.
pub fn run_of(hello: &[u8; HELLO]) -> u64 {
    u64::from_le_bytes(hello[PROCESS].try_into().expect("8 bytes"))
}

fn hello(purpose: Purpose) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8] = purpose as u8;
    write_versions(&mut bytes, purpose);
    bytes[32..].copy_from_slice(&random_bytes::<32>());
    bytes
}

/// The two formats that both ends of a connection must have a version of, and the versions here. A relay
/// passes messages of all versions on, so the versions of its own messages count alone.
fn formats(purpose: Purpose) -> [(&'static str, (u16, u16)); 2] {
    match purpose {
        Purpose::Relay => [("relay", versions::relay()); 2],
        _ => [("control", versions::control()), ("data", versions::data())],
    }
}

fn write_versions(hello: &mut [u8; HELLO], purpose: Purpose) {
    let ranges = formats(purpose).map(|(_, (lowest, highest))| [lowest, highest]);
    let versions = ranges.as_flattened().iter();
    let bytes: Vec<u8> = versions.flat_map(|version| version.to_le_bytes()).collect();
    hello[VERSIONS].copy_from_slice(&bytes);
}

fn short(id: EndpointId) -> [u8; 8] {
    (id.0 as u64).to_le_bytes()
}

fn purpose(number: u8) -> Result<Purpose, Malformed> {
    Ok(match number {
        1 => Purpose::Control,
        2 => Purpose::Data,
        3 => Purpose::Streams,
        4 => Purpose::Stream,
        5 => Purpose::Agent,
        6 => Purpose::Relay,
        7 => Purpose::Session,
        other => {
            return Err(Malformed::new(
                "greeting",
                format!("unknown purpose {other}"),
            ));
        }
    })
}

fn agree(theirs: &[u8], purpose: Purpose) -> Result<Agreement, Refusal> {
    let theirs = &theirs[VERSIONS];
    let version = |at: usize| u16::from_le_bytes([theirs[at], theirs[at + 1]]);
    let common = |(what, ours): (_, (u16, u16)), theirs: (u16, u16)| {
        let highest = ours.1.min(theirs.1);
        let shared = highest >= ours.0.max(theirs.0);
        shared
            .then_some(highest)
            .ok_or(Refusal::Versions { what, ours, theirs })
    };
    let [first, second] = formats(purpose);
    Ok(Agreement {
        purpose,
        control: common(first, (version(0), version(2)))?,
        data: common(second, (version(4), version(6)))?,
    })
}

fn proof(secret: &Secret, role: &[u8], hellos: &[[u8; HELLO]; 2]) -> [u8; PROOF] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.key()).expect("HMAC takes keys of any length");
    mac.update(role);
    mac.update(hellos.as_flattened());
    mac.finalize().into_bytes().into()
}

/// Compares in constant time.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_direction_of_each_connection_has_a_seal_key_of_its_own() {
        let secret = Secret::random();
        let connect = || {
            let (mut dialler, hello) = Handshake::dial(secret.clone(), Purpose::Session);
            let mut listener = Handshake::listen(secret.clone());
            assert!(listener.seal_keys().is_none());
            let answer = listener.advance(&hello).unwrap().reply;
            dialler.advance(&answer).unwrap();
            [dialler, listener].map(|end| end.seal_keys().unwrap())
        };
        let [dialler, listener] = connect();
        assert_eq!(dialler.outgoing, listener.incoming);
        assert_eq!(dialler.incoming, listener.outgoing);
        assert_ne!(dialler.outgoing, dialler.incoming);
        assert_ne!(connect()[0].outgoing, dialler.outgoing);
    }

    /// The bytes of this release, for later releases, as Python's `hmac` computes them.
    #[test]
    fn the_seal_keys_stay() {
        let secret = "0123456789abcdef".repeat(4).parse().unwrap();
        let shake = Handshake {
            hellos: Some([[1; HELLO], [2; HELLO]]),
            ..Handshake::new(secret, true, [1; HELLO])
        };
        let keys = shake.seal_keys().unwrap();
        assert_eq!(keys.outgoing[..8], [44, 225, 251, 173, 41, 107, 168, 31]);
        assert_eq!(keys.incoming[..8], [49, 7, 40, 214, 49, 159, 215, 230]);
    }

    /// Plays a handshake, handing over at most `step` bytes at a time.
    fn play(ours: Secret, theirs: Secret, step: usize) -> Result<(Agreement, Agreement), Refusal> {
        let (mut dialler, mut to_listener) = Handshake::dial(ours, Purpose::Data);
        let mut listener = Handshake::listen(theirs);
        let (mut to_dialler, mut here, mut there) = (Vec::new(), None, None);
        while here.is_none() || there.is_none() {
            let piece: Vec<u8> = to_listener.drain(..step.min(to_listener.len())).collect();
            let progress = listener.advance(&piece)?;
            to_dialler.extend(progress.reply);
            there = there.or(progress.agreed);
            let piece: Vec<u8> = to_dialler.drain(..step.min(to_dialler.len())).collect();
            let progress = dialler.advance(&piece)?;
            to_listener.extend(progress.reply);
            here = here.or(progress.agreed);
        }
        Ok((here.unwrap(), there.unwrap()))
    }

    #[test]
    fn the_same_secret_agrees_however_the_bytes_are_cut() {
        for step in [1, 7, 64, 1000] {
            let secret = Secret::random();
            let (here, there) = play(secret.clone(), secret, step).unwrap();
            assert_eq!(here, there);
            assert_eq!(here.purpose, Purpose::Data);
        }
    }

    #[test]
    fn another_secret_is_refused() {
        assert_eq!(
            play(Secret::random(), Secret::random(), 1000),
            Err(Refusal::Secret)
        );
    }

    #[test]
    fn a_stranger_is_known_by_its_first_bytes() {
        let mut listener = Handshake::listen(Secret::random());
        assert!(matches!(
            listener.advance(b"GET"),
            Err(Refusal::Stranger(_))
        ));
    }

    #[test]
    fn ranges_of_versions_must_overlap() {
        let mut theirs = hello(Purpose::Control);
        theirs[16..20].copy_from_slice(&[9, 0, 12, 0]);
        let refusal = agree(&theirs, Purpose::Control).unwrap_err();
        assert!(refusal.to_string().contains("(9, 12)"), "{refusal}");
        theirs[16..20].copy_from_slice(&[1, 0, 12, 0]);
        let agreement = agree(&theirs, Purpose::Control).unwrap();
        assert_eq!(agreement.control, versions::control().1);
    }

    #[test]
    fn both_ends_learn_that_no_version_is_shared() {
        let (mut dialler, mut hello) = Handshake::dial(Secret::random(), Purpose::Control);
        hello[16..20].copy_from_slice(&[9, 0, 12, 0]);
        let mut listener = Handshake::listen(Secret::random());
        let mut reply = listener.advance(&hello).unwrap().reply;
        assert!(matches!(
            listener.advance(b"?"),
            Err(Refusal::Versions {
                theirs: (9, 12),
                ..
            })
        ));
        reply[16..20].copy_from_slice(&[9, 0, 12, 0]);
        assert!(matches!(
            dialler.advance(&reply),
            Err(Refusal::Versions {
                theirs: (9, 12),
                ..
            })
        ));
    }

    #[test]
    fn both_ends_learn_that_the_secret_is_wrong() {
        let (mut dialler, hello) = Handshake::dial(Secret::random(), Purpose::Data);
        let mut listener = Handshake::listen(Secret::random());
        let greeting = listener.advance(&hello).unwrap().reply;
        assert!(listener.is_greeted());
        let progress = listener
            .advance(&dialler.advance(&greeting).unwrap().reply)
            .unwrap();
        assert_eq!(
            (progress.agreed, listener.is_greeted(), listener.is_done()),
            (None, false, false)
        );
        assert_eq!(dialler.advance(&progress.reply), Err(Refusal::Secret));
        assert_eq!(listener.advance(b"?"), Err(Refusal::Secret));
    }

    #[test]
    fn whoever_is_another_process_than_the_one_meant_is_refused() {
        let secret = Secret::random();
        let meant = EndpointId(0x1234_0000_0000_0000_0005);
        let answer = |own: Option<EndpointId>| {
            let (dialler, hello) = Handshake::dial(secret.clone(), Purpose::Data);
            let listener = Handshake::listen(secret.clone());
            let mut listener = own.into_iter().fold(listener, Handshake::of);
            dialler
                .to(Some(meant))
                .advance(&listener.advance(&hello).unwrap().reply)
        };
        assert!(answer(Some(meant)).is_ok());
        assert!(answer(None).is_ok(), "it does not say");
        assert_eq!(answer(Some(EndpointId(6))), Err(Refusal::Elsewhere));
    }

    #[test]
    fn bytes_after_the_handshake_are_left() {
        let secret = Secret::random();
        let (mut dialler, hello) = Handshake::dial(secret.clone(), Purpose::Control);
        let mut listener = Handshake::listen(secret);
        let proof = dialler
            .advance(&listener.advance(&hello).unwrap().reply)
            .unwrap()
            .reply;
        let progress = listener.advance(&[&proof[..], b"frames"].concat()).unwrap();
        assert_eq!(progress.used, proof.len());
        assert!(progress.agreed.is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 96..200)) {
            let mut listener = Handshake::listen(Secret::random());
            prop_assert!(listener.advance(&bytes).is_err());
        }
    }
}
