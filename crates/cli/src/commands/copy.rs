//! `titin copy`: files and directories to and from another host.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use titin_copy::{
    CopyError, CopyProgress, CopyReport, Destination, Far, FarName, FarRole, FarSettings,
    FarSource, Place, receive, send, serve_far, sources_of,
};
use titin_draw::units::{bytes, count};
use titin_path::PathSettings;

use crate::terminal::{self, BOLD, ERROR, FAINT, GOOD, complain, harmless, print, warn};

/// The most files of which the output says why they could not be copied.
const MOST_SHOWN: usize = 20;

/// Copies files and directories to or from another host
///
/// SOURCE or DESTINATION is HOST:PATH, as for scp: HOST is what ssh knows. The files go by a path (see docs/paths.md), encrypted, over
/// several connections, and on after a cut. A copy that was ended goes on where it was when it is started again. Files
/// that are there already, with the same size and time, are left alone.
#[derive(Args)]
pub(crate) struct Copy {
    /// Files and directories, all of one host; of a directory with a slash at its end the contents are copied
    #[arg(value_name = "SOURCE", required = true, num_args = 1..)]
    sources: Vec<OsString>,
    /// A directory, which is made if it is not there; or the new name of the only source, a file
    #[arg(value_name = "DESTINATION")]
    destination: OsString,
    /// Only show what would be copied
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// The number of connections [default: what the line needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    streams: Option<u32>,
    /// The most bytes per second
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u64).range(1..))]
    pacing: Option<u64>,
    /// For how many seconds the line may be away
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    outage: f64,
    /// The command to reach the other host, and its arguments
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    ssh: String,
    /// The command titin on the other host
    #[arg(long, value_name = "COMMAND", default_value = "titin")]
    titin: String,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Which end is on the other host.
enum Direction {
    To(String),
    From(String),
}

impl Copy {
    pub(crate) fn run(&self) -> ExitCode {
        let begun = Instant::now();
        let mut progress = Progress::new(self.dry_run);
        let copied = self.copy(&mut progress);
        progress.bar.finish_and_clear();
        let printed = match copied {
            Ok(report) => self
                .show(&report, begun.elapsed(), &progress.would)
                .map(|()| report.not_copied == 0),
            Err(why @ CopyError::Path(_)) => {
                return complain(format!(
                    "{why}. The same command, started again, goes on where it was"
                ));
            }
            Err(why) => return complain(why),
        };
        match printed {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(code) => code,
        }
    }

    fn copy(&self, progress: &mut Progress) -> Result<CopyReport, CopyError> {
        let (direction, sources, destination) = self.places()?;
        let outage = Duration::try_from_secs_f64(self.outage).map_err(|_| {
            CopyError::Place(format!("--outage {} is no number of seconds", self.outage))
        })?;
        let settings = FarSettings {
            ssh: self.ssh.split_whitespace().map(str::to_owned).collect(),
            titin: self.titin.clone(),
            path: PathSettings {
                streams: self.streams,
                pacing: self.pacing,
                outage,
                ..PathSettings::default()
            },
            only_look: self.dry_run,
        };
        let start = |host: &str, role| Far::start(host, role, &settings);
        let (far, report) = match direction {
            Direction::To(host) => {
                let told = sources_of(&sources)?.into_iter().map(FarSource::from);
                let role = FarRole::Receive(destination.into(), told.collect());
                let far = start(&host, role)?;
                let report = send(&far.path, &sources, self.dry_run, progress)?;
                (far, report)
            }
            Direction::From(host) => {
                let far = start(
                    &host,
                    FarRole::Send(sources.into_iter().map(FarName::from).collect()),
                )?;
                let destination = Destination::new(&destination, far.sources.clone())?;
                let report = receive(&far.path, &destination, self.dry_run, progress)?;
                (far, report)
            }
        };
        far.finish();
        Ok(report)
    }

    /// Which host is the other one, the sources, and the destination.
    fn places(&self) -> Result<(Direction, Vec<PathBuf>, PathBuf), CopyError> {
        let place = |why: &str| Err(CopyError::Place(why.to_owned()));
        let destination = Place::parse(&self.destination);
        let sources: Vec<Place> = self
            .sources
            .iter()
            .map(|source| Place::parse(source))
            .collect();
        let host = sources.first().and_then(|source| source.host.clone());
        if sources.iter().any(|source| source.host != host) {
            return place("all sources must be on the same host");
        }
        let direction = match (host, destination.host) {
            (None, Some(host)) => Direction::To(host),
            (Some(host), None) => Direction::From(host),
            (None, None) => return place("neither side is HOST:PATH: on one host use cp"),
            (Some(_), Some(_)) => {
                return place("both sides are HOST:PATH: run the command on one of the two hosts");
            }
        };
        let sources = sources
            .into_iter()
            .map(|source| match source.path.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => source.path,
            });
        Ok((direction, sources.collect(), destination.path))
    }

    fn show(
        &self,
        report: &CopyReport,
        took: Duration,
        would: &[(String, u64)],
    ) -> Result<(), ExitCode> {
        let seconds = took.as_secs_f64();
        if self.json {
            #[derive(Serialize)]
            struct Copied<'a> {
                dry_run: bool,
                seconds: f64,
                #[serde(flatten)]
                report: &'a CopyReport,
                #[serde(skip_serializing_if = "<[_]>::is_empty")]
                would_copy: &'a [(String, u64)],
            }
            let copied = Copied {
                dry_run: self.dry_run,
                seconds,
                report,
                would_copy: would,
            };
            return print(&terminal::json(&copied, "what was copied")?);
        }
        for (path, size) in would {
            print(&format!(
                "{} {FAINT}{}{FAINT:#}\n",
                one_line(path),
                bytes(*size)
            ))?;
        }
        for failed in report.failed.iter().take(MOST_SHOWN) {
            warn(&format!(
                "{ERROR}not copied:{ERROR:#} {}: {}\n",
                one_line(&failed.path),
                one_line(&failed.why)
            ));
        }
        let shown = report.failed.len().min(MOST_SHOWN) as u64;
        if report.not_copied > shown {
            warn(&format!("and {} more\n", report.not_copied - shown));
        }
        let did = if self.dry_run { "would copy " } else { "" };
        let rate = match self.dry_run {
            true => String::new(),
            false => format!(
                " in {seconds:.1} s, {} per second",
                bytes((report.bytes as f64 / seconds) as u64)
            ),
        };
        let unchanged = match report.unchanged {
            0 => String::new(),
            files => format!("; {} unchanged", count(files, "file")),
        };
        let (files, size) = (count(report.files, "file"), bytes(report.bytes));
        print(&format!(
            "{did}{GOOD}{files}{GOOD:#}, {BOLD}{size}{BOLD:#}{rate}{unchanged}\n"
        ))
    }
}

/// A text of another host, for a line of its own.
fn one_line(text: &str) -> String {
    harmless(text).replace('\n', "\u{fffd}")
}

/// Shows how far a copy is, on a terminal.
struct Progress {
    bar: ProgressBar,
    dry_run: bool,
    /// What would be copied, with the sizes.
    would: Vec<(String, u64)>,
}

impl Progress {
    fn new(dry_run: bool) -> Self {
        let bar = ProgressBar::new(0);
        let template = "{bar:30.cyan} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Progress {
            bar,
            dry_run,
            would: Vec::new(),
        }
    }
}

impl CopyProgress for Progress {
    fn known(&mut self, _: u64, bytes: u64) {
        self.bar.set_length(bytes);
    }

    fn begun(&mut self, path: &str, size: u64) {
        match self.dry_run {
            true => self.would.push((path.to_owned(), size)),
            false => self.bar.set_message(one_line(path)),
        }
    }

    fn moved(&mut self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

/// The other end of a copy, which `titin copy` starts by ssh.
#[derive(Args)]
pub(crate) struct CopyEnd;

impl CopyEnd {
    pub(crate) fn run(&self) -> ExitCode {
        match serve_far(io::stdin(), io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            // The near end tells of the path.
            Err(CopyError::Path(_)) => ExitCode::FAILURE,
            Err(why) => complain(format!("at the other host: {why}")),
        }
    }
}
