//! The list of the media with links. A new medium with links is added here, beside the folder with
//! its code.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::Secret;
use titin_wire::connection::PATIENCE;

use crate::conduit_table::ConduitTable;
use crate::file::FileMedium;
use crate::link::Handler;
use crate::medium::SocketMedium;
use crate::reactor::Reactor;
use crate::relay::RelayMedium;
use crate::shm::{Pool, ShmMedium};
use crate::tcp::TcpMedium;

/// The media with links that begin with a socket, the preferred media first.
fn socket_media() -> Vec<Arc<dyn SocketMedium>> {
    vec![
        Arc::new(ShmMedium),
        Arc::new(TcpMedium),
        Arc::new(FileMedium::default()),
        Arc::new(RelayMedium::default()),
    ]
}

impl Default for ConduitTable {
    /// A table that shares up to a quarter of the memory that the process may use.
    fn default() -> Self {
        ConduitTable::with_memory(Pool::new(None))
    }
}

impl ConduitTable {
    /// A table that shares at most `bytes` of memory with other processes. Payloads without room
    /// there go by a socket.
    pub fn with_ceiling(bytes: u64) -> Self {
        let ceiling = usize::try_from(bytes).unwrap_or(usize::MAX);
        ConduitTable::with_memory(Pool::new(Some(ceiling)))
    }
}

impl Reactor {
    /// Starts the background thread of a process without conduits (a manager).
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn start(secret: Secret, handler: Arc<dyn Handler>) -> io::Result<Arc<Self>> {
        Self::start_with(secret, handler, None, PATIENCE, socket_media())
    }

    /// Starts the background thread of a process with conduits. The process's messages go to and
    /// come from the table `conduits`. A link made by another process must be complete within
    /// `patience` after the proof.
    ///
    /// # Errors
    /// If the system refuses descriptors or a thread.
    pub fn with_conduits(
        secret: Secret,
        handler: Arc<dyn Handler>,
        conduits: Arc<ConduitTable>,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        Self::start_with(secret, handler, Some(conduits), patience, socket_media())
    }
}
