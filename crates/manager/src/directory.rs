//! The run directory, with the layout of MUSCLE3, for MUSCLE3's tools.
//!
//! ```text
//! run_<model>_<date>_<time>/
//!     configuration.ymmsl      what was run: all files, merged
//!     titin_manager.log        what happened
//!     connection.json          how programs find the run; for its owner only, gone when the run is over
//!     messages-file/           messages by the medium file, where a conduit is pinned to it; goes with the run
//!     performance.sqlite       where the time went
//!     end.json                 how the run ended
//!     agents/                  what the commands printed that start the agents of other hosts
//!     instances/<name>/        stdout.txt, stderr.txt, run_script.sh where there is one, workdir/; of hosts too
//!     results/<name>/          files named under `titin: stage`
//! ```

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use titin_os::folder_lock;
use titin_wire::connection::{Connection, MEETING_PLACES, meeting_place};
use titin_wire::{EndpointId, Medium, Secret};

/// The directory of one run.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    path: PathBuf,
}

/// The most bytes of the directory's path. SQLite takes paths of 512 bytes. The name of the profile
/// and SQLite's own endings come on top.
const LONGEST: usize = 480;

/// Beginnings of the names of folders for messages: in the run directory before the key of the
/// medium, and in a folder that the user has chosen before a random id.
const IN_RUN_DIRECTORY: &str = "messages-";
const IN_CHOSEN_FOLDER: &str = "titin-";

/// Why the run directory cannot be used. Each printed error says how to go on.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// An earlier run has used the directory.
    #[error("{} holds an earlier run: choose another --run-dir, or remove it", .0.display())]
    Used(PathBuf),
    /// The name is not text, so programs cannot be given the name.
    #[error("the run directory {} has a name that is not UTF-8 text, which programs cannot be told: choose another --run-dir", .0.display())]
    NotText(PathBuf),
    /// The name is too long for the database of the profile.
    #[error("the run directory {} has a name of {} bytes, and {LONGEST} is the most: choose another --run-dir", .0.display(), .0.as_os_str().len())]
    TooLong(PathBuf),
    /// A folder for messages cannot be made.
    #[error("cannot make {} for messages between programs: {source}. Name another folder, which all programs can write to (titin: folder)", .path.display())]
    Messages {
        /// The folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The directory, or a file in it, cannot be written.
    #[error("cannot write {}: {source}{}", .path.display(), hint(.source))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The advice on an error of the file system.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if is_full(error) => ". Make room, or choose a --run-dir on another disk",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ". Choose a --run-dir that you may write to"
        }
        _ => "",
    }
}

/// Whether a disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Adds the path to an error of the file system.
pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, DirectoryError> {
    result.map_err(|source| DirectoryError::Write {
        path: path.to_owned(),
        source,
    })
}

impl RunDirectory {
    /// Makes the run directory: the user's choice, or else a directory in the current folder, named
    /// after the model and the time.
    ///
    /// # Errors
    /// [`DirectoryError`] if an earlier run has used the directory, or the directory cannot be
    /// written.
    pub fn create(chosen: Option<&Path>, model: &str, time: &str) -> Result<Self, DirectoryError> {
        let name = format!("run_{model}_{time}");
        // The name is checked before anything is made, and again after links are followed.
        let first = chosen.unwrap_or(Path::new(&name));
        usable(at(first, std::path::absolute(first))?)?;
        let path = match chosen {
            Some(path) => {
                at(path, fs::create_dir_all(path))?;
                path.to_owned()
            }
            None => create_new_directory(&name)?,
        };
        let path = usable(at(&path, path.canonicalize())?)?;
        let directory = RunDirectory { path };
        let instances = directory.path.join("instances");
        match fs::create_dir(&instances) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(DirectoryError::Used(directory.path));
            }
            result => at(&instances, result)?,
        }
        Ok(directory)
    }

    /// The run directory at a path, made by a run.
    pub fn at(path: PathBuf) -> Self {
        RunDirectory { path }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The connection file.
    pub fn connection(&self) -> PathBuf {
        self.path.join("connection.json")
    }

    /// The log file.
    pub fn log(&self) -> PathBuf {
        self.path.join("titin_manager.log")
    }

    /// The file of the profile.
    pub fn profile(&self) -> PathBuf {
        self.path.join("performance.sqlite")
    }

    /// The record of the run's end: what `titin run --json` prints.
    pub fn end(&self) -> PathBuf {
        self.path.join("end.json")
    }

    /// Writes the record of the run's end. A reader finds the whole record, or none.
    ///
    /// # Errors
    /// [`DirectoryError`] if the file cannot be written.
    pub fn write_end(&self, text: &str) -> Result<(), DirectoryError> {
        let part = self.path.join(".end.json.part");
        let path = self.end();
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &path));
        at(
            &path,
            written.inspect_err(|_| {
                let _ = fs::remove_file(&part);
            }),
        )
    }

    /// The folder with the folders of the instances.
    pub fn instances(&self) -> PathBuf {
        self.path.join("instances")
    }

    /// The folder of an instance.
    pub fn instance(&self, name: &str) -> PathBuf {
        self.instances().join(name)
    }

    /// The folder with the output of the commands that start agents.
    pub fn agents(&self) -> PathBuf {
        self.path.join("agents")
    }

    /// Makes the folder with the output of the commands that start agents.
    ///
    /// # Errors
    /// [`DirectoryError`] if the folder cannot be made.
    pub fn prepare_agents(&self) -> Result<PathBuf, DirectoryError> {
        let folder = self.agents();
        at(&folder, fs::create_dir_all(&folder))?;
        Ok(folder)
    }

    /// The folder of an instance's results.
    pub fn results(&self, name: &str) -> PathBuf {
        self.path.join("results").join(name)
    }

    /// Makes the folder of an instance, with the work directory.
    ///
    /// # Errors
    /// [`DirectoryError`] if the folder cannot be made.
    pub fn prepare_instance(&self, name: &str) -> Result<PathBuf, DirectoryError> {
        let folder = self.instance(name);
        let workdir = folder.join("workdir");
        at(&workdir, fs::create_dir_all(&workdir))?;
        Ok(folder)
    }

    /// Writes the description of the run.
    ///
    /// # Errors
    /// [`DirectoryError`] if the file cannot be written.
    pub fn write_configuration(&self, text: &str) -> Result<(), DirectoryError> {
        let path = self.path.join("configuration.ymmsl");
        at(&path, fs::write(&path, text))
    }

    /// Makes the meeting place for the processes of this host that have the secret. Does not write
    /// the connection file yet.
    pub fn prepare_connection(&self, secret: &Secret) -> ConnectionFile {
        let meeting_place = meeting_place(secret);
        // `enter` also removes the meeting places of runs whose manager and guard were both killed.
        // Without a meeting place, programs use the network.
        let lock = folder_lock::enter(&meeting_place, MEETING_PLACES).ok();
        ConnectionFile {
            file: self.connection(),
            meeting_place,
            folders: Vec::new(),
            _lock: lock,
        }
    }

    /// Opens the log for appending.
    ///
    /// # Errors
    /// [`DirectoryError`] if the log cannot be written.
    pub fn open_log(&self) -> Result<File, DirectoryError> {
        let path = self.log();
        at(
            &path,
            OpenOptions::new().create(true).append(true).open(&path),
        )
    }
}

/// The connection file, with the run's secret, and the meeting place of the processes of this host.
/// The drop of this value removes both.
#[derive(Debug)]
pub struct ConnectionFile {
    file: PathBuf,
    meeting_place: PathBuf,
    /// The folders for messages.
    folders: Vec<PathBuf>,
    /// Locks the meeting place as long as the file is open.
    _lock: Option<File>,
}

impl ConnectionFile {
    /// Writes the connection file. The guard must have started before, because the guard removes the
    /// file if this process is killed: see [`remove_connection`].
    ///
    /// # Errors
    /// [`DirectoryError`] if the file cannot be written.
    pub fn write(&self, connection: &Connection) -> Result<(), DirectoryError> {
        write_connection_file(&self.file, connection)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Makes the folders in which programs meet by the given media: in `chosen`, or else in the run
    /// directory.
    ///
    /// # Errors
    /// [`DirectoryError`] if a folder cannot be made.
    pub fn make_folders(
        &mut self,
        media: &[Medium],
        chosen: Option<&Path>,
    ) -> Result<Vec<(Medium, PathBuf)>, DirectoryError> {
        let mut folders = Vec::new();
        for medium in media {
            let path = self.folder_for(*medium, chosen);
            let made = std::path::absolute(&path).and_then(|path| {
                DirBuilder::new().mode(0o700).create(&path)?;
                Ok(path)
            });
            let path = made.map_err(|source| DirectoryError::Messages { path, source })?;
            self.folders.push(path.clone());
            folders.push((*medium, path));
        }
        Ok(folders)
    }

    /// The folder for the messages of a medium: in the chosen folder, under a name of its own, or
    /// else in the directory of the run.
    fn folder_for(&self, medium: Medium, chosen: Option<&Path>) -> PathBuf {
        match chosen {
            Some(chosen) => {
                let id = EndpointId::random().0;
                chosen.join(format!("{IN_CHOSEN_FOLDER}{id:032x}"))
            }
            None => {
                let parent = self.file.parent().unwrap_or(Path::new("."));
                parent.join(format!("{IN_RUN_DIRECTORY}{}", medium.key()))
            }
        }
    }

    /// The folder of the meeting place, even if the folder could not be made.
    pub fn meeting_place(&self) -> &Path {
        &self.meeting_place
    }

    /// Removes the connection file, the meeting place and the folders for messages, as far as they
    /// exist.
    pub fn remove(&self) {
        remove_connection(&self.file);
        let _ = fs::remove_dir_all(&self.meeting_place);
        remove_folders(&self.folders);
    }
}

/// Writes a connection file. At no time may anyone but the owner read the file. The file appears when it
/// is complete, so scripts can wait for the file.
pub(crate) fn write_connection_file(
    path: &Path,
    connection: &Connection,
) -> Result<(), DirectoryError> {
    let draft = draft(path);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600);
    let mut file = at(&draft, file.open(&draft))?;
    at(&draft, file.write_all(connection.to_json().as_bytes()))?;
    at(path, fs::rename(&draft, path))
}

/// Removes a connection file, also an incomplete file, and the folders that the file names.
pub fn remove_connection(file: &Path) {
    let text = fs::read_to_string(file).ok();
    if let Some(connection) = text.and_then(|text| Connection::from_json(&text).ok()) {
        remove_folders(connection.folders.values());
    }
    let _ = fs::remove_file(draft(file));
    let _ = fs::remove_file(file);
}

/// Removes folders for messages. Anyone may have changed the connection file, so folders of other
/// names are not removed.
fn remove_folders<'a>(folders: impl IntoIterator<Item = &'a PathBuf>) {
    for folder in folders {
        if is_message_folder(folder) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Whether a folder has a name that [`ConnectionFile::make_folders`] gives.
fn is_message_folder(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or("");
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(IN_RUN_DIRECTORY)
        .is_some_and(|key| Medium::of_key(key).is_some())
        || name.strip_prefix(IN_CHOSEN_FOLDER).is_some_and(is_id)
}

/// The name of a connection file as long as the file is incomplete.
fn draft(file: &Path) -> PathBuf {
    file.with_extension("json.new")
}

impl Drop for ConnectionFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Makes a directory of the given name. A number follows the name if the directory exists already.
fn create_new_directory(name: &str) -> Result<PathBuf, DirectoryError> {
    let mut path = PathBuf::from(name);
    for number in 2.. {
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = PathBuf::from(format!("{name}_{number}"));
            }
            result => return at(&path, result).map(|()| path.clone()),
        }
    }
    unreachable!("there is a free number")
}

/// Checks that a path is text and not too long. The path goes into descriptions, scripts,
/// environments and JSON.
fn usable(path: PathBuf) -> Result<PathBuf, DirectoryError> {
    match path.to_str() {
        None => Err(DirectoryError::NotText(path)),
        Some(text) if text.len() > LONGEST => Err(DirectoryError::TooLong(path)),
        Some(_) => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_directory_is_used_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/run");
        let directory = RunDirectory::create(Some(&path), "m", "t").unwrap();
        assert!(
            directory
                .prepare_instance("micro[3]")
                .unwrap()
                .join("workdir")
                .is_dir()
        );
        let again = RunDirectory::create(Some(&path), "m", "t").unwrap_err();
        assert!(again.to_string().contains("holds an earlier run"));
    }

    #[test]
    fn only_its_owner_reads_the_connection_file() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::create(Some(folder.path()), "m", "t").unwrap();
        let secret = Secret::random();
        let connection = Connection {
            addresses: Vec::new(),
            secret,
            spans_hosts: false,
            folders: Default::default(),
            patience: 300.0,
            site: None,
            network: None,
        };
        let kept = directory.prepare_connection(&connection.secret);
        assert!(kept.meeting_place().is_dir() && !directory.connection().exists());
        kept.write(&connection).unwrap();
        let mode = fs::metadata(directory.connection())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!folder.path().join("connection.json.new").exists());
        drop(kept);
        assert!(!directory.connection().exists());
        assert!(!meeting_place(&connection.secret).exists());
    }

    #[test]
    fn a_name_that_is_too_long_for_the_profile_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let deep = |length: usize| {
            let spare = length - folder.path().as_os_str().len();
            let step = format!("/{}", "a".repeat(99));
            let name = step.repeat(spare / 100) + "/" + &"b".repeat(spare % 100 - 1);
            PathBuf::from(format!("{}{name}", folder.path().display()))
        };
        let error = RunDirectory::create(Some(&deep(LONGEST + 1)), "m", "t")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("has a name of 481 bytes") && error.contains("--run-dir"),
            "{error}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let directory = RunDirectory::create(Some(&deep(LONGEST)), "m", "t").unwrap();
        rusqlite::Connection::open(directory.profile())
            .unwrap()
            .execute_batch("CREATE TABLE t (a);")
            .unwrap();
    }

    #[test]
    fn a_name_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsStr::from_bytes(b"n\xe9"));
        let error = RunDirectory::create(Some(&path), "m", "t")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("not UTF-8") && error.contains("--run-dir"),
            "{error}"
        );
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        let error = RunDirectory::create(Some(&folder.path().join("link")), "m", "t").unwrap_err();
        assert!(matches!(error, DirectoryError::NotText(_)), "{error}");
    }

    #[test]
    fn folders_of_other_names_are_not_removed() {
        let root = tempfile::tempdir().unwrap();
        let named = |name: &str| root.path().join(name);
        let of_runs = [named("messages-file"), named(&format!("titin-{:032x}", 7))];
        let others = [
            named("messages-"),
            named("home"),
            named("titin-7"),
            named("messages-files"),
        ];
        for folder in of_runs.iter().chain(&others) {
            fs::create_dir(folder).unwrap();
        }
        remove_folders(of_runs.iter().chain(&others));
        assert!(of_runs.iter().all(|folder| !folder.exists()));
        assert!(others.iter().all(|folder| folder.exists()));
    }

    #[test]
    fn errors_say_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = at::<()>(Path::new("/d/x"), Err(full))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/d/x") && error.contains("--run-dir on another disk"),
            "{error}"
        );
    }
}
