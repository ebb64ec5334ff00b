//! The state of the relay, for `titin relay status`.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::admission::RunSource;
use crate::peers::Peer;
use crate::server::{Relay, hex};

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
        "process": std::process::id(),
        "seconds": relay.begun.elapsed().as_secs(),
        "config": relay.config(),
        "peers": relay.peers().iter().map(|peer| of_peer(relay, peer)).collect::<Vec<_>>(),
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
