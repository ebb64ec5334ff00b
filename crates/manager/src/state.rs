//! The manager as a pure state machine: events in, actions out, no I/O and no clock.
//!
//! [`Manager::handle`] takes one event and the time since the run began, and says what to do. Who reads sockets,
//! starts processes and keeps time is the shell in [`crate::session`]; so every race is a unit test. The parts:
//!
//! - `registry`: who may join, and what a newcomer is told;
//! - `watch`: processes, links and signs of life, and when something counts as a failure;
//! - `ending`: the first failure, the grace period, and when the run is over;
//! - `deadlock`: who waits for whom;
//! - `stall`: who waits for room while another polls.
//!
//! A run begins with every program being started, and ends when every instance is done and every process has
//! ended, or, once something has failed, when nothing is left.

mod deadlock;
mod ending;
mod fields;
mod registry;
mod stall;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::{ToManager, ToProgram};
use titin_wire::ranks::RankProcess;
use titin_wire::{Address, EndpointId};

use crate::event::{Action, Event, Exit, Level, Record};
use crate::plan::{ConduitId, InstanceId, PerInstance, Plan, Start};

pub(crate) use ending::SAME_WISH;
pub use ending::{Cause, Failure, Outcome};
pub use titin_wire::control::Progress;
pub use watch::Fault;

/// How many of an instance's last log records are kept for the report.
const RECENT: usize = 10;

/// The control plane of one run.
#[derive(Debug)]
pub struct Manager {
    plan: Arc<Plan>,
    /// This host's name, as programs report theirs.
    host: String,
    names: HashMap<String, InstanceId>,
    /// The conduit ends of each instance; `true` where it sends.
    ends: PerInstance<Vec<(ConduitId, bool)>>,
    /// The instances at the other ends, each once.
    peers: PerInstance<Vec<InstanceId>>,
    members: PerInstance<Member>,
    /// Those that are ours to start, but not yet.
    held: Vec<InstanceId>,
    links: BTreeMap<LinkId, Link>,
    waits: deadlock::Waits,
    stall: stall::Stall,
    course: ending::Course,
    next_beat: Duration,
    /// Programs that the guard has started.
    programs: HashSet<u32>,
    /// Before that time nobody counts as late; `None` if nobody is waited for.
    next_late: Option<Duration>,
    /// Before that time no doubt is due; `None` if there is none.
    next_doubt: Option<Duration>,
    /// All instances before this one are done.
    first_open: InstanceId,
    /// The first number that no conduit has.
    next_conduit: u32,
    /// Of conduits that carry fields, what is known of them.
    fields: HashMap<ConduitId, fields::Ends>,
    /// When the manager came back that could do nothing for a while, and for how long.
    away: Option<(Duration, Duration)>,
    now: Duration,
    actions: Vec<Action>,
}

/// What an instance has left out.
#[derive(Debug)]
struct LeftOut {
    /// The instances that wait for it in vain.
    peers: Vec<String>,
    /// The port that failures tell of that come of it; `None`: it may be any.
    port: Option<String>,
    text: String,
}

impl LeftOut {
    /// Whether an error of this instance that comes of a closed port comes of this.
    fn explains(&self, instance: &String, error: &str) -> bool {
        let tells_of = |port: &String| {
            let goes_on =
                |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            error
                .match_indices(port.as_str())
                .any(|(at, _)| !goes_on(&error[at + port.len()..]))
        };
        self.peers.contains(instance) && self.port.as_ref().is_none_or(tells_of)
    }
}

/// What is known about one instance.
#[derive(Debug)]
pub(crate) struct Member {
    process: Process,
    seat: Seat,
    /// When it was asked to start, or the run began if somebody else starts it.
    since: Duration,
    /// The process that has joined as it, if that is on this host.
    local: Option<u32>,
    /// Whether that process, which is not the one that the guard started, is watched, and has ended.
    watched: bool,
    gone: bool,
    /// Of a parallel program, the processes of the ranks from 1 on.
    ranks: Vec<RankProcess>,
    /// That of them, rank 0 included, which has ended first.
    first_gone: Option<(u32, u32)>,
    /// Which process was not let in as it, and why: that may end the one that was.
    refused: Option<String>,
    /// Its own error, and what that is an echo of.
    said: Option<(String, Echo)>,
    /// What it has left out.
    missed: Vec<LeftOut>,
    /// A failure unless something explains it before that time.
    doubt: Option<(Duration, Fault)>,
    /// How it failed: first, or as a consequence.
    fault: Option<Fault>,
    /// Whether we asked it to end.
    stopped: bool,
    /// Whether it asked to join when the run had failed already.
    too_late: bool,
    position: Option<Progress>,
    recent: VecDeque<String>,
}

/// What an instance's own error is an echo of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Of nothing: it is its own.
    Nothing,
    /// Of what these instances have ended, a port for instance, which may be well or since one of them fails.
    End(Vec<InstanceId>),
    /// Of the failure of another.
    Failure,
}

/// Where an instance's process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// Not ours to start.
    Foreign,
    /// Asked for.
    Starting,
    /// It runs.
    Running(u32),
    /// It has ended.
    Ended(Exit),
    /// It was never started, and will not be.
    Never,
    /// It was started, but nobody will tell how it ends.
    Unseen,
}

/// An instance's place in the run.
#[derive(Debug)]
pub(crate) enum Seat {
    /// Nobody has joined under this name.
    Empty,
    /// Somebody has.
    Taken(Joined),
    /// It has said that it is done.
    Done,
    /// Its link is gone without that, and why.
    Lost(String),
}

/// Who has joined as an instance.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    link: LinkId,
    endpoint: EndpointId,
    addresses: Vec<Address>,
    pid: u32,
    host: String,
    /// Names of its vector ports.
    vectors: HashSet<String>,
}

/// What is known about a control link.
#[derive(Debug)]
pub(crate) struct Link {
    heard: Duration,
    silent: bool,
    members: Vec<InstanceId>,
}

/// Where an instance stands, for those who look.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// In a word.
    pub phase: Phase,
    /// Its own account of where it is.
    pub position: Option<Progress>,
    /// The simulated time at which it ends, if known.
    pub end: Option<f64>,
}

/// Where an instance stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its program is being started, or has not joined yet.
    Starting,
    /// Somebody else has to start it.
    Awaited,
    /// It computes.
    Running,
    /// It waits for a peer.
    Waiting,
    /// It has said that it is done.
    Done,
    /// It has failed.
    Failed,
}

impl Phase {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Awaited => "awaited",
            Phase::Running => "running",
            Phase::Waiting => "waiting",
            Phase::Done => "done",
            Phase::Failed => "failed",
        }
    }
}

impl Manager {
    /// A run that has not begun.
    pub fn new(plan: Arc<Plan>, host: &str) -> Self {
        let count = plan.instances.len();
        let mut ends = PerInstance::make(count, |_| Vec::new());
        let mut peers = PerInstance::make(count, |_| Vec::new());
        for (id, conduit) in plan.numbered() {
            let (from, to) = (conduit.from.instance, conduit.to.instance);
            ends[from].push((id, true));
            ends[to].push((id, false));
            peers[from].push(to);
            peers[to].push(from);
        }
        for peers in peers.iter_mut() {
            let peers: &mut Vec<InstanceId> = peers;
            peers.sort_unstable();
            peers.dedup();
        }
        let next_conduit = plan.conduits.len() as u32;
        let names = plan
            .instances
            .ids()
            .map(|id| (plan.instances[id].name.clone(), id))
            .collect();
        let members = plan
            .instances
            .iter()
            .map(|planned| Member::new(&planned.start))
            .collect();
        Manager {
            plan,
            host: host.to_owned(),
            names,
            ends,
            peers,
            members,
            held: Vec::new(),
            links: BTreeMap::new(),
            waits: deadlock::Waits::default(),
            stall: stall::Stall::default(),
            course: ending::Course::Running,
            next_beat: Duration::ZERO,
            programs: HashSet::new(),
            next_late: None,
            next_doubt: None,
            first_open: InstanceId(0),
            next_conduit,
            fields: HashMap::new(),
            away: None,
            now: Duration::ZERO,
            actions: Vec::new(),
        }
    }

    /// Begins the run: every program that is ours to start is started.
    pub fn begin(&mut self, now: Duration) -> Vec<Action> {
        self.now = now;
        self.next_beat = now + self.beat();
        self.expect_somebody();
        for id in self.ids() {
            self.members[id].since = now;
            if self.members[id].process == Process::Starting {
                match self.depends_on_others(id) {
                    true => self.held.push(id),
                    false => self.actions.push(Action::Start(id)),
                }
            }
        }
        self.finish_if_over();
        std::mem::take(&mut self.actions)
    }

    /// Takes in what has happened and says what to do.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        self.now = self.now.max(now);
        if !self.is_over() {
            match event {
                Event::Opened(link) => self.opened(link),
                Event::Lost(link, why) => self.lost(link, &why),
                Event::Said(link, message) => self.said(link, *message),
                // A guard that is broken may name an instance that there is not.
                Event::Started(id, _) | Event::NotStarted(id, _) | Event::Ended(id, _)
                    if id.index() >= self.plan.instances.len() =>
                {
                    self.fail(Cause::Guard(format!(
                        "told of a program with number {}, which it was not to start",
                        id.0
                    )));
                }
                Event::Started(id, pid) => self.started(id, pid),
                Event::NotStarted(id, why) => self.not_started(id, Fault::NotStarted(why)),
                Event::NotStaged(id, why) => self.not_started(id, Fault::NotStaged(why)),
                Event::Spared(id) => self.spared(id),
                Event::Ended(id, exit) => self.ended(id, exit),
                Event::Watching(pid) => self.watching(pid),
                Event::Gone(pid) => self.gone(pid),
                Event::GuardLost(why) => self.guard_lost(why),
                Event::Interrupted(signal) => self.interrupted(signal),
                Event::Trouble(what) => self.fail(Cause::Trouble(what)),
                Event::Away(time) => self.away = Some((self.now, time)),
                Event::Tick => {}
            }
            self.tick();
            self.finish_if_over();
        }
        std::mem::take(&mut self.actions)
    }

    /// When to hand in [`Event::Tick`] if nothing happens before.
    pub fn deadline(&self) -> Duration {
        let (course, waits, stall) = (
            self.course.deadline(),
            self.waits.deadline(),
            self.stall.deadline(),
        );
        let all = [
            Some(self.next_beat),
            self.next_late,
            self.next_doubt,
            course,
            waits,
            stall,
        ];
        all.into_iter().flatten().min().unwrap_or(self.next_beat)
    }

    /// How the run ended; `None` as long as it goes on.
    pub fn outcome(&self) -> Option<Outcome<'_>> {
        self.course.outcome()
    }

    /// The plan that is being run.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Where each instance stands.
    pub fn standings(&self) -> Vec<Standing> {
        self.ids().map(|id| self.standing(id)).collect()
    }

    /// Buffers that were raised: the conduit, how often, and the limit in messages that it has now.
    pub fn raised(&self) -> impl Iterator<Item = (ConduitId, u64, u64)> {
        self.waits.raised()
    }

    /// The last lines that an instance logged.
    pub fn recent(&self, id: InstanceId) -> Vec<String> {
        self.members[id].recent.iter().cloned().collect()
    }

    /// The instances whose end an instance's own error is about, if it is about that.
    pub fn enders(&self, id: InstanceId) -> Vec<InstanceId> {
        match &self.members[id].said {
            Some((_, Echo::End(peers))) => peers.clone(),
            _ => Vec::new(),
        }
    }

    /// Whom the failure affected, and how; without those that failed first.
    pub fn affected(&self, culprits: &[InstanceId]) -> Vec<(InstanceId, String)> {
        let culprits: HashSet<InstanceId> = culprits.iter().copied().collect();
        let others = self.ids().filter(|id| !culprits.contains(id));
        others
            .filter_map(|id| Some((id, self.consequence(id)?)))
            .collect()
    }

    /// What a failure of another did to an instance, in a few words.
    fn consequence(&self, id: InstanceId) -> Option<String> {
        let member = &self.members[id];
        // How a process ended that ran several instances says nothing of how this one fared in it.
        let shared = self.shared_process(id);
        match (&member.fault, &member.seat, shared) {
            (None, Seat::Done, _) => None,
            (_, Seat::Empty, _) if member.too_late => None,
            (Some(Fault::AfterDone(_)), _, Some(_)) => None,
            (Some(Fault::BeforeJoining(exit)), _, Some(process)) => {
                Some(format!("had not joined yet when {process} {exit}"))
            }
            (Some(Fault::WithoutClosing(exit)), _, Some(process)) => {
                Some(format!("had not closed yet when {process} {exit}"))
            }
            (Some(Fault::Said(text)), ..) => {
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
            (Some(Fault::WithoutClosing(exit)), ..) => Some(exit.to_string()),
            (Some(fault), ..) => Some(fault.to_string()),
            (None, Seat::Empty, _) if member.process == Process::Never => {
                Some("was not started any more".to_owned())
            }
            (None, Seat::Empty, _) => Some("had not joined yet".to_owned()),
            (None, ..) => Some("was told to end".to_owned()),
        }
    }

    /// The process that an instance shares with others, in words.
    fn shared_process(&self, id: InstanceId) -> Option<String> {
        if let Some(host) = self
            .plan
            .hosting(id)
            .filter(|_| self.plan.sharers(id).len() > 1)
        {
            return Some(format!("host process {}", host.name));
        }
        let pid = self.members[id].local?;
        let others = self
            .ids()
            .filter(|other| *other != id && self.members[*other].local == Some(pid));
        let names = titin_model::listing(others.map(|other| self.name(other)));
        (!names.is_empty()).then(|| format!("its process, which ran {names} too,"))
    }

    /// How an instance's process ended, if it was ours and has.
    pub fn exit(&self, id: InstanceId) -> Option<Exit> {
        match self.members[id].process {
            Process::Ended(exit) => Some(exit),
            _ => None,
        }
    }

    fn standing(&self, id: InstanceId) -> Standing {
        let member = &self.members[id];
        let phase = match &member.seat {
            _ if member.fault.is_some() => Phase::Failed,
            Seat::Empty if member.process == Process::Foreign => Phase::Awaited,
            Seat::Empty => Phase::Starting,
            Seat::Taken(_) if self.waits.waits(id) => Phase::Waiting,
            Seat::Taken(_) => Phase::Running,
            Seat::Done => Phase::Done,
            Seat::Lost(_) => Phase::Failed,
        };
        let planned = &self.plan.instances[id];
        let told = member.position.as_ref().and_then(|position| position.end);
        let end = told.or(planned.end);
        Standing {
            name: planned.name.clone(),
            phase,
            position: member.position.clone(),
            end,
        }
    }

    fn said(&mut self, link: LinkId, message: ToManager) {
        match self.links.get_mut(&link) {
            Some(state) => (state.heard, state.silent) = (self.now, false),
            None => return,
        }
        let message = match message {
            ToManager::Heartbeat {} => return,
            ToManager::Register(registration) => return self.register(link, registration),
            other => other,
        };
        let name = match &message {
            ToManager::Waiting { instance, .. }
            | ToManager::Proceed { instance, .. }
            | ToManager::Counts { instance, .. }
            | ToManager::Log { instance, .. }
            | ToManager::Missed { instance, .. }
            | ToManager::Field { instance, .. }
            | ToManager::Failed { instance, .. }
            | ToManager::Done { instance } => instance,
            ToManager::Progress(progress) => &progress.instance,
            ToManager::Profile(profile) => &profile.instance,
            ToManager::Register(_) | ToManager::Heartbeat {} => {
                unreachable!("handled above")
            }
        };
        // A program speaks for the instances that it has joined as, and for nobody else.
        let Some(id) = self
            .names
            .get(name)
            .copied()
            .filter(|id| self.links[&link].members.contains(id))
        else {
            let text =
                format!("a program spoke for {name}, as which it has not joined; passed over");
            return self.log(Level::Warning, None, text);
        };
        match message {
            ToManager::Waiting { wait, on, .. } => self.waiting(id, wait, on),
            ToManager::Field { port, field, .. } => self.declared_field(id, &port, field),
            ToManager::Proceed { wait, .. } => self.waits.proceed(id, wait, self.now),
            ToManager::Counts {
                probe,
                wait,
                counts,
                polls,
                ..
            } => {
                self.counted(id, probe, wait, &counts);
                self.heard_poll(id, probe, polls);
            }
            ToManager::Progress(progress) => self.members[id].position = Some(progress),
            ToManager::Log {
                level,
                time,
                simulated,
                text,
                ..
            } => {
                self.remember(id, &text);
                let level = Level::from_number(level);
                self.actions.push(Action::Record(Record {
                    level,
                    instance: Some(id),
                    time: Some(time),
                    simulated,
                    text,
                }));
            }
            ToManager::Missed {
                peers, port, text, ..
            } => {
                self.members[id].missed.push(LeftOut { peers, port, text });
            }
            ToManager::Profile(profile) => self.actions.push(Action::Keep(Box::new(profile))),
            ToManager::Failed {
                text, echo, after, ..
            } => {
                let known =
                    |name: &String| self.names.get(name).copied().filter(|peer| *peer != id);
                let after: Vec<InstanceId> = after.iter().filter_map(known).collect();
                let echo = match (echo, after.is_empty()) {
                    (true, _) => Echo::Failure,
                    (false, true) => Echo::Nothing,
                    (false, false) => Echo::End(after),
                };
                self.failed(id, text, echo);
            }
            ToManager::Done { .. } => self.done(id),
            ToManager::Register(_) | ToManager::Heartbeat {} => {}
        }
    }

    fn remember(&mut self, id: InstanceId, text: &str) {
        let recent = &mut self.members[id].recent;
        for line in text.lines() {
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(line.to_owned());
        }
    }

    fn tick(&mut self) {
        self.settle_doubts();
        self.check_lateness();
        if self.now >= self.next_beat {
            self.next_beat = self.now + self.beat();
            self.beat_all();
        }
        self.search_deadlock();
        self.look_for_stalls();
        self.press_on();
    }

    /// Seconds between signs of life: three make the time after which a peer counts as lost.
    fn beat(&self) -> Duration {
        (self.plan.terms.heartbeat / 3).max(Duration::from_millis(1))
    }

    fn ids(&self) -> impl Iterator<Item = InstanceId> + use<> {
        self.plan.instances.ids()
    }

    fn name(&self, id: InstanceId) -> &str {
        &self.plan.instances[id].name
    }

    fn tell(&mut self, link: LinkId, message: ToProgram) {
        self.actions.push(Action::Tell(link, message));
    }

    fn log(&mut self, level: Level, instance: Option<InstanceId>, text: impl Into<String>) {
        self.actions.push(Action::Record(Record {
            instance,
            ..Record::of_manager(level, text.into())
        }));
    }
}

impl Member {
    fn new(start: &Start) -> Self {
        Member {
            process: if matches!(start, Start::Program(_)) {
                Process::Starting
            } else {
                Process::Foreign
            },
            seat: Seat::Empty,
            since: Duration::ZERO,
            local: None,
            watched: false,
            gone: false,
            ranks: Vec::new(),
            first_gone: None,
            refused: None,
            said: None,
            missed: Vec::new(),
            doubt: None,
            fault: None,
            stopped: false,
            too_late: false,
            position: None,
            recent: VecDeque::new(),
        }
    }

    fn joined(&self) -> Option<&Joined> {
        match &self.seat {
            Seat::Taken(joined) => Some(joined),
            _ => None,
        }
    }
}
