//! Files of hosts without the run directory: those that come, and those that do not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{RunView, Session};
use crate::agent::{AgentOrder, FilePiece};
use crate::event::Level;
use crate::host::HostId;

/// How many files that cannot be copied are named.
const MOST_LOST_FILES: usize = 10;

/// How many awaited hosts are named.
const MOST_AWAITED: usize = 12;

/// After this time without a sign of an agent, the user is told so.
const SILENCE: Duration = Duration::from_secs(5);

/// The state of the files of all hosts.
#[derive(Default)]
pub(super) struct HostFiles {
    /// Files that could not be copied to the run directory, with the reasons.
    lost: Vec<String>,
    /// The hosts whose files have not all come, with the folders there.
    incomplete: BTreeMap<HostId, PathBuf>,
    /// The last piece of a file that each host has sent, without the bytes.
    last_pieces: BTreeMap<HostId, FilePiece>,
    /// How many bytes of files have come from each host.
    arrived: BTreeMap<HostId, u64>,
    /// Whether files stay on their hosts.
    has_left_files: bool,
}

impl HostFiles {
    /// The host has a folder of the run, whose files are still to come.
    pub(super) fn are_at(&mut self, host: HostId, folder: PathBuf) {
        self.incomplete.insert(host, folder);
    }

    /// All files of the host have come.
    pub(super) fn are_complete(&mut self, host: HostId) {
        self.incomplete.remove(&host);
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
        let result = piece.write(&self.directory.instances());
        let (size, fault) = (piece.size(), result.err().map(|error| error.to_string()));
        if let Some(why) = &fault {
            self.file_lost(host, why, view);
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

    /// Says where the files are that have not come to the run directory.
    pub(super) fn name_incomplete_hosts(&mut self, view: &mut dyn RunView) {
        for (host, folder) in std::mem::take(&mut self.host_files.incomplete) {
            let name = self.host_name(host);
            let lost = format!(
                "the files of host {name} have not all come; they may be there in {}",
                folder.display()
            );
            let root = self.directory.instances();
            let last = self.host_files.last_pieces.get(&host);
            let part = last.filter(|piece| piece.is_followed() && piece.remove_part(&root));
            let part = part.map(|piece| {
                let path = piece.path().display();
                format!("of {path} a part had come from host {name}, which was removed")
            });
            for text in [Some(lost), part].into_iter().flatten() {
                self.say(Level::Error, text.clone(), view);
                self.host_files.lost.push(text);
            }
            self.host_files.has_left_files = true;
        }
    }

    /// What the run waits for at its end, a line for each host. True with the lines if a host is silent.
    pub(super) fn awaited_at_end(&self) -> (Vec<String>, bool) {
        let mut is_silent = false;
        let mut lines = Vec::new();
        for host in self.agents.hosts().into_iter().take(MOST_AWAITED) {
            let place = format!("host {}{}", self.host_name(host), self.plan.site_text(host));
            let silence = self.agents.silence(host);
            let arrived = self.host_files.arrived.get(&host).copied().unwrap_or(0);
            is_silent |= silence >= SILENCE;
            lines.push(if silence >= SILENCE {
                format!(
                    "waits for {place}: nothing has come from there for {} s",
                    silence.as_secs()
                )
            } else if self.host_files.incomplete.contains_key(&host) {
                let megabytes = arrived as f64 / 1e6;
                format!("waits for the files of {place}: {megabytes:.1} MB have come")
            } else {
                format!("waits for the agent of {place} to end what is left of its programs")
            });
        }
        (lines, is_silent)
    }

    /// What may go on at hosts that do not answer at the end of the run, a line for each host.
    pub(super) fn left_at_silent_hosts(&self) -> Vec<String> {
        let hosts = self.agents.hosts().into_iter();
        let silences = hosts.map(|host| (host, self.agents.silence(host)));
        let silent = silences.filter(|(_, silence)| *silence >= SILENCE);
        silent
            .map(|(host, silence)| {
                format!(
                    "nothing has come from host {}{} for {} s: programs may go on there until it has heard nothing of this run \
                     for {} s",
                    self.host_name(host),
                    self.plan.site_text(host),
                    silence.as_secs(),
                    self.plan.longest_silence(host).as_secs_f64()
                )
            })
            .collect()
    }
}
