//! Which sources have to be looked at, and when. A fresh source is looked at when it would become stale; one that is stale,
//! or has no point yet, when a point of it has arrived. So an ingest of other sources costs one look-up, and time costs only
//! those that change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::alerts::moments::Moments;
use crate::catalog::Source;
use crate::ids::ObjectId;

/// A point that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The point's own time, UTC nanoseconds.
    pub point_ns: i64,
    /// When it was stored, UTC nanoseconds.
    pub received_ns: i64,
}

/// A source of which a point is waited for.
struct Awaited {
    source_id: ObjectId,
    fresh_for_ns: i64,
    /// The first one that makes the source fresh, else the newest one.
    arrived: Option<Arrival>,
}

impl Awaited {
    fn note(&mut self, arrival: Arrival) {
        let makes_fresh = |it: &Arrival| it.point_ns.saturating_add(self.fresh_for_ns) >= it.received_ns;
        if self
            .arrived
            .is_none_or(|known| !makes_fresh(&known) && known.point_ns < arrival.point_ns)
        {
            self.arrived = Some(arrival);
        }
    }
}

#[derive(Default)]
struct Watched {
    /// When to look at a source, UTC nanoseconds.
    looks: Moments,
    /// By bucket, then by ordinal.
    awaited: HashMap<ObjectId, HashMap<u32, Awaited>>,
}

/// The sources that are expected to send.
#[derive(Default)]
pub struct Watch {
    watched: Mutex<Watched>,
    /// Buckets with sources that are waited for.
    buckets: AtomicUsize,
}

impl Watch {
    /// Looks at the source as soon as possible.
    pub fn look(&self, source_id: ObjectId) {
        self.look_at(source_id, Some(i64::MIN));
    }

    /// Looks at the source at this time; `None`: not before something else asks for it.
    pub fn look_at(&self, source_id: ObjectId, at_ns: Option<i64>) {
        self.watched.lock().looks.set(source_id, at_ns);
    }

    /// Takes up to `max` sources to look at by now.
    pub fn take(&self, now_ns: i64, max: usize) -> Vec<ObjectId> {
        let mut watched = self.watched.lock();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(source_id) = watched.looks.take(now_ns)
        {
            taken.push(source_id);
        }
        taken
    }

    /// Waits for points of the source from now on. Returns the one that has arrived since the last call, if it was waited for
    /// already.
    pub fn wait_for(&self, source: &Source, fresh_for_ns: i64) -> Option<Arrival> {
        let awaited = Awaited {
            source_id: source.id,
            fresh_for_ns,
            arrived: None,
        };
        let mut watched = self.watched.lock();
        let of_bucket = watched.awaited.entry(source.bucket_id).or_default();
        let known = of_bucket.insert(source.ordinal, awaited);
        self.buckets.store(watched.awaited.len(), Ordering::Release);
        known?.arrived
    }

    /// Waits for no points of the source.
    pub fn stop_waiting(&self, source: &Source) {
        let mut watched = self.watched.lock();
        if let Some(of_bucket) = watched.awaited.get_mut(&source.bucket_id) {
            of_bucket.remove(&source.ordinal);
            if of_bucket.is_empty() {
                watched.awaited.remove(&source.bucket_id);
            }
        }
        self.buckets.store(watched.awaited.len(), Ordering::Release);
    }

    /// Forgets what is waited for in a bucket that is deleted.
    pub fn forget(&self, bucket_id: ObjectId) {
        let mut watched = self.watched.lock();
        watched.awaited.remove(&bucket_id);
        self.buckets.store(watched.awaited.len(), Ordering::Release);
    }

    /// Whether points of the bucket are waited for.
    pub fn waits_for(&self, bucket_id: ObjectId) -> bool {
        self.buckets.load(Ordering::Acquire) > 0 && self.watched.lock().awaited.contains_key(&bucket_id)
    }

    /// Notes stored points: ordinals of sources, and times.
    pub fn arrived(&self, bucket_id: ObjectId, points: impl Iterator<Item = (u32, Arrival)>) {
        let mut watched = self.watched.lock();
        let Watched { looks, awaited } = &mut *watched;
        let Some(of_bucket) = awaited.get_mut(&bucket_id) else {
            return;
        };
        for (ordinal, arrival) in points {
            if let Some(awaited) = of_bucket.get_mut(&ordinal) {
                awaited.note(arrival);
                looks.set(awaited.source_id, Some(i64::MIN));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(point_ns: i64, received_ns: i64) -> Arrival {
        Arrival {
            point_ns,
            received_ns,
        }
    }

    #[test]
    fn the_point_that_ends_a_silence_is_the_first_that_is_new_enough() {
        let mut awaited = Awaited {
            source_id: ObjectId::from_bytes([1; 12]),
            fresh_for_ns: 30,
            arrived: None,
        };
        let mut after = |point_ns, received_ns| {
            awaited.note(arrival(point_ns, received_ns));
            awaited.arrived.map(|it| it.point_ns)
        };
        assert_eq!(after(50, 100), Some(50), "the newest, while all are old");
        assert_eq!(after(40, 101), Some(50));
        assert_eq!(after(60, 102), Some(60));
        assert_eq!(after(73, 103), Some(73), "30 before it was stored is new enough");
        assert_eq!(after(99, 104), Some(73), "what comes later ends nothing");
    }
}
