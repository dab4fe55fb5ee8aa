//! Bounds for the request bodies that the server has at one time: each may be large, and there may be many. One counts
//! the bytes that have arrived, against the memory there is for them. One counts the bodies that are begun: few at a time
//! are quicker, all together, than many, and what is refused before it is read costs next to nothing. And one counts
//! those that are decompressed.
//!
//! Called by `body`; `metrics` shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use actix_web::web::Data;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ServiceError;

/// What a body may have for nothing: small ones, which are nearly all, never touch the shared counters.
const FREE_BYTES: usize = 8 * 1_024;
/// What is taken at a time.
const STEP_BYTES: usize = 64 * 1_024;
/// What a body that is begun counts for at most: large ones arrive over time.
const BEGUN_BYTES_MAX: usize = 128 * 1_024;
/// Stated bytes of begun bodies for each core: some eighty batches of a thousand points, work for tens of milliseconds.
const BEGUN_BYTES_PER_CORE: usize = 8 << 20;
/// The part of the memory that begun bodies may claim; the rest is theirs to grow into.
const BEGUN_PART: usize = 4;
/// Bodies come and go within seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Bytes of bodies held and begun, against their bounds.
#[derive(Debug)]
pub struct BodyBudget {
    used: AtomicUsize,
    bytes_max: usize,
    /// Whether one body goes beyond the bound by now.
    is_overdrawn: AtomicBool,
    begun: AtomicUsize,
    begun_max: usize,
    decoders: Arc<Semaphore>,
}

impl BodyBudget {
    /// Room for so many bytes, on a machine of so many cores.
    pub fn new(bytes_max: usize, cores: usize) -> Self {
        BodyBudget {
            used: AtomicUsize::new(0),
            bytes_max,
            is_overdrawn: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
            begun_max: (bytes_max / BEGUN_PART).min(cores * BEGUN_BYTES_PER_CORE),
            decoders: Arc::new(Semaphore::new(cores)),
        }
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
    pub(in crate::http) async fn decoder(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.decoders).acquire_owned().await.ok()
    }
}

/// What one body has of the budget, given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Data<BodyBudget>,
    taken: usize,
    begun: usize,
    /// Whether it is the one that may go beyond the bound.
    overdraws: bool,
}

impl Share {
    /// Of a body that is begun; `stated_bytes` is the length it states, about, when decompressed; 0 for none.
    ///
    /// # Errors
    /// 503 when too many others are begun, or hold too much.
    pub(in crate::http) fn begin(
        budget: &Data<BodyBudget>,
        stated_bytes: usize,
    ) -> Result<Self, ServiceError> {
        let mut share = Share {
            budget: budget.clone(),
            taken: 0,
            begun: 0,
            overdraws: false,
        };
        if stated_bytes > FREE_BYTES {
            let begun = stated_bytes.min(BEGUN_BYTES_MAX);
            let before = budget.begun.fetch_add(begun, Ordering::Relaxed);
            share.begun = begun;
            let is_full = before > 0 && before + begun > budget.begun_max;
            if is_full || budget.used_bytes() + begun > budget.bytes_max {
                return Err(no_room());
            }
        }
        Ok(share)
    }

    /// It does not arrive as quickly as others: it keeps none of them out any more.
    pub(in crate::http) fn lapse(&mut self) {
        self.budget.begun.fetch_sub(self.begun, Ordering::Relaxed);
        self.begun = 0;
    }

    /// Grows to what so many bytes need. One body at a time may go beyond the bound: bodies that have grown together until
    /// there is no room for any would otherwise all be refused, and come again together.
    ///
    /// # Errors
    /// 503 when other bodies leave no room.
    pub(in crate::http) fn cover(&mut self, bytes: usize) -> Result<(), ServiceError> {
        if bytes <= FREE_BYTES.max(self.taken) {
            return Ok(());
        }
        let more = bytes.next_multiple_of(STEP_BYTES) - self.taken;
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before + more > self.budget.bytes_max && !self.overdraw() {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(no_room());
        }
        self.taken += more;
        Ok(())
    }

    /// Whether this is the one body that may go beyond the bound, from now on to its end.
    fn overdraw(&mut self) -> bool {
        self.overdraws = self.overdraws || !self.budget.is_overdrawn.swap(true, Ordering::Relaxed);
        self.overdraws
    }
}

fn no_room() -> ServiceError {
    ServiceError::unavailable(
        "the server holds as many request bodies as it has room for; send it again in a moment",
        RETRY_AFTER_SECONDS,
    )
}

impl Drop for Share {
    fn drop(&mut self) {
        self.lapse();
        if self.taken > 0 {
            self.budget.used.fetch_sub(self.taken, Ordering::Relaxed);
        }
        if self.overdraws {
            self.budget.is_overdrawn.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn budget(bytes_max: usize) -> Data<BodyBudget> {
        Data::new(BodyBudget::new(bytes_max, 1))
    }

    fn begin(budget: &Data<BodyBudget>, stated_bytes: usize) -> Share {
        Share::begin(budget, stated_bytes).unwrap()
    }

    #[test]
    fn bodies_share_one_bound_and_give_back_what_they_had() {
        let budget = budget(4 * STEP_BYTES);
        let used = || budget.used_bytes();
        let (mut one, mut other, mut small) = (begin(&budget, 0), begin(&budget, 0), begin(&budget, 0));
        small.cover(FREE_BYTES).unwrap();
        assert_eq!(used(), 0, "a small body costs nothing");
        one.cover(FREE_BYTES + 1).unwrap();
        one.cover(3 * STEP_BYTES).unwrap();
        assert_eq!(used(), 3 * STEP_BYTES);
        other.cover(STEP_BYTES).unwrap();
        assert_eq!(used(), 4 * STEP_BYTES);
        drop(one);
        other.cover(4 * STEP_BYTES).unwrap();
        drop(other);
        assert_eq!(used(), 0);
    }

    #[test]
    fn of_bodies_that_fill_the_room_together_one_goes_on() {
        let budget = budget(4 * STEP_BYTES);
        let used = || budget.used_bytes();
        let (mut one, mut other) = (begin(&budget, 0), begin(&budget, 0));
        one.cover(2 * STEP_BYTES).unwrap();
        other.cover(2 * STEP_BYTES).unwrap();
        one.cover(10 * STEP_BYTES).unwrap();
        one.cover(20 * STEP_BYTES).unwrap();
        let refused = other.cover(3 * STEP_BYTES).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert!(refused.retry_after_seconds.is_some());
        assert_eq!(used(), 22 * STEP_BYTES, "what is refused takes nothing");
        drop(one);
        other.cover(10 * STEP_BYTES).unwrap();
        drop(other);
        assert_eq!(used(), 0);
    }

    #[test]
    fn few_bodies_are_begun_at_a_time() {
        let budget = budget(BEGUN_PART * 2 * BEGUN_BYTES_MAX);
        let refused = || Share::begin(&budget, FREE_BYTES + 1).unwrap_err().kind;
        let mut first = begin(&budget, 10 << 20);
        let second = begin(&budget, BEGUN_BYTES_MAX);
        assert_eq!(refused(), ErrorKind::Unavailable);
        begin(&budget, FREE_BYTES);
        first.lapse();
        let third = begin(&budget, BEGUN_BYTES_MAX);
        assert_eq!(refused(), ErrorKind::Unavailable, "the slow one's place is taken");
        drop((first, second));
        begin(&budget, BEGUN_BYTES_MAX);
        drop(third);
        assert_eq!(budget.begun.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_that_would_find_no_memory_is_not_begun() {
        let budget = budget(4 * STEP_BYTES);
        let mut first = begin(&budget, 0);
        first.cover(4 * STEP_BYTES).unwrap();
        assert!(Share::begin(&budget, FREE_BYTES + 1).is_err());
        begin(&budget, FREE_BYTES);
    }
}
