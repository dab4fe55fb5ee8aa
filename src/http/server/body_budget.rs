//! Limits the request bodies that the server handles at one time: each may be large, and there may be many. The first
//! limit counts bytes that have arrived against the memory for them. The second counts bodies in progress: a few at a
//! time finish sooner than many at once, and refusing a body before it is read costs almost nothing. The third counts
//! bodies that are being decompressed.
//!
//! Called by `body`; `metrics` exports the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use actix_web::web::Data;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ServiceError;

/// Bytes of a body that are not counted: small bodies, which are nearly all, never touch the shared counters.
pub(in crate::http) const FREE_BYTES: usize = 8 * 1_024;
/// Bytes that a body reserves at a time.
const STEP_BYTES: usize = 64 * 1_024;
/// The most that a body in progress counts for: large ones arrive over time.
const IN_PROGRESS_BYTES_MAX: usize = 128 * 1_024;
/// Stated bytes of bodies in progress for each core: about eighty batches of a thousand points, tens of milliseconds of
/// work.
const IN_PROGRESS_BYTES_PER_CORE: usize = 8 << 20;
/// Bodies in progress may claim the memory divided by this; the rest is for them to grow into.
const IN_PROGRESS_PART: usize = 4;
/// Bodies finish within seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Bytes of bodies held and in progress, with their limits.
#[derive(Debug)]
pub struct BodyBudget {
    used: AtomicUsize,
    bytes_max: usize,
    /// Whether one body currently exceeds the limit.
    is_exceeded: AtomicBool,
    /// Stated bytes of bodies in progress.
    in_progress: AtomicUsize,
    in_progress_max: usize,
    decoders: Arc<Semaphore>,
}

impl BodyBudget {
    /// Makes a budget of so many bytes, on a machine with so many cores.
    pub fn new(bytes_max: usize, cores: usize) -> Self {
        BodyBudget {
            used: AtomicUsize::new(0),
            bytes_max,
            is_exceeded: AtomicBool::new(false),
            in_progress: AtomicUsize::new(0),
            in_progress_max: (bytes_max / IN_PROGRESS_PART).min(cores * IN_PROGRESS_BYTES_PER_CORE),
            decoders: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Bytes held now, without small bodies.
    pub fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Waits for a permit to decompress. There is one for each core: more would not be faster, and every thread that
    /// has decompressed keeps the memory it used.
    pub(in crate::http) async fn decoder(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.decoders).acquire_owned().await.ok()
    }
}

/// One body's share of the budget, given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Data<BodyBudget>,
    /// Bytes reserved in [`BodyBudget::used`].
    reserved: usize,
    /// Bytes counted in [`BodyBudget::in_progress`].
    in_progress: usize,
    /// Whether this is the one body that may exceed the limit.
    may_exceed: bool,
}

impl Share {
    /// Starts a body. `stated_bytes` is its approximate stated length after decompression; 0 for none.
    ///
    /// # Errors
    /// 503 when too many other bodies are in progress, or hold too much memory.
    pub(in crate::http) fn begin(
        budget: &Data<BodyBudget>,
        stated_bytes: usize,
    ) -> Result<Self, ServiceError> {
        let mut share = Share {
            budget: budget.clone(),
            reserved: 0,
            in_progress: 0,
            may_exceed: false,
        };
        if stated_bytes > FREE_BYTES {
            let counted = stated_bytes.min(IN_PROGRESS_BYTES_MAX);
            let before = budget.in_progress.fetch_add(counted, Ordering::Relaxed);
            share.in_progress = counted;
            let is_full = before > 0 && before + counted > budget.in_progress_max;
            if is_full || budget.used_bytes() + counted > budget.bytes_max {
                return Err(no_room());
            }
        }
        Ok(share)
    }

    /// Removes a slow body from those in progress, so that it no longer blocks others.
    pub(in crate::http) fn leave_progress(&mut self) {
        self.budget
            .in_progress
            .fetch_sub(self.in_progress, Ordering::Relaxed);
        self.in_progress = 0;
    }

    /// Grows the share to this many bytes. One body at a time may exceed the limit: otherwise bodies that together fill
    /// the memory would all be refused, and all be sent again together.
    ///
    /// # Errors
    /// 503 when other bodies leave no memory.
    pub(in crate::http) fn grow_to(&mut self, bytes: usize) -> Result<(), ServiceError> {
        if bytes <= FREE_BYTES.max(self.reserved) {
            return Ok(());
        }
        let more = bytes.next_multiple_of(STEP_BYTES) - self.reserved;
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before + more > self.budget.bytes_max && !self.take_excess() {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(no_room());
        }
        self.reserved += more;
        Ok(())
    }

    /// Whether this is the one body that may exceed the limit. If so, it remains that until it ends.
    fn take_excess(&mut self) -> bool {
        self.may_exceed = self.may_exceed || !self.budget.is_exceeded.swap(true, Ordering::Relaxed);
        self.may_exceed
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
        self.leave_progress();
        if self.reserved > 0 {
            self.budget.used.fetch_sub(self.reserved, Ordering::Relaxed);
        }
        if self.may_exceed {
            self.budget.is_exceeded.store(false, Ordering::Relaxed);
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
    fn bodies_share_one_bound_and_release_their_memory() {
        let budget = budget(4 * STEP_BYTES);
        let used = || budget.used_bytes();
        let (mut one, mut other, mut small) = (begin(&budget, 0), begin(&budget, 0), begin(&budget, 0));
        small.grow_to(FREE_BYTES).unwrap();
        assert_eq!(used(), 0, "a small body costs nothing");
        one.grow_to(FREE_BYTES + 1).unwrap();
        one.grow_to(3 * STEP_BYTES).unwrap();
        assert_eq!(used(), 3 * STEP_BYTES);
        other.grow_to(STEP_BYTES).unwrap();
        assert_eq!(used(), 4 * STEP_BYTES);
        drop(one);
        other.grow_to(4 * STEP_BYTES).unwrap();
        drop(other);
        assert_eq!(used(), 0);
    }

    #[test]
    fn one_of_several_bodies_that_fill_the_budget_continues() {
        let budget = budget(4 * STEP_BYTES);
        let used = || budget.used_bytes();
        let (mut one, mut other) = (begin(&budget, 0), begin(&budget, 0));
        one.grow_to(2 * STEP_BYTES).unwrap();
        other.grow_to(2 * STEP_BYTES).unwrap();
        one.grow_to(10 * STEP_BYTES).unwrap();
        one.grow_to(20 * STEP_BYTES).unwrap();
        let refused = other.grow_to(3 * STEP_BYTES).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert!(refused.retry_after_seconds.is_some());
        assert_eq!(used(), 22 * STEP_BYTES, "what is refused takes nothing");
        drop(one);
        other.grow_to(10 * STEP_BYTES).unwrap();
        drop(other);
        assert_eq!(used(), 0);
    }

    #[test]
    fn the_number_of_bodies_in_progress_is_bounded() {
        let budget = budget(IN_PROGRESS_PART * 2 * IN_PROGRESS_BYTES_MAX);
        let refused = || Share::begin(&budget, FREE_BYTES + 1).unwrap_err().kind;
        let mut first = begin(&budget, 10 << 20);
        let second = begin(&budget, IN_PROGRESS_BYTES_MAX);
        assert_eq!(refused(), ErrorKind::Unavailable);
        begin(&budget, FREE_BYTES);
        first.leave_progress();
        let third = begin(&budget, IN_PROGRESS_BYTES_MAX);
        assert_eq!(refused(), ErrorKind::Unavailable, "the slow one's place is taken");
        drop((first, second));
        begin(&budget, IN_PROGRESS_BYTES_MAX);
        drop(third);
        assert_eq!(budget.in_progress.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_does_not_begin_without_free_memory() {
        let budget = budget(4 * STEP_BYTES);
        let mut first = begin(&budget, 0);
        first.grow_to(4 * STEP_BYTES).unwrap();
        assert!(Share::begin(&budget, FREE_BYTES + 1).is_err());
        begin(&budget, FREE_BYTES);
    }
}
