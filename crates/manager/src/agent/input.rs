//! What an agent reads at its start: how to find the manager, and the run directory.

use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use titin_os::host;
use titin_wire::connection::Connection;
use titin_wire::token::{self, Token};
use titin_wire::{Address, Malformed, Medium};

use super::token_exchange::{self, ExchangeError};

/// The input of an agent. An agent that the run has started reads it as JSON from standard input, so
/// that no command line and no environment has the secret. An agent that the user has started gets it
/// from the manager for a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentInput {
    /// How to find the manager, with the secret of the run.
    pub connection: Connection,
    /// The run directory on the manager's host.
    pub run_directory: PathBuf,
}

/// What to look at if the manager cannot be reached at its addresses, in questions. `relay` is the address of
/// the relay of this site, if the way to the manager goes through relays.
pub(super) fn hint_if_unreachable(addresses: &[Address], relay: Option<&str>) -> String {
    if let Some(relay) = relay {
        return format!(
            "Is {relay} the relay of this site (`relay` under `titin: sites`), and does `titin relay status` show the link at \
             both sites? Has the run ended?"
        );
    }
    let is_tcp = |address: &&Address| address.medium() == Some(Medium::Tcp);
    let mut listeners = addresses.iter().filter(is_tcp).peekable();
    match listeners.peek().is_some() && listeners.all(Address::is_loopback) {
        true => "The manager listens on the loopback network of its host alone: does `network` of localhost under `titin: hosts` \
                 say so?"
            .to_owned(),
        false => "Has the run ended? Can this host reach the manager's by the network? A host of another site needs `site` in \
                  its entry under `titin: hosts`."
            .to_owned(),
    }
}

/// Why an agent has no input. Each printed error says how to go on.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The connection file cannot be read.
    #[error("cannot read {}: {source}. Give the connection.json of a run that is going on", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The text is no input.
    #[error("{what} is not what the manager of a run writes: {why}")]
    Text {
        /// The source of the text.
        what: String,
        /// The mistake.
        why: String,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    /// Standard input has no token.
    #[error(
        "standard input has no token of a run ({0}): give the whole line that the run has printed"
    )]
    NoToken(Malformed),
    /// The manager has not given the input.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

impl AgentInput {
    /// Reads a connection file, which is in the run directory.
    ///
    /// # Errors
    /// [`InputError`] if the file cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, InputError> {
        let text = fs::read_to_string(path).and_then(|text| Ok((text, path.canonicalize()?)));
        let (text, whole) = text.map_err(|source| InputError::File {
            path: path.to_owned(),
            source,
        })?;
        let connection = Connection::from_json(&text).map_err(|error| InputError::Text {
            what: path.display().to_string(),
            why: error.to_string(),
        })?;
        let run_directory = whole.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(AgentInput {
            connection,
            run_directory,
        })
    }

    /// Reads the input from a stream, to the end.
    ///
    /// # Errors
    /// [`InputError`] if the stream cannot be read, or has another text.
    pub fn of_stream(stream: impl io::Read) -> Result<Self, InputError> {
        let text = io::read_to_string(stream).map_err(InputError::Input)?;
        serde_json::from_str(&text).map_err(|error| InputError::Text {
            what: "standard input".to_owned(),
            why: error.to_string(),
        })
    }

    /// Reads a token from the first line of a stream, and asks the manager for the input. Also returns the
    /// name of the host in the description: `host`, or else that of the token.
    ///
    /// # Errors
    /// [`InputError`] if the stream has no token, or the manager does not give the input.
    pub fn of_token(
        stream: impl io::BufRead,
        host: Option<String>,
    ) -> Result<(Self, String), InputError> {
        let mut line = String::new();
        let mut stream = stream.take(token::LONGEST as u64 + 2);
        stream.read_line(&mut line).map_err(InputError::Input)?;
        let token = Token::parse(&line).map_err(InputError::NoToken)?;
        let host = host.unwrap_or_else(|| token.host.clone());
        let input = token_exchange::exchange(&token, host.clone(), host::name())?;
        Ok((input, host))
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// Whether this host has the run directory of the manager: the folder `instances`, and the
    /// connection file with the secret of the run.
    pub(super) fn shares_files(&self) -> bool {
        let text = fs::read_to_string(self.run_directory.join("connection.json"));
        let found = text.ok().and_then(|text| Connection::from_json(&text).ok());
        found.is_some_and(|found| found.secret == self.connection.secret)
            && self.run_directory.join("instances").is_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_wire::Secret;

    #[test]
    fn a_host_without_the_run_directory_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let connection = |secret: Secret| Connection {
            addresses: Vec::new(),
            secret,
            spans_hosts: true,
            folders: Default::default(),
            patience: 1.0,
            site: None,
            network: None,
        };
        let input = AgentInput {
            connection: connection(Secret::random()),
            run_directory: folder.path().canonicalize().unwrap(),
        };
        assert!(!input.shares_files());
        let file = folder.path().join("connection.json");
        // The same path on another host may have another run.
        fs::write(&file, connection(Secret::random()).to_json()).unwrap();
        assert!(!input.shares_files());
        fs::write(&file, input.connection.to_json()).unwrap();
        // A copy of the connection file is no run directory.
        assert!(!input.shares_files());
        fs::create_dir(folder.path().join("instances")).unwrap();
        assert!(input.shares_files());
        assert_eq!(AgentInput::of_file(&file).unwrap(), input);
        let text = input.to_json();
        assert_eq!(AgentInput::of_stream(text.as_bytes()).unwrap(), input);
        let error = AgentInput::of_stream(&b"{"[..]).unwrap_err().to_string();
        assert!(error.starts_with("standard input is not"), "{error}");
        for line in ["", "zz\n", "00".repeat(1 << 20).as_str()] {
            let error = AgentInput::of_token(line.as_bytes(), None).unwrap_err();
            assert!(matches!(error, InputError::NoToken(_)), "{error}");
        }
    }

    #[test]
    fn the_hint_if_the_manager_is_unreachable_fits_the_way() {
        let near = Address::Tcp("127.0.0.1".to_owned(), 9);
        let far = Address::Tcp("10.0.0.1".to_owned(), 9);
        let hint = |addresses: &[Address]| hint_if_unreachable(addresses, None);
        assert!(hint(std::slice::from_ref(&near)).contains("`network` of localhost"));
        for others in [&[near.clone(), far][..], &[]] {
            assert!(hint(others).starts_with("Has the run ended?"));
        }
        let relayed = hint_if_unreachable(&[near], Some("login1:4710"));
        assert!(relayed.starts_with("Is login1:4710 the relay of this site"));
    }
}
