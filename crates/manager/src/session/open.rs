//! How a run begins: the run directory, the listener, the guard, and the threads around the loop.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use rustix::process::{getpid, set_child_subreaper};
use titin_os::descriptors;
use titin_os::host::{self, MissingNetwork};
use titin_transport::{
    Handler, Link, LinkError, LinkId, Medium, Reactor, TokenConnection, own_addresses,
};
use titin_wire::connection::{Connection, SiteAccess};
use titin_wire::control::{self, ToManager};
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::token::TokenRequest;
use titin_wire::{Address, Secret};

use super::HomeRelay;
use super::host_files::HostFiles;
use super::site::HomeSite;
use super::tokens::{OneTimeKeys, Tokens};
use super::{LauncherEnd, Session, SessionEvent};
use crate::agent::{self, AgentReport, Agents};
use crate::directory::{ConnectionFile, DirectoryError, RunDirectory};
use crate::event::RunEvent;
use crate::guard::{Guard, GuardEvent, GuardReport, Leftovers};
use crate::host::{HostId, ProcessId};
use crate::log::{Log, timestamp};
use crate::placement::{Placement, own_cores};
use crate::plan::Plan;
use crate::process_watcher::ProcessWatcher;
use crate::profile::Recorder;
use crate::starter::{ProgramPreparer, Starter, StarterEvent};

/// The input of a session.
#[derive(Debug)]
pub struct SessionSetup {
    /// The beginning of the command.
    pub asked: Instant,
    /// The plan.
    pub plan: Plan,
    /// The merged description, to be kept in the run directory.
    pub configuration: String,
    /// The folders for files to stage.
    pub folders: Vec<PathBuf>,
    /// The run directory, if the user chose one.
    pub run_directory: Option<PathBuf>,
    /// The path of the command `titin`, for the guard and for titin's own components.
    pub titin: PathBuf,
    /// The process with the hosted instances.
    pub host: Option<u32>,
    /// The address of this host for programs on other hosts; `None` if all programs run here. An
    /// unspecified address (0.0.0.0) stands for all addresses of this host.
    pub reach: Option<IpAddr>,
    /// The relay of the manager's site, if the user has one.
    pub relay: Option<HomeRelay>,
    /// A folder that this process has locked, with the run directory in it. The guard removes the
    /// folder if this process is killed.
    pub scratch: Option<PathBuf>,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The run directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A path is not text, so agents cannot be told the path.
    #[error("{} has a name that is not UTF-8 text, which the agents of other hosts cannot be told: rename the folder", .0.display())]
    NotText(PathBuf),
    /// The run has other sites, and the user has no relay.
    #[error(
        "the run has hosts at other sites, and no relay leads there from this one: make a relay with `titin relay init`, or name its folder by --relay"
    )]
    NoRelay,
    /// The user is to start a program that `titin: hosts` has at another site.
    #[error(
        "you are to start {instance} by hand, and `titin: hosts` has it at the site {site}: programs of other sites are started by the agents of their hosts. Place {instance} at this site, or let titin start it; `start: by hand` is for a whole host"
    )]
    ManualStartElsewhere {
        /// The instance.
        instance: String,
        /// The site of its host.
        site: String,
    },
    /// The relay of the manager's site has refused the run.
    #[error(
        "the relay of this site at {address} does not admit the run: {why}. `titin: sites` names each site as its relay is named"
    )]
    NotAdmitted {
        /// The relay's address.
        address: String,
        /// Why.
        why: String,
    },
    /// The relay of the manager's site does not answer.
    #[error(
        "the relay of this site at {address} does not admit the run: {why}; `titin relay run` starts a relay, and `titin relay status` shows one that runs"
    )]
    Relay {
        /// The relay's address.
        address: String,
        /// Why.
        why: String,
    },
    /// The manager's host does not have the network that the description chooses for it.
    #[error("this host {0}; correct `network` of localhost under `titin: hosts`")]
    Network(#[from] MissingNetwork),
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempt.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Makes a [`SessionError`] of an error of the system.
fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> SessionError {
    move |source| SessionError::System { what, source }
}

impl Session {
    /// Prepares the run directory, the listener and the guard. No program is started yet.
    ///
    /// # Errors
    /// [`SessionError`] if the run cannot begin.
    pub fn open(setup: SessionSetup) -> Result<Self, SessionError> {
        let begun = Instant::now();
        check_paths(&setup.plan, &setup.folders)?;
        let mut plan = setup.plan;
        let (sender, receiver) = channel();
        let site = enter_site(&plan, setup.relay, &sender)?;
        if let Some(site) = &site {
            plan.stay_at(&site.access().site);
        }
        if let Some((instance, site)) = plan.manual_start_elsewhere() {
            return Err(SessionError::ManualStartElsewhere { instance, site });
        }
        let own_addresses = own_addresses(plan.own_network.as_ref())?;
        let plan = Arc::new(plan);
        let run_directory = setup.run_directory.as_deref();
        let directory = RunDirectory::create(run_directory, &plan.model, &timestamp())?;
        directory.write_configuration(&setup.configuration)?;
        let secret = Secret::random();
        let keys = Arc::new(OneTimeKeys::default());
        let reactor = start_reactor(&secret, &sender, &keys)?;
        let mut connection = directory.prepare_connection(&secret);
        let system_name = host::name();
        let folders =
            connection.make_folders(&plan.media_in_folders(), plan.options.folder.as_deref())?;
        let opening = SessionOpening {
            plan: &plan,
            directory: &directory,
            connection: &connection,
            titin: &setup.titin,
            reach: setup.reach,
            own_addresses,
            placement: &Arc::new(OnceLock::new()),
            agents: &Arc::new(Agents::expected(plan.hosts.len())),
            sender: &sender,
        };
        let mut addresses = opening.listen(&reactor)?;
        if let Some(site) = &site {
            let beyond = reactor.listen_for_sites(site.access(), &addresses);
            addresses.extend(beyond.map_err(system("listen for other sites"))?);
        }
        let guard = opening.start_guard(setup.scratch.as_deref())?;
        addresses.extend(listen_in_folders(&reactor, &folders)?);
        // If this process is killed, the guard removes the file with the secret. So the guard
        // starts before the file exists.
        let access = site.as_ref().map(HomeSite::access);
        let way_to_manager =
            opening.write_connection(addresses, secret, folders, access.cloned())?;
        // Each program has a link, so thousands of instances need thousands of descriptors.
        descriptors::allow_many();
        let recorder = opening.start_recorder(&system_name)?;
        let starter = opening.begin_starter(&guard, setup.folders)?;
        let watcher = opening.start_watcher(setup.host)?;
        let log = Log::new(directory.open_log()?, plan.clone());
        let own_cores = own_cores(&plan);
        let further = plan.hosts.iter().map(|_| None);
        Ok(Session {
            placement: opening.placement.clone(),
            agents: opening.agents.clone(),
            groups: agent::groups(&plan, &setup.titin),
            launchers: BTreeSet::new(),
            host_files: HostFiles::default(),
            leaving: BTreeSet::new(),
            refusals: Vec::new(),
            told_refusals: 0,
            unreached: Vec::new(),
            is_ending: false,
            is_interrupted: false,
            is_ended_by_user: false,
            host_cores: std::iter::once(Some(own_cores)).chain(further).collect(),
            way_to_manager,
            tokens: Tokens::new(keys, begun, plan.options.patience),
            site,
            is_reached: setup.reach.is_some(),
            plan,
            directory,
            titin: setup.titin,
            hosting: setup.host,
            system_name,
            asked: setup.asked,
            begun,
            log,
            log_trouble: None,
            connection,
            guard_lives: true,
            guard,
            starter,
            reactor,
            watcher,
            recorder,
            links: HashMap::new(),
            sender,
            receiver,
            manual_starts: Vec::new(),
            unprepared_manual_starts: 0,
        })
    }
}

/// Has the relay of the site admit the run, if the run has hosts at other sites.
fn enter_site(
    plan: &Plan,
    relay: Option<HomeRelay>,
    sender: &Sender<SessionEvent>,
) -> Result<Option<HomeSite>, SessionError> {
    if !plan.has_other_sites() {
        return Ok(None);
    }
    let sender = sender.clone();
    let tell = move |news| drop(sender.send(SessionEvent::Admission(news)));
    HomeSite::enter(plan, relay, tell).map(Some)
}

/// A session at its opening: the needs of the guard and of the threads.
struct SessionOpening<'a> {
    plan: &'a Arc<Plan>,
    directory: &'a RunDirectory,
    connection: &'a ConnectionFile,
    titin: &'a Path,
    reach: Option<IpAddr>,
    /// The addresses of this host for other hosts.
    own_addresses: Vec<Ipv4Addr>,
    placement: &'a Arc<OnceLock<Placement>>,
    agents: &'a Arc<Agents>,
    /// The way to the loop.
    sender: &'a Sender<SessionEvent>,
}

impl SessionOpening<'_> {
    /// Listens, and returns the manager's addresses for programs.
    fn listen(&self, reactor: &Reactor) -> Result<Vec<Address>, SessionError> {
        let ip = self.reach.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let address = reactor.listen(Medium::Tcp, &ip.to_string());
        Ok(match address.map_err(system("listen for programs"))? {
            Address::Tcp(_, port) if ip.is_unspecified() => {
                let addresses = self.own_addresses.iter();
                addresses
                    .map(|ip| Address::Tcp(ip.to_string(), port))
                    .collect()
            }
            address => vec![address],
        })
    }

    /// Writes the connection file, by which programs find the manager. Returns what the file says.
    fn write_connection(
        &self,
        addresses: Vec<Address>,
        secret: Secret,
        folders: Vec<(Medium, PathBuf)>,
        site: Option<SiteAccess>,
    ) -> Result<Connection, DirectoryError> {
        let folders = folders.into_iter();
        let folders = folders.map(|(medium, folder)| (medium.key().to_owned(), folder));
        let connection = Connection {
            addresses,
            secret,
            spans_hosts: self.reach.is_some(),
            folders: folders.collect(),
            patience: self.plan.options.patience.as_secs_f64(),
            site,
            network: self.plan.own_network.clone(),
        };
        self.connection.write(&connection)?;
        Ok(connection)
    }

    /// Starts the guard. Its reports go to the loop.
    fn start_guard(&self, scratch: Option<&Path>) -> Result<Arc<Guard>, SessionError> {
        // If the guard is killed, the programs become children of this process.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| system("adopt orphans")(error.into()))?;
        let sender = self.sender.clone();
        let count = self.plan.instances.len();
        let report = move |event| {
            let _ = sender.send(match event {
                GuardEvent::Report(report) => of_guard(report, count),
                GuardEvent::Interrupted(signal) => SessionEvent::Run(RunEvent::Interrupted(signal)),
                GuardEvent::Lost(how) => {
                    SessionEvent::Run(RunEvent::HostLost(HostId::MANAGER, how))
                }
                GuardEvent::Ended => SessionEvent::GuardEnded,
            });
        };
        let guard = Guard::start(
            self.titin.as_os_str(),
            &Leftovers {
                connection: Some(&self.directory.connection()),
                own: self.connection.meeting_place(),
                shared: scratch,
            },
            self.directory.open_log()?,
            report,
        );
        Ok(Arc::new(guard.map_err(system("start the guard"))?))
    }

    /// Begins the thread for the profile.
    fn start_recorder(&self, host: &str) -> Result<Recorder, SessionError> {
        let recorder = Recorder::start(
            self.directory.profile(),
            self.plan.clone(),
            host.to_owned(),
            self.placement.clone(),
        );
        recorder.map_err(system("start the thread for the profile"))
    }

    /// Begins the thread for the start of programs.
    fn begin_starter(
        &self,
        guard: &Arc<Guard>,
        folders: Vec<PathBuf>,
    ) -> Result<Starter, SessionError> {
        let meeting_place = self.connection.meeting_place();
        let preparer = ProgramPreparer {
            plan: self.plan.clone(),
            directory: self.directory.clone(),
            temporary: meeting_place.is_dir().then(|| meeting_place.to_owned()),
            folders,
            titin: self.titin.to_owned(),
            placement: self.placement.clone(),
            guard: guard.clone(),
            agents: self.agents.clone(),
        };
        let sender = self.sender.clone();
        let report = move |event| {
            let _ = sender.send(match event {
                StarterEvent::Run(event) => SessionEvent::Run(event),
                StarterEvent::Manual(start) => SessionEvent::Manual(start),
            });
        };
        Starter::begin(preparer, report).map_err(system("start the thread that starts programs"))
    }

    /// Starts the thread that watches processes not started by the guard. `hosting` is the process
    /// with the hosted instances. Without the process the instances cannot go on.
    fn start_watcher(&self, hosting: Option<u32>) -> Result<ProcessWatcher, SessionError> {
        let sender = self.sender.clone();
        let watcher = ProcessWatcher::start(move |pid| {
            if hosting == Some(pid) {
                let text = format!(
                    "process {pid}, which had begun the run and hosts some of its instances, has ended"
                );
                let _ = sender.send(SessionEvent::Run(RunEvent::ManagerFailed(text)));
            }
            let gone = RunEvent::ProcessGone(ProcessId::here(pid));
            let _ = sender.send(SessionEvent::Run(gone));
        });
        watcher.map_err(system("start the thread that watches programs"))
    }
}

/// Starts the thread for sockets. The events of control links go to the loop.
fn start_reactor(
    secret: &Secret,
    sender: &Sender<SessionEvent>,
    keys: &Arc<OneTimeKeys>,
) -> Result<Arc<Reactor>, SessionError> {
    let handler = Arc::new(ControlHandler {
        sender: sender.clone(),
        keys: keys.clone(),
        agents: Mutex::default(),
    });
    let reactor = Reactor::start(secret.clone(), handler);
    reactor.map_err(system("start the thread for sockets"))
}

/// The event of a report of the guard. A number behind those of the instances belongs to the command
/// that starts the agents of a group of hosts.
fn of_guard(report: GuardReport, instances: usize) -> SessionEvent {
    let program = report.program().map(|id| id as usize);
    let Some(group) = program.and_then(|id| id.checked_sub(instances)) else {
        return SessionEvent::of_report(HostId::MANAGER, report);
    };
    let end = match report {
        GuardReport::NotStarted { why, .. } => LauncherEnd::NotStarted(why),
        GuardReport::Ended { exit, .. } => LauncherEnd::Ended(exit),
        _ => return SessionEvent::LauncherStarted { group },
    };
    SessionEvent::LauncherEnded { group, end }
}

/// Checks that agents can be told the paths of the description.
fn check_paths(plan: &Plan, folders: &[PathBuf]) -> Result<(), SessionError> {
    let mut paths = folders.iter().filter(|_| !plan.hosts.is_empty());
    match paths.find(|path| path.to_str().is_none()) {
        Some(path) => Err(SessionError::NotText(path.clone())),
        None => Ok(()),
    }
}

/// Listens in folders: programs that no network connects with this host find the manager there.
fn listen_in_folders(
    reactor: &Reactor,
    folders: &[(Medium, PathBuf)],
) -> Result<Vec<Address>, SessionError> {
    let folders = folders.iter();
    let addresses = folders.map(|(medium, folder)| {
        let address = reactor.listen(*medium, &folder.to_string_lossy());
        address.map_err(system("listen for programs"))
    });
    addresses.collect()
}

/// Hands events of the links of programs and agents to the loop.
struct ControlHandler {
    sender: Sender<SessionEvent>,
    /// The links of agents.
    agents: Mutex<HashSet<LinkId>>,
    /// The keys of tokens.
    keys: Arc<OneTimeKeys>,
}

impl ControlHandler {
    fn hand(&self, event: SessionEvent) {
        let _ = self.sender.send(event);
    }

    fn agents(&self) -> MutexGuard<'_, HashSet<LinkId>> {
        self.agents.lock().expect("never poisoned")
    }
}

impl Handler for ControlHandler {
    fn opened(&self, link: &Arc<Link>, agreement: Agreement) {
        match agreement.purpose {
            Purpose::Control => self.hand(SessionEvent::LinkOpened(link.clone())),
            Purpose::Agent => drop(self.agents().insert(link.id())),
            _ => link.close(),
        }
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        let id = link.id();
        if self.agents().contains(&id) {
            return self.hand(match control::decode::<AgentReport>(body) {
                Ok(report) => SessionEvent::Agent(link.clone(), report),
                Err(error) => {
                    link.close();
                    SessionEvent::AgentLost(id, error.into())
                }
            });
        }
        self.hand(match control::decode::<ToManager>(body) {
            Ok(message) => SessionEvent::Run(RunEvent::MessageReceived(id, Box::new(message))),
            Err(error) => SessionEvent::UnreadableMessage(id, error.to_string()),
        });
    }

    fn lost(&self, link: &Arc<Link>, why: LinkError) {
        self.hand(match self.agents().remove(&link.id()) {
            true => SessionEvent::AgentLost(link.id(), why),
            false => SessionEvent::Run(RunEvent::LinkLost(link.id(), why.to_string())),
        });
    }

    fn one_time_key(&self, number: u64) -> Option<Secret> {
        let key = self.keys.find(number);
        if key.is_none() {
            self.hand(SessionEvent::UnknownToken(number));
        }
        key
    }

    fn asked(&self, request: TokenRequest, connection: TokenConnection) {
        self.hand(SessionEvent::Asked(request, connection.into()));
    }

    fn broken(&self, text: String) {
        let text = format!("internal error in the thread for sockets: {text}");
        self.hand(SessionEvent::Run(RunEvent::ManagerFailed(text)));
    }
}
