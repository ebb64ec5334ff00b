//! Any text is read, checked, and if it is accepted flattened, wired, written and read again, without a panic.
//!
//! `cargo +nightly fuzz run description target/found corpus/description ../../../tests/model/corpus/good -- -max_total_time=60`: what
//! is found new goes to the first folder, which git does not see.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| titin_model_fuzz::description(text));
