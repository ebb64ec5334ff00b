//! Files under `titin: stage` of the description. Some are copied into a work directory before the
//! program starts. Others are results, and are copied out of the work directory at the end of the
//! run.
//!
//! Only files and folders are copied. Reading a pipe or a device could take for ever, and a link to
//! a folder could lead anywhere. Files may be huge, so the copying can be ended.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::sparse::next_data;

/// Bytes of a file between two calls of [`MayContinue`].
const STRETCH: u64 = 4 << 20;

/// A function that the copier calls between files, and within large files, to find out whether to
/// continue. After the first false, the function always returns false.
pub type MayContinue<'a> = &'a dyn Fn() -> bool;

/// Why files cannot be put into a work directory.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// There is no such file.
    #[error(
        "there is no {name} to stage in; it was looked for in {}. See `titin: stage` in the description",
        .folders.join(" and ")
    )]
    Missing {
        /// The name in the description.
        name: String,
        /// The searched folders.
        folders: Vec<String>,
    },
    /// Two files have the same name.
    #[error(
        "{} and {} are both to be staged in under the name {}: rename one of them", .one.display(), .other.display(),
        .other.file_name().unwrap_or_default().display()
    )]
    SameName {
        /// The first file.
        one: PathBuf,
        /// The second file.
        other: PathBuf,
    },
    /// The file is in the run directory, and so would be the copy.
    #[error("{} cannot be staged in: it is in the run directory, into which it would be copied", .0.display())]
    RunDirectory(PathBuf),
    /// The file cannot be copied.
    #[error("cannot copy {} to {}: {source}", .from.display(), .to.display())]
    Copy {
        /// The file.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The copying was ended.
    #[error("copying was ended")]
    Interrupted,
}

/// A problem with a result.
#[derive(Debug, PartialEq, Eq)]
pub enum StagingProblem {
    /// The program has not written the file: in words.
    Missing(String),
    /// The file could not be copied: in words.
    CopyFailed(String),
    /// The copying was ended early: the name in the description.
    Interrupted(String),
}

/// Copies files and folders into a work directory, but nothing of the run directory. Relative names
/// start from the folders of the description's files. If several folders have a file of the same
/// name, the file of the first folder is copied.
///
/// # Errors
/// [`StageError`] for the first file that cannot be copied.
pub fn stage_in(
    names: &[String],
    folders: &[PathBuf],
    workdir: &Path,
    run_directory: &Path,
    may_continue: MayContinue<'_>,
) -> Result<(), StageError> {
    let mut staged: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for name in names {
        for path in locate(name, folders)? {
            let file = path.file_name().unwrap_or_default().to_owned();
            match staged.get(&file) {
                Some(one) if *one == path => continue,
                Some(one) => {
                    return Err(StageError::SameName {
                        one: one.clone(),
                        other: path,
                    });
                }
                None => {}
            }
            copy_in(&path, &workdir.join(&file), run_directory, may_continue)?;
            staged.insert(file, path);
        }
    }
    Ok(())
}

/// Copies a file or folder of the description. If the description names a link, the copy follows
/// the link.
fn copy_in(
    from: &Path,
    to: &Path,
    run_directory: &Path,
    may_continue: MayContinue<'_>,
) -> Result<(), StageError> {
    let real = from.canonicalize();
    if real
        .as_ref()
        .is_ok_and(|real| real.starts_with(run_directory))
    {
        return Err(StageError::RunDirectory(from.to_owned()));
    }
    let copied = real.and_then(|real| {
        let copier = Copier {
            root: &real,
            except: Some(run_directory),
            may_continue,
        };
        copier.copy(&real, to)
    });
    copied.map_err(|source| match may_continue() {
        true => StageError::Copy {
            from: from.to_owned(),
            to: to.to_owned(),
            source,
        },
        false => StageError::Interrupted,
    })
}

/// The files of a name. Of several files with the same file name, the file in the first folder.
pub(crate) fn locate(name: &str, folders: &[PathBuf]) -> Result<Vec<PathBuf>, StageError> {
    let mut located: Vec<PathBuf> = Vec::new();
    for path in folders.iter().flat_map(|folder| matches(folder, name)) {
        let is_same = |other: &PathBuf| other.file_name() == path.file_name();
        if !located.iter().any(is_same) {
            located.push(path);
        }
    }
    if located.is_empty() {
        let folders = folders.iter();
        return Err(StageError::Missing {
            name: name.to_owned(),
            folders: folders.map(|folder| folder.display().to_string()).collect(),
        });
    }
    Ok(located)
}

/// Copies results out of a work directory. Returns the problems.
pub fn stage_out(
    names: &[String],
    workdir: &Path,
    results: &Path,
    may_continue: MayContinue<'_>,
) -> Vec<StagingProblem> {
    let root = workdir.canonicalize();
    let copier = Copier {
        root: &root.unwrap_or_else(|_| workdir.to_owned()),
        except: None,
        may_continue,
    };
    let mut problems = Vec::new();
    for name in names {
        let paths = matches(workdir, name);
        if paths.is_empty() {
            let text = format!(
                "there is no {name} to keep as a result in {}",
                workdir.display()
            );
            problems.push(StagingProblem::Missing(text));
        }
        for path in paths {
            let below = path.strip_prefix(workdir).ok();
            let file = Path::new(path.file_name().unwrap_or_default());
            match copier.copy_result(&path, &results.join(below.unwrap_or(file))) {
                Ok(()) => {}
                Err(_) if !may_continue() => {
                    problems.push(StagingProblem::Interrupted(name.clone()));
                    break;
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    problems
}

/// The files and folders of a name. In the last part of the name `*` stands for any letters and `?`
/// for one letter.
fn matches(folder: &Path, name: &str) -> Vec<PathBuf> {
    let path = folder.join(name);
    if path.exists() {
        return vec![path];
    }
    let pattern = path.file_name().map(OsStr::as_bytes);
    let (Some(parent), Some(pattern)) = (path.parent(), pattern) else {
        return Vec::new();
    };
    if !pattern.iter().any(|byte| b"*?".contains(byte)) {
        return Vec::new();
    }
    // A name need not be UTF-8.
    let has_fitting_name = |entry: &fs::DirEntry| fits(pattern, entry.file_name().as_bytes());
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let fitting = entries.filter(has_fitting_name);
    let mut paths: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether a name fits a pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            fits(&pattern[1..], name) || !name.is_empty() && fits(pattern, &name[1..])
        }
        (Some(b'?'), Some(_)) => fits(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) => a == b && fits(&pattern[1..], &name[1..]),
        _ => false,
    }
}

struct Copier<'a> {
    /// Links to folders are followed only within this folder.
    root: &'a Path,
    /// A folder to leave out.
    except: Option<&'a Path>,
    may_continue: MayContinue<'a>,
}

impl Copier<'_> {
    fn copy_result(&self, from: &Path, to: &Path) -> Result<(), StagingProblem> {
        self.copy(from, to).map_err(|error| {
            let (from, to) = (from.display(), to.display());
            StagingProblem::CopyFailed(format!("cannot copy {from} to {to}: {error}"))
        })
    }

    /// Copies a file, or a folder with its contents. Returns the first error, and copies the rest
    /// all the same.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !(self.may_continue)() {
            return Err(error_about(from, "was left out"));
        }
        let metadata = fs::metadata(from);
        let kind = metadata
            .map_err(|error| error_about(from, &format!("cannot be read: {error}")))?
            .file_type();
        if kind.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(Path::new("")))?;
            let copied = self.copy_file(from, to);
            return copied
                .map_err(|error| error_about(from, &format!("cannot be copied: {error}")));
        }
        if !kind.is_dir() {
            let text = "is neither a file nor a folder, but a pipe, a socket or a device; only files and folders are copied";
            return Err(error_about(from, text));
        }
        self.copy_folder(from, to)
    }

    fn copy_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        let real = from.canonicalize()?;
        if self.except.is_some_and(|except| real == except) {
            return Ok(());
        }
        if from.is_symlink() && !self.is_link_within(from, &real) {
            let text = format!(
                "is a link to the folder {}, which is not part of what is copied; links to such folders are not followed",
                real.display()
            );
            return Err(error_about(from, &text));
        }
        fs::create_dir_all(to)?;
        let mut result = Ok(());
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let copied = self.copy(&entry.path(), &to.join(entry.file_name()));
            result = result.and(copied);
        }
        // The owner may always write: the program in a work directory, and later copies of results.
        let mode = fs::metadata(from)?.permissions().mode() | 0o700;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
        result
    }

    /// Whether a link leads to a copied folder, and not to a folder around the link.
    fn is_link_within(&self, link: &Path, target: &Path) -> bool {
        let folder = link.parent().and_then(|parent| parent.canonicalize().ok());
        target.starts_with(self.root) && !folder.unwrap_or_default().starts_with(target)
    }

    /// Copies a file with its holes, its permissions, and its time of change. If the copying is ended,
    /// the incomplete copy is removed, or a reader could take the part for the whole.
    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut source = File::open(from)?;
        let mut target = File::create(to)?;
        let mut offset = 0;
        loop {
            let data = next_data(&source, offset)?;
            let length = (data.end - data.start).min(STRETCH);
            source.seek(SeekFrom::Start(data.start))?;
            target.seek(SeekFrom::Start(data.start))?;
            let copied = io::copy(&mut (&source).take(length), &mut target)?;
            offset = data.start + copied;
            if copied == 0 {
                break;
            }
            if !(self.may_continue)() {
                fs::remove_file(to)?;
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        // A hole at the end.
        target.set_len(offset)?;
        let found = source.metadata()?;
        target.set_modified(found.modified()?)?;
        target.set_permissions(found.permissions())
    }
}

fn error_about(path: &Path, text: &str) -> io::Error {
    io::Error::other(format!("{} {text}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};
    use std::time::{Duration, SystemTime};

    /// Two folders of a description and a run directory, in a folder that is removed at the end.
    struct Stage {
        root: tempfile::TempDir,
    }

    impl Stage {
        fn new(files: &[&str]) -> Self {
            let root = tempfile::tempdir().unwrap();
            let stage = Stage { root };
            fs::create_dir_all(stage.workdir()).unwrap();
            for file in files {
                let path = stage.path(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, file).unwrap();
            }
            stage
        }

        fn path(&self, file: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(file)
        }

        fn workdir(&self) -> PathBuf {
            self.path("one/run/instances/a/workdir")
        }

        fn stage_in(&self, names: &[&str]) -> Result<(), StageError> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let folders = [self.path("one"), self.path("two")];
            stage_in(
                &names,
                &folders,
                &self.workdir(),
                &self.path("one/run"),
                &|| true,
            )
        }

        fn staged(&self, file: &str) -> Option<String> {
            fs::read_to_string(self.workdir().join(file)).ok()
        }
    }

    #[test]
    fn names_that_are_not_utf_8_fit_patterns() {
        let stage = Stage::new(&["one/a.dat"]);
        let odd = OsStr::from_bytes(b"out\xff.dat");
        for name in [OsStr::new("out1.dat"), odd] {
            fs::write(stage.path("one").join(name), "x").unwrap();
        }
        let found = matches(&stage.path("one"), "out*.dat");
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, [OsStr::new("out1.dat"), odd]);
    }

    #[test]
    fn files_go_in_and_results_come_out() {
        let stage = Stage::new(&["one/a.txt", "one/b.txt", "one/mesh/fine/points"]);
        stage.stage_in(&["*.txt", "mesh"]).unwrap();
        assert_eq!(stage.staged("b.txt").unwrap(), "one/b.txt");
        assert_eq!(
            stage.staged("mesh/fine/points").unwrap(),
            "one/mesh/fine/points"
        );
        let error = stage.stage_in(&["c.txt"]).unwrap_err().to_string();
        assert!(error.contains("no c.txt to stage in"), "{error}");

        let results = stage.path("results");
        let names = ["?.txt".into(), "mesh/fine".into(), "out.nc".into()];
        let problems = stage_out(&names, &stage.workdir(), &results, &|| true);
        assert_eq!(
            fs::read_to_string(results.join("a.txt")).unwrap(),
            "one/a.txt"
        );
        assert_eq!(
            fs::read_to_string(results.join("mesh/fine/points")).unwrap(),
            "one/mesh/fine/points"
        );
        let [StagingProblem::Missing(text)] = &problems[..] else {
            panic!("{problems:?}")
        };
        assert!(text.contains("no out.nc"), "{text}");
    }

    #[test]
    fn a_result_that_cannot_be_kept_is_told_from_one_that_is_missing() {
        let stage = Stage::new(&["one/a.txt", "results"]);
        stage.stage_in(&["a.txt"]).unwrap();
        let problems = stage_out(
            &["a.txt".into()],
            &stage.workdir(),
            &stage.path("results"),
            &|| true,
        );
        assert!(
            matches!(&problems[..], [StagingProblem::CopyFailed(text)] if text.contains("cannot copy")),
            "{problems:?}"
        );
    }

    #[test]
    fn copies_keep_holes_modes_and_times() {
        let stage = Stage::new(&["one/data/private/file"]);
        let folder = stage.path("one/data/private");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(folder.join("file"))
            .unwrap();
        file.set_len(1 << 30).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        file.set_modified(changed).unwrap();
        for (path, mode) in [(folder.join("file"), 0o640), (folder.clone(), 0o500)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        stage.stage_in(&["data"]).unwrap();
        let results = stage.path("results");
        let problems = stage_out(&["data".into()], &stage.workdir(), &results, &|| true);
        assert_eq!(problems, []);
        for copy in [stage.workdir(), results] {
            let copy = copy.join("data/private");
            assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o700);
            let found = fs::metadata(copy.join("file")).unwrap();
            assert_eq!(found.mode() & 0o777, 0o640);
            assert_eq!(found.modified().unwrap(), changed);
            assert_eq!(found.len(), 1 << 30);
            assert!(found.blocks() < 1000, "{}", found.blocks());
            let mut begin = [0; 21];
            let file = File::open(copy.join("file")).unwrap();
            file.read_exact_at(&mut begin, 0).unwrap();
            assert_eq!(&begin, b"one/data/private/file");
        }
    }

    #[test]
    fn copying_can_be_ended_within_a_file() {
        let stage = Stage::new(&["one/small", "one/later"]);
        let stretches = vec![1; 4 * usize::try_from(STRETCH).unwrap()];
        fs::write(stage.path("one/huge"), stretches).unwrap();
        let names = ["small", "huge", "later"].map(str::to_owned);
        let asked = std::cell::Cell::new(0);
        // The copier asks before each file and after each stretch of a file. The answer is no after
        // the second stretch of `huge`.
        let go_on = || asked.replace(asked.get() + 1) < 4;
        let results = stage.path("results");
        let problems = stage_out(&names, &stage.path("one"), &results, &go_on);
        assert_eq!(
            problems,
            ["huge", "later"].map(|name| StagingProblem::Interrupted(name.into()))
        );
        assert!(results.join("small").exists() && !results.join("huge").exists());
        let folders = [stage.path("one")];
        let error = stage_in(
            &names,
            &folders,
            &stage.workdir(),
            &stage.path("one/run"),
            &go_on,
        )
        .unwrap_err();
        assert!(matches!(error, StageError::Interrupted), "{error}");
        assert_eq!(stage.staged("small"), None);
    }

    #[test]
    fn pipes_and_links_to_other_folders_are_refused_by_name_and_the_rest_is_copied() {
        let stage = Stage::new(&["one/case/mesh/points", "two/other/secret"]);
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("one/pipe"), 0o600.into()).unwrap();
        let error = stage.stage_in(&["pipe"]).unwrap_err().to_string();
        assert!(
            error.contains("one/pipe is neither a file nor a folder"),
            "{error}"
        );
        // A link that the user names is followed.
        std::os::unix::fs::symlink(stage.path("one/case"), stage.path("one/link")).unwrap();
        stage.stage_in(&["link"]).unwrap();
        assert_eq!(
            stage.staged("link/mesh/points").unwrap(),
            "one/case/mesh/points"
        );

        let work = stage.workdir();
        rustix::fs::mkfifoat(rustix::fs::CWD, work.join("out"), 0o600.into()).unwrap();
        std::os::unix::fs::symlink(stage.path("two/other"), work.join("away")).unwrap();
        std::os::unix::fs::symlink(".", work.join("link/self")).unwrap();
        std::os::unix::fs::symlink("mesh", work.join("link/inside")).unwrap();
        let results = stage.path("results");
        let problems = stage_out(&["*".into()], &work, &results, &|| true);
        let told = format!("{problems:?}");
        assert_eq!(problems.len(), 3, "{told}");
        assert!(
            told.contains("out is neither a file nor a folder"),
            "{told}"
        );
        assert!(
            told.contains("away is a link to the folder") && told.contains("self is a link"),
            "{told}"
        );
        assert!(!results.join("away").exists());
        assert_eq!(
            fs::read_to_string(results.join("link/inside/points")).unwrap(),
            "one/case/mesh/points"
        );
    }

    #[test]
    fn of_several_with_one_name_that_in_the_first_folder_counts() {
        let stage = Stage::new(&["one/a.txt", "two/a.txt", "two/b.txt"]);
        stage.stage_in(&["a.txt"]).unwrap();
        assert_eq!(stage.staged("a.txt").unwrap(), "one/a.txt");
        stage.stage_in(&["?.txt", "a.txt"]).unwrap();
        assert_eq!(stage.staged("a.txt").unwrap(), "one/a.txt");
        assert_eq!(stage.staged("b.txt").unwrap(), "two/b.txt");
    }

    #[test]
    fn two_files_that_would_become_one_are_refused() {
        let stage = Stage::new(&["one/coarse/mesh", "one/fine/mesh"]);
        let error = stage
            .stage_in(&["coarse/mesh", "fine/mesh"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("coarse/mesh and ") && error.contains("under the name mesh"),
            "{error}"
        );
    }

    #[test]
    fn the_run_directory_is_not_copied_into_itself() {
        let stage = Stage::new(&["one/a.txt", "one/run/titin_manager.log"]);
        stage.stage_in(&["../one"]).unwrap();
        assert_eq!(stage.staged("one/a.txt").unwrap(), "one/a.txt");
        assert!(!stage.workdir().join("one/run").exists());
        let error = stage.stage_in(&["run/titin_manager.log"]).unwrap_err();
        assert!(matches!(error, StageError::RunDirectory(_)), "{error}");
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abd", false),
            ("?", "", false),
            ("a?c*", "abc", true),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
