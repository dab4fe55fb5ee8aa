//! Chapter 4: ingestion of points, singly and in batches, exactly once with an idempotency key.

mod age;
mod batch;
mod idempotency;
mod metadata;
mod single;
mod visibility;
