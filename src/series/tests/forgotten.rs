//! What the index forgets, and when.

use disk::sim::SimDisk;
use engine::rows::RowsWriter;
use engine::{SERIES_ORDINALS_FROM, SeriesRef, Store};

use super::{BUCKET, checkpoint, files, keep, labels, without_points};
use crate::series::{ForgettingBudget, NewSeries, SeriesIndex, StoreCounts, digest_of, new_entries};

/// Adds a series of source 0 with one label.
fn add_host(index: &SeriesIndex, host: &str) -> u32 {
    let ordinal = index.take_ordinal().unwrap();
    let series = SeriesRef { ordinal, source: 0 };
    let labels = labels(&[("host", host)]);
    index.add(&[NewSeries { series, labels }]);
    ordinal
}

fn find_host(index: &SeriesIndex, host: &str) -> Option<u32> {
    let digest = digest_of(0, labels(&[("host", host)]).as_bytes());
    index.find(0, &digest).unwrap()
}

#[test]
fn the_index_does_not_grow_with_series_that_were() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let mut sizes = Vec::new();
    for round in 0..60 {
        let new = (0..200).map(|nth| NewSeries {
            series: SeriesRef {
                ordinal: index.take_ordinal().unwrap(),
                source: 0,
            },
            labels: labels(&[("pod", &format!("pod-{round}-{nth}")), ("zone", "a")]),
        });
        index.add(&new.collect::<Vec<_>>());
        let gone = without_points(&index);
        assert_eq!(gone.len(), if round == 0 { 0 } else { 200 });
        index.forget(gone);
        checkpoint(&index, &mut files, &keep([0]));
        sizes.push(disk.used_bytes());
    }
    let (first, last) = (sizes[20], sizes[59]);
    assert!(last < first + first / 2, "{sizes:?}");
}

#[test]
fn series_without_points_are_looked_for_when_there_are_many() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let counts = |series, removed| index.note_counts(StoreCounts { series, removed });
    assert!(!index.has_many_without_points(), "there are none");
    add_host(&index, "a");
    checkpoint(&index, &mut files, &keep([0]));
    assert!(
        index.has_many_without_points(),
        "nobody has looked since the start"
    );
    counts(80, 5);
    let reader = index.reader();
    assert!(
        without_points(&index).is_empty(),
        "somebody has a view from before"
    );
    let _later = index.reader();
    assert!(index.has_many_without_points(), "they wait");
    drop(reader);
    let gone = without_points(&index);
    assert_eq!(gone.len(), 1);
    assert!(!index.has_many_without_points());
    counts(80, 15);
    assert!(!index.has_many_without_points(), "an eighth of those with points");
    counts(80, 16);
    assert!(index.has_many_without_points());
    index.forget(gone);
    assert!(
        !index.has_many_without_points(),
        "while a checkpoint has to write them"
    );
    checkpoint(&index, &mut files, &keep([0]));
    assert!(index.has_many_without_points());
}

#[test]
fn a_checkpoint_forgets_a_bounded_number_and_only_of_sources_that_exist() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let first = add_host(&index, "a");
    add_host(&index, "b");
    checkpoint(&index, &mut files, &keep([0]));
    let find = |is_split: bool, most: usize| {
        let mut budget = ForgettingBudget::of(most);
        let view = Store::new().view();
        index
            .find_without_points(view, |_| is_split, &mut budget)
            .unwrap();
        let found = index.take_without_points();
        found.iter().map(|it| it.series.ordinal).collect::<Vec<_>>()
    };
    assert_eq!(find(true, 1), [first]);
    assert!(index.has_many_without_points(), "there are more");
    assert!(
        find(false, 1).is_empty(),
        "merges drop the entries of deleted sources"
    );
    assert!(!index.has_many_without_points());
}

#[test]
fn a_series_that_was_forgotten_is_not_found_by_its_labels_before_and_after_the_checkpoint() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let first = add_host(&index, "a");
    checkpoint(&index, &mut files, &keep([0]));
    assert_eq!(find_host(&index, "a"), Some(first));
    index.forget(without_points(&index));
    assert_eq!(find_host(&index, "a"), None);
    // A checkpoint that fails: its entries are written again, also after the series has come back.
    new_entries(BUCKET, files.ledger(), &index.unsaved()).unwrap();
    let second = add_host(&index, "a");
    assert!(second > first);
    assert!(without_points(&index).is_empty(), "it is not forgotten twice");
    assert_eq!(find_host(&index, "a"), Some(second));
    checkpoint(&index, &mut files, &keep([0]));
    for index in [index, SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap()] {
        assert_eq!(find_host(&index, "a"), Some(second));
        let mut saved = Vec::new();
        index.for_each_saved(|series| saved.push(series.ordinal)).unwrap();
        assert_eq!(saved, [second]);
    }
}

/// A node that takes over replays a log from before a checkpoint that was not published.
#[test]
fn of_two_series_with_the_same_labels_in_a_log_both_are_kept_and_the_newer_is_found() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let (first, second) = (add_host(&index, "a"), add_host(&index, "a"));
    assert_eq!(find_host(&index, "a"), Some(second));
    checkpoint(&index, &mut files, &keep([0]));
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    assert_eq!(find_host(&index, "a"), Some(second));
    let mut saved = Vec::new();
    index.for_each_saved(|series| saved.push(series.ordinal)).unwrap();
    assert_eq!(saved, [first, second]);
    // Both lose their points.
    let version = index.version();
    index.forget(without_points(&index));
    assert_ne!(index.version(), version, "what was found is not there any more");
    checkpoint(&index, &mut files, &keep([0]));
    assert_eq!(find_host(&index, "a"), None);
}

#[test]
fn a_series_that_got_points_while_it_waited_for_readers_is_not_forgotten() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    let (first, second) = (add_host(&index, "a"), add_host(&index, "b"));
    checkpoint(&index, &mut files, &keep([0]));
    let reader = index.reader();
    assert!(
        without_points(&index).is_empty(),
        "somebody has a view from before"
    );
    // A point of the first one, which later readers see.
    let mut rows = RowsWriter::new();
    rows.begin(SERIES_ORDINALS_FROM);
    rows.number(0, 1.0, 0);
    rows.commit(0);
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    let series = SeriesRef {
        ordinal: first,
        source: 0,
    };
    let mut store = Store::new();
    store.apply(&encoded, 1, &[series]).unwrap();
    let mut budget = ForgettingBudget::default();
    index
        .find_without_points(store.view(), |_| true, &mut budget)
        .unwrap();
    drop(reader);
    let taken = index.take_without_points();
    let taken: Vec<u32> = taken.iter().map(|it| it.series.ordinal).collect();
    assert_eq!(taken, [second]);
}

#[test]
fn no_series_of_a_source_whose_dimensions_have_changed_is_found() {
    let disk = SimDisk::new(1);
    let mut files = files(&disk, &[]);
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    add_host(&index, "a");
    checkpoint(&index, &mut files, &keep([0]));
    add_host(&index, "b");
    let version = index.version();
    index.forget_source(0).unwrap();
    assert_ne!(index.version(), version, "what was found is not there any more");
    assert_eq!([find_host(&index, "a"), find_host(&index, "b")], [None, None]);
    let again = add_host(&index, "a");
    assert_eq!(find_host(&index, "a"), Some(again));
    checkpoint(&index, &mut files, &keep([0]));
    let index = SeriesIndex::open(BUCKET, files.ledger().clone()).unwrap();
    assert_eq!(find_host(&index, "a"), Some(again));
}
