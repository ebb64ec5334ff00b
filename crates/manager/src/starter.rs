//! The thread that prepares programs for their start and hands them to the guard.
//!
//! It is a thread of its own since copying files takes as long as it takes. Once the run has failed it prepares nothing
//! more, and ends what it is in the middle of.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use crate::directory::{DirectoryError, RunDirectory, is_full};
use crate::event::Event;
use crate::guard::{Guard, Launch};
use crate::launch::{SCRIPT, Surroundings, prepare};
use crate::placement::Placement;
use crate::plan::{InstanceId, Plan, Start};
use crate::stage::{GoOn, StageError, stage_in};

/// What programs are prepared from.
pub(crate) struct Workshop {
    pub(crate) plan: Arc<Plan>,
    pub(crate) directory: RunDirectory,
    /// Where files to stage are looked for.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) titin: PathBuf,
    pub(crate) placement: Arc<Placement>,
    pub(crate) guard: Arc<Guard>,
}

/// Asks for programs to be started.
pub(crate) struct Starter {
    asked: Sender<InstanceId>,
    over: Arc<AtomicBool>,
}

impl Starter {
    /// Begins the thread; `report` gets what it has to say that the guard does not.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn begin(
        workshop: Workshop,
        report: impl Fn(Event) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (asked, waiting) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let starter = Starter { asked, over: over.clone() };
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let work = move || {
            let _alarm = Alarm(report.clone());
            for id in waiting {
                if over.load(Ordering::Acquire) {
                    report(Event::Spared(id));
                    continue;
                }
                match workshop.prepare(id, &env, &|| !over.load(Ordering::Acquire)) {
                    Ok(launch) => workshop.guard.launch(id, launch),
                    Err(obstacle) => {
                        // The run fails by it, so what follows is spared from now on.
                        over.store(true, Ordering::Release);
                        obstacle.events(id).into_iter().for_each(&report);
                    }
                }
            }
        };
        std::thread::Builder::new().name("starter".into()).spawn(work)?;
        Ok(starter)
    }

    /// Has an instance's program started.
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
struct Alarm<F: Fn(Event)>(F);

impl<F: Fn(Event)> Drop for Alarm<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "internal error in the thread that starts programs: see standard error";
            (self.0)(Event::Trouble(text.to_owned()));
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

impl Workshop {
    fn prepare(
        &self,
        id: InstanceId,
        env: &BTreeMap<String, String>,
        go_on: GoOn<'_>,
    ) -> Result<Launch, Obstacle> {
        let planned = &self.plan.instances[id];
        let Start::Program(program) = &planned.start else {
            return Err(Obstacle::Program("it is not ours to start".into()));
        };
        let folder = self.directory.prepare_instance(&planned.name)?;
        let workdir = folder.join("workdir");
        stage_in(&planned.stage_in, &self.folders, &workdir, self.directory.path(), go_on)?;
        let around = Surroundings {
            env,
            connection: &self.directory.connection(),
            titin: self.titin.as_os_str(),
            directory: &folder,
            cores: &self.placement.cores[id],
        };
        let prepared = prepare(&self.plan, id, program, &around).map_err(Obstacle::Program)?;
        if let Some(text) = prepared.script {
            self.directory.write_script(&folder.join(SCRIPT), &text)?;
        }
        Ok(prepared.launch)
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
        let [Event::Trouble(text), Event::Spared(_)] = &events[..] else { panic!("{events:?}") };
        assert!(text.contains("/run/instances/a/workdir/mesh") && text.contains("Make room"), "{text}");
        let events = Obstacle::from(copy(io::ErrorKind::PermissionDenied)).events(id);
        assert!(matches!(&events[..], [Event::NotStaged(..)]), "{events:?}");
        let full = DirectoryError::Write { path: "/run".into(), source: io::ErrorKind::StorageFull.into() };
        assert!(matches!(&Obstacle::from(full).events(id)[..], [Event::Trouble(_), Event::Spared(_)]));
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
        assert!(matches!(receiver.recv().unwrap(), Event::Trouble(text) if text.contains("internal error")));
    }
}
