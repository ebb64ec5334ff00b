//! What the manager hears of an instance: waits and counts, log records, progress, the profile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use titin_transport::Window;
use titin_wire::ConduitId;
use titin_wire::control::{ConduitProfile, Event, Profile, Progress, ToManager, WaitOn};

use super::Inner;
use crate::field::Line;
use crate::port::{End, Inlet, Outlet, Port};
use crate::profile::share;
use crate::ranks::is_between_ranks;

impl Inner {
    /// What the manager asks for to be sure of a deadlock: the wait that lasts, and messages sent or taken.
    pub(crate) fn counts(&self, conduits: &[ConduitId]) -> (Option<u64>, Vec<(ConduitId, u64)>) {
        let count = |conduit: &ConduitId| {
            let sent = self.outlet_of(*conduit).map(|outlet| outlet.window.sent());
            let taken = || {
                let found = self
                    .inlets()
                    .find(|(_, inlet)| inlet.end.conduit == *conduit);
                found.map(|(_, inlet)| inlet.seen())
            };
            // A question on its way is as good as a message on its way.
            let asked = if self.is_pulled(*conduit) {
                self.process.questions(&self.name, *conduit)
            } else {
                0
            };
            sent.or_else(taken)
                .map(|count| (*conduit, count.wrapping_add(asked << 32)))
        };
        let counts = conduits.iter().filter_map(count).collect();
        // Behind the counts: if the wait stands still, nothing that it goes on for is among them.
        (*self.waiting.lock().expect("never poisoned"), counts)
    }

    /// What a wait for this end looks like to the manager.
    pub(crate) fn wait_on(
        &self,
        end: &End,
        window: Option<&Window>,
        inlet: Option<&Inlet>,
    ) -> WaitOn {
        let (ahead, ahead_bytes) = window.map_or((0, 0), Window::ahead);
        WaitOn {
            conduit: end.conduit,
            port: end.label.to_string(),
            peer: end.peer.to_string(),
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
        }
    }

    pub(crate) fn log(&self, level: u8, text: &str) {
        if level < self.habits.log_level {
            return;
        }
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        self.tell(&ToManager::Log {
            instance: self.name.clone(),
            level,
            time,
            simulated: self.simulated(),
            text: shortened(&self.as_rank(text)),
        });
    }

    /// What a rank of a parallel program has to say.
    pub(crate) fn as_rank(&self, text: &str) -> String {
        self.ranks.map_or_else(
            || text.to_owned(),
            |ranks| format!("rank {}: {text}", ranks.rank),
        )
    }

    pub(super) fn simulated(&self) -> Option<f64> {
        Some(f64::from_bits(self.simulated.load(Ordering::Relaxed))).filter(|time| !time.is_nan())
    }

    /// Keeps the simulated time for those who look.
    pub(crate) fn at(&self, timestamp: f64) {
        self.simulated.store(timestamp.to_bits(), Ordering::Relaxed);
    }

    /// Reports simulated time and traffic, if they have changed.
    pub(crate) fn report_progress(&self) {
        if !self.leads() {
            return;
        }
        let count = |counter: fn(&Outlet) -> &AtomicU64| -> u64 {
            let own = self
                .ports
                .iter()
                .filter(|port| !is_between_ranks(&port.name));
            own.flat_map(Port::every_outlet)
                .map(|outlet| counter(outlet).load(Ordering::Relaxed))
                .sum()
        };
        let messages = count(|outlet| &outlet.end.meter.messages);
        let pieces = |line: &Arc<Line>| -> u64 {
            line.port
                .every_outlet()
                .map(|outlet| outlet.end.meter.bytes.load(Ordering::Relaxed))
                .sum()
        };
        let bytes = count(|outlet| &outlet.end.meter.bytes)
            + self.all_lines().iter().map(pieces).sum::<u64>();
        let now = (self.simulated.load(Ordering::Relaxed), messages, bytes);
        if std::mem::replace(&mut *self.progress.lock().expect("never poisoned"), now) == now {
            return;
        }
        let simulated = self.simulated();
        self.tell(&ToManager::Progress(Progress {
            instance: self.name.clone(),
            simulated,
            messages,
            bytes,
            end: self.end,
        }));
    }

    /// Counts the time of a send without its waits; it stands for so many.
    pub(crate) fn sent_for(&self, time: Duration, times: u32) {
        let now = self.trace.now();
        let last = self.timed.swap(now, Ordering::Relaxed);
        let time = share(time, times, Duration::from_nanos(now.abs_diff(last)));
        self.sending
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn row(&self, event: Event) {
        if event.port.as_deref().is_some_and(is_between_ranks) {
            return;
        }
        if let Some(events) = self.trace.row(event) {
            self.tell(&ToManager::Profile(Profile {
                instance: self.name.clone(),
                events,
                ..Profile::default()
            }));
        }
    }

    /// Tells the manager where the time went, right before it hears that the instance leaves.
    pub(super) fn tell_profile(&self) {
        self.trace.live("DEREGISTER", self.trace.now());
        self.tell(&ToManager::Profile(self.profile()));
    }

    fn profile(&self) -> Profile {
        let detour = |end: &End| match end.meter.by_socket.load(Ordering::Relaxed) {
            0 => end
                .pinned
                .is_none()
                .then(|| self.process.detour(&end.peer))
                .flatten(),
            // Messages go by the socket beside shared memory: there was no more, or there was to be none.
            _ if self.process.exchange.is_switched_off() => Some(format!(
                "TITIN_SHARED_MEMORY=0 in the environment of {} switches shared memory off",
                self.name
            )),
            _ => end
                .meter
                .shortage()
                .map(|why| format!("no shared memory was left for them: {why}")),
        };
        let report = |end: &End, receives: bool| {
            let carrier = end.carrier.get();
            ConduitProfile {
                conduit: end.conduit.0,
                port: end.label.to_string(),
                sends: !receives,
                medium: carrier
                    .map_or("none", |carrier| carrier.medium().key())
                    .to_owned(),
                streams: carrier
                    .map(|carrier| carrier.streams() as u32)
                    .filter(|streams| *streams > 1),
                detour: detour(end),
                messages: end.meter.messages.load(Ordering::Relaxed),
                bytes: end.meter.bytes.load(Ordering::Relaxed),
                copied: end.meter.copied.load(Ordering::Relaxed),
                by_socket: end.meter.by_socket.load(Ordering::Relaxed),
                waiting: end.meter.waiting(),
            }
        };
        let mut conduits = Vec::new();
        let own = self
            .ports
            .iter()
            .filter(|port| !is_between_ranks(&port.name))
            .flat_map(Port::every_end);
        own.for_each(|(end, receives)| conduits.push(report(end, receives)));
        // Fields are counted as they are announced, with the bytes of the pieces, and the waits for them.
        for line in self.all_lines() {
            for (end, receives) in line.port.every_end() {
                let known = conduits
                    .iter_mut()
                    .find(|known| known.conduit == line.along.0 && known.sends != receives);
                let (Some(field), piece) = (known, report(end, receives)) else {
                    continue;
                };
                field.bytes += piece.bytes;
                field.copied += piece.copied;
                field.by_socket += piece.by_socket;
                field.waiting += piece.waiting;
                field.detour = field.detour.take().or(piece.detour);
            }
        }
        // Rank 0 of a parallel program joins and leaves for all.
        let mut events = if self.leads() {
            self.trace.take_life()
        } else {
            Vec::new()
        };
        events.extend(self.trace.take_rows());
        let sum = |sends: bool| -> f64 {
            conduits
                .iter()
                .filter(|c| c.sends == sends)
                .map(|c| c.waiting)
                .sum()
        };
        Profile {
            instance: self.name.clone(),
            start: self.trace.start(),
            stop: self.trace.now() as f64 * 1e-9,
            waiting: sum(false),
            sending: self.sending.load(Ordering::Relaxed) as f64 * 1e-9 + sum(true),
            blocked: sum(true),
            conduits,
            events,
            regions: self.trace.regions(),
        }
    }
}

/// The most bytes of a text that the manager is told: a control message has a limit, and whoever passes it is cut off.
const LONGEST: usize = 16 << 20;

/// A text as the manager is told it: what is too long loses its end, and says so.
pub(super) fn shortened(text: &str) -> String {
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
