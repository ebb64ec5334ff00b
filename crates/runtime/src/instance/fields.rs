//! The calls on fields.

use titin_array::{Ownership, Side, SourceArray, TargetArray};
use titin_wire::meta::Dtype;

use super::Instance;
use crate::Result;
use crate::field::{FieldId, Stamps};
use crate::port::PortId;
use crate::serial::Patience;

impl Instance {
    /// Declares that a port carries a field: arrays of the given element types, all of one
    /// decomposition, that travel together. `side` says how the arrays are spread over the ranks of
    /// this instance, and which region is coupled. `parts` lists the parts of this rank, unless a
    /// rule of the decomposition gives the parts. Does not wait for the other end.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a vector port, another number of ranks than the instance has, or sides
    /// that are not the same on all ranks.
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

    /// Sends the parts of this rank of the arrays of a field, to the receivers that the description
    /// couples at this step. Returns when the caller may change the arrays. Waits until the other
    /// ends have declared the field, and while a buffer is full. For a receiver that pulls the
    /// sender keeps a version.
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

    /// Receives a field: writes the parts of this rank into the given arrays, and nothing else.
    /// Waits until the field is there. If the patience ends when some of the field has come, the
    /// program must make the call again with the same arrays. In a program of several ranks the
    /// patience is for the header at rank 0 alone, so that all ranks agree. Of a pulled field the
    /// call gets the version at or before the simulated time `at`. The version is known once the
    /// sender has passed the time `at`. Without a time the call gets the latest version. `None` if
    /// the description couples nothing at this step.
    ///
    /// # Errors
    /// As [`Instance::receive`]; [`Kind::TypeMismatch`] if the two ends do not fit each other;
    /// [`Kind::Evicted`] for a version that the sender does not keep; [`Kind::Usage`] for a time
    /// with a field that is not pulled.
    pub fn receive_field(
        &self,
        field: FieldId,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Option<Stamps>> {
        self.fields.receive(field, arrays, at, patience)
    }

    /// Says that the program sends the field no more, and gives up the kept versions. Receivers get
    /// the pushed fields, and then find the port closed. The call may be made again.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a field that receives; as [`Instance::send`].
    pub fn withdraw_field(&self, field: FieldId) -> Result<()> {
        self.fields.withdraw(field)
    }
}
