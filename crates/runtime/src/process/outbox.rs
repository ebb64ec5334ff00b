//! What is told to another process: at once if there is a link to it, and else once there is one.

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

    /// Whether this is the link.
    pub(super) fn is_at(&self, link: LinkId) -> bool {
        self.link.as_ref().is_some_and(|known| known.id() == link)
    }

    pub(super) fn tell(&mut self, body: &[u8]) {
        match &self.link {
            Some(link) => link.tell(body),
            None => self.waiting.push(body.to_vec()),
        }
    }

    /// The link is there; what waits goes out.
    pub(super) fn open(&mut self, link: &Arc<Link>) {
        std::mem::take(&mut self.waiting)
            .iter()
            .for_each(|body| link.tell(body));
        self.link = Some(link.clone());
    }
}
