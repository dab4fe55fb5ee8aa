//! tidewatch: points in over REST, durable when acknowledged, queried raw, grouped and downsampled.
//!
//! ARCHITECTURE.md is the map, with a picture. The rooms, from the outside in:
//! - [`startup`], [`config`]: from a configuration to a serving process, and back
//! - [`http`]: endpoints, bodies, answers; translates between HTTP and [`service`]
//! - [`service`]: one function per endpoint, free of HTTP
//! - [`ingest`]: bodies to columns; [`query_pool`]: the threads that scan and aggregate; [`pools`]: other threads that
//!   shards share
//! - [`alerts`]: conditions, due rules, verdicts; [`delivery`]: webhooks
//! - [`catalog`]: organizations, buckets, rules and webhooks, as a pure state machine
//! - [`journal`]: the log of each shard; [`bucket`]: the actors that own the points
//! - [`cluster`]: which node should own which shard
//! - [`ledger`]: rule histories, finished deliveries, idempotency answers, catalog objects
//! - [`checkpoint`]: recovery and checkpoints; [`check`]: verify and repair; [`backup`]: copies of a running server
//! - [`remote`]: checkpoints in an object store; [`extents`]: a local cache of their blocks
//! - [`checked_file`]: small files replaced as a whole; [`sealed_file`]: large ones written once
//! - [`metrics`]: counters without locks, and the Prometheus text format
//! - [`error`], [`limits`], [`ids`], [`clock`], [`timestamp`], [`random`], [`priority`], [`open_files`]: shared by all rooms

pub mod alerts;
pub mod backup;
pub mod bucket;
pub mod catalog;
pub mod check;
pub mod checked_file;
pub mod checkpoint;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod delivery;
pub mod error;
pub mod extents;
pub mod hex;
pub mod http;
pub mod ids;
pub mod ingest;
pub mod journal;
pub mod ledger;
pub mod limits;
pub mod metrics;
pub mod open_files;
pub mod pools;
pub mod priority;
pub mod progress;
pub mod query_pool;
pub mod random;
pub mod remote;
pub mod sealed_file;
pub mod series;
pub mod service;
pub mod startup;
pub mod timestamp;
