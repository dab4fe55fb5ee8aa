//! Tests of the room that are larger than a file's own.

mod actor;
mod envelope;
mod guard;
mod offered;
mod pace;
mod receiver;
mod recent;
mod schedule;
mod script;
mod transport;
mod world;
