//! Plain lines: the log of the run.

use std::time::Duration;

use titin_manager::directory::RunDirectory;
use titin_manager::event::Level;
use titin_manager::plan::Plan;
use titin_manager::session::RunView;
use titin_manager::state::InstanceStatus;

use super::hosted;
use crate::terminal::{harmless, print, warn};

pub(crate) struct Plain {
    least: Level,
}

impl Plain {
    pub(crate) fn new(verbose: bool) -> Self {
        Plain {
            least: if verbose { Level::Debug } else { Level::Info },
        }
    }
}

impl RunView for Plain {
    fn begun(&mut self, directory: &RunDirectory, plan: &Plan) {
        warn(&format!("run directory: {}\n", directory.path().display()));
        if let Some(text) = hosted(directory, plan) {
            // The run continues. The calling process notices that the line is missing.
            let _ = print(&text);
        }
    }

    fn manual_starts(&mut self, text: &str) {
        warn(text);
    }

    fn log_line(&mut self, level: Level, line: &str) {
        if level >= self.least {
            warn(&format!("{}\n", harmless(line)));
        }
    }

    fn show(&mut self, _: Duration, _: &[InstanceStatus]) {}

    fn show_wait(&mut self, _: &[String]) {}

    fn interval(&self) -> Option<Duration> {
        None
    }
}
