//! How the streams of a serial instance end, and the errors caused by peers that have ended.

use std::sync::atomic::Ordering;

use titin_model::Operator;
use titin_wire::control::ToManager;

use super::Serial;
use crate::peer_names::instance_of;
use crate::port::Outlet;
use crate::{Error, Kind, Result};

/// Level of a record in the run's log.
pub(crate) const WARNING: u8 = 30;

/// Level of a record in the run's log that helps to find out what a run does.
pub(crate) const DEBUG: u8 = 10;

impl Serial {
    /// Fails the run, unless the instance has ended.
    pub(crate) fn fail(&self, error: &Error) {
        if self.core.over.load(Ordering::Acquire) {
            return;
        }
        self.first_error().get_or_insert_with(|| error.clone());
        if self.core.over.swap(true, Ordering::AcqRel) {
            return;
        }
        self.upper_layers()
            .iter()
            .for_each(|above| above.failed(error));
    }

    /// Warns of O_F ports on which the ending use has sent nothing. The warning goes to the manager
    /// at any log level.
    pub(crate) fn tell_missed(&self) {
        let finals = self.table.ports.iter().enumerate();
        let finals = finals
            .filter(|(_, port)| port.operator == Operator::OF && port.connected() && self.leads());
        let missed = self
            .execution_loop()
            .missed(finals.map(|(number, port)| (number, port.slots())));
        for port in missed {
            let text = format!(
                "a use has ended in which nothing was sent on O_F port '{}': its receivers get one message less than there are \
                 uses; send in each, nil if there is nothing to say",
                self.table.ports[port].name
            );
            self.log(WARNING, &text);
            let peers = self.table.ports[port]
                .every_outlet()
                .map(|outlet| instance_of(&outlet.end.peer).to_owned());
            let (instance, peers, text) =
                (self.core.name.clone(), peers.collect(), self.as_rank(&text));
            self.tell(&ToManager::Missed {
                instance,
                peers,
                port: None,
                text,
            });
        }
    }

    /// Tells a receiver that no more messages follow, unless the receiver already knows.
    pub(crate) fn end_stream(&self, outlet: &Outlet) -> Result<()> {
        if let Some(carrier) = self.carrier(outlet)?
            && let Some(sent) = outlet.window.finish()
        {
            carrier.end(outlet.end.conduit, sent);
        }
        Ok(())
    }

    /// Whether a receiver holds all sent messages, or takes no more. Fails if the receiver has
    /// become out of reach before.
    pub(crate) fn is_settled(&self, outlet: &Outlet) -> Result<bool> {
        // An attempt of a member that has not begun has no carrier, and counts as finished.
        let is_without_receiver = || {
            let end = &outlet.end;
            end.carrier.get().is_none() && self.core.process.finished(&end.peer)
        };
        let settled = outlet.window.settled() || outlet.window.closed() || is_without_receiver();
        if !settled {
            self.reachable(&outlet.end)?;
        }
        Ok(settled)
    }

    /// Notes an error caused by the end of a port at the given peers. If the program fails with the
    /// error in its text, the manager hears the peers: the failure of a peer may be the reason.
    pub(crate) fn by_end_of<'a>(
        &self,
        error: Error,
        peers: impl IntoIterator<Item = &'a str>,
    ) -> Error {
        let mut after: Vec<String> = peers
            .into_iter()
            .map(|peer| instance_of(peer).to_owned())
            .filter(|peer| *peer != self.core.name)
            .collect();
        after.dedup();
        *self.core.ended.lock().expect("never poisoned") = Some((error.text.clone(), after));
        self.core.ended_last.store(true, Ordering::Relaxed);
        error
    }

    /// Notes that a call on a port has gone well. A program that drops the instance later does not
    /// do so because of an earlier error about ended peers.
    #[inline(always)]
    pub(crate) fn goes_on(&self) {
        if self.core.ended_last.load(Ordering::Relaxed) {
            self.core.ended_last.store(false, Ordering::Relaxed);
        }
    }

    /// The ended peers behind the last error about ended peers, if the text of a failure includes
    /// the error.
    pub(crate) fn ended_before(&self, text: &str) -> Vec<String> {
        let ended = self.core.ended.lock().expect("never poisoned");
        let known = ended.as_ref().filter(|(error, _)| text.contains(error));
        known.map(|(_, after)| after.clone()).unwrap_or_default()
    }

    /// The error of a program that drops the instance without closing it, most likely because of
    /// the last error about an ended peer.
    pub(crate) fn let_go(&self) -> Error {
        let ended = self.core.ended.lock().expect("never poisoned");
        let last = ended
            .as_ref()
            .filter(|_| self.core.ended_last.load(Ordering::Relaxed));
        let after = last
            .map(|(error, _)| format!(", after this: {error}"))
            .unwrap_or_default();
        Error::new(
            Kind::Closed,
            format!("the program let go of the instance without closing it{after}"),
        )
    }
}
