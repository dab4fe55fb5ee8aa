#![no_main]

#[path = "../targets/rows.rs"]
mod rows;

libfuzzer_sys::fuzz_target!(|data: &[u8]| rows::check(data));
