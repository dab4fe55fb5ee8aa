//! Fair scheduling of queries: organizations are served round-robin, however many queries each of them has queued, and
//! none of them occupies more than half of the queue. Cheap queries have a lane of their own.

use std::collections::{HashMap, VecDeque};

use crate::ids::ObjectId;

/// Queries that are queued together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Not planned yet, or found to be cheap.
    Cheap,
    /// Known to be long.
    Long,
}

/// The queued jobs of all organizations, limited in number.
pub struct Turns<J> {
    cheap: Round<J>,
    long: Round<J>,
    places: HashMap<ObjectId, usize>,
    waiting: usize,
    waiting_max: usize,
    share_max: usize,
}

/// The jobs of one lane by organization, and the order in which organizations are served.
struct Round<J> {
    order: VecDeque<ObjectId>,
    jobs: HashMap<ObjectId, VecDeque<J>>,
}

impl<J> Turns<J> {
    pub fn new(waiting_max: usize) -> Self {
        Turns {
            cheap: Round::default(),
            long: Round::default(),
            places: HashMap::new(),
            waiting: 0,
            waiting_max,
            share_max: (waiting_max / 2).max(1),
        }
    }

    /// Number of queued jobs.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    #[cfg(test)]
    pub fn waiting_long(&self) -> usize {
        self.long.jobs.values().map(VecDeque::len).sum()
    }

    /// Maximum number of queued jobs.
    pub fn waiting_max(&self) -> usize {
        self.waiting_max
    }

    /// Queues a job after those of its organization; returns it as an error if there is no room. If the queue is full,
    /// an organization with fewer jobs displaces the newest job of the organization with the most, which is returned.
    pub fn push(&mut self, organization: ObjectId, lane: Lane, job: J) -> Result<Option<J>, J> {
        let held = self.held(organization);
        if held >= self.share_max {
            return Err(job);
        }
        let mut evicted = None;
        if self.waiting >= self.waiting_max {
            let most = self.places.iter().max_by_key(|(_, places)| **places);
            evicted = match most.map(|(other, places)| (*other, *places)) {
                Some((other, places)) if places > held + 1 => self.evict(other),
                _ => None,
            };
            if evicted.is_none() {
                return Err(job);
            }
        }
        self.places.insert(organization, held + 1);
        self.waiting += 1;
        self.lane(lane).push(organization, job);
        Ok(evicted)
    }

    fn held(&self, organization: ObjectId) -> usize {
        self.places.get(&organization).copied().unwrap_or(0)
    }

    /// Removes the newest job of an organization, preferably a long one.
    fn evict(&mut self, organization: ObjectId) -> Option<J> {
        let job = self.long.pop_newest(organization);
        let job = job.or_else(|| self.cheap.pop_newest(organization))?;
        self.leave(organization);
        Some(job)
    }

    fn leave(&mut self, organization: ObjectId) {
        self.waiting -= 1;
        if let Some(held) = self.places.get_mut(&organization) {
            *held -= 1;
            if *held == 0 {
                self.places.remove(&organization);
            }
        }
    }

    /// The next job of a lane: that of the organization that was served least recently.
    pub fn pop(&mut self, lane: Lane) -> Option<(ObjectId, J)> {
        let (organization, job) = self.lane(lane).pop()?;
        self.leave(organization);
        Some((organization, job))
    }

    fn lane(&mut self, lane: Lane) -> &mut Round<J> {
        match lane {
            Lane::Cheap => &mut self.cheap,
            Lane::Long => &mut self.long,
        }
    }
}

impl<J> Default for Round<J> {
    fn default() -> Self {
        Round {
            order: VecDeque::new(),
            jobs: HashMap::new(),
        }
    }
}

impl<J> Round<J> {
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

    fn drained(turns: &mut Turns<&'static str>, lane: Lane) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop(lane))
            .map(|(_, job)| job)
            .collect()
    }

    #[test]
    fn organizations_take_turns() {
        let mut turns = Turns::new(100);
        for job in ["a1", "a2", "a3", "a4"] {
            turns.push(organization(1), Lane::Long, job).unwrap();
        }
        turns.push(organization(2), Lane::Long, "b1").unwrap();
        turns.push(organization(3), Lane::Long, "c1").unwrap();
        turns.push(organization(2), Lane::Long, "b2").unwrap();
        assert_eq!(
            drained(&mut turns, Lane::Long),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
        );
        assert_eq!(turns.waiting(), 0);
        assert!(
            turns.places.is_empty() && turns.long.jobs.is_empty(),
            "nothing is left behind"
        );
    }

    #[test]
    fn one_organization_holds_at_most_half_of_the_slots() {
        let mut turns = Turns::new(4);
        turns.push(organization(1), Lane::Cheap, "a1").unwrap();
        turns.push(organization(1), Lane::Long, "a2").unwrap();
        assert_eq!(turns.push(organization(1), Lane::Cheap, "a3"), Err("a3"));
        turns.push(organization(2), Lane::Long, "b1").unwrap();
        turns.push(organization(3), Lane::Long, "c1").unwrap();
        assert_eq!(
            turns.push(organization(4), Lane::Long, "d1"),
            Ok(Some("a2")),
            "all places are taken, two of them by one"
        );
        assert_eq!(
            turns.push(organization(5), Lane::Long, "e1"),
            Err("e1"),
            "all places are taken, each by another"
        );
        assert_eq!(drained(&mut turns, Lane::Long), ["b1", "c1", "d1"]);
        turns.push(organization(1), Lane::Cheap, "a3").unwrap();
        assert_eq!(drained(&mut turns, Lane::Cheap), ["a1", "a3"]);
    }

    /// Regression: two organizations that filled the queue caused all others to be refused.
    #[test]
    fn an_organization_with_few_slots_gets_one_from_the_largest() {
        let mut turns = Turns::new(4);
        for job in ["a1", "a2"] {
            turns.push(organization(1), Lane::Long, job).unwrap();
        }
        turns.push(organization(2), Lane::Cheap, "b1").unwrap();
        turns.push(organization(2), Lane::Long, "b2").unwrap();
        assert!(turns.push(organization(3), Lane::Cheap, "c1").unwrap().is_some());
        assert_eq!(turns.waiting(), 4);
        assert_eq!(
            turns.push(organization(3), Lane::Cheap, "c2"),
            Err("c2"),
            "as many as the others"
        );
        let mut left = drained(&mut turns, Lane::Cheap);
        left.extend(drained(&mut turns, Lane::Long));
        assert!(left.contains(&"c1") && left.len() == 4, "{left:?}");
        assert!(turns.places.is_empty() && turns.long.jobs.is_empty() && turns.long.order.is_empty());
    }

    #[test]
    fn a_single_slot_can_be_taken() {
        let mut turns = Turns::new(1);
        turns.push(organization(1), Lane::Long, "a").unwrap();
        assert_eq!(turns.push(organization(2), Lane::Long, "b"), Err("b"));
    }

    #[test]
    fn lanes_are_independent() {
        let mut turns = Turns::new(100);
        turns.push(organization(1), Lane::Long, "long").unwrap();
        turns.push(organization(2), Lane::Cheap, "cheap").unwrap();
        assert_eq!(drained(&mut turns, Lane::Cheap), ["cheap"]);
        assert_eq!(drained(&mut turns, Lane::Long), ["long"]);
    }
}
