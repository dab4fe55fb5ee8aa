//! Chapter 4: points in, singly and in batches, exactly once where a client asks for it.

mod age;
mod batch;
mod idempotency;
mod metadata;
mod single;
mod visibility;
