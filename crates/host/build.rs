//! Tells the linker where `libtitin.so` is.
//!
//! `tools/wheel.py` builds `libtitin.so` before this program, and then puts both into one folder. So
//! the program looks for `libtitin.so` in its own folder when it starts.

use std::path::{Path, PathBuf};

fn main() {
    let folder = std::env::var("TITIN_LIB_DIR").map_or_else(|_| profile_folder(), PathBuf::from);
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,$ORIGIN");
    println!("cargo::rerun-if-env-changed=TITIN_LIB_DIR");
    println!("cargo::rerun-if-changed=build.rs");
}

/// The folder in which cargo puts the libraries that it builds, `<target>/<profile>`. `OUT_DIR` is
/// `<target>/<profile>/build/<package>/out`.
fn profile_folder() -> PathBuf {
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let profile = out.ancestors().nth(3).map(Path::to_path_buf);
    profile.expect("OUT_DIR is three folders below the profile's folder")
}
