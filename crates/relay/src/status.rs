//! The question for the state of a relay that runs, for `titin relay status`.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use titin_os::{host, sockets};
use titin_wire::circuit;
use titin_wire::handshake::Refusal;

use crate::config::RelayFolder;

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Asks the running relay of a folder for its state. `is_config_current` says there whether relay.toml is what the
/// relay goes by; a relay of an earlier release does not tell.
///
/// # Errors
/// If no relay runs there, in words.
pub fn ask_status(folder: &RelayFolder) -> Result<Value, String> {
    let config = folder.config().map_err(|error| error.to_string())?;
    let access = folder.access().map_err(|error| error.to_string())?;
    let address = &config.local;
    let none = |error: io::Error| {
        format!(
            "no relay of {} answers at {address}, as seen from {}: {error}; `titin relay run` starts it, unless it runs on another \
             host",
            folder.path().display(),
            host::name(),
        )
    };
    let mut stream = sockets::connect(address.as_str(), ANSWER_TIME, ANSWER_TIME).map_err(none)?;
    let mut state = circuit::ask_state(&mut stream, access)
        .map_err(|error| without_answer(folder, address, &error))?;
    if !state["config"].is_null() {
        state["is_config_current"] = (state["config"] == json!(config)).into();
    }
    Ok(state)
}

/// Why a listener has not answered as the relay of the folder does, and what to do.
fn without_answer(folder: &RelayFolder, address: &str, error: &io::Error) -> String {
    let refusal = error
        .get_ref()
        .and_then(|why| why.downcast_ref::<Refusal>());
    let is_foreign = matches!(refusal, Some(Refusal::Stranger(_)))
        || matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
        );
    let config = folder.config_path();
    match is_foreign {
        true => format!(
            "something else than a relay listens at {address}: {error}; give the relay another port, as `local` in {}",
            config.display()
        ),
        false => format!(
            "what listens at {address}, which is `local` in {}, does not answer as the relay of this folder: {error}",
            config.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;
    use crate::config::Config;

    /// What the question says where a listener greets with some bytes, and then ends the connection.
    fn asked_of_another(greeting: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay
            .init(&Config::new("north".into(), local, None))
            .unwrap();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting).unwrap();
        });
        let why = ask_status(&relay).unwrap_err();
        other.join().unwrap();
        why
    }

    #[test]
    fn something_else_at_the_address_is_no_relay() {
        let greeting = b"SSH-2.0-other than a relay, and long enough for the first message";
        for greeting in [&greeting[..], b""] {
            let why = asked_of_another(greeting);
            assert!(why.contains("something else than a relay listens"), "{why}");
            assert!(!why.contains("titin relay run"), "{why}");
        }
    }

    #[test]
    fn a_relay_that_does_not_run_is_to_be_started() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        // Nothing listens at port 0.
        relay
            .init(&Config::new("north".into(), "127.0.0.1:0".into(), None))
            .unwrap();
        let why = ask_status(&relay).unwrap_err();
        assert!(why.contains("`titin relay run` starts it"), "{why}");
    }
}
