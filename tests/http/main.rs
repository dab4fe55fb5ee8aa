//! The contract, sentence by sentence, over HTTP against the real binary. One module per chapter; what an
//! assertion says is the sentence it found broken. Every test starts its own server on a fresh data directory,
//! so that none depends on another's leftovers.
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
mod buckets;
mod evaluations;
mod general;
mod ingest;
mod listener;
mod operation;
mod query;
mod real_data;
mod security;
mod spec_tables;
mod webhooks;
