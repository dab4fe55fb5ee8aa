//! Which rules are due: per organization, ordered by due time, claimed rules separately. Pure: times are arguments. The
//! cost of a poll depends on the rules listed and the claims ended since the last one, not on all rules.

use std::collections::{BTreeSet, HashMap};

use crate::ids::ObjectId;

/// Due time of a rule in UTC nanoseconds, then its age as a tiebreaker.
pub type Turn = (i64, u64, ObjectId);

/// All active rules with an evaluation block.
#[derive(Default)]
pub struct Schedule {
    places: HashMap<ObjectId, Place>,
    queues: HashMap<ObjectId, Queue>,
    /// Ends of the claims of rules that are not scheduled now. A rule that is resumed is still claimed.
    absent: HashMap<ObjectId, i64>,
}

#[derive(Clone, Copy)]
struct Place {
    organization_id: ObjectId,
    turn: Turn,
    /// Monotonic nanoseconds until which an evaluator has claimed the rule.
    claimed_until: Option<i64>,
}

#[derive(Default)]
struct Queue {
    free: BTreeSet<Turn>,
    /// Ordered by the end of the claim.
    claimed: BTreeSet<(i64, ObjectId)>,
}

impl Schedule {
    /// Schedules the rule for this turn. Its claim is kept, unless it was for an evaluation that is over now.
    pub fn put(&mut self, organization_id: ObjectId, turn: Turn, ends_claim: bool) {
        let (_, _, rule_id) = turn;
        self.remove(rule_id);
        let claimed_until = self.absent.remove(&rule_id);
        let place = Place {
            organization_id,
            turn,
            claimed_until: None,
        };
        self.places.insert(rule_id, place);
        self.queues.entry(organization_id).or_default().free.insert(turn);
        if let Some(until) = claimed_until.filter(|_| !ends_claim) {
            self.claim(rule_id, until);
        }
    }

    /// Removes the rule until it is scheduled again.
    pub fn remove(&mut self, rule_id: ObjectId) {
        let Some(place) = self.places.remove(&rule_id) else {
            return;
        };
        if let Some(queue) = self.queues.get_mut(&place.organization_id) {
            match place.claimed_until {
                None => queue.free.remove(&place.turn),
                Some(until) => {
                    self.absent.insert(rule_id, until);
                    queue.claimed.remove(&(until, rule_id))
                }
            };
            if queue.free.is_empty() && queue.claimed.is_empty() {
                self.queues.remove(&place.organization_id);
            }
        }
    }

    /// The unclaimed rules of an organization that are due, most overdue first, then oldest first.
    pub fn due(
        &mut self,
        organization_id: ObjectId,
        now_ns: i64,
        monotonic_ns: i64,
    ) -> impl Iterator<Item = ObjectId> {
        self.release(organization_id, monotonic_ns);
        let free = self.queues.get(&organization_id).map(|queue| &queue.free);
        free.into_iter()
            .flatten()
            .take_while(move |(due_at_ns, ..)| *due_at_ns <= now_ns)
            .map(|(_, _, rule_id)| *rule_id)
    }

    /// Number of rules that are due and unclaimed, over all organizations. Excludes rules whose claims ended since the
    /// last poll of their organization.
    pub fn due_count(&self, now_ns: i64) -> usize {
        let due = |queue: &Queue| queue.free.iter().take_while(|turn| turn.0 <= now_ns).count();
        self.queues.values().map(due).sum()
    }

    /// Hides the rule from other evaluators until `until`.
    pub fn claim(&mut self, rule_id: ObjectId, until: i64) {
        if let Some(place) = self.places.get_mut(&rule_id)
            && place.claimed_until.is_none()
            && let Some(queue) = self.queues.get_mut(&place.organization_id)
        {
            place.claimed_until = Some(until);
            queue.free.remove(&place.turn);
            queue.claimed.insert((until, rule_id));
        }
    }

    /// Releases the rules whose claims have ended.
    fn release(&mut self, organization_id: ObjectId, monotonic_ns: i64) {
        self.absent.retain(|_, until| *until > monotonic_ns);
        let Some(queue) = self.queues.get_mut(&organization_id) else {
            return;
        };
        while let Some((until, rule_id)) = queue.claimed.first().copied()
            && until <= monotonic_ns
        {
            queue.claimed.pop_first();
            if let Some(place) = self.places.get_mut(&rule_id) {
                place.claimed_until = None;
                queue.free.insert(place.turn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    fn due(schedule: &mut Schedule, now: i64, monotonic: i64) -> Vec<u8> {
        let due = schedule.due(id(100), now, monotonic);
        due.map(|rule| rule.as_bytes()[0]).collect()
    }

    fn schedule_of(turns: &[(u8, i64)]) -> Schedule {
        let mut schedule = Schedule::default();
        for (number, due_at) in turns {
            schedule.put(id(100), (*due_at, u64::from(*number), id(*number)), true);
        }
        schedule
    }

    #[test]
    fn the_most_overdue_comes_first_then_the_oldest() {
        let mut schedule = schedule_of(&[(3, 10), (1, 20), (2, 10), (4, 31)]);
        assert_eq!(due(&mut schedule, 30, 0), [2, 3, 1]);
        assert_eq!(schedule.due_count(30), 3);
        assert_eq!(schedule.due_count(9), 0);
        assert_eq!(due(&mut schedule, 30, 0), [2, 3, 1], "asking changes nothing");
        assert_eq!(schedule.due(id(101), 30, 0).count(), 0, "another organization");
        schedule.put(id(100), (90, 2, id(2)), true);
        assert_eq!(due(&mut schedule, 31, 0), [3, 1, 4]);
        schedule.remove(id(3));
        assert_eq!(due(&mut schedule, 90, 0), [1, 4, 2]);
    }

    #[test]
    fn a_claim_outlives_a_pause_but_no_longer_than_itself() {
        let mut schedule = schedule_of(&[(1, 10)]);
        schedule.claim(id(1), 50);
        schedule.remove(id(1));
        schedule.put(id(100), (10, 1, id(1)), false);
        assert_eq!(due(&mut schedule, 30, 49), [0; 0]);
        assert_eq!(due(&mut schedule, 30, 50), [1]);
        schedule.claim(id(1), 90);
        schedule.remove(id(1));
        schedule.put(id(100), (10, 1, id(1)), true);
        assert_eq!(due(&mut schedule, 30, 51), [1], "a verdict has come");
        schedule.claim(id(1), 90);
        schedule.remove(id(1));
        assert_eq!(due(&mut schedule, 30, 90), [0; 0]);
        assert!(schedule.absent.is_empty());
    }

    #[test]
    fn a_claim_hides_a_rule_until_it_ends_or_the_verdict_comes() {
        let mut schedule = schedule_of(&[(1, 10), (2, 10), (3, 10)]);
        schedule.claim(id(1), 500);
        schedule.claim(id(2), 400);
        schedule.claim(id(2), 900);
        assert_eq!(due(&mut schedule, 30, 399), [3]);
        assert_eq!(
            due(&mut schedule, 30, 400),
            [2, 3],
            "a second claim does not prolong the first"
        );
        assert_eq!(due(&mut schedule, 30, 500), [1, 2, 3]);
        schedule.claim(id(1), 900);
        schedule.put(id(100), (20, 1, id(1)), true);
        assert_eq!(due(&mut schedule, 30, 501), [2, 3, 1], "the verdict ended it");
        schedule.claim(id(3), 900);
        schedule.put(id(100), (25, 3, id(3)), false);
        assert_eq!(due(&mut schedule, 30, 899), [2, 1], "still claimed");
        schedule.remove(id(3));
        assert_eq!(due(&mut schedule, 30, 1_000), [2, 1]);
    }

    /// Compares with a model that searches a plain list.
    #[test]
    fn random_operations_agree_with_a_plain_list() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut schedule = Schedule::default();
        let mut list: Vec<(u8, i64, i64)> = Vec::new();
        let (mut now, mut monotonic) = (0, 0);
        for _ in 0..20_000 {
            now += random.i64(0..3);
            monotonic += random.i64(0..3);
            let number = random.u8(0..60);
            match random.u8(0..4) {
                0 => {
                    let due_at = now + random.i64(-20..40);
                    schedule.put(id(100), (due_at, u64::from(number), id(number)), true);
                    list.retain(|(other, ..)| *other != number);
                    list.push((number, due_at, i64::MIN));
                }
                1 => {
                    schedule.remove(id(number));
                    list.retain(|(other, ..)| *other != number);
                }
                2 => {
                    // In practice a claim always follows a poll.
                    let _ = due(&mut schedule, now, monotonic);
                    let until = monotonic + random.i64(1..30);
                    schedule.claim(id(number), until);
                    for entry in &mut list {
                        if entry.0 == number && entry.2 <= monotonic {
                            entry.2 = until;
                        }
                    }
                }
                _ => {
                    let mut expected: Vec<_> = list
                        .iter()
                        .filter(|(_, due_at, until)| *due_at <= now && *until <= monotonic)
                        .map(|(number, due_at, _)| (*due_at, *number))
                        .collect();
                    expected.sort_unstable();
                    let expected: Vec<_> = expected.into_iter().map(|(_, number)| number).collect();
                    assert_eq!(due(&mut schedule, now, monotonic), expected, "seed {seed}");
                }
            }
        }
    }
}
