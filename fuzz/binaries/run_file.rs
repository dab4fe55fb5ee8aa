#![no_main]

#[path = "../targets/bytes.rs"]
mod bytes;
#[path = "../targets/memory.rs"]
mod memory;
#[path = "../targets/run_file.rs"]
mod run_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run_file::check(data));
