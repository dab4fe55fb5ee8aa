//! Chooses the next delivery to attempt: one queue per receiver, served round-robin.
//!
//! Pure: `now` is monotonic time since the start. Each receiver has few attempts in flight, an unproven receiver only
//! one, and all unproven receivers together at most half of the slots. So slow or dead receivers, however many, do not
//! delay others. A delivery that waits for its retry occupies no slot.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::ids::ObjectId;

/// Maximum attempts in flight.
pub(super) const IN_FLIGHT_MAX: usize = 512;
/// Maximum attempts in flight to unproven receivers.
pub(super) const UNPROVEN_IN_FLIGHT_MAX: usize = IN_FLIGHT_MAX / 2;
/// Maximum attempts in flight to one receiver whose last answer was prompt.
pub(super) const PROVEN_RECEIVER_IN_FLIGHT_MAX: usize = 4;
/// Maximum attempts in flight to any other receiver.
const UNPROVEN_RECEIVER_IN_FLIGHT_MAX: usize = 1;
/// Maximum receivers remembered. Above it, idle receivers are forgotten and have to prove themselves again.
const RECEIVERS_MAX: usize = 65_536;

/// Identifies a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReceiverKey {
    Webhook(ObjectId),
    /// All rules of an organization whose URLs have the same origin: one host counts as one receiver.
    Origin(ObjectId, Arc<str>),
}

/// Priority among the deliveries to one receiver, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Stored in the catalog until it ends.
    Owed,
    /// In memory, while there is room.
    BestEffort,
}

/// All deliveries to attempt.
#[derive(Default)]
pub(super) struct Schedule {
    entries: HashMap<ObjectId, Entry>,
    receivers: HashMap<ReceiverKey, Queue>,
    /// Ordered by due time, then by arrival.
    waiting: BTreeMap<(Duration, u64), ObjectId>,
    /// Receivers with deliveries ready to start: proven, unproven.
    turns: [VecDeque<ReceiverKey>; 2],
    /// Attempts in flight: to proven, to unproven receivers.
    in_flight: [usize; 2],
    /// Which group was served first last time.
    first: Standing,
    arrivals: u64,
}

struct Entry {
    receiver: ReceiverKey,
    class: Class,
    arrival: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Waiting(Duration),
    Ready,
    /// Counted for the standing that its receiver had at the start of the attempt.
    InFlight(Standing),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    Proven = 0,
    #[default]
    Unproven = 1,
}

impl Standing {
    const fn other(self) -> Self {
        [Self::Unproven, Self::Proven][self as usize]
    }
}

/// The state of one receiver.
#[derive(Default)]
struct Queue {
    standing: Standing,
    /// In the order in which they are attempted.
    ready: BTreeMap<(Class, u64), ObjectId>,
    in_flight: usize,
    /// Whether the receiver is in one of the two `turns`.
    in_turn: bool,
    /// Its deliveries in the schedule, in any place.
    entries: usize,
}

impl Queue {
    fn wants_place(&self) -> bool {
        let max = match self.standing {
            Standing::Proven => PROVEN_RECEIVER_IN_FLIGHT_MAX,
            Standing::Unproven => UNPROVEN_RECEIVER_IN_FLIGHT_MAX,
        };
        self.in_flight < max && !self.ready.is_empty()
    }
}

impl Schedule {
    /// Adds a delivery to attempt when `due`. A known delivery is rescheduled, unless it is in flight.
    pub fn add(&mut self, id: ObjectId, receiver: ReceiverKey, class: Class, due: Duration) {
        if self.is_in_flight(id) {
            return;
        }
        self.remove(id);
        self.arrivals += 1;
        self.receivers.entry(receiver.clone()).or_default().entries += 1;
        self.waiting.insert((due, self.arrivals), id);
        let entry = Entry {
            receiver,
            class,
            arrival: self.arrivals,
            place: Place::Waiting(due),
        };
        self.entries.insert(id, entry);
    }

    /// Removes a delivery, unless it is in flight.
    pub fn remove(&mut self, id: ObjectId) {
        if !self.is_in_flight(id)
            && let Some(entry) = self.entries.remove(&id)
        {
            if let Place::Waiting(due) = entry.place {
                self.waiting.remove(&(due, entry.arrival));
            }
            if let Some(queue) = self.receivers.get_mut(&entry.receiver) {
                queue.ready.remove(&(entry.class, entry.arrival));
            }
            self.leave(&entry.receiver);
        }
    }

    /// Returns a delivery to attempt now and marks it in flight until [`Schedule::ended`].
    pub fn next(&mut self, now: Duration) -> Option<ObjectId> {
        self.wake(now);
        if self.in_flight() >= IN_FLIGHT_MAX {
            return None;
        }
        self.first = self.first.other();
        self.take_turn(self.first)
            .or_else(|| self.take_turn(self.first.other()))
    }

    /// An attempt has ended. `prompt` is whether the receiver answered quickly, with any status; `None` if nothing was
    /// attempted. The delivery is removed; add it again for a retry.
    pub fn ended(&mut self, id: ObjectId, prompt: Option<bool>) {
        let Some(Place::InFlight(standing)) = self.entries.get(&id).map(|entry| entry.place) else {
            return;
        };
        self.in_flight[standing as usize] -= 1;
        let Some(Entry { receiver, .. }) = self.entries.remove(&id) else {
            return;
        };
        if let Some(queue) = self.receivers.get_mut(&receiver) {
            queue.in_flight -= 1;
            match prompt {
                Some(true) => queue.standing = Standing::Proven,
                Some(false) => queue.standing = Standing::Unproven,
                None => {}
            }
        }
        self.offer_turn(&receiver);
        self.leave(&receiver);
    }

    /// When the next waiting delivery is due.
    pub fn next_due(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Attempts in flight.
    pub const fn in_flight(&self) -> usize {
        self.in_flight[0] + self.in_flight[1]
    }

    /// Number of deliveries: waiting, ready and in flight.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All deliveries, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> {
        self.entries.keys().copied()
    }

    /// Deliveries of one receiver, waiting, ready and in flight.
    pub fn len_of(&self, receiver: &ReceiverKey) -> usize {
        self.receivers.get(receiver).map_or(0, |queue| queue.entries)
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.entries.contains_key(&id)
    }

    pub fn is_in_flight(&self, id: ObjectId) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|entry| matches!(entry.place, Place::InFlight(_)))
    }

    /// Moves deliveries that are due from waiting to ready.
    fn wake(&mut self, now: Duration) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let id = first.remove();
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.place = Place::Ready;
            let receiver = entry.receiver.clone();
            if let Some(queue) = self.receivers.get_mut(&receiver) {
                queue.ready.insert((entry.class, entry.arrival), id);
            }
            self.offer_turn(&receiver);
        }
    }

    fn take_turn(&mut self, standing: Standing) -> Option<ObjectId> {
        if standing == Standing::Unproven && self.in_flight[1] >= UNPROVEN_IN_FLIGHT_MAX {
            return None;
        }
        while let Some(receiver) = self.turns[standing as usize].pop_front() {
            let Some(queue) = self.receivers.get_mut(&receiver) else {
                continue;
            };
            queue.in_turn = false;
            // The receiver's standing may have changed while it was queued, or its last delivery been removed.
            let takes_turn = queue.standing == standing && queue.wants_place();
            let next = takes_turn.then(|| queue.ready.pop_first()).flatten();
            if let Some(entry) = next.and_then(|(_, id)| self.entries.get_mut(&id)) {
                queue.in_flight += 1;
                self.in_flight[standing as usize] += 1;
                entry.place = Place::InFlight(standing);
            }
            self.offer_turn(&receiver);
            if let Some((_, id)) = next {
                return Some(id);
            }
        }
        None
    }

    /// Appends a receiver to its group's queue if it has something to start and is not queued yet.
    fn offer_turn(&mut self, receiver: &ReceiverKey) {
        if let Some(queue) = self.receivers.get_mut(receiver)
            && !queue.in_turn
            && queue.wants_place()
        {
            queue.in_turn = true;
            self.turns[queue.standing as usize].push_back(receiver.clone());
        }
    }

    /// Removes one delivery from a receiver's count. A proven receiver without deliveries is remembered, so that it
    /// does not have to compete with dead receivers next time.
    fn leave(&mut self, receiver: &ReceiverKey) {
        let Some(queue) = self.receivers.get_mut(receiver) else {
            return;
        };
        queue.entries -= 1;
        if queue.entries > 0 {
            return;
        }
        if queue.standing == Standing::Unproven {
            self.receivers.remove(receiver);
        } else if self.receivers.len() > RECEIVERS_MAX {
            self.receivers.retain(|_, queue| queue.entries > 0);
        }
    }
}
