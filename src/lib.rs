//! tidewatch: points in over REST, durable when acknowledged, queried raw, grouped and downsampled.
//!
//! The rooms, from the outside in:
//! - [`startup`]: from a configuration to a serving process, and back
//! - [`config`], [`limits`]: what an operator sets, and what the specification fixes
//! - [`http`]: route table, credentials, bodies in, answers out; translates and decides nothing
//! - [`service`]: one function per endpoint, free of HTTP
//! - [`ingest`]: request bodies → columns; [`query_pool`]: the threads that scan and aggregate, and whose turn it is
//! - [`alerts`]: conditions, rules that are due, verdicts
//! - [`catalog`]: what exists, as a pure state machine
//! - [`journal`]: the one log; [`bucket`]: the actors that own the points
//! - [`ledger`]: histories of rules, finished deliveries, answers to idempotency keys
//! - [`checkpoint`]: recovery, checkpoints; [`checked_file`]: small files replaced as a whole; [`sealed_file`]: large
//!   ones written once
//! - [`evaluator`]: judges rules that are due, as a client of any such service
//! - [`demo`]: the service with something in it, to be looked at
//! - [`check`]: what a data directory holds, for people; [`backup`]: a copy of it, while the server runs
//! - [`metrics`]: counting without locks, and the text that Prometheus reads
//! - [`error`], [`ids`], [`clock`], [`timestamp`], [`random`], [`open_files`]: words that every room shares

pub mod alerts;
pub mod backup;
pub mod bucket;
pub mod catalog;
pub mod check;
pub mod checked_file;
pub mod checkpoint;
pub mod clock;
pub mod config;
pub mod delivery;
pub mod demo;
pub mod error;
pub mod evaluator;
pub mod http;
pub mod ids;
pub mod ingest;
pub mod journal;
pub mod ledger;
pub mod limits;
pub mod metrics;
pub mod open_files;
pub mod priority;
pub mod query_pool;
pub mod random;
pub mod sealed_file;
pub mod service;
pub mod startup;
pub mod timestamp;
