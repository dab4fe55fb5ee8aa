//! Adds the rows of log records to a store.

use std::cell::Cell;

use super::Store;
use crate::EngineError;
use crate::ends::source_of_ends;
use crate::members::{SERIES_ORDINALS_FROM, SeriesRef};
use crate::rows::{RowsReader, Table};

thread_local! {
    /// Buffers for the rows of a record, shared by the stores that a thread writes to.
    static BUFFERS: Cell<Table<'static>> = Cell::default();
}

fn corrupt(expected: &'static str) -> EngineError {
    EngineError::corrupt("rows of a log record", 0, expected)
}

/// The series whose rows are in a table: of table [`SERIES_ORDINALS_FROM`] + n the n-th of the record's, of any other the
/// source's own.
fn series_of(table: u32, of_record: &[SeriesRef]) -> Result<SeriesRef, EngineError> {
    let Some(place) = table.checked_sub(SERIES_ORDINALS_FROM) else {
        return Ok(SeriesRef {
            ordinal: table,
            source: source_of_ends(table).unwrap_or(table),
        });
    };
    let named = of_record.get(place as usize).copied();
    let named = named.filter(|series| series.ordinal >= SERIES_ORDINALS_FROM);
    named.ok_or(corrupt("a series of the record"))
}

impl Store {
    /// Adds the rows of one log record, as written by `RowsWriter::encode`; the first has `first_sequence`. Rows of
    /// table [`SERIES_ORDINALS_FROM`] + n belong to the n-th of `series`, those of other tables to the source of that
    /// ordinal. Ends of series without points are left out. Returns the number of points.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the bytes cannot be decoded. Rows before the error have then been added, so the caller
    /// must discard this store.
    pub fn apply(
        &mut self,
        rows: &[u8],
        first_sequence: u64,
        series: &[SeriesRef],
    ) -> Result<u32, EngineError> {
        let mut applied = 0;
        let mut reader = RowsReader::new(rows, BUFFERS.take())?;
        while let Some(table) = reader.next()? {
            let of_ends = table.source_of_ends().is_some();
            if of_ends {
                table.name_ended(|number| {
                    let ordinal = series_of(number, series)?.ordinal;
                    let held = self.series.points.get(ordinal);
                    Ok(held.filter(|held| !held.is_empty()).map(|_| ordinal))
                })?;
            }
            let count = table.timestamps_ns.len() as u32;
            if of_ends && count == 0 {
                continue;
            }
            self.add(table, of_ends, first_sequence, series)?;
            self.unsaved_rows += u64::from(count);
            applied += if of_ends { 0 } else { count };
        }
        BUFFERS.set(reader.into_buffers());
        self.unsaved_encoded_bytes += rows.len() as u64;
        Ok(applied)
    }

    /// Adds the rows of a table: points, or ends with the ordinals of their series.
    fn add(
        &mut self,
        table: &Table<'_>,
        of_ends: bool,
        first_sequence: u64,
        series: &[SeriesRef],
    ) -> Result<(), EngineError> {
        let parts = table.parts().map(|(number, rows)| {
            let of = series_of(number, series)?;
            Ok((of.ordinal, (of, rows)))
        });
        let pages = match of_ends {
            false => &mut self.series.points,
            true => &mut self.series.ends,
        };
        pages.change_each(parts, |held, (of, rows)| {
            let is_new = held.is_empty() || held.source != of.source;
            if is_new && of.ordinal >= SERIES_ORDINALS_FROM {
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
