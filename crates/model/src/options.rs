//! How a description is read and how its components come to run.

use std::path::PathBuf;

/// Where to look, and what to ask of the description.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Directories with modules to import from: those of `YMMSL_PATH`.
    pub search: Vec<PathBuf>,
    /// Python's `site-packages` directories, whose entry points are modules too.
    pub site_packages: Vec<PathBuf>,
    /// The model to run; needed only where several could be meant.
    pub model: Option<String>,
    /// How the components come to run.
    pub start: StartMode,
    /// Refuse components that exchange messages in each step unless the file says that their timelines match.
    pub strict_timelines: bool,
}

/// How the components come to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// Each has a program, which is started.
    #[default]
    Programs,
    /// The user starts them, or the file is only looked at; a component without a program is no problem.
    ByHand,
    /// As [`Programs`](StartMode::Programs), except for some, named by component, implementation or instance.
    Except {
        /// They run inside the calling program.
        hosted: Vec<String>,
        /// The user starts them.
        by_hand: Vec<String>,
    },
}

impl StartMode {
    /// The components that are named, also by one of their instances.
    pub(crate) fn named(&self) -> Vec<String> {
        let StartMode::Except { hosted, by_hand } = self else {
            return Vec::new();
        };
        let component = |name: &String| name.split('[').next().unwrap_or_default().to_string();
        hosted.iter().chain(by_hand).map(component).collect()
    }
}
