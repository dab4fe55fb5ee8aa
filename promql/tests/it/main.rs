//! The crate from outside: answers compared with a real Prometheus, and the bounds of an evaluation.

mod bounds;
mod differential;
mod loaded;
mod questions;
mod remote_write;
mod samples;
mod server;
mod versions;
