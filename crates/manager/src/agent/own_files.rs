//! The run directory of an agent whose host does not have the manager's.
//!
//! The manager sends the files of each program before the start. The output of the programs goes to the
//! manager while they run, and at the end all other files of the work directories go, too.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use titin_wire::EndpointId;

use super::AgentReport;
use super::files::{FilePiece, KnownFiles, MOST_IN_FLIGHT, OUTPUTS, TreePieces};

/// How often to look for new output of programs.
pub(super) const OUTPUT_INTERVAL: Duration = Duration::from_millis(200);

/// The files of the programs on a host without the run directory.
pub(super) struct OwnFiles {
    /// The folder of this run on this host. It has the folder `instances`.
    folder: PathBuf,
    known: KnownFiles,
    /// The outputs of the programs, below `instances`.
    outputs: Vec<PathBuf>,
    /// Bytes of files that the manager has not acknowledged.
    in_flight: u64,
    /// When the outputs were last looked at.
    looked: Instant,
    /// Why the first file was not copied of those that were not.
    copy_fault: Option<String>,
    /// Why the files of a program are not complete, by the folder of the program.
    faults: HashMap<PathBuf, String>,
}

/// How far the last files are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestProgress {
    /// The manager has to acknowledge bytes first.
    Full,
    /// The next call goes on at once.
    Checks,
    /// All are reported.
    Reported,
}

impl OwnFiles {
    /// Makes the folder of the run in `parent`, or else in the usual folder for temporary files.
    ///
    /// # Errors
    /// If the folder cannot be made, with the path.
    pub(super) fn make(parent: Option<&Path>) -> io::Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        // Programs run in other folders.
        let parent = std::path::absolute(parent)?;
        let folder = parent.join(format!("titin-run-{:032x}", EndpointId::random().0));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.and_then(|()| fs::create_dir(folder.join("instances")))
            .map_err(|error| {
                let text = format!("cannot make {}: {error}", folder.display());
                io::Error::new(error.kind(), text)
            })?;
        Ok(OwnFiles {
            folder,
            known: KnownFiles::default(),
            outputs: Vec::new(),
            in_flight: 0,
            looked: Instant::now(),
            copy_fault: None,
            faults: HashMap::new(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder `instances`.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("instances")
    }

    /// Writes a piece that the manager has sent.
    pub(super) fn write(&mut self, piece: &FilePiece) {
        let root = self.root();
        match piece.write(&root) {
            Ok(()) => self.known.note_received(&root, piece),
            Err(error) => {
                let program: PathBuf = piece.path().iter().take(1).collect();
                let text = format!(
                    "its file {} cannot be written in {}: {error}",
                    piece.path().display(),
                    root.display()
                );
                self.faults.entry(program).or_insert(text);
            }
        }
    }

    /// From now on the outputs of a program go to the manager.
    ///
    /// # Errors
    /// Why the files of the program are not complete, in words.
    pub(super) fn begin(&mut self, folder: &str) -> Result<(), String> {
        let folder = Path::new(folder);
        if let Some(fault) = self.faults.get(folder) {
            return Err(fault.clone());
        }
        self.known.wait_for_clock();
        self.outputs
            .extend(OUTPUTS.map(|output| folder.join(output)));
        Ok(())
    }

    /// The manager has taken bytes, and could not write them if there is a fault.
    pub(super) fn acknowledged(&mut self, size: u64, fault: Option<String>) {
        self.in_flight = self.in_flight.saturating_sub(size);
        if self.copy_fault.is_none() {
            self.copy_fault = fault;
        }
    }

    /// Why a file was not copied, if one was not: this host cannot read it, or the manager not write it.
    pub(super) fn copy_fault(&self) -> Option<&str> {
        self.copy_fault.as_deref()
    }

    /// Whether the manager has acknowledged everything.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.in_flight == 0
    }

    /// Reports new output, as much as there is room for, at most once an interval.
    pub(super) fn report_output(&mut self, mut report: impl FnMut(AgentReport)) {
        if self.looked.elapsed() < OUTPUT_INTERVAL {
            return;
        }
        self.looked = Instant::now();
        let root = self.root();
        // Another output each time is the first, and each gets a piece in turn: no output has to wait for
        // another that never ends.
        if !self.outputs.is_empty() {
            self.outputs.rotate_left(1);
        }
        let mut is_more = true;
        while std::mem::take(&mut is_more) {
            for output in &self.outputs {
                if self.in_flight >= MOST_IN_FLIGHT {
                    return;
                }
                if let Some(piece) = self.known.next_output(&root, output) {
                    self.in_flight += piece.size();
                    report(AgentReport::File(piece));
                    is_more = true;
                }
            }
        }
    }

    /// All that differs from what the manager has, for [`OwnFiles::report_rest`].
    pub(super) fn rest(&self) -> Vec<TreePieces> {
        let root = self.root();
        let all = TreePieces::of(&root, Path::new(""));
        // The last comes first. What is gone may be in the way of what has come.
        let removed = TreePieces::of_removed(&root, &self.known);
        vec![all, removed]
    }

    /// Reports the files of programs that the manager does not have yet, as much as there is room for.
    pub(super) fn report_rest(
        &mut self,
        rest: &mut Vec<TreePieces>,
        mut report: impl FnMut(AgentReport),
    ) -> RestProgress {
        while self.in_flight < MOST_IN_FLIGHT {
            let Some(pieces) = rest.last_mut() else {
                return RestProgress::Reported;
            };
            match pieces.next(&self.known) {
                None => drop(rest.pop()),
                Some(Ok(None)) => return RestProgress::Checks,
                Some(Ok(Some(piece))) => {
                    self.in_flight += piece.size();
                    report(AgentReport::File(piece));
                }
                Some(Err(error)) => {
                    let text = error.to_string();
                    self.copy_fault.get_or_insert_with(|| text.clone());
                    report(AgentReport::FileLost { text });
                }
            }
        }
        RestProgress::Full
    }

    /// Removes the files of this host, also from folders that a program has made read-only.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.folder).or_else(|_| {
            make_folders_writable(&self.folder);
            fs::remove_dir_all(&self.folder)
        })
    }
}

/// Lets the user change a folder and all folders below, as far as the user may.
fn make_folders_writable(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_folders_writable(&entry.path());
        }
    }
}
