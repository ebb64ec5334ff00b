//! Connections that have not proved themselves: few at a time, from any address.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::warn;

/// The most connections without a proof.
const MOST: usize = 512;

/// The time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// How many lines in the log an address may cause one after the other, and the time between two further ones.
const MOST_LINES: u32 = 30;
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// The most addresses whose lines are counted by themselves. All further ones count as one.
const MOST_ADDRESSES: usize = 1024;
const FURTHER_ADDRESSES: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

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
    /// The refusals of each address.
    refusals: HashMap<IpAddr, LoggedRefusals>,
}

/// What the log has told of an address.
struct LoggedRefusals {
    /// How many lines, and when the last.
    lines: u32,
    last: Instant,
    /// The number of refusals since.
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
    /// Notes a refusal. If it is to be logged, returns the number of refusals of the address that were not.
    /// The reason does not count: a stranger could choose another one each time.
    fn note_refusal(&mut self, from: IpAddr, now: Instant) -> Option<usize> {
        let mut address = network_of(from);
        if self.refusals.len() >= MOST_ADDRESSES && !self.refusals.contains_key(&address) {
            self.refusals
                .retain(|_, refusals| now - refusals.last < LINE_INTERVAL);
            if self.refusals.len() >= MOST_ADDRESSES {
                address = FURTHER_ADDRESSES;
            }
        }
        let refusals = self.refusals.entry(address).or_insert(LoggedRefusals {
            lines: 0,
            last: now,
            untold: 0,
        });
        if refusals.lines >= MOST_LINES && now - refusals.last < LINE_INTERVAL {
            refusals.untold += 1;
            return None;
        }
        refusals.lines += 1;
        refusals.last = now;
        Some(std::mem::take(&mut refusals.untold))
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

    /// Logs that the connection is refused, unless the log has said much of the address a short time ago: a
    /// relay that is trusted no more dials again and again.
    pub(crate) fn log_refusal(&self, why: &str) {
        let mut table = self.strangers.lock();
        if let Some(untold) = table.note_refusal(self.from.ip(), Instant::now()) {
            let (from, before) = (self.from.to_string(), (untold > 0).then_some(untold));
            warn!(from, why, before, "refused");
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
    fn of_an_address_that_comes_again_and_again_the_log_tells_once_a_minute() {
        let mut table = StrangerTable::default();
        let (first, second) = (from([10, 0, 0, 1]).ip(), from([10, 0, 0, 2]).ip());
        let now = Instant::now();
        for _ in 0..MOST_LINES {
            assert_eq!(table.note_refusal(first, now), Some(0));
        }
        assert_eq!(table.note_refusal(first, now), None);
        assert_eq!(table.note_refusal(second, now), Some(0));
        let later = now + LINE_INTERVAL;
        assert_eq!(table.note_refusal(first, later), Some(1));
        assert_eq!(table.note_refusal(first, later), None);
        assert_eq!(table.note_refusal(second, later), Some(0));
    }

    #[test]
    fn many_addresses_cause_few_lines() {
        let mut table = StrangerTable::default();
        let now = Instant::now();
        let mut lines = |now| {
            let addresses = (1..100_000_u32).map(|at| IpAddr::from(at.to_be_bytes()));
            addresses
                .filter(|&address| table.note_refusal(address, now).is_some())
                .count()
        };
        assert_eq!(lines(now), MOST_ADDRESSES + MOST_LINES as usize);
        assert!(lines(now + LINE_INTERVAL) <= MOST_ADDRESSES + MOST_LINES as usize);
        assert_eq!(table.refusals.len(), MOST_ADDRESSES + 1);
        // A host has all addresses of an IPv6 network.
        let mut table = StrangerTable::default();
        let addresses = (0..100_u128).map(|at| Ipv6Addr::from_bits(1 << 125 | at).into());
        let lines = addresses.filter(|&address| table.note_refusal(address, now).is_some());
        assert_eq!(lines.count(), MOST_LINES as usize);
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
