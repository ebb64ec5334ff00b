//! Answers about the plan of a model, of commands that start nothing.

use std::process::ExitCode;

use titin_manager::allocation::WideProcess;
use titin_manager::compile::{Choices, CompileError, compile, folders};
use titin_manager::plan::Plan;
use titin_model::{ProblemReport, StartPolicy};

use super::refusal;
use crate::sources::Sources;
use crate::terminal::{self, answer};

/// Why there is no answer about the plan of a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error(transparent)]
    Description(#[from] ProblemReport),
    #[error(transparent)]
    Plan(#[from] CompileError),
    #[error(transparent)]
    Wide(#[from] WideProcess),
}

/// The plan of a model.
pub(crate) fn plan(
    sources: &Sources,
    start: StartPolicy,
    choices: &Choices,
) -> Result<Plan, NoAnswer> {
    let description = sources.load(start, false)?;
    let network = description.network(sources.model.as_deref())?;
    Ok(compile(&network, &folders(&description), choices)?)
}

/// Prints an answer about the plan of a model, by `text` or as JSON, or why there is none. `what` names
/// the answer.
pub(crate) fn tell<T: serde::Serialize>(
    found: Result<T, NoAnswer>,
    what: &str,
    as_json: bool,
    text: impl FnOnce(&T) -> String,
) -> ExitCode {
    let text = match found {
        Ok(found) if as_json => terminal::json(&found, what),
        Ok(found) => Ok(text(&found)),
        Err(NoAnswer::Description(report)) => return refusal::of_description(&report, as_json),
        Err(other) => return refusal::of(other, as_json),
    };
    text.map_or_else(|code| code, |text| answer(&text))
}
