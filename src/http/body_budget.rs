//! One bound for the request bodies that the server holds at one time: each may be large, and there may be many. What
//! counts is what has arrived, and a little of what is announced. And one for those that are decompressed at one time.
//! Called by `body`; `metrics` shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::web::Data;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ServiceError;

/// What a body may have for nothing: small ones, which are nearly all, never touch the shared counter.
const FREE_BYTES: usize = 8 * 1_024;
/// What is taken at a time.
const STEP_BYTES: usize = 64 * 1_024;
/// Bodies are a passing thing: however large the server, they are given no more.
const BUDGET_BYTES_MAX: u64 = 256 << 20;
/// The part of the server's memory that they may take.
const MEMORY_PART: u64 = 4;
/// Bodies come and go within seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Bytes of bodies held, against their bound.
#[derive(Debug)]
pub struct BodyBudget {
    used: AtomicUsize,
    bytes_max: usize,
    decoders: Arc<Semaphore>,
}

impl BodyBudget {
    /// Of a server that may use this much memory.
    pub fn of_memory(memory_bytes_max: u64) -> Self {
        Self::new((memory_bytes_max / MEMORY_PART).min(BUDGET_BYTES_MAX) as usize)
    }

    /// Bytes held now, those of small bodies not counted.
    pub fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that it may hold.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A turn to decompress, one for each core: more at a time would not be faster, and every thread that has done it
    /// keeps the memory that it took.
    pub(super) async fn decoder(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.decoders).acquire_owned().await.ok()
    }

    pub(super) fn new(bytes_max: usize) -> Self {
        BodyBudget {
            used: AtomicUsize::new(0),
            bytes_max,
            decoders: Arc::new(Semaphore::new(
                std::thread::available_parallelism().map_or(1, usize::from),
            )),
        }
    }
}

/// What one body has of the budget, given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Data<BodyBudget>,
    taken: usize,
}

impl Share {
    pub(super) fn of(budget: &Data<BodyBudget>) -> Self {
        Share {
            budget: budget.clone(),
            taken: 0,
        }
    }

    /// Grows to what a body of so many bytes needs. One body alone may be larger than the whole budget.
    ///
    /// # Errors
    /// 503 when other bodies leave no room.
    pub(super) fn cover(&mut self, bytes: usize) -> Result<(), ServiceError> {
        if bytes <= FREE_BYTES.max(self.taken) {
            return Ok(());
        }
        let more = bytes.next_multiple_of(STEP_BYTES) - self.taken;
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before > self.taken && before + more > self.budget.bytes_max {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(ServiceError::unavailable(
                "the server holds as many request bodies as it has memory for; send it again in a moment",
                RETRY_AFTER_SECONDS,
            ));
        }
        self.taken += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.budget.used.fetch_sub(self.taken, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_one_bound_and_give_back_what_they_had() {
        let budget = Data::new(BodyBudget::new(4 * STEP_BYTES));
        let used = || budget.used.load(Ordering::Relaxed);
        let (mut one, mut other, mut small) = (Share::of(&budget), Share::of(&budget), Share::of(&budget));
        small.cover(FREE_BYTES).unwrap();
        assert_eq!(used(), 0, "a small body costs nothing");
        one.cover(FREE_BYTES + 1).unwrap();
        one.cover(3 * STEP_BYTES).unwrap();
        assert_eq!(used(), 3 * STEP_BYTES);
        other.cover(STEP_BYTES).unwrap();
        let refused = other.cover(STEP_BYTES + 1).unwrap_err();
        assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
        assert!(refused.retry_after_seconds.is_some());
        assert_eq!(used(), 4 * STEP_BYTES, "what is refused takes nothing");
        drop(one);
        other.cover(4 * STEP_BYTES).unwrap();
        other.cover(10 * STEP_BYTES).unwrap();
        assert_eq!(
            used(),
            10 * STEP_BYTES,
            "one that is larger than the bound, alone"
        );
        drop(other);
        assert_eq!(used(), 0);
    }
}
