//! Connections that have not proved themselves: few at a time, from any address.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::warn;

use crate::server::hash;

/// The most connections without a proof.
const MOST: usize = 512;

/// The time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// How many lines in the log say the same of an address one after the other, and the time between two further ones.
const REPEATS: u32 = 10;
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// The most refusals that are kept so that the log does not repeat them.
const MOST_REFUSALS: usize = 1024;

/// The connections of a listener that have not proved themselves.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<StrangerTable>);

#[derive(Default)]
struct StrangerTable {
    next: u64,
    /// How many connections were closed for others since the last line of the log, and when that was.
    closed: usize,
    logged: Option<Instant>,
    /// The oldest first.
    waiting: VecDeque<Stranger>,
    /// What the log has told of each address, by the reason. Only the hash of the reason is kept: strangers may
    /// choose long ones.
    refusals: HashMap<(IpAddr, u64), LoggedRefusal>,
}

/// What the log has told of a refusal.
struct LoggedRefusal {
    /// How often, and when last.
    told: u32,
    last: Instant,
    /// How often the refusal came since.
    untold: usize,
}

struct Stranger {
    number: u64,
    address: IpAddr,
    /// `None` until the task is known.
    task: Option<AbortHandle>,
}

/// The place of a connection without a proof. Dropped once the connection has proved itself, or is
/// gone.
pub(crate) struct StrangerPlace {
    strangers: Arc<Strangers>,
    number: u64,
    from: SocketAddr,
}

impl Strangers {
    /// Takes a place for a connection. If there are too many, the oldest connection from the address
    /// with the most of them is closed: so an address cannot take the places of others.
    pub(crate) fn enter(self: &Arc<Self>, from: SocketAddr) -> StrangerPlace {
        let address = network_of(from.ip());
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        table.waiting.push_back(Stranger {
            number,
            address,
            task: None,
        });
        if table.waiting.len() > MOST {
            table.close_one();
        }
        drop(table);
        StrangerPlace {
            strangers: self.clone(),
            number,
            from,
        }
    }

    /// Notes the task of a connection, which ends when the place is wanted for another one.
    pub(crate) fn note_task(&self, number: u64, task: AbortHandle) {
        let mut table = self.lock();
        let mut waiting = table.waiting.iter_mut();
        // A connection that has proved itself, or was closed before, is not in the table.
        if let Some(stranger) = waiting.find(|stranger| stranger.number == number) {
            stranger.task = Some(task);
        }
    }

    fn lock(&self) -> MutexGuard<'_, StrangerTable> {
        self.0.lock().expect("never poisoned")
    }
}

/// The address, or the network of an IPv6 address: a host there has all addresses of a /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            Ipv6Addr::from_bits(network).to_canonical()
        }
    }
}

impl StrangerTable {
    /// Notes a refusal. If it is to be logged, returns how often it came since the log told it last.
    fn note_refusal(&mut self, from: IpAddr, why: &str, now: Instant) -> Option<usize> {
        if self.refusals.len() >= MOST_REFUSALS {
            self.refusals.clear();
        }
        let refusal = self.refusals.entry((from, hash(why)));
        let refusal = refusal.or_insert(LoggedRefusal {
            told: 0,
            last: now,
            untold: 0,
        });
        if refusal.told >= REPEATS && now - refusal.last < REPEAT_INTERVAL {
            refusal.untold += 1;
            return None;
        }
        refusal.told += 1;
        refusal.last = now;
        Some(std::mem::take(&mut refusal.untold))
    }

    /// Logs how many connections were closed, once a second at most.
    fn log(&mut self) {
        if self
            .logged
            .is_some_and(|then| then.elapsed() < LOG_INTERVAL)
        {
            return;
        }
        warn!(
            closed = self.closed,
            "refused: too many connections without a proof"
        );
        self.closed = 0;
        self.logged = Some(Instant::now());
    }

    fn close_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for stranger in &self.waiting {
            *counts.entry(stranger.address).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        let is_surplus = |stranger: &Stranger| counts[&stranger.address] == most;
        if let Some(place) = self.waiting.iter().position(is_surplus)
            && let Some(closed) = self.waiting.remove(place)
        {
            closed.task.inspect(AbortHandle::abort);
            self.closed += 1;
            self.log();
        }
    }
}

impl StrangerPlace {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Logs that the connection is refused, unless the log has said the same of the address many times and a
    /// short time ago: a relay that is trusted no more dials again and again.
    pub(crate) fn log_refusal(&self, why: &str) {
        let mut table = self.strangers.lock();
        if let Some(repeated) = table.note_refusal(self.from.ip(), why, Instant::now()) {
            let (from, repeated) = (self.from.to_string(), (repeated > 0).then_some(repeated));
            warn!(from, why, repeated, "refused");
        }
    }
}

impl Drop for StrangerPlace {
    fn drop(&mut self) {
        let mut table = self.strangers.lock();
        table
            .waiting
            .retain(|stranger| stranger.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: [u8; 4]) -> SocketAddr {
        (address, 4711).into()
    }

    #[test]
    fn a_refusal_that_comes_again_and_again_is_logged_once_a_minute() {
        let mut table = StrangerTable::default();
        let (first, second) = (from([10, 0, 0, 1]).ip(), from([10, 0, 0, 2]).ip());
        let now = Instant::now();
        for _ in 0..REPEATS {
            assert_eq!(table.note_refusal(first, "no", now), Some(0));
        }
        assert_eq!(table.note_refusal(first, "no", now), None);
        assert_eq!(table.note_refusal(first, "never", now), Some(0));
        assert_eq!(table.note_refusal(second, "no", now), Some(0));
        let later = now + REPEAT_INTERVAL;
        assert_eq!(table.note_refusal(first, "no", later), Some(1));
        assert_eq!(table.note_refusal(first, "no", later), None);
        assert_eq!(table.note_refusal(second, "no", later), Some(0));
    }

    #[test]
    fn an_address_with_many_connections_loses_its_own() {
        let strangers = Arc::new(Strangers::default());
        let (crowd, single) = (from([10, 0, 0, 1]), from([10, 0, 0, 2]));
        let _first = strangers.enter(single);
        let places: Vec<_> = (0..2 * MOST).map(|_| strangers.enter(crowd)).collect();
        let table = strangers.lock();
        assert_eq!(table.waiting.len(), MOST);
        assert_eq!(table.waiting[0].address, single.ip());
        assert!(table.waiting[1].number > places[MOST - 1].number);
        drop(table);
        drop(places);
        assert_eq!(strangers.lock().waiting.len(), 1);
    }
}
