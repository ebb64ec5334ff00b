//! A field is sent: the header first, then the pieces of this rank.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::{Role, SourceArray};

use super::header::HEADER;
use super::link::FieldLink;
use super::pieces::PiecesSent;
use super::pull::Pull;
use super::{Field, FieldConduit, FieldId, FieldState, InstanceFields};
use crate::send_state::Timestamps;
use crate::{Error, Kind, Payload, Result};

/// A call that sends a field.
struct FieldSend<'a> {
    field: &'a Field,
    arrays: &'a [SourceArray<'a>],
    times: Timestamps,
    /// The step of the program. The description names the coupled steps.
    step: u64,
}

impl FieldSend<'_> {
    /// Whether the description couples the field by a conduit at this step.
    fn is_coupled(&self, conduit: &FieldConduit) -> bool {
        conduit.share(Role::Sender).steps.contain(self.step)
    }
}

impl InstanceFields {
    /// Sends a field. See [`crate::Instance::send_field`].
    pub(crate) fn send(
        &self,
        field: FieldId,
        arrays: &[SourceArray<'_>],
        times: Timestamps,
    ) -> Result<()> {
        self.serial.enter()?;
        let field = &*self.get(field);
        let mut state = field.enter()?;
        field.check(arrays.iter().map(|array| array.size))?;
        if field.withdrawn.load(Ordering::Relaxed) {
            let text = format!(
                "field on port '{}': it was withdrawn, and is sent no more",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let send = FieldSend {
            field,
            arrays,
            times,
            step: state.steps + 1,
        };
        let mut sent = self.send_header(&send, &mut state)?;
        if let Err(error) = self.send_pieces(&send, &mut state, &mut sent) {
            state.sending = error.is_unfinished().then_some((times.0, sent));
            return Err(error);
        }
        state.steps = send.step;
        self.complete_pulled(&send);
        Ok(())
    }

    /// Sends the header to receivers that do not pull, or goes on with an interrupted send. Returns
    /// how far the send has come.
    ///
    /// The header goes before the search for the other end: an end without a field there learns
    /// from the header that a field was sent.
    fn send_header(&self, send: &FieldSend<'_>, state: &mut FieldState) -> Result<PiecesSent> {
        let field = send.field;
        let is_same = |at: &f64| at.to_bits() == send.times.0.to_bits();
        if let Some((_, sent)) = state.sending.take_if(|(at, _)| is_same(at)) {
            return Ok(sent);
        }
        if state.sending.is_some() {
            let text = format!(
                "field on port '{}': a call at another time was interrupted, when some of it was sent: make that again first",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let without_header = field
            .conduits
            .iter()
            .filter(|conduit| !send.is_coupled(conduit) || conduit.is_pulled());
        let left_out: Vec<_> = without_header.map(|conduit| conduit.conduit).collect();
        let left_out = Some(left_out).filter(|left_out| !left_out.is_empty());
        let header = Payload::of_field(&HEADER);
        self.serial
            .send(field.port, None, &header, send.times, None, left_out)?;
        field.count.add_one();
        Ok(PiecesSent::default())
    }

    /// Sends the missing pieces, and keeps versions for receivers that pull.
    fn send_pieces(
        &self,
        send: &FieldSend<'_>,
        state: &mut FieldState,
        sent: &mut PiecesSent,
    ) -> Result<()> {
        let (field, arrays, times) = (send.field, send.arrays, send.times);
        let links = self.links(field, state, None)?;
        let coupled: Vec<(&FieldConduit, Option<&Arc<FieldLink>>)> = field
            .conduits
            .iter()
            .zip(links.iter().map(Option::as_ref))
            .filter(|(conduit, _)| send.is_coupled(conduit))
            .collect();
        let linked = || {
            coupled
                .iter()
                .filter_map(|(conduit, link)| Some((*conduit, (*link)?)))
        };
        let pieces = linked().flat_map(|(conduit, link)| {
            let count = match conduit.is_pulled() {
                true => 1,
                false => link.schedule.count(),
            };
            (0..count).map(move |turn| (conduit, link, link.partner(turn)))
        });
        for (conduit, link, to) in pieces.skip(sent.pieces) {
            match conduit.is_pulled() {
                true => self.keep_version(field, conduit, link, arrays, times)?,
                false => self.send_piece(field, link, to, arrays, times, &mut sent.bytes)?,
            }
            sent.next_piece();
        }
        for (_, link) in linked().filter(|(conduit, _)| !conduit.is_pulled()) {
            link.exchanges.fetch_add(1, Ordering::Relaxed);
        }
        // Without a link, the receiver pulls, and left before this rank could open a link.
        for (conduit, _) in coupled.iter().filter(|(_, link)| link.is_none()) {
            self.pass_over(conduit);
        }
        Ok(())
    }

    /// Completes the pulled fields after the last step that the description couples, though the
    /// sender goes on.
    fn complete_pulled(&self, send: &FieldSend<'_>) {
        let ends = |conduit: &FieldConduit| {
            conduit.is_pulled() && conduit.share(Role::Sender).steps.end_with(send.step)
        };
        for conduit in send.field.conduits.iter().filter(|conduit| ends(conduit)) {
            self.change_field(conduit.conduit, |coupling| coupling.pull(Pull::complete));
        }
    }
}
