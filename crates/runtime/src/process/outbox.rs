//! Messages to another process. A message goes at once if there is a link to the process, and else
//! waits for the link.

use std::sync::Arc;

use titin_transport::{Link, LinkId};

#[derive(Default)]
pub(super) struct Outbox {
    link: Option<Arc<Link>>,
    waiting: Vec<Vec<u8>>,
}

impl Outbox {
    /// Whether there is a link.
    pub(super) fn is_open(&self) -> bool {
        self.link.is_some()
    }

    /// Whether the link of the outbox is the given link.
    pub(super) fn is_at(&self, link: LinkId) -> bool {
        self.link.as_ref().is_some_and(|known| known.id() == link)
    }

    pub(super) fn tell(&mut self, body: &[u8]) {
        match &self.link {
            Some(link) => link.tell(body),
            None => self.waiting.push(body.to_vec()),
        }
    }

    /// The link is there, so the waiting messages go out.
    pub(super) fn open(&mut self, link: &Arc<Link>) {
        std::mem::take(&mut self.waiting)
            .iter()
            .for_each(|body| link.tell(body));
        self.link = Some(link.clone());
    }
}
