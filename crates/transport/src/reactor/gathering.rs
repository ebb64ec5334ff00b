//! Links of several streams whose streams are not all there yet.
//!
//! The first stream has been opened, both ends have proved themselves, and they have agreed on how many are to join it. Each of
//! those proves itself as well, before it says which link it belongs to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use titin_wire::Malformed;

use super::pending::{Joining, Pending, Wish};
use crate::Lost;
use crate::tcp::settings;

/// A link that is coming about.
pub(super) struct Gathering {
    pub(super) first: Pending,
    pub(super) wish: Wish,
    further: Vec<Option<Pending>>,
    deadline: Instant,
}

/// All of them, by the tokens of their first streams.
#[derive(Default)]
pub(super) struct Gatherings(HashMap<u64, Gathering>);

impl Gathering {
    /// A first stream that was dialled has its own time; the streams of one that has come to us have so long to join.
    pub(super) fn new(first: Pending, wish: Wish, patience: Duration) -> Self {
        let further = (0..wish.count).map(|_| None).collect();
        let deadline = first.until().unwrap_or_else(|| Instant::now() + patience);
        Gathering {
            first,
            wish,
            further,
            deadline,
        }
    }

    /// The further streams that are to be dialled.
    pub(super) fn joining(&self, token: u64) -> impl Iterator<Item = Joining> + use<> {
        let Wish { key, count, .. } = self.wish;
        (1..=count).map(move |number| Joining { token, key, number })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.further.iter().all(Option::is_some)
    }

    /// The first stream, with everything set as wished, and the further ones.
    pub(super) fn finish(self) -> (Pending, Vec<Pending>) {
        let Wish {
            count,
            settings: wished,
            ..
        } = self.wish;
        settings::pace(&self.first.socket, &wished, 1);
        let further: Vec<Pending> = self.further.into_iter().flatten().collect();
        for pending in &further {
            settings::pace(&pending.socket, &wished, count);
            // Who dialled had to do it before.
            if pending.stranger() {
                settings::size(&pending.socket, &wished);
            }
        }
        (self.first, further)
    }
}

impl Gatherings {
    pub(super) fn insert(&mut self, token: u64, gathering: Gathering) {
        self.0.insert(token, gathering);
    }

    pub(super) fn contains(&self, token: u64) -> bool {
        self.0.contains_key(&token)
    }

    pub(super) fn take(&mut self, token: u64) -> Option<Gathering> {
        self.0.remove(&token)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one of this key that has come to us, if there is one.
    pub(super) fn named(&self, key: u64) -> Option<u64> {
        let stranger =
            |gathering: &Gathering| gathering.first.stranger() && gathering.wish.key == key;
        self.0
            .iter()
            .find(|(_, gathering)| stranger(gathering))
            .map(|(token, _)| *token)
    }

    /// Adds a stream; the link, if that was the last one.
    ///
    /// # Errors
    /// If there is no place for it.
    pub(super) fn join(
        &mut self,
        token: u64,
        number: u64,
        stream: Pending,
    ) -> Result<Option<Gathering>, Lost> {
        let gathering = self.0.get_mut(&token);
        let place = gathering.and_then(|gathering| gathering.further.get_mut(number as usize - 1));
        let Some(place) = place.filter(|place| place.is_none()) else {
            return Err(Malformed::new("stream", format!("no place for number {number}")).into());
        };
        *place = Some(stream);
        Ok(self
            .0
            .get(&token)
            .is_some_and(Gathering::is_whole)
            .then(|| self.0.remove(&token))
            .flatten())
    }

    /// Those whose time is over.
    pub(super) fn late(&self, now: Instant) -> Vec<u64> {
        self.0
            .iter()
            .filter(|(_, gathering)| gathering.deadline <= now)
            .map(|(token, _)| *token)
            .collect()
    }

    pub(super) fn deadlines(&self) -> impl Iterator<Item = Instant> {
        self.0.values().map(|gathering| gathering.deadline)
    }
}
