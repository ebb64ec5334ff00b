//! Why a command did nothing, for people or as a line of JSON.

use std::fmt::Display;
use std::process::ExitCode;

use titin_model::ProblemReport;

use super::check;
use crate::terminal::{self, complain, print, warn};

/// Says what is wrong with the description.
pub(crate) fn of_description(report: &ProblemReport, as_json: bool) -> ExitCode {
    if as_json {
        return in_json(report);
    }
    warn(&check::text(report, None, terminal::width()));
    ExitCode::from(terminal::REFUSED)
}

/// Says another reason.
pub(crate) fn of(why: impl Display, as_json: bool) -> ExitCode {
    match as_json {
        true => in_json(&serde_json::json!({
            "problems": [{"severity": "error", "what": why.to_string()}],
        })),
        false => complain(why),
    }
}

fn in_json(why: &impl serde::Serialize) -> ExitCode {
    match serde_json::to_string(why) {
        Ok(text) => print(&(text + "\n"))
            .err()
            .unwrap_or(ExitCode::from(terminal::REFUSED)),
        Err(error) => complain(format!("the problems cannot be written as JSON: {error}")),
    }
}
