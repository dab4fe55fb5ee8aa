//! Tests of the bridge: pure parts by their rules, the whole against a real broker and a small service in this process.

mod batches;
mod broker;
mod configuration;
mod delivery;
mod faults;
mod lines;
mod payloads;
mod reading;
mod service;
mod topics;
mod world;
