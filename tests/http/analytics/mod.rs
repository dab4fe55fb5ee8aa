//! Chapter 8: analytics of buckets and organizations. `tests/loop` tests the ends of periods, expiry and the passing of
//! days with a simulated clock.

mod bucket;
mod overview;
