//! The state of a relay, for `titin relay status`.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use titin_wire::circuit::{self, RELAY_KEY, RelayAnswer, RelayRequest};
use titin_wire::handshake::Handshake;

use crate::admission::RunSource;
use crate::config::RelayFolder;
use crate::peers::Peer;
use crate::server::{Relay, hex};

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The state, as `titin relay status --json` prints it.
pub(crate) fn of(relay: &Relay) -> Value {
    let runs = relay.runs.list().into_iter().map(|(run, name, source)| {
        let from = match source {
            RunSource::Manager => relay.site.clone(),
            RunSource::Peer(site) => site,
        };
        json!({"run": hex(run), "name": name, "from": from})
    });
    json!({
        "site": relay.site,
        "fingerprint": relay.tls.fingerprint().to_string(),
        "seconds": relay.begun.elapsed().as_secs(),
        "peers": relay.peers().iter().map(|peer| of_peer(peer)).collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn of_peer(peer: &Peer) -> Value {
    let counts = &peer.counts;
    let round_trip = counts.round_trip.load(Ordering::Relaxed);
    json!({
        "site": peer.site(),
        "connected": peer.is_connected(),
        "behind": peer.behind,
        "round_trip_ms": (round_trip > 0).then_some(round_trip as f64 / 1000.0),
        "circuits": peer.circuits(),
        "bytes_sent": counts.sent.load(Ordering::Relaxed),
        "bytes_received": counts.received.load(Ordering::Relaxed),
        "bytes_sent_per_second": counts.sent_rate.load(Ordering::Relaxed),
        "bytes_received_per_second": counts.received_rate.load(Ordering::Relaxed),
        "retransmissions": counts.retransmissions.load(Ordering::Relaxed),
    })
}

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
        .map_err(|error| error.to_string())
        .and_then(|()| ask(&mut stream, access, &RelayRequest::Status))?;
    match answer {
        RelayAnswer::Status(state) => Ok(state),
        other => Err(format!("the relay answers {other:?}")),
    }
}

/// Asks a relay by its key.
fn ask(
    stream: &mut TcpStream,
    access: titin_wire::Secret,
    request: &RelayRequest,
) -> Result<RelayAnswer, String> {
    let text = |error: io::Error| error.to_string();
    let (mut shake, hello) = Handshake::dial_relay(access, RELAY_KEY);
    stream.write_all(&hello).map_err(text)?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let mut is_asked = false;
    loop {
        let count = stream.read(&mut piece).map_err(text)?;
        if count == 0 {
            return Err("the relay has closed the connection".to_owned());
        }
        bytes.extend_from_slice(&piece[..count]);
        if !is_asked {
            let progress = shake.advance(&bytes).map_err(|why| why.to_string())?;
            bytes.drain(..progress.used);
            stream.write_all(&progress.reply).map_err(text)?;
            if progress.agreed.is_none() {
                continue;
            }
            stream.write_all(&circuit::encode(request)).map_err(text)?;
            is_asked = true;
        }
        if let Some(answer) = circuit::decode(&mut bytes).map_err(|error| error.to_string())? {
            return Ok(answer);
        }
    }
}
