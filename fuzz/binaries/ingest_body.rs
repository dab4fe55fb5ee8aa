#![no_main]

#[path = "../targets/ingest_body.rs"]
mod ingest_body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest_body::check(data));
