//! The contract tested sentence by sentence, over HTTP against the real binary. There is one module per chapter; the
//! message of an assertion is the violated sentence. Every test starts its own server on a new data directory, so that
//! tests are independent.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod calendar;
mod model;
mod refusal;
mod routes;
mod scene;
#[path = "../support/mod.rs"]
mod support;

mod access;
mod alerts;
mod analytics;
mod annotations;
mod boards;
mod buckets;
mod deletion;
mod dimensions;
mod evaluations;
mod export;
mod general;
mod imports;
mod ingest;
mod listener;
mod operation;
mod prometheus;
mod query;
mod real_data;
mod security;
mod silences;
mod spec_tables;
mod webhooks;
mod writers;
