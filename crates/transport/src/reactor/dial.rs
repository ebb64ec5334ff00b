//! Dialling: addresses are tried one after the other, and again and again while there is time.
//!
//! A process that is short of cores answers late, and a process with too many connections hangs up.
//! In neither case is the address wrong, so both are dialled again. An address is given up when no
//! process listens there, or another program does.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use titin_os::Descriptor;
use titin_wire::frame::Frame;
use titin_wire::handshake::{Purpose, Refusal};
use titin_wire::{EndpointId, LinkSettings};

use crate::error::LinkError;
use crate::medium::{DialTarget, SocketMedium};

/// An address has a `SHARE`-th of the whole time for an answer before the next is tried. The share
/// grows with each round.
const SHARE: u32 = 30;

/// The first pause before addresses are dialled again, and the longest. The pause grows with each
/// round.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A place to dial, and the medium.
#[derive(Clone)]
pub(super) struct Target {
    medium: Arc<dyn SocketMedium>,
    place: Arc<dyn DialTarget>,
}

impl Target {
    pub(super) fn new(medium: Arc<dyn SocketMedium>, place: Arc<dyn DialTarget>) -> Self {
        Target { medium, place }
    }

    pub(super) fn medium(&self) -> &Arc<dyn SocketMedium> {
        &self.medium
    }

    /// Begins a connection.
    ///
    /// # Errors
    /// If the system refuses the connection.
    pub(super) fn connect(&self, settings: &LinkSettings) -> Result<Descriptor, LinkError> {
        Ok(self.place.connect(settings)?)
    }
}

/// A request for a link, and the places that may serve.
pub(super) struct Dialling {
    purpose: Purpose,
    tag: u128,
    /// The process that is to answer, if known.
    expected: Option<EndpointId>,
    settings: LinkSettings,
    /// Further streams, once their number is known.
    further: u64,
    key: u64,
    patience: Duration,
    until: Instant,
    /// The number of pauses so far.
    rounds: u32,
    untried: VecDeque<Target>,
    /// Targets to try again.
    again: VecDeque<Target>,
    current: Option<Target>,
    /// Whether the last target is of the same host, and hung up before a proof.
    hung_up: bool,
    /// Without repetitions.
    failures: Vec<DialFailure>,
}

/// Why a target did not serve.
struct DialFailure {
    target: Target,
    /// The failed stream, if a further stream failed.
    stream: Option<u64>,
    why: LinkError,
}

/// The next step for a request.
pub(super) enum DialStep {
    /// Wait for the connection.
    Connect(Descriptor, Connecting),
    /// Go on at the given time.
    Pause(Instant, Dialling),
    /// Report the failure, and why there is no link.
    Fail(u128, LinkError),
}

/// A target under trial.
pub(super) struct Connecting {
    pub(super) dialling: Dialling,
    pub(super) deadline: Instant,
    pub(super) medium: Arc<dyn SocketMedium>,
}

impl Dialling {
    pub(super) fn new(
        targets: Vec<Target>,
        purpose: Purpose,
        tag: u128,
        expected: Option<EndpointId>,
        settings: LinkSettings,
        patience: Duration,
    ) -> Self {
        Dialling {
            purpose,
            tag,
            expected,
            settings,
            further: 0,
            key: EndpointId::random().0 as u64,
            patience,
            until: Instant::now() + patience,
            rounds: 0,
            untried: targets.into(),
            again: VecDeque::new(),
            current: None,
            hung_up: false,
            failures: Vec::new(),
        }
    }

    pub(super) fn tag(&self) -> u128 {
        self.tag
    }

    pub(super) fn expected(&self) -> Option<EndpointId> {
        self.expected
    }

    pub(super) fn settings(&self) -> LinkSettings {
        self.settings
    }

    /// When the request is given up.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Notes a made connection, after `time`. Returns the purpose of the connection.
    pub(super) fn connected(&mut self, time: Duration) -> Purpose {
        if self.purpose != Purpose::Data {
            return self.purpose;
        }
        let further = self
            .current
            .as_ref()
            .and_then(|target| target.place.further_streams(&self.settings, time));
        let Some(further) = further else {
            return self.purpose;
        };
        self.further = further;
        if further > 0 || self.settings.is_of_sockets() || self.settings.takes_streams {
            Purpose::Streams
        } else {
            Purpose::Data
        }
    }

    /// The frame that asks for the further streams of the link.
    pub(super) fn streams_frame(&self) -> Frame {
        self.settings.frame(self.key, self.further)
    }

    /// The current target.
    pub(super) fn target(&self) -> Option<&Target> {
        self.current.as_ref()
    }

    /// Notes a failure of the current target, because of the further stream `stream` if given.
    /// `proved` says whether the other end had proved itself.
    pub(super) fn fail(&mut self, stream: Option<u64>, why: LinkError, proved: bool) {
        if let Some(target) = self.current.take() {
            self.hung_up = target.place.is_on_this_host() && why == LinkError::Closed && !proved;
            self.note(target, stream, why);
        }
    }

    fn note(&mut self, target: Target, stream: Option<u64>, why: LinkError) {
        if matches!(
            why,
            LinkError::Silent | LinkError::Unanswered | LinkError::Hindered(_) | LinkError::Closed
        ) {
            self.again.push_back(target.clone());
        }
        let failure = DialFailure {
            target,
            stream,
            why,
        };
        let text = failure.to_string();
        if !self.failures.iter().any(|known| known.to_string() == text) {
            self.failures.push(failure);
        }
    }

    /// Goes on with the next target.
    pub(super) fn next(mut self, now: Instant) -> DialStep {
        // A listener with too many connections hangs up, and has room in a moment.
        let share_is_left = now < self.until - self.patience + self.patience / SHARE;
        if std::mem::take(&mut self.hung_up) && share_is_left {
            self.again
                .pop_back()
                .into_iter()
                .for_each(|target| self.untried.push_front(target));
            return self.pause(now);
        }
        while let Some(target) = self.untried.pop_front() {
            match target.place.connect(&self.settings) {
                Ok(socket) => return self.wait_for(target, socket, now),
                // The listener's queue is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < self.until => {
                    self.untried.push_front(target);
                    return self.pause(now);
                }
                Err(error) => self.note(target, None, error.into()),
            }
        }
        if now >= self.until || self.again.is_empty() || self.refusal().is_some() {
            return DialStep::Fail(self.tag, self.verdict());
        }
        self.untried = std::mem::take(&mut self.again);
        self.pause(now)
    }

    fn wait_for(mut self, target: Target, socket: Descriptor, now: Instant) -> DialStep {
        // A process that listens on the same host is there. The network would cost the whole run
        // more than a wait for the process does.
        let is_last_resort = target.place.is_patient() && self.untried.is_empty();
        let share = if target.place.is_on_this_host() || is_last_resort {
            self.patience
        } else {
            self.patience / SHARE * (1 << self.rounds.min(8))
        };
        let medium = target.medium.clone();
        self.current = Some(target);
        let connecting = Connecting {
            deadline: self.until.min(now + share),
            dialling: self,
            medium,
        };
        DialStep::Connect(socket, connecting)
    }

    fn pause(mut self, now: Instant) -> DialStep {
        let pause = LONGEST_PAUSE.min(PAUSE * (1 << self.rounds.min(8)));
        self.rounds += 1;
        DialStep::Pause(self.until.min(now + pause), self)
    }

    /// The refusal by a titin, if there was one. A refusal says more than the other failures.
    fn refusal(&self) -> Option<&LinkError> {
        let is_refusal = |why: &&LinkError| {
            matches!(
                why,
                LinkError::Refused(Refusal::Secret | Refusal::Versions { .. })
            )
        };
        self.failures
            .iter()
            .map(|failure| &failure.why)
            .find(is_refusal)
    }

    /// Why there is no link.
    fn verdict(self) -> LinkError {
        if let Some(refused) = self.refusal() {
            return refused.clone();
        }
        let list: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        let list = list.join("; ");
        match self.again.is_empty() && self.untried.is_empty() {
            true => LinkError::Unreachable(list),
            false => LinkError::Late(format!("{list}; tried for {:.0?}", self.patience)),
        }
    }

    /// Why there is no link yet. `current` says why the current target, if there is one, has not
    /// answered, and by which further stream.
    pub(super) fn obstacles(&self, current: Option<(Option<u64>, &LinkError)>) -> String {
        let mut list: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        if let (Some(target), Some((stream, why))) = (&self.current, current) {
            let text = failure_text(target, stream, why);
            if !list.contains(&text) {
                list.push(text);
            }
        }
        list.join("; ")
    }

    /// Why the link does not use a better medium, although a better medium was tried.
    pub(super) fn detour(&self) -> Option<String> {
        if matches!(&self.current, Some(target) if target.place.is_on_this_host()) {
            return None;
        }
        self.failures
            .iter()
            .find_map(|failure| failure.target.place.detour(&failure.why))
    }
}

impl fmt::Display for DialFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&failure_text(&self.target, self.stream, &self.why))
    }
}

fn failure_text(target: &Target, stream: Option<u64>, why: &LinkError) -> String {
    let stream = stream.map_or_else(String::new, |number| format!("stream {number}: "));
    format!("{}: {stream}{why}", target.place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Medium;
    use crate::shm::ShmMedium;
    use crate::tcp::TcpMedium;
    use titin_wire::Address;

    /// The next connection, whether there was a pause before, and whether the connection shares
    /// memory.
    fn next(dialling: Dialling, now: Instant) -> (Dialling, bool, bool) {
        match dialling.next(now) {
            DialStep::Connect(_, connecting) => {
                let shares = connecting.medium.medium() == Medium::Shm;
                (connecting.dialling, false, shares)
            }
            DialStep::Pause(until, dialling) => {
                let (dialling, _, shares) = next(dialling, until);
                (dialling, true, shares)
            }
            DialStep::Fail(_, why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_listener_that_hangs_up_is_dialled_again_before_the_network_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _local = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let network = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = |medium: Arc<dyn SocketMedium>, address| {
            let place = medium.targets(&address).remove(0);
            Target::new(medium, place)
        };
        let port = network.local_addr().unwrap().port();
        let targets = || {
            vec![
                target(
                    Arc::new(ShmMedium),
                    Address::Shm(path.display().to_string()),
                ),
                target(Arc::new(TcpMedium), Address::Tcp("127.0.0.1".into(), port)),
            ]
        };
        let dial = || {
            let patience = Duration::from_secs(300);
            let dialling = Dialling::new(
                targets(),
                Purpose::Data,
                1,
                None,
                LinkSettings::default(),
                patience,
            );
            let (dialling, paused, shares) = next(dialling, Instant::now());
            assert!(shares && !paused);
            dialling
        };

        let mut dialling = dial();
        for _ in 0..5 {
            dialling.fail(None, LinkError::Closed, false);
            let (again, paused, shares) = next(dialling, Instant::now());
            assert!(paused && shares, "it is dialled again");
            dialling = again;
        }
        let later = Instant::now() + Duration::from_secs(11);
        dialling.fail(None, LinkError::Closed, false);
        let (dialling, _, shares) = next(dialling, later);
        assert!(!shares, "not for ever");
        assert!(
            dialling
                .detour()
                .unwrap()
                .contains("closed by the other end")
        );

        for (why, proved) in [
            (LinkError::Closed, true),
            (LinkError::System("no".into()), false),
        ] {
            let mut dialling = dial();
            dialling.fail(None, why, proved);
            assert!(!next(dialling, Instant::now()).2, "memory cannot be shared");
        }
    }
}
