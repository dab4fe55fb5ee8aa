#![no_main]

#[path = "../targets/catalog_objects.rs"]
mod catalog_objects;

libfuzzer_sys::fuzz_target!(|data: &[u8]| catalog_objects::check(data));
