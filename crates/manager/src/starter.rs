//! The thread that prepares programs for their start and hands them to the guard, or to the user.
//!
//! It is a thread of its own since copying files takes as long as it takes. Once the run has failed it prepares nothing
//! more, and ends what it is in the middle of.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use crate::directory::{DirectoryError, RunDirectory, is_full};
use crate::event::RunEvent;
use crate::guard::{Guard, Launch};
use crate::launch::{
    HOSTING, LaunchContext, LaunchError, PreparedCommand, SCRIPT, environment, prepare,
};
use crate::manual_start::{ManualStart, NoCommand};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, PlannedCommand, PlannedProgram, StartMode};
use crate::stage::{MayContinue, StageError, stage_in};

/// What programs are prepared from.
pub(crate) struct ProgramPreparer {
    pub(crate) plan: Arc<Plan>,
    pub(crate) directory: RunDirectory,
    /// A folder of this host that goes with the run.
    pub(crate) temporary: Option<PathBuf>,
    /// Where files to stage are looked for.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) titin: PathBuf,
    pub(crate) placement: Arc<Placement>,
    pub(crate) guard: Arc<Guard>,
}

/// What the thread has to say that the guard does not.
#[derive(Debug)]
pub(crate) enum StarterEvent {
    /// Something that the state machine must know.
    Run(RunEvent),
    /// All is ready for a program that the user starts.
    Manual(Box<ManualStart>),
}

/// Asks for programs to be started.
pub(crate) struct Starter {
    asked: Sender<InstanceId>,
    over: Arc<AtomicBool>,
}

impl Starter {
    /// Begins the thread, whose news `report` gets.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn begin(
        workshop: ProgramPreparer,
        report: impl Fn(StarterEvent) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (asked, waiting) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let starter = Starter {
            asked,
            over: over.clone(),
        };
        let env = environment();
        let work = move || {
            let _alarm = PanicReporter(report.clone());
            for id in waiting {
                let go_on = || !over.load(Ordering::Acquire);
                let prepared = if go_on() {
                    workshop.prepare(id, &env, &go_on)
                } else {
                    Err(StartError::RunFailed)
                };
                match prepared {
                    Ok(PreparedStart::Program(launch)) => workshop.guard.launch(id, launch),
                    Ok(PreparedStart::Manual(ready)) => report(StarterEvent::Manual(ready)),
                    Err(obstacle) => {
                        // The run fails by it, so what follows is spared from now on.
                        over.store(true, Ordering::Release);
                        obstacle
                            .events(id)
                            .into_iter()
                            .for_each(|event| report(StarterEvent::Run(event)));
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(work)?;
        Ok(starter)
    }

    /// Has an instance's program started, or all made ready for the user to start it.
    pub(crate) fn start(&self, id: InstanceId) {
        // A thread that has ended has said so.
        let _ = self.asked.send(id);
    }

    /// Nothing more is to be started.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Without the thread, instances would be waited for that never come.
struct PanicReporter<F: Fn(StarterEvent)>(F);

impl<F: Fn(StarterEvent)> Drop for PanicReporter<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "internal error in the thread that starts programs: see standard error";
            (self.0)(StarterEvent::Run(RunEvent::ManagerFailed(text.to_owned())));
        }
    }
}

/// Why a program cannot be started.
#[derive(Debug)]
enum StartError {
    /// Its entry in the description.
    Program(LaunchError),
    /// Another process starts it.
    NotOurs,
    /// The files that it needs.
    Files(String),
    /// The run directory, which is nothing of the instance's doing.
    Directory(String),
    /// The run has failed meanwhile.
    RunFailed,
}

impl StartError {
    fn events(self, id: InstanceId) -> Vec<RunEvent> {
        match self {
            StartError::Program(error) => vec![RunEvent::StartFailed(id, error.to_string())],
            StartError::NotOurs => {
                vec![RunEvent::StartFailed(id, "it is not ours to start".into())]
            }
            StartError::Files(why) => vec![RunEvent::StagingFailed(id, why)],
            StartError::Directory(what) => {
                vec![RunEvent::ManagerFailed(what), RunEvent::StartSkipped(id)]
            }
            StartError::RunFailed => vec![RunEvent::StartSkipped(id)],
        }
    }
}

impl From<DirectoryError> for StartError {
    fn from(error: DirectoryError) -> Self {
        StartError::Directory(error.to_string())
    }
}

impl From<StageError> for StartError {
    fn from(error: StageError) -> Self {
        match error {
            // Full is the disk that is copied to.
            StageError::Copy { to, source, .. } if is_full(&source) => {
                DirectoryError::Write { path: to, source }.into()
            }
            StageError::Interrupted => StartError::RunFailed,
            error => StartError::Files(error.to_string()),
        }
    }
}

/// What can be started now.
enum PreparedStart {
    Program(Launch),
    Manual(Box<ManualStart>),
}

impl ProgramPreparer {
    fn prepare(
        &self,
        id: InstanceId,
        env: &BTreeMap<String, String>,
        go_on: MayContinue<'_>,
    ) -> Result<PreparedStart, StartError> {
        let planned = &self.plan.instances[id];
        let folder = self.directory.prepare_instance(planned.folder())?;
        let workdir = folder.join("workdir");
        stage_in(
            &planned.stage_in,
            &self.folders,
            &workdir,
            self.directory.path(),
            go_on,
        )?;
        Ok(match &planned.start {
            StartMode::Program(program) => PreparedStart::Program(
                self.launch(id, program, &folder, env, self.temporary.as_deref())?
                    .launch,
            ),
            StartMode::Manual(program) => {
                let command = match program {
                    None => Err(NoCommand::NotDescribed),
                    Some(program) => match self.launch(id, program, &folder, env, None) {
                        Ok(prepared) => Ok(prepared),
                        // The user may have another one.
                        Err(StartError::Program(error)) => Err(error.into()),
                        Err(obstacle) => return Err(obstacle),
                    },
                };
                let (name, component) = (planned.name.clone(), planned.component.clone());
                let connection = self.directory.connection();
                PreparedStart::Manual(Box::new(ManualStart {
                    name,
                    component,
                    workdir,
                    connection,
                    command,
                }))
            }
            StartMode::Hosted | StartMode::WithLeader(_) => {
                return Err(StartError::NotOurs);
            }
        })
    }

    /// What is to be run.
    fn launch(
        &self,
        id: InstanceId,
        program: &PlannedProgram,
        folder: &Path,
        env: &BTreeMap<String, String>,
        temporary: Option<&Path>,
    ) -> Result<PreparedCommand, StartError> {
        let around = LaunchContext {
            env,
            connection: &self.directory.connection(),
            titin: self.titin.as_os_str(),
            directory: folder,
            cores: &self.placement.cores[id],
            crowded: self.placement.crowded[id],
            temporary,
        };
        let prepared = prepare(&self.plan, id, program, &around).map_err(StartError::Program)?;
        if let PlannedCommand::Host(hosting) = &program.command {
            self.directory
                .write_hosting(&folder.join(HOSTING), hosting)?;
        }
        if let Some(text) = &prepared.script {
            self.directory.write_script(&folder.join(SCRIPT), text)?;
        }
        Ok(prepared)
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
        let events = StartError::from(copy(io::ErrorKind::StorageFull)).events(id);
        let [RunEvent::ManagerFailed(text), RunEvent::StartSkipped(_)] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(
            text.contains("/run/instances/a/workdir/mesh") && text.contains("Make room"),
            "{text}"
        );
        let events = StartError::from(copy(io::ErrorKind::PermissionDenied)).events(id);
        assert!(
            matches!(&events[..], [RunEvent::StagingFailed(..)]),
            "{events:?}"
        );
        let full = DirectoryError::Write {
            path: "/run".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(
            &StartError::from(full).events(id)[..],
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
