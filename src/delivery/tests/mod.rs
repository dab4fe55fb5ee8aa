//! Tests of the room that are larger than a file's own.

mod envelope;
mod guard;
mod schedule;
