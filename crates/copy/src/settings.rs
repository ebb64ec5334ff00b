//! What both ends of a copy must know.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a copy does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySettings {
    /// Whether nothing is written and no byte of a file is sent.
    pub only_look: bool,
    /// Whether the receiver removes what it has below the sources and the sender has not.
    pub delete: bool,
    /// For a copy that goes on: how the sender learns what has changed.
    pub watching: Option<Watching>,
}

/// How the sender learns what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watching {
    /// The system tells of changes (inotify). It tells of those that are made on this host.
    Events,
    /// All files are looked at again, with this pause.
    Looks(Duration),
}
