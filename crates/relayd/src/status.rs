//! The state of the relay, for `titin relay status`.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::admission::RunSource;
use crate::log_limit::beginning;
use crate::peers::Peer;
use crate::server::{Relay, hex};

/// The most runs that the state names, and the most letters of their names: an answer has at most 1 MiB.
const MOST_RUNS: usize = 1000;
const MOST_LETTERS: usize = 100;

/// The state, as `titin relay status --json` prints it.
pub(crate) fn of(relay: &Relay) -> Value {
    let all = relay.runs.list();
    let count = all.len();
    let runs = all.into_iter().take(MOST_RUNS).map(|(run, name, source)| {
        let from = match source {
            RunSource::Peer(site) => site,
            RunSource::Manager(_) => relay.site.clone(),
        };
        let name = beginning(&name, MOST_LETTERS);
        json!({"run": hex(run), "name": name, "from": from})
    });
    json!({
        "site": relay.site,
        "fingerprint": relay.tls.fingerprint().to_string(),
        "process": std::process::id(),
        "seconds": relay.begun.elapsed().as_secs(),
        "config": relay.config(),
        "peers": relay.peers().iter().map(|peer| of_peer(relay, peer)).collect::<Vec<_>>(),
        "run_count": count,
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn of_peer(relay: &Relay, peer: &Peer) -> Value {
    let counts = &peer.counts;
    let round_trip = counts.round_trip.load(Ordering::Relaxed);
    json!({
        "site": peer.site(),
        "connected": peer.is_connected(),
        "down": peer.why_down(&relay.tls.keys),
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
