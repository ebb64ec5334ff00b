//! The agent's own process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getpid, set_child_subreaper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use titin_os::{folder_lock, host};
use titin_transport::{Handler, Link, LinkError, Reactor, own_addresses};
use titin_wire::connection::{Connection, MEETING_PLACES, SiteAccess, meeting_place};
use titin_wire::control;
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::{Address, EndpointId, HostNetwork, LinkSettings};

use super::input::hint_if_unreachable;
use super::own_files::{OUTPUT_INTERVAL, OwnFiles, RestProgress};
use super::{AgentHello, AgentInput, AgentOrder, AgentReport, LeavingReason, ProgramOrder};
use crate::cores::cores;
use crate::directory::write_connection_file;
use crate::event::signal_name;
use crate::guard::{Guard, GuardEvent, GuardReport, Leftovers, SWEEP_TIME};
use crate::launch::{LaunchContext, environment, prepare_with_files};
use crate::plan::InstanceId;
use crate::process_tree;
use crate::process_watcher::{self, ProcessWatcher};

/// The tag of the manager's link.
const MANAGER: u128 = 0;

/// After this time without a link an agent says why there is none.
const FIRST_WORD: Duration = Duration::from_secs(3);

/// How often an agent looks for a reason why there is no link.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The most time that an agent which gives up leaves to the manager.
const MOST_LEFT: Duration = Duration::from_secs(3);

/// The setup of an agent.
#[derive(Debug)]
pub struct AgentSetup {
    /// How to find the manager, and the run directory.
    pub input: AgentInput,
    /// The name of the host in the description, or in the batch system; `None` for the system's name.
    pub host: Option<String>,
    /// The path of the command `titin` on this host.
    pub titin: PathBuf,
    /// Tells the user something, in the output of the agent.
    pub tell: fn(&str),
}

/// Why an agent has not begun, or has ended before the end of the run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempt.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The manager cannot be reached.
    #[error("{why}. {hint}")]
    Unreachable {
        /// Why there is no link.
        why: String,
        /// What to look at, in questions.
        hint: String,
    },
    /// The manager has refused the agent.
    #[error("the manager does not let this agent in: {0}")]
    Refused(String),
    /// The manager is gone, in the given way.
    #[error("the manager is gone ({how}); the programs on this host were ended{}", kept_text(.kept.as_deref()))]
    ManagerGone {
        /// How the manager has gone.
        how: String,
        /// The folder of the run on this host, if the files did not go to the manager.
        kept: Option<PathBuf>,
    },
    /// Files of this host could not be copied to the run directory.
    #[error("not all files of this host could be copied to the run directory: {why}; the programs on this host were ended{}", kept_text(.kept.as_deref()))]
    FilesNotCopied {
        /// What failed.
        why: String,
        /// The folder of the run on this host.
        kept: Option<PathBuf>,
    },
    /// The manager is not reached yet, and nobody reads the output of the agent any more.
    #[error("the command that has started this agent has ended, before the manager was reached")]
    Unheard,
    /// The agent cannot go on, in the given way.
    #[error("the agent {0}; the programs on this host were ended")]
    Left(String),
}

/// The end of a text about files that have stayed on this host.
fn kept_text(folder: Option<&Path>) -> String {
    let text = |folder: &Path| format!(", and their files stay in {}", folder.display());
    folder.map_or_else(String::new, text)
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::System { what, source }
}

/// An event for the agent.
enum AgentEvent {
    Opened(Arc<Link>),
    Order(AgentOrder),
    /// The link to the manager is lost, for the given reason.
    Lost(String),
    /// There is no link to the manager yet, for the given reason.
    Hindered(String),
    /// The link to the manager could not be made, for the given reason.
    Unreachable(LinkError),
    Guard(GuardEvent),
    /// A watched process has ended.
    Gone(u32),
    Signal(i32),
}

/// Runs an agent until the run is over, or the manager is gone. At the end no program of the run is
/// left on this host.
///
/// # Errors
/// [`AgentError`] if the agent cannot begin, or has ended before the end of the run.
pub fn serve(setup: AgentSetup) -> Result<(), AgentError> {
    let (sender, events) = channel();
    set_child_subreaper(Some(getpid())).map_err(|error| system("adopt orphans")(error.into()))?;
    forward_signals(sender.clone()).map_err(system("listen to signals"))?;
    let secret = setup.input.connection.secret.clone();
    let made = UsedFolder::enter(scratch_folder());
    let scratch = made.map_err(system("make a folder in /dev/shm"))?;
    // Without a meeting place, programs of this host use the network.
    let meeting_place = UsedFolder::enter(meeting_place(&secret)).ok();
    let connection = scratch.path.join("connection.json");
    let handler = Arc::new(LinkHandler(sender.clone()));
    let reactor =
        Reactor::start(secret, handler).map_err(system("start the thread for sockets"))?;
    let leftovers = Leftovers {
        // The connection file is in the scratch folder. The folders that it names are the manager's.
        connection: None,
        own: &scratch.path,
        shared: meeting_place.as_ref().map(|folder| folder.path.as_path()),
    };
    if let Some(access) = &setup.input.connection.site {
        reactor.reach_sites(access);
    }
    let guard = start_guard(&setup.titin, &leftovers, sender.clone())?;
    let gone = move |pid| drop(sender.send(AgentEvent::Gone(pid)));
    let watcher = ProcessWatcher::start(gone).map_err(system("watch processes"))?;
    dial(&reactor, &setup.input)?;
    let patience = setup.input.connection.patience() + SWEEP_TIME;
    let site = setup.input.connection.site.as_ref();
    let session_patience = site.map_or(Duration::ZERO, SiteAccess::patience);
    let agent = Agent {
        shares_files: setup.input.shares_files(),
        setup,
        connection,
        scratch: scratch.path.clone(),
        env: environment(),
        guard,
        guard_lives: true,
        watcher,
        link: None,
        dialling: DiallingReport::begin(),
        // The welcome has the limit of the run.
        silence: SilenceLimit::of(patience),
        own_files: None,
    };
    let result = agent.run(&events);
    match &result {
        // The manager has not acknowledged the last reports.
        Ok(()) => reactor.stop_within(session_patience),
        Err(_) => reactor.stop(),
    }
    result
}

/// A folder in memory for the connection file and for temporary files of programs.
fn scratch_folder() -> PathBuf {
    let id = EndpointId::random().0;
    Path::new("/dev/shm").join(format!("{MEETING_PLACES}agent-{id:032x}"))
}

/// A folder that this process uses. The last process that uses the folder removes it.
struct UsedFolder {
    path: PathBuf,
    /// `None` once the folder is let go.
    lock: Option<File>,
}

impl UsedFolder {
    fn enter(path: PathBuf) -> io::Result<Self> {
        let lock = folder_lock::enter(&path, MEETING_PLACES)?;
        Ok(UsedFolder {
            path,
            lock: Some(lock),
        })
    }
}

impl Drop for UsedFolder {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            folder_lock::leave(&self.path, lock);
        }
    }
}

fn forward_signals(sender: Sender<AgentEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let forward = move || {
        for signal in signals.forever() {
            let _ = sender.send(AgentEvent::Signal(signal));
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(forward).map(drop)
}

/// Starts the guard of this host.
fn start_guard(
    titin: &Path,
    leftovers: &Leftovers<'_>,
    sender: Sender<AgentEvent>,
) -> Result<Guard, AgentError> {
    let log = io::stderr().as_fd().try_clone_to_owned();
    let log = log.map_err(system("copy standard error"))?;
    let report = move |event| drop(sender.send(AgentEvent::Guard(event)));
    let guard = Guard::start(titin.as_os_str(), leftovers, log.into(), report);
    guard.map_err(system("start the guard"))
}

fn dial(reactor: &Reactor, input: &AgentInput) -> Result<(), AgentError> {
    let dialled = reactor.dial(
        &input.connection.addresses,
        Purpose::Agent,
        MANAGER,
        None,
        LinkSettings::default(),
        dialling_time(input.connection.patience()),
    );
    dialled.map_err(|why| unreachable(input, &why))
}

/// The manager that the input of an agent names cannot be reached.
fn unreachable(input: &AgentInput, why: &LinkError) -> AgentError {
    let AgentInput { connection, .. } = input;
    let is_relayed = |address: &Address| address.site().is_some();
    let site = connection.site.as_ref();
    let site = site.filter(|_| connection.addresses.iter().any(is_relayed));
    let relay = site.map(|site| site.relay.as_str());
    AgentError::Unreachable {
        why: why.to_string(),
        hint: hint_if_unreachable(&connection.addresses, relay),
    }
}

/// Whether nobody can read the standard error of this process any more: the connection of the `ssh` that has
/// started it has ended.
fn is_output_closed() -> bool {
    let errors = io::stderr();
    let mut polled = [PollFd::new(&errors, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let is_polled = poll(&mut polled, Some(&at_once)).is_ok();
    is_polled
        && polled[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::HUP)
}

/// How long an agent tries to reach a manager that waits for `patience`: less, so that the report of
/// the run has what the agent says at last.
fn dialling_time(patience: Duration) -> Duration {
    patience.saturating_sub(MOST_LEFT.min(patience / 4))
}

/// What an agent says as long as there is no link to the manager.
struct DiallingReport {
    begun: Instant,
    /// What was said.
    said: Vec<String>,
}

impl DiallingReport {
    fn begin() -> Self {
        DiallingReport {
            begun: Instant::now(),
            said: Vec::new(),
        }
    }

    /// What to say of a reason why there is no link after `time`: each reason once, after a while.
    fn hindered(&mut self, why: String, time: Duration) -> Option<String> {
        if time < FIRST_WORD || why.is_empty() || self.said.contains(&why) {
            return None;
        }
        let text = format!("the manager is not reached yet: {why}");
        self.said.push(why);
        Some(text)
    }

    /// What to say of a link after `time`, if a reason was said why there was none.
    fn reached(&self, time: Duration) -> Option<String> {
        let is_awaited = !self.said.is_empty();
        is_awaited.then(|| format!("the manager is reached after {:.0} s", time.as_secs_f64()))
    }
}

/// An agent that serves.
struct Agent {
    setup: AgentSetup,
    /// Whether this host has the run directory.
    shares_files: bool,
    /// The connection file for programs of this host.
    connection: PathBuf,
    scratch: PathBuf,
    env: BTreeMap<String, String>,
    guard: Guard,
    guard_lives: bool,
    watcher: ProcessWatcher,
    link: Option<Arc<Link>>,
    dialling: DiallingReport,
    /// The limit for the silence of the manager.
    silence: SilenceLimit,
    /// The files of the programs, on a host without the run directory.
    own_files: Option<OwnFiles>,
}

/// A limit for the silence of the manager.
struct SilenceLimit {
    longest: Duration,
    last_heard: Instant,
    /// Whether the run is paused. The manager is silent then.
    paused: bool,
}

impl SilenceLimit {
    fn of(longest: Duration) -> Self {
        SilenceLimit {
            longest,
            last_heard: Instant::now(),
            paused: false,
        }
    }

    /// The time until the manager counts as gone; `None` during a pause.
    fn remaining(&self) -> Option<Duration> {
        let left = self.longest.saturating_sub(self.last_heard.elapsed());
        (!self.paused).then_some(left)
    }
}

/// The reason why an agent ends.
enum Ending {
    /// The run is over.
    Finished,
    /// The agent ends before the end of the run.
    Early(LeavingReason),
    /// There is no link to the manager any more, or the manager has refused the agent.
    Cut(AgentError),
}

impl Agent {
    fn run(mut self, events: &Receiver<AgentEvent>) -> Result<(), AgentError> {
        let ending = loop {
            let remaining = self.silence.remaining();
            let event = match remaining.into_iter().chain(self.output_interval()).min() {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => events.recv_timeout(wait),
            };
            let ending = match event {
                Ok(event) => self.handle(event),
                Err(_) if self.silence.remaining().is_some_and(|left| left.is_zero()) => {
                    let longest = self.silence.longest.as_secs_f64();
                    Some(Ending::Early(LeavingReason::SilentManager(longest)))
                }
                Err(_) => None,
            };
            if let Some(ending) = ending {
                break ending;
            }
            self.report_output();
        };
        if let Ending::Early(reason) = &ending {
            self.report(&AgentReport::Leaving(reason.clone()));
        }
        let is_linked = !matches!(ending, Ending::Cut(_));
        let lost = self.dismiss_guard(events);
        let kept = self.hand_over_files(events, is_linked && lost.is_none());
        if let Some(link) = &self.link {
            link.close();
        }
        match (ending, lost) {
            (Ending::Finished, None) if kept.is_none() => Ok(()),
            (Ending::Finished, Some(how)) => Err(AgentError::ManagerGone { how, kept }),
            (Ending::Finished, None) => Err(self.files_not_taken(kept)),
            (Ending::Early(reason @ LeavingReason::SilentManager(_)), _) => {
                let how = reason.to_string();
                Err(AgentError::ManagerGone { how, kept })
            }
            (Ending::Early(reason), _) => Err(AgentError::Left(reason.to_string())),
            (Ending::Cut(AgentError::ManagerGone { how, .. }), _) => {
                Err(AgentError::ManagerGone { how, kept })
            }
            (Ending::Cut(error), _) => Err(error),
        }
    }

    /// Why the manager does not have all files at the end of the run.
    fn files_not_taken(&self, kept: Option<PathBuf>) -> AgentError {
        let files = self.own_files.as_ref();
        match files.and_then(OwnFiles::copy_fault) {
            Some(why) => AgentError::FilesNotCopied {
                why: why.to_owned(),
                kept,
            },
            None => AgentError::ManagerGone {
                how: "it has not taken all files".to_owned(),
                kept,
            },
        }
    }

    fn handle(&mut self, event: AgentEvent) -> Option<Ending> {
        match event {
            AgentEvent::Opened(link) => {
                self.link = Some(link);
                let text = self.dialling.reached(self.dialling.begun.elapsed());
                self.tell(text);
                self.report(&AgentReport::Ready(self.hello()));
                None
            }
            AgentEvent::Order(order) => {
                self.silence.last_heard = Instant::now();
                self.obey(order)
            }
            AgentEvent::Lost(why) => Some(manager_gone(why)),
            AgentEvent::Hindered(_) if is_output_closed() => Some(Ending::Cut(AgentError::Unheard)),
            AgentEvent::Hindered(why) => {
                let text = self.dialling.hindered(why, self.dialling.begun.elapsed());
                self.tell(text);
                None
            }
            AgentEvent::Unreachable(why) => Some(Ending::Cut(unreachable(&self.setup.input, &why))),
            AgentEvent::Guard(event) => self.pass_on(event).map(trouble),
            AgentEvent::Gone(pid) => {
                self.report(&AgentReport::Gone { pid });
                None
            }
            AgentEvent::Signal(number) => {
                let name = signal_name(number).unwrap_or("a signal").to_owned();
                Some(Ending::Early(LeavingReason::Signal(name)))
            }
        }
    }

    /// Tells the user something, if there is something to tell.
    fn tell(&self, text: Option<String>) {
        if let Some(text) = text {
            (self.setup.tell)(&text);
        }
    }

    fn hello(&self) -> AgentHello {
        AgentHello {
            host: self.setup.host.clone().unwrap_or_else(host::name),
            system_name: host::name(),
            cores: cores(),
            shares_files: self.shares_files,
            release: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn obey(&mut self, order: AgentOrder) -> Option<Ending> {
        match order {
            AgentOrder::Welcome {
                heartbeat,
                folder,
                network,
            } => {
                let longest = Duration::try_from_secs_f64(heartbeat);
                self.silence = SilenceLimit::of(longest.unwrap_or(Duration::MAX));
                let prepared = self.prepare(folder.as_deref(), network);
                return prepared.err().map(trouble);
            }
            AgentOrder::Refused { text } => return Some(Ending::Cut(AgentError::Refused(text))),
            AgentOrder::Heartbeat => self.report(&AgentReport::Heartbeat),
            AgentOrder::File(piece) => {
                if let Some(files) = &mut self.own_files {
                    files.write(&piece);
                }
                self.report(&AgentReport::FileTaken { size: piece.size() });
            }
            AgentOrder::FileTaken { size, fault } => self.acknowledged(size, fault),
            AgentOrder::Start(program) => self.start(&program),
            AgentOrder::Signal { id, signal } => self.guard.signal(InstanceId(id), signal),
            AgentOrder::Watch { pid } => self.watch(pid),
            AgentOrder::SignalProcess { pid, signal } => {
                process_tree::signal(pid, signal.number());
            }
            AgentOrder::Pause => {
                self.guard.pause();
                self.silence.paused = true;
            }
            AgentOrder::Resume => {
                self.guard.resume();
                self.silence.paused = false;
            }
            AgentOrder::Finish => return Some(Ending::Finished),
        }
        None
    }

    /// Prepares this host for programs: the connection file, and the folder for files if the host does not
    /// have the run directory.
    ///
    /// # Errors
    /// Why no program can run here, in words behind "the agent".
    fn prepare(
        &mut self,
        folder: Option<&Path>,
        network: Option<HostNetwork>,
    ) -> Result<(), String> {
        let connection = &mut self.setup.input.connection;
        if let Some(network) = &network {
            check_network(network, connection)?;
        }
        connection.network = network;
        write_connection_file(&self.connection, connection)
            .map_err(|error| format!("cannot write the connection file: {error}"))?;
        if !self.shares_files {
            let files = OwnFiles::make(folder).map_err(|error| error.to_string())?;
            let folder = files.folder().to_owned();
            self.report(&AgentReport::FilesAt { folder });
            self.own_files = Some(files);
        }
        Ok(())
    }

    /// Has the guard start a program.
    fn start(&mut self, order: &ProgramOrder) {
        let root = match &mut self.own_files {
            None => self.setup.input.run_directory.join("instances"),
            Some(files) => {
                if let Err(why) = files.begin(&order.folder) {
                    return self.not_started(order, why);
                }
                files.root()
            }
        };
        let folder = root.join(&order.folder);
        let context = LaunchContext {
            env: &self.env,
            connection: &self.connection,
            titin: self.setup.titin.as_os_str(),
            directory: &folder,
            cores: &order.cores,
            crowded: order.crowded,
            temporary: Some(&self.scratch),
            // The manager's host runs the launchers of a job.
            job_parts: &[],
        };
        match prepare_with_files(&order.instance, &order.program, &context) {
            Ok(prepared) => self.guard.launch(InstanceId(order.id), prepared.launch),
            Err(error) => self.not_started(order, error.to_string()),
        }
    }

    fn not_started(&self, order: &ProgramOrder, why: String) {
        let report = GuardReport::NotStarted { id: order.id, why };
        self.report(&AgentReport::Guard(report));
    }

    /// Watches a process of this run.
    fn watch(&self, pid: u32) {
        if process_watcher::is_ours(pid, &self.connection) && self.watcher.watch(pid) {
            self.report(&AgentReport::Watched { pid });
        }
    }

    /// Passes a report of the guard on to the manager. Returns the trouble, in words, if the guard has
    /// ended too soon.
    fn pass_on(&mut self, event: GuardEvent) -> Option<String> {
        match event {
            GuardEvent::Report(report) => self.report(&AgentReport::Guard(report)),
            GuardEvent::Lost(how) => {
                self.guard_lives = false;
                let (left, stuck) = process_tree::end_orphans();
                self.report(&AgentReport::Guard(GuardReport::Swept { left, stuck }));
                return Some(format!("had a guard that {how}"));
            }
            // The signal has reached the agent, too.
            GuardEvent::Interrupted(_) => {}
            GuardEvent::Ended => self.guard_lives = false,
        }
        None
    }

    /// Has the guard end all processes, and waits until the guard has ended. Returns how the link to the
    /// manager was lost meanwhile, if it was.
    fn dismiss_guard(&mut self, events: &Receiver<AgentEvent>) -> Option<String> {
        let mut lost = None;
        self.guard.finish();
        let until = Instant::now() + SWEEP_TIME;
        while self.guard_lives {
            let remaining = until.saturating_duration_since(Instant::now());
            match events.recv_timeout(remaining) {
                Ok(AgentEvent::Guard(event)) => drop(self.pass_on(event)),
                Ok(AgentEvent::Order(AgentOrder::FileTaken { size, fault })) => {
                    self.acknowledged(size, fault);
                }
                Ok(AgentEvent::Order(AgentOrder::Heartbeat)) => {
                    self.report(&AgentReport::Heartbeat);
                }
                Ok(AgentEvent::Lost(why)) => lost = Some(why),
                Ok(_) => {}
                Err(_) => {
                    // The guard does not answer.
                    self.guard.kill();
                    process_tree::end_orphans();
                    break;
                }
            }
        }
        lost
    }

    /// The manager has acknowledged bytes of files.
    fn acknowledged(&mut self, size: u64, fault: Option<String>) {
        if let Some(files) = &mut self.own_files {
            files.acknowledged(size, fault);
        }
    }

    /// How often to look for new output of programs; `None` if the host has the run directory.
    fn output_interval(&self) -> Option<Duration> {
        self.own_files.as_ref().map(|_| OUTPUT_INTERVAL)
    }

    fn report_output(&mut self) {
        if let (Some(files), Some(link)) = (&mut self.own_files, &self.link) {
            files.report_output(|report| link.tell(&control::encode(&report)));
        }
    }

    /// Hands over all files of programs to the manager, if the host does not have the run directory.
    /// Returns the folder of the files if they stay on this host, because the manager is gone or does not
    /// take them.
    fn hand_over_files(
        &mut self,
        events: &Receiver<AgentEvent>,
        is_manager_there: bool,
    ) -> Option<PathBuf> {
        let (files, link) = (self.own_files.as_mut()?, self.link.as_ref()?);
        let site = self.setup.input.connection.site.as_ref();
        let cut = site.map_or(Duration::ZERO, SiteAccess::patience);
        let usual = Some(SWEEP_TIME.saturating_add(cut));
        let kept = Some(files.folder().to_owned());
        if !is_manager_there {
            return kept;
        }
        let mut rest = files.rest();
        let send = |report| link.tell(&control::encode(&report));
        let mut longest = usual;
        loop {
            let progress = files.report_rest(&mut rest, send);
            if progress == RestProgress::Reported && files.is_acknowledged() {
                break;
            }
            let event = match longest {
                _ if progress == RestProgress::Checks => match events.try_recv() {
                    Err(TryRecvError::Empty) => continue,
                    event => event.map_err(|_| RecvTimeoutError::Disconnected),
                },
                Some(longest) => events.recv_timeout(longest),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(AgentEvent::Order(AgentOrder::FileTaken { size, fault })) => {
                    files.acknowledged(size, fault);
                }
                Ok(AgentEvent::Order(AgentOrder::Heartbeat)) => send(AgentReport::Heartbeat),
                // A manager that the user has stopped takes nothing.
                Ok(AgentEvent::Order(AgentOrder::Pause)) => longest = None,
                Ok(AgentEvent::Order(AgentOrder::Resume)) => longest = usual,
                // One more signal: the user, or the batch system, does not want to wait.
                Ok(AgentEvent::Lost(_) | AgentEvent::Signal(_)) | Err(_) => return kept,
                Ok(_) => {}
            }
        }
        if files.copy_fault().is_some() {
            return kept;
        }
        if let Err(error) = files.remove() {
            let folder = files.folder().display().to_string();
            self.tell(Some(format!(
                "cannot remove {folder}, whose files the manager has: {error}"
            )));
        }
        self.report(&AgentReport::Complete);
        None
    }

    fn report(&self, report: &AgentReport) {
        if let Some(link) = &self.link {
            link.tell(&control::encode(report));
        }
    }
}

/// Fails unless this host has the network, and other hosts can reach this one by it. `connection` leads to the
/// manager.
///
/// # Errors
/// What is wrong, in words behind "the agent".
fn check_network(network: &HostNetwork, connection: &Connection) -> Result<(), String> {
    let key = "(`network` under `titin: hosts`)";
    let addresses =
        own_addresses(Some(network)).map_err(|why| format!("finds that its host {why} {key}"))?;
    let own = host::addresses();
    let is_own = |ip: Ipv4Addr| ip.is_loopback() || own.contains(&ip);
    let is_here = |address: &Address| match address {
        Address::Tcp(host, _) => host.parse().is_ok_and(is_own),
        _ => false,
    };
    // The relay of a site may be on this host.
    let is_apart = connection.site.is_none() && !connection.addresses.iter().any(is_here);
    match is_apart && addresses.iter().all(Ipv4Addr::is_loopback) {
        true => Err(format!(
            "finds that no other host reaches its host by {network}, the loopback network {key}"
        )),
        false => Ok(()),
    }
}

/// The ending of an agent whose link to the manager is lost.
fn manager_gone(how: String) -> Ending {
    Ending::Cut(AgentError::ManagerGone { how, kept: None })
}

/// The ending of an agent that cannot go on, in the given way.
fn trouble(how: String) -> Ending {
    Ending::Early(LeavingReason::Trouble(how))
}

/// Hands the events of the link to the agent.
struct LinkHandler(Sender<AgentEvent>);

impl LinkHandler {
    fn hand(&self, event: AgentEvent) {
        let _ = self.0.send(event);
    }
}

impl Handler for LinkHandler {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        self.hand(AgentEvent::Opened(link.clone()));
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        self.hand(match control::decode(body) {
            Ok(order) => AgentEvent::Order(order),
            Err(error) => {
                link.close();
                AgentEvent::Lost(error.to_string())
            }
        });
    }

    fn lost(&self, _: &Arc<Link>, why: LinkError) {
        self.hand(AgentEvent::Lost(why.to_string()));
    }

    fn hindered(&self, _: u128, why: String) {
        self.hand(AgentEvent::Hindered(why));
    }

    fn unreachable(&self, _: u128, why: LinkError) {
        self.hand(AgentEvent::Unreachable(why));
    }

    fn tick(&self) -> Option<Duration> {
        Some(LOOK_INTERVAL)
    }

    fn broken(&self, text: String) {
        self.hand(AgentEvent::Lost(format!("internal error: {text}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_for_a_missing_link_is_said_once_after_a_while() {
        let mut report = DiallingReport::begin();
        let seconds = Duration::from_secs;
        assert_eq!(report.hindered("refused".into(), seconds(2)), None);
        assert_eq!(report.reached(seconds(2)), None);
        let first = report.hindered("refused".into(), seconds(3)).unwrap();
        assert_eq!(first, "the manager is not reached yet: refused");
        assert_eq!(report.hindered("refused".into(), seconds(4)), None);
        let other = report.hindered("unknown".into(), seconds(5)).unwrap();
        assert!(other.ends_with("unknown"), "{other}");
        let reached = report.reached(seconds(9)).unwrap();
        assert_eq!(reached, "the manager is reached after 9 s");
    }

    #[test]
    fn an_agent_gives_up_before_its_manager() {
        let seconds = Duration::from_secs;
        assert_eq!(dialling_time(seconds(300)), seconds(297));
        assert_eq!(dialling_time(seconds(4)), seconds(3));
        assert_eq!(dialling_time(Duration::MAX), Duration::MAX - MOST_LEFT);
    }
}
