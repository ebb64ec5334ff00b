//! A run as its page shows it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::Serialize;
use titin_manager::directory::RunDirectory;
use titin_manager::profile::{Database, RunProfile};
use titin_model::{Description, Network};
use titin_os::host;
use titin_wire::observation::ObservedRun;

use crate::facts::Facts;
use crate::logs::{LogEnd, open_file};
use crate::observer::Observer;
use crate::processes::Processes;
use crate::state::{RecordedEnd, RunPhase, State};

/// How long a look at the run serves all pages that ask.
const FRESH: Duration = Duration::from_millis(700);

/// The most bytes of a log on a page of a server.
const LOG: u64 = 64 << 10;

/// The most bytes of all logs in a saved page, and of one of them.
const ALL_SAVED_LOGS: u64 = 4 << 20;
const LEAST_SAVED_LOG: u64 = 1 << 10;

/// The longest record of the end of a run that is read.
const LONGEST_END: u64 = 256 << 20;

/// Why a run cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// There is no such directory.
    #[error("there is no run directory {}: give the directory that `titin run` prints at the beginning of a run", .0.display())]
    NoDirectory(PathBuf),
    /// The directory is not that of a run.
    #[error("{} is no run directory: it has no folder instances", .0.display())]
    NoRun(PathBuf),
    /// The page cannot be served.
    #[error("cannot serve the page at 127.0.0.1:{port}: {error}")]
    Listen {
        /// The port; 0 for any that is free.
        port: u16,
        /// The system's answer.
        error: io::Error,
    },
    /// The system has no random numbers for the link.
    #[error("cannot make a secret for the link: {0}")]
    Random(#[from] getrandom::Error),
    /// The data cannot be written as JSON.
    #[error("cannot write the data of the page: {0}")]
    Json(#[from] serde_json::Error),
}

/// A run that goes on or is over.
pub struct ViewedRun {
    directory: RunDirectory,
    description: Option<Description>,
    observer: Observer,
    own_host: String,
    last: Mutex<LastLook>,
}

/// The facts and the state at the last look.
#[derive(Default)]
struct LastLook {
    at: Option<Instant>,
    facts: Arc<Facts>,
    state: Arc<State>,
    /// Whether the run is over, so that nothing changes any more.
    is_over: bool,
    /// Whether the manager has answered.
    was_alive: bool,
    processes: Processes,
}

/// All data of a saved page.
#[derive(Serialize)]
pub(crate) struct SavedRun {
    pub(crate) facts: Facts,
    state: State,
    /// The ends of the logs: of the manager under an empty name, of instances under the name and the
    /// output.
    logs: BTreeMap<String, LogEnd>,
}

impl ViewedRun {
    /// The run in a directory. `description` is what was run, if it can be read.
    ///
    /// # Errors
    /// [`ViewError::NoDirectory`] if there is no such directory, [`ViewError::NoRun`] if it is not that of a run.
    pub fn open(directory: &Path, description: Option<Description>) -> Result<Self, ViewError> {
        let no_run = || ViewError::NoRun(directory.to_owned());
        let path = directory.canonicalize().map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => ViewError::NoDirectory(directory.to_owned()),
            _ => no_run(),
        })?;
        let directory = RunDirectory::at(path);
        if !directory.instances().is_dir() {
            return Err(no_run());
        }
        Ok(ViewedRun {
            observer: Observer::new(directory.connection()),
            directory,
            description,
            own_host: host::name(),
            last: Mutex::default(),
        })
    }

    /// The path of the run directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The state, and the facts that go with it.
    pub(crate) fn look(&self) -> (Arc<Facts>, Arc<State>) {
        let mut last = self.lock();
        let is_fresh = last.at.is_some_and(|at| at.elapsed() < FRESH);
        if !last.is_over && !is_fresh {
            match self.goes_on() {
                true => self.look_at_manager(&mut last),
                false => self.look_at_end(&mut last),
            }
            last.at = Some(Instant::now());
        }
        (last.facts.clone(), last.state.clone())
    }

    fn lock(&self) -> MutexGuard<'_, LastLook> {
        self.last.lock().expect("never poisoned")
    }

    /// Whether the run goes on: the manager removes the connection file at the end.
    fn goes_on(&self) -> bool {
        self.directory.connection().exists()
    }

    fn look_at_manager(&self, last: &mut LastLook) {
        match self.observer.look() {
            Ok(told) => self.take_in(&told, last),
            // The run may have ended meanwhile.
            Err(_) if !self.goes_on() => self.look_at_end(last),
            Err(why) => self.note_silence(&why, last),
        }
    }

    fn take_in(&self, told: &ObservedRun, last: &mut LastLook) {
        last.was_alive = true;
        let is_here = told.host == self.own_host;
        if is_here {
            let own = told.instances.iter().filter_map(|one| one.process.as_ref());
            let own = own.filter(|process| process.host.is_none());
            let mut pids: Vec<u32> = own.map(|process| process.pid).collect();
            pids.sort_unstable();
            pids.dedup();
            last.processes.look(&pids);
        }
        if last.facts.instances.len() != told.instances.len() {
            let names = told.instances.iter().map(|one| one.name.clone());
            let facts = self.facts(&told.model, Some(told.host.clone()), names);
            last.facts = Arc::new(facts);
        }
        let processes = is_here.then_some(&last.processes);
        last.state = Arc::new(State::of_manager(told, processes));
    }

    /// The manager does not answer. What it has told last stays on the page.
    fn note_silence(&self, why: &str, last: &mut LastLook) {
        if last.facts.instances.is_empty() {
            let names = self.names_at_end(None, None, "");
            last.facts = Arc::new(self.facts("", None, names));
            last.state = Arc::new(State::of_end(&last.facts.instances, Ok(None), None));
        }
        last.state = Arc::new(State {
            phase: RunPhase::Silent,
            report: Some(format!(
                "The manager of the run does not answer: {why}\nIt may be stopped, or it was killed, or it runs on another host."
            )),
            ..State::clone(&last.state)
        });
    }

    /// The manager has let go of the connection file. At the end it copies results, and records the end last.
    fn look_at_end(&self, last: &mut LastLook) {
        let recorded = self.recorded_end();
        last.is_over = !matches!(recorded, Ok(None));
        if !last.is_over && last.was_alive {
            last.state = Arc::new(State {
                phase: RunPhase::Ending,
                ..State::clone(&last.state)
            });
            return;
        }
        let database = Database::open(self.path()).ok();
        let profile = database
            .as_ref()
            .and_then(|database| database.profile().ok());
        let run = profile.as_ref().and_then(|profile| profile.run.as_ref());
        let end = recorded.as_ref().ok().and_then(Option::as_ref);
        let model = match (end, run) {
            (Some(end), _) => end.model.clone(),
            (None, Some(run)) => run.model.clone(),
            (None, None) => last.facts.model.clone(),
        };
        let host = run
            .map(|run| run.host.clone())
            .or_else(|| last.facts.host.clone());
        let names = self.names_at_end(end, profile.as_ref(), &model);
        let mut facts = self.facts(&model, host, names);
        if let (Some(database), Some(profile)) = (&database, &profile) {
            facts.measure(database, profile);
        }
        last.state = Arc::new(State::of_end(
            &facts.instances,
            recorded
                .as_ref()
                .map(Option::as_ref)
                .map_err(String::as_str),
            profile.as_ref(),
        ));
        last.facts = Arc::new(facts);
    }

    /// The record of the end, if it is there.
    ///
    /// # Errors
    /// In words, if the record cannot be read.
    fn recorded_end(&self) -> Result<Option<RecordedEnd>, String> {
        let mut text = String::new();
        let read = open_file(&self.directory.end())
            .and_then(|file| file.take(LONGEST_END).read_to_string(&mut text));
        match read {
            Ok(_) => RecordedEnd::read(&text).map(Some),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(format!("end.json cannot be read: {why}")),
        }
    }

    fn names_at_end(
        &self,
        end: Option<&RecordedEnd>,
        profile: Option<&RunProfile>,
        model: &str,
    ) -> Vec<String> {
        if let Some(end) = end {
            return end.instances.iter().map(|one| one.name.clone()).collect();
        }
        if let Some((_, network)) = self.network(model) {
            return network.instances().map(|name| name.to_string()).collect();
        }
        let recorded = profile.iter().flat_map(|profile| &profile.instances);
        recorded.map(|one| one.name.clone()).collect()
    }

    fn facts(
        &self,
        model: &str,
        host: Option<String>,
        names: impl IntoIterator<Item = String>,
    ) -> Facts {
        let mut facts = Facts {
            model: model.to_owned(),
            host,
            directory: self.path().display().to_string(),
            ..Facts::default()
        };
        facts.name_instances(names);
        match self.network(model) {
            Some((description, network)) => {
                facts.model = network.model.to_string();
                facts.describe(description, &network);
            }
            None => {
                let note =
                    "There is no picture: the description in the run directory cannot be read.";
                facts.graph_note = Some(note.to_owned());
            }
        }
        facts
    }

    /// What was run, of the model with a name; of the only model if the name is not known.
    fn network(&self, model: &str) -> Option<(&Description, Network)> {
        let description = self.description.as_ref()?;
        let name = Some(model).filter(|name| !name.is_empty());
        Some((description, description.network(name).ok()?))
    }

    /// The end of the log of an instance, or of the manager if the name is empty; `None` if the run has no such
    /// instance.
    pub(crate) fn log(&self, instance: &str, is_error: bool) -> Option<LogEnd> {
        let (facts, _) = self.look();
        if instance.is_empty() {
            return Some(self.own_log(&self.directory.log(), LOG));
        }
        // Only names of the run are names of folders.
        let is_known = facts.instances.iter().any(|(name, _)| name == instance);
        is_known.then(|| self.output(instance, is_error, LOG))
    }

    fn output(&self, instance: &str, is_error: bool, most: u64) -> LogEnd {
        let file = if is_error { "stderr.txt" } else { "stdout.txt" };
        self.own_log(&self.directory.instance(instance).join(file), most)
    }

    /// The end of a log. A link out of the run directory is not followed: a saved page may be given away.
    fn own_log(&self, path: &Path, most: u64) -> LogEnd {
        match path.canonicalize() {
            Ok(path) if path.starts_with(self.path()) => LogEnd::read(&path, most),
            _ => LogEnd::default(),
        }
    }

    pub(crate) fn saved(&self) -> SavedRun {
        let (facts, state) = self.look();
        let count = facts.instances.len().max(1) as u64 * 2;
        let most = (ALL_SAVED_LOGS / count).clamp(LEAST_SAVED_LOG, LOG);
        let mut logs = BTreeMap::from([(String::new(), self.own_log(&self.directory.log(), LOG))]);
        for (name, _) in &facts.instances {
            for (stream, is_error) in [("stdout", false), ("stderr", true)] {
                let end = self.output(name, is_error, most);
                logs.insert(format!("{name}/{stream}"), end);
            }
        }
        SavedRun {
            facts: Facts::clone(&facts),
            state: State::clone(&state),
            logs,
        }
    }
}
