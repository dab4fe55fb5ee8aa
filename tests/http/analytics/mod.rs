//! Chapter 8: analytics of buckets and organizations. What a period's ends, expiry and the passing of days do to them
//! is tested with a clock that can be turned, in `tests/loop`.

mod bucket;
mod overview;
