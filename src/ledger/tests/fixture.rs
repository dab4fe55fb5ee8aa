//! Files of earlier format versions stay readable. `TIDEWATCH_WRITE_FIXTURES=1` writes that of the current version,
//! once for each new version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Written, encode, id};
use crate::catalog::{LedgerTail, Stream};
use crate::clock::SECOND_NS;
use crate::ledger::{Content, Run, Runs, View};

const SECOND: u32 = 1_700_000_000;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-1.bin")
}

/// Two owners, two blocks, replaced entries, an empty payload, times before 1970.
fn entries() -> Vec<Written> {
    let entry = |owner: u64, number: u32| {
        let at_ns = (i64::from(SECOND) + i64::from(number)) * SECOND_NS;
        let payload = vec![b'a' + (number % 26) as u8; number as usize % 5];
        (
            id(0, owner),
            at_ns,
            id(SECOND + number, u64::from(number)),
            number % 7 == 3,
            payload,
        )
    };
    let mut entries = vec![(id(0, 1), -SECOND_NS, id(0, 0), false, b"early".to_vec())];
    entries.extend((0..3).map(|number| entry(1, number)));
    entries.extend((0..130).map(|number| entry(2, number)));
    entries
}

#[test]
fn a_run_of_version_1_is_read() {
    let present = encode(Stream::Deliveries, &entries());
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::create_dir_all(path().parent().unwrap()).unwrap();
        std::fs::write(path(), &present).unwrap();
    }
    let bytes = std::fs::read(path()).unwrap();
    assert!(bytes == present, "the present version is still 1");
    let run = Run::open(1, &path(), Arc::new(bytes)).unwrap();
    assert_eq!((run.stream, run.footer.entries), (Stream::Deliveries, 134));
    let runs: Runs = [Arc::new(run)].into_iter().collect();
    for (owner, total) in [(1, 4), (2, 130 - 19)] {
        let view: View = View::new(
            runs.clone(),
            &LedgerTail::default(),
            Stream::Deliveries,
            id(0, owner),
            [],
        );
        let page = view.page(i64::MIN, 0, 1_000).unwrap();
        let found: Vec<_> = page
            .entries
            .into_iter()
            .rev()
            .map(|(key, Content::Stored(payload))| (key.owner, key.at_ns, key.id, payload.to_vec()))
            .collect();
        let expected: Vec<_> = entries()
            .into_iter()
            .filter(|entry| entry.0 == id(0, owner))
            .map(|(owner, at_ns, id, _, payload)| (owner, at_ns, id, payload))
            .collect();
        assert_eq!((found, page.total), (expected, total));
    }
}
