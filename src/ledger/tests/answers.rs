//! Answers to idempotency keys: found in every run until they expire.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, Operation, SimDisk};
use fastrand::Rng;

use super::open;
use crate::catalog::{FrozenTail, Stream, bucket_owner};
use crate::clock::{DAY_NS, MINUTE_NS, SECOND_NS};
use crate::journal::{AnswerView, IdempotencyView};
use crate::ledger::{Digest, Keep, LedgerError, LedgerFiles, NewEntry, encode_answer};

const START_NS: i64 = 1_700_000_000 * SECOND_NS;

fn seed() -> u64 {
    let given = std::env::var("TIDEWATCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(20_261);
    println!("TIDEWATCH_SEED={seed}");
    seed
}

fn entry(bucket: u32, key: Digest, created_at_ns: i64, answer: &str) -> NewEntry {
    let view = IdempotencyView {
        key,
        body: key.map(|byte| !byte),
        answer: AnswerView {
            status: 201,
            body: answer.as_bytes(),
        },
    };
    NewEntry::answer(bucket, &key, encode_answer(&view, created_at_ns))
}

fn keep(buckets: impl IntoIterator<Item = u32>, now_ns: i64) -> Keep {
    Keep::new(
        buckets.into_iter().map(bucket_owner).collect::<HashSet<_>>(),
        now_ns,
    )
}

fn save(files: &mut LedgerFiles, entries: &[NewEntry], keep: &Keep) {
    let runs = files
        .save(&FrozenTail::default(), entries.iter().collect(), keep)
        .unwrap();
    files.adopt(runs);
    files.remove_unused();
}

fn merge(files: &mut LedgerFiles, keep: &Keep) -> bool {
    let merged = files.merge(keep).unwrap();
    let has_merged = merged.is_some();
    if let Some(runs) = merged {
        files.adopt(runs);
        files.remove_unused();
    }
    has_merged
}

/// The answer to a key as text.
fn answer(
    files: &LedgerFiles,
    bucket: u32,
    key: &Digest,
    now_ns: i64,
) -> Result<Option<String>, LedgerError> {
    let found = files.ledger().answer(bucket, key, now_ns)?;
    Ok(found.map(|found| {
        assert_eq!((found.body, found.answer.status), (key.map(|byte| !byte), 201));
        String::from_utf8(found.answer.body.into()).unwrap()
    }))
}

fn run_files(disk: &SimDisk) -> Vec<PathBuf> {
    disk.files().into_keys().collect()
}

/// Keys distributed like digests, keys close together, and keys at the ends of the range.
fn key(rng: &mut Rng) -> Digest {
    match rng.u8(0..8) {
        0 => (u128::from(rng.u16(..)) + (7 << 100)).to_be_bytes(),
        1 => u128::from(rng.u16(..)).to_be_bytes(),
        2 => (u128::MAX - u128::from(rng.u16(..))).to_be_bytes(),
        3 => (u128::from(rng.u16(..)) << 64).to_be_bytes(),
        _ => rng.u128(..).to_be_bytes(),
    }
}

#[test]
fn a_key_is_found_in_one_run_several_runs_and_merged_runs() {
    let seed = seed();
    let (mut rng, disk) = (Rng::with_seed(seed), SimDisk::new(seed));
    let mut files = open(&disk, &[]);
    let mut model: BTreeMap<(u32, Digest), String> = BTreeMap::new();
    let keep = keep(1..4, START_NS);
    let (mut most, mut merges) = (0, 0);
    for round in 0..12 {
        let mut entries: BTreeMap<(u32, Digest), NewEntry> = BTreeMap::new();
        for number in 0..rng.usize(1..1_500) {
            // Most of them are in one bucket, so that it has several blocks in a run.
            let bucket = [1, 2, 2, 2, 2, 2, 3][rng.usize(0..7)];
            let (key, content) = (key(&mut rng), format!("{round}-{number}"));
            entries.insert((bucket, key), entry(bucket, key, START_NS + round, &content));
            model.insert((bucket, key), content);
        }
        let mut entries: Vec<NewEntry> = entries.into_values().collect();
        rng.shuffle(&mut entries);
        save(&mut files, &entries, &keep);
        most = most.max(run_files(&disk).len());
        for ((bucket, key), content) in &model {
            assert_eq!(
                answer(&files, *bucket, key, START_NS).unwrap().as_ref(),
                Some(content)
            );
        }
        for _ in 0..500 {
            let (bucket, key) = (rng.u32(0..6), key(&mut rng));
            let expected = model.get(&(bucket, key)).cloned();
            assert_eq!(answer(&files, bucket, &key, START_NS).unwrap(), expected);
        }
        if round % 4 == 3 {
            merges += u32::from(merge(&mut files, &keep));
        }
    }
    assert!(most > 3 && merges > 1, "{most} runs, {merges} merges");
    let bytes: u64 = (1..4)
        .map(|bucket| files.ledger().bytes_of(bucket_owner(bucket)).unwrap())
        .sum();
    assert!(bytes > 0 && bytes < files.ledger().stats().bytes);
    assert_eq!(files.ledger().bytes_of(bucket_owner(9)).unwrap(), 0);
    let named = files.ledger().runs().ids();
    let files = open(&disk.crash(Crash::KINDS[1]), &named);
    for ((bucket, key), content) in &model {
        assert_eq!(
            answer(&files, *bucket, key, START_NS).unwrap().as_ref(),
            Some(content)
        );
    }
}

#[test]
fn a_key_reused_after_a_day_has_its_newer_answer() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let (key, other, later_ns) = ([7; 16], [8; 16], START_NS + DAY_NS);
    let keep_then = keep([1], START_NS);
    save(
        &mut files,
        &[
            entry(1, key, START_NS, "first"),
            entry(1, other, START_NS + SECOND_NS, "other"),
        ],
        &keep_then,
    );
    save(&mut files, &[entry(1, key, later_ns, "second")], &keep_then);
    assert_eq!(run_files(&disk).len(), 2);
    let content = |files: &LedgerFiles| answer(files, 1, &key, later_ns).unwrap();
    assert_eq!(content(&files).as_deref(), Some("second"));
    assert!(merge(&mut files, &keep_then));
    assert_eq!(content(&files).as_deref(), Some("second"));
    let both = answer(&files, 1, &other, later_ns).unwrap();
    assert_eq!(both.as_deref(), Some("other"));
    assert_eq!(files.ledger().stats().entries, 2, "one version of each");
}

#[test]
fn entries_expire_by_age_and_a_run_with_its_newest_entry() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let (old, new) = ([0xff; 16], [1; 16]);
    let fresh = keep([1], START_NS);
    save(&mut files, &[entry(1, old, START_NS, "old")], &fresh);
    let old_run = run_files(&disk).remove(0);
    save(
        &mut files,
        &[
            entry(1, [3; 16], START_NS, "as old"),
            entry(1, new, START_NS + MINUTE_NS, "new"),
        ],
        &fresh,
    );
    let late_ns = START_NS + DAY_NS + 1;
    // An expired run is not read, whatever its damage.
    let damaged = disk.crash(Crash::KINDS[0]);
    let end = damaged.files()[&old_run].len() as u64;
    damaged.flip_bit(&old_run, 20, 1);
    damaged.flip_bit(&old_run, end - 56 - 20 - 20 - 5, 1);
    let of_damaged = open(&damaged, &files.ledger().runs().ids());
    answer(&of_damaged, 1, &old, START_NS).unwrap_err();
    assert_eq!(answer(&of_damaged, 1, &old, late_ns).unwrap(), None);

    let late = keep([1], late_ns);
    save(&mut files, &[], &late);
    assert_eq!(run_files(&disk).len(), 1, "the whole run is gone");
    assert_eq!(files.ledger().stats().entries, 2);
    save(&mut files, &[entry(1, [5; 16], late_ns, "newest")], &late);
    assert!(merge(&mut files, &late));
    assert_eq!(
        files.ledger().stats().entries,
        2,
        "the one that was as old is gone"
    );
    let found = answer(&files, 1, &new, late_ns).unwrap();
    assert_eq!(found.as_deref(), Some("new"));
    save(&mut files, &[], &keep([1], late_ns + DAY_NS + 1));
    assert_eq!(run_files(&disk), [] as [PathBuf; 0]);
}

#[test]
fn a_merge_drops_the_answers_of_a_deleted_bucket() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let both = keep([1, 2], START_NS);
    for round in 0..2 {
        let entries: Vec<_> = [1, 2]
            .map(|bucket| entry(bucket, [round; 16], START_NS, "said"))
            .into();
        save(&mut files, &entries, &both);
    }
    assert!(files.ledger().bytes_of(bucket_owner(1)).unwrap() > 0);
    assert!(merge(&mut files, &keep([2], START_NS)));
    assert_eq!(files.ledger().bytes_of(bucket_owner(1)).unwrap(), 0);
    assert_eq!(answer(&files, 1, &[0; 16], START_NS).unwrap(), None);
    let kept = answer(&files, 2, &[0; 16], START_NS).unwrap();
    assert_eq!(kept.as_deref(), Some("said"));
    // Answers of a bucket deleted before the checkpoint are not written either.
    save(
        &mut files,
        &[entry(1, [9; 16], START_NS, "late")],
        &keep([2], START_NS),
    );
    assert_eq!(answer(&files, 1, &[9; 16], START_NS).unwrap(), None);
}

/// Merges copy damage unchanged, since a lost answer would let a repeated request be executed again. It is dropped when
/// its whole run would have expired.
#[test]
fn a_damaged_answer_is_reported_by_file_and_offset_until_it_expires() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    let fresh = keep([1], START_NS);
    let entries: Vec<_> = (0..10)
        .map(|number| entry(1, [number; 16], START_NS + i64::from(number), "said"))
        .collect();
    save(&mut files, &entries, &fresh);
    let path = run_files(&disk).remove(0);
    // The first payload follows the header; its time then seems to be far in the future or in the past.
    for byte in [23, 22, 16, 30] {
        let image = disk.crash(Crash::KINDS[0]);
        image.flip_bit(&path, byte, 6);
        let mut files = open(&image, &files.ledger().runs().ids());
        let message = answer(&files, 1, &[0; 16], START_NS).unwrap_err().to_string();
        assert!(
            message.contains(&*path.to_string_lossy()) && message.contains("offset 16"),
            "{message}"
        );
        let next = answer(&files, 1, &[1; 16], START_NS).unwrap();
        assert_eq!(next.as_deref(), Some("said"));
        save(&mut files, &[entry(1, [99; 16], START_NS, "later")], &fresh);
        assert!(merge(&mut files, &fresh));
        let message = answer(&files, 1, &[0; 16], START_NS).unwrap_err().to_string();
        assert!(message.contains("000000000003.run"), "{message}");
        let late_ns = START_NS + DAY_NS + 11;
        save(
            &mut files,
            &[entry(1, [98; 16], late_ns, "last")],
            &keep([1], late_ns),
        );
        assert_eq!(run_files(&image).len(), 1, "byte {byte}: the run has expired");
        assert_eq!(answer(&files, 1, &[0; 16], late_ns).unwrap(), None);
    }
}

#[test]
fn ten_thousand_buckets_leave_few_files() {
    const BUCKETS: u32 = 10_000;
    let seed = seed();
    let (mut rng, disk) = (Rng::with_seed(seed), SimDisk::new(seed));
    let mut files = open(&disk, &[]);
    let mut sample = Vec::new();
    let mut most = 0;
    for checkpoint in 0..50 {
        let now_ns = START_NS + checkpoint * 25 * MINUTE_NS;
        let keep = keep(1..=BUCKETS, now_ns);
        let entries: Vec<NewEntry> = (1..=BUCKETS)
            .map(|bucket| {
                let key = rng.u128(..).to_be_bytes();
                if bucket % 997 == 0 {
                    sample.push((bucket, key));
                }
                entry(bucket, key, now_ns, "{}")
            })
            .collect();
        let syncs = disk.count(Operation::Sync);
        save(&mut files, &entries, &keep);
        assert_eq!(
            disk.count(Operation::Sync) - syncs,
            2,
            "the run and the directory"
        );
        merge(&mut files, &keep);
        most = most.max(run_files(&disk).len());
    }
    println!("at most {most} files");
    assert!(most <= 12, "{most} files");
    assert_eq!(files.ledger().stats().entries, 50 * u64::from(BUCKETS));
    for (bucket, key) in sample {
        assert!(answer(&files, bucket, &key, START_NS).unwrap().is_some());
    }
}

#[test]
fn a_run_of_an_unknown_stream_is_refused() {
    let disk = SimDisk::new(1);
    let mut files = open(&disk, &[]);
    save(
        &mut files,
        &[entry(1, [1; 16], START_NS, "said")],
        &keep([1], START_NS),
    );
    let path = run_files(&disk).remove(0);
    assert_eq!(disk.files()[&path][8], 4);
    disk.edit(&path, |bytes| bytes[8] = Stream::ALL.len() as u8 + 1);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let refused = LedgerFiles::open(port, Path::new("data"), &files.ledger().runs().ids());
    let message = refused.err().expect("it is refused").to_string();
    assert!(message.contains("a run of this version"), "{message}");
}
