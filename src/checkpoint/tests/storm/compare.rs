//! Queries the rooms as the service does and compares the results with the model.

use std::collections::{BTreeMap, HashMap};

use engine::query::{GroupQuery, group};
use engine::{SeriesSnapshot, Unit, Values};

use super::super::all_rows;
use super::super::live::Rooms;
use super::super::model::{answer, body_digest};
use super::model::{Bucket, Condition, Model, Request, Sent, UncertainChange};
use crate::bucket::Digest;
use crate::clock::DAY_NS;
use crate::error::ErrorKind;

/// A row's source, sequence and timestamp.
type Place = (u32, u64, i64);

/// Adopts the observed state of changes that were refused before a restart.
pub(super) fn settle(model: &mut Model, rooms: &Rooms) {
    for change in std::mem::take(&mut model.uncertain_changes) {
        rooms.catalog.read(|catalog| match change {
            UncertainChange::Bucket(index) => {
                let bucket = &mut model.buckets[index];
                let found = catalog.bucket(bucket.id);
                bucket.exists = found.is_some();
                bucket.ordinal = found.map(|it| it.ordinal).or(bucket.ordinal);
            }
            UncertainChange::Source(index, source) => {
                let source = &mut model.buckets[index].sources[source];
                let found = catalog.source(source.id);
                source.exists = found.is_some();
                source.ordinal = found.map(|it| it.ordinal).or(source.ordinal);
            }
            UncertainChange::Retention(index, days, at_ns, sent_before) => {
                let bucket = &mut model.buckets[index];
                if catalog
                    .bucket(bucket.id)
                    .is_some_and(|it| it.retention_days == days)
                {
                    bucket.retain(days, at_ns, sent_before);
                }
            }
        });
    }
}

/// Asserts that rooms and model agree.
pub(super) async fn compare(model: &mut Model, rooms: &Rooms, now_ns: i64) {
    let there = rooms.catalog.read(|catalog| catalog.buckets().count());
    assert_eq!(there, model.existing().len(), "buckets");
    for index in model.existing() {
        compare_bucket(&mut model.buckets[index], rooms, now_ns).await;
    }
}

async fn compare_bucket(model: &mut Bucket, rooms: &Rooms, now_ns: i64) {
    let catalog = rooms.catalog.read(|catalog| {
        let bucket = catalog.bucket(model.id).cloned();
        bucket.map(|it| {
            (
                it,
                catalog
                    .sources_of(model.id)
                    .map(|it| it.ordinal)
                    .collect::<Vec<_>>(),
            )
        })
    });
    let (bucket, mut sources) = catalog.expect("an acknowledged bucket is there");
    assert_eq!(
        bucket.retention_days, model.days,
        "retention of {}",
        bucket.ordinal
    );
    sources.sort_unstable();
    assert_eq!(sources, model.live_sources(), "sources of {}", bucket.ordinal);
    let apart = rooms.buckets.all_set_apart();
    let apart = apart.get(&bucket.ordinal);
    assert!(
        model.condition != Condition::Healthy || apart.is_none(),
        "bucket {} is set apart: {apart:?}",
        bucket.ordinal
    );
    let stats = match rooms.buckets.stats(&bucket, &sources).await {
        Ok(stats) => stats,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
            let expected = model.condition == Condition::SetApart || apart.is_some();
            assert!(expected, "bucket {} has no trouble: {error:?}", bucket.ordinal);
            return;
        }
    };
    assert!(
        model.condition != Condition::SetApart && apart.is_none(),
        "bucket {} answers, though it is set apart",
        bucket.ordinal
    );
    let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
    // Includes deleted sources, which have no rows.
    let ordinals: Vec<u32> = model.sources.iter().filter_map(|source| source.ordinal).collect();
    let view = rooms.buckets.view(&bucket).expect("it just answered");
    let mut seen: HashMap<u32, Place> = HashMap::new();
    let mut counted: BTreeMap<u32, (u64, Option<i64>, Option<i64>)> = BTreeMap::new();
    for series in ordinals.into_iter().filter_map(|source| view.series(source)) {
        let rows = rows_of(&series, cutoff_ns);
        let times = || rows.iter().map(|(timestamp_ns, ..)| *timestamp_ns);
        counted.insert(series.source, (rows.len() as u64, times().min(), times().max()));
        for (timestamp_ns, sequence, value) in rows {
            let place = (series.source, sequence, timestamp_ns);
            let other = seen.insert(value, place);
            assert_eq!(other, None, "value {value} is there twice, also at {place:?}");
        }
    }
    for (source, stats) in sources.iter().zip(stats) {
        let counted = counted.get(source).copied().unwrap_or_default();
        let (first_ns, last_ns) = stats.points.bounds_ns.unzip();
        let reported = (stats.points.points, first_ns, last_ns);
        assert_eq!(
            reported, counted,
            "stats of source {source} of bucket {}",
            bucket.ordinal
        );
    }
    for index in 0..model.requests.len() {
        let sent = compare_request(model, &model.requests[index], &mut seen, now_ns);
        model.requests[index].sent = sent;
    }
    assert!(
        seen.is_empty(),
        "rows that were never sent, or that are gone: {seen:?}; {}",
        bucket.ordinal
    );
    compare_keys(model, rooms, now_ns).await;
}

/// Removes the rows of a request from the observed ones; returns its resulting state.
fn compare_request(bucket: &Bucket, request: &Request, seen: &mut HashMap<u32, Place>, now_ns: i64) -> Sent {
    let about = || {
        let (rows, first) = (request.rows.len(), request.rows.first());
        format!(
            "{:?} of {rows} rows from {first:?}, sent at {}, bucket {:?} with {} days at {now_ns}",
            request.sent, request.at_ns, bucket.ordinal, bucket.days
        )
    };
    let (mut first, mut missing, mut found) = (None, None, 0);
    for (index, row) in (0u64..).zip(&request.rows) {
        let shows = bucket.must_be_visible(row, now_ns);
        let Some((source, sequence, timestamp_ns)) = seen.get(&row.value).copied() else {
            if shows == Some(true) {
                missing = missing.or(Some(row));
            }
            continue;
        };
        assert_ne!(shows, Some(false), "{row:?} is gone, and is seen: {}", about());
        seen.remove(&row.value);
        found += 1;
        assert_eq!(
            (source, timestamp_ns),
            (row.source, row.timestamp_ns),
            "{row:?} was altered: {}",
            about()
        );
        let of_row = sequence.checked_sub(index);
        assert!(first.is_none() || first == Some(of_row), "numbers of {}", about());
        first = Some(of_row);
    }
    let first = first.flatten();
    match request.sent {
        Sent::Stored(number) => {
            assert!(
                first.is_none_or(|it| it == number),
                "now from {first:?}: {}",
                about()
            );
            assert_eq!(missing, None, "missing, and {found} are there: {}", about());
            request.sent
        }
        Sent::Refused | Sent::Absent => {
            assert_eq!(found, 0, "seen: {}", about());
            request.sent
        }
        Sent::Unknown => match (first, missing) {
            (Some(number), None) => Sent::Stored(number),
            (None, Some(_)) => Sent::Absent,
            (None, None) => Sent::Unknown,
            (Some(_), Some(row)) => panic!("a part is there, without {row:?}: {}", about()),
        },
    }
}

/// Asserts that each key has the answer of its request for a day of the clock.
async fn compare_keys(model: &Bucket, rooms: &Rooms, now_ns: i64) {
    let bucket = rooms.catalog.read(|catalog| catalog.bucket(model.id).cloned());
    let bucket = bucket.expect("it was there before");
    let mut keys: BTreeMap<Digest, Vec<&Request>> = BTreeMap::new();
    for request in &model.requests {
        if let Some(key) = request.key {
            keys.entry(key).or_default().push(request);
        }
    }
    for (key, requests) in keys {
        let found = rooms.buckets.answered(&bucket, key).await.expect("it answers");
        if requests.iter().any(|it| it.sent == Sent::Unknown) {
            continue;
        }
        let stored = |request: &&&Request| matches!(request.sent, Sent::Stored(_));
        let mut known = requests
            .iter()
            .filter(stored)
            .filter(|it| it.at_ns > now_ns.saturating_sub(DAY_NS));
        let allowed = |request: &Request| match request.sent {
            Sent::Stored(first) => answer(bucket.ordinal, first),
            _ => Vec::new(),
        };
        match found {
            None => assert!(
                known.all(|request| request.may_be_forgotten),
                "the key of a request of {} is forgotten in bucket {} at {now_ns}",
                requests[0].at_ns,
                bucket.ordinal
            ),
            Some((body, found)) => {
                assert_eq!(body, body_digest(key));
                let known: Vec<&Request> = known.copied().collect();
                // The latest request determines the answer, unless its key may have expired.
                let last = known.iter().rposition(|it| !it.may_be_forgotten).unwrap_or(0);
                assert!(
                    known[last.min(known.len())..]
                        .iter()
                        .any(|it| allowed(it)[..] == *found.body),
                    "another answer, or one that is forgotten: {:?} in bucket {} at {now_ns}",
                    String::from_utf8_lossy(&found.body),
                    bucket.ordinal
                );
            }
        }
    }
}

/// The rows of a source, read in two ways that must agree: as rows and grouped.
fn rows_of(series: &SeriesSnapshot, cutoff_ns: i64) -> Vec<(i64, u64, u32)> {
    let (range_ns, stop) = ((cutoff_ns, i64::MAX), &|| false);
    let page = all_rows(series, range_ns).expect("rows");
    let mut rows = Vec::with_capacity(page.rows.len());
    for (run, row) in &page.rows {
        let (columns, row) = (&page.runs[*run as usize].columns, *row as usize);
        let (timestamp_ns, sequence) = columns.key(row);
        let Some(Values::Numbers { values, .. }) = columns.field(0).map(|column| &column.values) else {
            panic!("field 0 is a number");
        };
        let value = values[row] as u32;
        let text = columns.field(1).filter(|column| column.has(row));
        assert_eq!(text.is_some(), value.is_multiple_of(3), "the text of {value}");
        rows.push((timestamp_ns, sequence, value));
    }
    assert!(rows.is_sorted(), "rows come by time and number");
    let query = GroupQuery {
        range_ns,
        step: Unit::Day.into(),
        fields: &[0],
        metadata: None,
        stop,
        values: &[],
    };
    let grouped = group(series, &query).expect("groups");
    let count: u64 = grouped.aggregates.iter().map(|it| it.count).sum();
    let sum: f64 = grouped.aggregates.iter().map(engine::Aggregate::sum).sum();
    let rows_sum: f64 = rows.iter().map(|row| f64::from(row.2)).sum();
    assert_eq!(
        (count, sum),
        (rows.len() as u64, rows_sum),
        "grouped, source {}",
        series.source
    );
    rows
}
