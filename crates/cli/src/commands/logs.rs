//! `titin logs`: the output of a run's instances, on whatever host they are.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use titin_model::{StartPolicy, listing, nearest};

use crate::sources::Sources;
use crate::terminal::{BOLD, complain, harmless};

/// How often a file that grows is read.
const INTERVAL: Duration = Duration::from_millis(200);

/// Prints what instances of a run have printed, or the log of the manager
///
/// The output of instances on other hosts, and at other sites, is in the run directory within half a
/// second or so.
#[derive(Args)]
pub(crate) struct Logs {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// The instances; without a name, the log of the manager
    #[arg(value_name = "INSTANCE")]
    instances: Vec<String>,
    /// Go on until the run is over
    #[arg(short, long)]
    follow: bool,
}

/// The most bytes read at once.
const PIECE: usize = 1 << 20;

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
enum LogsError {
    #[error("{} is no run directory: it has no folder instances", .0.display())]
    NoRun(PathBuf),
    #[error("the run has no instance {name}{hint}")]
    NoInstance { name: String, hint: String },
    #[error("{name} was not started, so it has printed nothing")]
    NotStarted { name: String },
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
}

impl Logs {
    pub(crate) fn run(&self) -> ExitCode {
        match self.work() {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of a pipe has seen enough.
            Err(LogsError::File { error, .. }) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => complain(error),
        }
    }

    fn work(&self) -> Result<(), LogsError> {
        let mut outputs = self.outputs()?;
        let connection = self.connection();
        loop {
            // Looked up before the last lines are read: a run that is over prints no more.
            let goes_on = self.follow && connection.exists();
            for output in &mut outputs {
                output.print(!goes_on)?;
            }
            if !goes_on {
                return Ok(());
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// The file that is there as long as the run goes on.
    fn connection(&self) -> PathBuf {
        self.run.join("connection.json")
    }

    /// The files to print.
    fn outputs(&self) -> Result<Vec<Output>, LogsError> {
        let folder = self.run.join("instances");
        let entries = fs::read_dir(&folder).map_err(|_| LogsError::NoRun(self.run.clone()))?;
        if self.instances.is_empty() {
            return Ok(vec![Output::of(
                self.run.join("titin_manager.log"),
                None,
                false,
            )]);
        }
        let names = entries.flatten().map(|entry| entry.file_name());
        let started: BTreeSet<String> = names.filter_map(|name| name.into_string().ok()).collect();
        let may_start = self.follow && self.connection().exists();
        let mut outputs = Vec::new();
        for name in &self.instances {
            if !started.contains(name) {
                let known: BTreeSet<String> =
                    started.iter().cloned().chain(self.planned()).collect();
                match known.contains(name) {
                    true if may_start => {}
                    true => return Err(LogsError::NotStarted { name: name.clone() }),
                    false => return Err(no_instance(name, &known)),
                }
            }
            let prefix = (self.instances.len() > 1).then(|| name.clone());
            for (file, is_error) in [("stdout.txt", false), ("stderr.txt", true)] {
                let path = folder.join(name).join(file);
                outputs.push(Output::of(path, prefix.clone(), is_error));
            }
        }
        Ok(outputs)
    }

    /// The instances that the run is to have, as far as its description says. They have no folders before all
    /// hosts are ready.
    fn planned(&self) -> Vec<String> {
        let network = Sources::of_run(&self.run).load(StartPolicy::ByHand, false);
        let network = network.ok().and_then(|found| found.network(None).ok());
        let names = network.iter().flat_map(|network| network.instances());
        names.map(|name| name.to_string()).collect()
    }
}

fn no_instance(name: &str, known: &BTreeSet<String>) -> LogsError {
    let names = || known.iter().map(String::as_str);
    let hint = match nearest(name, names()) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; it has {}", listing(names())),
    };
    LogsError::NoInstance {
        name: name.to_owned(),
        hint,
    }
}

/// A file that may grow.
struct Output {
    path: PathBuf,
    /// The instance, to be named on each line.
    prefix: Option<String>,
    is_error: bool,
    /// How many bytes were read.
    read: u64,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
}

impl Output {
    fn of(path: PathBuf, prefix: Option<String>, is_error: bool) -> Self {
        Output {
            path,
            prefix,
            is_error,
            read: 0,
            line: Vec::new(),
        }
    }

    /// Prints the new lines, and the rest if `is_last`.
    fn print(&mut self, is_last: bool) -> Result<(), LogsError> {
        let outcome = self.print_new(is_last);
        outcome.map_err(|error| LogsError::File {
            path: self.path.clone(),
            error,
        })
    }

    fn print_new(&mut self, is_last: bool) -> io::Result<()> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // The program has not begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut piece = vec![0; PIECE];
        loop {
            let count = file.read_at(&mut piece, self.read)?;
            self.read += count as u64;
            self.line.extend_from_slice(&piece[..count]);
            let newline = self.line.iter().rposition(|byte| *byte == b'\n');
            let end = match newline {
                // A line without an end is printed in pieces.
                _ if count == 0 && is_last || self.line.len() >= PIECE => self.line.len(),
                newline => newline.map_or(0, |at| at + 1),
            };
            let whole: Vec<u8> = self.line.drain(..end).collect();
            match self.is_error {
                true => self.write(&whole, &mut anstream::stderr().lock())?,
                false => self.write(&whole, &mut anstream::stdout().lock())?,
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    fn write(&self, lines: &[u8], out: &mut impl Write) -> io::Result<()> {
        let Some(prefix) = &self.prefix else {
            out.write_all(lines)?;
            return out.flush();
        };
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            write!(out, "{BOLD}{}{BOLD:#} | ", harmless(prefix))?;
            out.write_all(line)?;
        }
        out.flush()
    }
}
