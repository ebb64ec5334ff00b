//! Conduits that carry fields: each end says how its array is spread, and hears what the other has said.
//!
//! The manager never looks into that. It numbers the conduits between the ranks of the two, which go from rank to rank.

use titin_wire::control::{FieldEnd, ToProgram};
use titin_wire::ranks;

use super::{Fault, Manager};
use crate::plan::{ConduitId, End, InstanceId};

/// What the two ends of a conduit have said.
#[derive(Debug, Default)]
pub(super) struct Ends {
    sender: Option<FieldEnd>,
    receiver: Option<FieldEnd>,
}

impl Ends {
    /// Both of them, once both have declared it.
    pub(super) fn both(&self) -> Option<[&FieldEnd; 2]> {
        Some([self.sender.as_ref()?, self.receiver.as_ref()?])
    }
}

impl Manager {
    /// Conduits that carry fields, with what the sender and the receiver have said.
    pub fn coupled(&self) -> impl Iterator<Item = (ConduitId, [FieldEnd; 2])> {
        let both = |ends: &Ends| ends.both().map(|both| both.map(FieldEnd::clone));
        self.fields
            .iter()
            .filter_map(move |(&conduit, ends)| Some((conduit, both(ends)?)))
    }

    /// An instance says that a port of its own carries a field.
    pub(super) fn declared_field(&mut self, id: InstanceId, port: &str, field: FieldEnd) {
        let at = |&end: &(ConduitId, bool)| self.near(end).port == port;
        let ends: Vec<(ConduitId, bool)> = self.ends[id].iter().copied().filter(at).collect();
        for (conduit, sends) in ends {
            let known = self.fields.entry(conduit).or_default();
            if known.both().is_some() {
                // Once is enough; a program that says it again gets no further numbers.
                continue;
            }
            *(if sends {
                &mut known.sender
            } else {
                &mut known.receiver
            }) = Some(field.clone());
            self.join_field(conduit);
        }
    }

    /// Tells both ends of the other one, once both have declared it.
    fn join_field(&mut self, conduit: ConduitId) {
        let Some([sender, receiver]) = self.fields.get(&conduit).and_then(Ends::both) else {
            return;
        };
        let (sender, receiver) = (sender.clone(), receiver.clone());
        let (from, to) = (self.near((conduit, true)), self.near((conduit, false)));
        let named = |end: &End| format!("{}.{end}", self.name(end.instance));
        let (from_port, to_port) = (named(from), named(to));
        let (from, to) = (from.instance, to.instance);
        let [senders, receivers] = [from, to].map(|id| self.members[id].ranks.len() as u32 + 1);
        let count = ranks::pair_count(senders, receivers)
            .filter(|count| u32::MAX - self.next_conduit >= *count);
        let Some(count) = count else {
            let text = format!(
                "its field on {from_port} goes from {senders} ranks to {receivers} of {to_port}: with so many pairs a run has more \
                 than the 2^32 that it may have: couple fewer fields, or from fewer ranks"
            );
            return self.fault(from, Fault::Said(text));
        };
        let first = self.reserve(count);
        for (id, ranks, field) in [(from, receivers, receiver), (to, senders, sender)] {
            let Some(link) = self.members[id].joined().map(|joined| joined.link) else {
                continue;
            };
            let instance = self.name(id).to_owned();
            self.tell(
                link,
                ToProgram::Field {
                    instance,
                    conduit,
                    ranks,
                    first,
                    field,
                },
            );
        }
    }
}
