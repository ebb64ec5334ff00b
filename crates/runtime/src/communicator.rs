//! The communicator of a parallel program.

use crate::Result;

/// How the processes of a parallel program reach each other before they know of each other: two collective calls over
/// the ranks that are to be one instance. It is used only while the instance is opened.
pub trait Communicator {
    /// The number of the calling rank, from 0.
    fn rank(&self) -> u32;
    /// How many ranks there are.
    fn ranks(&self) -> u32;
    /// Gives the bytes of rank 0 to all.
    ///
    /// # Errors
    /// What the communicator says.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<()>;
    /// Gives everybody's bytes, equally many, to rank 0, in the order of the ranks. Elsewhere `all` is empty.
    ///
    /// # Errors
    /// What the communicator says.
    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;
}
