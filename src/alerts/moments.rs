//! The next moment of each rule or source, in order of time.

use std::collections::{BTreeSet, HashMap};

use crate::ids::ObjectId;

/// Objects that time will change. Times are UTC nanoseconds.
#[derive(Default)]
pub struct Moments {
    by_object: HashMap<ObjectId, i64>,
    queue: BTreeSet<(i64, ObjectId)>,
}

impl Moments {
    /// Sets the next moment of an object; `None` if it has none.
    pub fn set(&mut self, id: ObjectId, at_ns: Option<i64>) {
        let known = match at_ns {
            Some(at_ns) => self.by_object.insert(id, at_ns),
            None => self.by_object.remove(&id),
        };
        if let Some(known) = known {
            self.queue.remove(&(known, id));
        }
        self.queue.extend(at_ns.map(|at_ns| (at_ns, id)));
    }

    /// Takes an object whose moment has come by now, the earliest first.
    pub fn take(&mut self, now_ns: i64) -> Option<ObjectId> {
        let (at_ns, id) = *self.queue.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.set(id, None);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_in_the_order_of_their_last_known_moments() {
        let object = |number: u8| ObjectId::from_bytes([number; 12]);
        let mut moments = Moments::default();
        for (number, at_ns) in [(1, 30), (2, 10), (3, 20), (4, 10), (1, 5), (3, 40)] {
            moments.set(object(number), Some(at_ns));
        }
        moments.set(object(4), None);
        moments.set(object(9), None);
        assert_eq!(moments.take(4), None);
        assert_eq!(moments.take(5), Some(object(1)));
        assert_eq!(moments.take(39), Some(object(2)));
        assert_eq!(moments.take(39), None);
        assert_eq!(moments.take(40), Some(object(3)));
        assert_eq!(moments.take(i64::MAX), None);
        assert!(moments.by_object.is_empty());
    }
}
