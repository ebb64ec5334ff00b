//! What has come, and what is missing, of the files of hosts without the run directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{RunView, Session};
use crate::agent::{AgentOrder, FilePiece};
use crate::event::Level;
use crate::host::HostId;

/// How many files that cannot be copied are named.
const MOST_LOST_FILES: usize = 10;

/// The state of the files of all hosts.
#[derive(Default)]
pub(super) struct HostFiles {
    /// Files that could not be copied to the run directory, with the reasons.
    lost: Vec<String>,
    /// The hosts whose files have not all come, with the folders there.
    incomplete: BTreeMap<HostId, PathBuf>,
    /// The last piece of a file that each host has sent, without the bytes.
    last_pieces: BTreeMap<HostId, FilePiece>,
    /// How many bytes of files have come from each host, with the outputs of running programs.
    arrived: BTreeMap<HostId, u64>,
    /// The file of each host that could not be written last. What follows of it is not written either.
    unwritten: BTreeMap<HostId, PathBuf>,
    /// Whether files stay on their hosts.
    has_left_files: bool,
}

impl HostFiles {
    /// The host has a folder of the run, whose files are still to come.
    pub(super) fn note_folder(&mut self, host: HostId, folder: PathBuf) {
        self.incomplete.insert(host, folder);
    }

    /// All files of the host have come.
    pub(super) fn note_complete(&mut self, host: HostId) {
        self.incomplete.remove(&host);
    }

    /// How many bytes of files have come from a host whose files have not all come; `None` if they have.
    pub(super) fn arriving(&self, host: HostId) -> Option<u64> {
        let is_incomplete = self.incomplete.contains_key(&host);
        is_incomplete.then(|| self.arrived.get(&host).copied().unwrap_or(0))
    }

    /// What has not come to the run directory, in words.
    pub(super) fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Advice about files that stay on their hosts.
    pub(super) fn advice(&self) -> Option<&'static str> {
        self.has_left_files.then_some(
            "Copy what is missing from the folders on the hosts that are named, and remove the folders.",
        )
    }
}

impl Session {
    /// Takes in a piece of a file, and acknowledges it.
    pub(super) fn take_in_piece(&mut self, host: HostId, piece: FilePiece, view: &mut dyn RunView) {
        let (size, mut fault) = (piece.size(), None);
        let failed = self.host_files.unwritten.remove(&host);
        let failed = failed.filter(|path| piece.follows_in(path));
        if let Some(path) = failed {
            self.host_files.unwritten.insert(host, path);
        } else if let Err(error) = piece.write(&self.directory.instances()) {
            let why = error.to_string();
            self.file_lost(host, &why, view);
            let path = piece.path().to_owned();
            self.host_files.unwritten.insert(host, path);
            fault = Some(why);
        }
        let taken = AgentOrder::FileTaken { size, fault };
        self.agents.order(host, &taken);
        *self.host_files.arrived.entry(host).or_default() += size;
        let kept = piece.without_bytes();
        self.host_files.last_pieces.insert(host, kept);
    }

    /// A file of a host cannot be copied to the run directory. The run goes on, and fails at the end.
    pub(super) fn file_lost(&mut self, host: HostId, why: &str, view: &mut dyn RunView) {
        let text = format!("a file of {}: {why}", self.host_name(host));
        let lost = &mut self.host_files.lost;
        if lost.len() < MOST_LOST_FILES && !lost.contains(&text) {
            lost.push(text.clone());
            self.say(Level::Error, format!("cannot copy {text}"), view);
        }
    }

    /// A host cannot read a file, or the rest of one.
    pub(super) fn file_unread(&mut self, host: HostId, why: &str, view: &mut dyn RunView) {
        self.file_lost(host, why, view);
        self.remove_last_part(host);
    }

    /// Removes the file of which a host has sent a part at last. Returns the path if there was one.
    fn remove_last_part(&mut self, host: HostId) -> Option<PathBuf> {
        let last = self.host_files.last_pieces.remove(&host);
        let part = last.filter(FilePiece::is_followed)?;
        let is_removed = part.remove_part(&self.directory.instances());
        is_removed.then(|| part.path().to_owned())
    }

    /// Says where the files are that have not come to the run directory.
    pub(super) fn name_incomplete_hosts(&mut self, view: &mut dyn RunView) {
        for (host, folder) in std::mem::take(&mut self.host_files.incomplete) {
            let name = self.host_name(host).to_owned();
            let lost = format!(
                "the files of host {name} have not all come; they may be there in {}",
                folder.display()
            );
            let part = self.remove_last_part(host).map(|path| {
                let path = path.display();
                format!("of {path} a part had come from host {name}, which was removed")
            });
            for text in [Some(lost), part].into_iter().flatten() {
                self.say(Level::Error, text.clone(), view);
                self.host_files.lost.push(text);
            }
            self.host_files.has_left_files = true;
        }
    }
}
