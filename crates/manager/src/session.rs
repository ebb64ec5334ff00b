//! The session of a run: one loop that hands events to the state machine and carries out the
//! actions.
//!
//! One thread owns everything here. The other threads only send events: the thread of the reactor
//! (links), of the guard, of the process watcher, of the starter, and the thread that turns signals
//! into interrupts. A run begins in `open` and ends in `end`; `results` copies the results.

mod clock;
mod end;
mod open;
mod results;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use titin_transport::{Link, LinkId, Reactor};
use titin_wire::control::{self, ToProgram};

use crate::directory::{ConnectionFile, DirectoryError, RunDirectory};
use crate::event::{Level, LogRecord, RunAction, RunEvent, Signal};
use crate::guard::Guard;
use crate::log::Log;
use crate::manual_start::{ManualStart, instructions};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, PlannedCommand, PlannedInstance, StartMode};
use crate::process_watcher::{self, ProcessWatcher};
use crate::profile::Recorder;
use crate::starter::Starter;
use crate::state::{InstanceStatus, Manager};
use crate::{cores, process_tree};

use clock::RunClock;
pub use end::{InstanceResult, RunEnd};
pub use open::{SessionError, SessionSetup};

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
    /// The interval between two calls of [`RunView::show`]; `None` if the view wants only the last
    /// call.
    fn interval(&self) -> Option<Duration>;
}

/// An event from another thread for the loop.
enum SessionEvent {
    LinkOpened(Arc<Link>),
    /// An event for the state machine.
    Run(RunEvent),
    /// A program for the user to start is prepared.
    Manual(Box<ManualStart>),
    /// A message cannot be read, for a reason in words.
    UnreadableMessage(LinkId, String),
    /// The guard has ended all processes: leftovers, and processes that could not be ended.
    Swept {
        left: Vec<String>,
        stuck: Vec<String>,
    },
    GuardEnded,
    /// The user had stopped this process and the programs, for the given time.
    Paused(Duration),
}

/// Ends or pauses a run from another thread.
#[derive(Clone)]
pub struct Interrupter {
    sender: Sender<SessionEvent>,
    guard: Arc<Guard>,
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
        stop();
        self.guard.resume();
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
    placement: Arc<Placement>,
    /// The name of this host.
    host: String,
    /// When the command began. The command reads the description before the session begins.
    asked: Instant,
    begun: Instant,
    log: Log,
    /// Why the log cannot be written any more.
    log_trouble: Option<String>,
    connection: ConnectionFile,
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
    /// A handle for other threads, to end or pause the run.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter {
            sender: self.sender.clone(),
            guard: self.guard.clone(),
        }
    }

    /// Runs to the end, good or bad. At the end only the directory is left of the run.
    pub fn run(mut self, view: &mut dyn RunView) -> RunEnd {
        let mut manager = Manager::new(self.plan.clone(), &self.host);
        view.begun(&self.directory, &self.plan);
        self.announce(view);
        self.watch_calling_process();
        self.prepare_manual_starts();
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
        let suspended = clock.woken(until).map(RunEvent::Suspended);
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
        let is_guard_lost = matches!(event, RunEvent::GuardLost(_));
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
            SessionEvent::Swept { .. } | SessionEvent::GuardEnded => None,
        }
    }

    /// Carries out actions of the state machine. True when the run is over.
    fn act(&mut self, actions: Vec<RunAction>, view: &mut dyn RunView) -> bool {
        let mut over = false;
        for action in actions {
            match action {
                RunAction::Send(id, message) => self.send(id, &message),
                RunAction::CloseLink(id) => self.close_link(id),
                RunAction::StartProgram(id) => self.starter.start(id),
                RunAction::StopStarting => self.starter.stop(),
                RunAction::Signal(id, signal) => self.guard.signal(id, signal),
                RunAction::SignalHost(pid, signal) => signal_process(pid, signal),
                RunAction::WatchProcess(pid) => self.watch(pid),
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

    fn send(&self, id: LinkId, message: &ToProgram) {
        if let Some(link) = self.links.get(&id) {
            link.tell(&control::encode(message));
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

    /// Logs the size of the run, and whether the host has enough cores and nodes.
    fn announce(&mut self, view: &mut dyn RunView) {
        let nodes = std::env::var("SLURM_JOB_NUM_NODES").ok();
        let nodes = nodes.and_then(|nodes| nodes.parse().ok());
        let texts = [
            Some(self.title()),
            self.crowded_text(),
            nodes.and_then(|nodes| on_first_node(&self.plan, nodes, &self.host)),
        ];
        for text in texts.into_iter().flatten() {
            self.say(Level::Info, text, view);
        }
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
            self.host
        )
    }

    /// The text about instances on shared cores.
    fn crowded_text(&self) -> Option<String> {
        let instances = &self.plan.instances;
        let crowded = instances.ids().filter(|&id| self.placement.crowded[id]);
        let names: Vec<&str> = crowded.map(|id| instances[id].name.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let cores = cores::cores().len();
        let names = titin_model::listing(names);
        Some(format!(
            "too few cores for all that computes at the same time, with {cores} here; slower for it: {names}"
        ))
    }

    /// Watches a process of this run.
    fn watch(&self, pid: u32) {
        let is_ours = self.hosting == Some(pid)
            || process_watcher::is_ours(pid, &self.directory.connection());
        if is_ours && self.watcher.watch(pid) {
            let event = RunEvent::ProcessWatched(pid);
            let _ = self.sender.send(SessionEvent::Run(event));
        }
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

fn signal_process(pid: u32, signal: Signal) {
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    process_tree::signal(pid, signal);
}

/// A text for a Slurm job with several nodes: programs without MPI use the first node alone, unless
/// `srun` starts the programs.
fn on_first_node(plan: &Plan, nodes: u32, host: &str) -> Option<String> {
    let instances = plan.instances.iter().filter(|planned| is_serial(planned));
    let serial: Vec<&str> = instances.map(|planned| planned.name.as_str()).collect();
    (nodes > 1 && !serial.is_empty()).then(|| {
        format!(
            "all programs without MPI run on {host}, the first of the job's {nodes} nodes: {}; `executable: srun, \
             args: [--overlap, --nodes=1, --ntasks=1, --relative=1, PROGRAM]` has one run on the second",
            titin_model::listing(serial)
        )
    })
}

/// Whether the manager starts a program of the user without MPI, and `srun` does not start it.
fn is_serial(planned: &PlannedInstance) -> bool {
    let StartMode::Program(program) = &planned.start else {
        return false;
    };
    program.mpi.is_none() && !planned.is_built_in() && !is_srun(&program.command)
}

fn is_srun(command: &PlannedCommand) -> bool {
    matches!(command, PlannedCommand::Executable { path, .. } if Path::new(path).file_name() == Some("srun".as_ref()))
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
