#![no_main]

#[path = "../targets/webhook_url.rs"]
mod webhook_url;

libfuzzer_sys::fuzz_target!(|data: &[u8]| webhook_url::check(data));
