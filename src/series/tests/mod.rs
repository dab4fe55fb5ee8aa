//! The index against a model, over checkpoints, merges and restarts; and the entries of the first version, which stay
//! readable.

mod forgotten;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use disk::sim::SimDisk;
use engine::{SERIES_ORDINALS_FROM, SeriesRef, Store};
use fastrand::Rng;
use roaring::RoaringBitmap;

use super::{
    ForgettingBudget, Labels, LabelsWriter, Matcher, NewSeries, Pattern, SeriesIndex, digest_of, new_entries,
};
use crate::catalog::{FrozenTail, SeriesEntry, bucket_owner, series_owner};
use crate::ledger::{Keep, LedgerError, LedgerFiles, NewEntry};

const BUCKET: u32 = 3;
const SOURCES: u32 = 3;
const NAMES: [&str; 3] = ["host", "a name of more than six bytes", "é"];

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let mut writer = LabelsWriter::default();
    pairs.iter().for_each(|(name, value)| writer.push(name, value));
    let mut encoded = Vec::new();
    writer.encode(&mut encoded);
    Labels::decode(&encoded).unwrap()
}

fn files(disk: &SimDisk, named: &[u64]) -> LedgerFiles {
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    LedgerFiles::open(port, Path::new("data"), named).unwrap_or_else(|error| panic!("{error}"))
}

/// The bucket and these sources exist.
fn keep(sources: impl IntoIterator<Item = u32>) -> Keep {
    let sources = sources
        .into_iter()
        .map(|source| series_owner(SeriesEntry::All, BUCKET, source));
    let owners: HashSet<_> = sources.chain([bucket_owner(BUCKET)]).collect();
    Keep::new(owners, i64::MIN)
}

/// Takes the series of all sources that are in the ledger, as if none had points.
fn without_points(index: &SeriesIndex) -> Vec<NewSeries> {
    let mut budget = ForgettingBudget::default();
    index
        .find_without_points(Store::new().view(), |_| true, &mut budget)
        .unwrap();
    index.take_without_points()
}

fn checkpoint(index: &SeriesIndex, files: &mut LedgerFiles, keep: &Keep) {
    let unsaved = index.unsaved();
    let entries = new_entries(BUCKET, files.ledger(), &unsaved).unwrap();
    let runs = files
        .save(&FrozenTail::default(), entries.iter().collect(), keep)
        .unwrap();
    files.adopt(runs);
    index.saved(&unsaved);
    if let Some(runs) = files.merge(keep).unwrap() {
        files.adopt(runs);
    }
    files.remove_unused();
}

struct World {
    rng: Rng,
    files: LedgerFiles,
    disk: SimDisk,
    index: SeriesIndex,
    /// Labels by source and ordinal.
    model: BTreeMap<u32, BTreeMap<u32, BTreeMap<String, String>>>,
    forgotten: BTreeSet<u32>,
}

impl World {
    fn value(&mut self) -> String {
        // Some values have the same first bytes, some are prefixes of others, one is empty.
        let texts = ["", "v", "value", "value-", "value-1", "value-2", "é", "zz"];
        let text = self.rng.choice(texts).unwrap_or_default();
        match self.rng.u8(0..3) {
            0 => text.to_owned(),
            _ => format!("{text}{}", self.rng.u8(0..40)),
        }
    }

    fn add(&mut self) {
        for _ in 0..self.rng.usize(1..200) {
            let source = self.rng.u32(0..SOURCES);
            let mut own = BTreeMap::new();
            for name in NAMES {
                if self.rng.u8(0..4) > 0 {
                    own.insert(name.to_owned(), self.value());
                }
            }
            let pairs: Vec<(&str, &str)> = own
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let labels = labels(&pairs);
            let digest = digest_of(source, labels.as_bytes());
            let known = self.model.entry(source).or_default();
            let expected = known
                .iter()
                .find(|(_, labels)| **labels == own)
                .map(|(ordinal, _)| *ordinal);
            assert_eq!(self.index.find(source, &digest).unwrap(), expected, "{own:?}");
            if expected.is_none() {
                let ordinal = self.index.take_ordinal().unwrap();
                let series = SeriesRef { ordinal, source };
                self.index.add(&[NewSeries { series, labels }]);
                assert!(known.insert(ordinal, own).is_none(), "an ordinal is used once");
            }
        }
    }

    /// Forgets some of the series that are in the ledger, as if they had lost their points.
    fn forget(&mut self) {
        let mut saved = without_points(&self.index);
        for it in &saved {
            assert!(
                self.model[&it.series.source].contains_key(&it.series.ordinal),
                "{it:?} was forgotten before"
            );
        }
        let share = self.rng.u8(1..5);
        saved.retain(|_| self.rng.u8(0..share) == 0);
        for it in &saved {
            let known = self.model.entry(it.series.source).or_default();
            assert!(known.remove(&it.series.ordinal).is_some());
            self.forgotten.insert(it.series.ordinal);
        }
        self.index.forget(saved);
    }

    fn checkpoint(&mut self) {
        checkpoint(&self.index, &mut self.files, &keep(0..SOURCES));
    }

    /// What no checkpoint has is added again, as a replay does; then the same series are found without points.
    fn restart(&mut self) {
        let unsaved = self.index.unsaved();
        let named = self.files.ledger().runs().ids();
        self.files = files(&self.disk, &named);
        self.index = SeriesIndex::open(BUCKET, self.files.ledger().clone()).unwrap();
        for added in &unsaved.series {
            self.index.add(added);
        }
        for forgotten in &unsaved.forgotten {
            self.index.forget(forgotten.to_vec());
        }
    }

    fn compare(&mut self) {
        for source in 0..SOURCES {
            let model = self.model.entry(source).or_default().clone();
            let mut all: RoaringBitmap = model.keys().copied().collect();
            if self.rng.bool() {
                // Few series are looked up one by one.
                all = all.iter().filter(|ordinal| ordinal % 7 == 0).collect();
            }
            let among: BTreeMap<&u32, &BTreeMap<String, String>> = model
                .iter()
                .filter(|(ordinal, _)| all.contains(**ordinal))
                .collect();
            let names: BTreeSet<&String> = among.values().flat_map(|labels| labels.keys()).collect();
            let found = self.index.all_names(source, &all).unwrap();
            assert_eq!(
                found.iter().map(|name| &**name).collect::<Vec<_>>(),
                names.iter().map(|name| name.as_str()).collect::<Vec<_>>()
            );
            for name in NAMES {
                let having: RoaringBitmap = among
                    .iter()
                    .filter(|(_, labels)| labels.contains_key(name))
                    .map(|(ordinal, _)| **ordinal)
                    .collect();
                let any = |ordinal| Ok::<_, LedgerError>(all.contains(ordinal));
                assert_eq!(
                    self.index.any_having(source, name, any).unwrap(),
                    !having.is_empty()
                );
                assert_eq!(self.index.having(source, name, &all).unwrap(), having);
                for prefix in ["", "v", "value-1", "nothing"] {
                    let mut expected: BTreeMap<Box<str>, RoaringBitmap> = BTreeMap::new();
                    for (ordinal, labels) in &among {
                        if let Some(value) = labels.get(name).filter(|value| value.starts_with(prefix)) {
                            expected
                                .entry(value.as_str().into())
                                .or_default()
                                .insert(**ordinal);
                        }
                    }
                    assert_eq!(
                        self.index.values(source, name, prefix, &all).unwrap(),
                        expected,
                        "{name} {prefix}"
                    );
                    let counted = self.index.count_values(source, name, prefix, &all).unwrap();
                    let counts = expected.into_iter().map(|(value, series)| (value, series.len()));
                    assert_eq!(counted, counts.collect::<Vec<_>>(), "{name} {prefix}");
                }
                let some = [None, Some(self.value().into()), Some("value-1".into())];
                let pattern = || Pattern::parse("value.*|", false).unwrap();
                for matcher in [
                    Matcher::In([some[1].clone()].into()),
                    Matcher::In(some.clone().into()),
                    Matcher::NotIn(some.clone().into()),
                    Matcher::NotIn([None].into()),
                    Matcher::Matches(pattern()),
                    Matcher::NotMatches(pattern()),
                ] {
                    let passing = among
                        .iter()
                        .filter(|(_, labels)| matcher.passes(labels.get(name).map(String::as_str)));
                    let expected: RoaringBitmap = passing.map(|(ordinal, _)| **ordinal).collect();
                    assert_eq!(
                        self.index.select(source, name, &matcher, &all).unwrap(),
                        expected,
                        "{matcher}"
                    );
                }
            }
            for (ordinal, expected) in among.iter().take(20) {
                let series = SeriesRef {
                    ordinal: **ordinal,
                    source,
                };
                let found = self.index.labels(series).unwrap().unwrap();
                let found: BTreeMap<String, String> = found
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                assert_eq!(found, **expected);
            }
        }
    }
}

/// The seed of this run, printed so that a failure can be repeated.
pub(super) fn seed() -> u64 {
    let given = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(20_262);
    println!("TIDEWATCH_SEED={seed}");
    seed
}

#[test]
fn the_index_agrees_with_a_model() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let mut world = World {
        rng: Rng::with_seed(seed),
        files,
        disk,
        index,
        model: BTreeMap::new(),
        forgotten: BTreeSet::new(),
    };
    for _ in 0..25 {
        world.add();
        if world.rng.u8(0..3) == 0 {
            world.forget();
        }
        if world.rng.u8(0..3) == 0 {
            // As a checkpoint does that fails afterwards.
            new_entries(BUCKET, world.files.ledger(), &world.index.unsaved()).unwrap();
        }
        if world.rng.u8(0..3) > 0 {
            world.checkpoint();
        }
        if world.rng.u8(0..3) == 0 {
            world.restart();
        }
        world.compare();
    }
    world.checkpoint();
    world.restart();
    let mut saved = BTreeMap::<u32, BTreeSet<u32>>::new();
    world
        .index
        .for_each_saved(|series| {
            saved.entry(series.source).or_default().insert(series.ordinal);
        })
        .unwrap();
    let mut by_digest = BTreeMap::<u32, BTreeSet<u32>>::new();
    world
        .index
        .for_each_digest(|series| {
            by_digest.entry(series.source).or_default().insert(series.ordinal);
        })
        .unwrap();
    let expected: BTreeMap<u32, BTreeSet<u32>> = world
        .model
        .iter()
        .map(|(source, series)| (*source, series.keys().copied().collect()))
        .collect();
    assert_eq!((&saved, &by_digest), (&expected, &expected));
    let mut forgotten = BTreeSet::new();
    world
        .index
        .for_each_forgotten(|ordinal| {
            forgotten.insert(ordinal);
        })
        .unwrap();
    assert!(forgotten.len() > 100, "{}", forgotten.len());
    assert_eq!(forgotten, world.forgotten);
}

#[test]
fn the_entries_of_a_deleted_source_are_dropped_by_a_merge() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    for round in 0..2 {
        let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
        for source in 0..2 {
            let ordinal = index.take_ordinal().unwrap();
            let series = SeriesRef { ordinal, source };
            let value = round.to_string();
            index.add(&[NewSeries {
                series,
                labels: labels(&[("host", value.as_str())]),
            }]);
        }
        let unsaved = index.unsaved();
        let entries = new_entries(BUCKET, files.ledger(), &unsaved).unwrap();
        let runs = files
            .save(&FrozenTail::default(), entries.iter().collect(), &keep([1]))
            .unwrap();
        files.adopt(runs);
    }
    if let Some(runs) = files.merge(&keep([1])).unwrap() {
        files.adopt(runs);
    }
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let mut sources = Vec::new();
    index
        .for_each_digest(|series| sources.push(series.source))
        .unwrap();
    assert_eq!(sources, [1, 1], "only those of the source that exists");
    assert_eq!(
        index.take_ordinal(),
        Some(SERIES_ORDINALS_FROM + 4),
        "ordinals are never used again"
    );
}

#[test]
fn entries_of_version_1_are_what_they_were() {
    let disk = SimDisk::new(1);
    let files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    for (source, pairs) in [
        (0, &[("host", "a"), ("line", "long value")][..]),
        (7, &[("host", "a")][..]),
        (7, &[][..]),
    ] {
        let ordinal = index.take_ordinal().unwrap();
        let series = SeriesRef { ordinal, source };
        index.add(&[NewSeries {
            series,
            labels: labels(pairs),
        }]);
    }
    let mut entries = new_entries(BUCKET, files.ledger(), &index.unsaved()).unwrap();
    entries.sort_by_key(|entry| entry.key);
    let mut present = Vec::new();
    for NewEntry { key, payload } in &entries {
        present.extend_from_slice(key.owner.as_bytes());
        present.extend_from_slice(&key.at_ns.to_be_bytes());
        present.extend_from_slice(key.id.as_bytes());
        present.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        present.extend_from_slice(payload);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/series-1.bin");
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, &present).unwrap();
    }
    assert!(
        std::fs::read(path).unwrap() == present,
        "keys and payloads are stored: they never change"
    );
}
