//! `titin sync`: directories that are kept up to date on another host.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use titin_copy::{CopyError, CopyReport, CopySettings, Source, Watching};

use super::copy::copy_once;
use super::transfer::{Progress, TransferArgs, removed_lines, show_failed, summary};
use crate::terminal::{complain, print, warn};

/// The pauses before the other host is tried again: each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Keeps directories up to date, from this host to another one or back
///
/// First what is new is copied, as by `titin copy`, and then each change as it is made, until the command is ended by Ctrl-C. Names are
/// as for `titin copy`. Nothing is removed at the destination unless --delete is given. If the line is away for longer than
/// --outage, the command tries again until it is there.
#[derive(Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    transfer: TransferArgs,
    /// Copy what is new once, and end
    #[arg(long)]
    once: bool,
    /// Remove below the destination what is not at the source
    #[arg(long)]
    delete: bool,
    /// Look at all files again and again, with this pause: for changes that other hosts make on a shared file system, of which
    /// the system tells nothing
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["once", "dry_run"])]
    every: Option<f64>,
}

impl Sync {
    pub(crate) fn run(&self) -> ExitCode {
        if self.once || self.transfer.dry_run {
            return copy_once(&self.transfer, self.delete);
        }
        let watching = match self.every.map(Duration::try_from_secs_f64) {
            None => Watching::Events,
            Some(Ok(pause)) => Watching::Looks(pause),
            Some(Err(_)) => {
                let given = self.every.unwrap_or_default();
                return complain(format!("--every {given} is no number of seconds"));
            }
        };
        complain(self.keep(watching))
    }

    /// Keeps the destination up to date. Returns why that is not possible any more.
    fn keep(&self, watching: Watching) -> CopyError {
        let settings = CopySettings {
            only_look: false,
            delete: self.delete,
            watching: Some(watching),
        };
        let mut progress = Progress::of_rounds(match self.transfer.json {
            true => print_round_as_json,
            false => show_round,
        });
        let (mut known, mut pause) = (None, FIRST_PAUSE);
        loop {
            let begun = Instant::now();
            let (why, is_refused) = match self.transfer.start(settings) {
                Ok(ends) => {
                    if let Err(why) = check_same(&mut known, &ends.sources) {
                        return why;
                    }
                    ends.keep(&mut progress)
                }
                Err(why) => (why, false),
            };
            progress.clear();
            let may_come_back = matches!(why, CopyError::Path(_) | CopyError::Far(_));
            // What has never worked is not tried again.
            if known.is_none() || is_refused || !may_come_back {
                return why;
            }
            if begun.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            warn(&format!("{why}; trying again in {} s\n", pause.as_secs()));
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }
}

/// Checks that the sources are the directories that they were before the line was lost: a file system that is not mounted any
/// more has no files, and with `--delete` the destination would soon have none.
fn check_same(known: &mut Option<Vec<Source>>, now: &[Source]) -> Result<(), CopyError> {
    match known {
        Some(known) if known != now => Err(CopyError::Place(
            "a source is another directory than before the line was lost; start the command again if that is right".to_owned(),
        )),
        _ => {
            *known = Some(now.to_vec());
            Ok(())
        }
    }
}

/// Prints what a round has done, with the names of few files.
fn show_round(report: &CopyReport, names: &[String], took: Duration) {
    show_failed(report);
    let _ = print(&removed_lines(report, "removed"));
    let are_all = !names.is_empty() && names.len() as u64 == report.files;
    let names = match are_all {
        true => names.join(", ") + ": ",
        false => String::new(),
    };
    let _ = print(&(names + &summary(report, took, false)));
}

fn print_round_as_json(report: &CopyReport, _: &[String], took: Duration) {
    #[derive(Serialize)]
    struct Round<'a> {
        seconds: f64,
        #[serde(flatten)]
        report: &'a CopyReport,
    }
    let seconds = took.as_secs_f64();
    let line = serde_json::to_string(&Round { seconds, report });
    let _ = print(&(line.expect("plain data") + "\n"));
}
