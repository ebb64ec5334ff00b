//! Addresses that are dialled: one after the other, and again and again for as long as it may take.
//!
//! A process that is starved of its core answers late, and one with too many connections hangs up. Neither says that
//! the address is wrong, so both are dialled again. What says so ends the matter for an address: that nobody listens
//! there, or somebody else does.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use titin_wire::frame::Frame;
use titin_wire::handshake::{Purpose, Refusal};
use titin_wire::{EndpointId, LinkSettings};

use crate::Lost;
use crate::tcp::settings;
use titin_os::{Descriptor, sockets};

/// What part of the whole time an address has to answer, before the next one is tried. It is longer in each round.
const SHARE: u32 = 30;

/// How long to wait before addresses are dialled again, at first and at most. It is longer in each round.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Where a process may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Tcp(SocketAddr),
    /// The file of a Unix socket, by which memory is shared.
    Shm(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => address.fmt(f),
            Target::Shm(path) => path.fmt(f),
        }
    }
}

/// A wish for a link, and addresses that may serve.
pub(super) struct Dialled {
    purpose: Purpose,
    tag: u128,
    /// Which process is to be there.
    meant: Option<EndpointId>,
    settings: LinkSettings,
    /// Further streams, once it is known how many.
    further: u64,
    key: u64,
    patience: Duration,
    until: Instant,
    /// How often it has paused before another try.
    rounds: u32,
    untried: VecDeque<Target>,
    /// Those to be tried again.
    again: VecDeque<Target>,
    /// The one that is being tried.
    trying: Option<Target>,
    /// Whether the last one shares memory, and hung up before it had proved itself.
    hung_up: bool,
    /// Each once.
    failures: Vec<Failure>,
}

/// Why an address did not serve.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    peer: Target,
    /// The stream that it was about, if not the first.
    stream: Option<u64>,
    why: Lost,
}

/// What to do next for a wish.
pub(super) enum Next {
    /// Wait for this connection.
    Connect(Descriptor, Attempt),
    /// Come back then.
    Pause(Instant, Dialled),
    /// Tell that there is no link, and why.
    Fail(u128, Lost),
}

/// One address that is being tried.
pub(super) struct Attempt {
    pub(super) dialled: Dialled,
    pub(super) deadline: Instant,
    /// Whether memory is to be shared.
    pub(super) shares: bool,
}

impl Dialled {
    pub(super) fn new(
        addresses: Vec<Target>,
        purpose: Purpose,
        tag: u128,
        meant: Option<EndpointId>,
        settings: LinkSettings,
        patience: Duration,
    ) -> Self {
        Dialled {
            purpose,
            tag,
            meant,
            settings,
            further: 0,
            key: EndpointId::random().0 as u64,
            patience,
            until: Instant::now() + patience,
            rounds: 0,
            untried: addresses.into(),
            again: VecDeque::new(),
            trying: None,
            hung_up: false,
            failures: Vec::new(),
        }
    }

    pub(super) fn tag(&self) -> u128 {
        self.tag
    }

    pub(super) fn meant(&self) -> Option<EndpointId> {
        self.meant
    }

    pub(super) fn settings(&self) -> LinkSettings {
        self.settings
    }

    /// When it is given up.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// What the connection that has come about is for; it took so long.
    pub(super) fn connected(&mut self, time: Duration) -> Purpose {
        let (Purpose::Data, Some(Target::Tcp(address))) = (self.purpose, &self.trying) else {
            return self.purpose;
        };
        self.further = settings::further(&self.settings, address, time);
        if self.further > 0 || self.settings.is_of_sockets() {
            Purpose::Streams
        } else {
            Purpose::Data
        }
    }

    /// What the link is to have beside its first stream.
    pub(super) fn wish(&self) -> Frame {
        self.settings.frame(self.key, self.further)
    }

    /// Begins one more connection to the address that is being tried.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(super) fn connect_further(&self) -> Result<Descriptor, Lost> {
        Ok(connect(
            self.trying.as_ref().ok_or(Lost::Closed)?,
            &self.settings,
        )?)
    }

    /// Notes that the address that is being tried did not serve; where that was about a further stream, its number. `proved`
    /// says whether the other end had proved itself.
    pub(super) fn fail(&mut self, stream: Option<u64>, why: Lost, proved: bool) {
        if let Some(peer) = self.trying.take() {
            self.hung_up = matches!(peer, Target::Shm(_)) && why == Lost::Closed && !proved;
            self.note(peer, stream, why);
        }
    }

    fn note(&mut self, peer: Target, stream: Option<u64>, why: Lost) {
        if matches!(why, Lost::Silent | Lost::Unanswered | Lost::Closed) {
            self.again.push_back(peer.clone());
        }
        let failure = Failure { peer, stream, why };
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Goes on with the next address.
    pub(super) fn next(mut self, now: Instant) -> Next {
        // A listener with too many connections hangs up, and has room in a moment. It has a share of the time, too.
        let waits = now < self.until - self.patience + self.patience / SHARE;
        if std::mem::take(&mut self.hung_up) && waits {
            self.again
                .pop_back()
                .into_iter()
                .for_each(|peer| self.untried.push_front(peer));
            return self.pause(now);
        }
        while let Some(peer) = self.untried.pop_front() {
            match connect(&peer, &self.settings) {
                Ok(socket) => {
                    // A process that listens at a file is there. To take the network instead would cost the whole run more than waiting.
                    let shares = matches!(peer, Target::Shm(_));
                    let share = if shares {
                        self.patience
                    } else {
                        self.patience / SHARE * (1 << self.rounds.min(8))
                    };
                    let deadline = self.until.min(now + share);
                    self.trying = Some(peer);
                    return Next::Connect(
                        socket,
                        Attempt {
                            dialled: self,
                            deadline,
                            shares,
                        },
                    );
                }
                // As many as may wait for the listener do so.
                Err(Errno::AGAIN) if now < self.until => {
                    self.untried.push_front(peer);
                    return self.pause(now);
                }
                Err(error) => self.note(peer, None, error.into()),
            }
        }
        if now >= self.until || self.again.is_empty() || self.refusal().is_some() {
            return Next::Fail(self.tag, self.verdict());
        }
        self.untried = std::mem::take(&mut self.again);
        self.pause(now)
    }

    fn pause(mut self, now: Instant) -> Next {
        let pause = LONGEST_PAUSE.min(PAUSE * (1 << self.rounds.min(8)));
        self.rounds += 1;
        Next::Pause(self.until.min(now + pause), self)
    }

    /// That a titin was there but refused, which says more than that others were not.
    fn refusal(&self) -> Option<&Lost> {
        let telling = |why: &&Lost| {
            matches!(
                why,
                Lost::Refused(Refusal::Secret | Refusal::Versions { .. })
            )
        };
        self.failures
            .iter()
            .map(|failure| &failure.why)
            .find(telling)
    }

    /// Why there is no link.
    fn verdict(self) -> Lost {
        if let Some(refused) = self.refusal() {
            return refused.clone();
        }
        let list: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        let list = list.join("; ");
        match self.again.is_empty() && self.untried.is_empty() {
            true => Lost::Unreachable(list),
            false => Lost::Late(format!("{list}; tried for {:.0?}", self.patience)),
        }
    }

    /// Why memory is not shared, although it was tried.
    pub(super) fn detour(&self) -> Option<String> {
        if matches!(self.trying, Some(Target::Shm(_))) {
            return None;
        }
        let tried = self
            .failures
            .iter()
            .find(|failure| matches!(failure.peer, Target::Shm(_)));
        tried.map(|Failure { peer, why, .. }| match why {
            why if *why == Lost::from(Errno::NOENT) => {
                "they do not share /dev/shm: the socket of the one there is not seen by the other"
                    .to_owned()
            }
            why => format!("memory cannot be shared by way of {peer}: {why}"),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.peer)?;
        if let Some(number) = self.stream {
            write!(f, "stream {number}: ")?;
        }
        self.why.fmt(f)
    }
}

fn connect(peer: &Target, wished: &LinkSettings) -> Result<Descriptor, Errno> {
    let peer = match peer {
        Target::Tcp(peer) => peer,
        Target::Shm(path) => return connect_local(path),
    };
    let family = if peer.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Descriptor::from(net::socket_with(family, SocketType::STREAM, flags, None)?);
    sockets::prepare_tcp(&socket);
    // Before the connection is made, since the two ends agree then on how large a window can be.
    settings::size(&socket, wished);
    match net::connect(&socket, peer) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn connect_local(path: &str) -> Result<Descriptor, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Descriptor::from(net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?);
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the next connection shares memory, after a pause if there is one.
    fn next(dialled: Dialled, now: Instant) -> (Dialled, bool, bool) {
        match dialled.next(now) {
            Next::Connect(_, attempt) => (attempt.dialled, false, attempt.shares),
            Next::Pause(until, dialled) => {
                let (dialled, _, shares) = next(dialled, until);
                (dialled, true, shares)
            }
            Next::Fail(_, why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_listener_that_hangs_up_is_dialled_again_before_the_network_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _local = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let network = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let targets = || {
            vec![
                Target::Shm(path.display().to_string()),
                Target::Tcp(network.local_addr().unwrap()),
            ]
        };
        let dial = || {
            let patience = Duration::from_secs(300);
            let dialled = Dialled::new(
                targets(),
                Purpose::Data,
                1,
                None,
                LinkSettings::default(),
                patience,
            );
            let (dialled, paused, shares) = next(dialled, Instant::now());
            assert!(shares && !paused);
            dialled
        };

        let mut dialled = dial();
        for _ in 0..5 {
            dialled.fail(None, Lost::Closed, false);
            let (again, paused, shares) = next(dialled, Instant::now());
            assert!(paused && shares, "it is dialled again");
            dialled = again;
        }
        let later = Instant::now() + Duration::from_secs(11);
        dialled.fail(None, Lost::Closed, false);
        let (dialled, _, shares) = next(dialled, later);
        assert!(!shares, "not for ever");
        assert!(
            dialled
                .detour()
                .unwrap()
                .contains("closed by the other end")
        );

        for (why, proved) in [(Lost::Closed, true), (Lost::System("no".into()), false)] {
            let mut dialled = dial();
            dialled.fail(None, why, proved);
            assert!(!next(dialled, Instant::now()).2, "memory cannot be shared");
        }
    }
}
