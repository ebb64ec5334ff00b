//! Open links that further streams may join.
//!
//! The end of the link that sends asks for more streams, by itself or because the program wants them.
//! The process that has dialled the link dials the streams, whichever end asks. A stream serves first at the end that listens, and the dialler
//! hears of it: so no end ever sends by a stream that the other end has given up.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use titin_wire::LinkSettings;
use titin_wire::frame::{Frame, Header, MAX_STREAMS};

use super::dial::Target;
use super::pending::{JoiningStream, Pending, StreamsRequest};
use crate::error::LinkError;
use crate::link::{Link, StreamRules};
use crate::medium::send_whole;
use crate::stream_growth::StreamRequest;

/// The descriptors of a stream of the medium with the most of them, and the share of the process's
/// descriptors that may serve for streams that join later.
const DESCRIPTORS_PER_STREAM: u64 = 3;
const SHARE_OF_DESCRIPTORS: u64 = 2;

/// How long a further stream has to connect and to prove itself.
const CONNECTING_TIME: Duration = Duration::from_secs(60);

/// An open link that further streams may join.
pub(super) struct GrowingLink {
    request: StreamsRequest,
    /// Where to dial further streams; `None` at the end that listens.
    target: Option<Target>,
    /// The further streams, with those on their way.
    count: u64,
}

/// All open links that further streams may join.
#[derive(Default)]
pub(super) struct GrowingLinks {
    /// By the tokens of the links.
    links: HashMap<u64, GrowingLink>,
}

impl GrowingLink {
    /// The link of the stream `first`.
    pub(super) fn new(first: &Pending, request: StreamsRequest) -> Self {
        GrowingLink {
            request,
            target: first.target(),
            count: request.count,
        }
    }

    /// The rules for the streams of the link, which asks for more by `request`.
    pub(super) fn rules(&self, request: StreamRequest) -> StreamRules {
        StreamRules::new(self.request.settings, self.request.count as usize, request)
    }

    /// Whether the process has dialled the link.
    fn is_dialled(&self) -> bool {
        self.target.is_some()
    }

    /// How many streams have joined since the link was opened, or are on their way.
    fn grown(&self) -> u64 {
        self.count - self.request.count
    }

    /// Begins further streams, up to `count` in all and `places` new ones. The token of the link is
    /// `token`.
    fn dial(
        &mut self,
        token: u64,
        count: u64,
        places: u64,
        settings: &LinkSettings,
    ) -> Vec<Pending> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let key = self.request.key;
        let most = MAX_STREAMS.min(self.count + places);
        let count = count.min(most);
        let mut begun = Vec::new();
        while self.count < count {
            let joining = JoiningStream {
                token,
                key,
                number: self.count + 1,
            };
            let until = Instant::now() + CONNECTING_TIME;
            let Ok(pending) = Pending::growing(target, settings, joining, until) else {
                break;
            };
            begun.push(pending);
            self.count += 1;
        }
        begun
    }

    /// Adds a stream to `link`. The end that listens tells the dialler.
    ///
    /// # Errors
    /// [`LinkError`] if the stream comes to nothing.
    fn join(&mut self, link: &Link, number: u64, pending: Pending) -> Result<(), LinkError> {
        let key = self.request.key;
        if !self.is_dialled() {
            if self.count >= MAX_STREAMS {
                return Err(LinkError::Closed);
            }
            let frame = Frame::Join { key, number };
            send_whole(&pending.socket, &Header::from(&frame).encode())?;
        }
        link.add_stream(pending.into_stream(link.line()))?;
        self.count += u64::from(!self.is_dialled());
        Ok(())
    }
}

impl GrowingLinks {
    pub(super) fn insert(&mut self, token: u64, link: GrowingLink) {
        self.links.insert(token, link);
    }

    pub(super) fn contains(&self, token: u64) -> bool {
        self.links.contains_key(&token)
    }

    pub(super) fn remove(&mut self, token: u64) {
        self.links.remove(&token);
    }

    /// Notes that a stream on its way to the link with the token comes to nothing: it may be asked for again.
    pub(super) fn note_failed(&mut self, token: u64) {
        if let Some(link) = self.links.get_mut(&token) {
            link.count = link.count.saturating_sub(1).max(link.request.count);
        }
    }

    /// Whether the process has dialled the link with the token; `None` if the link does not grow.
    pub(super) fn is_dialled(&self, token: u64) -> Option<bool> {
        self.links.get(&token).map(GrowingLink::is_dialled)
    }

    /// Begins further streams of the link with the token, up to `count` in all, with these settings.
    pub(super) fn dial(&mut self, token: u64, count: u64, settings: &LinkSettings) -> Vec<Pending> {
        let places = self.places();
        let link = self.links.get_mut(&token);
        link.map(|link| link.dial(token, count, places, settings))
            .unwrap_or_default()
    }

    /// Adds a stream to `link`, whose token is `token`.
    ///
    /// # Errors
    /// [`LinkError`] if the stream comes to nothing.
    pub(super) fn join(
        &mut self,
        token: u64,
        link: &Link,
        number: u64,
        pending: Pending,
    ) -> Result<(), LinkError> {
        let places = self.places();
        let growing = self.links.get_mut(&token).ok_or(LinkError::Closed)?;
        if places == 0 && !growing.is_dialled() {
            return Err(LinkError::Closed);
        }
        growing.join(link, number, pending)
    }

    /// How many more streams the process takes: the program needs descriptors, too.
    fn places(&self) -> u64 {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let grown: u64 = self.links.values().map(GrowingLink::grown).sum();
        (limit / DESCRIPTORS_PER_STREAM / SHARE_OF_DESCRIPTORS).saturating_sub(grown)
    }

    /// The accepted link with `key`, if any.
    pub(super) fn by_key(&self, key: u64) -> Option<u64> {
        let mut links = self.links.iter();
        let found = links.find(|(_, link)| !link.is_dialled() && link.request.key == key);
        found.map(|(token, _)| *token)
    }
}
