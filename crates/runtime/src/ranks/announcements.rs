//! The last announcement of each field's port. Rank 0 announces a field to the other ranks as a
//! repeated announcement if nothing but numbers has changed.

use std::sync::{Arc, Mutex};

use titin_transport::{Buffer, SharedBuffer};
use titin_wire::ranks::{CollectiveResult, RepeatedAnnouncement};

use crate::filter::no_memory;
use crate::{Message, Result};

/// The announcements of an instance. Rank 0 has the announcements that it has told, another rank those
/// that it has heard.
#[derive(Default)]
pub(super) struct LastAnnouncements(Mutex<Vec<Option<Arc<Announcement>>>>);

/// What stays the same from one announcement of a port to the next.
pub(super) struct Announcement {
    /// The call, as users write it.
    pub(super) call: String,
    pub(super) slot: u32,
    pub(super) data: SharedBuffer,
}

impl LastAnnouncements {
    /// The last announcement of a port.
    pub(super) fn of(&self, port: u32) -> Option<Arc<Announcement>> {
        let all = self.0.lock().expect("never poisoned");
        all.get(port as usize)?.clone()
    }

    /// Keeps an announcement, unless it has more than a repeated announcement can have.
    pub(super) fn keep(&self, call: &str, result: &CollectiveResult, data: &[u8]) -> Result<()> {
        let Some((port, slot)) = repeatable(result) else {
            return Ok(());
        };
        let body = Buffer::gather(&[std::io::IoSlice::new(data)]).map_err(no_memory)?;
        let announcement = Announcement {
            call: call.to_owned(),
            slot,
            data: body.into(),
        };
        let mut all = self.0.lock().expect("never poisoned");
        if all.len() <= port as usize {
            all.resize(port as usize + 1, None);
        }
        all[port as usize] = Some(Arc::new(announcement));
        Ok(())
    }

    /// Forgets all announcements: some ranks may not have heard of the last.
    pub(super) fn clear(&self) {
        self.0.lock().expect("never poisoned").clear();
    }

    /// The form of an announcement that repeats the last announcement of its port. Takes the changed
    /// counts then.
    pub(super) fn repeated(
        &self,
        call: &str,
        result: &CollectiveResult,
        data: &Message,
        changed: &mut Vec<(u32, u64)>,
    ) -> Option<RepeatedAnnouncement> {
        let CollectiveResult::Message {
            port, number, time, ..
        } = *result
        else {
            return None;
        };
        let (_, slot) = repeatable(result)?;
        let last = self.of(port)?;
        let is_like_last = last.call == call && last.slot == slot && last.data[..] == *data.bytes();
        is_like_last.then(|| RepeatedAnnouncement {
            port,
            number,
            time,
            changed: std::mem::take(changed),
        })
    }
}

/// The port and slot of a message that a repeated announcement can tell.
fn repeatable(result: &CollectiveResult) -> Option<(u32, u32)> {
    match result {
        CollectiveResult::Message {
            port,
            slot,
            slots: None,
            settings: None,
            steps,
            ..
        } if steps.is_empty() => Some((*port, *slot)),
        _ => None,
    }
}
