//! Links libtitin.so, which `tools/wheel.py` has built before and puts beside the extension, under `lib`; and takes the docstrings
//! out of the stub, so that `help` in Python shows what editors show.

use std::fs;
use std::path::{Path, PathBuf};

const STUB: &str = "titin/_core.pyi";

fn main() {
    // cargo keeps build scripts' output in <target>/<profile>/build/<package>/out; libtitin.so is in <target>/<profile>.
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let beside = out
        .ancestors()
        .nth(3)
        .map(Path::to_path_buf)
        .expect("as above");
    let folder = std::env::var("TITIN_LIB_DIR").map_or(beside, PathBuf::from);
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=dylib=titin");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/lib");
    println!("cargo::rerun-if-env-changed=TITIN_LIB_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STUB}");

    let docs = out.join("docs");
    fs::create_dir_all(&docs).expect("cargo gives a folder to write to");
    let stub =
        fs::read_to_string(STUB).expect("cargo builds in the package's folder, which has the stub");
    for (name, text) in docstrings(&stub) {
        fs::write(docs.join(name), text).expect("as above");
    }
}

/// The docstrings of a stub, each with whose it is: `Instance`, `Instance.send`.
fn docstrings(stub: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    // The class or function, and what of it, that the line belongs to.
    let mut path: Vec<&str> = Vec::new();
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let depth = (line.len() - code.len()) / 4;
        if let Some(definition) = code
            .strip_prefix("class ")
            .or_else(|| code.strip_prefix("def "))
        {
            let end = definition.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
            path.truncate(depth);
            path.push(&definition[..end.unwrap_or(definition.len())]);
        } else if let Some(first) = code.strip_prefix("\"\"\"") {
            path.truncate(depth);
            let mut text = first.to_owned();
            while !text.ends_with("\"\"\"") {
                let next = lines.next().expect("a docstring ends");
                text.push('\n');
                text.push_str(next.get(4 * depth..).unwrap_or_default());
            }
            found.push((
                path.join("."),
                text.trim_end_matches('"').trim_end().to_owned(),
            ));
        }
    }
    found
}
