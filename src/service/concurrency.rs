//! A bound on how many requests of a kind each organization has in progress.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::ServiceError;
use crate::ids::ObjectId;

const RETRY_AFTER_SECONDS: u32 = 5;

/// Counts the requests in progress of each organization.
pub struct Concurrency {
    /// What the requests do, for messages.
    name: &'static str,
    max: usize,
    counts: Counts,
}

type Counts = Arc<Mutex<HashMap<ObjectId, usize>>>;

/// The place of a request, until it is dropped.
pub struct Place {
    organization: ObjectId,
    counts: Counts,
}

impl Concurrency {
    /// Allows `max` requests of each organization at once.
    pub fn new(name: &'static str, max: usize) -> Self {
        Concurrency {
            name,
            max,
            counts: Arc::default(),
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// 503 if there is none.
    pub fn enter(&self, organization: ObjectId) -> Result<Place, ServiceError> {
        let mut counts = self.counts.lock();
        let count = counts.entry(organization).or_default();
        if *count >= self.max {
            let message = format!(
                "the organization has {} {} in progress, the maximum; send it again when one has ended",
                self.max, self.name
            );
            return Err(ServiceError::unavailable(message, RETRY_AFTER_SECONDS));
        }
        *count += 1;
        Ok(Place {
            organization,
            counts: Arc::clone(&self.counts),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.organization) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.organization);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_organization_has_places_of_its_own_and_gets_them_back() {
        let (one, other) = (ObjectId::of_point(1, 1), ObjectId::of_point(2, 2));
        let exports = Concurrency::new("exports", 2);
        let held = [exports.enter(one), exports.enter(one)];
        assert!(held.iter().all(Result::is_ok));
        let refused = exports.enter(one).err().unwrap();
        assert!(refused.message.contains("2 exports"), "{}", refused.message);
        assert!(exports.enter(other).is_ok());
        drop(held);
        assert!(exports.enter(one).is_ok());
        assert!(exports.counts.lock().is_empty(), "nothing is kept");
    }
}
