//! The functions that read hostile bytes. cargo-fuzz (`fuzz/` at the top) calls them with generated
//! bytes, and the tests call them with the corpus.
//!
//! Each function panics if a decoder panics, or if a decoder accepts bytes whose value contradicts
//! itself. If the bytes are refused, the function returns the reason.

mod array;
mod seeds;

use std::io::IoSliceMut;

use serde::Serialize;
use serde::de::DeserializeOwned;
use titin_model::{ConduitId, LoadOptions, StartPolicy, load_texts};
use titin_transport::{FrameReader, Received};
use titin_wire::circuit::{self, RelayAnswer, RelayRequest};
use titin_wire::connection::Connection;
use titin_wire::control::{self, Greeting, ToManager, ToProgram};
use titin_wire::handshake::{Handshake, Purpose};
use titin_wire::line::{ControlMessage, PeerAnswer, PeerGreeting};
use titin_wire::meta::Meta;
use titin_wire::path::{LongMessage, PathControl};
use titin_wire::ranks::{
    self, CollectiveReport, FieldSteps, Invitation, RankMessage, RankProcess, RepeatedAnnouncement,
};
use titin_wire::session::{RESUME, Session, SessionGreeting, SessionId};
use titin_wire::settings::decode_overlay;
use titin_wire::structure;
use titin_wire::token::{Token, TokenAnswer, TokenRequest, text_of};
use titin_wire::{Malformed, Secret};

pub use array::array;
pub use seeds::seeds;

/// The id of the session that the target reads for.
pub(crate) const SESSION: u128 = 5;

/// The reason if the bytes were refused.
pub type Outcome = Result<(), String>;

/// The name of a function that reads hostile bytes, and the function.
pub type Target = (&'static str, fn(&[u8]) -> Outcome);

/// All functions that read hostile bytes.
pub const TARGETS: [Target; 13] = [
    ("stream", stream),
    ("streams", streams),
    ("meta", meta),
    ("structure", structure),
    ("control", control),
    ("handshake", handshake),
    ("session", session),
    ("relay", relay),
    ("line", line),
    ("token", token),
    ("path", path),
    ("description", description),
    ("array", array),
];

/// Reads the records of a session, after a connection was made. The first byte says into how large
/// parts the bytes are cut. The session must find the same bytes however the records are cut.
pub fn session(bytes: &[u8]) -> Outcome {
    let (step, bytes) = bytes
        .split_first()
        .map_or((0, bytes), |(step, bytes)| (usize::from(*step), bytes));
    let (whole, outcome) = read_session(bytes, bytes.len().max(1));
    let (cut, cut_outcome) = read_session(bytes, step + 1);
    assert_eq!((&whole, &outcome), (&cut, &cut_outcome));
    assert!(whole.len() <= bytes.len());
    let _ = SessionGreeting::read(bytes);
    outcome
}

fn read_session(bytes: &[u8], step: usize) -> (Vec<u8>, Outcome) {
    let mut session = Session::new(SessionId(SESSION));
    session.connect();
    let (mut got, mut answer) = (Vec::new(), Vec::new());
    for part in bytes.chunks(step) {
        if let Err(refused) = session.read(part, &mut got) {
            return (got, Err(refused.to_string()));
        }
        answer.clear();
        session.write(&mut answer, 1 << 16);
        assert!(answer.len() <= 8 * RESUME, "an answer has few records");
    }
    (got, Ok(()))
}

/// Reads what processes and relays say to each other.
pub fn relay(bytes: &[u8]) -> Outcome {
    let refused = |error: Malformed| error.to_string();
    let answer = circuit::decode::<RelayAnswer>(&mut bytes.to_vec()).map_err(refused);
    let mut rest = bytes.to_vec();
    match circuit::decode::<RelayRequest>(&mut rest).map_err(refused)? {
        Some(request) => {
            let (mut again, length) = (circuit::encode(&request), rest.len());
            assert_eq!(circuit::decode(&mut again), Ok(Some(request)));
            assert!(length < bytes.len());
            Ok(())
        }
        None => answer.map(drop),
    }
}

/// Reads what two relays say to each other. A message that is not there in full is no error.
pub fn line(bytes: &[u8]) -> Outcome {
    fn accepts<T>(bytes: &[u8]) -> Outcome
    where
        T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug,
    {
        let mut rest = bytes.to_vec();
        let Some(message) = circuit::decode::<T>(&mut rest).map_err(text)? else {
            assert_eq!(rest, bytes);
            return Ok(());
        };
        assert!(rest.len() < bytes.len() && bytes.ends_with(&rest));
        let mut again = circuit::encode(&message);
        assert_eq!(circuit::decode(&mut again), Ok(Some(message)));
        assert!(again.is_empty());
        Ok(())
    }
    let outcomes = [
        accepts::<PeerGreeting>(bytes),
        accepts::<PeerAnswer>(bytes),
        accepts::<ControlMessage>(bytes),
    ];
    outcomes
        .into_iter()
        .reduce(|found, next| if found.is_ok() { found } else { next })
        .expect("not empty")
}

/// Reads a token, as text or as the bytes of its map, and what an agent with a token and
/// the manager say to each other.
pub fn token(bytes: &[u8]) -> Outcome {
    fn accepts<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Outcome {
        let message: Option<T> = circuit::decode(&mut bytes.to_vec()).map_err(text)?;
        message.map(|message| circuit::encode(&message));
        Ok(())
    }
    fn parse(digits: &str) -> Outcome {
        let token = Token::parse(digits).map_err(text)?;
        assert_eq!(Token::parse(&token.reveal()), Ok(token));
        Ok(())
    }
    let outcomes = [
        parse(&text_of(bytes.to_vec())),
        parse(&String::from_utf8_lossy(bytes)),
        accepts::<TokenRequest>(bytes),
        accepts::<TokenAnswer>(bytes),
    ];
    outcomes
        .into_iter()
        .reduce(|found, next| if found.is_ok() { found } else { next })
        .expect("not empty")
}

/// Reads what the two ends of a path say to each other, and the head of a long message.
pub fn path(bytes: &[u8]) -> Outcome {
    if let Ok(message) = LongMessage::decode(bytes) {
        assert_eq!(LongMessage::decode(&message.encode()), Ok(message));
        return Ok(());
    }
    let control = PathControl::decode(bytes).map_err(text)?;
    assert_eq!(PathControl::decode(&control.encode()), Ok(control));
    Ok(())
}

/// Reads the frames of a link. The first byte says into how large parts the bytes are cut for the
/// reader. The reader must find the same frames however the bytes are cut.
pub fn stream(bytes: &[u8]) -> Outcome {
    let (step, bytes) = bytes
        .split_first()
        .map_or((0, bytes), |(step, bytes)| (usize::from(*step), bytes));
    let (whole, outcome) = read(bytes, bytes.len().max(1));
    let (cut, cut_outcome) = read(bytes, step + 1);
    assert_eq!(
        (&whole, &outcome),
        (&cut, &cut_outcome),
        "read {} bytes at a time",
        step + 1
    );
    outcome
}

/// Reads the frames of a link of three streams. The input repeats: the number of a stream, a count,
/// and count times 16 bytes of this stream. The reader must find the same frames however the bytes
/// are cut.
pub fn streams(bytes: &[u8]) -> Outcome {
    let (whole, outcome) = read_streams(bytes, usize::MAX);
    let (cut, cut_outcome) = read_streams(bytes, 7);
    assert_eq!(
        (&whole, &outcome),
        (&cut, &cut_outcome),
        "read 7 bytes at a time"
    );
    outcome
}

/// Reads the metadata of a message. The first eight bytes are the length of the payload.
pub fn meta(bytes: &[u8]) -> Outcome {
    let (total, bytes) = bytes
        .split_first_chunk()
        .map_or((0, bytes), |(total, rest)| {
            (u64::from_le_bytes(*total), rest)
        });
    let meta = Meta::decode(bytes, total).map_err(text)?;
    assert_eq!(Meta::decode(&meta.encode(), total).as_ref(), Ok(&meta));
    Ok(())
}

/// Reads the payload of a structure.
pub fn structure(bytes: &[u8]) -> Outcome {
    let value = structure::decode(bytes).map_err(text)?;
    let value = value.map_bytes(&|span| &bytes[span]);
    let encoded = structure::encode(&value).expect("what was decoded can be encoded");
    let again = encoded.to_bytes();
    assert_eq!(again.len() as u64, encoded.length);
    let decoded = structure::decode(&again).expect("what was encoded can be decoded");
    // The values are compared as text, because a number may be NaN, which does not equal itself.
    assert_eq!(
        format!("{:?}", decoded.map_bytes(&|span| &again[span])),
        format!("{value:?}")
    );
    Ok(())
}

/// Reads everything that comes as MessagePack or JSON: control messages, messages between ranks,
/// overlays, and the connection file. Reads the repeated announcement, which is neither, too.
pub fn control(bytes: &[u8]) -> Outcome {
    fn accepts<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Outcome {
        let message: T = control::decode(bytes).map_err(text)?;
        let encoded = control::encode(&message);
        let again: T = control::decode(&encoded).expect("what was encoded can be decoded");
        assert_eq!(control::encode(&again), encoded);
        Ok(())
    }
    fn repeated_announcement(bytes: &[u8]) -> Outcome {
        let announcement = RepeatedAnnouncement::decode(bytes).ok_or("no repeated announcement")?;
        let mut encoded = Vec::new();
        announcement.encode_into(&mut encoded);
        assert_eq!(encoded, bytes);
        Ok(())
    }
    let outcomes = [
        accepts::<ToManager>(bytes),
        accepts::<ToProgram>(bytes),
        accepts::<Greeting>(bytes),
        accepts::<Invitation>(bytes),
        accepts::<ranks::Outcome<RankProcess>>(bytes),
        accepts::<CollectiveReport>(bytes),
        repeated_announcement(bytes),
        accepts::<RankMessage>(bytes),
        accepts::<FieldSteps>(bytes),
        decode_overlay(bytes).map(drop).map_err(text),
        Connection::from_json(&String::from_utf8_lossy(bytes))
            .map(drop)
            .map_err(text),
    ];
    outcomes
        .into_iter()
        .reduce(|found, next| if found.is_ok() { found } else { next })
        .expect("not empty")
}

/// Reads the bytes of a stranger's handshake, at a listener and at a dialler. The first byte says
/// into how large parts the bytes are cut. The handshake must never succeed.
pub fn handshake(bytes: &[u8]) -> Outcome {
    let (step, bytes) = bytes
        .split_first()
        .map_or((0, bytes), |(step, bytes)| (usize::from(*step), bytes));
    let secret = secret();
    let ends = [
        Handshake::listen(secret.clone()),
        Handshake::dial(secret, Purpose::Data).0,
    ];
    let mut outcome = Ok(());
    for mut end in ends {
        for piece in bytes.chunks(step + 1) {
            match end.advance(piece) {
                Ok(progress) => {
                    assert!(
                        progress.agreed.is_none()
                            && progress.used <= piece.len()
                            && progress.reply.len() <= 96
                    );
                    if progress.one_time_key.is_some()
                        && let Err(refusal) = end.use_one_time_key(Secret::random())
                    {
                        outcome = Err(refusal.to_string());
                        break;
                    }
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

/// Reads a text as a description. An accepted description is flattened, written, and read again.
pub fn description(bytes: &[u8]) -> Outcome {
    let text = &*String::from_utf8_lossy(bytes);
    let options = LoadOptions {
        start: StartPolicy::ByHand,
        ..LoadOptions::default()
    };
    let description = match load_texts(&[("fuzz", text)], &options) {
        Ok(description) => description,
        Err(report) => {
            assert!(!report.is_ok() && !report.to_string().is_empty());
            return Err(report.to_string());
        }
    };
    let network = description
        .network(None)
        .expect("what was accepted can be flattened");
    for instance in network.instances().take(100) {
        assert!(network.instance_id(&instance).is_some());
    }
    for id in (0..network.conduit_count()).take(1000) {
        let ends = network.conduit(ConduitId(id)).expect("a conduit has ends");
        assert!(
            [ends.sender, ends.receiver]
                .iter()
                .all(|end| network.instance_id(end).is_some())
        );
    }
    let written = description.to_ymmsl();
    if let Err(report) = load_texts(&[("written", &written)], &options) {
        panic!("what was written is not accepted:\n{written}\n{report}");
    }
    Ok(())
}

fn read(bytes: &[u8], step: usize) -> (Vec<String>, Outcome) {
    let (mut reader, mut out) = (FrameReader::new(&[]), Vec::new());
    let outcome = feed(&mut reader, 0, bytes, step, &mut out);
    (out.iter().map(describe).collect(), outcome)
}

fn read_streams(mut bytes: &[u8], step: usize) -> (Vec<String>, Outcome) {
    let (mut reader, mut out) = (FrameReader::new(&[]), Vec::new());
    (0..2).for_each(|_| reader.add_stream(&[]));
    let mut outcome = Ok(());
    while let ([number, length, rest @ ..], Ok(())) = (bytes, &outcome) {
        let (piece, rest) = rest.split_at(rest.len().min(16 * usize::from(*length)));
        outcome = feed(&mut reader, usize::from(number % 3), piece, step, &mut out);
        bytes = rest;
    }
    (out.iter().map(describe).collect(), outcome)
}

fn feed(
    reader: &mut FrameReader,
    number: usize,
    mut left: &[u8],
    step: usize,
    out: &mut Vec<Received>,
) -> Outcome {
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
        outcome = reader
            .read_stream(number, out, fill)
            .map(drop)
            .map_err(|lost| lost.to_string());
    }
    outcome
}

fn describe(received: &Received) -> String {
    match received {
        Received::Message(message) => {
            format!(
                "{:?} {:?} {:?}",
                message.head,
                message.meta,
                &message.body[..]
            )
        }
        other => format!("{other:?}"),
    }
}

fn text(error: Malformed) -> String {
    error.to_string()
}

fn secret() -> Secret {
    "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2"
        .parse()
        .expect("64 digits")
}
