//! The log over a disk that loses power, tears writes, rots, fills up and fails to sync.

#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod check;
mod common;
mod crash;
mod damage;
mod disks;
mod faults;
mod format;
mod life;
mod live;
mod repair;
mod room;
