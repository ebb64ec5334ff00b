//! How a run begins: the run directory, the listener, the guard and the threads around the loop.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use rustix::process::{Resource, getpid, getrlimit, set_child_subreaper, setrlimit};
use titin_os::host;
use titin_transport::{Handler, Link, Lost, Reactor};
use titin_wire::connection::Connection;
use titin_wire::control::{self, ToManager};
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::{Address, Secret};

use super::{Incoming, Session};
use crate::cores;
use crate::directory::{DirectoryError, RunDirectory};
use crate::event::Event;
use crate::guard::{Guard, News};
use crate::log::{Log, stamp};
use crate::placement::place;
use crate::plan::{PerInstance, Plan};
use crate::profile::Recorder;
use crate::sentry::Sentry;
use crate::starter::{self, Starter, Workshop};

/// What a run is begun with.
#[derive(Debug)]
pub struct Setup {
    /// When the command began that runs it.
    pub asked: Instant,
    /// What to run.
    pub plan: Plan,
    /// The description, merged, to be kept.
    pub configuration: String,
    /// Where files to stage are looked for.
    pub folders: Vec<PathBuf>,
    /// The run directory asked for.
    pub run_directory: Option<PathBuf>,
    /// This same binary, for the guard and titin's own components.
    pub titin: PathBuf,
    /// The process that runs the hosted instances.
    pub host: Option<u32>,
    /// The address at which programs on other hosts reach this one, if some are to run there; all that it has if unspecified.
    pub reach: Option<IpAddr>,
    /// A folder that this process has claimed, in which the run directory is, and which is removed if it is killed.
    pub scratch: Option<PathBuf>,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The run directory is of no use.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it did not work.
        source: std::io::Error,
    },
}

impl Session {
    /// Makes everything ready: the run directory, the listener, the guard. Nothing is started yet.
    ///
    /// # Errors
    /// [`SetupError`] if the run cannot begin.
    pub fn open(setup: Setup) -> Result<Self, SetupError> {
        let begun = Instant::now();
        let Setup {
            asked,
            plan,
            configuration,
            folders,
            run_directory,
            titin,
            host: hosting,
            reach,
            scratch,
        } = setup;
        let plan = Arc::new(plan);
        let directory = RunDirectory::create(run_directory.as_deref(), &plan.model, &stamp())?;
        directory.write_configuration(&configuration)?;
        drop(configuration);
        let (sender, receiver) = channel();

        let system = |what| move |source| SetupError::System { what, source };
        let secret = Secret::random();
        let reactor = Reactor::start(secret.clone(), Arc::new(Ears(sender.clone())))
            .map_err(system("start the thread for sockets"))?;
        let addresses = listen(&reactor, reach.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
            .map_err(system("listen for programs"))?;
        let connection = directory.prepare_connection(&secret);

        // Should the guard be killed, its programs become children of this process.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| system("adopt orphans")(error.into()))?;
        let hear = sender.clone();
        let heard = move |news| {
            let _ = hear.send(match news {
                News::Event(event) => Incoming::Event(event),
                News::Swept { left, stuck } => Incoming::Swept { left, stuck },
                News::Left => Incoming::GuardLeft,
            });
        };
        // The file with the secret is written once somebody is there who removes it, should this process be killed.
        let guard = Guard::start(
            titin.as_os_str(),
            &directory.connection(),
            connection.meeting_place(),
            scratch.as_deref(),
            directory.open_log()?,
            heard,
        )
        .map_err(system("start the guard"))?;
        let (spans_hosts, patience) = (reach.is_some(), plan.terms.patience.as_secs_f64());
        connection.write(&Connection {
            addresses,
            secret,
            spans_hosts,
            patience,
        })?;
        allow_many_files();

        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let mut placement = place(&plan, &cores::cores());
        if reach.is_some() {
            // What there is on other hosts nobody knows here.
            placement.crowded = PerInstance::make(plan.instances.len(), |_| false);
        }
        let recorder = Recorder::start(
            directory.profile(),
            plan.clone(),
            host.clone(),
            placement.clone(),
        )
        .map_err(system("start the thread for the profile"))?;
        let (guard, placement) = (Arc::new(guard), Arc::new(placement));
        let workshop = Workshop {
            plan: plan.clone(),
            directory: directory.clone(),
            passing: Some(connection.meeting_place().to_owned()).filter(|place| place.is_dir()),
            folders,
            titin: titin.clone(),
            placement: placement.clone(),
            guard: guard.clone(),
        };
        let hear = sender.clone();
        let report = move |news| {
            let _ = hear.send(match news {
                starter::News::Event(event) => Incoming::Event(event),
                starter::News::ByHand(ready) => Incoming::ByHand(ready),
            });
        };
        let starter = Starter::begin(workshop, report)
            .map_err(system("start the thread that starts programs"))?;
        let tell = sender.clone();
        let sentry = Sentry::start(move |pid| {
            if hosting == Some(pid) {
                let text = format!(
                    "process {pid}, which had begun the run and hosts some of its instances, has ended"
                );
                let _ = tell.send(Incoming::Event(Event::Trouble(text)));
            }
            let _ = tell.send(Incoming::Event(Event::Gone(pid)));
        });
        let sentry = sentry.map_err(system("start the thread that watches programs"))?;
        let log = Log::new(directory.open_log()?, plan.clone());
        Ok(Session {
            plan,
            directory,
            titin,
            hosting,
            placement,
            host,
            asked,
            begun,
            log,
            log_trouble: None,
            connection,
            guard_lives: true,
            guard,
            starter,
            reactor,
            sentry,
            recorder,
            links: HashMap::new(),
            sender,
            receiver,
            by_hand: Vec::new(),
            unready: 0,
        })
    }
}

/// Where programs then reach the manager.
fn listen(reactor: &Reactor, ip: IpAddr) -> std::io::Result<Vec<Address>> {
    let address = reactor.listen(ip)?;
    Ok(match address {
        Address::Tcp(_, port) if ip.is_unspecified() => host::addresses()
            .iter()
            .map(|ip| Address::Tcp(ip.to_string(), port))
            .collect(),
        address => vec![address],
    })
}

/// Each program has a link, so thousands of instances need thousands of descriptors.
fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The reactor's end of the loop.
struct Ears(Sender<Incoming>);

impl Handler for Ears {
    fn opened(&self, link: &Arc<Link>, agreement: Agreement) {
        if agreement.purpose == Purpose::Control {
            let _ = self.0.send(Incoming::Opened(link.clone()));
        } else {
            link.close();
        }
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        let _ = self.0.send(match control::decode::<ToManager>(body) {
            Ok(message) => Incoming::Event(Event::Said(link.id(), Box::new(message))),
            Err(error) => Incoming::Garbled(link.id(), error.to_string()),
        });
    }

    fn lost(&self, link: &Arc<Link>, why: Lost) {
        let _ = self
            .0
            .send(Incoming::Event(Event::Lost(link.id(), why.to_string())));
    }

    fn broken(&self, text: String) {
        let text = format!("internal error in the thread for sockets: {text}");
        let _ = self.0.send(Incoming::Event(Event::Trouble(text)));
    }
}
