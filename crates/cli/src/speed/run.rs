//! The run around the two sides: an ordinary run of a generated model. This process is the manager
//! and the first side.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use titin_draw::{MediumSpeed, MessageTime};
use titin_manager::compile::{Choices, compile, folders};
use titin_manager::directory::RunDirectory;
use titin_manager::event::Level;
use titin_manager::folder_lock;
use titin_manager::plan::Plan;
use titin_manager::report::Report;
use titin_manager::session::{Interrupter, RunEnd, RunView, Session, SessionSetup};
use titin_manager::state::InstanceStatus;
use titin_model::{Description, LoadOptions, Medium, StartPolicy, load};
use titin_runtime::{Instance, Options};

use super::pingpong::{PORTS, echo, measure as ping};
use super::{BenchPeer, Effort, SMALL};
use crate::commands::run::{Forwarding, SignalsError};

/// The two components.
const HERE: &str = "here";
const THERE: &str = "there";

/// What has ended the run, in the words of the run's report.
const BENCH_ERROR: &str = "an error of the benchmark";

/// Why a measurement has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("the user ended the measurement")]
    Interrupted,
    /// The measurement failed, with the reason.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Signals(#[from] SignalsError),
}

/// Measures a medium with a run in the scratch folder. If the other end is on another host,
/// `invite` gets the address and the secret by which the other host can join.
pub(crate) fn measure(
    peer: &BenchPeer,
    scratch: &Scratch,
    effort: &Effort<'_>,
    invite: &dyn Fn(&str, &str),
) -> Result<MediumSpeed, BenchError> {
    let folder = scratch.path.join(peer.medium().key());
    let session = open(peer, &folder)?;
    let connection = folder.join("run/connection.json");
    if matches!(peer, BenchPeer::Elsewhere(_)) {
        let (address, secret) = invitation(&connection)?;
        invite(&address, &secret);
    }
    let interrupter = session.interrupter();
    let _forwarding = Forwarding::begin(crate::commands::run::signals()?, interrupter.clone())?;
    let side = |name| BenchSide {
        name,
        connection: &connection,
        interrupter: &interrupter,
    };
    let (first, second) = (side(HERE), side(THERE));
    let (found, ending) = thread::scope(|scope| {
        let found = scope.spawn(|| first.play(|instance| ping(instance, effort)));
        if peer.medium() == Medium::Inproc {
            scope.spawn(|| second.play(echo));
        }
        let ending = session.run(&mut Silent);
        (found.join(), ending)
    });
    let found = found.map_err(|_| failed("internal error: a side of the benchmark panicked"))?;
    told(peer, &ending, found)
}

/// A side that this process plays.
struct BenchSide<'a> {
    name: &'static str,
    connection: &'a Path,
    interrupter: &'a Interrupter,
}

impl BenchSide<'_> {
    /// Joins the run, plays, and closes. Without the interrupt after an error, the run would wait
    /// for a side that never joins.
    fn play<T>(
        &self,
        part: impl FnOnce(&Instance) -> titin_runtime::Result<T>,
    ) -> titin_runtime::Result<T> {
        let joined = || {
            let options = Options::default()
                .manager(self.connection.to_string_lossy())
                .instance(self.name);
            let instance = Instance::open(options.language("Rust").ports(PORTS)?)?;
            let found = part(&instance)?;
            instance.close()?;
            Ok(found)
        };
        joined().inspect_err(|_| self.interrupter.interrupt(BENCH_ERROR))
    }
}

fn told(
    peer: &BenchPeer,
    ending: &RunEnd,
    found: Result<Vec<MessageTime>, titin_runtime::Error>,
) -> Result<MediumSpeed, BenchError> {
    let report = ending.report.as_ref();
    let is_own_fault = report.is_some_and(|report| report.page(false).contains(BENCH_ERROR));
    let error = match found {
        Ok(sizes) if ending.outcome == "done" => {
            return Ok(MediumSpeed::new(peer.medium(), sizes, SMALL));
        }
        Ok(_) if is_own_fault => BenchError::Failed("it was interrupted".into()),
        Err(error) if is_own_fault => BenchError::Failed(error.text),
        _ if ending.outcome == "interrupted" => BenchError::Interrupted,
        Err(error) if report.is_none() => BenchError::Failed(error.text),
        _ => BenchError::Failed(report.map_or_else(String::new, why)),
    };
    Err(error)
}

/// Why the run has failed. A run's report names files; `why` names no files, since the files go
/// with the scratch folder.
fn why(report: &Report) -> String {
    let printed = report
        .output
        .iter()
        .flat_map(|(_, lines)| lines)
        .map(|line| format!("\n  | {line}"));
    std::iter::once(report.cause.clone())
        .chain(printed)
        .collect()
}

/// Opens a run of the generated model.
fn open(peer: &BenchPeer, folder: &Path) -> Result<Session, BenchError> {
    let titin = std::env::current_exe().map_err(|error| {
        BenchError::Failed(format!("cannot find this command's own file: {error}"))
    })?;
    let file = write_description(peer.medium(), &titin, folder)?;
    let choices = choices(peer);
    let description = load_description(file, &choices)?;
    let network = description.network(None).map_err(failed)?;
    let folders = folders(&description);
    let plan = compile(&network, &folders, &choices).map_err(failed)?;
    let setup = SessionSetup {
        asked: std::time::Instant::now(),
        plan,
        configuration: description.to_ymmsl(),
        folders,
        run_directory: Some(folder.join("run")),
        titin,
        host: Some(std::process::id()),
        reach: match peer {
            BenchPeer::Here(_) => None,
            BenchPeer::Elsewhere(address) => Some(*address),
        },
        relay: None,
        scratch: folder.parent().map(Path::to_owned),
    };
    Session::open(setup).map_err(failed)
}

/// Makes the folder of a run, with the run's description in it.
fn write_description(medium: Medium, titin: &Path, folder: &Path) -> Result<PathBuf, BenchError> {
    let file = folder.join("bench.ymmsl");
    let made = fs::create_dir(folder);
    match made.and_then(|()| fs::write(&file, description(medium, titin))) {
        Ok(()) => Ok(file),
        Err(error) => {
            let text = format!("cannot write {}: {error}", file.display());
            Err(BenchError::Failed(text))
        }
    }
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Failed(error.to_string())
}

/// How the two sides are started.
fn choices(peer: &BenchPeer) -> Choices {
    let (here, there) = (HERE.to_owned(), THERE.to_owned());
    let (hosted, by_hand) = match peer {
        BenchPeer::Here(Medium::Inproc) => (vec![here, there], vec![]),
        BenchPeer::Here(_) => (vec![here], vec![]),
        BenchPeer::Elsewhere(_) => (vec![here], vec![there]),
    };
    Choices {
        hosted,
        by_hand,
        ..Choices::default()
    }
}

fn load_description(file: PathBuf, choices: &Choices) -> Result<Description, BenchError> {
    let start = StartPolicy::Except {
        hosted: choices.hosted.clone(),
        by_hand: choices.by_hand.clone(),
    };
    let options = LoadOptions {
        start,
        ..LoadOptions::default()
    };
    load(&[file], &options).map_err(failed)
}

/// A model of two instances that send and receive in each step, with the medium pinned. Within a
/// process there is only one medium, so there is no pin.
fn description(medium: Medium, titin: &Path) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // In `executable` a dollar begins the name of a variable.
    let titin = quoted(&titin.to_string_lossy().replace('$', "$$"));
    let pins = match medium {
        Medium::Inproc => String::new(),
        medium => format!(
            "titin:\n  medium: {{{HERE}.in: {medium}, {THERE}.in: {medium}}}\n",
            medium = medium.key()
        ),
    };
    format!(
        "ymmsl_version: v0.2
description: Messages to and fro, to see how fast they are.
models:
  bench:
    components:
      {HERE}: {{description: sends and takes the time, ports: {{o_i: out, s: in}}, implementation: {HERE}}}
      {THERE}: {{description: sends back, ports: {{o_i: out, s: in}}, implementation: {THERE}}}
    conduits:
      {HERE}.out: {THERE}.in
      {THERE}.out: {HERE}.in
programs:
  {HERE}: {{executable: {titin}}}
  {THERE}: {{executable: {titin}, args: [echo]}}
resources:
  bench.{HERE}: {{threads: 1}}
  bench.{THERE}: {{threads: 1}}
{pins}"
    )
}

/// The address and the secret by which the other host joins.
fn invitation(connection: &Path) -> Result<(String, String), BenchError> {
    let wrong = |why: String| BenchError::Failed(format!("{}: {why}", connection.display()));
    let text = fs::read_to_string(connection).map_err(|error| wrong(error.to_string()))?;
    let found: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match (found["addresses"][0].as_str(), found["secret"].as_str()) {
        (Some(address), Some(secret)) => Ok((
            address.trim_start_matches("tcp:").to_owned(),
            secret.to_owned(),
        )),
        _ => Err(wrong("it lacks an address or the secret".to_owned())),
    }
}

/// Shows nothing of the runs.
struct Silent;

impl RunView for Silent {
    fn begun(&mut self, _: &RunDirectory, _: &Plan) {}
    fn manual_starts(&mut self, _: &str) {}
    fn log_line(&mut self, _: Level, _: &str) {}
    fn show(&mut self, _: Duration, _: &[InstanceStatus]) {}
    fn show_wait(&mut self, _: &[String]) {}
    fn interval(&self) -> Option<Duration> {
        None
    }
}

/// The first part of the names of scratch folders.
const SCRATCH: &str = "titin-bench-";

/// A folder for this command alone. Dropping the `Scratch` removes the folder. If the command is
/// killed, the guard of the command's run removes the folder. If there is no guard at that moment,
/// the next command removes the folder.
pub(crate) struct Scratch {
    path: PathBuf,
    /// Holds the lock of the folder.
    _claim: File,
}

/// No folder for temporary files can be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a folder in {}: {error}; set TMPDIR to a place that you may write to", place.display())]
pub(crate) struct ScratchError {
    place: PathBuf,
    error: io::Error,
}

impl Scratch {
    /// # Errors
    /// [`ScratchError`] if no folder can be made.
    pub(crate) fn new() -> Result<Scratch, ScratchError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let place = std::env::temp_dir();
        folder_lock::sweep(&place, SCRATCH);
        let wrong = |error: io::Error| ScratchError {
            place: place.clone(),
            error,
        };
        let mut tried = 0;
        loop {
            let path = place.join(format!("{SCRATCH}{}-{tried}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    return folder_lock::lock_new(&path)
                        .map(|_claim| Scratch { path, _claim })
                        .map_err(wrong);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < 1000 => {
                    tried += 1
                }
                Err(error) => return Err(wrong(error)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure, the folder stays among the temporary files, and the next command removes
        // the folder.
        let _ = fs::remove_dir_all(&self.path);
    }
}
