//! The manager's end of its agents.

use std::sync::{Arc, Mutex, MutexGuard};

use titin_transport::{Link, LinkId};
use titin_wire::control;

use super::AgentOrder;
use crate::host::HostId;

/// The agents of a run. Several threads give orders. Each order is one message.
#[derive(Default)]
pub(crate) struct Agents {
    /// The link of each further host, the host with the id 1 first; `None` for a host without an
    /// agent.
    links: Mutex<Vec<Option<Arc<Link>>>>,
}

impl Agents {
    /// The agents of `count` further hosts, which have none yet.
    pub(crate) fn expected(count: usize) -> Self {
        Agents {
            links: Mutex::new(vec![None; count]),
        }
    }

    /// Gives an order to the agent of a host. Without an agent nothing happens: the manager has heard
    /// of the loss, or soon hears.
    pub(crate) fn order(&self, host: HostId, order: &AgentOrder) {
        let link = self.lock().get(index(host)).cloned().flatten();
        if let Some(link) = link {
            tell(&link, order);
        }
    }

    /// Gives an order to all agents.
    pub(crate) fn order_all(&self, order: &AgentOrder) {
        for link in self.lock().iter().flatten() {
            tell(link, order);
        }
    }

    /// The hosts with an agent.
    pub(crate) fn hosts(&self) -> Vec<HostId> {
        let links = self.lock();
        let hosts = (0..links.len()).filter(|&at| links[at].is_some());
        hosts.map(|at| HostId(at as u32 + 1)).collect()
    }

    /// The host of the agent at the other end of a link.
    pub(crate) fn host_of(&self, link: LinkId) -> Option<HostId> {
        let is_meant = |other: &Option<Arc<Link>>| other.as_ref().is_some_and(|o| o.id() == link);
        let at = self.lock().iter().position(is_meant)?;
        Some(HostId(at as u32 + 1))
    }

    /// Takes in the agent of a host.
    pub(crate) fn attach(&self, host: HostId, link: Arc<Link>) {
        self.lock()[index(host)] = Some(link);
    }

    /// Lets go of the agent of a host, and returns the link.
    pub(crate) fn detach(&self, host: HostId) -> Option<Arc<Link>> {
        self.lock().get_mut(index(host))?.take()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<Link>>>> {
        self.links.lock().expect("nobody panics meanwhile")
    }
}

/// The place of a further host in the list. The manager's own host has none.
fn index(host: HostId) -> usize {
    host.index().wrapping_sub(1)
}

/// Sends an order by a link.
pub(crate) fn tell(link: &Link, order: &AgentOrder) {
    link.tell(&control::encode(order));
}
