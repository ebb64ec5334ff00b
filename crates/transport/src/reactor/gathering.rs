//! Links of several streams, not all of them connected yet.
//!
//! Both ends of the first stream have proved themselves, and have agreed on the number of further
//! streams. On each further stream both ends prove themselves as well, before the stream names its
//! link.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use titin_wire::Malformed;

use super::pending::{JoiningStream, Pending, StreamsRequest};
use crate::error::LinkError;

/// A link with streams not connected yet.
pub(super) struct IncompleteLink {
    pub(super) first: Pending,
    pub(super) request: StreamsRequest,
    further: Vec<Option<Pending>>,
    deadline: Instant,
}

/// All incomplete links, by the tokens of the first streams.
#[derive(Default)]
pub(super) struct IncompleteLinks(HashMap<u64, IncompleteLink>);

impl IncompleteLink {
    /// A dialled link has the time of the dialling. The streams of an accepted link have `patience`
    /// to join.
    pub(super) fn new(first: Pending, request: StreamsRequest, patience: Duration) -> Self {
        let further = (0..request.count).map(|_| None).collect();
        let deadline = first.until().unwrap_or_else(|| Instant::now() + patience);
        IncompleteLink {
            first,
            request,
            further,
            deadline,
        }
    }

    /// The further streams to dial.
    pub(super) fn joining(&self, token: u64) -> impl Iterator<Item = JoiningStream> + use<> {
        let StreamsRequest { key, count, .. } = self.request;
        (1..=count).map(move |number| JoiningStream { token, key, number })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.further.iter().all(Option::is_some)
    }

    /// The first stream and the further streams, with the settings of the request.
    pub(super) fn finish(self) -> (Pending, Vec<Pending>) {
        let StreamsRequest {
            count, settings, ..
        } = self.request;
        let medium = &self.first.medium;
        medium.set_pacing(&self.first.socket, &settings, 1);
        let further: Vec<Pending> = self.further.into_iter().flatten().collect();
        for pending in &further {
            medium.set_pacing(&pending.socket, &settings, count);
            // The dialling process has set the buffers before the connection.
            if pending.is_stranger() {
                medium.set_buffers(&pending.socket, &settings);
            }
        }
        (self.first, further)
    }
}

impl IncompleteLinks {
    pub(super) fn insert(&mut self, token: u64, link: IncompleteLink) {
        self.0.insert(token, link);
    }

    pub(super) fn contains(&self, token: u64) -> bool {
        self.0.contains_key(&token)
    }

    pub(super) fn take(&mut self, token: u64) -> Option<IncompleteLink> {
        self.0.remove(&token)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The accepted link with `key`, if any.
    pub(super) fn by_key(&self, key: u64) -> Option<u64> {
        self.0
            .iter()
            .find(|(_, link)| link.first.is_stranger() && link.request.key == key)
            .map(|(token, _)| *token)
    }

    /// Adds a stream. Returns the link after the last stream.
    ///
    /// # Errors
    /// If there is no place for the stream.
    pub(super) fn join(
        &mut self,
        token: u64,
        number: u64,
        stream: Pending,
    ) -> Result<Option<IncompleteLink>, LinkError> {
        let link = self.0.get_mut(&token);
        let place = link.and_then(|link| link.further.get_mut(number as usize - 1));
        let Some(place) = place.filter(|place| place.is_none()) else {
            return Err(Malformed::new("stream", format!("no place for number {number}")).into());
        };
        *place = Some(stream);
        Ok(self
            .0
            .get(&token)
            .is_some_and(IncompleteLink::is_complete)
            .then(|| self.0.remove(&token))
            .flatten())
    }

    /// Why a further stream has not joined a dialled link yet, with the tag of the request.
    pub(super) fn obstacles(&self, joining: &Pending) -> Option<(u128, String)> {
        let link = self.0.get(&joining.joins?.token)?;
        link.first.obstacles_of(joining)
    }

    /// The links with no time left.
    pub(super) fn late(&self, now: Instant) -> Vec<u64> {
        self.0
            .iter()
            .filter(|(_, link)| link.deadline <= now)
            .map(|(token, _)| *token)
            .collect()
    }

    pub(super) fn deadlines(&self) -> impl Iterator<Item = Instant> {
        self.0.values().map(|link| link.deadline)
    }
}
