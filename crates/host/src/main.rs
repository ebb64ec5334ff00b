//! The process of hosted instances with functions in shared libraries.
//!
//! A process has one runtime, the runtime of `libtitin.so`, and the shared libraries link
//! `libtitin.so` too. The `titin` command has a second runtime in the executable, so the host is a
//! separate program. `titin run` starts the host with a file that lists the functions.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;

#[link(name = "titin")]
unsafe extern "C" {
    fn titin_host_file(path: *const c_char) -> c_int;
    fn titin_error() -> *const c_char;
}

fn main() -> ExitCode {
    let Some(path) = std::env::args_os()
        .nth(1)
        .and_then(|path| CString::new(path.into_vec()).ok())
    else {
        eprintln!("titin-host: give the file that says what to run; `titin run` does");
        return ExitCode::from(2);
    };
    // SAFETY: the path ends with a NUL.
    if unsafe { titin_host_file(path.as_ptr()) } == 0 {
        return ExitCode::SUCCESS;
    }
    // SAFETY: the text lives until the next call of titin on this thread, and there is no further
    // call.
    let text = unsafe { std::ffi::CStr::from_ptr(titin_error()) };
    eprintln!("titin: {}", text.to_string_lossy());
    ExitCode::FAILURE
}
