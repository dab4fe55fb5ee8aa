//! A cluster under faults: nodes, database, object store and the links between them fail under load, and what clients were
//! answered is compared with what is there.
//!
//! `CLUSTER_SEED` repeats the choices of a run, whose seed is printed; `CLUSTER_ROUNDS` sets the number of rounds of each
//! fault of a node and of SIGTERM (1). `make cluster-faults` runs 100 of each; with `make cluster`, a person chooses faults.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod audit;
mod catches;
mod checker;
mod checker_tests;
#[path = "../support/client.rs"]
mod client;
#[path = "../support/postgres.rs"]
mod database;
mod durability;
mod figures;
mod forwarding;
#[path = "../support/given.rs"]
mod given;
mod handover;
mod link;
mod live;
mod load;
mod moving;
mod node_faults;
mod object_faults;
#[path = "../../objects/tests/conformance/s3_server.rs"]
mod objects_server;
mod owners;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/receiver.rs"]
mod receiver;
mod record;
mod round;
mod tenant;
#[path = "../support/time.rs"]
mod time;
mod tls;
mod turn;
mod whole_cluster;
mod world;

use database::waiting;
