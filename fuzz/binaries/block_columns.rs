#![no_main]

#[path = "../targets/block_columns.rs"]
mod block_columns;
#[path = "../targets/rows_of.rs"]
mod rows_of;

libfuzzer_sys::fuzz_target!(|data: &[u8]| block_columns::check(data));
