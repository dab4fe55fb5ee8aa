//! Chapter 9: configuration, start, stop, health; the evaluator as a process.

mod changes;
mod config;
mod cors;
mod damage;
mod dashboard;
mod demo;
mod directory;
mod docs;
mod evaluator;
mod health;
mod lifecycle;
pub mod logged_server;
pub mod metrics;
mod operator;
mod recovery;
mod refusals;
mod remote;
mod set_apart;
mod tls;
