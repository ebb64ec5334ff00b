//! The last announcement of each field's port. Rank 0 tells the other ranks a repeated announcement if
//! nothing but numbers has changed since then.

use std::sync::{Arc, Mutex};

use titin_transport::SharedBuffer;
use titin_wire::ranks::{CollectiveResult, RepeatedAnnouncement};

/// By the number of the port. All ranks keep the same announcements: rank 0 when it tells them, the
/// other ranks when they hear them.
pub(super) struct LastAnnouncements(Mutex<Box<[Option<Announcement>]>>);

/// What stays the same from one announcement of a port to the next.
#[derive(Clone)]
pub(super) struct Announcement {
    /// The call, as users write it.
    pub(super) call: Arc<str>,
    pub(super) slot: u32,
    /// The data of the header.
    pub(super) data: SharedBuffer,
}

impl LastAnnouncements {
    /// Room for the announcements of an instance with so many ports.
    pub(super) fn new(ports: usize) -> Self {
        LastAnnouncements(Mutex::new(vec![None; ports].into()))
    }

    /// The last announcement of a port.
    pub(super) fn of(&self, port: u32) -> Option<Announcement> {
        let all = self.0.lock().expect("never poisoned");
        all.get(port as usize)?.clone()
    }

    /// Keeps a full announcement. One with slots, settings or steps is not kept, since a repeated
    /// announcement has no room for these.
    pub(super) fn keep(&self, call: &str, result: &CollectiveResult, data: &SharedBuffer) {
        let Some((port, slot)) = port_and_slot(result) else {
            return;
        };
        let mut all = self.0.lock().expect("never poisoned");
        if let Some(place) = all.get_mut(port as usize) {
            *place = Some(Announcement {
                call: call.into(),
                slot,
                data: data.clone(),
            });
        }
    }

    /// Forgets all announcements after a failed send: some ranks may not have heard of the last.
    pub(super) fn clear(&self) {
        self.0.lock().expect("never poisoned").fill(None);
    }

    /// The announcement as a repeated one, if nothing but numbers has changed since the last
    /// announcement of the port.
    pub(super) fn repeated(
        &self,
        call: &str,
        result: &CollectiveResult,
        data: &[u8],
        changed: &[(u32, u64)],
    ) -> Option<RepeatedAnnouncement> {
        let CollectiveResult::Message { number, time, .. } = *result else {
            return None;
        };
        let (port, slot) = port_and_slot(result)?;
        let all = self.0.lock().expect("never poisoned");
        let last = all.get(port as usize)?.as_ref()?;
        let is_like_last = *last.call == *call && last.slot == slot && last.data[..] == *data;
        is_like_last.then(|| RepeatedAnnouncement {
            port,
            number,
            time,
            changed: changed.to_vec(),
        })
    }
}

/// The port and the slot of a received message without settings, steps and a number of slots.
fn port_and_slot(result: &CollectiveResult) -> Option<(u32, u32)> {
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

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use titin_transport::Buffer;

    use super::*;

    fn message(port: u32, slot: u32, number: u64) -> CollectiveResult {
        let (slots, settings, steps, time) = (None, None, Vec::new(), 0.5);
        CollectiveResult::Message {
            port,
            slot,
            slots,
            number,
            settings,
            steps,
            time,
        }
    }

    fn data(bytes: &[u8]) -> SharedBuffer {
        Buffer::gather(&[IoSlice::new(bytes)]).unwrap().into()
    }

    #[test]
    fn an_announcement_is_repeated_if_numbers_alone_have_changed() {
        let all = LastAnnouncements::new(3);
        let (call, changed) = ("receive on port 'x'", [(4, 9)]);
        let repeated = |result: &CollectiveResult, call: &str, data: &[u8]| {
            all.repeated(call, result, data, &changed)
        };
        assert_eq!(repeated(&message(1, 0, 7), call, b"text"), None, "none yet");
        all.keep(call, &message(1, 0, 7), &data(b"text"));
        let expected = RepeatedAnnouncement {
            port: 1,
            number: 8,
            time: 0.5,
            changed: changed.to_vec(),
        };
        assert_eq!(repeated(&message(1, 0, 8), call, b"text"), Some(expected));
        for (result, call, data) in [
            (message(2, 0, 8), call, &b"text"[..]),
            (message(3, 0, 8), call, b"text"),
            (message(1, 1, 8), call, b"text"),
            (message(1, 0, 8), "try_receive on port 'x'", b"text"),
            (message(1, 0, 8), call, b"other"),
            (CollectiveResult::Nothing, call, b"text"),
        ] {
            assert_eq!(repeated(&result, call, data), None, "{result:?} {call}");
        }
        all.clear();
        assert_eq!(repeated(&message(1, 0, 9), call, b"text"), None);
    }

    #[test]
    fn an_announcement_with_more_than_numbers_is_not_kept() {
        let all = LastAnnouncements::new(1);
        all.keep("call", &message(0, 0, 0), &data(b"kept"));
        let with = |change: &dyn Fn(&mut Option<u32>, &mut Vec<u32>)| {
            let mut result = message(0, 0, 1);
            if let CollectiveResult::Message { slots, steps, .. } = &mut result {
                change(slots, steps);
            }
            result
        };
        for result in [
            with(&|slots, _| *slots = Some(2)),
            with(&|_, steps| steps.push(1)),
        ] {
            all.keep("call", &result, &data(b"not kept"));
            assert!(all.repeated("call", &result, b"not kept", &[]).is_none());
            assert_eq!(all.of(0).unwrap().data[..], *b"kept");
        }
        // A number of a port that the instance does not have.
        all.keep("call", &message(1, 0, 0), &data(b"far"));
        assert!(all.of(1).is_none());
    }
}
