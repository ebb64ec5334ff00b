//! The question for the state of a relay that runs, for `titin relay status`.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use titin_wire::circuit::{self, RELAY_KEY, RelayAnswer, RelayRequest};

use crate::config::RelayFolder;

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Asks the running relay of a folder for its state.
///
/// # Errors
/// If no relay runs there, in words.
pub fn ask_status(folder: &RelayFolder) -> Result<Value, String> {
    let config = folder.config().map_err(|error| error.to_string())?;
    let access = folder.access().map_err(|error| error.to_string())?;
    let none = |error: io::Error| {
        format!(
            "no relay of {} answers at {}: {error}; `titin relay run` starts it",
            folder.path().display(),
            config.local
        )
    };
    let mut stream = TcpStream::connect(&config.local).map_err(none)?;
    let answer = stream
        .set_read_timeout(Some(ANSWER_TIME))
        .and_then(|()| circuit::ask(&mut stream, (RELAY_KEY, access), &RelayRequest::Status));
    match answer.map_err(none)? {
        RelayAnswer::Status(state) => Ok(state),
        other => Err(format!("the relay answers {other:?}")),
    }
}
