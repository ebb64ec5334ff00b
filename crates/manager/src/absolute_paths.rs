//! The description for the run directory: with absolute paths, so that the description has the same
//! meaning in any folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use titin_model::{Description, Program, ProgramKind, UserFunction};

use crate::compile::beside;
use crate::stage::locate;

/// The description with absolute paths. `folders` are the folders of the files.
///
/// Names to look for in `PATH` stay unchanged. Paths that begin with an environment variable or a
/// home directory stay, too: only the host of the program knows their values.
pub fn with_absolute_paths(mut description: Description, folders: &[PathBuf]) -> Description {
    for program in description.programs.values_mut() {
        make_program_absolute(program);
    }
    for filter in description.extras.filters.values_mut() {
        make_function_absolute(&mut filter.call, folders);
    }
    for stage in description.extras.stage.values_mut() {
        for name in &mut stage.input {
            let has_it = |folder: &&PathBuf| locate(name, std::slice::from_ref(*folder)).is_ok();
            if let Some(folder) = folders.iter().find(has_it) {
                *name = folder.join(&*name).to_string_lossy().into_owned();
            }
        }
    }
    description
}

/// Makes the path of a library absolute, if the library is in one of the folders.
fn make_function_absolute(function: &mut UserFunction, folders: &[PathBuf]) {
    if let UserFunction::Library { path, .. } = function
        && let Some(found) = beside(path, folders)
    {
        *path = found.to_string_lossy().into_owned();
    }
}

fn make_program_absolute(program: &mut Arc<Program>) {
    let Some(folder) = program
        .directory
        .as_deref()
        .and_then(|folder| std::path::absolute(folder).ok())
    else {
        return;
    };
    if let ProgramKind::Hosted(function) = &mut Arc::make_mut(program).kind {
        make_function_absolute(&mut function.call, std::slice::from_ref(&folder));
    }
    let executable = match &program.kind {
        ProgramKind::Executable(path) if path.to_string_lossy().contains('/') => {
            absolute(path, &folder)
        }
        _ => None,
    };
    let virtual_env = program
        .virtual_env
        .as_deref()
        .and_then(|path| absolute(path, &folder));
    if executable.is_none() && virtual_env.is_none() {
        return;
    }
    let program = Arc::make_mut(program);
    if let Some(path) = executable {
        program.kind = ProgramKind::Executable(path);
    }
    program.virtual_env = virtual_env.or(program.virtual_env.take());
}

/// The absolute path of a path relative to `folder`; `None` if the path is absolute, or begins with
/// a variable or a home directory.
fn absolute(path: &Path, folder: &Path) -> Option<PathBuf> {
    let text = path.to_string_lossy();
    if path.is_absolute() || text.starts_with('$') || text.starts_with("~/") {
        return None;
    }
    // A reader of the description takes a dollar sign for the beginning of a variable.
    let folder = folder.to_string_lossy().replace('$', "$$");
    Some(Path::new(&folder).join(path).components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_model::{LoadOptions, load};

    #[test]
    fn what_is_kept_means_the_same_from_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {description: x, implementation: near}\n\
                    programs:\n  near: {executable: ./bin/../near, virtual_env: venv}\n  \
                    found: {executable: python3}\n  told: {executable: $HOME/x, virtual_env: ~/venv}\n  \
                    far: {executable: /bin/sh}\n\
                    titin:\n  stage: {a: {in: ['*.txt', none.txt]}}\n  \
                    filters: {mine: {library: ./f.so, symbol: f}, other: {library: libm.so, symbol: g}}\n";
        let file = folder.path().join("model.ymmsl");
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.path().join("mesh.txt"), "").unwrap();
        std::fs::write(folder.path().join("f.so"), "").unwrap();
        let description =
            load(&[file], &LoadOptions::default()).unwrap_or_else(|report| panic!("{report}"));
        let folders = crate::compile::folders(&description);
        let kept = with_absolute_paths(description, &folders);
        let at = |path: &str| folders[0].join(path).to_string_lossy().into_owned();
        let program = |name: &str| {
            let program = &kept.programs[name];
            let ProgramKind::Executable(path) = &program.kind else {
                panic!("{program:?}")
            };
            let text = |path: &Path| path.to_string_lossy().into_owned();
            (text(path), program.virtual_env.as_deref().map(text))
        };
        assert_eq!(program("near"), (at("bin/../near"), Some(at("venv"))));
        assert_eq!(program("found"), ("python3".into(), None));
        assert_eq!(program("told"), ("$HOME/x".into(), Some("~/venv".into())));
        assert_eq!(program("far"), ("/bin/sh".into(), None));
        assert_eq!(
            kept.extras.stage["a"].input,
            [at("*.txt"), "none.txt".into()]
        );
        let library = |name: &str| match &kept.extras.filters[name].call {
            UserFunction::Library { path, .. } => path.clone(),
            call => panic!("{call:?}"),
        };
        assert_eq!(
            (library("mine"), library("other")),
            (at("./f.so"), "libm.so".into())
        );
    }

    #[test]
    fn a_dollar_sign_in_a_folder_is_no_variable() {
        let path = absolute(Path::new("./a"), Path::new("/data/$x")).unwrap();
        assert_eq!(path, Path::new("/data/$$x/a"));
    }
}
