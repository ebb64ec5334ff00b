//! How an instance ends: in good order, with a failure of its own, or with the run's.

use std::sync::atomic::Ordering;

use titin_model::Operator;
use titin_wire::control::ToManager;

use super::Inner;
use crate::{Error, Kind, Result};

impl Inner {
    pub(super) fn finish(&self) -> Result<()> {
        self.check()?;
        self.all_taken()?;
        self.inlets().for_each(|(_, inlet)| inlet.inbox.discard());
        for outlet in self.outlets() {
            if let Some(carrier) = self.carrier(outlet)? {
                carrier.end(outlet.end.conduit, outlet.window.sent());
            }
        }
        for outlet in self.outlets() {
            let on = || vec![self.wait_on(&outlet.end, Some(&outlet.window), None)];
            self.wait(None, on, || match outlet.window.settled() || outlet.window.lost().is_some() {
                true => Ok(Some(())),
                false => self.reachable(&outlet.end).map(|()| None),
            })?;
        }
        self.report_progress();
        self.tell(&ToManager::Profile(self.profile()));
        self.tell(&ToManager::Done { instance: self.name.clone() });
        self.wait(None, Vec::new, || Ok(self.process.finished(&self.name).then_some(())))
    }

    /// Refuses to close while messages wait that the program never took.
    fn all_taken(&self) -> Result<()> {
        if !self.cycle().checked() {
            return Ok(());
        }
        let wrong = |text: String| Err(Error::new(Kind::CallOrder, text));
        if let Some(text) = self.cycle().untaken() {
            return wrong(text);
        }
        for (port, inlet) in self.inlets() {
            let state = inlet.state.lock().expect("never poisoned");
            let stashed: usize = state.stash.values().map(|queue| queue.len()).sum();
            let chooses = inlet.end.chain.last || inlet.end.chain.repeat || inlet.end.chain.pad;
            let waiting = stashed + inlet.inbox.waiting();
            if waiting > 0 && !chooses {
                let todo = match port.operator {
                    Operator::FInit => "call reuse() until it returns false, and receive in every use",
                    _ => "receive as often as the sender sends, or put the filter `last` on the conduit",
                };
                return wrong(format!(
                    "{waiting} message{} from {} on {} port '{}' never taken; {todo}",
                    if waiting == 1 { " was" } else { "s were" },
                    inlet.end.other(),
                    port.operator,
                    inlet.end.label
                ));
            }
        }
        Ok(())
    }

    pub(super) fn fail(&self, error: &Error) {
        if self.over.swap(true, Ordering::AcqRel) {
            return;
        }
        self.note_failure(error);
        self.tell(&ToManager::Profile(self.profile()));
        let text = error.text.clone();
        self.tell(&ToManager::Failed { instance: self.name.clone(), text, echo: error.is_echo() });
        self.process.dismiss(self);
    }

    fn note_failure(&self, error: &Error) {
        self.first_error.lock().expect("never poisoned").get_or_insert_with(|| error.clone());
    }

    pub(super) fn leave(&self) {
        self.over.store(true, Ordering::Release);
        self.process.dismiss(self);
    }
}
