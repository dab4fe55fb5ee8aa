//! tidewatch: points in over REST, durable when acknowledged, queried raw, grouped and downsampled.
//!
//! The rooms, from the outside in:
//! - [`startup`]: starts and stops the server
//! - [`config`], [`limits`]: settings of the operator, and limits fixed by the specification
//! - [`http`]: routes, credentials, request and response bodies; translates and decides nothing
//! - [`service`]: one function per endpoint, independent of HTTP
//! - [`ingest`]: request bodies → columns; [`query_pool`]: the threads that scan and aggregate, with fair scheduling
//! - [`alerts`]: conditions, due rules, verdicts
//! - [`catalog`]: all objects, as a pure state machine
//! - [`journal`]: the log; [`bucket`]: the actors that own the points
//! - [`ledger`]: histories of rules, finished deliveries, answers to idempotency keys
//! - [`checkpoint`]: recovery, checkpoints; [`checked_file`]: small files that are replaced as a whole;
//!   [`sealed_file`]: large files that are written once
//! - [`evaluator`]: evaluates due rules, as a client of any such service
//! - [`demo`]: the service with sample data
//! - [`check`]: reports on and repairs a data directory; [`backup`]: copies it while the server runs
//! - [`metrics`]: lock-free counters, and the Prometheus text format
//! - [`error`], [`ids`], [`clock`], [`timestamp`], [`random`], [`open_files`]: basics that every room uses

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
