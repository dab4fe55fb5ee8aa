//! Chapter 1 and its small print: what holds for every request, whatever it asks for.

pub mod bodies;
mod errors;
mod faults;
mod ids;
mod lists;
mod nulls;
mod numbers;
mod order;
mod slow;
mod timestamps;
