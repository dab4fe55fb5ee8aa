//! Which delivery is attempted next: every receiver has a queue of its own, and they take turns.
//!
//! Pure: `now` is time since the start, which never steps. A receiver has few attempts in flight, one that has not
//! proven itself just one, and all of those together have half of the places: so receivers that are slow or dead,
//! however many, delay no other. A delivery that waits for its retry holds no place.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::ids::ObjectId;

/// Attempts in flight.
pub(super) const IN_FLIGHT_MAX: usize = 512;
/// Attempts in flight to receivers that have not proven themselves.
pub(super) const UNPROVEN_IN_FLIGHT_MAX: usize = IN_FLIGHT_MAX / 2;
/// Attempts in flight to one receiver whose last answer was prompt.
pub(super) const PROVEN_RECEIVER_IN_FLIGHT_MAX: usize = 4;
/// Attempts in flight to any other.
const UNPROVEN_RECEIVER_IN_FLIGHT_MAX: usize = 1;
/// Receivers that are remembered; beyond, those without deliveries are forgotten and have to prove themselves again.
const RECEIVERS_MAX: usize = 65_536;

/// Who shares a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReceiverKey {
    Webhook(ObjectId),
    /// What an organization's rules have at one origin: one host, one receiver.
    Origin(ObjectId, Arc<str>),
}

/// What goes first to the same receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// In the catalog until it ends.
    Owed,
    /// In memory, for as long as there is room.
    BestEffort,
}

/// All deliveries that are to be attempted.
#[derive(Default)]
pub(super) struct Schedule {
    entries: HashMap<ObjectId, Entry>,
    receivers: HashMap<ReceiverKey, Queue>,
    /// By when they are due, then by arrival.
    waiting: BTreeMap<(Duration, u64), ObjectId>,
    /// Receivers that could do with a place, proven and unproven.
    turns: [VecDeque<ReceiverKey>; 2],
    /// Attempts in flight, to proven and to unproven receivers.
    in_flight: [usize; 2],
    /// Which of the two comes first next time.
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
    /// Under this standing of its receiver.
    InFlight(Standing),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Proven = 0,
    Unproven = 1,
}

impl Standing {
    const fn other(self) -> Self {
        match self {
            Self::Proven => Self::Unproven,
            Self::Unproven => Self::Proven,
        }
    }
}

/// One receiver.
struct Queue {
    standing: Standing,
    /// In the order of attempts.
    ready: BTreeMap<(Class, u64), ObjectId>,
    in_flight: usize,
    /// Whether it stands in one of the turns.
    in_turn: bool,
    /// Its deliveries anywhere in the schedule.
    entries: usize,
}

impl Queue {
    const fn new() -> Self {
        Self {
            standing: Standing::Unproven,
            ready: BTreeMap::new(),
            in_flight: 0,
            in_turn: false,
            entries: 0,
        }
    }

    fn wants_place(&self) -> bool {
        let max = match self.standing {
            Standing::Proven => PROVEN_RECEIVER_IN_FLIGHT_MAX,
            Standing::Unproven => UNPROVEN_RECEIVER_IN_FLIGHT_MAX,
        };
        self.in_flight < max && !self.ready.is_empty()
    }
}

impl Schedule {
    /// Takes a delivery, to be attempted when `due`. One that is known is due then instead, unless it is in flight.
    pub fn add(&mut self, id: ObjectId, receiver: ReceiverKey, class: Class, due: Duration) {
        if self.is_in_flight(id) {
            return;
        }
        self.remove(id);
        self.arrivals += 1;
        self.receivers
            .entry(receiver.clone())
            .or_insert_with(Queue::new)
            .entries += 1;
        self.waiting.insert((due, self.arrivals), id);
        let entry = Entry {
            receiver,
            class,
            arrival: self.arrivals,
            place: Place::Waiting(due),
        };
        self.entries.insert(id, entry);
    }

    /// Forgets a delivery, unless it is in flight.
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

    /// The delivery to attempt now; it is in flight until [`Schedule::ended`].
    pub fn next(&mut self, now: Duration) -> Option<ObjectId> {
        self.wake(now);
        if self.in_flight() >= IN_FLIGHT_MAX {
            return None;
        }
        let next = self
            .take_turn(self.first)
            .or_else(|| self.take_turn(self.first.other()));
        self.first = self.first.other();
        next
    }

    /// An attempt is over; `prompt` when the receiver answered, whatever it said, and soon; `None` when there was
    /// nothing to attempt. The delivery is forgotten: if it is to be tried again, it is added again.
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

    /// When the next delivery that waits is due.
    pub fn next_due(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Attempts in flight.
    pub const fn in_flight(&self) -> usize {
        self.in_flight[0] + self.in_flight[1]
    }

    /// Deliveries waiting, ready and in flight.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of them, in no order.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> {
        self.entries.keys().copied()
    }

    /// Deliveries of one receiver, waiting, ready and in flight.
    pub fn len_of(&self, receiver: &ReceiverKey) -> usize {
        self.receivers.get(receiver).map_or(0, |queue| queue.entries)
    }

    /// Whether a delivery is being attempted.
    pub fn is_in_flight(&self, id: ObjectId) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|entry| matches!(entry.place, Place::InFlight(_)))
    }

    /// Those whose time has come are ready.
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
            if queue.standing == standing
                && queue.wants_place()
                && let Some((_, id)) = queue.ready.pop_first()
            {
                queue.in_flight += 1;
                self.in_flight[standing as usize] += 1;
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.place = Place::InFlight(standing);
                }
                self.offer_turn(&receiver);
                return Some(id);
            }
            // Its standing changed while it stood here, or its last delivery left.
            self.offer_turn(&receiver);
        }
        None
    }

    /// Lets a receiver stand at the end of its turn.
    fn offer_turn(&mut self, receiver: &ReceiverKey) {
        if let Some(queue) = self.receivers.get_mut(receiver)
            && !queue.in_turn
            && queue.wants_place()
        {
            queue.in_turn = true;
            self.turns[queue.standing as usize].push_back(receiver.clone());
        }
    }

    /// A receiver without deliveries is remembered for what it has proven, so that it need not stand in line with the
    /// dead next time.
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
