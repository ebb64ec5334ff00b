//! A field is received: the header first, then the pieces for this rank.

use titin_array::{Role, TargetArray};
use titin_transport::{IncomingMessage, copy};

use super::{Field, FieldId, FieldState, InstanceFields, Stamps, places};
use crate::serial::{NoteCall, Patience, ReceivedAtOnce};
use crate::{Error, Kind, Message, Result};

impl InstanceFields {
    /// Receives a field into the arrays. See [`crate::Instance::receive_field`].
    pub(crate) fn receive(
        &self,
        field: FieldId,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Option<Stamps>> {
        self.serial.enter()?;
        let field = &*self.get(field);
        let mut state = field.enter()?;
        field.check(arrays.iter().map(|array| array.size))?;
        check_places(field, &state, arrays)?;
        let step = state.steps + 1;
        let conduit = field.conduits.first();
        let is_coupled =
            conduit.is_none_or(|conduit| conduit.share(Role::Receiver).steps.contain(step));
        if state.receiving.is_none() && !is_coupled {
            state.steps = step;
            self.note_steps(field, step);
            return Ok(None);
        }
        let stamps = match conduit.filter(|conduit| conduit.is_pulled()) {
            Some(conduit) => {
                self.receive_version(field, conduit, &mut state, arrays, at, patience)?
            }
            None if at.is_some() => {
                let text = format!(
                    "field on port '{}': its sender pushes it, so it comes in order and not at a time asked for; write mode: pull \
                     for it in the description (titin: fields)",
                    field.name
                );
                return Err(Error::new(Kind::Usage, text));
            }
            None => self.receive_pushed(field, &mut state, arrays, patience)?,
        };
        state.steps = step;
        self.note_steps(field, step);
        Ok(Some(stamps))
    }

    /// Receives a field pushed by the sender.
    fn receive_pushed(
        &self,
        field: &Field,
        state: &mut FieldState,
        arrays: &mut [TargetArray<'_>],
        patience: Patience,
    ) -> Result<Stamps> {
        let deadline = patience.deadline();
        let known = match state.receiving.take() {
            Some(interrupted) => Some(ReceivedAtOnce::Other(interrupted)),
            None => self
                .receive_joined(field, state, arrays, patience)
                .transpose()
                .map_err(|error| self.closed(field, error))?,
        };
        let header = match known {
            Some(ReceivedAtOnce::InPlace) => return Ok(Stamps::of_head(&state.last_joined.head)),
            Some(ReceivedAtOnce::Other(header)) => header,
            None => {
                let begin = || Ok(Patience::until(deadline));
                self.receive_header(field, None, begin, |message| field.is_header(message))?
            }
        };
        let announced = (&header, header.number);
        self.receive_pieces(field, state, announced, Some(arrays), deadline)?;
        Ok(Stamps::of(&header))
    }

    /// Receives by the short way a field whose only piece comes in the header's message. `Other` is a
    /// header whose pieces follow, or need the long way.
    #[inline(always)]
    fn receive_joined(
        &self,
        field: &Field,
        state: &mut FieldState,
        arrays: &mut [TargetArray<'_>],
        patience: Patience,
    ) -> Option<Result<ReceivedAtOnce>> {
        let [Some(link)] = &**state.links.as_ref()? else {
            return None;
        };
        let ([length], Patience::Forever) = (&*link.lengths, patience) else {
            return None;
        };
        let plan = state.copy_plans[0].plan_for(arrays)?;
        // The long way says what does not fit.
        let takes = |message: &IncomingMessage, note: &mut NoteCall<'_>| {
            let is_taken = message.body.len() as u64 == *length && note();
            if is_taken {
                plan.unpack(copy, &message.body, arrays);
            }
            is_taken
        };
        let fits = |message: &Message| field.is_header(message);
        let received =
            self.serial
                .receive_joined_repeated(field.port, &mut state.last_joined, takes, fits);
        state.last_joined.body.keep_if_small();
        received
    }

    /// Receives the header of a field on all ranks. Rank 0 first calls `begin`, for the patience of
    /// the wait.
    pub(super) fn receive_header(
        &self,
        field: &Field,
        at: Option<f64>,
        begin: impl FnOnce() -> Result<Patience>,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<Message> {
        let port = field.port;
        match &self.group {
            None => {
                let received = self.serial.receive(port, None, begin()?, fits);
                received
                    .map(|(_, message)| message)
                    .map_err(|error| self.closed(field, error))
            }
            Some(group) => {
                let receive = |fits: &dyn Fn(&Message) -> Result<()>| {
                    let received = self.serial.receive(port, None, begin()?, fits);
                    let (slot, message) = received.map_err(|error| self.closed(field, error))?;
                    Ok((port, slot, message))
                };
                match at {
                    None => group.receive_on(&field.receive_call, receive, fits),
                    // Adding 0.0 turns -0.0 into 0.0, so both read the same in the text.
                    Some(at) => {
                        let call = format!("{} at {}", field.receive_call, at + 0.0);
                        group.receive_on(&call, receive, fits)
                    }
                }
            }
        }
    }

    /// Explains the error of a call that receives a header: the sender of a field may have
    /// withdrawn the field, and not finished.
    fn closed(&self, field: &Field, error: Error) -> Error {
        let ends = self.serial.table.ports[field.port.0].every_inlet();
        let mut declared = ends.filter(|inlet| self.rendezvous.is_declared(inlet.end.conduit));
        let Some(inlet) = declared.next().filter(|_| error.kind == Kind::PortClosed) else {
            return error;
        };
        let text = format!(
            "{}: port '{}' is closed: {} has finished, or has withdrawn its field, and sends no more",
            self.serial.core.name,
            inlet.end.label,
            inlet.end.other()
        );
        self.serial
            .by_end_of(Error::new(Kind::PortClosed, text), [&*inlet.end.peer])
    }
}

/// Fails if an interrupted receive has filled some elements of arrays other than the given arrays.
fn check_places(field: &Field, state: &FieldState, arrays: &[TargetArray<'_>]) -> Result<()> {
    let into = state.into.as_ref().filter(|_| state.receiving.is_some());
    if into.is_none_or(|into| *into == places(arrays)) {
        return Ok(());
    }
    let text = format!(
        "field on port '{}': a call was interrupted, or its time was over, when some of it was received: make that again first, \
         with the same arrays",
        field.name
    );
    Err(Error::new(Kind::Usage, text))
}
