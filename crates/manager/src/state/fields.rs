//! Conduits that carry fields: each end declares how its array is distributed, and hears the
//! declaration of the other end.
//!
//! The manager does not look into the declarations. The manager numbers the conduits from each rank
//! of the sender to each rank of the receiver.

use titin_wire::control::{FieldEnd, ToProgram};
use titin_wire::ranks;

use super::Manager;
use super::fault::Fault;
use crate::plan::{ConduitId, InstanceId, PlannedEnd};

/// The declarations of a field at the two ends of a conduit.
#[derive(Debug, Default)]
pub(super) struct FieldEnds {
    sender: Option<FieldEnd>,
    receiver: Option<FieldEnd>,
}

impl FieldEnds {
    /// Sender and receiver, after both have declared the field.
    pub(super) fn both(&self) -> Option<[&FieldEnd; 2]> {
        Some([self.sender.as_ref()?, self.receiver.as_ref()?])
    }

    fn declare(&mut self, sends: bool, field: FieldEnd) {
        let end = match sends {
            true => &mut self.sender,
            false => &mut self.receiver,
        };
        *end = Some(field);
    }
}

impl Manager {
    /// Conduits with fields, with the declarations of the sender and the receiver.
    pub fn field_couplings(&self) -> impl Iterator<Item = (ConduitId, [FieldEnd; 2])> {
        let couplings = self.fields.iter();
        couplings.filter_map(|(&conduit, ends)| Some((conduit, ends.both()?.map(FieldEnd::clone))))
    }

    /// An instance declares a field on a port.
    pub(super) fn declare_field(&mut self, id: InstanceId, port: &str, field: FieldEnd) {
        let is_of_port = |&end: &(ConduitId, bool)| self.end_of(end).port == port;
        let ends = self.conduit_ends[id].iter().copied();
        for (conduit, sends) in ends.filter(is_of_port).collect::<Vec<_>>() {
            let known = self.fields.entry(conduit).or_default();
            // A program that declares a field again gets no further numbers.
            if known.both().is_none() {
                known.declare(sends, field.clone());
                self.announce_field(conduit);
            }
        }
    }

    /// Tells each end the declaration of the other end, after both have declared the field.
    fn announce_field(&mut self, conduit: ConduitId) {
        let Some([sender, receiver]) = self.fields.get(&conduit).and_then(FieldEnds::both) else {
            return;
        };
        let (sender, receiver) = (sender.clone(), receiver.clone());
        let [from, to] = self.both_ends((conduit, true)).map(|end| end.instance);
        let [senders, receivers] = [from, to].map(|id| self.members[id].ranks.len() as u32 + 1);
        let pairs = ranks::pair_count(senders, receivers);
        let Some(count) = pairs.filter(|count| u32::MAX - self.next_conduit >= *count) else {
            let text = self.too_many_pairs(conduit, senders, receivers);
            return self.record_fault(from, Fault::Reported(text));
        };
        let first = self.reserve_conduits(count);
        for (id, ranks, field) in [(from, receivers, receiver), (to, senders, sender)] {
            let message = ToProgram::Field {
                instance: self.name(id).to_owned(),
                conduit,
                ranks,
                first,
                field,
            };
            self.tell_instance(id, message);
        }
    }

    fn too_many_pairs(&self, conduit: ConduitId, senders: u32, receivers: u32) -> String {
        let written = |end: &PlannedEnd| format!("{}.{end}", self.name(end.instance));
        let [from_port, to_port] = self.both_ends((conduit, true)).map(written);
        format!(
            "its field on {from_port} goes from {senders} ranks to {receivers} of {to_port}: with so many pairs a run has more \
             than the 2^32 that it may have: couple fewer fields, or from fewer ranks"
        )
    }
}
