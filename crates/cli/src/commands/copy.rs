//! `titin copy`: files and directories to and from another host.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use titin_copy::{CopyError, CopyReport, CopySettings, FAR_FAILED, serve_far};

use super::transfer::{Progress, TransferArgs, removed_lines, show_failed, summary};
use crate::terminal::{self, complain, print};

/// Copies files and directories to or from another host
///
/// SOURCE or DESTINATION is HOST:PATH, as for scp: HOST is what ssh knows. The files go by a path (see docs/paths.md), encrypted, over
/// several connections, and on after a cut. A copy that was ended goes on where it was when it is started again. Files
/// that are there already, with the same size and time, are left alone.
#[derive(Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    transfer: TransferArgs,
}

impl Copy {
    pub(crate) fn run(&self) -> ExitCode {
        copy_once(&self.transfer, false)
    }
}

/// Copies, and prints what was done. With `delete` the receiver removes what the sender has not.
pub(crate) fn copy_once(transfer: &TransferArgs, delete: bool) -> ExitCode {
    let begun = Instant::now();
    let settings = CopySettings {
        only_look: transfer.dry_run,
        delete,
        watching: None,
    };
    let mut progress = Progress::new(transfer.dry_run);
    let copied = transfer
        .start(settings)
        .and_then(|ends| ends.copy(&mut progress));
    progress.clear();
    let printed = match copied {
        Ok(report) => {
            show(transfer, &report, begun.elapsed(), &progress).map(|()| report.not_copied == 0)
        }
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

fn show(
    transfer: &TransferArgs,
    report: &CopyReport,
    took: Duration,
    progress: &Progress,
) -> Result<(), ExitCode> {
    let dry_run = transfer.dry_run;
    if transfer.json {
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
            dry_run,
            seconds: took.as_secs_f64(),
            report,
            would_copy: &progress.would,
        };
        return print(&terminal::json(&copied, "what was copied")?);
    }
    print(&progress.would_lines())?;
    if dry_run {
        print(&removed_lines(report, "would remove"))?;
    }
    show_failed(report);
    print(&summary(report, took, dry_run))
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
            Err(why) => {
                complain(format!("at the other host: {why}"));
                ExitCode::from(FAR_FAILED)
            }
        }
    }
}
