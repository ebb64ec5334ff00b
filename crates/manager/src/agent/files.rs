//! Files of instances on the way between the run directory and a host that does not have it.
//!
//! Files travel as pieces, in both directions. The receiver of a piece acknowledges the bytes, and the
//! sender has at most [`MOST_IN_FLIGHT`] bytes that are not acknowledged. So neither end keeps more than
//! that in memory, however slow the line is.

mod known;
mod piece;
mod tree;

pub(crate) use known::KnownFiles;
pub(crate) use piece::{FilePiece, MOST_IN_FLIGHT, OUTPUTS};
pub(crate) use tree::TreePieces;
