#![no_main]

#[path = "../targets/block_columns.rs"]
mod block_columns;

libfuzzer_sys::fuzz_target!(|data: &[u8]| block_columns::check(data));
