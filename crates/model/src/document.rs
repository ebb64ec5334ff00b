//! One file of a description, read and not yet merged with the others.

use indexmap::IndexMap;

use crate::description::{Checkpoints, CustomImplementation, Model, Program, Resources, Resume};
use crate::names::Name;
use crate::problem::TextPosition;
use crate::settings::Settings;
use crate::titin_section::Extras;

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub version: FormatVersion,
    pub description: String,
    pub imports: Vec<Import>,
    pub models: IndexMap<Name, Model>,
    pub programs: IndexMap<Name, Program>,
    pub custom_implementations: IndexMap<Name, CustomImplementation>,
    pub settings: Settings,
    pub resources: IndexMap<Name, Resources>,
    pub checkpoints: Checkpoints,
    pub resume: IndexMap<Name, Resume>,
    pub extras: Extras,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FormatVersion {
    V01,
    #[default]
    V02,
}

/// `from module import implementation name`
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub module: Name,
    pub name: Name,
    pub at: TextPosition,
}
