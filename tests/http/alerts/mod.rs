//! Chapter 6: alert rules, what they are made of and how they change.

mod changes;
mod conditions;
mod creation;
mod evaluation_block;
mod keys;
