//! Chapter 6: alert rules, their members and changes.

mod changes;
mod conditions;
mod creation;
mod evaluation_block;
mod keys;
