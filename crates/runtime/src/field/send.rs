//! A field is sent: the header first, then the pieces of this rank.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::{Role, SourceArray};

use super::kept_versions::KeptVersions;
use super::link::{FieldLink, flat};
use super::{Field, FieldConduit, FieldId, FieldState, InstanceFields, refused};
use crate::field_mark::HEADER;
use crate::send_state::Timestamps;
use crate::{Error, Kind, Payload, Result};

/// A call that sends a field.
pub(super) struct FieldSend<'a> {
    pub(super) field: &'a Field,
    pub(super) arrays: &'a [SourceArray<'a>],
    pub(super) times: Timestamps,
    /// The step of the program. The description names the coupled steps.
    step: u64,
}

/// How far a send has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PiecesSent {
    pub(super) pieces: usize,
    /// The sent bytes of the next piece.
    pub(super) bytes: u64,
}

impl FieldSend<'_> {
    /// Whether the description couples the field by a conduit at this step.
    pub(super) fn is_coupled(&self, conduit: &FieldConduit) -> bool {
        conduit.share(Role::Sender).steps.contain(self.step)
    }
}

impl PiecesSent {
    /// The next piece begins.
    pub(super) fn next_piece(&mut self) {
        *self = PiecesSent {
            pieces: self.pieces + 1,
            bytes: 0,
        };
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
        let mut sent = match self.interrupted(&send, &mut state)? {
            Some(sent) => sent,
            None => self.send_header(&send, &mut state)?,
        };
        if let Err(error) = self.send_pieces(&send, &mut state, &mut sent) {
            state.sending = error.is_unfinished().then_some((times.0, sent));
            return Err(error);
        }
        state.steps = send.step;
        self.complete_pulled(&send);
        Ok(())
    }

    /// How far the interrupted send has come that the program makes again, if there is one.
    fn interrupted(
        &self,
        send: &FieldSend<'_>,
        state: &mut FieldState,
    ) -> Result<Option<PiecesSent>> {
        let is_same = |at: &f64| at.to_bits() == send.times.0.to_bits();
        let interrupted = state.sending.take_if(|(at, _)| is_same(at));
        if state.sending.is_some() {
            let text = format!(
                "field on port '{}': a call at another time was interrupted, when some of it was sent: make that again first",
                send.field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        Ok(interrupted.map(|(_, sent)| sent))
    }

    /// Sends the header to receivers that do not pull, with a joined piece. Returns how far the send
    /// has come.
    ///
    /// The header goes before the search for the other end: an end without a field there learns
    /// from the header that a field was sent.
    fn send_header(&self, send: &FieldSend<'_>, state: &mut FieldState) -> Result<PiecesSent> {
        let (serial, port) = (&self.serial, send.field.port);
        let piece = self.joined_piece(send, state)?;
        let sent = piece.and_then(|piece| serial.send_joined_repeated(port, piece, send.times));
        sent.unwrap_or_else(|| self.send_any_header(send, piece))?;
        self.note_steps(send.field, send.field.count.steps() + 1);
        let (pieces, bytes) = (piece.iter().len(), 0);
        Ok(PiecesSent { pieces, bytes })
    }

    /// The part of [`InstanceFields::send_header`] for a header that the short way does not take.
    fn send_any_header(&self, send: &FieldSend<'_>, piece: Option<&[u8]>) -> Result<()> {
        let without_header = send
            .field
            .conduits
            .iter()
            .filter(|conduit| !send.is_coupled(conduit) || conduit.is_pulled());
        let left_out: Vec<_> = without_header.map(|conduit| conduit.conduit).collect();
        let left_out = Some(left_out).filter(|left_out| !left_out.is_empty());
        let shape;
        let content = match piece {
            Some(piece) => {
                shape = [piece.len() as u64];
                Payload::array(flat(&shape), piece)
            }
            None => Payload::encoded(&HEADER),
        };
        let header = content.of_field();
        self.serial
            .send(send.field.port, None, &header, send.times, None, left_out)
    }

    /// The only piece, if the piece goes in the header's message: the receiver takes such messages,
    /// and the plan of the copies is known. Before the first exchange the other end may have no field.
    fn joined_piece<'s>(
        &self,
        send: &FieldSend<'s>,
        state: &'s mut FieldState,
    ) -> Result<Option<&'s [u8]>> {
        let ([conduit], Some(links)) = (&send.field.conduits[..], &state.links) else {
            return Ok(None);
        };
        let joined = |link: &&Arc<FieldLink>| link.is_joined && !conduit.is_pulled();
        match links[0].as_ref().filter(joined) {
            Some(link) if send.is_coupled(conduit) => {
                let piece = state.copy_plans[0].packed(link, 0, send.arrays);
                piece.map_err(|error| refused(&self.serial, &send.field.name, &error))
            }
            _ => Ok(None),
        }
    }

    /// Completes the pulled fields after the last step that the description couples, though the
    /// sender goes on.
    fn complete_pulled(&self, send: &FieldSend<'_>) {
        let ends = |conduit: &FieldConduit| {
            conduit.is_pulled() && conduit.share(Role::Sender).steps.end_with(send.step)
        };
        for conduit in send.field.conduits.iter().filter(|conduit| ends(conduit)) {
            self.change_field(conduit.conduit, |coupling| {
                coupling.kept_versions(KeptVersions::complete)
            });
        }
    }
}
