//! Gives the shared library its name, so that programs look for it by name and not by the path it was linked from.
//!
//! In a wheel the name has no number, since the library and the headers always belong together. A distribution, where
//! other packages depend on the library, sets `TITIN_SONAME` to a name with the number of the interface.

fn main() {
    let name = std::env::var("TITIN_SONAME").unwrap_or_else(|_| "libtitin.so".to_owned());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    println!("cargo::rerun-if-env-changed=TITIN_SONAME");
    println!("cargo::rerun-if-changed=build.rs");
}
