//! The medium `file`: messages through a folder of a shared file system, for hosts with no network
//! between them.
//!
//! Each listening process has a folder in the folder of the run. A process that dials makes a
//! folder for the connection there. In that folder each direction is a stream of bytes in numbered
//! **segment** files. The sender writes a segment under another name and renames the file, so a
//! segment appears whole; the receiver deletes the segments that it has read.
//!
//! The link above the medium sees an ordinary socket. The medium's thread, the **pump**, copies
//! between the other end of the socket and the segments. So frames, windows, proofs and the checks
//! of bytes are those of all links of sockets.
//!
//! ```text
//! FOLDER/                       of the run; for its owner alone
//!     PROCESS/                  of a listening process
//!         presence              locked as long as the process lives
//!         CONNECTION/           of a process that has dialled
//!             presence          locked as long as the dialling process lives
//!             there/            segments for the listening process
//!             back/             segments for the dialling process
//! ```

mod folder;
mod notices;
mod pump;
mod segments;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use titin_os::Descriptor;
use titin_wire::{Address, LinkSettings};

use crate::carrier::Medium;
use crate::error::LinkError;
use crate::medium::{DialTarget, LinkSetup, SocketMedium};
use crate::socket_carrier::SocketCarrier;
use folder::ListenerFolder;
use pump::FilePump;

/// The medium, for a reactor.
#[derive(Default)]
pub(crate) struct FileMedium(Arc<FilePump>);

impl SocketMedium for FileMedium {
    fn medium(&self) -> Medium {
        Medium::File
    }

    /// Listens in a folder, which only the user of this process may open.
    fn listen(&self, place: &str) -> io::Result<(Descriptor, Address)> {
        let folder = ListenerFolder::create(Path::new(place))?;
        let address = format!("{}:{}", Medium::File.key(), folder.path().display());
        let listener = self.0.listen(folder)?;
        Ok((listener, Address::Other(address)))
    }

    fn accept(&self, listener: &Descriptor) -> Result<Descriptor, Errno> {
        self.0.accept(listener)
    }

    /// The folder belongs to the user of this process.
    fn greet(&self, _: &Descriptor) -> bool {
        true
    }

    fn targets(&self, address: &Address) -> Vec<Arc<dyn DialTarget>> {
        let text = match address {
            Address::Other(text) if address.medium() == Some(Medium::File) => text,
            _ => return Vec::new(),
        };
        let (_, path) = text.split_once(':').expect("the address has a medium");
        vec![Arc::new(FileTarget {
            listener: path.into(),
            pump: self.0.clone(),
        })]
    }

    fn setup(&self) -> LinkSetup {
        LinkSetup::Sockets(|link| SocketCarrier::make(link, Medium::File))
    }

    fn fault(&self, socket: &Descriptor) -> Option<LinkError> {
        self.0.fault(socket)
    }

    fn finish(&self, waits: Option<Duration>) {
        self.0.finish(waits);
    }
}

/// The folder of a listening process.
struct FileTarget {
    listener: PathBuf,
    pump: Arc<FilePump>,
}

impl fmt::Display for FileTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listener.display().fmt(f)
    }
}

impl DialTarget for FileTarget {
    fn connect(&self, _: &LinkSettings) -> io::Result<Descriptor> {
        self.pump.dial(&self.listener)
    }
}
