//! Members of ensembles that are started again after they have exchanged messages.
//!
//! Each attempt of such a member has conduits of its own, so nothing of an earlier attempt reaches a
//! later one, or comes from it. The driver learns of a failure by an error. Its next send to the member
//! has the member started again, and begins the exchange anew: from there on all ports use the ends of
//! the next attempt.

use super::Serial;
use crate::peer_names::instance_of;
use crate::port::Port;
use crate::{Error, Result};

impl Serial {
    /// Notes that the program is told of a failed member.
    #[cold]
    pub(crate) fn note_failure(&self, error: &Error) {
        if let Some(member) = &error.member {
            let mut told = self.told_failures.lock().expect("never poisoned");
            told.insert(member.name.clone());
        }
    }

    /// Has a send to a failed member begin the exchange with the next attempt, if the member is started
    /// again and the program knows of the failure.
    ///
    /// Of an instance that several threads or tasks call, another call may wait for the failed attempt.
    /// So such an instance never has the member started again.
    #[cold]
    pub(super) fn begin_anew(&self, port: &Port, slot: Option<u32>) -> Result<()> {
        let process = &self.core.process;
        if process.loss_count() == 0 || self.is_shared() {
            return Ok(());
        }
        let (place, _) = port.find(slot)?;
        let Some(outlet) = port.outlets.get(place).and_then(|outlets| outlets.first()) else {
            return Ok(());
        };
        let peer = &outlet.end.peer;
        let Some(next) = process.next_attempt(peer) else {
            return Ok(());
        };
        let mut told = self.told_failures.lock().expect("never poisoned");
        if !told.remove(instance_of(peer)) {
            return Ok(());
        }
        drop(told);
        process.resume(&self.core.name, &next);
        for end in self.table.neighbours.ends(&next) {
            self.table.ports[end.port()].use_place(end.place());
        }
        // Choices of ports find the ends anew.
        *self.any.chosen_by.lock().expect("never poisoned") = 0;
        Ok(())
    }
}
