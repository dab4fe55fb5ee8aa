//! Rows in memory, column by column, aligned: entry `i` of every column belongs to row `i`. Used for the chunks of a
//! head, for decoded blocks, and as the input of a new block.

use std::ops::Range;

use crate::block::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES, FieldKind};
use crate::column::{Column, FieldColumn, Texts, Values};
use crate::rows::Table;

/// Rows of one source, usually sorted by (timestamp, sequence).
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Nanoseconds since 1970 UTC.
    pub timestamps_ns: Vec<i64>,
    /// Order of arrival within the bucket.
    pub sequences: Vec<u64>,
    /// Sorted by field.
    pub fields: Vec<FieldColumn>,
    /// JSON texts; `None` if no row has any. Boxed, like other rare parts, because most sources are idle with few rows.
    pub metadata: Option<Box<Column>>,
}

impl Columns {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.timestamps_ns.len()
    }

    fn columns(&self) -> impl Iterator<Item = &Column> {
        let fields = self.fields.iter().map(|field| &field.column);
        fields.chain(self.metadata.as_deref())
    }

    /// Approximate memory in bytes; computed without visiting the rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.fields.capacity() * size_of::<FieldColumn>()
            + self.timestamps_ns.capacity() * size_of::<i64>()
            + self.sequences.capacity() * size_of::<u64>()
            + self.columns().map(Column::memory_bytes).sum::<usize>()
    }

    /// Total size of the distinct texts in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.texts().map(|(_, texts)| texts.text_bytes).sum()
    }

    fn texts(&self) -> impl Iterator<Item = (&Column, &Texts)> {
        self.columns().filter_map(|column| match &column.values {
            Values::Texts(texts) => Some((column, &**texts)),
            Values::Numbers { .. } | Values::Booleans(_) => None,
        })
    }

    /// The end of a full block that begins with row `start`: full by rows or by texts. `None` if the rows before `end`
    /// do not fill it.
    pub(crate) fn block_end(&self, start: usize, end: usize) -> Option<usize> {
        let full = start + BLOCK_ROWS_MAX;
        let by_rows = (full <= end).then_some(full);
        if self.text_bytes() < BLOCK_TEXT_BYTES {
            return by_rows;
        }
        let end = end.min(full);
        let mut columns: Vec<(&Column, &Texts, Vec<bool>)> = self
            .texts()
            .map(|(column, texts)| (column, texts, vec![false; texts.dictionary.len()]))
            .collect();
        let mut bytes = 0;
        for row in start..end {
            for (column, texts, seen) in &mut columns {
                let seen = &mut seen[texts.codes[row] as usize];
                if column.has(row) && !std::mem::replace(seen, true) {
                    bytes += texts.get(row).len();
                }
            }
            if bytes >= BLOCK_TEXT_BYTES {
                return Some(row + 1);
            }
        }
        by_rows
    }

    /// The end of the last full block when the rows from `start` on are cut into blocks.
    pub(crate) fn full_until(&self, start: usize, end: usize) -> usize {
        std::iter::successors(Some(start), |start| self.block_end(*start, end))
            .last()
            .unwrap_or(start)
    }

    /// (timestamp, sequence) of a row: the sort key.
    #[inline]
    pub fn key(&self, row: usize) -> (i64, u64) {
        (self.timestamps_ns[row], self.sequences[row])
    }

    /// Whether the rows are in order of their keys, each once.
    pub(crate) fn is_sorted(&self) -> bool {
        (1..self.rows()).all(|row| self.key(row - 1) < self.key(row))
    }

    fn find(&self, field: u16) -> Result<usize, usize> {
        self.fields.binary_search_by_key(&field, |column| column.field)
    }

    /// The column of a field; `None` if no row has it.
    pub fn field(&self, field: u16) -> Option<&Column> {
        Some(&self.fields[self.find(field).ok()?].column)
    }

    /// Appends rows `range` of `table`; `first_sequence` is the sequence of the record's first row.
    pub(crate) fn append(&mut self, table: &Table<'_>, range: Range<usize>, first_sequence: u64) {
        let rows = self.rows();
        self.timestamps_ns
            .extend_from_slice(&table.timestamps_ns[range.clone()]);
        self.sequences.extend(
            table.places[range.clone()]
                .iter()
                .map(|place| first_sequence + u64::from(*place)),
        );
        let have_same_fields = self.fields.len() == table.columns.len()
            && (self.fields.iter().zip(&table.columns)).all(|(known, from)| known.field == from.field);
        if have_same_fields {
            for (known, from) in self.fields.iter_mut().zip(&table.columns) {
                known.column.append(from, range.clone(), rows);
            }
        } else {
            self.append_fields(table, &range, rows);
        }
        let present = table.metadata.present.as_ref();
        if present.is_none_or(|present| !present.is_empty()) || self.metadata.is_some() {
            self.metadata
                .get_or_insert_with(|| Box::new(Column::absent(rows, FieldKind::String)))
                .append(&table.metadata, range, rows);
        }
    }

    /// Appends the fields of rows `range` of `table` to these columns, which had `rows` rows and other fields.
    fn append_fields(&mut self, table: &Table<'_>, range: &Range<usize>, rows: usize) {
        for from in &table.columns {
            let index = self.find(from.field).unwrap_or_else(|index| {
                let (field, column) = (from.field, Column::absent(rows, from.values.kind()));
                self.fields.reserve_exact(1);
                self.fields.insert(index, FieldColumn { field, column });
                index
            });
            self.fields[index].column.append(from, range.clone(), rows);
        }
        for known in &mut self.fields {
            let columns = &table.columns;
            let found = columns.binary_search_by_key(&known.field, |column| column.field);
            if found.is_err() {
                known.column.push_absent(range.len(), rows);
            }
        }
    }

    /// Copies the picked rows `(run, row)` to new columns, in that order.
    pub(crate) fn gather(runs: &[&Columns], picks: &[(u32, u32)]) -> Columns {
        let fields = runs.iter().flat_map(|run| &run.fields);
        let mut fields: Vec<(u16, FieldKind)> = fields
            .map(|column| (column.field, column.column.values.kind()))
            .collect();
        fields.sort_by_key(|(field, _)| *field);
        fields.dedup_by_key(|(field, _)| *field);
        let fields = fields.into_iter().map(|(field, kind)| FieldColumn {
            field,
            column: Column::gather(kind, runs, picks, |run| run.field(field)),
        });
        let any_metadata = runs.iter().any(|run| run.metadata.is_some());
        let metadata = any_metadata
            .then(|| Column::gather(FieldKind::String, runs, picks, |run| run.metadata.as_deref()));
        let picked = || {
            picks
                .iter()
                .map(|(run, row)| (runs[*run as usize], *row as usize))
        };
        Columns {
            timestamps_ns: picked().map(|(run, row)| run.timestamps_ns[row]).collect(),
            sequences: picked().map(|(run, row)| run.sequences[row]).collect(),
            fields: fields
                .filter(|field| field.column.count(picks.len()) > 0)
                .collect(),
            metadata: metadata
                .filter(|metadata| metadata.count(picks.len()) > 0)
                .map(Box::new),
        }
    }

    /// Copies a range of rows to new columns.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Columns {
        let picks: Vec<(u32, u32)> = (rows.start as u32..rows.end as u32).map(|row| (0, row)).collect();
        Columns::gather(&[self], &picks)
    }

    /// The rows of all runs, ordered by (timestamp, sequence).
    pub(crate) fn merged(runs: &[&Columns]) -> Columns {
        let mut picks: Vec<(u32, u32)> = Vec::with_capacity(runs.iter().map(|run| run.rows()).sum());
        for (index, run) in runs.iter().enumerate() {
            picks.extend((0..run.rows() as u32).map(|row| (index as u32, row)));
        }
        // The sort detects runs that are already ordered, so this is a merge.
        picks.sort_by_key(|(run, row)| runs[*run as usize].key(*row as usize));
        Columns::gather(runs, &picks)
    }
}
