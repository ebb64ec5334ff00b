//! The place of this process in the tree of ranks of a parallel program, and the control messages
//! up and down the tree.
//!
//! For a rank but 0 the rank above stands for the manager: the process sends the rank above the
//! same messages, and gets the same messages. A rank passes messages of ranks below up, as far as
//! the manager is to know the messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use titin_os::host;
use titin_transport::{Link, LinkError, LinkId};
use titin_wire::control::{self, Peer, ToManager, ToProgram};
use titin_wire::ranks::{RankProcess, children, conduits, parent};
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings};

use super::outbox::Outbox;
use super::{Process, RouteMedium};
use crate::peer_names::{rank_name, written_process};
use crate::{Error, Kind, Result};

/// Where the process is in the tree of ranks.
pub(super) struct Branch {
    instance: String,
    rank: u32,
    above: Option<Neighbour>,
    below: Vec<Neighbour>,
    /// All ranks.
    roll: Vec<RankProcess>,
    /// The first number of the conduits between ranks, once known.
    first: Option<ConduitId>,
    /// When the ranks below were last told something.
    told: Instant,
}

/// A rank right above or below.
struct Neighbour {
    rank: u32,
    process: RankProcess,
    outbox: Outbox,
    heard: Instant,
}

impl Neighbour {
    fn new(rank: u32, process: &RankProcess) -> Self {
        Neighbour {
            rank,
            process: process.clone(),
            outbox: Outbox::default(),
            heard: Instant::now(),
        }
    }

    /// The rank as a peer of this process.
    fn as_peer(&self, instance: &str) -> Peer {
        Peer {
            instance: rank_name(instance, self.rank),
            endpoint: self.process.endpoint,
            addresses: self.process.addresses.clone(),
            ranks: Vec::new(),
        }
    }

    fn is_at(&self, link: LinkId) -> bool {
        self.outbox.is_at(link)
    }
}

impl Branch {
    pub(super) fn is_of(&self, instance: &str) -> bool {
        self.instance == instance
    }

    /// The process of a rank of the same instance, and the addresses of the process.
    pub(super) fn place_of(&self, rank: u32) -> Option<(EndpointId, &[Address])> {
        let process = self.roll.get(rank as usize)?;
        Some((process.endpoint, &process.addresses))
    }

    fn neighbours(&mut self) -> impl Iterator<Item = &mut Neighbour> {
        self.above.iter_mut().chain(&mut self.below)
    }

    /// Rank 0 of two ranks, of which the other was last heard at the time `heard`.
    #[cfg(test)]
    pub(super) fn with_a_rank_below(heard: Instant) -> Self {
        let process = RankProcess {
            endpoint: EndpointId(1),
            addresses: Vec::new(),
            pid: 1,
            host: String::new(),
        };
        let mut below = Neighbour::new(1, &process);
        below.heard = heard;
        Branch {
            instance: "a".to_owned(),
            rank: 0,
            above: None,
            below: vec![below],
            roll: vec![process.clone(), process],
            first: None,
            told: heard,
        }
    }

    /// When the process last heard each of its neighbours.
    pub(super) fn times_heard(&mut self) -> impl Iterator<Item = &mut Instant> {
        self.neighbours().map(|neighbour| &mut neighbour.heard)
    }

    fn tell_below(&mut self, body: &[u8]) {
        self.below
            .iter_mut()
            .for_each(|below| below.outbox.tell(body));
        self.told = Instant::now();
    }
}

impl Process {
    /// The id and addresses of this process, for the other ranks.
    pub(crate) fn place(&self) -> RankProcess {
        RankProcess {
            endpoint: self.id,
            addresses: self.addresses.get().cloned().unwrap_or_default(),
            pid: std::process::id(),
            host: host::name(),
        }
    }

    /// Takes the place of a rank in the tree of an instance, and dials the neighbours.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the process is a rank of another instance already.
    pub(crate) fn join_tree(&self, instance: &str, rank: u32, roll: &[RankProcess]) -> Result<()> {
        let mut state = self.lock();
        if let Some(branch) = &state.branch {
            let text = format!(
                "this process is rank {} of {} already: it can be a rank of one parallel instance only",
                branch.rank, branch.instance
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let neighbour = |rank: u32| Neighbour::new(rank, &roll[rank as usize]);
        let mut branch = Branch {
            instance: instance.to_owned(),
            rank,
            above: parent(rank).map(neighbour),
            below: children(rank, roll.len() as u32).map(neighbour).collect(),
            roll: roll.to_vec(),
            first: None,
            told: Instant::now(),
        };
        let mut dials = Vec::new();
        for neighbour in branch.neighbours() {
            let peer = neighbour.as_peer(instance);
            let (name, settings) = (peer.instance.clone(), LinkSettings::default());
            state.routes.want(&name, RouteMedium::Best, settings);
            state.routes.found(peer);
            dials.extend(self.reach(&mut state, &name));
        }
        // Faster neighbours have reached this process already.
        let there = |neighbour: &mut Neighbour| {
            let name = rank_name(instance, neighbour.rank);
            let (_, link) = state.routes.links(&name).next()?;
            Some((neighbour.process.endpoint, link.clone()))
        };
        let there: Vec<_> = branch.neighbours().filter_map(there).collect();
        state.branch = Some(branch);
        drop(state);
        there
            .iter()
            .for_each(|(endpoint, link)| self.met(*endpoint, link));
        self.dial(dials);
        Ok(())
    }

    /// Notes the first number of the conduits between ranks.
    pub(crate) fn number_tree(&self, first: ConduitId) {
        if let Some(branch) = &mut self.lock().branch {
            branch.first = Some(first);
        }
    }

    /// A link to a process is there. The tree says whether the process is a neighbour.
    pub(super) fn met(&self, endpoint: EndpointId, link: &Arc<Link>) {
        let mut state = self.lock();
        let Some(branch) = &mut state.branch else {
            return;
        };
        let Some(neighbour) = branch
            .neighbours()
            .find(|it| it.process.endpoint == endpoint)
        else {
            return;
        };
        neighbour.outbox.open(link);
        neighbour.heard = Instant::now();
        if branch
            .above
            .as_ref()
            .is_some_and(|above| above.is_at(link.id()))
        {
            drop(state);
            self.hear(link);
        }
    }

    /// Takes in a message of a rank below. False if the link leads to no rank below.
    pub(super) fn told_by_rank(&self, link: LinkId, body: &[u8]) -> bool {
        let mut state = self.lock();
        let Some(branch) = &mut state.branch else {
            return false;
        };
        let Some(below) = branch.below.iter_mut().find(|below| below.is_at(link)) else {
            return false;
        };
        below.heard = Instant::now();
        let who = below.rank;
        drop(state);
        match control::decode::<ToManager>(body) {
            // Other messages are about rank 0 alone.
            Ok(message @ (ToManager::Failed { .. } | ToManager::Log { .. })) => self.tell(&message),
            Ok(_) => {}
            Err(error) => {
                let text =
                    format!("rank {who} sent what this release of titin cannot read: {error}");
                self.fail(Error::new(Kind::Connection, text));
            }
        }
        true
    }

    /// Passes a message of the manager on to the ranks below, if the message is for all ranks.
    pub(super) fn pass_down(&self, message: &ToProgram, body: &[u8]) {
        use ToProgram::{Field, Finished, MemberFailed, Peers, Refused, Registered, RunFailed};
        if let Registered(_)
        | Refused { .. }
        | Peers { .. }
        | Field { .. }
        | Finished { .. }
        | MemberFailed { .. }
        | RunFailed { .. } = message
            && let Some(branch) = &mut self.lock().branch
        {
            branch.tell_below(body);
        }
    }

    /// Tells the ranks below that the run is over, if the manager cannot.
    pub(super) fn fail_below(&self, error: &Error) {
        let mut state = self.lock();
        let Some(branch) = &mut state.branch else {
            return;
        };
        let culprit = format!("rank {} of {}", branch.rank, branch.instance);
        let (text, deadlock) = (error.text.clone(), false);
        branch.tell_below(&control::encode(&ToProgram::RunFailed {
            culprit,
            text,
            deadlock,
        }));
    }

    /// A link is lost. Fails the run if the link led to a rank that has not closed.
    pub(super) fn lost_rank(&self, link: LinkId, why: &LinkError) {
        self.miss(
            |neighbour| neighbour.is_at(link),
            &format!("its connection is lost: {why}"),
        );
    }

    /// A process cannot be reached. Fails the run if the process is a neighbour's.
    pub(super) fn missed_rank(&self, endpoint: EndpointId, why: &LinkError) {
        self.miss(
            |neighbour| neighbour.process.endpoint == endpoint,
            &format!("it cannot be reached: {why}"),
        );
    }

    fn miss(&self, is_it: impl Fn(&Neighbour) -> bool, why: &str) {
        let mut state = self.lock();
        let Some(branch) = &mut state.branch else {
            return;
        };
        let (own, instance, first) = (branch.rank, branch.instance.clone(), branch.first);
        let Some(lost) = branch.neighbours().find(|neighbour| is_it(neighbour)) else {
            return;
        };
        let (rank, process) = (lost.rank, lost.process.clone());
        let is_open =
            state.instances.contains_key(&instance) || state.join_requests.contains_key(&instance);
        drop(state);
        // A rank that has closed may go.
        let has_closed = first.is_some_and(|first| self.has_closed(rank, own, first));
        if !is_open || has_closed || self.has_failed() {
            return;
        }
        let text = format!(
            "{} has gone without closing the instance: {why}",
            written_process(rank, &process)
        );
        if rank < own {
            self.fail(Error::new(
                Kind::PeerLost,
                format!("the run has failed because of {instance}: {text}"),
            ));
        } else {
            self.tell(&ToManager::Failed {
                instance,
                text,
                echo: false,
                after: Vec::new(),
            });
        }
    }

    /// Whether a neighbour has closed: the stream from the neighbour has ended. `first` is the first
    /// number of the conduits between ranks.
    fn has_closed(&self, rank: u32, own: u32, first: ConduitId) -> bool {
        let (down, up) = conduits(first, rank.max(own));
        let from_neighbour = if rank < own { down } else { up };
        self.exchange.inbox(from_neighbour).ended()
    }

    /// Sends heartbeats to the ranks below, and looks for ranks below without heartbeats.
    pub(super) fn beat_below(&self, heartbeat: Duration) {
        let mut state = self.lock();
        let Some(branch) = &mut state.branch else {
            return;
        };
        if branch.told.elapsed() >= heartbeat {
            branch.tell_below(&control::encode(&ToProgram::Heartbeat {}));
        }
        // On this host the link breaks when the process ends. A stopped process may go on later, so
        // silence means nothing here.
        let here = host::name();
        let is_silent = |below: &&Neighbour| {
            below.process.host != here && below.heard.elapsed() > 3 * heartbeat
        };
        let silent = branch
            .below
            .iter()
            .find(is_silent)
            .map(|below| below.process.endpoint);
        drop(state);
        if let Some(endpoint) = silent {
            let why = format!(
                "nothing was heard of it for {:.1} s",
                (3 * heartbeat).as_secs_f64()
            );
            self.miss(|neighbour| neighbour.process.endpoint == endpoint, &why);
        }
    }

    /// For a rank that fails: waits until the links to the ranks below are there. Then the ranks
    /// below hear of the failure, if only by the loss of the link. A rank not yet dialled would
    /// wait.
    pub(crate) fn await_below(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let start = Instant::now();
        let is_missing = || {
            let mut state = self.lock();
            state
                .branch
                .as_mut()
                .is_some_and(|branch| branch.below.iter().any(|below| !below.outbox.is_open()))
        };
        while is_missing() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether this process is of a rank but 0, and so has no link to the manager.
    pub(super) fn is_below(&self) -> bool {
        self.lock()
            .branch
            .as_ref()
            .is_some_and(|branch| branch.above.is_some())
    }

    /// Whether heartbeats are not needed: the rank above is on this host, so the link breaks when
    /// the process of the rank above ends.
    pub(super) fn is_watched_by_link(&self) -> bool {
        let state = self.lock();
        let above = state
            .branch
            .as_ref()
            .and_then(|branch| branch.above.as_ref());
        above.is_some_and(|above| above.process.host == host::name())
    }
}
