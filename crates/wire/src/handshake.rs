//! Proof, in both directions, that the other end knows the run's secret, before anything else is
//! read.
//!
//! Four messages of fixed size; the numbers are little-endian:
//!
//! 1. dialler → listener, 64 bytes: `"TITIN\r\n\0"`, u8 purpose (1 control, 2 data, 3 data with
//!    settings or further streams, 4 further stream, 5 agent, 6 relay, 7 session, 8 token), 7 × 0,
//!    u16 lowest and u16 highest control version, u16 lowest and u16 highest data version (to and from
//!    a relay the versions of relay messages, twice), u64 number of the run for a relay or of the token
//!    (otherwise 0), 32 random bytes.
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
//!
//! With the purpose 8 the one-time key of a [token](crate::token) takes the place of the secret, and
//! the random bytes of both ends are X25519 public keys for this connection alone. After the proofs
//! both ends use HMAC-SHA256(one-time key, "titin exchange" ‖ shared key of X25519) in place of the
//! secret, for the keys of the [seal](crate::seal). So the one-time key does not open recorded bytes.

use std::ops::Range;

use hmac::{Hmac, KeyInit, Mac};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
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

/// The place in the hello of the listener's endpoint id, or of the number of the run or token.
const PROCESS: Range<usize> = 24..32;

/// The place of the random bytes, or of the X25519 public key, in the hello.
const RANDOM: Range<usize> = 32..HELLO;

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
    /// An agent with a token and the manager, see [`crate::token`].
    Token = 8,
}

impl Purpose {
    /// The purpose of the link that the connection is part of.
    pub fn of_link(self) -> Self {
        match self {
            Purpose::Control
            | Purpose::Agent
            | Purpose::Relay
            | Purpose::Session
            | Purpose::Token => self,
            Purpose::Data | Purpose::Streams | Purpose::Stream => Purpose::Data,
        }
    }
}

/// The agreement of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The purpose that the dialler gave.
    pub purpose: Purpose,
    /// Version of the control messages; to a relay, of the relay messages.
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
    /// The dialler is to prove itself by a one-time key, which the caller has to find.
    OneTimeKey {
        hello: [u8; HELLO],
        agreement: Agreement,
    },
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
    /// The X25519 private key of a dialler with a token, until the hello of the listener has come.
    own_key: Option<EphemeralPrivateKey>,
    /// What the keys of the seal follow from, if that is not the secret.
    exchanged: Option<Secret>,
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
    /// The number of the one-time key by which the dialler is to prove itself. A listener goes on by
    /// [`Handshake::use_one_time_key`].
    pub one_time_key: Option<u64>,
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

    /// As [`Handshake::dial`], for the manager, with the one-time key of a token. The number tells the
    /// manager which key proves.
    pub fn dial_with_token(key: Secret, number: u64) -> (Self, Vec<u8>) {
        let mut hello = hello(Purpose::Token);
        hello[PROCESS].copy_from_slice(&number.to_le_bytes());
        let (own, public) = ephemeral_key();
        hello[RANDOM].copy_from_slice(&public);
        let shake = Handshake {
            own_key: Some(own),
            ..Handshake::new(key, true, hello)
        };
        (shake, hello.to_vec())
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
            own_key: None,
            exchanged: None,
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
            one_time_key: None,
        };
        loop {
            let wanted = match &self.stage {
                HandshakeStage::Hello => HELLO,
                HandshakeStage::Proof { .. } => PROOF,
                HandshakeStage::OneTimeKey { .. } if progress.used < bytes.len() => {
                    let why = "bytes before the answer to it";
                    return Err(Malformed::new("greeting", why).into());
                }
                HandshakeStage::Refused(refusal) if progress.used < bytes.len() => {
                    return Err(refusal.clone());
                }
                HandshakeStage::OneTimeKey { .. }
                | HandshakeStage::Refused(_)
                | HandshakeStage::Done => return Ok(progress),
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
            HandshakeStage::OneTimeKey { .. }
            | HandshakeStage::Refused(_)
            | HandshakeStage::Done => Ok(()),
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
        let message: [u8; HELLO] = message.try_into().expect("a whole hello");
        if agreement.purpose == Purpose::Token && !self.dialler {
            progress.one_time_key = Some(run_of(&message));
            self.stage = HandshakeStage::OneTimeKey {
                hello: message,
                agreement,
            };
            return Ok(());
        }
        if let Some(own) = self.own_key.take() {
            self.exchanged = Some(exchanged(&self.secret, own, &message)?);
        }
        let (dialler, listener) = self.proofs(message);
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

    /// Goes on with a dialler that is to prove a one-time key. Returns the bytes to write to the
    /// dialler. Where no such key is known, the caller gives a random key, which nobody can prove.
    ///
    /// # Errors
    /// [`Refusal`] if the caller has to close the link.
    pub fn use_one_time_key(&mut self, key: Secret) -> Result<Vec<u8>, Refusal> {
        let HandshakeStage::OneTimeKey { hello, agreement } = self.stage else {
            return Ok(Vec::new());
        };
        let (own, public) = ephemeral_key();
        self.hello[RANDOM].copy_from_slice(&public);
        self.exchanged = Some(exchanged(&key, own, &hello)?);
        self.secret = key;
        let (dialler, listener) = self.proofs(hello);
        self.stage = HandshakeStage::Proof {
            expected: dialler,
            answer: listener.to_vec(),
            agreement,
        };
        Ok(self.hello.to_vec())
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
        let secret = self.exchanged.as_ref().unwrap_or(&self.secret);
        let dialler = proof(secret, b"titin seal dialler", hellos);
        let listener = proof(secret, b"titin seal listener", hellos);
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

/// Whether a hello begins a handshake for which there are circuits: that of the two ends of a session,
/// or that of an agent with a token and the manager.
pub fn is_for_circuit(hello: &[u8; HELLO]) -> bool {
    let is_meant = |purpose: Purpose| hello[8] == purpose as u8;
    hello.starts_with(MAGIC) && (is_meant(Purpose::Session) || is_meant(Purpose::Token))
}

/// The number of the run in the hello of a process that dials a relay, or of the token in that of an
/// agent with a token.
pub fn run_of(hello: &[u8; HELLO]) -> u64 {
    u64::from_le_bytes(hello[PROCESS].try_into().expect("8 bytes"))
}

fn hello(purpose: Purpose) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8] = purpose as u8;
    write_versions(&mut bytes, purpose);
    bytes[RANDOM].copy_from_slice(&random_bytes::<32>());
    bytes
}

/// The two formats of which both ends need a common version, and the versions here. For a relay both are its
/// own messages, since a relay passes all others on unread.
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

/// A fresh X25519 key, private and public.
fn ephemeral_key() -> (EphemeralPrivateKey, [u8; 32]) {
    let key = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new());
    let key = key.expect("the system's random source works");
    let public = key.compute_public_key().expect("the key is whole");
    let public = public.as_ref().try_into().expect("a key of 32 bytes");
    (key, public)
}

/// What the keys of the seal follow from, after the exchange with the other end.
fn exchanged(
    key: &Secret,
    own: EphemeralPrivateKey,
    hello: &[u8; HELLO],
) -> Result<Secret, Refusal> {
    let theirs = UnparsedPublicKey::new(&X25519, &hello[RANDOM]);
    let shared = agree_ephemeral(own, &theirs, |shared| mixed(key, shared));
    shared.map_err(|_| Malformed::new("greeting", "its X25519 key is not valid").into())
}

fn mixed(key: &Secret, shared: &[u8]) -> Secret {
    Secret::of_bytes(mac(key, &[b"titin exchange", shared]))
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
        8 => Purpose::Token,
        other => {
            let why = format!("unknown purpose {other}");
            return Err(Malformed::new("greeting", why));
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
    mac(secret, &[role, hellos.as_flattened()])
}

/// HMAC-SHA256 of the parts, one behind the other.
fn mac(key: &Secret, parts: &[&[u8]]) -> [u8; PROOF] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.key()).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
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

    /// The dialler and the listener of a token's connection, after the hellos, and the dialler's proof.
    fn with_tokens(ours: Secret, theirs: Secret) -> (Handshake, Handshake, Vec<u8>) {
        let (mut dialler, hello) = Handshake::dial_with_token(ours, 77);
        let mut listener = Handshake::listen(Secret::random());
        let progress = listener.advance(&hello).unwrap();
        assert_eq!((progress.one_time_key, progress.reply.len()), (Some(77), 0));
        let answer = listener.use_one_time_key(theirs).unwrap();
        let proof = dialler.advance(&answer).unwrap().reply;
        (dialler, listener, proof)
    }

    #[test]
    fn a_one_time_key_proves_both_ends_and_seals() {
        let key = Secret::random();
        let (mut dialler, mut listener, proof) = with_tokens(key.clone(), key.clone());
        let progress = listener.advance(&proof).unwrap();
        assert_eq!(progress.agreed.unwrap().purpose, Purpose::Token);
        assert!(dialler.advance(&progress.reply).unwrap().agreed.is_some());
        let keys = [&dialler, &listener].map(|end| end.seal_keys().unwrap());
        assert_eq!(keys[0].outgoing, keys[1].incoming);
        assert_eq!(keys[0].incoming, keys[1].outgoing);
        // Whoever knows the one-time key and what passed does not know the keys.
        let hellos = listener.hellos.unwrap();
        let known = super::proof(&key, b"titin seal dialler", &hellos);
        assert_ne!(keys[0].outgoing, known);
    }

    #[test]
    fn another_one_time_key_is_refused_at_both_ends() {
        let (mut dialler, mut listener, proof) = with_tokens(Secret::random(), Secret::random());
        let progress = listener.advance(&proof).unwrap();
        assert_eq!(progress.agreed, None);
        assert_eq!(dialler.advance(&progress.reply), Err(Refusal::Secret));
    }

    #[test]
    fn a_public_key_that_agrees_on_nothing_is_refused() {
        let (mut dialler, mut hello) = Handshake::dial_with_token(Secret::random(), 77);
        hello[RANDOM].fill(0);
        let mut listener = Handshake::listen(Secret::random());
        listener.advance(&hello).unwrap();
        let refused = listener.use_one_time_key(Secret::random());
        assert!(matches!(refused, Err(Refusal::Stranger(_))));
        let mut answer = super::hello(Purpose::Control);
        answer[RANDOM].fill(0);
        let refused = dialler.advance(&answer);
        assert!(matches!(refused, Err(Refusal::Stranger(_))));
    }

    #[test]
    fn nothing_comes_before_the_answer_to_a_token() {
        let (_, hello) = Handshake::dial_with_token(Secret::random(), 77);
        let mut listener = Handshake::listen(Secret::random());
        listener.advance(&hello).unwrap();
        let refused = listener.advance(&[1]);
        assert!(matches!(refused, Err(Refusal::Stranger(_))));
        let mut listener = Handshake::listen(Secret::random());
        let refused = listener.advance(&[&hello[..], &[1]].concat());
        assert!(matches!(refused, Err(Refusal::Stranger(_))));
    }

    /// The bytes of this release, for later releases, as Python's `hmac` computes them.
    #[test]
    fn the_exchange_stays() {
        let key: Secret = "0123456789abcdef".repeat(4).parse().unwrap();
        assert_eq!(
            mixed(&key, &[9; 32]).key()[..8],
            [170, 171, 0, 85, 229, 21, 31, 225]
        );
    }

    #[test]
    fn circuits_are_for_sessions_and_tokens() {
        for purpose in [1, 2, 3, 4, 5, 6, 7, 8] {
            let mut hello = hello(Purpose::Control);
            hello[8] = purpose;
            assert_eq!(is_for_circuit(&hello), purpose >= 7);
        }
        assert!(!is_for_circuit(&[8; HELLO]));
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
