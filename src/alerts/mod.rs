//! Alert rules: what a condition's text says.
//!
//! Pure: it reads no clock, does no I/O and keeps no state. Called by the service when a rule is made or changed.

pub mod condition;
