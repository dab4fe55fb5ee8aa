//! Ends of series: the times at which an agent said that a series has ended. They are rows of a series of their own beside
//! each source, so that they become durable, are merged, expire and are removed as points are. The store keeps them apart
//! from points, so that nothing that counts, lists or reads points meets them.
//!
//! A row has one number: the ordinal of the series that has ended. In a log record it is the number of that series' table.
//! Repeats are left out of blocks.

use std::collections::HashSet;
use std::ops::Range;

use crate::EngineError;
use crate::columns::Columns;
use crate::members::SERIES_ORDINALS_FROM;
use crate::pages::{Expired, Pages};
use crate::rows::{RowsWriter, Scalar, Sources, Table, TableValues};
use crate::series::Series;

/// The ordinal of the ends of source 0. Sources have smaller ordinals, series of sources those from
/// [`SERIES_ORDINALS_FROM`] on.
pub(crate) const ENDS_ORDINALS_FROM: u32 = 1 << 30;

/// The field that says which series has ended.
pub(crate) const ENDED_SERIES: u16 = 0;

/// The ordinal under which the ends of a source's series are stored.
pub(crate) fn ends_of(source: u32) -> u32 {
    source | ENDS_ORDINALS_FROM
}

/// The source whose ends are stored under this ordinal; `None` for points.
pub fn source_of_ends(ordinal: u32) -> Option<u32> {
    (ENDS_ORDINALS_FROM..SERIES_ORDINALS_FROM)
        .contains(&ordinal)
        .then_some(ordinal ^ ENDS_ORDINALS_FROM)
}

impl RowsWriter {
    /// Adds that a series of a source has ended. `table`: the number of the table of the series' rows, whether or not the
    /// request has some.
    pub fn end_series(&mut self, source: u32, table: u32, timestamp_ns: i64) {
        self.begin(ends_of(source));
        self.number(ENDED_SERIES, f64::from(table), 0);
        self.commit(timestamp_ns);
    }
}

impl Table<'_> {
    /// The source whose ends these rows are; `None` for points.
    pub(crate) fn source_of_ends(&self) -> Option<u32> {
        match self.sources {
            Sources::One(source) => source_of_ends(source),
            Sources::Each(_) => None,
        }
    }

    /// Replaces the numbers of tables by the ordinals of their series. Rows of series that `ordinal_of` does not know are
    /// removed.
    pub(crate) fn name_ended(
        &mut self,
        ordinal_of: impl Fn(u32) -> Result<Option<u32>, EngineError>,
    ) -> Result<(), EngineError> {
        let corrupt = EngineError::corrupt("ends of a log record", 0, "the number of a table in each row");
        let [column] = self.columns.as_mut_slice() else {
            return Err(corrupt);
        };
        let (TableValues::Numbers { values, .. }, None, ENDED_SERIES) =
            (&mut column.values, &column.present, column.field)
        else {
            return Err(corrupt);
        };
        let mut kept = 0;
        for row in 0..values.len() {
            if let Some(ordinal) = ordinal_of(values[row] as u32)? {
                values[kept] = f64::from(ordinal);
                self.timestamps_ns[kept] = self.timestamps_ns[row];
                self.places[kept] = self.places[row];
                kept += 1;
            }
        }
        values.truncate(kept);
        self.timestamps_ns.truncate(kept);
        self.places.truncate(kept);
        Ok(())
    }
}

/// These rows of ends, which are sorted by time and arrival, each series once for each time; `None` if none repeats.
pub(crate) fn without_repeats(sorted: &Columns, rows: Range<usize>) -> Option<Columns> {
    let column = sorted.field(ENDED_SERIES)?;
    let (mut time_ns, mut at_once) = (None, HashSet::new());
    let mut picks = Vec::with_capacity(rows.len());
    for row in rows.clone() {
        let row_ns = sorted.timestamps_ns[row];
        if time_ns.replace(row_ns) != Some(row_ns) {
            at_once = HashSet::new();
        }
        let is_new = match column.value(row) {
            Some(Scalar::Number(ordinal)) => at_once.insert(ordinal as u32),
            _ => true,
        };
        if is_new {
            picks.push((0, row as u32));
        }
    }
    (picks.len() < rows.len()).then(|| Columns::gather(&[sorted], &picks))
}

/// The series of a store: those of points, and beside them the ends, which only their own readers see.
#[derive(Default)]
pub(crate) struct AllSeries {
    pub(crate) points: Pages,
    pub(crate) ends: Pages,
}

impl AllSeries {
    fn pages(&mut self, ordinal: u32) -> &mut Pages {
        match source_of_ends(ordinal) {
            None => &mut self.points,
            Some(_) => &mut self.ends,
        }
    }

    pub(crate) fn get(&self, ordinal: u32) -> Option<&Series> {
        match source_of_ends(ordinal) {
            None => self.points.get(ordinal),
            Some(_) => self.ends.get(ordinal),
        }
    }

    /// Changes an existing series.
    pub(crate) fn change<R>(&mut self, ordinal: u32, change: impl FnOnce(&mut Series) -> R) -> Option<R> {
        self.pages(ordinal).change(ordinal, change)
    }

    /// Changes a series, which is created if it does not exist.
    pub(crate) fn change_or_insert<R>(&mut self, ordinal: u32, change: impl FnOnce(&mut Series) -> R) -> R {
        self.pages(ordinal).change_or_insert(ordinal, change)
    }

    pub(crate) fn remove(&mut self, ordinal: u32) -> Option<Series> {
        self.pages(ordinal).remove(ordinal)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Series)> {
        self.points.iter().chain(self.ends.iter())
    }

    /// Drops all blocks that end before the cutoff.
    pub(crate) fn expire(&mut self, cutoff_ns: i64) -> Expired {
        let mut expired = self.points.expire(cutoff_ns);
        let ends = self.ends.expire(cutoff_ns);
        expired.rows.extend(ends.rows);
        expired.emptied.extend(ends.emptied);
        expired
    }
}
