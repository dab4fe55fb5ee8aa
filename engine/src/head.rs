//! The rows of a series that are not in a block yet.
//!
//! The head is a list of small chunks, and a buffer before it for the rows of requests with few rows of a series. A full
//! chunk never changes; buffer and last chunk are copied if a reader still shares them (`Arc::make_mut`). That costs at
//! most [`CHUNK_ROWS_MAX`] rows once per reader; in return, readers need no lock and see exactly the rows that existed
//! when they took their snapshot.

use std::ops::Range;
use std::sync::Arc;

use crate::block::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES};
use crate::columns::Columns;
use crate::row_buffer::RowBuffer;
use crate::rows::Table;

/// Maximum number of rows of a chunk.
const CHUNK_ROWS_MAX: usize = 1_024;
const CHUNKS_PER_BLOCK: usize = BLOCK_ROWS_MAX / CHUNK_ROWS_MAX;
/// Size of distinct texts in bytes at which a chunk is full, whatever its number of rows.
const CHUNK_TEXT_BYTES: usize = BLOCK_TEXT_BYTES / CHUNKS_PER_BLOCK;

/// Rows of a series in one request from which they are appended to the columns at once, rather than buffered.
const UNBUFFERED_ROWS: usize = 8;

/// Rows that are not in a block yet.
#[derive(Clone, Default)]
pub(crate) struct Head {
    /// The newest of the rows that arrived in order of time.
    buffer: RowBuffer,
    /// Rows that arrived in order of time, ties by sequence, before those in the buffer.
    main: Vec<Arc<Columns>>,
    /// Late rows: received after a greater timestamp. All chunks except the last are sorted.
    late: Vec<Arc<Columns>>,
    /// Chunks to be sealed; each is sorted.
    sealing: Vec<Arc<Columns>>,
    /// Chunks to be written by a checkpoint; each is sorted. Blocks sealed of them meanwhile are discarded, or the rows
    /// would exist twice, in the blocks and in the segment.
    saving: Vec<Arc<Columns>>,
}

/// What appending rows did.
#[derive(Default)]
pub(crate) struct Appended {
    /// Approximate growth in bytes; less than the rows if a copied chunk loses spare capacity.
    pub(crate) growth: i64,
    /// Rows that each fill a block, and are to be sealed.
    pub(crate) full: Vec<Vec<Arc<Columns>>>,
}

impl Head {
    /// Chunks of columns, without the buffer.
    fn chunks_of_columns(&self) -> impl Iterator<Item = &Arc<Columns>> {
        let frozen = self.saving.iter().chain(&self.sealing);
        frozen.chain(&self.main).chain(&self.late)
    }

    /// All rows. Those of the buffer are made a chunk for the first reader.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Arc<Columns>> {
        self.chunks_of_columns().chain(self.buffer.columns())
    }

    /// Timestamps and sequences of all rows.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, u64)> {
        let of_chunks = self
            .chunks_of_columns()
            .flat_map(|chunk| (0..chunk.rows()).map(|row| chunk.key(row)));
        of_chunks.chain(self.buffer.positions())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.chunks_of_columns().next().is_none()
    }

    /// Approximate memory of its rows in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let chunks = self.chunks_of_columns().map(|chunk| chunk.memory_bytes());
        chunks.sum::<usize>() + self.buffer.memory_bytes()
    }

    /// Whether the table's fields have the same types as here, where all agree because of this check. Most fields are
    /// found in the last chunk.
    fn agrees(&self, table: &Table<'_>) -> bool {
        if !self.buffer.agrees(table) {
            return false;
        }
        let newest = [self.main.last(), self.late.last()];
        table.columns.iter().enumerate().all(|(place, column)| {
            // Usually the rows before had the same fields.
            if let Some(known) = newest[0].and_then(|chunk| chunk.fields.get(place))
                && known.field == column.field
            {
                return known.column.values.kind() == column.values.kind();
            }
            let mut chunks = newest.into_iter().flatten().chain(self.chunks_of_columns());
            let known = chunks.find_map(|chunk| chunk.field(column.field));
            known.is_none_or(|known| known.values.kind() == column.values.kind())
        })
    }

    /// Adds these rows of a request's table, where rows before `newest_ns` are late. Returns `None` if a field has another
    /// type than before.
    pub(crate) fn append(
        &mut self,
        table: &Table<'_>,
        rows: Range<usize>,
        first_sequence: u64,
        newest_ns: &mut Option<i64>,
    ) -> Option<Appended> {
        let timestamps = &table.timestamps_ns[..rows.end];
        let are_few = rows.len() < UNBUFFERED_ROWS;
        let mut appended = Appended::default();
        appended.growth -= self.buffer.memory_bytes() as i64;
        let mut row = rows.start;
        if are_few {
            row += self.push_rows(table, rows, first_sequence, newest_ns);
        }
        if row == timestamps.len() {
            appended.growth += self.buffer.memory_bytes() as i64;
            return Some(appended);
        }
        if !self.agrees(table) {
            return None;
        }
        while row < timestamps.len() {
            let rest = &timestamps[row..];
            let late = newest_ns.map_or(0, |newest_ns| {
                rest.iter().take_while(|it| **it < newest_ns).count()
            });
            if late > 0 {
                let rows = row..row + late;
                appended.growth += append_rows(&mut self.late, table, rows, first_sequence, true);
                row += late;
                continue;
            }
            appended.growth += self.move_buffer();
            if are_few && self.buffer.extend_fields(table) {
                let rows = row..timestamps.len();
                let buffered = self.push_rows(table, rows, first_sequence, newest_ns);
                if buffered > 0 {
                    row += buffered;
                    continue;
                }
            }
            let in_order = rest.chunk_by(|before, after| before <= after).next();
            let rows = row..row + in_order.map_or(1, <[i64]>::len);
            *newest_ns = Some(timestamps[rows.end - 1]);
            row = rows.end;
            appended.growth += append_rows(&mut self.main, table, rows, first_sequence, false);
        }
        appended.growth += self.buffer.memory_bytes() as i64;
        appended.full = self.take_full();
        Some(appended)
    }

    /// Adds these rows of a table to the buffer, until one is late or does not fit; returns their number.
    fn push_rows(
        &mut self,
        table: &Table<'_>,
        rows: Range<usize>,
        first_sequence: u64,
        newest_ns: &mut Option<i64>,
    ) -> usize {
        let pushed = rows.take_while(|row| {
            let timestamp_ns = table.timestamps_ns[*row];
            let is_late = newest_ns.is_some_and(|newest_ns| timestamp_ns < newest_ns);
            let is_pushed = !is_late && self.buffer.push(table, *row, first_sequence);
            if is_pushed {
                *newest_ns = Some(timestamp_ns);
            }
            is_pushed
        });
        pushed.count()
    }

    /// Moves the buffered rows to the chunks; returns the growth of these in bytes.
    fn move_buffer(&mut self) -> i64 {
        let Some((table, first_sequence)) = self.buffer.table() else {
            return 0;
        };
        let rows = 0..table.timestamps_ns.len();
        let growth = append_rows(&mut self.main, &table, rows, first_sequence, false);
        drop(table);
        self.buffer.clear();
        growth
    }

    /// Takes the oldest chunks that fill a block, as long as there are any.
    fn take_full(&mut self) -> Vec<Vec<Arc<Columns>>> {
        let mut full = Vec::new();
        for chunks in [&mut self.main, &mut self.late] {
            while let Some(count) = full_chunks(chunks) {
                let runs: Vec<Arc<Columns>> = chunks.drain(..count).collect();
                self.sealing.extend(runs.iter().cloned());
                full.push(runs);
            }
        }
        full
    }

    /// Whether rows are being sealed, and no checkpoint writes them.
    pub(crate) fn is_sealing(&self, run: &Arc<Columns>) -> bool {
        self.sealing.iter().any(|chunk| Arc::ptr_eq(chunk, run))
    }

    /// Removes rows that are in a block now.
    pub(crate) fn remove(&mut self, runs: &[Arc<Columns>]) {
        let is_other = |chunk: &Arc<Columns>| !runs.iter().any(|run| Arc::ptr_eq(run, chunk));
        self.sealing.retain(is_other);
        self.saving.retain(is_other);
    }

    /// Sets all rows aside for a checkpoint; they stay readable. Returns them, and the approximate growth in bytes.
    pub(crate) fn freeze(&mut self) -> (Vec<Arc<Columns>>, i64) {
        let before = self.memory_bytes();
        self.saving.append(&mut self.sealing);
        self.saving.append(&mut self.main);
        self.saving
            .extend(std::mem::take(&mut self.buffer).columns().cloned());
        self.saving.extend(self.late.drain(..).map(sorted));
        (self.saving.clone(), self.memory_bytes() as i64 - before as i64)
    }
}

/// Approximate memory in bytes.
pub(crate) fn memory_of(chunks: &[Arc<Columns>]) -> usize {
    chunks.iter().map(|chunk| chunk.memory_bytes()).sum()
}

/// Number of chunks, from the first on, that fill a block, if they do. All chunks except the last are full, by rows or
/// by texts.
fn full_chunks(chunks: &[Arc<Columns>]) -> Option<usize> {
    let (_, full) = chunks.split_last()?;
    let mut text_bytes = 0;
    for (index, chunk) in full.iter().enumerate() {
        text_bytes += chunk.text_bytes();
        if index + 1 == CHUNKS_PER_BLOCK || text_bytes >= BLOCK_TEXT_BYTES {
            return Some(index + 1);
        }
    }
    None
}

/// Returns the approximate growth of the chunks in bytes.
fn append_rows(
    chunks: &mut Vec<Arc<Columns>>,
    table: &Table<'_>,
    range: Range<usize>,
    first_sequence: u64,
    late: bool,
) -> i64 {
    let mut growth = 0;
    let mut start = range.start;
    while start < range.end {
        let room = match chunks.last() {
            Some(chunk) if chunk.text_bytes() < CHUNK_TEXT_BYTES => {
                CHUNK_ROWS_MAX.saturating_sub(chunk.rows())
            }
            _ => 0,
        };
        if room == 0 {
            if let Some(full) = chunks.last_mut().filter(|_| late) {
                growth -= full.memory_bytes() as i64;
                *full = sorted(Arc::clone(full));
                growth += full.memory_bytes() as i64;
            }
            let chunk = Arc::<Columns>::default();
            growth += chunk.memory_bytes() as i64;
            chunks.push(chunk);
            continue;
        }
        let end = range.end.min(start + room);
        if let Some(chunk) = chunks.last_mut() {
            growth -= chunk.memory_bytes() as i64;
            Arc::make_mut(chunk).append(table, start..end, first_sequence);
            growth += chunk.memory_bytes() as i64;
        }
        start = end;
    }
    growth
}

/// The chunk itself if it is sorted, otherwise a sorted copy.
pub(crate) fn sorted(chunk: Arc<Columns>) -> Arc<Columns> {
    if chunk.is_sorted() {
        chunk
    } else {
        Arc::new(Columns::merged(&[&chunk]))
    }
}
