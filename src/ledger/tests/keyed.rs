//! Entries of an owner within a range, of several files.

use std::collections::{BTreeMap, HashSet};

use disk::sim::SimDisk;
use fastrand::Rng;

use super::{id, open, try_open};
use crate::catalog::{EntryKey, FrozenTail, Stream};
use crate::ids::ObjectId;
use crate::ledger::{Keep, LedgerError, LedgerFiles, NewEntry};

type Place = (i64, ObjectId);
type Found = Vec<(Place, Vec<u8>)>;

const STREAM: Stream = Stream::Catalog;

fn save(files: &mut LedgerFiles, owner: ObjectId, entries: &BTreeMap<Place, Vec<u8>>) {
    let entry = |((at_ns, id), payload): (&Place, &Vec<u8>)| NewEntry {
        key: EntryKey {
            stream: STREAM,
            owner,
            at_ns: *at_ns,
            id: *id,
        },
        payload: payload.as_slice().into(),
    };
    let entries: Vec<NewEntry> = entries.iter().map(entry).collect();
    let keep = Keep::new(HashSet::new(), i64::MAX);
    let runs = files.save(&FrozenTail::default(), entries.iter().collect(), &keep);
    files.adopt(runs.unwrap());
}

/// The first entries within a range, at most so many.
fn within(
    files: &LedgerFiles,
    owner: ObjectId,
    (first, last): (Place, Place),
    most: usize,
) -> (Found, Result<(), LedgerError>) {
    let mut found = Found::new();
    let ended = files
        .ledger()
        .for_each_within(STREAM, owner, first..=last, |place, payload| {
            found.push((place, payload.to_vec()));
            Ok::<_, LedgerError>(found.len() < most)
        });
    (found, ended)
}

#[test]
fn the_newest_version_of_each_entry_within_a_range_comes_in_order() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for _ in 0..30 {
        let disk = SimDisk::new(rng.u64(..));
        let mut files = open(&disk, &[]);
        let owners = [id(0, 1), id(0, 2), id(0, 3)];
        let place = |rng: &mut Rng| (rng.i64(-3..3), id(rng.u32(0..2), rng.u64(0..100)));
        let mut expected: BTreeMap<(ObjectId, Place), Vec<u8>> = BTreeMap::new();
        for _ in 0..rng.usize(1..6) {
            let owner = *rng.choice(&owners).unwrap();
            let mut entries = BTreeMap::new();
            for _ in 0..rng.usize(1..400) {
                // An empty payload removes the entry.
                let payload = vec![7; rng.usize(0..3)];
                entries.insert(place(&mut rng), payload.clone());
            }
            save(&mut files, owner, &entries);
            expected.extend(
                entries
                    .into_iter()
                    .map(|(place, payload)| ((owner, place), payload)),
            );
        }
        for owner in owners {
            let (one, other) = (place(&mut rng), place(&mut rng));
            let range = (one.min(other), one.max(other));
            let most = [usize::MAX, rng.usize(1..100)][rng.usize(0..2)];
            let (found, ended) = within(&files, owner, range, most);
            ended.unwrap();
            let expected = expected.range((owner, range.0)..=(owner, range.1));
            let expected = expected.filter(|(_, payload)| !payload.is_empty());
            let expected = expected.map(|((_, place), payload)| (*place, payload.clone()));
            assert_eq!(found, expected.take(most).collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_early_end_reads_no_entries_behind_it() {
    let (disk, owner) = (SimDisk::new(1), id(0, 1));
    let mut files = open(&disk, &[]);
    let entries = (0..300).map(|number| ((number, id(0, 1)), vec![7]));
    save(&mut files, owner, &entries.collect());
    let named = files.ledger().runs().ids();
    let path = disk.files().into_keys().next().unwrap();
    let all = ((i64::MIN, id(0, 0)), (i64::MAX, id(0, 0)));
    let mut damaged_in_midst = 0;
    for offset in (0..disk.files()[&path].len() as u64).step_by(97) {
        disk.flip_bit(&path, offset, 0);
        if let Ok(files) = try_open(&disk, &named) {
            let (found, ended) = within(&files, owner, all, usize::MAX);
            if ended.is_err() && !found.is_empty() {
                damaged_in_midst += 1;
                let (again, ended) = within(&files, owner, all, found.len());
                ended.unwrap_or_else(|error| panic!("behind {} entries: {error}", found.len()));
                assert_eq!(again, found);
            }
        }
        disk.flip_bit(&path, offset, 0);
    }
    assert!(damaged_in_midst > 10, "{damaged_in_midst}");
}
