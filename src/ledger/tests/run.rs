//! A single run file: it round-trips, and damaged entries are never read as others.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::Bytes;

use super::{Written, encode, id};
use crate::catalog::{LedgerTail, Stream};
use crate::clock::SECOND_NS;
use crate::ledger::{Content, LedgerError, Page, Run, Runs, View, verify};

const PATH: &str = "ledger/000000000007.run";

fn open(bytes: impl Bytes + 'static) -> Result<Run, LedgerError> {
    Run::open(7, Path::new(PATH), Arc::new(bytes))
}

fn view(run: Run, owner: u64) -> View {
    let runs: Runs = [Arc::new(run)].into_iter().collect();
    View::new(runs, &LedgerTail::default(), Stream::History, id(0, owner), [])
}

/// Three owners, the second with entries of several blocks; every tenth entry replaces an earlier version.
fn entries() -> Vec<Written> {
    let mut entries = Vec::new();
    for (owner, count) in [(1, 1), (2, 300), (3, 20)] {
        for number in 0..count {
            let payload = format!("{owner}-{number}").repeat(number as usize % 3);
            let at_ns = number as i64 / 2 * SECOND_NS;
            entries.push((
                id(0, owner),
                at_ns,
                id(number as u32 / 2, number),
                number % 10 == 9,
                payload.into_bytes(),
            ));
        }
    }
    entries
}

/// The entries of a page as they were written.
fn entries_of_page(page: &Page) -> Vec<Written> {
    let entry = |(key, content): &(crate::catalog::EntryKey, Content)| {
        let Content::Stored(payload) = content.clone();
        (key.owner, key.at_ns, key.id, false, payload.to_vec())
    };
    page.entries.iter().map(entry).collect()
}

/// The entries of an owner, newest first.
fn expected(owner: u64) -> Vec<Written> {
    let of_owner = entries()
        .into_iter()
        .filter(|entry| entry.0 == id(0, owner))
        .map(|(owner, at_ns, id, _, payload)| (owner, at_ns, id, false, payload));
    of_owner.rev().collect()
}

#[test]
fn a_run_round_trips() {
    let file = encode(Stream::History, &entries());
    for owner in 1..4 {
        let view = view(open(file.clone()).unwrap(), owner);
        let page = view.page(i64::MIN, 0, 1_000).unwrap();
        assert_eq!(entries_of_page(&page), expected(owner));
        let firsts = entries()
            .iter()
            .filter(|it| it.0 == id(0, owner) && !it.3)
            .count();
        assert_eq!(page.total, firsts as u64);
        for (_, at_ns, entry_id, _, payload) in expected(owner) {
            let (key, Content::Stored(found)) = view.get(entry_id, i64::MIN).unwrap().unwrap();
            assert_eq!((key.at_ns, &*found), (at_ns, &payload[..]));
        }
    }
    let unknown = view(open(file).unwrap(), 9).page(i64::MIN, 0, 10).unwrap();
    assert_eq!((unknown.entries.len(), unknown.total), (0, 0));
}

#[test]
fn the_bytes_of_the_owners_add_up_to_the_file_without_its_frame() {
    let file = encode(Stream::History, &entries());
    let run = open(file.clone()).unwrap();
    let bytes: Vec<u64> = (1..4).map(|owner| run.bytes_of(id(0, owner)).unwrap()).collect();
    // Header, three rows of blocks, footer.
    assert_eq!(bytes.iter().sum::<u64>(), file.len() as u64 - 16 - 3 * 20 - 56);
    let of_owner = |owner| {
        let own = entries().into_iter().filter(|entry| entry.0 == id(0, owner));
        own.map(|entry| 40 + entry.4.len() as u64).sum::<u64>() + 20
    };
    assert_eq!(bytes, [of_owner(1), of_owner(2), of_owner(3)]);
    assert_eq!(run.bytes_of(id(0, 9)).unwrap(), 0);
}

#[test]
fn a_file_of_another_kind_is_refused() {
    for bytes in [
        &b""[..],
        b"TWLRUN01",
        &[0; 200],
        b"TWANSW01 and more than a header of it ........................",
    ] {
        let error = open(bytes.to_vec()).err().unwrap().to_string();
        assert!(error.contains(PATH), "{error}");
    }
}

#[test]
fn a_file_truncated_at_any_length_is_refused() {
    let file = encode(Stream::History, &entries());
    for len in 0..file.len() {
        assert!(
            open(file[..len].to_vec()).is_err(),
            "{len} of {} bytes",
            file.len()
        );
    }
    let mut longer = file;
    longer.push(0);
    assert!(open(longer).is_err());
}

#[test]
fn a_flipped_bit_is_detected_and_in_a_payload_loses_only_that_entry() {
    let file = encode(Stream::History, &entries());
    let (mut refused, mut unlisted, mut lost) = (0, 0, 0);
    for byte in 0..file.len() {
        let mut flipped = file.clone();
        flipped[byte] ^= 1 << (byte % 8);
        let Ok(run) = open(flipped) else {
            refused += 1;
            continue;
        };
        let report = verify(&run, |_| ()).unwrap();
        assert_eq!(report.damages.len(), 1, "one damage at {byte}: {report:?}");
        assert_eq!(report.sound + report.damages[0].1, 321);
        let runs: Runs = [Arc::new(run)].into_iter().collect();
        let (mut pages_unread, mut entries_lost) = (0, 0);
        for owner in 1..4 {
            let view: View = View::new(
                runs.clone(),
                &LedgerTail::default(),
                Stream::History,
                id(0, owner),
                [],
            );
            let Ok(page) = view.page(i64::MIN, 0, 1_000) else {
                pages_unread += 1;
                continue;
            };
            let expected = expected(owner);
            let found = entries_of_page(&page);
            assert!(
                found.iter().all(|entry| expected.contains(entry)),
                "altered at {byte}"
            );
            assert_eq!(
                found.len() + page.damaged.len(),
                expected.len(),
                "flipped at {byte}"
            );
            entries_lost += page.damaged.len();
        }
        assert!(
            entries_lost <= 1 && pages_unread + entries_lost > 0,
            "unnoticed at {byte}"
        );
        unlisted += pages_unread;
        lost += entries_lost;
    }
    println!(
        "{refused} refused, {unlisted} pages unread, {lost} entries lost, of {} bytes",
        file.len()
    );
    assert!(refused > 0 && unlisted > 0 && lost > 0);
}

struct CountingFile(Vec<u8>, Arc<AtomicU64>);

impl AsRef<[u8]> for CountingFile {
    fn as_ref(&self) -> &[u8] {
        self.1.fetch_add(1, Ordering::Relaxed);
        &self.0
    }
}

#[test]
fn a_page_reads_few_entries_at_any_offset() {
    const COUNT: u64 = 200_000;
    let reads = Arc::new(AtomicU64::new(0));
    let run = |parity: u64| {
        let of_run = (0..COUNT).filter(|number| number % 3 == parity);
        let entries: Vec<Written> = of_run
            .map(|number| {
                let at_ns = number as i64 * SECOND_NS;
                (id(0, 1), at_ns, id(number as u32, number), false, vec![1])
            })
            .collect();
        let file = CountingFile(encode(Stream::History, &entries), Arc::clone(&reads));
        Arc::new(open(file).unwrap())
    };
    let runs: Runs = (0..3).map(run).collect();
    let view: View = View::new(runs, &LedgerTail::default(), Stream::History, id(0, 1), []);
    let opening = reads.swap(0, Ordering::Relaxed);
    assert!(opening < 100, "opening takes {opening} looks");
    for offset in [0, 1, 1_000, COUNT / 2, COUNT - 10, COUNT, COUNT + 5] {
        let page = view.page(10 * SECOND_NS, offset, 10).unwrap();
        let expected: Vec<i64> = (10..COUNT as i64).rev().skip(offset as usize).take(10).collect();
        let found: Vec<i64> = page
            .entries
            .iter()
            .map(|(key, _)| key.at_ns / SECOND_NS)
            .collect();
        assert_eq!((found, page.total), (expected, COUNT - 10), "offset {offset}");
        let reads = reads.swap(0, Ordering::Relaxed);
        println!("offset {offset}: {reads} looks");
        assert!(reads < 4_000, "offset {offset}: {reads} looks");
    }
    view.get(id(150_000, 150_000), 0).unwrap().unwrap();
    let reads = reads.load(Ordering::Relaxed);
    assert!(reads < 200, "an id: {reads} looks");
}
