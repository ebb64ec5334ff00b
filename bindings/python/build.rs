//! Tells the linker where `libtitin.so` is, and takes the docstrings out of the stub, so that `help`
//! in Python shows what editors show.
//!
//! `tools/wheel.py` builds `libtitin.so` before the extension, and then puts `libtitin.so` into the
//! folder `lib` beside the extension.

use std::fs;
use std::path::{Path, PathBuf};

const STUB: &str = "titin/_core.pyi";

fn main() {
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    link_libtitin(&out);
    write_docstrings(&out.join("docs"));
    println!("cargo::rerun-if-changed=build.rs");
}

fn link_libtitin(out: &Path) {
    let folder = std::env::var("TITIN_LIB_DIR").map_or_else(|_| profile_folder(out), PathBuf::from);
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=dylib=titin");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/lib");
    println!("cargo::rerun-if-env-changed=TITIN_LIB_DIR");
}

/// The folder in which cargo puts the libraries that it builds, `<target>/<profile>`. `out` is
/// `<target>/<profile>/build/<package>/out`.
fn profile_folder(out: &Path) -> PathBuf {
    let profile = out.ancestors().nth(3).map(Path::to_path_buf);
    profile.expect("OUT_DIR is three folders below the profile's folder")
}

/// Writes each docstring of the stub into a file of its own.
fn write_docstrings(docs: &Path) {
    fs::create_dir_all(docs).expect("cargo gives a folder to write to");
    let stub =
        fs::read_to_string(STUB).expect("cargo builds in the package's folder, which has the stub");
    for (name, text) in docstrings(&stub) {
        fs::write(docs.join(name), text).expect("cargo gives a folder to write to");
    }
    println!("cargo::rerun-if-changed={STUB}");
}

/// The docstrings of a stub, each with the name of its class or function: `Instance`,
/// `Instance.send`.
fn docstrings(stub: &str) -> Vec<(String, String)> {
    let mut docstrings = Vec::new();
    // The definitions around the line, from the outermost to the innermost.
    let mut path: Vec<&str> = Vec::new();
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let depth = (line.len() - code.len()) / 4;
        if let Some(name) = defined_name(code) {
            path.truncate(depth);
            path.push(name);
        } else if let Some(first) = code.strip_prefix("\"\"\"") {
            path.truncate(depth);
            docstrings.push((path.join("."), docstring(first, &mut lines, depth)));
        }
    }
    docstrings
}

/// The name of the class or function that a line defines.
fn defined_name(code: &str) -> Option<&str> {
    let definition = code
        .strip_prefix("class ")
        .or_else(|| code.strip_prefix("def "))?;
    let end = definition.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
    Some(&definition[..end.unwrap_or(definition.len())])
}

/// A docstring without quotes and indentation. `first` is the line with the opening quotes, after
/// the quotes, and `lines` are the lines after the first.
fn docstring<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>, depth: usize) -> String {
    let mut text = first.to_owned();
    while !text.ends_with("\"\"\"") {
        let next = lines.next().expect("a docstring ends");
        text.push('\n');
        text.push_str(next.get(4 * depth..).unwrap_or_default());
    }
    text.trim_end_matches('"').trim_end().to_owned()
}
