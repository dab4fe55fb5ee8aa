//! Adds the rows of log records to a store.

use super::Store;
use crate::EngineError;
use crate::members::{SERIES_ORDINALS_FROM, SeriesRef};
use crate::rows::{RowsReader, Table};

fn corrupt(expected: &'static str) -> EngineError {
    EngineError::corrupt("rows of a log record", 0, expected)
}

/// The series of table [`SERIES_ORDINALS_FROM`] + n: the n-th of a record's. `None` for the table of a source.
fn named(table: u32, series: &[SeriesRef]) -> Result<Option<SeriesRef>, EngineError> {
    let Some(place) = table.checked_sub(SERIES_ORDINALS_FROM) else {
        return Ok(None);
    };
    let named = series.get(place as usize).copied();
    named.map(Some).ok_or(corrupt("a series of the record"))
}

impl Store {
    /// Adds the rows of one log record, as written by `RowsWriter::encode`; the first has `first_sequence`. Rows of
    /// table [`SERIES_ORDINALS_FROM`] + n belong to the n-th of `series`, those of other tables to the source of that
    /// ordinal. Ends of series without points are left out. Returns the number of points.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the bytes cannot be decoded. Rows of tables before the error have then been added,
    /// so the caller must discard this store.
    pub fn apply(
        &mut self,
        rows: &[u8],
        first_sequence: u64,
        series: &[SeriesRef],
    ) -> Result<u32, EngineError> {
        let mut applied = 0;
        let mut reader = RowsReader::new(rows)?;
        while let Some(table) = reader.next()? {
            let of_ends = table.source_of_ends();
            if of_ends.is_some() {
                table.name_ended(|number| {
                    let ordinal = named(number, series)?.map_or(number, |series| series.ordinal);
                    let held = self.series.points.get(ordinal);
                    Ok(held.filter(|held| !held.is_empty()).map(|_| ordinal))
                })?;
                if table.timestamps_ns.is_empty() {
                    continue;
                }
            }
            self.add(table, first_sequence, series)?;
            let rows = table.timestamps_ns.len();
            self.unsaved_rows += rows as u64;
            applied += if of_ends.is_some() { 0 } else { rows as u32 };
        }
        self.unsaved_encoded_bytes += rows.len() as u64;
        Ok(applied)
    }

    /// Adds the rows of a table; rows of ends name their series.
    fn add(
        &mut self,
        table: &Table<'_>,
        first_sequence: u64,
        series: &[SeriesRef],
    ) -> Result<(), EngineError> {
        let of_ends = table.source_of_ends();
        let parts = table.parts().map(|(number, rows)| {
            let of_source = SeriesRef {
                ordinal: number,
                source: of_ends.unwrap_or(number),
            };
            let named = named(number, series)?.unwrap_or(of_source);
            Ok((named.ordinal, (named, rows)))
        });
        let parts: Vec<_> = parts.collect::<Result<_, EngineError>>()?;
        let pages = match of_ends {
            None => &mut self.series.points,
            Some(_) => &mut self.series.ends,
        };
        pages.change_each(parts, |held, (of, rows)| {
            if of.ordinal >= SERIES_ORDINALS_FROM && (held.is_empty() || held.source != of.source) {
                self.members.insert(of);
            }
            held.source = of.source;
            if !held.has_head() {
                self.unsaved.insert(of.ordinal);
            }
            let growth = held.append(of.ordinal, table, rows, first_sequence, &mut self.seals);
            let growth = growth.ok_or(corrupt("fields of the types that they have had"))?;
            self.unsaved_bytes = self.unsaved_bytes.saturating_add_signed(growth);
            Ok(())
        })
    }
}
