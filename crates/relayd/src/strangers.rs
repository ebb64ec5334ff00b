//! Connections that have not proved themselves: few at a time, from any address.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::warn;

use crate::log_limit::LogLimit;

/// The most connections without a proof.
const MOST: usize = 512;

/// The time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of a listener that have not proved themselves.
pub(crate) struct Strangers(Mutex<StrangerTable>);

struct StrangerTable {
    next: u64,
    /// How many connections were closed for others since the last line of the log, and when that was.
    closed: usize,
    logged: Option<Instant>,
    /// The oldest first.
    waiting: VecDeque<Stranger>,
    /// The lines of the log about refusals, by the address or network.
    refusals: LogLimit<IpAddr>,
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

impl Default for Strangers {
    fn default() -> Self {
        Strangers(Mutex::new(StrangerTable {
            next: 0,
            closed: 0,
            logged: None,
            waiting: VecDeque::new(),
            refusals: LogLimit::of_refusals(),
        }))
    }
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
        let address = network_of(self.from.ip());
        if let Some(left_out) = table.refusals.note(address, Instant::now()) {
            let (from, before) = (self.from.to_string(), (left_out > 0).then_some(left_out));
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
    fn a_host_has_all_addresses_of_a_network() {
        let address = |at: u128| IpAddr::V6(Ipv6Addr::from_bits(1 << 125 | at));
        assert_eq!(network_of(address(1)), network_of(address(u64::MAX.into())));
        assert_ne!(network_of(address(1)), network_of(address(1 << 64)));
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
