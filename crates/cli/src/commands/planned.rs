//! Answers about the plan of a model, of commands that start nothing.

use std::path::Path;
use std::process::ExitCode;

use titin_manager::allocation::WideProcess;
use titin_manager::compile::{Choices, CompileError, compile, folders};
use titin_manager::launch::environment;
use titin_manager::plan::Plan;
use titin_manager::profile::{Database, ReadError};
use titin_manager::slurm::{SlurmError, add_nodes_of_job};
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
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
}

/// Why the surroundings of a run are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurroundingsError {
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    #[error("--profile: {0}")]
    Profile(#[from] ReadError),
}

/// Completes a plan by the surroundings of the run: the nodes of a Slurm job, and the profile of an
/// earlier run, if there is one.
pub(crate) fn complete(plan: &mut Plan, profile: Option<&Path>) -> Result<(), SurroundingsError> {
    add_nodes_of_job(plan, &environment())?;
    if let Some(earlier) = profile {
        Database::open(earlier)?.profile()?.note_bytes(plan);
    }
    Ok(())
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

impl NoAnswer {
    /// Says why there is no answer. Returns the exit code.
    pub(crate) fn tell(self, as_json: bool) -> ExitCode {
        match self {
            NoAnswer::Description(report) => refusal::of_description(&report, as_json),
            other => refusal::of(other, as_json),
        }
    }
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
        Err(error) => return error.tell(as_json),
    };
    text.map_or_else(|code| code, |text| answer(&text))
}
