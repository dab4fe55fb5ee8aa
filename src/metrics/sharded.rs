//! Counters that many threads update and that are rarely read.

use std::sync::atomic::{AtomicUsize, Ordering};

/// If there are more threads, some share a shard, which is correct but slower.
const SHARDS: usize = 8;

thread_local! {
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

/// One `T` per group of threads.
#[derive(Debug)]
pub struct Sharded<T>([Line<T>; SHARDS]);

/// Two cache lines, because processors prefetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

impl<T> Sharded<T> {
    /// Creates each shard by `make`.
    pub fn new(make: impl Fn() -> T) -> Self {
        Self(std::array::from_fn(|_| Line(make())))
    }

    /// The shard of the calling thread.
    pub fn mine(&self) -> &T {
        &self.0[SHARD.with(|shard| *shard)].0
    }

    /// All shards, to be added up.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn nothing_is_lost_between_more_threads_than_shards() {
        let counted = Sharded::<AtomicU64>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 * SHARDS {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        counted.mine().fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let all: u64 = counted.all().map(|one| one.load(Ordering::Relaxed)).sum();
        assert_eq!(all, 3 * SHARDS as u64 * 1_000);
    }
}
