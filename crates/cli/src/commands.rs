//! The subcommands.

pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod component;
pub(crate) mod config;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod placement;
pub(crate) mod planned;
pub(crate) mod plot;
pub(crate) mod profile;
pub(crate) mod refusal;
pub(crate) mod relay;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod submit;
