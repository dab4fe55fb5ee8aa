//! Rows of a query over a whole store.

use engine::query::{MetadataFilter, Page, ScanQuery, Selection, scan};
use engine::{EngineError, SeriesSnapshot};

/// The first rows of all sources with all fields, ordered by time, whose metadata passes the filter.
pub fn rows_of(
    snapshot: &[SeriesSnapshot],
    limit: usize,
    metadata: Option<MetadataFilter<'_>>,
) -> Result<Page, EngineError> {
    let series = snapshot.iter();
    let selections: Vec<Selection<'_>> = series.map(|series| Selection::new(series, None)).collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit,
        metadata,
        stop: &|| false,
    };
    scan(&selections, &query)
}
