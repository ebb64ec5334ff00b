//! Pictures: from a description or a profile to an SVG text that needs nothing else.

pub(crate) mod chart;
pub(crate) mod coupling;
pub(crate) mod graph;
mod layout;
pub(crate) mod scales;
pub(crate) mod schedule;
pub(crate) mod speed;
mod svg;
