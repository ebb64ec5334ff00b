//! The calls on fields.

use titin_array::{Ownership, Side, SourceArray, TargetArray};
use titin_wire::meta::Dtype;

use super::Instance;
use crate::Result;
use crate::field::{FieldId, Stamps};
use crate::port::PortId;
use crate::serial::Patience;

impl Instance {
    /// Declares that a port carries a field: arrays of these element types, all of one decomposition, that travel together. `side` says how
    /// they are spread over the ranks of this instance and what of them is coupled, and `parts` what of it this rank owns, if no
    /// rule says so. It does not wait for the other end.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a vector port, another number of ranks than the instance has, or sides that are not the same on all ranks.
    #[allow(clippy::needless_pass_by_value)]
    pub fn field(
        &self,
        port: PortId,
        side: Side,
        parts: Ownership,
        dtypes: &[Dtype],
    ) -> Result<FieldId> {
        self.fields.declare(port, &side, &parts, dtypes)
    }

    /// Sends the field: of each of its arrays what this rank owns, to those that the description couples at this step. Returns when
    /// the caller may change the arrays; waits until the other end has said how its own are spread, and while a buffer is full.
    /// For a receiver that pulls a version is kept.
    ///
    /// # Errors
    /// As [`Instance::send`]; [`Kind::TypeMismatch`] if the two ends do not fit each other.
    pub fn send_field(
        &self,
        field: FieldId,
        arrays: &[SourceArray<'_>],
        timestamp: f64,
        next_timestamp: Option<f64>,
    ) -> Result<()> {
        self.fields.send(field, arrays, (timestamp, next_timestamp))
    }

    /// Receives the field into these arrays: what this rank owns of it, and nothing else of them is written. Waits until it is there.
    /// Where the patience ends when some of it has come, the call is to be made again with the same arrays. The patience of a program
    /// of several ranks is for the announcement by rank 0 of the sender alone, on which all ranks agree.
    /// A field that is pulled is that of the version at or before the simulated time `at`, which is known once the sender has passed
    /// that time, or the latest one. `None` if the description couples nothing at this step.
    ///
    /// # Errors
    /// As [`Instance::receive`]; [`Kind::TypeMismatch`] if the two ends do not fit each other; [`Kind::Evicted`] for a version that
    /// is not kept; [`Kind::Usage`] for a time with a field that is not pulled.
    pub fn receive_field(
        &self,
        field: FieldId,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Option<Stamps>> {
        self.fields.receive(field, arrays, at, patience)
    }

    /// Says that the field is sent no more, and gives up the versions that are kept: for its receivers the port is closed behind what
    /// was pushed. It may be said again.
    ///
    /// # Errors
    /// [`Kind::Usage`] for one that receives; as [`Instance::send`].
    pub fn withdraw_field(&self, field: FieldId) -> Result<()> {
        self.fields.withdraw(field)
    }
}
