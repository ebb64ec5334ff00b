//! Gives the shared library its name, so that programs look for it by name and not by the path it was linked from.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtitin.so");
    println!("cargo::rerun-if-changed=build.rs");
}
