//! The reports of an instance to the manager: waits and counts, log records, progress, the profile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use titin_os::process_use;
use titin_transport::Window;
use titin_wire::ConduitId;
use titin_wire::control::{
    ConduitProfile, Event, ProcessUse, Profile, Progress, ToManager, WaitOn,
};

use super::{Serial, WARNING};
use crate::peer_names::instance_of;
use crate::port::{ConduitUse, Inlet, Outlet, Port, PortEnd};
use crate::profile::{event, share};

/// A count of messages, and whether the end of the stream was sent or is known to the receiving
/// call. The end wakes a waiting receiver as a message does, so until then the counts of both ends
/// differ. Counts of messages never reach bit 63.
fn with_end(count: u64, has_ended: bool) -> u64 {
    count | u64::from(has_ended) << 63
}

/// What this process has used of its host, for the profile.
fn own_use() -> Option<ProcessUse> {
    let used = process_use::own()?;
    Some(ProcessUse {
        pid: std::process::id(),
        processor: used.processor.as_secs_f64(),
        peak_memory: used.peak_memory,
    })
}

impl Serial {
    /// The answer to a probe: the number of the lasting wait, and counts of messages sent or taken.
    /// By them the manager is sure of a deadlock. `questions` counts the requests for versions of a
    /// field along a conduit.
    pub(crate) fn counts(
        &self,
        conduits: &[ConduitId],
        questions: impl Fn(ConduitId) -> u64,
    ) -> (Option<u64>, Vec<(ConduitId, u64)>) {
        let count = |conduit: &ConduitId| {
            let sent = self
                .outlet_of(*conduit)
                .map(|outlet| with_end(outlet.window.sent(), outlet.window.finished()));
            let taken = || {
                let found = self
                    .inlets()
                    .find(|(_, inlet)| inlet.end.conduit == *conduit);
                found.map(|(_, inlet)| {
                    let end_is_known = inlet.end_is_known.load(Ordering::Relaxed);
                    with_end(inlet.seen(), end_is_known)
                })
            };
            sent.or_else(taken)
                .map(|count| (*conduit, count.wrapping_add(questions(*conduit) << 32)))
        };
        let counts = conduits.iter().filter_map(count).collect();
        // Read after the counts: if the wait still stands, no counted message has ended the wait.
        (
            *self.reporter.waiting.lock().expect("never poisoned"),
            counts,
        )
    }

    /// A wait to send along a conduit, as the manager sees the wait. `bytes` are the bytes still to
    /// send.
    pub(crate) fn wait_to_send(&self, outlet: &Outlet, bytes: u64) -> Vec<WaitOn> {
        let on = self.wait_on(&outlet.end, Some(&outlet.window), None);
        let on = on.map(|on| WaitOn {
            ahead_bytes: on.ahead_bytes + bytes,
            ..on
        });
        on.into_iter().collect()
    }

    /// A wait for the given end, as the manager sees the wait. None for conduits between ranks:
    /// waits of the ranks of one program for each other do not concern the manager.
    pub(crate) fn wait_on(
        &self,
        end: &PortEnd,
        window: Option<&Window>,
        inlet: Option<&Inlet>,
    ) -> Option<WaitOn> {
        if end.conduit_use != ConduitUse::Ports {
            return None;
        }
        let (ahead, ahead_bytes) = window.map_or((0, 0), Window::ahead);
        Some(WaitOn {
            conduit: end.conduit,
            port: end.label.to_string(),
            peer: instance_of(&end.peer).to_owned(),
            peer_port: end.peer_port.to_string(),
            sends: window.is_some(),
            count: window
                .map(Window::sent)
                .or(inlet.map(Inlet::seen))
                .unwrap_or(0),
            ahead,
            ahead_bytes,
            field: false,
            closes: false,
            joins: false,
        })
    }

    pub(crate) fn log(&self, level: u8, text: &str) {
        if level < self.core.habits.log_level {
            return;
        }
        let time = self.core.process.clock().now() as f64 * 1e-9;
        self.tell(&ToManager::Log {
            instance: self.core.name.clone(),
            level,
            time,
            simulated: self.simulated(),
            text: shortened(&self.as_rank(text)),
        });
    }

    /// Sends the warnings of the execution loop to the log of the run. All ranks have the same, so rank 0 speaks for
    /// all.
    #[inline(always)]
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        if !warnings.is_empty() && self.leads() {
            warnings.iter().for_each(|text| self.log(WARNING, text));
        }
    }

    /// A text with the rank of this process, in a parallel program.
    pub(crate) fn as_rank(&self, text: &str) -> String {
        self.core
            .rank
            .map_or_else(|| text.to_owned(), |rank| format!("rank {rank}: {text}"))
    }

    fn simulated(&self) -> Option<f64> {
        Some(f64::from_bits(
            self.profile.simulated.load(Ordering::Relaxed),
        ))
        .filter(|time| !time.is_nan())
    }

    /// Keeps the simulated time for the log and for progress.
    pub(crate) fn at(&self, timestamp: f64) {
        self.profile
            .simulated
            .store(timestamp.to_bits(), Ordering::Relaxed);
    }

    /// Reports simulated time and traffic, if time or traffic has changed. `more_bytes` went by the
    /// links of fields.
    pub(crate) fn report_progress(&self, more_bytes: u64) {
        let count = |counter: fn(&Outlet) -> &AtomicU64| -> u64 {
            self.outlets()
                .map(|outlet| counter(outlet).load(Ordering::Relaxed))
                .sum()
        };
        let messages = count(|outlet| &outlet.end.meter.messages);
        let bytes = count(|outlet| &outlet.end.meter.bytes) + more_bytes;
        let now = (
            self.profile.simulated.load(Ordering::Relaxed),
            messages,
            bytes,
        );
        if std::mem::replace(
            &mut *self.profile.progress.lock().expect("never poisoned"),
            now,
        ) == now
        {
            return;
        }
        let simulated = self.simulated();
        self.tell(&ToManager::Progress(Progress {
            instance: self.core.name.clone(),
            simulated,
            messages,
            bytes,
            end: self.profile.end,
        }));
    }

    /// Counts the time of a send without waits. The send stands for `times` sends.
    pub(crate) fn sent_for(&self, time: Duration, times: u32) {
        let now = self.profile.trace.now();
        let last = self.profile.timed.swap(now, Ordering::Relaxed);
        let time = share(time, times, Duration::from_nanos(now.abs_diff(last)));
        self.profile
            .sending
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Keeps a row of the trace about a message. Rows are of ordinary conduits alone.
    pub(crate) fn row_of(&self, row: &RowOfMessage<'_>) {
        let RowOfMessage { port, end, .. } = *row;
        if end.conduit_use != ConduitUse::Ports {
            return;
        }
        self.row(Event {
            port: Some(port.name.to_string()),
            operator: Some(port.operator.key().to_owned()),
            slots: port.vector.then(|| port.slots()),
            slot: port.vector.then_some(row.slot),
            conduit: Some(end.conduit.0),
            number: Some(row.number),
            size: Some(row.size),
            timestamp: Some(row.timestamp),
            ..event(row.kind, row.time.0, row.time.1)
        });
    }

    /// Keeps a row of the trace.
    pub(crate) fn row(&self, event: Event) {
        if let Some(events) = self.profile.trace.row(event) {
            self.tell(&ToManager::Profile(Profile {
                instance: self.core.name.clone(),
                events,
                ..Profile::default()
            }));
        }
    }

    /// The times of this instance, for the given conduits.
    pub(crate) fn profile_of(&self, conduits: Vec<ConduitProfile>) -> Profile {
        let trace = &self.profile.trace;
        // Rank 0 of a parallel program joins and leaves for all.
        let mut events = if self.leads() {
            trace.take_life()
        } else {
            Vec::new()
        };
        events.extend(trace.take_rows());
        let waiting = |sends: bool| -> f64 {
            let ends = conduits.iter().filter(|conduit| conduit.sends == sends);
            ends.map(|conduit| conduit.waiting).sum()
        };
        let (to_receive, to_send) = (waiting(false), waiting(true));
        Profile {
            instance: self.core.name.clone(),
            start: trace.start(),
            stop: trace.now() as f64 * 1e-9,
            waiting: to_receive,
            sending: self.profile.sending.load(Ordering::Relaxed) as f64 * 1e-9 + to_send,
            blocked: to_send,
            conduits,
            events,
            regions: trace.regions(),
            process: own_use(),
        }
    }

    /// The counts of one end of a conduit.
    pub(crate) fn conduit_profile(&self, end: &PortEnd, receives: bool) -> ConduitProfile {
        let carrier = end.carrier.get();
        let medium = carrier.map_or("none", |carrier| carrier.medium().key());
        let streams = carrier.map(|carrier| carrier.streams() as u32);
        let addresses = carrier.and_then(|carrier| carrier.addresses());
        let bytes = end.meter.bytes.load(Ordering::Relaxed);
        let compressed = end.meter.compressed.load(Ordering::Relaxed);
        let saved = end.meter.saved.load(Ordering::Relaxed);
        ConduitProfile {
            conduit: end.conduit.0,
            port: end.label.to_string(),
            sends: !receives,
            medium: medium.to_owned(),
            streams: streams.filter(|streams| *streams > 1),
            addresses: addresses.map(|ends| ends.map(|address| address.to_string())),
            detour: self.detour(end),
            messages: end.meter.messages.load(Ordering::Relaxed),
            bytes,
            compressed,
            uncompressed_bytes: if compressed > 0 {
                bytes.wrapping_add(saved)
            } else {
                0
            },
            copied: end.meter.copied.load(Ordering::Relaxed),
            by_socket: end.meter.by_socket.load(Ordering::Relaxed),
            waiting: end.meter.waiting(),
        }
    }

    /// Why messages of this end did not go by shared memory, if the profile should give a reason.
    fn detour(&self, end: &PortEnd) -> Option<String> {
        if end.meter.by_socket.load(Ordering::Relaxed) == 0 {
            return match end.pinned {
                Some(_) => None,
                None => self.core.process.detour(&end.peer),
            };
        }
        // The messages went by the socket beside shared memory: no shared memory was left, or the
        // user has switched shared memory off.
        if self.core.process.exchange.is_switched_off() {
            return Some(format!(
                "TITIN_SHARED_MEMORY=0 in the environment of {} switches shared memory off",
                self.core.name
            ));
        }
        let why = end.meter.shortage()?;
        Some(format!("no shared memory was left for them: {why}"))
    }
}

/// A row of the trace about a message.
pub(crate) struct RowOfMessage<'a> {
    pub(crate) kind: &'a str,
    pub(crate) port: &'a Port,
    pub(crate) end: &'a PortEnd,
    pub(crate) slot: u32,
    /// When the step of the row began and ended.
    pub(crate) time: (i64, i64),
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) timestamp: f64,
}

/// The most bytes of a text for the manager: the manager cuts off a process that sends a larger
/// control message.
const LONGEST: usize = 16 << 20;

/// A text for the manager. A text over the limit loses its end, and says so.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let (kept, left) = text.split_at(text.floor_char_boundary(LONGEST));
    format!("{kept}... ({} bytes more are left out)", left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_its_end_and_says_so() {
        assert_eq!(shortened("short"), "short");
        let long = format!("{}ä and more", "x".repeat(LONGEST - 1));
        let kept = shortened(&long);
        assert_eq!(
            kept.strip_prefix(&long[..LONGEST - 1]),
            Some("... (11 bytes more are left out)")
        );
    }
}
