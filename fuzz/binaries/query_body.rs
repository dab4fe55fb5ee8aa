#![no_main]

#[path = "../targets/query_body.rs"]
mod query_body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| query_body::check(data));
