//! The state of a relay, for `titin relay status`.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use titin_wire::circuit::{self, RELAY_KEY, RelayAnswer, RelayRequest};

use crate::admission::RunSource;
use crate::config::RelayFolder;
use crate::peers::Peer;
use crate::server::{Relay, hex};

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The state, as `titin relay status --json` prints it.
pub(crate) fn of(relay: &Relay) -> Value {
    let runs = relay.runs.list().into_iter().map(|(run, name, sources)| {
        let from = match sources.first() {
            Some(RunSource::Peer(site)) => site.clone(),
            _ => relay.site.clone(),
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
        .and_then(|()| circuit::ask(&mut stream, (RELAY_KEY, access), &RelayRequest::Status));
    match answer.map_err(none)? {
        RelayAnswer::Status(state) => Ok(state),
        other => Err(format!("the relay answers {other:?}")),
    }
}
