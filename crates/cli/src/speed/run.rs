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
use titin_manager::session::{RunEnd, RunView, Session, SessionSetup};
use titin_manager::state::InstanceStatus;
use titin_model::{LoadOptions, Medium, StartPolicy, load};
use titin_runtime::{Instance, Options};

use super::pingpong::{PORTS, echo, measure as ping};
use super::{BenchPeer, Effort, SMALL};
use crate::commands::run::Forwarding;

/// The two components.
const HERE: &str = "here";
const THERE: &str = "there";

/// Why a measurement has no result.
pub(crate) enum BenchError {
    /// The user ended the measurement.
    Interrupted,
    /// The measurement failed, with the reason.
    Failed(String),
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
        let (address, secret) = invitation(&connection).map_err(BenchError::Failed)?;
        invite(&address, &secret);
    }
    let interrupter = session.interrupter();
    let signals = crate::commands::run::signals().map_err(BenchError::Failed)?;
    let _forwarding = Forwarding::begin(signals, interrupter.clone())
        .map_err(|error| BenchError::Failed(format!("cannot listen to signals: {error}")))?;
    let join = |name: &str| {
        let options = Options::default()
            .manager(connection.to_string_lossy())
            .instance(name);
        Instance::open(options.language("Rust").ports(PORTS)?)
    };
    let first = || {
        let side = || {
            let instance = join(HERE)?;
            let found = ping(&instance, effort)?;
            instance.close()?;
            Ok::<Vec<MessageTime>, titin_runtime::Error>(found)
        };
        // Without an interrupt, the run would wait for a side that never joins.
        side().inspect_err(|_| interrupter.interrupt("an error of the benchmark"))
    };
    let second = || {
        let side = || {
            let instance = join(THERE)?;
            echo(&instance)?;
            instance.close()
        };
        side().inspect_err(|_| interrupter.interrupt("an error of the benchmark"))
    };
    let (found, ending) = thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = (peer.medium() == Medium::Inproc).then(|| scope.spawn(second));
        let ending = session.run(&mut Silent);
        let found = first.join();
        if let Some(second) = second {
            let _ = second.join();
        }
        (found, ending)
    });
    let found = found.map_err(|_| {
        BenchError::Failed("internal error: a side of the benchmark panicked".into())
    })?;
    told(peer, &ending, found)
}

fn told(
    peer: &BenchPeer,
    ending: &RunEnd,
    found: Result<Vec<MessageTime>, titin_runtime::Error>,
) -> Result<MediumSpeed, BenchError> {
    match found {
        Ok(sizes) if ending.outcome == "done" => Ok(MediumSpeed::new(peer.medium(), sizes, SMALL)),
        _ if ending
            .report
            .as_ref()
            .is_some_and(|report| report.page(false).contains("an error of the benchmark")) =>
        {
            Err(BenchError::Failed(found.err().map_or_else(
                || "it was interrupted".into(),
                |error| error.text,
            )))
        }
        _ if ending.outcome == "interrupted" => Err(BenchError::Interrupted),
        Err(error) if ending.report.is_none() => Err(BenchError::Failed(error.text)),
        _ => Err(BenchError::Failed(
            ending.report.as_ref().map_or_else(String::new, why),
        )),
    }
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
    let file = folder.join("bench.ymmsl");
    fs::create_dir(folder)
        .and_then(|()| fs::write(&file, description(peer.medium(), &titin)))
        .map_err(|error| BenchError::Failed(format!("cannot write {}: {error}", file.display())))?;
    let mut hosted = vec![HERE.to_owned()];
    let mut by_hand = Vec::new();
    match peer {
        BenchPeer::Here(Medium::Inproc) => hosted.push(THERE.to_owned()),
        BenchPeer::Here(_) => {}
        BenchPeer::Elsewhere(_) => by_hand.push(THERE.to_owned()),
    }
    let start = StartPolicy::Except {
        hosted: hosted.clone(),
        by_hand: by_hand.clone(),
    };
    let refused = |report: titin_model::ProblemReport| BenchError::Failed(report.to_string());
    let description = load(
        &[file],
        &LoadOptions {
            start,
            ..LoadOptions::default()
        },
    )
    .map_err(refused)?;
    let network = description.network(None).map_err(refused)?;
    let folders = folders(&description);
    let choices = Choices {
        hosted,
        by_hand,
        ..Choices::default()
    };
    let plan = compile(&network, &folders, &choices)
        .map_err(|error| BenchError::Failed(error.to_string()))?;
    let reach = match peer {
        BenchPeer::Here(_) => None,
        BenchPeer::Elsewhere(address) => Some(*address),
    };
    let setup = SessionSetup {
        asked: std::time::Instant::now(),
        plan,
        configuration: description.to_ymmsl(),
        folders,
        run_directory: Some(folder.join("run")),
        titin,
        host: Some(std::process::id()),
        reach,
        scratch: folder.parent().map(Path::to_owned),
    };
    Session::open(setup).map_err(|error| BenchError::Failed(error.to_string()))
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
fn invitation(connection: &Path) -> Result<(String, String), String> {
    let wrong = |why: String| format!("{}: {why}", connection.display());
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

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, String> {
        use std::os::unix::fs::DirBuilderExt as _;
        let place = std::env::temp_dir();
        folder_lock::sweep(&place, SCRATCH);
        let wrong = |error: io::Error| {
            let place = place.display();
            format!(
                "cannot make a folder in {place}: {error}; set TMPDIR to a place that you may write to"
            )
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
