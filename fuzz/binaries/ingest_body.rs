#![no_main]

#[path = "../targets/ingest_body.rs"]
mod ingest_body;
#[path = "../targets/rows_of.rs"]
mod rows_of;

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest_body::check(data));
