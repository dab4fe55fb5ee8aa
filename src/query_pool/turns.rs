//! Fair scheduling of queries: organizations are served round-robin, however many queries each of them has queued, and
//! none of them occupies more than half of the queue. Short turns have a lane of their own.

use std::collections::{HashMap, VecDeque};

use super::Turn;
use crate::ids::ObjectId;

/// The queued jobs of all organizations, limited in number.
pub struct Turns<J> {
    /// Not planned yet, or found to be cheap.
    short: Lane<J>,
    /// Known to be long.
    long: Lane<J>,
    /// Number of queued jobs.
    pub waiting: usize,
    pub waiting_max: usize,
    /// Set when the pool ends.
    pub closed: bool,
}

/// The jobs of one lane by organization, and the order in which organizations are served.
struct Lane<J> {
    order: VecDeque<ObjectId>,
    jobs: HashMap<ObjectId, VecDeque<J>>,
}

impl<J> Turns<J> {
    pub fn new(waiting_max: usize) -> Self {
        Turns {
            short: Lane::new(),
            long: Lane::new(),
            waiting: 0,
            waiting_max,
            closed: false,
        }
    }

    #[cfg(test)]
    pub fn waiting_long(&self) -> usize {
        self.long.jobs.values().map(VecDeque::len).sum()
    }

    /// Queues a job after those of its organization; returns it as an error if there is no room. If the queue is full,
    /// an organization with fewer jobs displaces the newest job of the organization with the most, which is returned.
    pub fn push(&mut self, organization: ObjectId, turn: Turn, job: J) -> Result<Option<J>, J> {
        let held = self.held(organization);
        if held >= (self.waiting_max / 2).max(1) {
            return Err(job);
        }
        let mut evicted = None;
        if self.waiting >= self.waiting_max {
            let all = self.short.jobs.keys().chain(self.long.jobs.keys());
            let most = all.copied().max_by_key(|other| self.held(*other));
            let most = most.filter(|other| self.held(*other) > held + 1);
            evicted = most.and_then(|other| self.evict(other));
            if evicted.is_none() {
                return Err(job);
            }
        }
        self.waiting += 1;
        self.lane(turn).push(organization, job);
        Ok(evicted)
    }

    /// Number of jobs of an organization.
    fn held(&self, organization: ObjectId) -> usize {
        let jobs = [&self.short, &self.long].map(|lane| lane.jobs.get(&organization));
        jobs.into_iter().flatten().map(VecDeque::len).sum()
    }

    /// Removes the newest job of an organization, preferably a long one.
    fn evict(&mut self, organization: ObjectId) -> Option<J> {
        let job = self.long.pop_newest(organization);
        let job = job.or_else(|| self.short.pop_newest(organization))?;
        self.waiting -= 1;
        Some(job)
    }

    /// The next job of a lane: that of the organization that was served least recently.
    pub fn pop(&mut self, turn: Turn) -> Option<(ObjectId, J)> {
        let next = self.lane(turn).pop()?;
        self.waiting -= 1;
        Some(next)
    }

    fn lane(&mut self, turn: Turn) -> &mut Lane<J> {
        match turn {
            Turn::Immediate | Turn::Short => &mut self.short,
            Turn::Long => &mut self.long,
        }
    }
}

impl<J> Lane<J> {
    fn new() -> Self {
        Lane {
            order: VecDeque::new(),
            jobs: HashMap::new(),
        }
    }

    fn push(&mut self, organization: ObjectId, job: J) {
        let jobs = self.jobs.entry(organization).or_default();
        if jobs.is_empty() {
            self.order.push_back(organization);
        }
        jobs.push_back(job);
    }

    fn pop_newest(&mut self, organization: ObjectId) -> Option<J> {
        let jobs = self.jobs.get_mut(&organization)?;
        let job = jobs.pop_back()?;
        if jobs.is_empty() {
            self.jobs.remove(&organization);
            self.order.retain(|other| *other != organization);
        }
        Some(job)
    }

    fn pop(&mut self) -> Option<(ObjectId, J)> {
        let organization = self.order.pop_front()?;
        let jobs = self.jobs.get_mut(&organization)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.jobs.remove(&organization);
        } else {
            self.order.push_back(organization);
        }
        Some((organization, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn organization(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    fn drained(turns: &mut Turns<&'static str>, turn: Turn) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop(turn))
            .map(|(_, job)| job)
            .collect()
    }

    #[test]
    fn organizations_take_turns() {
        let mut turns = Turns::new(100);
        for job in ["a1", "a2", "a3", "a4"] {
            turns.push(organization(1), Turn::Long, job).unwrap();
        }
        turns.push(organization(2), Turn::Long, "b1").unwrap();
        turns.push(organization(3), Turn::Long, "c1").unwrap();
        turns.push(organization(2), Turn::Long, "b2").unwrap();
        assert_eq!(
            drained(&mut turns, Turn::Long),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
        );
        assert_eq!(turns.waiting, 0);
        assert!(turns.long.jobs.is_empty(), "nothing is left behind");
    }

    #[test]
    fn one_organization_holds_at_most_half_of_the_slots() {
        let mut turns = Turns::new(4);
        turns.push(organization(1), Turn::Short, "a1").unwrap();
        turns.push(organization(1), Turn::Long, "a2").unwrap();
        assert_eq!(turns.push(organization(1), Turn::Short, "a3"), Err("a3"));
        turns.push(organization(2), Turn::Long, "b1").unwrap();
        turns.push(organization(3), Turn::Long, "c1").unwrap();
        assert_eq!(
            turns.push(organization(4), Turn::Long, "d1"),
            Ok(Some("a2")),
            "all places are taken, two of them by one"
        );
        assert_eq!(
            turns.push(organization(5), Turn::Long, "e1"),
            Err("e1"),
            "all places are taken, each by another"
        );
        assert_eq!(drained(&mut turns, Turn::Long), ["b1", "c1", "d1"]);
        turns.push(organization(1), Turn::Short, "a3").unwrap();
        assert_eq!(drained(&mut turns, Turn::Short), ["a1", "a3"]);
    }

    /// Regression: two organizations that filled the queue caused all others to be refused.
    #[test]
    fn an_organization_with_few_slots_gets_one_from_the_largest() {
        let mut turns = Turns::new(4);
        for job in ["a1", "a2"] {
            turns.push(organization(1), Turn::Long, job).unwrap();
        }
        turns.push(organization(2), Turn::Short, "b1").unwrap();
        turns.push(organization(2), Turn::Long, "b2").unwrap();
        assert!(turns.push(organization(3), Turn::Short, "c1").unwrap().is_some());
        assert_eq!(turns.waiting, 4);
        assert_eq!(
            turns.push(organization(3), Turn::Short, "c2"),
            Err("c2"),
            "as many as the others"
        );
        let mut left = drained(&mut turns, Turn::Short);
        left.extend(drained(&mut turns, Turn::Long));
        assert!(left.contains(&"c1") && left.len() == 4, "{left:?}");
        assert!(turns.short.jobs.is_empty() && turns.long.jobs.is_empty() && turns.long.order.is_empty());
    }

    #[test]
    fn a_single_slot_can_be_taken() {
        let mut turns = Turns::new(1);
        turns.push(organization(1), Turn::Long, "a").unwrap();
        assert_eq!(turns.push(organization(2), Turn::Long, "b"), Err("b"));
    }

    #[test]
    fn lanes_are_independent() {
        let mut turns = Turns::new(100);
        turns.push(organization(1), Turn::Long, "long").unwrap();
        turns.push(organization(2), Turn::Short, "cheap").unwrap();
        assert_eq!(drained(&mut turns, Turn::Short), ["cheap"]);
        assert_eq!(drained(&mut turns, Turn::Long), ["long"]);
    }
}
