//! Files that the description names under `titin: stage`: copied into a work directory before its program starts,
//! and out of it, as results, when the run is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copies files and folders into a work directory. Relative ones begin beside the description's files.
///
/// # Errors
/// What could not be copied, and why.
pub fn stage_in(names: &[String], folders: &[PathBuf], workdir: &Path) -> Result<(), String> {
    for name in names {
        let found = folders.iter().flat_map(|folder| matches(folder, name)).collect::<Vec<_>>();
        if found.is_empty() {
            let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            return Err(format!(
                "there is no {name} to stage in; it was looked for in {}. See `titin: stage` in the description",
                folders.join(" and ")
            ));
        }
        for path in found {
            let target = workdir.join(path.file_name().unwrap_or_default());
            copy(&path, &target).map_err(|error| {
                format!("cannot copy {} to {}: {error}", path.display(), target.display())
            })?;
        }
    }
    Ok(())
}

/// Copies results out of a work directory. Returns what was missing or could not be copied, in words.
pub fn stage_out(names: &[String], workdir: &Path, results: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for name in names {
        let found = matches(workdir, name);
        if found.is_empty() {
            problems.push(format!("there is no {name} to keep as a result in {}", workdir.display()));
        }
        for path in found {
            let below = path.strip_prefix(workdir).ok();
            let target = results.join(below.unwrap_or(Path::new(path.file_name().unwrap_or_default())));
            if let Err(error) = copy(&path, &target) {
                problems.push(format!("cannot copy {} to {}: {error}", path.display(), target.display()));
            }
        }
    }
    problems
}

/// Files and folders of that name; in its last part, `*` stands for any letters and `?` for one.
fn matches(folder: &Path, name: &str) -> Vec<PathBuf> {
    let path = folder.join(name);
    let (Some(parent), Some(pattern)) = (path.parent(), path.file_name().and_then(|last| last.to_str()))
    else {
        return path.exists().then_some(path).into_iter().collect();
    };
    if path.exists() || !pattern.contains(['*', '?']) {
        return path.exists().then(|| path.clone()).into_iter().collect();
    }
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| fits(pattern.as_bytes(), name.as_bytes()))
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
        (Some(b'*'), _) => fits(&pattern[1..], name) || !name.is_empty() && fits(pattern, &name[1..]),
        (Some(b'?'), Some(_)) => fits(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) => a == b && fits(&pattern[1..], &name[1..]),
        _ => false,
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(Path::new("")))?;
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_in_and_results_come_out() {
        let folder = tempfile::tempdir().unwrap();
        let (model, workdir) = (folder.path().join("model"), folder.path().join("workdir"));
        fs::create_dir_all(model.join("mesh/fine")).unwrap();
        fs::create_dir_all(&workdir).unwrap();
        fs::write(model.join("a.txt"), "a").unwrap();
        fs::write(model.join("b.txt"), "b").unwrap();
        fs::write(model.join("mesh/fine/points"), "p").unwrap();
        stage_in(&["*.txt".into(), "mesh".into()], std::slice::from_ref(&model), &workdir).unwrap();
        assert_eq!(fs::read_to_string(workdir.join("b.txt")).unwrap(), "b");
        assert_eq!(fs::read_to_string(workdir.join("mesh/fine/points")).unwrap(), "p");
        let error = stage_in(&["c.txt".into()], &[model], &workdir).unwrap_err();
        assert!(error.contains("no c.txt to stage in"), "{error}");

        let results = folder.path().join("results");
        let problems = stage_out(&["?.txt".into(), "mesh/fine".into(), "out.nc".into()], &workdir, &results);
        assert_eq!(fs::read_to_string(results.join("a.txt")).unwrap(), "a");
        assert_eq!(fs::read_to_string(results.join("mesh/fine/points")).unwrap(), "p");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("no out.nc"), "{problems:?}");
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
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
