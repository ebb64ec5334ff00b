//! The thin shell around the state machine: one loop that hands in what happens and does what it is told.
//!
//! One thread owns everything here. Others only send it what they hear: the reactor's (links), the guard's, one per
//! watched process, the one that prepares programs for their start, and whoever turns signals into interrupts.

mod clock;
mod end;
mod open;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use titin_transport::{Link, LinkId, Reactor};
use titin_wire::control;

use crate::directory::{ConnectionFile, DirectoryError, RunDirectory};
use crate::event::{Action, Event, Level, Record, Signal};
use crate::guard::Guard;
use crate::hand::{ByHand, instructions};
use crate::log::Log;
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, Start, What};
use crate::profile::Recorder;
use crate::sentry::{self, Sentry};
use crate::starter::Starter;
use crate::state::{Manager, Standing};
use crate::{cores, tree};

use clock::Clock;
pub use end::{Ending, InstanceEnd};
pub use open::{Setup, SetupError};

/// Somebody who looks at a run. All calls come from the thread that runs it, and should not take long.
pub trait View {
    /// The run has begun, here.
    fn begun(&mut self, directory: &RunDirectory, plan: &Plan);
    /// What the user is to start, and how.
    fn by_hand(&mut self, text: &str);
    /// A line of the log.
    fn said(&mut self, level: Level, line: &str);
    /// How things stand; called at the view's own pace, and once at the end.
    fn look(&mut self, elapsed: Duration, standings: &[Standing]);
    /// How often to be called with how things stand; never without.
    fn pace(&self) -> Option<Duration>;
}

/// What the loop hears.
enum Incoming {
    Opened(Arc<Link>),
    Event(Event),
    ByHand(Box<ByHand>),
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
        let _ = self
            .sender
            .send(Incoming::Event(Event::Interrupted(signal.to_owned())));
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

/// A run, from its directory to its end. It is made in `open`, and ends in `end`.
pub struct Session {
    plan: Arc<Plan>,
    directory: RunDirectory,
    titin: PathBuf,
    hosting: Option<u32>,
    placement: Arc<Placement>,
    host: String,
    /// When the command began: reading the description takes its time, too.
    asked: Instant,
    begun: Instant,
    log: Log,
    /// Why it cannot be written any more.
    log_trouble: Option<String>,
    connection: ConnectionFile,
    guard_lives: bool,
    guard: Arc<Guard>,
    starter: Starter,
    reactor: Arc<Reactor>,
    sentry: Sentry,
    recorder: Recorder,
    links: HashMap<LinkId, Arc<Link>>,
    sender: Sender<Incoming>,
    receiver: Receiver<Incoming>,
    /// What is ready for the user to start, and how many are not yet; told when all are.
    by_hand: Vec<ByHand>,
    unready: usize,
}

impl Session {
    /// What ends this run from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter {
            sender: self.sender.clone(),
            guard: self.guard.clone(),
        }
    }

    /// Runs to the end, whatever it is. Nothing of the run is left then but its directory.
    pub fn run(mut self, view: &mut dyn View) -> Ending {
        let mut manager = Manager::new(self.plan.clone(), &self.host);
        view.begun(&self.directory, &self.plan);
        self.announce(view);
        self.watch_host();
        self.prepare_by_hand();
        let mut clock = Clock::new(self.begun);
        let begin = manager.begin(clock.now());
        let mut over = self.act(begin, view);
        let mut next_look = view.pace().map(|pace| clock.now() + pace);
        while !over {
            let until = next_look.map_or(manager.deadline(), |look| look.min(manager.deadline()));
            let heard = self
                .receiver
                .recv_timeout(until.saturating_sub(clock.now()));
            let away = clock.woken(until).map(Event::Away);
            let event = match heard {
                Ok(incoming) => self.hear(incoming, view),
                Err(RecvTimeoutError::Timeout) => Some(Event::Tick),
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the session holds a sender itself")
                }
            };
            for event in away.into_iter().chain(event) {
                let guard_lost = matches!(event, Event::GuardLost(_));
                let actions = manager.handle(clock.now(), event);
                over |= self.act(actions, view);
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
            Incoming::ByHand(ready) => {
                self.by_hand.push(*ready);
                self.unready -= 1;
                if self.unready == 0 {
                    view.by_hand(&instructions(&std::mem::take(&mut self.by_hand)));
                }
                None
            }
            Incoming::Garbled(id, why) => {
                self.links.remove(&id)?.close();
                Some(Event::Lost(id, why))
            }
            Incoming::Paused(time) => {
                let text = format!(
                    "was stopped for {:.1} s, and its programs with it",
                    time.as_secs_f64()
                );
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
                Action::RecordCause(record) => {
                    self.write(&record, view);
                }
                Action::Keep(profile) => self.recorder.keep(profile),
                Action::Finish => over = true,
            }
        }
        over
    }

    /// Has all made ready for the instances that the user starts.
    fn prepare_by_hand(&mut self) {
        let instances = &self.plan.instances;
        for id in instances
            .ids()
            .filter(|&id| matches!(instances[id].start, Start::ByHand(_)))
        {
            self.starter.start(id);
            self.unready += 1;
        }
    }

    fn record(&mut self, record: &Record, view: &mut dyn View) {
        if let Some(line) = self.write(record, view) {
            view.said(record.level, &line);
        }
    }

    /// Writes to the log, and returns the line; `None` if the log cannot be written, which the view is told once.
    fn write(&mut self, record: &Record, view: &mut dyn View) -> Option<String> {
        if self.log_trouble.is_some() {
            return None;
        }
        match self.log.write(record) {
            Ok(line) => Some(line),
            Err(source) => {
                let trouble = DirectoryError::Write {
                    path: self.directory.log(),
                    source,
                }
                .to_string();
                self.log_trouble = Some(trouble.clone());
                view.said(Level::Error, &trouble);
                let _ = self.sender.send(Incoming::Event(Event::Trouble(trouble)));
                None
            }
        }
    }

    fn say(&mut self, level: Level, text: String, view: &mut dyn View) {
        self.record(&Record::of_manager(level, text), view);
    }

    /// Says what is run, and whether there is room for it.
    fn announce(&mut self, view: &mut dyn View) {
        let (instances, conduits) = (self.plan.instances.len(), self.plan.conduits.len());
        let model = &self.plan.model;
        let text = format!(
            "titin {} runs {model}: {instances} instance{}, {conduits} conduit{}, on {}",
            env!("CARGO_PKG_VERSION"),
            if instances == 1 { "" } else { "s" },
            if conduits == 1 { "" } else { "s" },
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
        let nodes = std::env::var("SLURM_JOB_NUM_NODES")
            .ok()
            .and_then(|nodes| nodes.parse().ok());
        if let Some(text) = nodes.and_then(|nodes| on_first_node(&self.plan, nodes, &self.host)) {
            self.say(Level::Info, text, view);
        }
    }

    fn watch(&self, pid: u32) {
        let ours = self.hosting == Some(pid) || sentry::is_ours(pid, &self.directory.connection());
        if ours && self.sentry.watch(pid) {
            let _ = self.sender.send(Incoming::Event(Event::Watching(pid)));
        }
    }

    /// Without the process that runs the hosted instances there is nobody left to run them.
    fn watch_host(&self) {
        let Some(pid) = self.hosting else { return };
        if !self.sentry.watch(pid) {
            let text = format!("process {pid}, which had begun the run, has ended");
            let _ = self.sender.send(Incoming::Event(Event::Trouble(text)));
        }
    }
}

/// What to say where a job of Slurm has several nodes: programs without MPI use the first one alone, but those that `srun`
/// starts.
fn on_first_node(plan: &Plan, nodes: u32, host: &str) -> Option<String> {
    let is_serial = |id: &InstanceId| match &plan.instances[*id].start {
        Start::Program(program) => {
            program.mpi.is_none() && !plan.instances[*id].is_built_in() && !is_srun(&program.what)
        }
        _ => false,
    };
    let serial: Vec<&str> = plan
        .instances
        .ids()
        .filter(is_serial)
        .map(|id| plan.instances[id].name.as_str())
        .collect();
    (nodes > 1 && !serial.is_empty()).then(|| {
        format!(
            "all programs without MPI run on {host}, the first of the job's {nodes} nodes: {}; `executable: srun, \
             args: [--overlap, --nodes=1, --ntasks=1, --relative=1, PROGRAM]` has one run on the second",
            titin_model::listing(serial)
        )
    })
}

fn is_srun(what: &What) -> bool {
    matches!(what, What::Executable { path, .. } if Path::new(path).file_name() == Some("srun".as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_model::{LoadOptions, load_texts};

    #[test]
    fn serial_programs_of_a_job_of_several_nodes_are_named() {
        let text = "ymmsl_version: v0.2\nmodels: {m: {components: {a: {description: x, implementation: s}, b: {description: x, \
                    implementation: p}, d: {description: x, implementation: r}, c: {description: x, implementation: titin.sink, ports: {s: in}}}}}\nprograms: {s: \
                    {executable: s}, p: {executable: p, execution_model: srunmpi}, \
                    r: {executable: srun, args: [r]}}\nresources: {m.b: {mpi_processes: 1}}";
        let description = load_texts(&[("m", text)], &LoadOptions::default()).unwrap();
        let network = description.network(None).unwrap();
        let plan = crate::compile::compile(&network, &[], &Default::default()).unwrap();
        assert_eq!(on_first_node(&plan, 1, "n1"), None);
        let said = on_first_node(&plan, 4, "n1").unwrap();
        assert!(
            said.contains("run on n1, the first of the job's 4 nodes: \"a\"; `executable: srun"),
            "{said}"
        );
    }
}
