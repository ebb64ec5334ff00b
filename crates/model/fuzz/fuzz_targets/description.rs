//! Any text is read, checked, and if it is accepted flattened, wired, written and read again, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| titin_model_fuzz::description(text));
