#![no_main]

#[path = "../targets/bytes.rs"]
mod bytes;
#[path = "../targets/memory.rs"]
mod memory;
#[path = "../targets/rows_of.rs"]
mod rows_of;
#[path = "../targets/segment.rs"]
mod segment;

libfuzzer_sys::fuzz_target!(|data: &[u8]| segment::check(data));
