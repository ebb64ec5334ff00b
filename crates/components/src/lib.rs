//! Ready-made components: terminals that read and write files, and mappers that fan messages in and
//! out.
//!
//! A description names such a component as an implementation, for instance `titin.source`, and
//! `titin run` starts the component. The user needs no program. Each component runs as an instance
//! like any other. The ports in the description, in the order of the submodel execution loop, and
//! the settings say what the component does. `docs/components.md` lists the ports and settings of
//! each component. The crate opens no connection and starts no process of its own.
//!
//! ```no_run
//! // In a process that was started as an instance of a run:
//! titin_components::run("splitter", &[])?;
//! # Ok::<(), titin_components::Error>(())
//! ```

#![forbid(unsafe_code)]

mod array_joining;
mod data;
mod duplicator;
mod element_text;
mod error;
mod feed;
mod file_names;
mod format;
mod mapper;
mod merger;
mod sampler;
mod settings;
mod sink;
mod source;
mod splitter;

use std::path::{Path, PathBuf};

use titin_runtime::{Checks, Instance, Options, OverlayUse};

pub use error::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

/// The components by their short names: `source` is `titin.source` in descriptions.
pub const NAMES: [&str; 6] = [
    "source",
    "sink",
    "duplicator",
    "merger",
    "splitter",
    "sampler",
];

/// The names of the columns of a table for `titin.sampler`, read as the sampler reads them. `format`, `delimiter` and
/// `columns` are settings of the sampler.
///
/// # Errors
/// [`Error`] says why the sampler could not read the table.
pub fn table_columns(
    path: &Path,
    format: Option<&str>,
    delimiter: Option<&str>,
    columns: Option<&str>,
) -> Result<Vec<String>> {
    sampler::table_columns(path, format, delimiter, columns)
}

/// Joins the run named by the environment as the component `name` (one of [`NAMES`]), and does the
/// component's part until the end. Files to read are looked for in the work directory, then in
/// `folders`.
///
/// # Errors
/// [`Error`] describes wrong settings, files or data. The run has been told, and fails.
pub fn run(name: &str, folders: &[PathBuf]) -> Result<()> {
    let work: &dyn Fn(&Instance) -> Result<()> = match name {
        "source" => &|instance| source::run(instance, folders),
        "sink" => &sink::run,
        "duplicator" => &duplicator::run,
        "merger" => &merger::run,
        "splitter" => &splitter::run,
        "sampler" => &|instance| sampler::run(instance, folders),
        _ => {
            let known = NAMES.join(", ");
            return Err(Error::Setting(format!(
                "titin has no component '{name}'; it has {known}"
            )));
        }
    };
    let mut options = Options::default().language("titin");
    if name == "sampler" {
        // Members end their rows in any order, so the times of the results go back and forth, and
        // the settings of a row are those of its message alone.
        options = options.checks(Checks::Off).overlays(OverlayUse::Explicit);
    }
    let instance = Instance::open(options)?;
    let outcome = work(&instance);
    close(instance, outcome)
}

/// Closes an instance after the component's part.
fn close(instance: Instance, outcome: Result<()>) -> Result<()> {
    match outcome {
        Ok(()) => Ok(instance.close()?),
        Err(Error::Run(error)) => {
            // Closing fails with the noted error. `close` can tell whether the failure began here
            // or elsewhere.
            instance.note(&error);
            Ok(instance.close()?)
        }
        Err(error) => {
            instance.fail(&error.to_string());
            Err(error)
        }
    }
}
