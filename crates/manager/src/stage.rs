//! Files that the description names under `titin: stage`: copied into a work directory before its program starts,
//! and out of it, as results, when the run is over. Only files and folders are copied: to read a pipe or a device could
//! take for ever, and a link to a folder could lead anywhere. What is copied may be huge, so it can be ended.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Bytes that are copied at a stretch.
const STRETCH: u64 = 4 << 20;

/// Asked between files, and within large ones: whether to go on. Once it has said no it goes on saying so.
pub type MayContinue<'a> = &'a dyn Fn() -> bool;

/// Why files could not be put into a work directory.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// There is no such file.
    #[error(
        "there is no {name} to stage in; it was looked for in {}. See `titin: stage` in the description",
        .folders.join(" and ")
    )]
    Missing {
        /// As it was asked for.
        name: String,
        /// Where it was looked for.
        folders: Vec<String>,
    },
    /// Two files would become one.
    #[error(
        "{} and {} are both to be staged in under the name {}: rename one of them", .one.display(), .other.display(),
        .other.file_name().unwrap_or_default().display()
    )]
    SameName {
        /// What came first.
        one: PathBuf,
        /// What came after it.
        other: PathBuf,
    },
    /// It is part of the run directory, so it would be copied into itself.
    #[error("{} cannot be staged in: it is in the run directory, into which it would be copied", .0.display())]
    RunDirectory(PathBuf),
    /// It could not be copied.
    #[error("cannot copy {} to {}: {source}", .from.display(), .to.display())]
    Copy {
        /// The file.
        from: PathBuf,
        /// Where it was to go.
        to: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It was ended.
    #[error("copying was ended")]
    Interrupted,
}

/// What is wrong with a result.
#[derive(Debug, PartialEq, Eq)]
pub enum StagingProblem {
    /// The program has not written it. In words.
    Missing(String),
    /// It is there, but could not be kept. In words.
    CopyFailed(String),
    /// Copying was ended before all of it was copied. Its name, as it was asked for.
    Interrupted(String),
}

/// Copies files and folders into a work directory, but nothing of the run directory. Relative ones begin beside the
/// description's files; where several folders have one of that name, the first counts.
///
/// # Errors
/// [`StageError`] for the first that could not be copied.
pub fn stage_in(
    names: &[String],
    folders: &[PathBuf],
    workdir: &Path,
    run_directory: &Path,
    go_on: MayContinue<'_>,
) -> Result<(), StageError> {
    let mut taken: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for name in names {
        for path in locate(name, folders)? {
            let file = path.file_name().unwrap_or_default().to_owned();
            match taken.get(&file) {
                Some(one) if *one == path => continue,
                Some(one) => {
                    return Err(StageError::SameName {
                        one: one.clone(),
                        other: path,
                    });
                }
                None => {}
            }
            if path
                .canonicalize()
                .is_ok_and(|path| path.starts_with(run_directory))
            {
                return Err(StageError::RunDirectory(path));
            }
            let target = workdir.join(&file);
            // What is named is meant, also if it is a link.
            let copied = path.canonicalize().and_then(|real| {
                Copier {
                    root: &real,
                    except: Some(run_directory),
                    go_on,
                }
                .copy(&real, &target)
            });
            copied.map_err(|source| match go_on() {
                true => StageError::Copy {
                    from: path.clone(),
                    to: target,
                    source,
                },
                false => StageError::Interrupted,
            })?;
            taken.insert(file, path);
        }
    }
    Ok(())
}

/// The files that a name stands for. Of several with one name, that in the first folder counts.
pub(crate) fn locate(name: &str, folders: &[PathBuf]) -> Result<Vec<PathBuf>, StageError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in folders.iter().flat_map(|folder| matches(folder, name)) {
        if !found
            .iter()
            .any(|before| before.file_name() == path.file_name())
        {
            found.push(path);
        }
    }
    if found.is_empty() {
        let folders = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        return Err(StageError::Missing {
            name: name.to_owned(),
            folders,
        });
    }
    Ok(found)
}

/// Copies results out of a work directory. Returns what is wrong with them.
pub fn stage_out(
    names: &[String],
    workdir: &Path,
    results: &Path,
    go_on: MayContinue<'_>,
) -> Vec<StagingProblem> {
    let mut problems = Vec::new();
    let root = workdir
        .canonicalize()
        .unwrap_or_else(|_| workdir.to_owned());
    let copier = Copier {
        root: &root,
        except: None,
        go_on,
    };
    for name in names {
        let found = matches(workdir, name);
        if found.is_empty() {
            let text = format!(
                "there is no {name} to keep as a result in {}",
                workdir.display()
            );
            problems.push(StagingProblem::Missing(text));
        }
        for path in found {
            let below = path.strip_prefix(workdir).ok();
            let target =
                results.join(below.unwrap_or(Path::new(path.file_name().unwrap_or_default())));
            match copier.copy(&path, &target) {
                Ok(()) => {}
                Err(_) if !go_on() => {
                    problems.push(StagingProblem::Interrupted(name.clone()));
                    break;
                }
                Err(error) => {
                    let text = format!(
                        "cannot copy {} to {}: {error}",
                        path.display(),
                        target.display()
                    );
                    problems.push(StagingProblem::CopyFailed(text));
                }
            }
        }
    }
    problems
}

/// Files and folders of that name; in its last part, `*` stands for any letters and `?` for one.
fn matches(folder: &Path, name: &str) -> Vec<PathBuf> {
    let path = folder.join(name);
    let (Some(parent), Some(pattern)) = (path.parent(), path.file_name().and_then(OsStr::to_str))
    else {
        return path.exists().then_some(path).into_iter().collect();
    };
    if path.exists() || !pattern.contains(['*', '?']) {
        return path.exists().then(|| path.clone()).into_iter().collect();
    }
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| fits(pattern.as_bytes(), name.as_bytes()))
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
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
    /// A link to a folder is only followed within this one.
    root: &'a Path,
    /// A folder that is left out.
    except: Option<&'a Path>,
    go_on: MayContinue<'a>,
}

impl Copier<'_> {
    /// Copies a file, or a folder with all in it. What cannot be copied does not keep the rest from it; the first of
    /// those is told.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let named = |text: String| io::Error::other(format!("{} {text}", from.display()));
        if !(self.go_on)() {
            return Err(named("was left out".to_owned()));
        }
        let kind = fs::metadata(from)
            .map_err(|error| named(format!("cannot be read: {error}")))?
            .file_type();
        if kind.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(Path::new("")))?;
            return self
                .copy_file(from, to)
                .map_err(|error| named(format!("cannot be copied: {error}")));
        }
        if !kind.is_dir() {
            let text = "is neither a file nor a folder, but a pipe, a socket or a device; only files and folders are copied";
            return Err(named(text.to_owned()));
        }
        let real = from.canonicalize()?;
        if self.except.is_some_and(|except| real == except) {
            return Ok(());
        }
        if from.is_symlink() {
            let around = from
                .parent()
                .and_then(|parent| parent.canonicalize().ok())
                .unwrap_or_default();
            if !real.starts_with(self.root) || around.starts_with(&real) {
                let text = format!(
                    "is a link to the folder {}, which is not part of what is copied; links to such folders are not followed",
                    real.display()
                );
                return Err(named(text));
            }
        }
        fs::create_dir_all(to)?;
        let mut first = Ok(());
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            first = first.and(self.copy(&entry.path(), &to.join(entry.file_name())));
        }
        first
    }

    /// Copies a file with its permissions. Half a file could be taken for a whole one, so none is left if it is ended.
    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = File::open(from)?;
        let mut target = File::create(to)?;
        while io::copy(&mut (&source).take(STRETCH), &mut target)? > 0 {
            if !(self.go_on)() {
                fs::remove_file(to)?;
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        target.set_permissions(source.metadata()?.permissions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two folders of a description and a run directory, under one that is removed in the end.
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
    fn copying_can_be_ended_within_a_file() {
        let stage = Stage::new(&["one/small", "one/later"]);
        File::create(stage.path("one/huge"))
            .unwrap()
            .set_len(4 * STRETCH)
            .unwrap();
        let names = ["small", "huge", "later"].map(str::to_owned);
        let asked = std::cell::Cell::new(0);
        // Once for each file, and within the huge one after its second stretch.
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
        // What the user names is followed.
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
