//! Objects of the catalog: the newest versions in order, without removed ones.

use std::collections::{BTreeMap, HashSet};

use disk::sim::{Crash, SimDisk};
use fastrand::Rng;

use super::{id, open};
use crate::catalog::{EntryKey, FrozenTail, Stream};
use crate::ids::ObjectId;
use crate::ledger::{Keep, LedgerError, LedgerFiles, NewEntry};

type Place = (ObjectId, i64, ObjectId);

/// No owner exists, and everything that can expire has expired.
fn keep() -> Keep {
    Keep::new(HashSet::new(), i64::MAX)
}

fn object((owner, at_ns, id): Place, payload: &[u8]) -> NewEntry {
    NewEntry {
        key: EntryKey {
            stream: Stream::Catalog,
            owner,
            at_ns,
            id,
        },
        payload: payload.into(),
    }
}

fn save(files: &mut LedgerFiles, entries: &[NewEntry]) {
    let runs = files
        .save(&FrozenTail::default(), entries.iter().collect(), &keep())
        .unwrap();
    files.adopt(runs);
    files.remove_unused();
}

fn merge(files: &mut LedgerFiles) -> bool {
    let merged = files.merge(&keep()).unwrap();
    let has_merged = merged.is_some();
    if let Some(runs) = merged {
        files.adopt(runs);
        files.remove_unused();
    }
    has_merged
}

fn all(files: &LedgerFiles) -> Result<Vec<(Place, Vec<u8>)>, LedgerError> {
    let mut found = Vec::new();
    files.for_each(Stream::Catalog, |owner, at_ns, id, payload| {
        found.push(((owner, at_ns, id), payload.to_vec()));
        Ok::<_, LedgerError>(())
    })?;
    Ok(found)
}

#[test]
fn the_stream_agrees_with_a_map_of_all_objects() {
    let given = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(20_261);
    println!("TIDEWATCH_SEED={seed}");
    let (mut rng, disk) = (Rng::with_seed(seed), SimDisk::new(seed));
    let mut files = open(&disk, &[]);
    let mut model: BTreeMap<Place, Vec<u8>> = BTreeMap::new();
    let mut most_runs = 0;
    for round in 0..60_u32 {
        let mut changed: BTreeMap<Place, Vec<u8>> = BTreeMap::new();
        for _ in 0..rng.usize(0..200) {
            let place = (id(0, rng.u64(0..5)), rng.i64(-3..3), id(0, rng.u64(0..30)));
            let gone = rng.u8(0..3) == 0;
            let payload = if gone {
                Vec::new()
            } else {
                vec![round as u8; rng.usize(1..9)]
            };
            changed.insert(place, payload);
        }
        let mut entries: Vec<_> = changed.iter().map(|(place, it)| object(*place, it)).collect();
        rng.shuffle(&mut entries);
        save(&mut files, &entries);
        model.extend(changed);
        model.retain(|_, payload| !payload.is_empty());
        most_runs = most_runs.max(files.ledger().stats().runs);
        let expected: Vec<_> = model.iter().map(|(place, it)| (*place, it.clone())).collect();
        assert_eq!(all(&files).unwrap(), expected);
        if rng.u8(0..5) == 0 {
            merge(&mut files);
            assert_eq!(all(&files).unwrap(), expected);
        }
        if rng.u8(0..5) == 0 {
            files = open(&disk.crash(Crash::KINDS[1]), &files.ledger().runs().ids());
            assert_eq!(all(&files).unwrap(), expected);
            files = open(&disk, &files.ledger().runs().ids());
        }
    }
    assert!(most_runs > 3, "at most {most_runs} runs");
}

#[test]
fn a_tombstone_is_kept_until_the_oldest_version_is_merged() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let place = |number| (id(0, 1), 0, id(0, number));
    let large = vec![1; 2 << 20];
    save(
        &mut files,
        &[object(place(1), &large), object(place(2), b"there")],
    );
    save(&mut files, &[object(place(1), b"")]);
    let places = |files: &LedgerFiles| -> Vec<Place> {
        let found = all(files).unwrap().into_iter();
        found.map(|(place, _)| place).collect()
    };
    assert_eq!(places(&files), [place(2)]);
    for version in ["first", "second", "third", "fourth", "fifth"] {
        assert!(!merge(&mut files), "too few are of one size");
        save(&mut files, &[object(place(3), version.as_bytes())]);
    }
    assert_eq!(files.ledger().stats().runs, 7);
    assert!(merge(&mut files), "the six small ones");
    assert_eq!(files.ledger().stats().runs, 2);
    assert_eq!(files.ledger().stats().entries, 4, "it overrides the oldest run's");
    assert_eq!(places(&files), [place(2), place(3)]);
    // Large enough that the oldest run is merged, too.
    for _ in 0..4 {
        save(&mut files, &[object(place(4), &large)]);
    }
    assert!(merge(&mut files));
    assert_eq!(files.ledger().stats().runs, 1);
    assert_eq!(files.ledger().stats().entries, 3, "nothing is left to override");
    assert_eq!(places(&files), [place(2), place(3), place(4)]);
    // It may be created again.
    save(&mut files, &[object(place(1), b"again")]);
    assert_eq!(places(&files), [place(1), place(2), place(3), place(4)]);
    let everything: Vec<_> = (1..5).map(|number| object(place(number), b"")).collect();
    save(&mut files, &everything);
    assert_eq!(places(&files), []);
    for _ in 0..3 {
        save(&mut files, &[object(place(5), &large)]);
    }
    assert!(merge(&mut files));
    assert_eq!(files.ledger().stats().entries, 1);
}

#[test]
fn a_damaged_object_is_reported_by_file_and_offset() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let entries: Vec<_> = (0..3)
        .map(|number| object((id(0, number), 0, id(0, number)), b"object"))
        .collect();
    save(&mut files, &entries);
    let path = disk.files().into_keys().next().unwrap();
    disk.flip_bit(&path, 16 + 6, 0);
    let files = open(&disk, &files.ledger().runs().ids());
    let message = all(&files).unwrap_err().to_string();
    assert!(
        message.contains(&*path.to_string_lossy()) && message.contains("offset 22"),
        "{message}"
    );
}
