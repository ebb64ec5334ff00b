//! The manager's end of its agents.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use titin_transport::{Link, LinkId};
use titin_wire::control;

use super::AgentOrder;
use super::files::{FilePiece, KnownFiles, MOST_IN_FLIGHT, TreePieces};
use crate::host::HostId;
use crate::stage::MayContinue;

/// How often a sender that waits for room checks whether the run has failed.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The agents of a run. Several threads give orders. Each order is one message.
pub(crate) struct Agents {
    /// The agent of each further host, the host with the id 1 first.
    connected: Mutex<Vec<Option<ConnectedAgent>>>,
    /// Rung when an agent has acknowledged bytes of files, or is gone.
    room: Condvar,
}

/// An agent that takes part in the run.
struct ConnectedAgent {
    link: Arc<Link>,
    /// Whether the host has the run directory.
    shares_files: bool,
    /// Bytes of files that the agent has not acknowledged.
    in_flight: u64,
    /// When anything last came from the agent.
    last_heard: Instant,
}

impl Agents {
    /// The agents of `count` further hosts, which have none yet.
    pub(crate) fn expected(count: usize) -> Self {
        Agents {
            connected: Mutex::new((0..count).map(|_| None).collect()),
            room: Condvar::new(),
        }
    }

    /// Gives an order to the agent of a host. Without an agent nothing happens: the manager has heard
    /// of the loss, or soon hears.
    pub(crate) fn order(&self, host: HostId, order: &AgentOrder) {
        // Encoded before the lock is taken, so that a fault of one thread is not one of all.
        let body = control::encode(order);
        if let Some(Some(agent)) = self.lock().get(index(host)) {
            agent.link.tell(&body);
        }
    }

    /// Gives an order to all agents.
    pub(crate) fn order_all(&self, order: &AgentOrder) {
        for agent in self.lock().iter().flatten() {
            tell(&agent.link, order);
        }
    }

    /// The hosts with an agent.
    pub(crate) fn hosts(&self) -> Vec<HostId> {
        let connected = self.lock();
        let hosts = (0..connected.len()).filter(|&at| connected[at].is_some());
        hosts.map(HostId::further).collect()
    }

    /// The host of the agent at the other end of a link.
    pub(crate) fn host_of(&self, link: LinkId) -> Option<HostId> {
        let connected = self.lock();
        let mut agents = connected.iter();
        let is_meant = |agent: &Option<ConnectedAgent>| {
            let agent = agent.as_ref();
            agent.is_some_and(|agent| agent.link.id() == link)
        };
        agents.position(is_meant).map(HostId::further)
    }

    /// Notes that something has come from the agent at the other end of a link. Returns the host, and how
    /// long nothing had come.
    pub(crate) fn heard(&self, link: LinkId) -> Option<(HostId, Duration)> {
        let host = self.host_of(link)?;
        let silence = self.silence(host);
        if let Some(Some(agent)) = self.lock().get_mut(index(host)) {
            agent.last_heard = Instant::now();
        }
        Some((host, silence))
    }

    /// How long nothing has come from the agent of a host.
    pub(crate) fn silence(&self, host: HostId) -> Duration {
        let connected = self.lock();
        let agent = connected.get(index(host)).and_then(Option::as_ref);
        agent.map_or(Duration::ZERO, |agent| agent.last_heard.elapsed())
    }

    /// Takes in the agent of a host.
    pub(crate) fn attach(&self, host: HostId, link: Arc<Link>, shares_files: bool) {
        self.lock()[index(host)] = Some(ConnectedAgent {
            link,
            shares_files,
            in_flight: 0,
            last_heard: Instant::now(),
        });
    }

    /// Lets go of the agent of a host, and returns the link.
    pub(crate) fn detach(&self, host: HostId) -> Option<Arc<Link>> {
        let agent = self.lock().get_mut(index(host))?.take();
        self.room.notify_all();
        Some(agent?.link)
    }

    /// Sends a folder below `root`, which is the folder `instances`, to a host without the run directory.
    /// Waits while too many bytes are on the way. False if `may_continue` returns false, or the agent is
    /// gone.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn send_folder(
        &self,
        host: HostId,
        root: &Path,
        folder: &Path,
        may_continue: MayContinue<'_>,
    ) -> io::Result<bool> {
        if self.shares_files(host) {
            return Ok(true);
        }
        let known = KnownFiles::default();
        let mut pieces = TreePieces::of(root, folder);
        while let Some(piece) = pieces.next(&known) {
            if let Some(piece) = piece?
                && !self.send_piece(host, piece, may_continue)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn shares_files(&self, host: HostId) -> bool {
        let connected = self.lock();
        let agent = connected.get(index(host)).and_then(Option::as_ref);
        agent.is_none_or(|agent| agent.shares_files)
    }

    /// Sends a piece once there is room. False if `may_continue` returns false, or the agent is gone.
    fn send_piece(&self, host: HostId, piece: FilePiece, may_continue: MayContinue<'_>) -> bool {
        let mut connected = self.lock();
        loop {
            let Some(agent) = &mut connected[index(host)] else {
                return false;
            };
            if agent.in_flight < MOST_IN_FLIGHT {
                agent.in_flight += piece.size();
                tell(&agent.link, &AgentOrder::File(piece));
                return true;
            }
            let waited = self.room.wait_timeout(connected, CHECK_INTERVAL);
            connected = waited.expect("never poisoned").0;
            if !may_continue() {
                return false;
            }
        }
    }

    /// The agent of a host has acknowledged bytes of files.
    pub(crate) fn acknowledged(&self, host: HostId, size: u64) {
        if let Some(Some(agent)) = self.lock().get_mut(index(host)) {
            agent.in_flight = agent.in_flight.saturating_sub(size);
        }
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<ConnectedAgent>>> {
        self.connected.lock().expect("never poisoned")
    }
}

/// The place of a further host in the list. No list is as long as the place of the manager's host.
fn index(host: HostId) -> usize {
    host.place().unwrap_or(usize::MAX)
}

/// Sends an order by a link.
pub(crate) fn tell(link: &Link, order: &AgentOrder) {
    link.tell(&control::encode(order));
}
