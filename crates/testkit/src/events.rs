//! A handler of a reactor that notes every event, so that a test can wait for an event.

use std::sync::{Arc, Condvar, Mutex};

use titin_transport::{Handler, Link, LinkError};
use titin_wire::handshake::Agreement;

use crate::progress;

/// The body of a control message that makes the receiving reactor's thread stand still.
pub(crate) const STAND_STILL: &[u8] = b"stand still";

/// An event of which the reactor has told its handler.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum LinkEvent {
    Opened(Arc<Link>, Agreement),
    Control(Arc<Link>, Vec<u8>),
    Lost(Arc<Link>, LinkError),
    Unreachable(u128, LinkError),
    Broken(String),
}

/// Notes all events of a reactor.
#[derive(Default)]
pub struct Events {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<LinkEvent>,
    held: bool,
    standing: bool,
}

impl Events {
    /// Waits for an event for which `pick` returns a value. Removes the event and returns the
    /// value.
    pub fn wait<T>(&self, mut pick: impl FnMut(&LinkEvent) -> Option<T>) -> T {
        let mut state = self.state.lock().expect("never poisoned");
        loop {
            let found = state
                .events
                .iter()
                .enumerate()
                .find_map(|(index, event)| Some((index, pick(event)?)));
            if let Some((index, found)) = found {
                state.events.remove(index);
                progress();
                return found;
            }
            state = self.changed.wait(state).expect("never poisoned");
        }
    }

    /// Waits for a link to open.
    pub fn opened(&self) -> Arc<Link> {
        self.wait(|event| match event {
            LinkEvent::Opened(link, _) => Some(link.clone()),
            _ => None,
        })
    }

    /// Waits for a link to be lost, and returns the reason.
    pub fn lost(&self) -> LinkError {
        self.wait(|event| match event {
            LinkEvent::Lost(_, why) => Some(why.clone()),
            _ => None,
        })
    }

    /// Waits for a control message.
    pub fn control(&self) -> Vec<u8> {
        self.wait(|event| match event {
            LinkEvent::Control(_, body) => Some(body.clone()),
            _ => None,
        })
    }

    /// Waits until the reactor gives up the dial with this tag, and returns the reason.
    pub fn unreachable(&self, tag: u128) -> LinkError {
        self.wait(|event| match event {
            LinkEvent::Unreachable(found, why) if *found == tag => Some(why.clone()),
            _ => None,
        })
    }

    /// The number of events that were noted and not waited for.
    pub fn count(&self) -> usize {
        self.state.lock().expect("never poisoned").events.len()
    }

    /// Makes the reactor's thread stand still when it receives [`STAND_STILL`], which `order`
    /// sends. Returns when the thread stands still.
    pub(crate) fn hold(&self, order: impl FnOnce()) {
        let mut state = self.state.lock().expect("never poisoned");
        state.held = true;
        drop(state);
        order();
        state = self.state.lock().expect("never poisoned");
        while !state.standing {
            state = self.changed.wait(state).expect("never poisoned");
        }
    }

    /// Lets the reactor's thread go on.
    pub(crate) fn release(&self) {
        self.state.lock().expect("never poisoned").held = false;
        self.changed.notify_all();
    }

    fn note(&self, event: LinkEvent) {
        self.state
            .lock()
            .expect("never poisoned")
            .events
            .push(event);
        self.changed.notify_all();
    }
}

impl Handler for Events {
    fn opened(&self, link: &Arc<Link>, agreement: Agreement) {
        self.note(LinkEvent::Opened(link.clone(), agreement));
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        if body != STAND_STILL {
            return self.note(LinkEvent::Control(link.clone(), body.to_vec()));
        }
        let mut state = self.state.lock().expect("never poisoned");
        state.standing = true;
        self.changed.notify_all();
        while state.held {
            state = self.changed.wait(state).expect("never poisoned");
        }
        state.standing = false;
    }

    fn lost(&self, link: &Arc<Link>, why: LinkError) {
        self.note(LinkEvent::Lost(link.clone(), why));
    }

    fn unreachable(&self, tag: u128, why: LinkError) {
        self.note(LinkEvent::Unreachable(tag, why));
    }

    fn broken(&self, text: String) {
        self.note(LinkEvent::Broken(text));
    }
}
