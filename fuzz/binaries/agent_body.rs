#![no_main]

#[path = "../targets/agent_body.rs"]
mod agent_body;
#[path = "../targets/memory.rs"]
mod memory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| agent_body::check(data));
