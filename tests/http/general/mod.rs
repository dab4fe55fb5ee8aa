//! Chapter 1: rules for all requests.

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
