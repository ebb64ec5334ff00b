//! The thin shell around the state machine: one loop that hands in what happens and does what it is told.
//!
//! One thread owns everything here. Others only send it what they hear: the reactor's (links), the guard's, one per
//! watched process, the one that prepares programs for their start, and whoever turns signals into interrupts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getpid, getrlimit, set_child_subreaper, setrlimit};
use serde::Serialize;
use titin_transport::{Handler, Link, LinkId, Lost, Reactor};
use titin_wire::Secret;
use titin_wire::connection::Connection;
use titin_wire::control::{self, ToManager};
use titin_wire::handshake::{Agreement, Purpose};

use crate::directory::{ConnectionFile, DirectoryError, RunDirectory};
use crate::event::{Action, Event, Level, Record, Signal};
use crate::guard::{Guard, News};
use crate::launch::quote;
use crate::log::{Log, stamp};
use crate::placement::{Placement, place};
use crate::plan::{InstanceId, Plan};
use crate::profile::{Recorder, Summary};
use crate::report::Story;
use crate::stage::Problem;
use crate::starter::{Starter, Workshop};
use crate::state::{Manager, Outcome, Phase, Standing};
use crate::{cores, sentry, stage, tree};

/// For the guard to end what is left.
const SWEEP: Duration = Duration::from_secs(30);

/// From SIGTERM to SIGKILL for orphans of a guard that has died.
const ORPHANS: Duration = Duration::from_secs(2);

/// What a run is begun with.
#[derive(Debug)]
pub struct Setup {
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

/// Somebody who looks at a run. All calls come from the thread that runs it, and should not take long.
pub trait View {
    /// The run has begun, here.
    fn begun(&mut self, directory: &RunDirectory, plan: &Plan);
    /// A line of the log.
    fn said(&mut self, level: Level, line: &str);
    /// How things stand; called at the view's own pace, and once at the end.
    fn look(&mut self, elapsed: Duration, standings: &[Standing]);
    /// How often to be called with how things stand; never without.
    fn pace(&self) -> Option<Duration>;
}

/// How a run ended.
#[derive(Debug, Serialize)]
pub struct Ending {
    /// "done", "failed" or "interrupted".
    pub outcome: &'static str,
    /// What there is to say about a failure.
    pub story: Option<Story>,
    /// The model.
    pub model: String,
    /// How long it took.
    pub seconds: f64,
    /// Where its files are.
    pub directory: PathBuf,
    /// How each instance ended.
    pub instances: Vec<InstanceEnd>,
}

/// How an instance ended.
#[derive(Debug, Serialize)]
pub struct InstanceEnd {
    /// Its name.
    pub name: String,
    /// Its phase, in a word.
    pub phase: &'static str,
    /// How its process ended, in words.
    pub process: Option<String>,
    /// Its last simulated time.
    pub simulated: Option<f64>,
    /// Messages that it sent.
    pub messages: u64,
    /// Payload bytes that it sent.
    pub bytes: u64,
}

/// What the loop hears.
enum Incoming {
    Opened(Arc<Link>),
    Event(Event),
    Garbled(LinkId, String),
    Swept {
        left: Vec<String>,
        stuck: Vec<String>,
    },
    GuardLeft,
    /// This process and its programs were stopped for so long.
    Paused(Duration),
}

/// Ends or pauses a run from another thread.
#[derive(Clone)]
pub struct Interrupter {
    sender: Sender<Incoming>,
    guard: Arc<Guard>,
}

impl Interrupter {
    /// The user wants the run to end; `signal` says how that was known. A second time it ends at once.
    pub fn interrupt(&self, signal: &str) {
        let _ = self.sender.send(Incoming::Event(Event::Interrupted(signal.to_owned())));
    }

    /// The user stops the run for a while, as by Ctrl-Z. `stop` stops this process, and returns when it goes on; the
    /// programs are stopped with it, since they would take its silence for its end.
    pub fn pause(&self, stop: impl FnOnce()) {
        let begun = Instant::now();
        self.guard.pause();
        stop();
        self.guard.resume();
        let _ = self.sender.send(Incoming::Paused(begun.elapsed()));
    }
}

/// The time that a run has taken, without that in which this process was stopped: nobody was late or silent then.
struct Clock {
    begun: Instant,
    stopped: Duration,
}

impl Clock {
    /// Waking up so much too late comes from having been stopped.
    const LATE: Duration = Duration::from_secs(1);

    fn now(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.stopped)
    }

    /// Takes notice of when a sleep was to end that has ended now.
    fn woken(&mut self, until: Duration) {
        let late = self.now().saturating_sub(until);
        if late > Self::LATE {
            self.stopped += late;
        }
    }
}

/// A run, from its directory to its end.
pub struct Session {
    plan: Arc<Plan>,
    directory: RunDirectory,
    titin: PathBuf,
    hosting: Option<u32>,
    placement: Arc<Placement>,
    host: String,
    begun: Instant,
    log: Log,
    /// Why it cannot be written any more.
    log_trouble: Option<String>,
    connection: ConnectionFile,
    guard_lives: bool,
    guard: Arc<Guard>,
    starter: Starter,
    reactor: Arc<Reactor>,
    recorder: Recorder,
    links: HashMap<LinkId, Arc<Link>>,
    sender: Sender<Incoming>,
    receiver: Receiver<Incoming>,
}

impl Session {
    /// Makes everything ready: the run directory, the listener, the guard. Nothing is started yet.
    ///
    /// # Errors
    /// [`SetupError`] if the run cannot begin.
    pub fn open(setup: Setup) -> Result<Self, SetupError> {
        let begun = Instant::now();
        let Setup { plan, configuration, folders, run_directory, titin, host: hosting } = setup;
        let plan = Arc::new(plan);
        let directory = RunDirectory::create(run_directory.as_deref(), &plan.model, &stamp())?;
        directory.write_configuration(&configuration)?;
        let (sender, receiver) = channel();

        let system = |what| move |source| SetupError::System { what, source };
        let secret = Secret::random();
        let reactor = Reactor::start(secret.clone(), Arc::new(Ears(sender.clone())))
            .map_err(system("start the thread for sockets"))?;
        let address = reactor
            .listen(IpAddr::V4(Ipv4Addr::LOCALHOST))
            .map_err(system("listen on the loopback network"))?;
        let connection = directory.write_connection(&Connection {
            addresses: vec![address],
            secret,
            spans_hosts: false,
        })?;

        // Should the guard be killed, its programs become children of this process.
        set_child_subreaper(Some(getpid())).map_err(|error| system("adopt orphans")(error.into()))?;
        let hear = sender.clone();
        let heard = move |news| {
            let _ = hear.send(match news {
                News::Event(event) => Incoming::Event(event),
                News::Swept { left, stuck } => Incoming::Swept { left, stuck },
                News::Left => Incoming::GuardLeft,
            });
        };
        let guard = Guard::start(titin.as_os_str(), &directory.connection(), directory.open_log()?, heard)
            .map_err(system("start the guard"))?;
        allow_many_files();

        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let placement = place(&plan, &cores::cores());
        let recorder = Recorder::start(directory.profile(), plan.clone(), host.clone(), placement.clone())
            .map_err(system("start the thread for the profile"))?;
        let (guard, placement) = (Arc::new(guard), Arc::new(placement));
        let workshop = Workshop {
            plan: plan.clone(),
            directory: directory.clone(),
            folders,
            titin: titin.clone(),
            placement: placement.clone(),
            guard: guard.clone(),
        };
        let hear = sender.clone();
        let report = move |event| drop(hear.send(Incoming::Event(event)));
        let starter =
            Starter::begin(workshop, report).map_err(system("start the thread that starts programs"))?;
        let log = Log::new(directory.open_log()?, plan.clone());
        Ok(Session {
            plan,
            directory,
            titin,
            hosting,
            placement,
            host,
            begun,
            log,
            log_trouble: None,
            connection,
            guard_lives: true,
            guard,
            starter,
            reactor,
            recorder,
            links: HashMap::new(),
            sender,
            receiver,
        })
    }

    /// What ends this run from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter { sender: self.sender.clone(), guard: self.guard.clone() }
    }

    /// Runs to the end, whatever it is. Nothing of the run is left then but its directory.
    pub fn run(mut self, view: &mut dyn View) -> Ending {
        let mut manager = Manager::new(self.plan.clone(), &self.host, self.placement.crowded.clone());
        view.begun(&self.directory, &self.plan);
        self.announce(view);
        self.watch_host();
        let mut clock = Clock { begun: self.begun, stopped: Duration::ZERO };
        let begin = manager.begin(clock.now());
        let mut over = self.act(begin, view);
        let mut next_look = view.pace().map(|pace| clock.now() + pace);
        while !over {
            let until = next_look.map_or(manager.deadline(), |look| look.min(manager.deadline()));
            let heard = self.receiver.recv_timeout(until.saturating_sub(clock.now()));
            clock.woken(until);
            let event = match heard {
                Ok(incoming) => self.hear(incoming, view),
                Err(RecvTimeoutError::Timeout) => Some(Event::Tick),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the session holds a sender itself"),
            };
            if let Some(event) = event {
                let guard_lost = matches!(event, Event::GuardLost(_));
                let actions = manager.handle(clock.now(), event);
                over = self.act(actions, view);
                if guard_lost {
                    self.end_orphans(view);
                }
            }
            let now = clock.now();
            if next_look.is_some_and(|look| look <= now) {
                view.look(now, &manager.standings());
                next_look = view.pace().map(|pace| now + pace);
            }
        }
        view.look(clock.now(), &manager.standings());
        self.end(&manager, view)
    }

    /// Takes in what was heard; an event for the state machine, if it is one.
    fn hear(&mut self, incoming: Incoming, view: &mut dyn View) -> Option<Event> {
        match incoming {
            Incoming::Opened(link) => {
                let id = link.id();
                self.links.insert(id, link);
                Some(Event::Opened(id))
            }
            Incoming::Event(Event::Lost(id, why)) => {
                self.links.remove(&id);
                Some(Event::Lost(id, why))
            }
            Incoming::Event(event) => Some(event),
            Incoming::Garbled(id, why) => {
                self.links.remove(&id)?.close();
                Some(Event::Lost(id, why))
            }
            Incoming::Paused(time) => {
                let text = format!("was stopped for {:.1} s, and its programs with it", time.as_secs_f64());
                self.say(Level::Info, text, view);
                None
            }
            Incoming::Swept { .. } | Incoming::GuardLeft => None,
        }
    }

    /// Does as told; true when the run is over.
    fn act(&mut self, actions: Vec<Action>, view: &mut dyn View) -> bool {
        let mut over = false;
        for action in actions {
            match action {
                Action::Tell(id, message) => {
                    if let Some(link) = self.links.get(&id) {
                        link.tell(&control::encode(&message));
                    }
                }
                Action::Close(id) => {
                    if let Some(link) = self.links.remove(&id) {
                        link.close();
                    }
                }
                Action::Start(id) => self.starter.start(id),
                Action::StartNoMore => self.starter.stop(),
                Action::Signal(id, signal) => self.guard.signal(id, signal),
                Action::SignalHost(pid, signal) => tree::signal(
                    pid,
                    match signal {
                        Signal::Terminate => rustix::process::Signal::TERM,
                        Signal::Kill => rustix::process::Signal::KILL,
                    },
                ),
                Action::Watch(pid) => self.watch(pid),
                Action::Record(record) => self.record(&record, view),
                Action::Keep(profile) => self.recorder.keep(profile),
                Action::Finish => over = true,
            }
        }
        over
    }

    fn record(&mut self, record: &Record, view: &mut dyn View) {
        if self.log_trouble.is_some() {
            return;
        }
        match self.log.write(record) {
            Ok(line) => view.said(record.level, &line),
            Err(source) => {
                let trouble = DirectoryError::Write { path: self.directory.log(), source }.to_string();
                self.log_trouble = Some(trouble.clone());
                view.said(Level::Error, &trouble);
                let _ = self.sender.send(Incoming::Event(Event::Trouble(trouble)));
            }
        }
    }

    fn say(&mut self, level: Level, text: String, view: &mut dyn View) {
        self.record(&Record { level, instance: None, time: None, simulated: None, text }, view);
    }

    /// Says what is run, and whether there is room for it.
    fn announce(&mut self, view: &mut dyn View) {
        let (instances, conduits) = (self.plan.instances.len(), self.plan.conduits.len());
        let model = &self.plan.model;
        let text = format!(
            "titin {} runs {model}: {instances} instances, {conduits} conduits, on {}",
            env!("CARGO_PKG_VERSION"),
            self.host
        );
        self.say(Level::Info, text, view);
        let crowded: Vec<&str> = self
            .plan
            .instances
            .ids()
            .filter(|&id| self.placement.crowded[id])
            .map(|id| self.plan.instances[id].name.as_str())
            .collect();
        if !crowded.is_empty() {
            let cores = cores::cores().len();
            let few = titin_model::listing(crowded);
            let text = format!(
                "too few cores for all that computes at the same time, with {cores} here; slower for it: {few}"
            );
            self.say(Level::Info, text, view);
        }
    }

    fn watch(&self, pid: u32) {
        let ours = self.hosting == Some(pid) || sentry::is_ours(pid, &self.directory.connection());
        let sender = self.sender.clone();
        let gone = move || {
            let _ = sender.send(Incoming::Event(Event::Gone(pid)));
        };
        if ours && sentry::watch(pid, gone) {
            let _ = self.sender.send(Incoming::Event(Event::Watching(pid)));
        }
    }

    /// Without the process that runs the hosted instances there is nobody left to run them.
    fn watch_host(&self) {
        let Some(pid) = self.hosting else { return };
        let sender = self.sender.clone();
        let gone = move || {
            let text =
                format!("process {pid}, which had begun the run and hosts some of its instances, has ended");
            let _ = sender.send(Incoming::Event(Event::Trouble(text)));
        };
        if !sentry::watch(pid, gone) {
            let text = format!("process {pid}, which had begun the run, has ended");
            let _ = self.sender.send(Incoming::Event(Event::Trouble(text)));
        }
    }

    /// Ends the programs that a dead guard has left to this process.
    fn end_orphans(&mut self, view: &mut dyn View) {
        self.guard_lives = false;
        let (left, stuck) = tree::end_descendants(ORPHANS, std::thread::park_timeout, |_, _| ());
        self.tell_of_rest(left.iter().map(ToString::to_string).collect(), &[], view);
        self.tell_of_rest(Vec::new(), &stuck.iter().map(ToString::to_string).collect::<Vec<_>>(), view);
        self.connection.forget();
    }

    fn tell_of_rest(&mut self, left: Vec<String>, stuck: &[String], view: &mut dyn View) {
        if !left.is_empty() {
            self.say(Level::Info, format!("ended what programs had left behind: {}", left.join(", ")), view);
        }
        if !stuck.is_empty() {
            self.say(
                Level::Error,
                format!("cannot be ended, not even by SIGKILL: {}", stuck.join(", ")),
                view,
            );
        }
    }

    /// Has the guard end what is left, and writes what is to be kept.
    fn end(mut self, manager: &Manager, view: &mut dyn View) -> Ending {
        self.dismiss_guard(view);
        self.connection.forget();
        let mut troubles = self.stage_out(view);
        let seconds = self.begun.elapsed().as_secs_f64();
        let (outcome, mut story) = match manager.outcome() {
            Some(Outcome::Failed(failure)) => {
                let directory = self.directory.path();
                let folder = |name: &str| self.directory.instance(name);
                let story = Story::tell(manager, failure, directory, folder, &self.titin);
                (if story.interrupted { "interrupted" } else { "failed" }, Some(story))
            }
            _ => ("done", None),
        };
        let raised = manager.raised().map(|(conduit, times, messages)| (conduit, (times, messages)));
        let told = story.as_ref().map_or(outcome.to_owned(), |story| story.cause.clone());
        let summary = Summary { seconds, outcome: told, raised: raised.collect() };
        if let Some(story) = &story {
            let _ = self.log.write_text(&format!("\n{}", story.page(false)));
        }
        let instances = self.plan.instances.ids().zip(manager.standings());
        let instances = instances.map(|(id, standing)| instance_end(manager, id, standing)).collect();
        let (model, directory) = (self.plan.model.clone(), self.directory.path().to_owned());
        self.reactor.stop();
        troubles.extend(self.recorder.finish(summary).map_err(|error| error.to_string()).err());
        troubles.extend(self.log_trouble);
        let mut outcome = outcome;
        if story.is_none() && !troubles.is_empty() {
            outcome = "failed";
            let text =
                format!("all instances are done, but the end could not be written: {}", troubles.join("\n"));
            story = Some(Story::of_manager(&model, seconds, text, &directory));
        }
        Ending { outcome, story, model, seconds, directory, instances }
    }

    /// Has the guard end what is left, and waits until it has gone.
    fn dismiss_guard(&mut self, view: &mut dyn View) {
        self.guard.finish();
        let until = Instant::now() + SWEEP;
        while self.guard_lives {
            match self.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Incoming::Swept { left, stuck }) => self.tell_of_rest(left, &stuck, view),
                Ok(Incoming::GuardLeft) | Err(_) => self.guard_lives = false,
                Ok(Incoming::Event(Event::GuardLost(_))) => self.end_orphans(view),
                Ok(_) => {}
            }
        }
    }

    /// Keeps the results; returns why some are lost.
    fn stage_out(&mut self, view: &mut dyn View) -> Vec<String> {
        let mut lost = Vec::new();
        for id in self.plan.instances.ids() {
            let planned = &self.plan.instances[id];
            if planned.stage_out.is_empty() {
                continue;
            }
            let workdir = self.directory.instance(&planned.name).join("workdir");
            let results = self.directory.results(&planned.name);
            for problem in stage::stage_out(&planned.stage_out, &workdir, &results) {
                let (level, text) = match problem {
                    Problem::Missing(text) => (Level::Warning, text),
                    Problem::Lost(text) => {
                        lost.push(text.clone());
                        (Level::Error, text)
                    }
                };
                let record = Record { level, instance: Some(id), time: None, simulated: None, text };
                self.record(&record, view);
            }
        }
        lost
    }
}

fn instance_end(manager: &Manager, id: InstanceId, standing: Standing) -> InstanceEnd {
    // What was cut short by another's failure is not done, and has not failed by itself.
    let phase = match standing.phase {
        Phase::Done => "done",
        Phase::Failed => "failed",
        _ => "ended",
    };
    let position = standing.position;
    InstanceEnd {
        name: standing.name,
        phase,
        process: manager.exit(id).map(|exit| exit.to_string()),
        simulated: position.as_ref().and_then(|position| position.simulated),
        messages: position.as_ref().map_or(0, |position| position.messages),
        bytes: position.as_ref().map_or(0, |position| position.bytes),
    }
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
        let _ = self.0.send(Incoming::Event(Event::Lost(link.id(), why.to_string())));
    }

    fn broken(&self, text: String) {
        let text = format!("internal error in the thread for sockets: {text}");
        let _ = self.0.send(Incoming::Event(Event::Trouble(text)));
    }
}

/// The lines that start a program by hand in this run.
pub fn exports(connection: &Path, instance: &str) -> String {
    let connection = quote(&connection.to_string_lossy());
    format!("export TITIN_MANAGER={connection}\nexport TITIN_INSTANCE={}\n", quote(instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_leaves_out_the_time_in_which_we_were_stopped() {
        let begun = Instant::now().checked_sub(Duration::from_secs(100)).expect("the machine is older");
        let mut clock = Clock { begun, stopped: Duration::ZERO };
        // Woken in time, or nearly.
        clock.woken(Duration::from_secs(100));
        assert!(clock.now() >= Duration::from_secs(100));
        // To be woken after 10 s, that is 90 s ago.
        clock.woken(Duration::from_secs(10));
        assert!((10.0..11.0).contains(&clock.now().as_secs_f64()), "{:?}", clock.now());
    }
}
