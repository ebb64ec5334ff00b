//! How a description is read and how its components come to run.

use std::path::{Path, PathBuf};

/// Where imports are searched, and how the description is checked.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Directories with modules to import from: those of `YMMSL_PATH`.
    pub search: Vec<PathBuf>,
    /// Python's `site-packages` directories, whose entry points are modules too.
    pub site_packages: Vec<PathBuf>,
    /// The model to run; needed only if several models could be meant.
    pub model: Option<String>,
    /// How the components come to run.
    pub start: StartPolicy,
    /// Refuse components that exchange messages in each step, unless the file declares that their
    /// timelines match.
    pub strict_timelines: bool,
    /// Leave components without an implementation out, with their conduits, and warn of each.
    pub allow_missing: bool,
    /// Settings in place of those of the files, each as `NAME=VALUE`. The value is YAML.
    pub settings: Vec<String>,
    /// Reads the columns of the tables of samplers, as the sampler does; without it they are not checked.
    pub table_columns: Option<TableColumns>,
}

/// Reads the names of the columns of a table.
///
/// # Errors
/// In words, if the sampler could not read the table.
pub type TableColumns = fn(&TableFile<'_>) -> Result<Vec<String>, String>;

/// A table of a `titin.sampler`, with those settings of the sampler that say how to read it.
#[derive(Clone, Copy, Debug)]
pub struct TableFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// The setting `format`.
    pub format: Option<&'a str>,
    /// The setting `delimiter`.
    pub delimiter: Option<&'a str>,
    /// The setting `columns`.
    pub columns: Option<&'a str>,
}

/// How the components come to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartPolicy {
    /// Each component has a program, which is started.
    #[default]
    Programs,
    /// The user starts the components, or only looks at the file; a component without a program is
    /// no problem.
    ByHand,
    /// As [`Programs`](StartPolicy::Programs), with exceptions, named by component, implementation or
    /// instance.
    Except {
        /// Components that run inside the calling program.
        hosted: Vec<String>,
        /// Components that the user starts.
        by_hand: Vec<String>,
    },
}

impl StartPolicy {
    /// The components among the names; the name of an instance counts for the component.
    pub(crate) fn named(&self) -> Vec<String> {
        let StartPolicy::Except { hosted, by_hand } = self else {
            return Vec::new();
        };
        let component = |name: &String| name.split('[').next().unwrap_or_default().to_string();
        hosted.iter().chain(by_hand).map(component).collect()
    }
}
