#![no_main]

#[path = "../targets/bytes.rs"]
mod bytes;
#[path = "../targets/log_file.rs"]
mod log_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| log_file::check(data));
