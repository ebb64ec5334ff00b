//! What `titin copy` and `titin sync` have in common: places, the line to the other host, and what is shown.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use titin_copy::{
    CopyError, CopyProgress, CopyReport, CopySettings, Destination, FailedFile, Far, FarName,
    FarRole, FarSettings, FarSource, Place, Source, Sources, keep_receiving, keep_sending, receive,
    send,
};
use titin_draw::units::{bytes, count};
use titin_path::PathSettings;

use crate::terminal::{BOLD, ERROR, FAINT, GOOD, harmless, warn};

/// The most files that the output names.
const MOST_SHOWN: usize = 20;

/// The most copied files that a round of a copy that goes on names.
const MOST_NAMES: usize = 3;

/// The sources, the destination, and the line between them.
#[derive(Args)]
pub(crate) struct TransferArgs {
    /// Files and directories, all of one host; of a directory with a slash at its end the contents are meant
    #[arg(value_name = "SOURCE", required = true, num_args = 1..)]
    sources: Vec<OsString>,
    /// A directory, which is made if it is not there; or the new name of the only source, a file
    #[arg(value_name = "DESTINATION")]
    destination: OsString,
    /// Only show what would be done
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
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
    /// The site of the other host, to which relays lead: TITIN_RELAY names the folder of the relay of this site
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Both ends of a copy, ready to begin.
pub(crate) struct Transfer {
    far: Far,
    settings: CopySettings,
    /// The sources, as the receiver knows them.
    pub(crate) sources: Vec<Source>,
    near: NearEnd,
}

/// What this host does.
enum NearEnd {
    Sends(Sources),
    Receives(Destination),
}

/// Which end is on the other host.
enum Direction {
    To(String),
    From(String),
}

impl TransferArgs {
    /// Starts the other end, and opens the path to it.
    pub(crate) fn start(&self, settings: CopySettings) -> Result<Transfer, CopyError> {
        let (direction, paths, destination) = self.places()?;
        let far_settings = self.far_settings(settings)?;
        let (far, sources, near) = match direction {
            Direction::To(host) => {
                let sources = Sources::find(&paths)?;
                let told = sources.told();
                let far_sources = told.iter().cloned().map(FarSource::from).collect();
                let role = FarRole::Receive(destination.into(), far_sources);
                let far = Far::start(&host, role, &far_settings)?;
                (far, told, NearEnd::Sends(sources))
            }
            Direction::From(host) => {
                let role = FarRole::Send(paths.into_iter().map(FarName::from).collect());
                let far = Far::start(&host, role, &far_settings)?;
                let sources = far.sources.clone();
                let destination = Destination::new(&destination, sources.clone())?;
                destination.check(settings.delete)?;
                (far, sources, NearEnd::Receives(destination))
            }
        };
        Ok(Transfer {
            far,
            settings,
            sources,
            near,
        })
    }

    fn far_settings(&self, copy: CopySettings) -> Result<FarSettings, CopyError> {
        let outage = Duration::try_from_secs_f64(self.outage).map_err(|_| {
            CopyError::Place(format!("--outage {} is no number of seconds", self.outage))
        })?;
        Ok(FarSettings {
            ssh: self.ssh.split_whitespace().map(str::to_owned).collect(),
            titin: self.titin.clone(),
            site: self.site.clone(),
            path: PathSettings {
                streams: self.streams,
                pacing: self.pacing,
                outage,
                ..PathSettings::default()
            },
            copy,
        })
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
            (None, None) => return place("neither side is HOST:PATH: on one host use cp or rsync"),
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
}

impl Transfer {
    /// Copies once.
    pub(crate) fn copy(self, progress: &mut dyn CopyProgress) -> Result<CopyReport, CopyError> {
        let (path, settings) = (&self.far.path, &self.settings);
        let copied = match &self.near {
            NearEnd::Sends(sources) => send(path, sources, settings, progress),
            NearEnd::Receives(destination) => receive(path, destination, settings, progress),
        };
        match copied {
            Err(why) if !matches!(why, CopyError::Path(_)) => Err(why),
            copied => match self.far.finish() {
                true => Err(CopyError::Far(
                    "the other end cannot go on: see what it says above".to_owned(),
                )),
                false => copied,
            },
        }
    }

    /// Copies what changes, until the copy fails. Returns why, and whether the other end has said itself that it cannot go on.
    pub(crate) fn keep(self, progress: &mut dyn CopyProgress) -> (CopyError, bool) {
        let (path, settings) = (&self.far.path, &self.settings);
        let ended = match &self.near {
            NearEnd::Sends(sources) => keep_sending(path, sources, settings, progress),
            NearEnd::Receives(to) => keep_receiving(path, to, settings, progress),
        };
        match ended {
            Err(why @ CopyError::Path(_)) => (why, self.far.finish()),
            Err(why) => (why, false),
        }
    }
}

/// Names what could not be copied.
pub(crate) fn show_failed(report: &CopyReport) {
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
}

/// What was removed, or would be, a line each.
pub(crate) fn removed_lines(report: &CopyReport, verb: &str) -> String {
    let paths = report.removed_paths.iter().take(MOST_SHOWN);
    let mut lines: String = paths
        .map(|path| format!("{verb} {}\n", one_line(path)))
        .collect();
    let shown = report.removed_paths.len().min(MOST_SHOWN);
    if report.removed_paths.len() > shown {
        lines += &format!("and {} more\n", report.removed_paths.len() - shown);
    }
    lines
}

/// A copy in a line.
pub(crate) fn summary(report: &CopyReport, took: Duration, dry_run: bool) -> String {
    let seconds = took.as_secs_f64();
    let did = if dry_run { "would copy " } else { "" };
    let rate = match dry_run {
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
    let removed = match (report.removed, dry_run) {
        (0, _) => String::new(),
        (removed, true) => format!("; would remove {removed}"),
        (removed, false) => format!("; {removed} removed"),
    };
    let (files, size) = (count(report.files, "file"), bytes(report.bytes));
    format!("{did}{GOOD}{files}{GOOD:#}, {BOLD}{size}{BOLD:#}{rate}{unchanged}{removed}\n")
}

/// A text of another host, for a line of its own.
fn one_line(text: &str) -> String {
    harmless(text).replace('\n', "\u{fffd}")
}

/// Shows how far a copy is, on a terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    dry_run: bool,
    /// What would be copied, with the sizes.
    pub(crate) would: Vec<(String, u64)>,
    /// What to do after each round of a copy that goes on.
    after_round: fn(&CopyReport, &[String], Duration),
    /// The first files that this round has copied.
    names: Vec<String>,
    /// What the last round could not copy.
    last_failed: Vec<FailedFile>,
}

impl Progress {
    pub(crate) fn new(dry_run: bool) -> Self {
        Progress {
            bar: None,
            dry_run,
            would: Vec::new(),
            after_round: |_, _, _| {},
            names: Vec::new(),
            last_failed: Vec::new(),
        }
    }

    /// For a copy that goes on.
    pub(crate) fn of_rounds(after_round: fn(&CopyReport, &[String], Duration)) -> Self {
        Progress {
            after_round,
            ..Progress::new(false)
        }
    }

    /// Takes the bar from the terminal.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// What would be copied, a line each.
    pub(crate) fn would_lines(&self) -> String {
        let line = |(path, size): &(String, u64)| {
            format!("{} {FAINT}{}{FAINT:#}\n", one_line(path), bytes(*size))
        };
        self.would.iter().map(line).collect()
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:30.cyan} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left  {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar
}

impl CopyProgress for Progress {
    fn known(&mut self, _: u64, bytes: u64) {
        self.bar.get_or_insert_with(new_bar).set_length(bytes);
    }

    fn begun(&mut self, path: &str, size: u64) {
        if self.names.len() < MOST_NAMES {
            self.names.push(one_line(path));
        }
        match (self.dry_run, &self.bar) {
            (true, _) => self.would.push((path.to_owned(), size)),
            (false, Some(bar)) => bar.set_message(one_line(path)),
            (false, None) => {}
        }
    }

    fn moved(&mut self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    fn round_over(&mut self, report: &CopyReport, took: Duration) {
        self.clear();
        let has_done_something = report.files > 0 || report.removed > 0;
        // What fails again and again is told once.
        if has_done_something || report.failed != self.last_failed {
            (self.after_round)(report, &self.names, took);
        }
        self.last_failed.clone_from(&report.failed);
        self.names.clear();
    }
}
