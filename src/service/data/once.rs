//! Points of sources that do not take points twice: which of them may be there already, and which are.
//!
//! A point that is newer than all of its series is new, which the bucket's actor knows. Other points are compared with
//! those that are there, on a thread of its own and by one request of a bucket at a time; then the request is parsed
//! again, without the values that are there.

use std::collections::HashMap;

use engine::query::present;
use engine::rows::{KnownValues, RowsWriter};
use engine::{EngineError, SERIES_ORDINALS_FROM, SeriesRef, View};

use crate::bucket::MayRepeat;
use crate::catalog::Bucket;
use crate::error::ServiceError;
use crate::ingest::RequestSeries;
use crate::journal::RecordSeries;
use crate::service::Service;

/// What is known of a series that is stored only once.
#[derive(Default)]
pub(super) struct Compared {
    /// Points up to this time were compared.
    until_ns: i64,
    /// The values of the request that are there.
    known: KnownValues,
}

/// Points of a series that may be there already.
pub(super) struct OnceRows {
    /// The series' ordinal.
    ordinal: u32,
    /// Sorted.
    times_ns: Vec<i64>,
    fields: Vec<u16>,
}

/// The source of a table.
pub(super) fn source_of(series: &[RequestSeries], table: u32) -> u32 {
    let place = table.checked_sub(SERIES_ORDINALS_FROM);
    place.map_or(table, |place| series[place as usize].source)
}

/// Whether a table has rows of one of the sources `once`, which are ascending.
fn is_once(once: &[u32], series: &[RequestSeries], table: u32) -> bool {
    once.binary_search(&source_of(series, table)).is_ok()
}

/// The ordinal of the series of a table; `None` if it does not exist yet.
fn ordinal_of(series: &[RequestSeries], table: u32) -> Option<u32> {
    match table.checked_sub(SERIES_ORDINALS_FROM) {
        None => Some(table),
        Some(place) => series[place as usize].ordinal,
    }
}

pub(super) fn of_record(series: &RequestSeries) -> RecordSeries<'_> {
    RecordSeries {
        series: SeriesRef {
            ordinal: series.ordinal.unwrap_or_default(),
            source: series.source,
        },
        labels: series.ordinal.is_none().then_some(&series.labels),
    }
}

/// Removes the values that are there already from the rows of these sources. Returns the number of rows without values
/// left.
pub(super) fn drop_repeats(
    rows: &mut RowsWriter,
    series: &[RequestSeries],
    once: &[u32],
    compared: &HashMap<u32, Compared>,
) -> u32 {
    if once.is_empty() {
        return 0;
    }
    let none = KnownValues::new();
    rows.drop_repeats(|table| {
        let compared = ordinal_of(series, table).and_then(|ordinal| compared.get(&ordinal));
        let known = compared.map_or(&none, |compared| &compared.known);
        is_once(once, series, table).then_some(known)
    })
}

/// Which rows of these sources were not compared.
pub(super) fn may_repeat(
    rows: &RowsWriter,
    series: &[RequestSeries],
    once: &[u32],
    compared: &HashMap<u32, Compared>,
) -> Vec<MayRepeat> {
    if once.is_empty() {
        return Vec::new();
    }
    let tables = rows.times().filter(|(table, _)| is_once(once, series, *table));
    let tables = tables.filter_map(|(table, times_ns)| {
        let compared = ordinal_of(series, table).and_then(|ordinal| compared.get(&ordinal));
        let is_unchecked = |time_ns: &&i64| compared.is_none_or(|compared| **time_ns > compared.until_ns);
        Some(MayRepeat {
            table,
            oldest_unchecked_ns: times_ns.iter().filter(is_unchecked).min().copied(),
            newest_ns: *times_ns.iter().max()?,
        })
    });
    tables.collect()
}

/// The rows of these sources that belong to series that exist.
pub(super) fn once_rows(rows: &RowsWriter, series: &[RequestSeries], once: &[u32]) -> Vec<OnceRows> {
    let tables = rows.times_and_fields();
    let tables = tables.filter(|(table, ..)| is_once(once, series, *table));
    let tables = tables.filter_map(|(table, times_ns, fields)| {
        let mut times_ns = times_ns.to_vec();
        times_ns.sort_unstable();
        times_ns.dedup();
        Some(OnceRows {
            ordinal: ordinal_of(series, table)?,
            times_ns,
            fields,
        })
    });
    tables.collect()
}

impl Service {
    /// Compares rows with those that are there.
    pub(super) async fn compare(
        &self,
        bucket: &Bucket,
        rows: Vec<OnceRows>,
    ) -> Result<HashMap<u32, Compared>, ServiceError> {
        let view = self.buckets.view(bucket)?;
        let compared = tokio::task::spawn_blocking(move || {
            let compared = rows.iter().filter_map(|rows| compare(&view, rows).transpose());
            compared.collect::<Result<_, EngineError>>()
        });
        let compared = compared.await.map_err(ServiceError::internal)?;
        Ok(compared?)
    }
}

fn compare(view: &View, rows: &OnceRows) -> Result<Option<(u32, Compared)>, EngineError> {
    let Some(series) = view.series(rows.ordinal) else {
        return Ok(None);
    };
    let Some(until_ns) = series.newest_ns() else {
        return Ok(None);
    };
    let old = rows.times_ns.partition_point(|time_ns| *time_ns <= until_ns);
    let known = present(&series, &rows.times_ns[..old], &rows.fields, &|| false)?;
    Ok(Some((rows.ordinal, Compared { until_ns, known })))
}
