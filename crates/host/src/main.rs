//! The process of hosted instances whose functions are in shared libraries.
//!
//! It links the same `libtitin.so` as these libraries do, since a process has one runtime: so it is a program of its own
//! and not a part of the `titin` command, which has the runtime in itself. The command starts it with the file that says
//! which functions there are.

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
