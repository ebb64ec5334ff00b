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
use crate::event::Event;
use crate::guard::{Guard, Launch};
use crate::hand::ByHand;
use crate::launch::{HOSTING, Prepared, SCRIPT, Surroundings, environment, prepare};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, Program, Start, What};
use crate::stage::{GoOn, StageError, stage_in};

/// What programs are prepared from.
pub(crate) struct Workshop {
    pub(crate) plan: Arc<Plan>,
    pub(crate) directory: RunDirectory,
    /// A folder of this host that goes with the run.
    pub(crate) passing: Option<PathBuf>,
    /// Where files to stage are looked for.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) titin: PathBuf,
    pub(crate) placement: Arc<Placement>,
    pub(crate) guard: Arc<Guard>,
}

/// What the thread has to say that the guard does not.
#[derive(Debug)]
pub(crate) enum News {
    /// Something that the state machine must know.
    Event(Event),
    /// All is ready for a program that the user starts.
    ByHand(Box<ByHand>),
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
        workshop: Workshop,
        report: impl Fn(News) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (asked, waiting) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let starter = Starter {
            asked,
            over: over.clone(),
        };
        let env = environment();
        let work = move || {
            let _alarm = Alarm(report.clone());
            for id in waiting {
                let go_on = || !over.load(Ordering::Acquire);
                let prepared = if go_on() {
                    workshop.prepare(id, &env, &go_on)
                } else {
                    Err(Obstacle::Over)
                };
                match prepared {
                    Ok(Ready::Program(launch)) => workshop.guard.launch(id, launch),
                    Ok(Ready::ByHand(ready)) => report(News::ByHand(ready)),
                    Err(obstacle) => {
                        // The run fails by it, so what follows is spared from now on.
                        over.store(true, Ordering::Release);
                        obstacle
                            .events(id)
                            .into_iter()
                            .for_each(|event| report(News::Event(event)));
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
struct Alarm<F: Fn(News)>(F);

impl<F: Fn(News)> Drop for Alarm<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "internal error in the thread that starts programs: see standard error";
            (self.0)(News::Event(Event::Trouble(text.to_owned())));
        }
    }
}

/// Why a program cannot be started.
#[derive(Debug)]
enum Obstacle {
    /// Its entry in the description.
    Program(String),
    /// The files that it needs.
    Files(String),
    /// The run directory, which is nothing of the instance's doing.
    Directory(String),
    /// The run has failed meanwhile.
    Over,
}

impl Obstacle {
    fn events(self, id: InstanceId) -> Vec<Event> {
        match self {
            Obstacle::Program(why) => vec![Event::NotStarted(id, why)],
            Obstacle::Files(why) => vec![Event::NotStaged(id, why)],
            Obstacle::Directory(what) => vec![Event::Trouble(what), Event::Spared(id)],
            Obstacle::Over => vec![Event::Spared(id)],
        }
    }
}

impl From<DirectoryError> for Obstacle {
    fn from(error: DirectoryError) -> Self {
        Obstacle::Directory(error.to_string())
    }
}

impl From<StageError> for Obstacle {
    fn from(error: StageError) -> Self {
        match error {
            // Full is the disk that is copied to.
            StageError::Copy { to, source, .. } if is_full(&source) => {
                DirectoryError::Write { path: to, source }.into()
            }
            StageError::Stopped => Obstacle::Over,
            error => Obstacle::Files(error.to_string()),
        }
    }
}

/// What can be started now.
enum Ready {
    Program(Launch),
    ByHand(Box<ByHand>),
}

impl Workshop {
    fn prepare(
        &self,
        id: InstanceId,
        env: &BTreeMap<String, String>,
        go_on: GoOn<'_>,
    ) -> Result<Ready, Obstacle> {
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
            Start::Program(program) => Ready::Program(
                self.launch(id, program, &folder, env, self.passing.as_deref())?
                    .launch,
            ),
            Start::ByHand(program) => {
                let command = match program {
                    None => Err("the description does not say which".to_owned()),
                    Some(program) => match self.launch(id, program, &folder, env, None) {
                        Ok(prepared) => Ok(prepared),
                        // The user may have another one.
                        Err(Obstacle::Program(why)) => Err(why),
                        Err(obstacle) => return Err(obstacle),
                    },
                };
                let (name, component) = (planned.name.clone(), planned.component.clone());
                let connection = self.directory.connection();
                Ready::ByHand(Box::new(ByHand {
                    name,
                    component,
                    workdir,
                    connection,
                    command,
                }))
            }
            Start::Hosted | Start::Guest(_) => {
                return Err(Obstacle::Program("it is not ours to start".into()));
            }
        })
    }

    /// What is to be run.
    fn launch(
        &self,
        id: InstanceId,
        program: &Program,
        folder: &Path,
        env: &BTreeMap<String, String>,
        passing: Option<&Path>,
    ) -> Result<Prepared, Obstacle> {
        let around = Surroundings {
            env,
            connection: &self.directory.connection(),
            titin: self.titin.as_os_str(),
            directory: folder,
            cores: &self.placement.cores[id],
            crowded: self.placement.crowded[id],
            passing,
        };
        let prepared = prepare(&self.plan, id, program, &around).map_err(Obstacle::Program)?;
        if let What::Host(hosting) = &program.what {
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
        let events = Obstacle::from(copy(io::ErrorKind::StorageFull)).events(id);
        let [Event::Trouble(text), Event::Spared(_)] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(
            text.contains("/run/instances/a/workdir/mesh") && text.contains("Make room"),
            "{text}"
        );
        let events = Obstacle::from(copy(io::ErrorKind::PermissionDenied)).events(id);
        assert!(matches!(&events[..], [Event::NotStaged(..)]), "{events:?}");
        let full = DirectoryError::Write {
            path: "/run".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(
            &Obstacle::from(full).events(id)[..],
            [Event::Trouble(_), Event::Spared(_)]
        ));
    }

    #[test]
    fn a_panic_is_heard_of() {
        let (sender, receiver) = channel();
        let report = move |event| sender.send(event).unwrap();
        let thread = std::thread::spawn(move || {
            let _alarm = Alarm(report);
            panic!("no such place");
        });
        thread.join().unwrap_err();
        assert!(
            matches!(receiver.recv().unwrap(), News::Event(Event::Trouble(text)) if text.contains("internal error"))
        );
    }
}
