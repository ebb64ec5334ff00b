//! A host: to other processes it looks like a process of a run. Several hosts live in the process
//! of one test.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use titin_transport::{ConduitTable, Medium, Reactor};
use titin_wire::connection::PATIENCE;
use titin_wire::handshake::Purpose;
use titin_wire::{Address, LinkSettings, Secret};

use crate::{Events, Watchdog};

/// A reactor, the events of the reactor, and the conduit ends that the reactor serves.
pub struct Host {
    /// The conduit ends of the host.
    pub conduits: Arc<ConduitTable>,
    /// The events of the reactor.
    pub events: Arc<Events>,
    /// The reactor.
    pub reactor: Arc<Reactor>,
    directory: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl Host {
    /// A host of the run with this secret.
    pub fn start(secret: &Secret) -> Self {
        Self::start_with(secret, ConduitTable::default())
    }

    /// A host of the run with this secret, and with these conduit ends.
    pub fn start_with(secret: &Secret, conduits: ConduitTable) -> Self {
        let (conduits, events) = (Arc::new(conduits), Arc::new(Events::default()));
        let reactor =
            Reactor::with_conduits(secret.clone(), events.clone(), conduits.clone(), PATIENCE);
        let reactor = reactor.expect("a reactor starts");
        let directory = tempfile::tempdir().expect("a directory");
        Host {
            conduits,
            events,
            reactor,
            directory,
            _watchdog: Watchdog::start(),
        }
    }

    /// A folder that is removed with the host.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Listens on loopback.
    pub fn listen(&self) -> Address {
        self.reactor
            .listen(Medium::Tcp, "127.0.0.1")
            .expect("a port is free")
    }

    /// Listens at a socket file, which is removed with the host.
    pub fn listen_shm(&self) -> Address {
        let path = self.directory().join("here");
        self.reactor
            .listen(Medium::Shm, path.to_str().expect("a plain name"))
            .expect("a file can be made")
    }

    /// Listens in a folder, which is removed with the host.
    pub fn listen_file(&self) -> Address {
        let folder = self.directory().join("messages");
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.and_then(|()| self.listen_in(&folder))
            .expect("the folder serves")
    }

    /// Listens in this folder.
    ///
    /// # Errors
    /// If the reactor cannot listen in the folder.
    pub fn listen_in(&self, folder: &Path) -> std::io::Result<Address> {
        let place = folder.to_str().expect("a plain name");
        self.reactor.listen(Medium::File, place)
    }

    /// Begins to dial.
    pub fn dial(&self, addresses: &[Address], tag: u128) {
        self.dial_with(addresses, tag, LinkSettings::default());
    }

    /// Begins to dial, for a link with these settings.
    pub fn dial_with(&self, addresses: &[Address], tag: u128, settings: LinkSettings) {
        self.dial_within(addresses, tag, settings, PATIENCE);
    }

    /// Begins to dial. The reactor gives up after `patience`.
    pub fn dial_within(
        &self,
        addresses: &[Address],
        tag: u128,
        settings: LinkSettings,
        patience: Duration,
    ) {
        let begun = self
            .reactor
            .dial(addresses, Purpose::Data, tag, None, settings, patience);
        begun.expect("addresses that can be dialled");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.reactor.stop();
    }
}
