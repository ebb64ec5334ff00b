//! How an agent that the user or a batch job starts finds its run: by a **token**, which serves once.
//!
//! The run prints the token as a part of the command that starts the agent, or gives it to the submission of
//! the batch job. A token has the name of the host, the addresses of the manager, the number and the value
//! of a one-time key, and for a host of another site the way through the relay of that site, with the run's
//! permit. The secret of the run is not in the token. The text of a token is the hexadecimal digits of a
//! MessagePack map, see [`Token`], and of a checksum: the first four bytes of the SHA-256 of the map.
//!
//! The agent connects to the manager. Both ends prove that they know the one-time key
//! ([`crate::handshake`], purpose 8). All bytes after the proofs are sealed ([`crate::seal`]):
//!
//! 1. agent → manager: [`TokenRequest`]
//! 2. manager → agent: [`TokenAnswer`], with the secret of the run. Then the manager closes the
//!    connection.
//!
//! Both are messages as in [`crate::circuit`]: a u32 length, little-endian, and as many bytes of JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::connection::Connection;
use crate::handshake::{Handshake, Refusal};
use crate::ids::{bytes_of_hex, to_hex};
use crate::seal::{Opener, SealKeys, Sealer};
use crate::{Address, Malformed, Medium, Secret, addresses_from_site, circuit, control};

/// How many bytes the checksum of a token has.
const CHECKSUM: usize = 4;

/// The most characters of a token.
pub const LONGEST: usize = 1 << 16;

/// The most bytes of each name in a request. A name in the DNS has 253 at most.
const LONGEST_NAME: usize = 255;

/// A token: the way to the manager, and the right to ask it once for the run's secret.
///
/// The debug output hides the keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// The number of the one-time key.
    pub number: u64,
    /// The one-time key.
    #[serde(with = "key_bytes")]
    pub key: Secret,
    /// The name of the host in the description.
    pub host: String,
    /// The manager's addresses, which an agent tries in this order.
    pub addresses: Vec<Address>,
    /// The way to the manager's site, for a host of another site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<TokenRelay>,
}

/// The relay of the site of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenRelay {
    /// The name of the site. A relay of another site refuses the agent before the token is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The address for processes of the site, `host:port`.
    pub address: String,
    /// The number of the run at relays.
    pub run: u64,
    /// The run's permit.
    #[serde(with = "key_bytes")]
    pub permit: Secret,
}

/// A key as 32 bytes.
mod key_bytes {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use serde_bytes::ByteArray;

    use crate::Secret;

    pub(super) fn serialize<S: Serializer>(key: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(key.key())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Secret, D::Error> {
        ByteArray::deserialize(deserializer).map(|bytes| Secret::of_bytes(bytes.into_array()))
    }
}

impl Token {
    /// A token with a one-time key, for a host that finds the run by the given connection.
    pub fn new((number, key): (u64, Secret), host: String, connection: &Connection) -> Self {
        let site = connection.site.as_ref();
        let own = site.map(|site| site.site.as_str());
        let addresses = addresses_from_site(own, &connection.addresses).filter(|address| {
            // An agent dials these media before it knows the secret of the run.
            matches!(address.medium(), Some(Medium::Tcp | Medium::Relay))
        });
        let addresses: Vec<Address> = addresses.cloned().collect();
        let is_elsewhere = addresses.iter().any(|address| address.site().is_some());
        let relay = site.filter(|_| is_elsewhere).map(|site| TokenRelay {
            site: Some(site.site.clone()),
            address: site.relay.clone(),
            run: site.run,
            permit: site.permit.clone(),
        });
        Token {
            number,
            key,
            host,
            addresses,
            relay,
        }
    }

    /// The text of the token, for the user alone.
    pub fn reveal(&self) -> String {
        text_of(control::encode(self))
    }

    /// Reads the text of a token. Blanks around the text are left out.
    ///
    /// # Errors
    /// [`Malformed`] if the text is no token.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let malformed = |why: &str| Malformed::new("token", why);
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(malformed("it is too long"));
        }
        let bytes = bytes_of_hex(text);
        let bytes = bytes.ok_or_else(|| malformed("expected pairs of hexadecimal digits"))?;
        let whole = bytes.split_last_chunk();
        let whole = whole.filter(|(map, sum)| checksum(map) == **sum);
        let (mut rest, _) = whole.ok_or_else(|| malformed("it is cut off or changed"))?;
        let token = rmp_serde::from_read(&mut rest)
            .map_err(|_| malformed("it is of another release of titin"))?;
        match rest {
            [] => Ok(token),
            _ => Err(malformed("something is behind it")),
        }
    }
}

/// The text of a token whose map has these bytes.
pub fn text_of(mut bytes: Vec<u8>) -> String {
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    to_hex(&bytes)
}

/// The checksum behind the bytes of a token.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::digest(bytes);
    std::array::from_fn(|at| digest[at])
}

/// What an agent with a token asks of the manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRequest {
    /// The name of the host in the description.
    pub host: String,
    /// The system name of the host.
    pub system_name: String,
    /// The release of titin.
    pub release: String,
}

impl TokenRequest {
    /// Whether a name is too long to be one.
    fn has_long_name(&self) -> bool {
        let mut names = [&self.host, &self.system_name, &self.release].into_iter();
        names.any(|name| name.len() > LONGEST_NAME)
    }
}

/// The manager's answer to an agent with a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAnswer {
    /// The agent may join the run. From now on the token is refused.
    Granted {
        /// How to find the manager, with the secret of the run.
        connection: Box<Connection>,
        /// The run directory on the manager's host.
        run_directory: PathBuf,
    },
    /// The agent may not join the run.
    Refused {
        /// Why.
        why: String,
    },
}

/// Why an agent has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection is not, or no longer, usable.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The other end has not proved the one-time key.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The other end has proved the key, and sends something else than an answer.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Asks the manager, over a fresh connection that waits for bytes.
///
/// # Errors
/// [`AskError`] if there is no answer.
pub fn ask(
    stream: &mut (impl Read + Write),
    token: &Token,
    request: &TokenRequest,
) -> Result<TokenAnswer, AskError> {
    let (mut shake, hello) = Handshake::dial_with_token(token.key.clone(), token.number);
    stream.write_all(&hello)?;
    let mut input = Vec::new();
    let keys = loop {
        read_some(stream, &mut input)?;
        let progress = shake.advance(&input)?;
        input.drain(..progress.used);
        stream.write_all(&progress.reply)?;
        if let Some(keys) = progress.agreed.and_then(|_| shake.seal_keys()) {
            break keys;
        }
    };
    let (mut sealer, mut opener) = keys.ends();
    let mut sealed = Vec::new();
    sealer.seal(&circuit::encode(request), &mut sealed);
    stream.write_all(&sealed)?;
    let mut opened = Vec::new();
    loop {
        opener.open(&input, &mut opened)?;
        if let Some(answer) = circuit::decode(&mut opened)? {
            return Ok(answer);
        }
        input.clear();
        read_some(stream, &mut input)?;
    }
}

/// Adds the next bytes of a stream to `input`.
fn read_some(stream: &mut impl Read, input: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    input.extend_from_slice(&piece[..count]);
    Ok(())
}

/// The manager's end of the connection of an agent with a token, after the proofs. Reads and writes
/// nothing itself.
pub struct TokenEnd {
    /// The number of the one-time key.
    number: u64,
    sealer: Sealer,
    opener: Opener,
    /// The beginning of the request.
    opened: Vec<u8>,
}

impl TokenEnd {
    /// The end of a connection with these keys. `number` is that of the one-time key.
    pub fn new(number: u64, keys: &SealKeys) -> Self {
        let (sealer, opener) = keys.ends();
        TokenEnd {
            number,
            sealer,
            opener,
            opened: Vec::new(),
        }
    }

    /// The number of the one-time key.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes sealed bytes, in pieces of any size. Returns the request once it has come as a whole.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not sealed by the other end, or no request.
    pub fn read(&mut self, sealed: &[u8]) -> Result<Option<TokenRequest>, Malformed> {
        self.opener.open(sealed, &mut self.opened)?;
        let request: Option<TokenRequest> = circuit::decode(&mut self.opened)?;
        if request.as_ref().is_some_and(TokenRequest::has_long_name) {
            return Err(Malformed::new("request", "a name is too long"));
        }
        Ok(request)
    }

    /// The sealed bytes of the answer.
    pub fn seal(&mut self, answer: &TokenAnswer) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.sealer.seal(&circuit::encode(answer), &mut sealed);
        sealed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::connection::SiteAccess;

    fn connection(site: Option<&str>) -> Connection {
        let texts = [
            "tcp:10.0.0.1:9",
            "file:/run/messages",
            "relay:north/10.0.0.1:9",
        ];
        Connection {
            addresses: texts.map(|text| Address::from(text.to_owned())).into(),
            secret: Secret::random(),
            spans_hosts: true,
            folders: Default::default(),
            patience: 60.0,
            site: site.map(|site| SiteAccess {
                site: site.to_owned(),
                relay: "login1:4710".to_owned(),
                run: 7,
                permit: Secret::random(),
                patience: 600.0,
                encrypt: true,
                congestion: None,
            }),
            network: None,
        }
    }

    fn token(site: Option<&str>) -> Token {
        let key = (u64::MAX, Secret::random());
        Token::new(key, "box".to_owned(), &connection(site))
    }

    #[test]
    fn a_token_leads_to_the_manager_and_has_not_the_secret() {
        for (site, address, has_relay) in [
            (None, "tcp:10.0.0.1:9", false),
            (Some("north"), "tcp:10.0.0.1:9", false),
            (Some("south"), "relay:north/10.0.0.1:9", true),
        ] {
            let connection = connection(site);
            let token = Token::new((5, Secret::random()), "box".to_owned(), &connection);
            let addresses: Vec<String> = token.addresses.iter().map(Address::to_string).collect();
            assert_eq!(addresses, [address]);
            assert_eq!(token.relay.is_some(), has_relay);
            let text = token.reveal();
            assert!(text.contains(&token.key.reveal()));
            assert!(!text.contains(&connection.secret.reveal()));
            assert_eq!(Token::parse(&format!(" {text}\n")), Ok(token.clone()));
            let shown = format!("{token:?}");
            assert!(!shown.contains(&token.key.reveal()) && shown.contains("hidden"));
        }
    }

    #[test]
    fn a_token_with_a_wrong_digit_is_refused() {
        let text = token(Some("south")).reveal();
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'0' {
                "1"
            } else {
                "0"
            };
            let mut wrong = text.clone();
            wrong.replace_range(at..=at, other);
            let error = Token::parse(&wrong).unwrap_err().to_string();
            assert_eq!(error, "malformed token: it is cut off or changed");
        }
    }

    #[test]
    fn a_text_that_is_no_token_is_refused() {
        let text = token(Some("south")).reveal();
        for wrong in [
            "",
            "abc",
            "+1",
            "zz",
            "é1",
            &text[1..],
            &text[..text.len() - 2],
            &"00".repeat(LONGEST),
        ] {
            let error = Token::parse(wrong).unwrap_err();
            assert!(error.to_string().starts_with("malformed token"), "{error}");
        }
    }

    /// The bytes of this release, for later releases.
    #[test]
    fn the_format_stays() {
        let token = Token {
            number: 7,
            key: Secret::of_bytes([0xab; 32]),
            host: "b".to_owned(),
            addresses: vec![Address::Tcp("a".to_owned(), 9)],
            relay: None,
        };
        let text = [
            "84a66e756d62657207a36b6579c420",
            &"ab".repeat(32),
            "a4686f7374a162a961646472657373657391a77463703a613a39",
            "8193eecd",
        ];
        assert_eq!(token.reveal(), text.concat());
    }

    /// The two ends of a connection, in this process.
    struct Wire<'a> {
        shake: Handshake,
        key: Secret,
        end: Option<TokenEnd>,
        answer: &'a TokenAnswer,
        requests: Vec<TokenRequest>,
        output: Vec<u8>,
    }

    impl Write for Wire<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.shake.is_done() {
                let end = self.end.as_mut().unwrap();
                if let Some(request) = end.read(bytes).map_err(io::Error::other)? {
                    self.requests.push(request);
                    self.output.extend(end.seal(self.answer));
                }
                return Ok(bytes.len());
            }
            let progress = self.shake.advance(bytes).map_err(io::Error::other)?;
            self.output.extend(progress.reply);
            if let Some(number) = progress.one_time_key {
                let answer = self.shake.use_one_time_key(self.key.clone()).unwrap();
                self.output.extend(answer);
                let keys = self.shake.seal_keys().unwrap();
                self.end = Some(TokenEnd::new(number, &keys));
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Wire<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            // In small pieces.
            let count = self.output.len().min(bytes.len()).min(7);
            bytes[..count].copy_from_slice(&self.output[..count]);
            self.output.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn the_answer_comes_sealed_and_after_the_proofs_alone() {
        let answer = TokenAnswer::Granted {
            connection: Box::new(connection(Some("south"))),
            run_directory: "/run".into(),
        };
        let request = TokenRequest {
            host: "box".to_owned(),
            system_name: "n2".to_owned(),
            release: "1".to_owned(),
        };
        let token = token(None);
        let wire = |key: &Secret| Wire {
            shake: Handshake::listen(Secret::random()),
            key: key.clone(),
            end: None,
            answer: &answer,
            requests: Vec::new(),
            output: Vec::new(),
        };
        let mut known = wire(&token.key);
        assert_eq!(ask(&mut known, &token, &request).unwrap(), answer);
        assert_eq!(known.requests, std::slice::from_ref(&request));
        assert_eq!(known.end.unwrap().number(), token.number);
        let mut unknown = wire(&Secret::random());
        let error = ask(&mut unknown, &token, &request).unwrap_err();
        assert!(matches!(error, AskError::Refused(Refusal::Secret)));
        assert!(unknown.requests.is_empty());
        // A name that would fill the log.
        let long = TokenRequest {
            host: "x".repeat(LONGEST_NAME + 1),
            ..request
        };
        let mut known = wire(&token.key);
        let error = ask(&mut known, &token, &long).unwrap_err();
        assert!(matches!(error, AskError::System(_)), "{error}");
        assert!(known.requests.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = Token::parse(&text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Token::parse(&to_hex(&bytes));
            let _ = Token::parse(&text_of(bytes));
        }

        #[test]
        fn a_changed_token_is_read_or_refused(at: prop::sample::Index, to: u8) {
            let mut bytes = control::encode(&token(Some("south")));
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = Token::parse(&text_of(bytes));
        }
    }
}
