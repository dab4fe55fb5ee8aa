//! Random operations compared with a naive model: a map of all entries. Lists and look-ups must agree with it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use disk::sim::SimDisk;
use fastrand::Rng;

use super::{id, open};
use crate::catalog::{EntryKey, LedgerTail, Stream};
use crate::clock::{DAY_NS, SECOND_NS};
use crate::ids::ObjectId;
use crate::ledger::{Content, Keep, LedgerFiles, View, runs_dir};

const START_NS: i64 = 1_700_000_000 * SECOND_NS;
const STEPS: usize = 400;

struct World {
    rng: Rng,
    disk: SimDisk,
    files: LedgerFiles,
    tail: LedgerTail,
    /// The runs that the manifest names.
    named: Vec<u64>,
    now_ns: i64,
    owners: Vec<ObjectId>,
    next: u64,
    /// All entries, the newest version of each.
    model: BTreeMap<EntryKey, Vec<u8>>,
    most_runs: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = SimDisk::new(seed);
        Self {
            rng: Rng::with_seed(seed),
            files: open(&disk, &[]),
            disk,
            tail: LedgerTail::default(),
            named: Vec::new(),
            now_ns: START_NS,
            owners: (1..5).map(|owner| id(0, owner)).collect(),
            next: 5,
            model: BTreeMap::new(),
            most_runs: 0,
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        self.next += 1;
        let mut payload = self.next.to_le_bytes().to_vec();
        payload.resize(8 + self.rng.usize(0..200), 7);
        payload
    }

    fn put(&mut self, key: EntryKey, again: bool) {
        let payload = self.payload();
        self.tail.put(key, payload[..].into(), again);
        self.model.insert(key, payload);
    }

    fn put_new(&mut self) {
        for _ in 0..self.rng.usize(1..120) {
            let at_ns = self.now_ns - self.rng.i64(0..20) * SECOND_NS / 4;
            // Occasionally, the clock was changed between id and entry.
            let stepped = if self.rng.u8(0..20) == 0 { 3_600 } else { 0 };
            self.next += 1;
            let key = EntryKey {
                stream: self.rng.choice(Stream::OF_TAIL).unwrap(),
                owner: *self.rng.choice(&self.owners).unwrap(),
                at_ns,
                id: id((at_ns.div_euclid(SECOND_NS) - stepped) as u32, self.next),
            };
            self.put(key, false);
        }
    }

    fn put_again(&mut self) {
        for _ in 0..self.rng.usize(1..20) {
            let kept: Vec<EntryKey> = self
                .model
                .keys()
                .filter(|key| self.is_kept(key))
                .copied()
                .collect();
            if let Some(key) = self.rng.choice(kept) {
                self.put(key, true);
            }
        }
    }

    fn is_kept(&self, key: &EntryKey) -> bool {
        self.owners.contains(&key.owner) && key.at_ns >= key.stream.cutoff_ns(self.now_ns)
    }

    fn keep(&self) -> Keep {
        Keep::new(self.owners.iter().copied().collect::<HashSet<_>>(), self.now_ns)
    }

    fn checkpoint(&mut self) {
        self.tail.freeze();
        let (frozen, keep) = (self.tail.frozen(), self.keep());
        let runs = self.files.save(&frozen, Vec::new(), &keep).unwrap();
        match self.rng.u8(0..8) {
            // The manifest could not be written.
            0 => self.files.remove_unnamed(&self.named),
            // The machine crashed before the manifest was written.
            1 => self.restart(),
            _ => {
                self.named = runs.ids();
                self.tail.forget(&frozen);
                self.files.adopt(runs);
                self.files.remove_unused();
            }
        }
    }

    fn merge(&mut self) {
        if let Some(runs) = self.files.merge(&self.keep()).unwrap() {
            self.named = runs.ids();
            self.files.adopt(runs);
            self.files.remove_unused();
        }
    }

    /// The entries in the log are in memory again; the files are those named by the manifest.
    fn restart(&mut self) {
        self.files = open(&self.disk, &self.named);
        self.files.remove_unused();
    }

    fn step(&mut self) {
        match self.rng.u8(0..100) {
            0..45 => self.put_new(),
            45..55 => self.put_again(),
            55..80 => self.checkpoint(),
            80..84 => self.merge(),
            84..90 => self.restart(),
            90..97 => self.now_ns += self.rng.i64(0..2 * DAY_NS),
            97 => self.now_ns += 40 * DAY_NS,
            _ => {
                let gone = self.rng.usize(0..self.owners.len());
                self.next += 1;
                self.owners[gone] = id(0, self.next);
            }
        }
        self.most_runs = self.most_runs.max(self.named.len());
        let named: Vec<_> = self
            .named
            .iter()
            .map(|run| runs_dir(Path::new("data")).file_path(*run))
            .collect();
        assert_eq!(
            self.disk.files().into_keys().collect::<HashSet<_>>(),
            named.into_iter().collect()
        );
    }

    fn check(&mut self) {
        let stream = self.rng.choice(Stream::OF_TAIL).unwrap();
        let owner = *self.rng.choice(&self.owners).unwrap();
        let not_before_ns = stream.cutoff_ns(self.now_ns);
        let of_owner = |(key, payload): (&EntryKey, &Vec<u8>)| {
            let listed = (key.stream, key.owner) == (stream, owner) && key.at_ns >= not_before_ns;
            listed.then(|| ((key.at_ns, key.id), payload.clone()))
        };
        let mut expected: BTreeMap<_, _> = self.model.iter().filter_map(of_owner).collect();
        // Deliveries that become pending again, and new ones.
        let mut pending = Vec::new();
        for _ in 0..self.rng.usize(0..4) {
            let again = self.rng.choice(expected.keys().copied().collect::<Vec<_>>());
            let again = again.filter(|_| self.rng.bool());
            let payload = self.payload();
            let place = again.unwrap_or((self.now_ns, id((self.now_ns / SECOND_NS) as u32, self.next)));
            expected.insert(place, payload.clone());
            pending.push((place.0, place.1, again.is_some(), payload));
        }
        let runs = self.files.ledger().runs();
        let view = View::new(runs, &self.tail, stream, owner, pending);
        let readable = |content: Content<Vec<u8>>| match content {
            Content::Stored(payload) => payload.to_vec(),
            Content::Given(payload) => payload,
        };
        let (offset, limit) = match self.rng.u8(0..3) {
            0 => (0, 20),
            1 => (self.rng.u64(0..=expected.len() as u64 + 2), self.rng.usize(0..30)),
            _ => (0, usize::MAX),
        };
        let page = view.page(not_before_ns, offset, limit).unwrap();
        assert!(page.damaged.is_empty(), "{:?}", page.damaged);
        assert_eq!(page.total, expected.len() as u64);
        let found = page
            .entries
            .into_iter()
            .map(|(key, content)| ((key.at_ns, key.id), readable(content)));
        let found: Vec<_> = found.collect();
        let listed: Vec<_> = expected
            .iter()
            .rev()
            .skip(offset as usize)
            .take(limit)
            .map(|(place, payload)| (*place, payload.clone()))
            .collect();
        assert!(
            found == listed,
            "offset {offset}, limit {limit}, of {}",
            expected.len()
        );
        let any = self.rng.choice(self.model.keys().copied().collect::<Vec<_>>());
        for entry in [any.map(|key| key.id), Some(id(1, 1))].into_iter().flatten() {
            let found = view
                .get(entry, not_before_ns)
                .unwrap()
                .map(|(key, content)| ((key.at_ns, key.id), readable(content)));
            let by_id = expected.iter().find(|(place, _)| place.1 == entry);
            assert_eq!(found, by_id.map(|(place, payload)| (*place, payload.clone())));
        }
    }
}

#[test]
fn lists_and_look_ups_agree_with_a_map_of_all_entries() {
    let first = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261);
    let mut most_runs = 0;
    for seed in first..first + 8 {
        println!("TIDEWATCH_SEED={seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        most_runs = most_runs.max(world.most_runs);
    }
    assert!(most_runs > 6, "at most {most_runs} runs");
}
