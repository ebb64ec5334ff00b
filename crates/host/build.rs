//! Links libtitin.so, which `tools/wheel.py` has built before and puts beside this program.

use std::path::{Path, PathBuf};

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
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,$ORIGIN");
    println!("cargo::rerun-if-env-changed=TITIN_LIB_DIR");
    println!("cargo::rerun-if-changed=build.rs");
}
