//! How much each instance has sent, also where the instance could not tell.

use titin_wire::control::Profile;

use super::Manager;
use super::member::Membership;
use crate::plan::{ConduitId, InstanceId};

impl Manager {
    /// Keeps what an instance has received from instances that are not done. A sender that is ended by
    /// a signal tells nothing any more, so its receivers know best.
    pub(super) fn note_received(&mut self, id: InstanceId, profile: &Profile) {
        for told in profile.conduits.iter().filter(|told| !told.sends) {
            // Conduits between ranks are not those of the plan.
            let Some(conduit) = self.plan.conduits.get(told.conduit as usize) else {
                continue;
            };
            let sender = conduit.from.instance;
            let is_done = matches!(self.members[sender].membership, Membership::Done);
            if conduit.to.instance == id && !is_done && told.messages > 0 {
                let counts = (told.messages, told.bytes);
                self.received.insert(ConduitId(told.conduit), counts);
            }
        }
    }

    /// The messages and bytes that an instance has sent, as far as is known: by its own last report, or
    /// by the reports of its receivers if these have more.
    pub fn traffic(&self, id: InstanceId) -> (u64, u64) {
        let own = self.members[id].progress.as_ref();
        let own = own.map_or((0, 0), |progress| (progress.messages, progress.bytes));
        let sends = self.conduit_ends[id].iter().filter(|(_, sends)| *sends);
        let received = sends.filter_map(|(conduit, _)| self.received.get(conduit));
        let received = received.fold((0, 0), |(messages, bytes): (u64, u64), (more, much)| {
            (messages.saturating_add(*more), bytes.saturating_add(*much))
        });
        own.max(received)
    }
}
