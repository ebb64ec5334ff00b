//! The conduit ends of a process, by number.

use std::sync::{Arc, RwLock};

use rustc_hash::FxHashMap;
use titin_wire::ConduitId;

use crate::shm::{Pool, Shortage};
use crate::{Filling, Inbox, Window};

/// Conduits are numbered by the manager: who could choose numbers that meet in the table is a program of the run.
type ByConduit<T> = FxHashMap<ConduitId, Arc<T>>;

/// All inboxes and windows of a process: where carriers find them.
#[derive(Default)]
pub struct Exchange {
    inboxes: RwLock<ByConduit<Inbox>>,
    windows: RwLock<ByConduit<Window>>,
    pool: Arc<Pool>,
}

impl Exchange {
    /// An exchange whose process shares at most so many bytes of memory with others, in place of a quarter of the
    /// memory that it may use. Payloads that find no room there go by a socket.
    pub fn with_ceiling(bytes: u64) -> Self {
        Exchange {
            pool: Pool::new(usize::try_from(bytes).unwrap_or(usize::MAX)),
            ..Exchange::default()
        }
    }

    /// Why there was no memory for a payload that was to be shared, if there was none since somebody last asked.
    pub fn ran_out(&self) -> Option<Shortage> {
        self.pool.ran_out()
    }

    /// Whether no memory is to be shared at all.
    pub fn is_switched_off(&self) -> bool {
        self.pool.is_switched_off()
    }

    /// Room for a payload that is to be sent from where it lies, in memory that peers on this host can read if there is
    /// some.
    ///
    /// # Errors
    /// [`std::io::ErrorKind::OutOfMemory`] if there is none at all.
    pub fn loan(&self, length: u64) -> std::io::Result<Filling> {
        let placed = usize::try_from(length)
            .ok()
            .and_then(|length| Filling::placed(&self.pool, length));
        placed.map_or_else(|| Filling::new(length), Ok)
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The inbox of a conduit, made when it is first asked for.
    pub fn inbox(&self, conduit: ConduitId) -> Arc<Inbox> {
        self.arrival(conduit).0
    }

    /// As [`Exchange::inbox`], for a message that has come in; and whether nobody has asked for that inbox before.
    pub(crate) fn arrival(&self, conduit: ConduitId) -> (Arc<Inbox>, bool) {
        if let Some(inbox) = self.inboxes.read().expect("never poisoned").get(&conduit) {
            return (inbox.clone(), false);
        }
        let mut inboxes = self.inboxes.write().expect("never poisoned");
        let mut is_new = false;
        let inbox = inboxes.entry(conduit).or_insert_with(|| {
            is_new = true;
            Arc::new(Inbox::new(conduit))
        });
        (inbox.clone(), is_new)
    }

    /// The window of a conduit, if we send on it.
    pub fn window(&self, conduit: ConduitId) -> Option<Arc<Window>> {
        self.windows
            .read()
            .expect("never poisoned")
            .get(&conduit)
            .cloned()
    }

    /// Makes a window known, so that acknowledgements find it.
    pub fn open_window(&self, conduit: ConduitId, window: Arc<Window>) {
        self.windows
            .write()
            .expect("never poisoned")
            .insert(conduit, window);
    }

    /// Forgets all ends. The carriers by which inboxes answer know this exchange, which without that would outlive its process's
    /// part in a run that has failed.
    pub fn clear(&self) {
        let inboxes = std::mem::take(&mut *self.inboxes.write().expect("never poisoned"));
        self.windows.write().expect("never poisoned").clear();
        drop(inboxes);
    }

    /// Forgets the ends of a conduit: the inbox if we received on it, else the window. An inbox whose sender may go on
    /// stays, and drops whatever arrives: a new one, which nobody takes from, would keep it.
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
    fn what_is_cleared_outlives_nobody() {
        let exchange = Arc::new(Exchange::default());
        let (carrier, options) = (
            Arc::new(Inproc::new(exchange.clone())),
            InboxOptions {
                messages: 1,
                bytes: 1,
            },
        );
        exchange
            .inbox(ConduitId(1))
            .attach(Arc::new(Doorbell::default()), carrier, options);
        let kept = Arc::downgrade(&exchange);
        exchange.clear();
        drop(exchange);
        assert!(kept.upgrade().is_none());
    }
}
