//! The communicator of a parallel program.

use crate::Result;

/// How the processes of a parallel program reach each other before the first contact by titin: two
/// collective calls over the ranks of the future instance. Titin uses the communicator only while
/// the instance is opened.
pub trait Communicator {
    /// The number of the calling rank, from 0.
    fn rank(&self) -> u32;
    /// How many ranks there are.
    fn ranks(&self) -> u32;
    /// Gives the bytes of rank 0 to all.
    ///
    /// # Errors
    /// Errors of the communicator.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<()>;
    /// Gives the bytes of every rank, equally many, to rank 0, in the order of the ranks. Elsewhere
    /// `all` is empty.
    ///
    /// # Errors
    /// Errors of the communicator.
    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;
}
