//! What an agent reads at its start: how to find the manager, and the run directory.

use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use titin_os::host;
use titin_wire::Malformed;
use titin_wire::connection::Connection;
use titin_wire::token::{self, Token};

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

    /// Reads a token from the first line of a stream, and asks the manager for the input. `host` is
    /// the name of the host in the description; `None` for the system's name.
    ///
    /// # Errors
    /// [`InputError`] if the stream has no token, or the manager does not give the input.
    pub fn of_token(stream: impl io::BufRead, host: Option<&str>) -> Result<Self, InputError> {
        let mut line = String::new();
        let mut stream = stream.take(token::LONGEST as u64 + 2);
        stream.read_line(&mut line).map_err(InputError::Input)?;
        let token = Token::parse(&line).map_err(InputError::NoToken)?;
        let system_name = host::name();
        let host = host.unwrap_or(&system_name).to_owned();
        Ok(token_exchange::exchange(&token, host, system_name)?)
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
}
