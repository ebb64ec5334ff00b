//! Conduits that carry fields: each end says how its array is spread, and hears what the other has said.
//!
//! The manager never looks into that. It numbers the conduits between the ranks of the two, which go from rank to rank.

use titin_wire::control::{FieldEnd, ToProgram};
use titin_wire::ranks;

use super::{Fault, Manager};
use crate::plan::{ConduitId, InstanceId};

/// What the two ends of a conduit have said.
#[derive(Debug, Default)]
pub(super) struct Ends {
    sender: Option<FieldEnd>,
    receiver: Option<FieldEnd>,
}

impl Ends {
    /// Whether both ends have declared it.
    pub(super) fn are_both(&self) -> bool {
        self.sender.is_some() && self.receiver.is_some()
    }
}

impl Manager {
    /// Conduits that carry fields, with what the sender and the receiver have said of their arrays.
    pub fn coupled(&self) -> impl Iterator<Item = (ConduitId, &[FieldEnd; 2])> {
        self.coupled.iter().map(|(&conduit, ends)| (conduit, ends))
    }

    /// An instance says that a port of its own carries a field.
    pub(super) fn declared_field(&mut self, id: InstanceId, port: &str, field: FieldEnd) {
        let at = |&end: &(ConduitId, bool)| self.near(end).port == port;
        let ends: Vec<(ConduitId, bool)> = self.ends[id].iter().copied().filter(at).collect();
        for (conduit, sends) in ends {
            let known = self.fields.entry(conduit).or_default();
            *(if sends { &mut known.sender } else { &mut known.receiver }) = Some(field.clone());
            if known.are_both() {
                self.join_field(conduit);
            }
        }
    }

    /// Tells both ends of the other one.
    fn join_field(&mut self, conduit: ConduitId) {
        let Some(Ends { sender: Some(sender), receiver: Some(receiver) }) = self.fields.get(&conduit) else {
            return;
        };
        let (sender, receiver) = (sender.clone(), receiver.clone());
        let (from, to) = (self.near((conduit, true)).instance, self.near((conduit, false)).instance);
        let [senders, receivers] = [from, to].map(|id| self.members[id].ranks.len() as u32 + 1);
        let count =
            ranks::pair_count(senders, receivers).filter(|count| u32::MAX - self.next_conduit >= *count);
        let Some(count) = count else {
            let text = format!(
                "a field between {senders} and {receivers} ranks: there are no numbers left for so many pairs"
            );
            return self.fault(from, Fault::Refused(text));
        };
        self.coupled.insert(conduit, [sender.clone(), receiver.clone()]);
        let first = self.reserve(count);
        for (id, ranks, field) in [(from, receivers, receiver), (to, senders, sender)] {
            let Some(link) = self.members[id].joined().map(|joined| joined.link) else { continue };
            let instance = self.name(id).to_owned();
            self.tell(link, ToProgram::Field { instance, conduit, ranks, first, field });
        }
    }
}
