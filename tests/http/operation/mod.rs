//! Chapter 9: configuration, start, stop, health; the evaluator as a process.

mod config;
mod cors;
mod docs;
mod evaluator;
mod health;
mod lifecycle;
pub mod metrics;
mod secrets;
mod spoken;
mod tls;
