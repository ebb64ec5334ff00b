//! The process of hosted instances whose functions are in shared libraries.
//!
//! A process has one runtime, that of `libtitin.so`, which those libraries link too. The `titin`
//! command has a runtime of its own in the executable, so this is a separate program. `titin run`
//! starts it with the file that lists the functions.

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
    // SAFETY: the text lives until this thread's next call.
    let text = unsafe { std::ffi::CStr::from_ptr(titin_error()) };
    eprintln!("titin: {}", text.to_string_lossy());
    ExitCode::FAILURE
}
