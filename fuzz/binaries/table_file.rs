#![no_main]

#[path = "../targets/table_file.rs"]
mod table_file;
#[path = "../targets/memory.rs"]
mod memory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| table_file::check(data));
