//! What the command can do.

pub(crate) mod check;
pub(crate) mod config;
