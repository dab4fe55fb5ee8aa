//! The rooms that keep state, over a disk that loses power at any operation, fills up, or fails a sync.

mod crash;
mod faults;
mod world;
