//! Tests of this room that use several of its files.

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
