//! `titin run`: a run from the description to the exit code. `titin manager`: the same without
//! starting programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Instant;

use clap::Args;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use titin_draw::units::count;
use titin_manager::absolute_paths::with_absolute_paths;
use titin_manager::compile::{Choices, CompileError, compile, folders};
use titin_manager::event::signal_name;
use titin_manager::launch::environment;
use titin_manager::preflight::find_executables_without_python;
use titin_manager::session::{
    EnsembleResult, HomeRelay, Interrupter, RunEnd, Session, SessionError, SessionSetup,
};
use titin_model::{Description, Network, ProblemReport, StartPolicy};
use titin_relay::{ConfigError, RelayFolder};

use super::planned::{SurroundingsError, complete};
use super::submit::SubmitOptions;
use super::{check, placement, refusal};
use crate::listen::{ListenError, reach};
use crate::sources::Sources;
use crate::terminal::{self, BOLD, GOOD, print, warn};
use crate::view;

/// The exit code of a failed run.
const FAILED: u8 = 1;
/// The exit code of a run that the user ended.
const INTERRUPTED: u8 = 130;

/// Runs a model: starts the programs, watches the programs, and says how the run ended
///
/// Exit codes: 0 all is done; 1 the run failed; 2 nothing was started, since the description or a
/// choice is bad; 130 the run was ended by Ctrl-C or a signal.
#[derive(Args)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    common: CommonOptions,
    /// Components run by the calling process itself
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        hide = true,
        conflicts_with = "submit"
    )]
    hosted: Vec<String>,
    /// Components or instances to start by hand, in a debugger for instance; the command prints how
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "submit"
    )]
    by_hand: Vec<String>,
    /// Print the host and the cores that each instance would get, and which instances would share them,
    /// and start nothing
    #[arg(long, conflicts_with = "submit")]
    plan: bool,
    #[command(flatten)]
    submit: SubmitOptions,
}

/// Serves a model whose programs are all started by hand, and prints how to start each program
#[derive(Args)]
pub(crate) struct ManagerCommand {
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Args)]
struct CommonOptions {
    #[command(flatten)]
    sources: Sources,
    /// Where the run's files go, in place of run_MODEL_DATE_TIME
    #[arg(long, value_name = "DIRECTORY")]
    run_dir: Option<PathBuf>,
    /// The address of this host for programs on other hosts, or all addresses of this host (`all`,
    /// as in a Slurm job of several nodes)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The folder of the relay of this site, for a run with other sites [default:
    /// ~/.config/titin/relay]
    #[arg(long, value_name = "FOLDER")]
    relay: Option<PathBuf>,
    /// The run directory of an earlier run: instances with most bytes between them go on one host
    #[arg(long, value_name = "DIRECTORY")]
    profile: Option<PathBuf>,
    /// Write there what TITIN_MANAGER has to be, once programs can join
    #[arg(long, value_name = "FILE")]
    location_file: Option<PathBuf>,
    /// End the run, as SIGTERM does, when this process ends, which has started the command
    #[arg(long, value_name = "PROCESS", hide = true)]
    parent: Option<u32>,
    /// Have programs record when they send and receive
    #[arg(long)]
    trace: bool,
    /// Show the whole log
    #[arg(short, long)]
    verbose: bool,
    /// Print the outcome of the run as JSON
    #[arg(long)]
    json: bool,
}

impl RunCommand {
    pub(crate) fn run(self) -> ExitCode {
        let RunCommand {
            common,
            hosted,
            by_hand,
            plan,
            submit,
        } = self;
        if let Some(system) = submit.system() {
            let arguments = common.arguments();
            return submit.run(system, &common.sources, &arguments, common.json);
        }
        let start = StartPolicy::Except {
            hosted: hosted.clone(),
            by_hand: by_hand.clone(),
        };
        let choices = Choices {
            hosted,
            by_hand,
            serve_only: false,
            trace: common.trace,
        };
        match plan {
            true => placement::show(
                &common.sources,
                start,
                &choices,
                common.profile.as_deref(),
                common.json,
            ),
            false => common.run(start, &choices),
        }
    }
}

impl ManagerCommand {
    pub(crate) fn run(self) -> ExitCode {
        let trace = self.common.trace;
        self.common.run(
            StartPolicy::ByHand,
            &Choices {
                serve_only: true,
                trace,
                ..Choices::default()
            },
        )
    }
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Description(#[from] ProblemReport),
    #[error("cannot find this command's own file: {0}")]
    OwnFile(io::Error),
    #[error(transparent)]
    Plan(#[from] CompileError),
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Signals(#[from] SignalsError),
    #[error(transparent)]
    Relay(#[from] ConfigError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("cannot write the location to {path}: {why}", path = .path.display())]
    Location { path: PathBuf, why: io::Error },
}

impl CommonOptions {
    /// These options as arguments of `titin run`.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let with_value = [
            ("--model", self.sources.model.clone()),
            ("--run-dir", self.run_dir.as_ref().map(text)),
            ("--profile", self.profile.as_ref().map(text)),
            ("--location-file", self.location_file.as_ref().map(text)),
            ("--listen", self.listen.clone()),
            ("--relay", self.relay.as_ref().map(text)),
        ];
        for (name, value) in with_value {
            arguments.extend(value.map(|value| format!("{name}={value}")));
        }
        let settings = self.sources.settings.iter();
        arguments.extend(settings.map(|setting| format!("--set={setting}")));
        let flags = [
            ("--allow-missing", self.sources.allow_missing),
            ("--trace", self.trace),
            ("--verbose", self.verbose),
            ("--json", self.json),
        ];
        let given = flags.iter().filter(|(_, is_given)| *is_given);
        arguments.extend(given.map(|(name, _)| (*name).to_owned()));
        arguments.push("--".to_owned());
        arguments.extend(self.sources.files.iter().map(text));
        arguments
    }

    fn run(self, start: StartPolicy, choices: &Choices) -> ExitCode {
        if self.parent.is_some_and(|parent| !ends_with(parent)) {
            return ExitCode::from(INTERRUPTED);
        }
        let opened = self
            .open(Instant::now(), start, choices)
            .and_then(|(session, forwarding)| {
                let file = self.location_file.as_deref();
                file.map_or(Ok(()), |file| write_location(file, &session))?;
                Ok((session, forwarding))
            });
        match opened {
            Ok((session, _forwarding)) => {
                let ending = session.run(&mut *view::make(self.verbose));
                self.tell(&ending)
            }
            Err(why) => self.refuse(&why),
        }
    }

    /// Opens the run. Signals go to the run from here on. `asked` is the time at which the user
    /// asked for the run.
    fn open(
        &self,
        asked: Instant,
        start: StartPolicy,
        choices: &Choices,
    ) -> Result<(Session, Forwarding), StartError> {
        let description = self.sources.load(start, false)?;
        let network = description.network(self.sources.model.as_deref())?;
        if !description.warnings.problems.is_empty() {
            warn(&check::text(&description.warnings, None, terminal::width()));
        }
        let titin = std::env::current_exe().map_err(StartError::OwnFile)?;
        let setup = self.setup(asked, description, network, titin, choices)?;
        // A signal that comes while the run is opened waits until the run can be ended in order.
        let signals = signals()?;
        let session = Session::open(setup)?;
        let forwarding = Forwarding::begin(signals, session.interrupter())?;
        Ok((session, forwarding))
    }

    /// The setup of the run. A large model takes much memory, so each form of the model is dropped
    /// after the last use.
    fn setup(
        &self,
        asked: Instant,
        description: Description,
        mut network: Network,
        titin: PathBuf,
        choices: &Choices,
    ) -> Result<SessionSetup, StartError> {
        let folders = folders(&description);
        let configuration = with_absolute_paths(description, &folders).to_ymmsl();
        find_executables_without_python(&mut network, &folders, choices, &environment(), &titin);
        let mut plan = compile(&network, &folders, choices)?;
        drop(network);
        complete(&mut plan, self.profile.as_deref())?;
        let reach = reach(self.listen.as_deref(), !plan.hosts.is_empty())?;
        let caller = getppid()
            .filter(|_| !choices.hosted.is_empty())
            .map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        let relay = match plan.has_other_sites() {
            true => self.home_relay().transpose()?,
            false => None,
        };
        Ok(SessionSetup {
            asked,
            plan,
            configuration,
            folders,
            run_directory: self.run_dir.clone(),
            titin,
            host: caller,
            relay,
            reach,
            scratch: None,
        })
    }

    /// The relay of this site; `None` if the user has none.
    fn home_relay(&self) -> Option<Result<HomeRelay, ConfigError>> {
        let folder = match &self.relay {
            Some(folder) => RelayFolder::at(folder),
            None => Some(RelayFolder::usual()).filter(|usual| usual.path().exists())?,
        };
        let read = || {
            Ok(HomeRelay {
                address: folder.config()?.local,
                key: folder.access()?,
            })
        };
        Some(read())
    }

    /// Says why nothing was started.
    fn refuse(&self, why: &StartError) -> ExitCode {
        match why {
            StartError::Description(report) => refusal::of_description(report, self.json),
            other => refusal::of(other, self.json),
        }
    }

    fn tell(&self, ending: &RunEnd) -> ExitCode {
        if let Some(report) = &ending.report {
            let colour = terminal::colours_in_messages();
            warn(&format!("\n{}", report.page(colour)));
        }
        if self.json {
            let printed = terminal::json(ending, "the end").and_then(|text| print(&text));
            if let Err(code) = printed {
                return code;
            }
        } else if ending.outcome == "done" {
            // The run has succeeded even if this line cannot be printed.
            let _ = print(&done_line(ending));
        }
        match ending.outcome {
            "done" => ExitCode::SUCCESS,
            "interrupted" => ExitCode::from(INTERRUPTED),
            _ => ExitCode::from(FAILED),
        }
    }
}

/// Has the system send SIGTERM to this process when its parent ends. Returns whether the parent, a process with the
/// given number, has not ended yet.
fn ends_with(parent: u32) -> bool {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // The parent may have ended before the system was asked.
    getppid().is_some_and(|found| found.as_raw_nonzero().get().unsigned_abs() == parent)
}

/// Writes what `TITIN_MANAGER` has to be. The file is there at once with all its content, so another
/// program may wait for it.
fn write_location(file: &Path, session: &Session) -> Result<(), StartError> {
    let location = session.location().as_os_str().as_encoded_bytes();
    let mut draft = file.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, location)
        .and_then(|()| std::fs::rename(&draft, file))
        .map_err(|why| StartError::Location {
            path: file.to_owned(),
            why,
        })
}

fn done_line(ending: &RunEnd) -> String {
    let messages = ending.instances.iter().map(|instance| instance.messages);
    let failures = ending.ensembles.iter().map(|ensemble| {
        let EnsembleResult {
            component,
            members,
            failed,
            ..
        } = ensemble;
        format!(
            ", {} of {members} members of {component} failed",
            failed.len()
        )
    });
    format!(
        "{BOLD}{}{BOLD:#}: {GOOD}done{GOOD:#} in {:.2} s, {}{}; {}\n",
        ending.model,
        ending.seconds,
        count(messages.sum(), "message"),
        failures.collect::<String>(),
        ending.directory.display()
    )
}

/// The signals handled by a run. From now on a signal waits until the run forwards or handles the
/// signal.
///
/// # Errors
/// [`SignalsError`] if the system refuses.
pub(crate) fn signals() -> Result<Signals, SignalsError> {
    Ok(Signals::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGXFSZ])?)
}

/// The system refuses what listening to signals needs.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen to signals: {0}")]
pub(crate) struct SignalsError(#[from] io::Error);

/// Whether the user has sent a signal to end the command.
pub(crate) fn ended(signals: &mut Signals) -> bool {
    signals
        .pending()
        .any(|signal| !matches!(signal, SIGTSTP | SIGXFSZ))
}

/// Forwards Ctrl-C, Ctrl-Z and requests to end to a run, until this value is dropped.
pub(crate) struct Forwarding {
    signals: Handle,
    /// `None` once the thread has ended.
    thread: Option<JoinHandle<()>>,
}

impl Forwarding {
    pub(crate) fn begin(
        mut signals: Signals,
        interrupter: Interrupter,
    ) -> Result<Self, SignalsError> {
        let forwarded = signals.handle();
        let listen = move || {
            for signal in signals.forever() {
                match signal {
                    SIGTSTP => interrupter.pause(|| {
                        // If the process cannot be stopped, the run just continues.
                        let _ = emulate_default_handler(SIGTSTP);
                    }),
                    // The write beyond the limit of the file size fails, too.
                    SIGXFSZ => {}
                    _ => interrupter.interrupt(signal_name(signal).unwrap_or("a signal")),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("signals".into())
            .spawn(listen)?;
        Ok(Forwarding {
            signals: forwarded,
            thread: Some(thread),
        })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has ended, too.
            let _ = thread.join();
        }
    }
}
