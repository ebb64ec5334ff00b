#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(titin_testkit::fuzz::path(bytes)));
