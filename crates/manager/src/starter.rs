//! The thread for starts: prepares programs, and hands the commands to the guard or to the user.
//!
//! The work has a separate thread because copying files may take long. After the failure of the
//! run, the thread prepares nothing more, and ends the copying.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use crate::agent::{AgentOrder, Agents, ProgramOrder};
use crate::directory::{DirectoryError, RunDirectory, is_full};
use crate::event::RunEvent;
use crate::guard::{Guard, Launch};
use crate::host::HostId;
use crate::launch::{
    LaunchContext, LaunchError, PreparedCommand, StartError, environment, prepare_with_files,
};
use crate::manual_start::{ManualStart, NoCommand};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, PlannedInstance, PlannedProgram, StartMode};
use crate::slurm::job_parts;
use crate::stage::{MayContinue, StageError, stage_in};

/// The needs of the thread that prepares programs.
pub(crate) struct ProgramPreparer {
    pub(crate) plan: Arc<Plan>,
    pub(crate) directory: RunDirectory,
    /// A temporary folder of this host, removed at the end of the run.
    pub(crate) temporary: Option<PathBuf>,
    /// The folders for files to stage.
    pub(crate) folders: Vec<PathBuf>,
    /// The path of the command `titin`.
    pub(crate) titin: PathBuf,
    /// The placement, which is there before the first start.
    pub(crate) placement: Arc<OnceLock<Placement>>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) agents: Arc<Agents>,
}

/// A report from the thread.
#[derive(Debug)]
pub(crate) enum StarterEvent {
    /// An event for the state machine.
    Run(RunEvent),
    /// A program for the user to start is prepared.
    Manual(Box<ManualStart>),
}

/// Asks the thread to start programs.
pub(crate) struct Starter {
    asked: Sender<InstanceId>,
    stopped: Arc<AtomicBool>,
}

impl Starter {
    /// Begins the thread. The thread calls `report` with events.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn begin(
        preparer: ProgramPreparer,
        report: impl Fn(StarterEvent) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (asked, waiting) = channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let starter = Starter {
            asked,
            stopped: stopped.clone(),
        };
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(move || preparer.run(&waiting, &stopped, report))?;
        Ok(starter)
    }

    /// Starts an instance's program, or prepares the program for the user to start.
    pub(crate) fn start(&self, id: InstanceId) {
        // An ended thread has reported its end.
        let _ = self.asked.send(id);
    }

    /// Starts nothing more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }
}

/// Reports a panic of the thread. Without the report, the manager would wait for instances for
/// ever.
struct PanicReporter<F: Fn(StarterEvent)>(F);

impl<F: Fn(StarterEvent)> Drop for PanicReporter<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "internal error in the thread that starts programs: see standard error";
            let event = RunEvent::ManagerFailed(text.to_owned());
            (self.0)(StarterEvent::Run(event));
        }
    }
}

/// Why a program cannot be started.
#[derive(Debug)]
enum PrepareError {
    /// The program in the description cannot be run.
    Program(LaunchError),
    /// Another process starts the program.
    NotOurs,
    /// The files to stage cannot be copied: in words.
    Files(String),
    /// The run directory cannot be written, by no fault of the instance: in words.
    Directory(String),
    /// The run has failed meanwhile.
    RunFailed,
}

impl From<StartError> for PrepareError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Launch(error) => PrepareError::Program(error),
            StartError::Directory(error) => error.into(),
        }
    }
}

impl PrepareError {
    fn events(self, id: InstanceId) -> Vec<RunEvent> {
        match self {
            PrepareError::Program(error) => vec![RunEvent::StartFailed(id, error.to_string())],
            PrepareError::NotOurs => {
                vec![RunEvent::StartFailed(id, "it is not ours to start".into())]
            }
            PrepareError::Files(why) => vec![RunEvent::StagingFailed(id, why)],
            PrepareError::Directory(why) => {
                vec![RunEvent::ManagerFailed(why), RunEvent::StartSkipped(id)]
            }
            PrepareError::RunFailed => vec![RunEvent::StartSkipped(id)],
        }
    }
}

impl From<DirectoryError> for PrepareError {
    fn from(error: DirectoryError) -> Self {
        PrepareError::Directory(error.to_string())
    }
}

impl From<StageError> for PrepareError {
    fn from(error: StageError) -> Self {
        match error {
            // The copies go to the run directory, so the full disk is the disk of the run
            // directory.
            StageError::Copy { to, source, .. } if is_full(&source) => {
                DirectoryError::Write { path: to, source }.into()
            }
            StageError::Interrupted => PrepareError::RunFailed,
            error => PrepareError::Files(error.to_string()),
        }
    }
}

/// A start that is ready.
enum PreparedStart {
    Program(Launch),
    /// A program for the agent of a host.
    OnHost(HostId, Box<ProgramOrder>),
    Manual(Box<ManualStart>),
}

impl ProgramPreparer {
    /// The work of the thread: starts the requested programs, until the run has failed.
    fn run(
        &self,
        waiting: &Receiver<InstanceId>,
        stopped: &AtomicBool,
        report: impl Fn(StarterEvent) + Clone,
    ) {
        let _panic_reporter = PanicReporter(report.clone());
        let env = environment();
        let may_continue = || !stopped.load(Ordering::Acquire);
        for id in waiting {
            let prepared = match may_continue() {
                true => self.prepare(id, &env, &may_continue),
                false => Err(PrepareError::RunFailed),
            };
            match prepared {
                Ok(PreparedStart::Program(launch)) => self.guard.launch(id, launch),
                Ok(PreparedStart::OnHost(host, order)) => {
                    self.agents.order(host, &AgentOrder::Start(order));
                }
                Ok(PreparedStart::Manual(start)) => report(StarterEvent::Manual(start)),
                Err(error) => {
                    // The run fails by the error, so the thread prepares no further programs.
                    stopped.store(true, Ordering::Release);
                    for event in error.events(id) {
                        report(StarterEvent::Run(event));
                    }
                }
            }
        }
    }

    fn prepare(
        &self,
        id: InstanceId,
        env: &BTreeMap<String, String>,
        may_continue: MayContinue<'_>,
    ) -> Result<PreparedStart, PrepareError> {
        let planned = &self.plan.instances[id];
        let folder = self.directory.prepare_instance(planned.folder())?;
        let workdir = folder.join("workdir");
        stage_in(
            &planned.stage_in,
            &self.folders,
            &workdir,
            self.directory.path(),
            may_continue,
        )?;
        match &planned.start {
            StartMode::Program(program) if self.host(id) != HostId::MANAGER => {
                let (host, root) = (self.host(id), self.directory.instances());
                let name = Path::new(planned.folder());
                let sent = self.agents.send_folder(host, &root, name, may_continue);
                if !sent.map_err(|error| PrepareError::Files(error.to_string()))? {
                    return Err(PrepareError::RunFailed);
                }
                let order = Box::new(self.program_order(id, program));
                Ok(PreparedStart::OnHost(host, order))
            }
            StartMode::Program(program) => {
                let temporary = self.temporary.as_deref();
                let prepared = self.command(id, program, &folder, env, temporary)?;
                Ok(PreparedStart::Program(prepared.launch))
            }
            StartMode::Manual(program) => {
                let command = match program {
                    None => Err(NoCommand::NotDescribed),
                    Some(program) => self.manual_command(id, program, &folder, env)?,
                };
                let start = self.manual_start(planned, workdir, command);
                Ok(PreparedStart::Manual(Box::new(start)))
            }
            StartMode::Hosted | StartMode::WithLeader(_) => Err(PrepareError::NotOurs),
        }
    }

    fn placement(&self) -> &Placement {
        self.placement.get().expect("set before the first start")
    }

    /// The host of an instance.
    fn host(&self, id: InstanceId) -> HostId {
        self.placement().hosts[id]
    }

    fn program_order(&self, id: InstanceId, program: &PlannedProgram) -> ProgramOrder {
        let planned = &self.plan.instances[id];
        ProgramOrder {
            id: id.0,
            instance: planned.name.clone(),
            folder: planned.folder().to_owned(),
            program: program.clone(),
            cores: self.placement().cores_at_start(id),
            crowded: self.placement().crowded[id],
        }
    }

    /// The command of a program that the user starts. A program that cannot be run is no failure:
    /// the user may have another program.
    fn manual_command(
        &self,
        id: InstanceId,
        program: &PlannedProgram,
        folder: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Result<PreparedCommand, NoCommand>, PrepareError> {
        match self.command(id, program, folder, env, None) {
            Ok(prepared) => Ok(Ok(prepared)),
            Err(PrepareError::Program(error)) => Ok(Err(error.into())),
            Err(error) => Err(error),
        }
    }

    fn manual_start(
        &self,
        planned: &PlannedInstance,
        workdir: PathBuf,
        command: Result<PreparedCommand, NoCommand>,
    ) -> ManualStart {
        ManualStart {
            name: planned.name.clone(),
            component: planned.component.clone(),
            workdir,
            connection: self.directory.connection(),
            command,
        }
    }

    /// The command to run. Writes the command's files to the instance's folder.
    fn command(
        &self,
        id: InstanceId,
        program: &PlannedProgram,
        folder: &Path,
        env: &BTreeMap<String, String>,
        temporary: Option<&Path>,
    ) -> Result<PreparedCommand, PrepareError> {
        let context = LaunchContext {
            env,
            connection: &self.directory.connection(),
            titin: self.titin.as_os_str(),
            directory: folder,
            cores: &self.placement().cores_at_start(id),
            crowded: self.placement().crowded[id],
            temporary,
            job_parts: &job_parts(&self.plan, &self.placement().process_hosts[id]),
        };
        let name = &self.plan.instances[id].name;
        Ok(prepare_with_files(name, program, &context)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_fault_of_nobody() {
        let id = InstanceId(0);
        let copy = |kind: io::ErrorKind| StageError::Copy {
            from: "/mesh".into(),
            to: "/run/instances/a/workdir/mesh".into(),
            source: kind.into(),
        };
        let events = PrepareError::from(copy(io::ErrorKind::StorageFull)).events(id);
        let [RunEvent::ManagerFailed(text), RunEvent::StartSkipped(_)] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(
            text.contains("/run/instances/a/workdir/mesh") && text.contains("Make room"),
            "{text}"
        );
        let events = PrepareError::from(copy(io::ErrorKind::PermissionDenied)).events(id);
        assert!(
            matches!(&events[..], [RunEvent::StagingFailed(..)]),
            "{events:?}"
        );
        let full = DirectoryError::Write {
            path: "/run".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(
            &PrepareError::from(full).events(id)[..],
            [RunEvent::ManagerFailed(_), RunEvent::StartSkipped(_)]
        ));
    }

    #[test]
    fn a_panic_is_heard_of() {
        let (sender, receiver) = channel();
        let report = move |event| sender.send(event).unwrap();
        let thread = std::thread::spawn(move || {
            let _alarm = PanicReporter(report);
            panic!("no such place");
        });
        thread.join().unwrap_err();
        assert!(
            matches!(receiver.recv().unwrap(), StarterEvent::Run(RunEvent::ManagerFailed(text)) if text.contains("internal error"))
        );
    }
}
