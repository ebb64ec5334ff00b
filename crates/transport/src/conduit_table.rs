//! The conduit ends of a process, by the number of the conduit.

use std::any::Any;
use std::sync::{Arc, RwLock};

use rustc_hash::FxHashMap;
use titin_wire::{ConduitId, Malformed};

use crate::buffer::Filling;
use crate::inbox::Inbox;
use crate::window::Window;

/// Memory from which peers can read payloads in place. A medium with such memory registers the
/// memory with the conduits.
pub trait PayloadMemory: Any + Send + Sync {
    /// Room for a payload; `None` if there is none.
    fn loan(&self, length: usize) -> Option<Filling>;

    /// Why there was no memory for a payload, if there was none since the last call.
    fn shortage(&self) -> Option<Shortage>;

    /// Whether no memory is to be shared at all.
    fn is_switched_off(&self) -> bool;
}

/// Why there is no more shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// The process has reached its ceiling, in bytes.
    Ceiling(u64),
    /// The process has reached its limit of arrays under way or held by others.
    Blocks(usize),
    /// The process has reached a limit of the system, described in words.
    System(String),
}

/// A fast hash suffices: the manager numbers the conduits, so only a program of the run could
/// choose colliding numbers.
type ByConduit<T> = FxHashMap<ConduitId, Arc<T>>;

/// All inboxes and windows of a process, for carriers to find, and the process's memory for
/// payloads.
pub struct ConduitTable {
    inboxes: RwLock<ByConduit<Inbox>>,
    windows: RwLock<ByConduit<Window>>,
    memory: Arc<dyn PayloadMemory>,
    /// Whether a message of a conduit without an inbox is an error. Else the process may ask for it later.
    is_complete: bool,
}

impl ConduitTable {
    /// A table with `memory` for payloads.
    pub fn with_memory(memory: Arc<dyn PayloadMemory>) -> Self {
        ConduitTable {
            inboxes: RwLock::default(),
            windows: RwLock::default(),
            memory,
            is_complete: false,
        }
    }

    /// A table with a single inbox, that of `conduit`. No other may come.
    pub fn with_inbox(conduit: ConduitId) -> Self {
        let table = ConduitTable::default();
        table.inbox(conduit);
        ConduitTable {
            is_complete: true,
            ..table
        }
    }

    /// Why there was no shared memory for a payload, if there was none since the last call.
    pub fn ran_out(&self) -> Option<Shortage> {
        self.memory.shortage()
    }

    /// Whether no memory is to be shared at all.
    pub fn is_switched_off(&self) -> bool {
        self.memory.is_switched_off()
    }

    /// Room for a payload, to be sent without a copy: in memory shared with peers on the host, if
    /// available.
    ///
    /// # Errors
    /// [`std::io::ErrorKind::OutOfMemory`] if there is none at all.
    pub fn loan(&self, length: u64) -> std::io::Result<Filling> {
        let shared = usize::try_from(length)
            .ok()
            .and_then(|length| self.memory.loan(length));
        shared.map_or_else(|| Filling::new(length), Ok)
    }

    /// The memory for payloads, if of type `T`.
    pub(crate) fn memory<T: PayloadMemory>(&self) -> Option<Arc<T>> {
        let memory: Arc<dyn Any + Send + Sync> = self.memory.clone();
        memory.downcast().ok()
    }

    /// The inbox of a conduit, made at the first call.
    pub fn inbox(&self, conduit: ConduitId) -> Arc<Inbox> {
        let known = self.known_inbox(conduit);
        known.unwrap_or_else(|| self.make_inbox(conduit).0)
    }

    /// As [`ConduitTable::inbox`], for a frame that has come in; and whether the inbox is new.
    ///
    /// # Errors
    /// [`Malformed`] if the conduit may have no inbox.
    pub(crate) fn arrival(&self, conduit: ConduitId) -> Result<(Arc<Inbox>, bool), Malformed> {
        match self.known_inbox(conduit) {
            Some(inbox) => Ok((inbox, false)),
            None if self.is_complete => {
                let why = format!("the link has no conduit {conduit}");
                Err(Malformed::new("frame", why))
            }
            None => Ok(self.make_inbox(conduit)),
        }
    }

    fn known_inbox(&self, conduit: ConduitId) -> Option<Arc<Inbox>> {
        let inboxes = self.inboxes.read().expect("never poisoned");
        inboxes.get(&conduit).cloned()
    }

    /// The inbox of a conduit, and whether this call has made it.
    fn make_inbox(&self, conduit: ConduitId) -> (Arc<Inbox>, bool) {
        let mut inboxes = self.inboxes.write().expect("never poisoned");
        let mut is_new = false;
        let inbox = inboxes.entry(conduit).or_insert_with(|| {
            is_new = true;
            Arc::new(Inbox::new(conduit))
        });
        (inbox.clone(), is_new)
    }

    /// The window of a conduit, if the process sends on the conduit.
    pub fn window(&self, conduit: ConduitId) -> Option<Arc<Window>> {
        self.windows
            .read()
            .expect("never poisoned")
            .get(&conduit)
            .cloned()
    }

    /// Adds a window, for acknowledgements to find.
    pub fn open_window(&self, conduit: ConduitId, window: Arc<Window>) {
        self.windows
            .write()
            .expect("never poisoned")
            .insert(conduit, window);
    }

    /// Removes all ends. Inboxes hold carriers, and carriers hold the table: without `clear` both
    /// would outlive the process's part in a failed run.
    pub fn clear(&self) {
        let inboxes = std::mem::take(&mut *self.inboxes.write().expect("never poisoned"));
        self.windows.write().expect("never poisoned").clear();
        drop(inboxes);
    }

    /// Removes the end of a conduit: the inbox if the process receives on the conduit, else the
    /// window. If the sender may go on, the inbox stays, and drops all messages: a new inbox would
    /// keep them.
    pub fn forget(&self, conduit: ConduitId, receives: bool) {
        if receives {
            let mut inboxes = self.inboxes.write().expect("never poisoned");
            let Some(inbox) = inboxes.get(&conduit).cloned() else {
                return;
            };
            if inbox.ended() {
                inboxes.remove(&conduit);
            }
            drop(inboxes);
            inbox.discard();
        } else {
            self.windows
                .write()
                .expect("never poisoned")
                .remove(&conduit);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Doorbell, InboxOptions, Inproc};

    #[test]
    fn a_cleared_table_is_dropped() {
        let conduits = Arc::new(ConduitTable::default());
        let (carrier, options) = (
            Arc::new(Inproc::new(conduits.clone())),
            InboxOptions {
                messages: 1,
                bytes: 1,
            },
        );
        conduits
            .inbox(ConduitId(1))
            .attach(Arc::new(Doorbell::default()), carrier, options);
        let kept = Arc::downgrade(&conduits);
        conduits.clear();
        drop(conduits);
        assert!(kept.upgrade().is_none());
    }
}
