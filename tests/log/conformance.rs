//! What every log does, whatever is behind the port.

use tidewatch::journal::{Group, JournalError, NodeLog, ReplayError, Tail};
use wal::Sequence;

use crate::sides::{Fault, Local, Opened, Side, Simulated, Stored};

/// Declares a test of each side.
macro_rules! conforms {
    ($($name:ident)*) => {
        $(
            mod $name {
                #[test]
                fn local() {
                    super::$name(&mut super::Local::new(1));
                }

                #[test]
                fn simulated() {
                    super::$name(&mut super::Simulated::new(1));
                }

                #[test]
                fn postgres() {
                    super::$name(&mut super::Stored::new(1));
                }
            }
        )*
    };
}

conforms! {
    records_are_found_in_order
    an_empty_log_begins_with_record_1
    a_refused_group_leaves_no_trace
    after_an_unknown_outcome_nothing_more_is_written
    a_group_is_whole_or_absent
    a_trim_drops_what_is_covered
    a_log_that_begins_too_late_is_refused
    sizes_follow_what_is_written
    a_closed_log_takes_nothing
    large_and_empty_records_are_kept
}

fn records(first: u64, count: u64) -> Vec<Vec<u8>> {
    (first..first + count)
        .map(|number| format!("record {number}").into_bytes())
        .collect()
}

fn append(side: &dyn Side, log: &mut dyn NodeLog, records: &[Vec<u8>]) -> Result<Sequence, JournalError> {
    let shard = side.shard();
    let mut outcomes = log.append(&[Group { shard, records }]);
    assert_eq!(outcomes.len(), 1);
    outcomes.pop().unwrap()
}

/// Opens the log, and asserts that it has exactly the records after `from` up to `last`.
fn open_and_expect(side: &mut dyn Side, from: Sequence, last: Sequence) -> Opened {
    let opened = side.open(from).unwrap();
    let expected = (from + 1..).zip(records(from + 1, last - from));
    assert_eq!(opened.records, expected.collect::<Vec<_>>());
    assert_eq!(opened.tail.last, last);
    opened
}

fn records_are_found_in_order(side: &mut dyn Side) {
    let mut log = open_and_expect(side, 0, 0).log;
    for (first, count) in [(1, 1), (2, 3), (5, 40), (45, 1)] {
        assert_eq!(append(side, &mut *log, &records(first, count)).unwrap(), first);
    }
    drop(log);
    let mut log = open_and_expect(side, 0, 45).log;
    assert_eq!(append(side, &mut *log, &records(46, 2)).unwrap(), 46);
    for from in [0, 1, 3, 44, 47] {
        open_and_expect(side, from, 47);
    }
}

fn an_empty_log_begins_with_record_1(side: &mut dyn Side) {
    let Opened { mut log, tail, .. } = open_and_expect(side, 0, 0);
    assert_eq!(Tail { bytes: 0, ..tail }.last, 0);
    assert_eq!(log.sizes(side.shard()).durable_sequence, 0);
    assert_eq!(append(side, &mut *log, &records(1, 1)).unwrap(), 1);
}

fn a_refused_group_leaves_no_trace(side: &mut dyn Side) {
    let mut log = open_and_expect(side, 0, 0).log;
    append(side, &mut *log, &records(1, 2)).unwrap();
    for _ in 0..3 {
        side.fail_next(Fault::Refused);
        let refused = append(side, &mut *log, &records(100, 2)).unwrap_err();
        let passes = matches!(refused, JournalError::Full(_) | JournalError::Unavailable(_));
        assert!(passes, "{refused}");
        side.mend();
    }
    assert!(log.has_room(side.shard()));
    assert_eq!(append(side, &mut *log, &records(3, 2)).unwrap(), 3);
    drop(log);
    open_and_expect(side, 0, 4);
}

fn after_an_unknown_outcome_nothing_more_is_written(side: &mut dyn Side) {
    let mut log = open_and_expect(side, 0, 0).log;
    append(side, &mut *log, &records(1, 2)).unwrap();
    side.fail_next(Fault::Unknown);
    let unknown = append(side, &mut *log, &records(3, 2)).unwrap_err();
    assert!(matches!(unknown, JournalError::Poisoned(_)), "{unknown}");
    side.mend();
    let shard = side.shard();
    for _ in 0..2 {
        let refused = append(side, &mut *log, &records(3, 1)).unwrap_err();
        assert!(matches!(refused, JournalError::Poisoned(_)), "{refused}");
    }
    assert!(log.flush(shard).is_err());
    assert!(log.trim(shard, 2, None).is_err());
    assert!(!log.has_room(shard));
    assert_eq!(log.sizes(shard).durable_sequence, 2);
    // Nothing to be closed, and nothing claimed to be complete.
    log.close(shard).unwrap();
    drop(log);
    let opened = side.open(0).unwrap();
    assert!([2, 4].contains(&opened.tail.last), "{:?}", opened.tail);
    open_and_expect(side, 0, opened.tail.last);
}

fn a_group_is_whole_or_absent(side: &mut dyn Side) {
    let mut last = 0;
    for _ in 0..6 {
        let mut log = open_and_expect(side, 0, last).log;
        append(side, &mut *log, &records(last + 1, 1)).unwrap();
        side.fail_next(Fault::Unknown);
        append(side, &mut *log, &records(last + 2, 30)).unwrap_err();
        side.mend();
        drop(log);
        let found = side.open(0).unwrap().tail.last;
        assert!([last + 1, last + 31].contains(&found), "{found} after {last}");
        last = found;
    }
}

fn a_trim_drops_what_is_covered(side: &mut dyn Side) {
    let shard = side.shard();
    let mut log = open_and_expect(side, 0, 0).log;
    for group in 0..100 {
        append(side, &mut *log, &records(1 + group * 4, 4)).unwrap();
    }
    let before = log.sizes(shard).tail_bytes;
    log.trim(shard, 202, None).unwrap();
    let after = log.sizes(shard).tail_bytes;
    assert!(after < before * 3 / 4, "{after} of {before} bytes");
    log.trim(shard, 100, None).unwrap();
    assert_eq!(log.sizes(shard).tail_bytes, after);
    drop(log);
    let mut log = open_and_expect(side, 202, 400).log;
    assert_eq!(append(side, &mut *log, &records(401, 1)).unwrap(), 401);
    log.trim(shard, 401, None).unwrap();
    assert!(log.sizes(shard).tail_bytes < before / 50);
    drop(log);
    // The numbering goes on, although no record is left.
    let mut log = open_and_expect(side, 401, 401).log;
    assert_eq!(append(side, &mut *log, &records(402, 1)).unwrap(), 402);
}

fn a_log_that_begins_too_late_is_refused(side: &mut dyn Side) {
    let shard = side.shard();
    let mut log = open_and_expect(side, 0, 0).log;
    for group in 0..100 {
        append(side, &mut *log, &records(1 + group * 4, 4)).unwrap();
    }
    log.trim(shard, 300, None).unwrap();
    drop(log);
    let Err(refused) = side.open(0) else {
        panic!("a log without its beginning was opened");
    };
    assert!(
        matches!(refused, ReplayError::Local(_) | ReplayError::Stored(_)),
        "{refused}"
    );
    let mut log = open_and_expect(side, 300, 400).log;
    // Nothing is left that could show that something is missing.
    log.trim(shard, 400, None).unwrap();
    drop(log);
    assert!(side.open(300).is_err() && side.open(0).is_err());
    open_and_expect(side, 400, 400);
}

fn sizes_follow_what_is_written(side: &mut dyn Side) {
    let shard = side.shard();
    let Opened { mut log, tail, .. } = open_and_expect(side, 0, 0);
    assert_eq!(log.sizes(shard).tail_bytes, tail.bytes);
    append(side, &mut *log, &records(1, 10)).unwrap();
    append(side, &mut *log, &[vec![7; 1_000]]).unwrap();
    let sizes = log.sizes(shard);
    assert_eq!((sizes.frames, sizes.records, sizes.durable_sequence), (2, 11, 11));
    assert_eq!(sizes.syncs, 2);
    assert!((1_000..2_000).contains(&sizes.bytes), "{sizes:?}");
    assert!(sizes.tail_bytes >= sizes.bytes, "{sizes:?}");
    log.flush(shard).unwrap();
    drop(log);
    let opened = side.open(0).unwrap();
    assert_eq!(opened.tail.bytes, opened.log.sizes(shard).tail_bytes);
    assert!(opened.tail.bytes >= sizes.bytes, "{:?}", opened.tail);
}

fn a_closed_log_takes_nothing(side: &mut dyn Side) {
    let shard = side.shard();
    let mut log = open_and_expect(side, 0, 0).log;
    append(side, &mut *log, &records(1, 3)).unwrap();
    log.close(shard).unwrap();
    let refused = append(side, &mut *log, &records(4, 1)).unwrap_err();
    assert!(matches!(refused, JournalError::Closed), "{refused}");
    drop(log);
    open_and_expect(side, 0, 3);
}

fn large_and_empty_records_are_kept(side: &mut dyn Side) {
    let mut log = open_and_expect(side, 0, 0).log;
    let group = vec![Vec::new(), vec![9; 5 << 20], b"x".to_vec()];
    assert_eq!(append(side, &mut *log, &group).unwrap(), 1);
    let too_large = append(side, &mut *log, &[vec![0; 64 << 20]]).unwrap_err();
    assert!(matches!(too_large, JournalError::TooLarge(_)), "{too_large}");
    assert_eq!(append(side, &mut *log, &group[..1]).unwrap(), 4);
    drop(log);
    let found = side.open(0).unwrap().records;
    let expected = (1..).zip([&group[0], &group[1], &group[2], &group[0]]);
    assert!(
        found
            .iter()
            .map(|(sequence, record)| (*sequence, record))
            .eq(expected)
    );
}
