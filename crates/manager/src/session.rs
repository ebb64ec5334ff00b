//! The session of a run: one loop that hands events to the state machine and carries out the
//! actions.
//!
//! One thread owns everything here. The other threads only send events: the thread of the reactor
//! (links), of the guard, of the process watcher, of the starter, and the thread that turns signals
//! into interrupts. A run begins in `open` and ends in `end`; `results` copies the results.

mod clock;
mod end;
mod end_wait;
mod host_files;
mod hosts;
mod open;
mod results;
mod site;
mod tokens;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use titin_transport::{Link, LinkError, LinkId, Reactor, TokenConnection};
use titin_wire::connection::Connection;
use titin_wire::control::{self, ToProgram};
use titin_wire::token::TokenRequest;

use crate::agent::{AgentGroup, AgentOrder, AgentReport, Agents};
use crate::directory::{ConnectionFile, DirectoryError, RunDirectory};
use crate::event::{Exit, Level, LogRecord, RunAction, RunEvent};
use crate::guard::{Guard, GuardReport};
use crate::host::{HostId, ProcessId};
use crate::log::{self, Log};
use crate::manual_start::{ManualStart, instructions};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, StartMode};
use crate::process_watcher::ProcessWatcher;
use crate::profile::Recorder;
use crate::starter::Starter;
use crate::state::{InstanceStatus, Manager};

use clock::RunClock;
pub use end::{END_VERSION, EnsembleResult, InstanceResult, MemberResult, RunEnd};
use end_wait::SILENCE;
use host_files::HostFiles;
pub use open::{SessionError, SessionSetup};
use site::HomeSite;
use titin_transport::AdmissionNews;
pub use titin_transport::HomeRelay;
use tokens::Tokens;

/// A view of the run for the user. All calls come from the session's thread, and should return
/// soon.
pub trait RunView {
    /// The run has begun in the directory.
    fn begun(&mut self, directory: &RunDirectory, plan: &Plan);
    /// The user is to start programs. `text` says which programs, and how.
    fn manual_starts(&mut self, text: &str);
    /// The log has a new line.
    fn log_line(&mut self, level: Level, line: &str);
    /// Shows the state of the instances. The session calls `show` in intervals, and once at the
    /// end.
    fn show(&mut self, elapsed: Duration, statuses: &[InstanceStatus]);
    /// Shows what the run waits for at its end, a line for each host. The session calls this in
    /// the same intervals, after the last call of [`RunView::show`].
    fn show_wait(&mut self, lines: &[String]);
    /// The interval between two calls of [`RunView::show`]; `None` if the view wants only the last
    /// call.
    fn interval(&self) -> Option<Duration>;
}

/// An event from another thread for the loop.
enum SessionEvent {
    LinkOpened(Arc<Link>),
    Agent(Arc<Link>, AgentReport),
    /// The link of an agent is lost, for the given reason.
    AgentLost(LinkId, LinkError),
    /// The relay of the manager's site has news of the admission of the run.
    Admission(AdmissionNews),
    /// What the relay of the manager's site knows of the way to a silent host, in words.
    RelayAnswered(HostId, String),
    /// An agent has dialled with a token of this number, whose key is not known, or no longer.
    UnknownToken(u64),
    /// An agent with a token asks for the way to the run.
    Asked(TokenRequest, Box<TokenConnection>),
    /// The command that starts the agents of a group of hosts runs.
    LauncherStarted {
        group: usize,
    },
    /// The command that starts the agents of a group of hosts has ended.
    LauncherEnded {
        group: usize,
        end: LauncherEnd,
    },
    /// An event for the state machine.
    Run(RunEvent),
    /// A program for the user to start is prepared.
    Manual(Box<ManualStart>),
    /// A message cannot be read, for a reason in words.
    UnreadableMessage(LinkId, String),
    /// The guard of a host has ended all processes: leftovers, and processes that could not be ended.
    Swept {
        host: HostId,
        left: Vec<String>,
        stuck: Vec<String>,
    },
    GuardEnded,
    /// The user had stopped this process and the programs, for the given time.
    Paused(Duration),
}

impl SessionEvent {
    /// The event of a report from the guard of a host.
    fn of_report(host: HostId, report: GuardReport) -> Self {
        SessionEvent::Run(match report {
            GuardReport::Started { id, pid } => {
                RunEvent::ProcessStarted(InstanceId(id), ProcessId { host, pid })
            }
            GuardReport::NotStarted { id, why } => RunEvent::StartFailed(InstanceId(id), why),
            GuardReport::Ended { id, exit } => RunEvent::ProcessEnded(InstanceId(id), exit),
            GuardReport::Swept { left, stuck } => {
                return SessionEvent::Swept { host, left, stuck };
            }
        })
    }
}

/// The end of a command that starts agents.
enum LauncherEnd {
    /// The command could not be started, for the given reason.
    NotStarted(String),
    /// The command has ended.
    Ended(Exit),
}

/// Ends or pauses a run from another thread.
#[derive(Clone)]
pub struct Interrupter {
    sender: Sender<SessionEvent>,
    guard: Arc<Guard>,
    agents: Arc<Agents>,
}

impl Interrupter {
    /// Ends the run by the user's wish. `signal` names the user's signal. A second call ends the
    /// run at once.
    pub fn interrupt(&self, signal: &str) {
        let event = RunEvent::Interrupted(signal.to_owned());
        let _ = self.sender.send(SessionEvent::Run(event));
    }

    /// Stops the run for a while, as by Ctrl-Z. `stop` stops this process, and returns when the
    /// process goes on. The programs are stopped too, or they would take the manager's silence for
    /// its end.
    pub fn pause(&self, stop: impl FnOnce()) {
        let begun = Instant::now();
        self.guard.pause();
        self.agents.order_all(&AgentOrder::Pause);
        stop();
        self.guard.resume();
        self.agents.order_all(&AgentOrder::Resume);
        let _ = self.sender.send(SessionEvent::Paused(begun.elapsed()));
    }
}

/// A run, from its directory to its end.
pub struct Session {
    plan: Arc<Plan>,
    directory: RunDirectory,
    /// The path of the command `titin`.
    titin: PathBuf,
    /// The process with the hosted instances.
    hosting: Option<u32>,
    /// The placement, once all hosts are known.
    placement: Arc<OnceLock<Placement>>,
    /// The system name of the manager's host.
    system_name: String,
    agents: Arc<Agents>,
    /// The commands that start the agents.
    groups: Vec<AgentGroup>,
    /// The commands that run, by the place in `groups`.
    launchers: BTreeSet<usize>,
    host_files: HostFiles,
    /// The hosts whose agents have said that they end early.
    leaving: BTreeSet<HostId>,
    /// Why relays do not take the run over, do not pass it on, or cannot, in words.
    refusals: Vec<String>,
    /// How often the user was told of such a reason.
    told_refusals: usize,
    /// The hosts that did not answer any more, in words.
    unreached: Vec<String>,
    /// Whether the run ends, so that no agent comes any more.
    is_ending: bool,
    /// Whether an interrupt has ended the run. A second interrupt at once counts as the same.
    is_interrupted: bool,
    /// Whether the user has ended the wait for other hosts at the end of the run.
    is_ended_by_user: bool,
    /// The cores of each host for the run, by [`HostId`]; `None` before the agent has reported.
    host_cores: Vec<Option<Vec<u32>>>,
    /// Whether programs on other hosts may join.
    is_reached: bool,
    /// When the command began. The command reads the description before the session begins.
    asked: Instant,
    begun: Instant,
    log: Log,
    /// Why the log cannot be written any more.
    log_trouble: Option<String>,
    connection: ConnectionFile,
    /// What the connection file says.
    way_to_manager: Connection,
    /// The tokens for the agents that the user starts.
    tokens: Tokens,
    /// The site of the manager, if the run has hosts at other sites.
    site: Option<HomeSite>,
    guard_lives: bool,
    guard: Arc<Guard>,
    starter: Starter,
    reactor: Arc<Reactor>,
    watcher: ProcessWatcher,
    recorder: Recorder,
    links: HashMap<LinkId, Arc<Link>>,
    sender: Sender<SessionEvent>,
    receiver: Receiver<SessionEvent>,
    /// The prepared programs for the user to start. The user is told when all are prepared.
    manual_starts: Vec<ManualStart>,
    unprepared_manual_starts: usize,
}

impl Session {
    /// The path by which programs find the run: the value of `TITIN_MANAGER`.
    pub fn location(&self) -> &Path {
        self.connection.path()
    }

    /// A handle for other threads, to end or pause the run.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter {
            sender: self.sender.clone(),
            guard: self.guard.clone(),
            agents: self.agents.clone(),
        }
    }

    /// Runs to the end, good or bad. At the end only the directory is left of the run.
    pub fn run(mut self, view: &mut dyn RunView) -> RunEnd {
        let hosts = self.plan.hosts.iter().map(|host| host.name.as_str());
        let mut manager = Manager::new(self.plan.clone(), &self.system_name).with_hosts(hosts);
        view.begun(&self.directory, &self.plan);
        self.say(Level::Info, self.title(), view);
        let site = self.site.as_ref();
        let warnings = site.map(|site| site.warnings(&self.plan));
        for text in warnings.into_iter().flatten() {
            self.say(Level::Warning, text, view);
        }
        self.watch_calling_process();
        self.start_agents(view);
        self.place_if_known(view);
        let mut clock = RunClock::new(self.begun);
        let actions = manager.begin(clock.now());
        let mut over = self.act(actions, view);
        let after = |now: Duration, view: &dyn RunView| Some(now + view.interval()?);
        let mut next_show = after(clock.now(), view);
        while !over {
            let deadline = manager.deadline();
            let until = next_show.map_or(deadline, |show| show.min(deadline));
            for event in self.next_events(&mut clock, until, view) {
                over |= self.handle(&mut manager, clock.now(), event, view);
            }
            let now = clock.now();
            if next_show.is_some_and(|show| show <= now) {
                view.show(now, &manager.instance_statuses());
                next_show = after(now, view);
            }
        }
        view.show(clock.now(), &manager.instance_statuses());
        self.end(&manager, view)
    }

    /// Waits for an event, at most until `until`, and returns the events for the state machine.
    fn next_events(
        &mut self,
        clock: &mut RunClock,
        until: Duration,
        view: &mut dyn RunView,
    ) -> impl Iterator<Item = RunEvent> + use<> {
        let remaining = until.saturating_sub(clock.now());
        let received = self.receiver.recv_timeout(remaining);
        let suspended = clock.woken(until);
        suspended.inspect(|time| self.tokens.postpone(*time));
        let suspended = suspended.map(RunEvent::Suspended);
        let event = match received {
            Ok(event) => self.take_in(event, view),
            Err(RecvTimeoutError::Timeout) => Some(RunEvent::Tick),
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the session holds a sender itself")
            }
        };
        suspended.into_iter().chain(event)
    }

    /// Hands an event to the state machine, and carries out the actions. True when the run is over.
    fn handle(
        &mut self,
        manager: &mut Manager,
        now: Duration,
        event: RunEvent,
        view: &mut dyn RunView,
    ) -> bool {
        let is_guard_lost = matches!(event, RunEvent::HostLost(HostId::MANAGER, _));
        let actions = manager.handle(now, event);
        let over = self.act(actions, view);
        if is_guard_lost {
            self.end_orphans(view);
        }
        over
    }

    /// Takes in an event of another thread. Returns an event for the state machine, if there is
    /// one.
    fn take_in(&mut self, event: SessionEvent, view: &mut dyn RunView) -> Option<RunEvent> {
        match event {
            SessionEvent::LinkOpened(link) => {
                let id = link.id();
                self.links.insert(id, link);
                Some(RunEvent::LinkOpened(id))
            }
            SessionEvent::Run(RunEvent::LinkLost(id, why)) => {
                self.links.remove(&id);
                Some(RunEvent::LinkLost(id, why))
            }
            SessionEvent::Run(event) => Some(event),
            SessionEvent::Manual(prepared) => {
                self.manual_start_prepared(*prepared, view);
                None
            }
            SessionEvent::UnreadableMessage(id, why) => {
                self.links.remove(&id)?.close();
                Some(RunEvent::LinkLost(id, why))
            }
            SessionEvent::Paused(time) => {
                let text = format!(
                    "was stopped for {:.1} s, and its programs with it",
                    time.as_secs_f64()
                );
                self.say(Level::Info, text, view);
                None
            }
            SessionEvent::Agent(link, report) => self.take_in_report(&link, report, view),
            SessionEvent::AgentLost(link, why) => self.agent_lost(link, &why),
            SessionEvent::RelayAnswered(host, text) => {
                // The host may be back.
                if self.agents.silence(host) >= SILENCE {
                    self.say(Level::Warning, text, view);
                }
                None
            }
            SessionEvent::Admission(AdmissionNews::Refused(refusals)) => {
                self.note_refusals(refusals, view);
                None
            }
            SessionEvent::Admission(AdmissionNews::Again(away)) => {
                // The relay tells them anew.
                self.refusals.clear();
                let text = format!(
                    "the relay of this site has admitted the run again, after {:.1} s",
                    away.as_secs_f64()
                );
                self.say(Level::Info, text, view);
                None
            }
            SessionEvent::UnknownToken(number) => {
                self.unknown_token(number, view);
                None
            }
            SessionEvent::Asked(request, connection) => {
                self.answer_agent(&request, *connection, view);
                None
            }
            SessionEvent::LauncherEnded { group, end } => self.launcher_ended(group, &end, view),
            SessionEvent::LauncherStarted { group } => {
                self.launchers.insert(group);
                None
            }
            SessionEvent::Swept { host, left, stuck } => {
                self.log_leftovers(host, &left, &stuck, view);
                None
            }
            SessionEvent::GuardEnded => {
                self.guard_lives = false;
                None
            }
        }
    }

    /// Carries out actions of the state machine. True when the run is over.
    fn act(&mut self, actions: Vec<RunAction>, view: &mut dyn RunView) -> bool {
        let mut over = false;
        for action in actions {
            match action {
                RunAction::Send(id, message) => self.send(id, message),
                RunAction::CloseLink(id) => self.close_link(id),
                RunAction::StartProgram(id) => self.starter.start(id),
                RunAction::StopStarting => self.starter.stop(),
                RunAction::HostHeartbeat(host) => self.agents.order(host, &AgentOrder::Heartbeat),
                RunAction::CloseHost(host) => self.close_silent_agent(host),
                RunAction::TellMissingHosts(hosts) => self.tell_missing_hosts(&hosts, view),
                RunAction::AskRelay(host) => self.ask_relay(host),
                RunAction::Signal(id, signal) => self.signal(id, signal),
                RunAction::SignalProcess(process, signal) => self.signal_process(process, signal),
                RunAction::WatchProcess(process) => self.watch(process),
                RunAction::Record(record) => self.record(&record, view),
                RunAction::RecordCause(record) => {
                    self.write(&record, view);
                }
                RunAction::StoreProfile(profile) => self.recorder.keep(profile),
                RunAction::Finish => over = true,
            }
        }
        over
    }

    fn send(&self, id: LinkId, mut message: ToProgram) {
        if let ToProgram::Registered(welcome) = &mut message {
            welcome.time = Some(log::now());
        }
        if let Some(link) = self.links.get(&id) {
            link.tell(&control::encode(&message));
        }
    }

    /// Has the relay of the manager's site asked for the way to a host at another site.
    fn ask_relay(&self, host: HostId) {
        if let (Some(own), Some(site)) = (&self.site, self.plan.other_site(host)) {
            let sender = self.sender.clone();
            own.ask_about_line(site, move |text| {
                drop(sender.send(SessionEvent::RelayAnswered(host, text)))
            });
        }
    }

    fn close_link(&mut self, id: LinkId) {
        if let Some(link) = self.links.remove(&id) {
            link.close();
        }
    }

    /// Orders the starter to prepare the programs that the user starts.
    fn prepare_manual_starts(&mut self) {
        let instances = &self.plan.instances;
        let is_manual = |id: &InstanceId| matches!(instances[*id].start, StartMode::Manual(_));
        for id in instances.ids().filter(is_manual) {
            self.starter.start(id);
            self.unprepared_manual_starts += 1;
        }
    }

    /// A program for the user to start is prepared. The user is told of all such programs at once.
    fn manual_start_prepared(&mut self, prepared: ManualStart, view: &mut dyn RunView) {
        self.manual_starts.push(prepared);
        self.unprepared_manual_starts -= 1;
        if self.unprepared_manual_starts == 0 {
            view.manual_starts(&instructions(&std::mem::take(&mut self.manual_starts)));
        }
    }

    /// Writes to the log, and shows the line.
    fn record(&mut self, record: &LogRecord, view: &mut dyn RunView) {
        if let Some(line) = self.write(record, view) {
            view.log_line(record.level, &line);
        }
    }

    /// Writes to the log, and returns the line. If the log cannot be written, the run fails, and
    /// the view is told once.
    fn write(&mut self, record: &LogRecord, view: &mut dyn RunView) -> Option<String> {
        if self.log_trouble.is_some() {
            return None;
        }
        let error = match self.log.write(record) {
            Ok(line) => return Some(line),
            Err(source) => DirectoryError::Write {
                path: self.directory.log(),
                source,
            },
        };
        let trouble = error.to_string();
        self.log_trouble = Some(trouble.clone());
        view.log_line(Level::Error, &trouble);
        let event = RunEvent::ManagerFailed(trouble);
        let _ = self.sender.send(SessionEvent::Run(event));
        None
    }

    fn say(&mut self, level: Level, text: String, view: &mut dyn RunView) {
        self.record(&LogRecord::of_manager(level, text), view);
    }

    fn title(&self) -> String {
        let counted = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        format!(
            "titin {} runs {}: {}, {}, on {}",
            env!("CARGO_PKG_VERSION"),
            self.plan.model,
            counted(self.plan.instances.len(), "instance"),
            counted(self.plan.conduits.len(), "conduit"),
            self.system_name
        )
    }

    /// Watches the process with the hosted instances. Without the process the instances cannot go
    /// on.
    fn watch_calling_process(&self) {
        let Some(pid) = self.hosting else { return };
        if !self.watcher.watch(pid) {
            let text = format!("process {pid}, which had begun the run, has ended");
            let event = RunEvent::ManagerFailed(text);
            let _ = self.sender.send(SessionEvent::Run(event));
        }
    }
}
