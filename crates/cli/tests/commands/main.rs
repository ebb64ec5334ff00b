//! The `titin` command as a user sees it: arguments in, text and an exit code out.

mod bench;
mod check;
mod logs;
mod plot;
mod profile;
mod relay;
mod resources;
mod schedule;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The output and the exit code of a command.
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    /// Asserts that the command has printed a text to standard output.
    #[track_caller]
    fn assert_out(&self, text: &str) {
        assert!(self.out.contains(text), "{}", self.out);
    }

    /// Asserts that the command has printed a text to standard error.
    #[track_caller]
    fn assert_err(&self, text: &str) {
        assert!(self.err.contains(text), "{}", self.err);
    }
}

/// Runs `titin` in a directory.
fn titin(directory: &Path, arguments: &[&str]) -> Done {
    let done = Command::new(env!("CARGO_BIN_EXE_titin"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("YMMSL_PATH")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done {
        code: done.status.code(),
        out: text(done.stdout),
        err: text(done.stderr),
    }
}

/// A directory with a file `model.ymmsl`.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(folder.path().join("model.ymmsl"), text).expect("a file");
    folder
}
