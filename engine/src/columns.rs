//! Rows in memory, column by column, aligned: entry `i` of every column belongs to row `i`. The same shape is a
//! chunk of a head, a decoded block, and the input of a new block.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::rows::{NOT_DECIMAL, Table, TableColumn, TableValues};

/// Rows of one source, usually sorted by (timestamp, sequence).
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Nanoseconds since 1970 UTC.
    pub timestamps_ns: Vec<i64>,
    /// Order of arrival within the bucket.
    pub sequences: Vec<u64>,
    /// Ascending by field.
    pub fields: Vec<FieldColumn>,
    /// JSON texts; `None` when no row has any. Boxed, like the other rare parts: most sources are idle with a row or two.
    pub metadata: Option<Box<Column>>,
}

/// The column of one field.
#[derive(Debug, Clone)]
pub struct FieldColumn {
    /// The field's ordinal in its source's schema.
    pub field: u16,
    /// Its values.
    pub column: Column,
}

/// Values and which rows have one; a row without has an arbitrary placeholder.
#[derive(Debug, Clone)]
pub struct Column {
    /// `None`: every row has a value.
    pub present: Option<Box<Bitmap>>,
    /// One entry a row.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, Clone)]
pub enum Values {
    /// Doubles; `decimals` is the most digits behind the point of any of them, or [`NOT_DECIMAL`].
    Numbers {
        /// The doubles.
        values: Vec<f64>,
        /// See above.
        decimals: u8,
    },
    /// Booleans.
    Booleans(Vec<bool>),
    /// Texts.
    Texts(Box<Texts>),
}

/// What a different text takes besides its bytes: its pointers in dictionary and index, its counts, its code.
const TEXT_BYTES: usize = 64;

/// Texts as codes into a dictionary.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// The different texts.
    pub dictionary: Vec<Arc<str>>,
    /// One code a row.
    pub codes: Vec<u32>,
    /// Code of each text, kept only while texts are added.
    codes_by_text: HashMap<Arc<str>, u32>,
}

impl Texts {
    pub(crate) fn new(dictionary: Vec<Arc<str>>, codes: Vec<u32>) -> Self {
        Texts {
            dictionary,
            codes,
            codes_by_text: HashMap::new(),
        }
    }

    fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.codes_by_text.get(text) {
            return *code;
        }
        let shared: Arc<str> = text.into();
        self.dictionary.push(Arc::clone(&shared));
        let code = self.dictionary.len() as u32 - 1;
        self.codes_by_text.insert(shared, code);
        code
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> &Arc<str> {
        &self.dictionary[self.codes[row] as usize]
    }
}

impl Column {
    /// Whether `row` has a value.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present.get(row))
    }

    /// About the memory it takes, in bytes.
    fn memory_bytes(&self) -> usize {
        match &self.values {
            Values::Numbers { values, .. } => size_of_val(&values[..]),
            Values::Booleans(values) => values.len(),
            Values::Texts(texts) => {
                let of_texts = texts.dictionary.iter().map(|text| text.len() + TEXT_BYTES);
                size_of_val(&texts.codes[..]) + of_texts.sum::<usize>()
            }
        }
    }

    pub(crate) fn count(&self, rows: usize) -> usize {
        self.present.as_ref().map_or(rows, |present| present.ones())
    }

    /// A column of `rows` rows without a value, of the same kind as `like`.
    fn absent(rows: usize, like: &Values) -> Self {
        let values = match like {
            Values::Numbers { .. } => Values::Numbers {
                values: vec![0.0; rows],
                decimals: 0,
            },
            Values::Booleans(_) => Values::Booleans(vec![false; rows]),
            Values::Texts(_) => {
                let mut texts = Texts::default();
                if rows > 0 {
                    let empty = texts.code("");
                    texts.codes = vec![empty; rows];
                }
                Values::Texts(Box::new(texts))
            }
        };
        Column {
            present: (rows > 0).then(|| Box::new(Bitmap::filled(rows, false))),
            values,
        }
    }

    fn push_absent(&mut self, count: usize, rows: usize) {
        if count == 0 {
            return;
        }
        self.present
            .get_or_insert_with(|| Box::new(Bitmap::filled(rows, true)))
            .extend(count, false);
        match &mut self.values {
            Values::Numbers { values, .. } => values.resize(rows + count, 0.0),
            Values::Booleans(values) => values.resize(rows + count, false),
            Values::Texts(texts) => {
                let empty = texts.code("");
                texts.codes.resize(rows + count, empty);
            }
        }
    }

    /// Appends the rows `range` of a table's column to this one of `rows` rows.
    fn append(&mut self, from: &TableColumn<'_>, range: Range<usize>, rows: usize) {
        let Some(present) = &from.present else {
            if let Some(bits) = &mut self.present {
                bits.extend(range.len(), true);
            }
            self.push_values(&from.values, range);
            return;
        };
        let start = present.partition_point(|row| (*row as usize) < range.start);
        let end = present.partition_point(|row| (*row as usize) < range.end);
        let mut rows = rows;
        let mut next = range.start;
        for (index, row) in present.iter().enumerate().take(end).skip(start) {
            let gap = *row as usize - next;
            self.push_absent(gap, rows);
            if let Some(bits) = &mut self.present {
                bits.push(true);
            }
            self.push_values(&from.values, index..index + 1);
            rows += gap + 1;
            next = *row as usize + 1;
        }
        self.push_absent(range.end - next, rows);
    }

    fn push_values(&mut self, from: &TableValues<'_>, range: Range<usize>) {
        match (&mut self.values, from) {
            (
                Values::Numbers { values, decimals },
                TableValues::Numbers {
                    values: new,
                    decimals: stated,
                },
            ) => {
                values.extend_from_slice(&new[range]);
                *decimals = (*decimals).max(*stated);
            }
            (Values::Booleans(values), TableValues::Booleans(new)) => values.extend_from_slice(&new[range]),
            (Values::Texts(texts), TableValues::Texts { dictionary, codes }) => {
                for code in &codes[range] {
                    let code = texts.code(dictionary[*code as usize]);
                    texts.codes.push(code);
                }
            }
            _ => unreachable!("BUG: a field never changes its type (the catalog refuses it)"),
        }
    }

    fn gather(
        kind: &Values,
        runs: &[&Columns],
        picks: &[(u32, u32)],
        of: impl Fn(&Columns) -> Option<&Column>,
    ) -> Self {
        let mut column = Column::absent(0, kind);
        let sources: Vec<Option<&Column>> = runs.iter().map(|run| of(run)).collect();
        if let Values::Numbers { decimals, .. } = &mut column.values {
            *decimals = sources
                .iter()
                .flatten()
                .fold(0, |most, column| match &column.values {
                    Values::Numbers { decimals, .. } => most.max(*decimals),
                    _ => NOT_DECIMAL,
                });
        }
        if let Some(numbers) = dense_numbers(&sources)
            && let Values::Numbers { values, .. } = &mut column.values
        {
            values.extend(
                picks
                    .iter()
                    .map(|(run, row)| numbers[*run as usize][*row as usize]),
            );
            return column;
        }
        for (rows, (run, row)) in picks.iter().enumerate() {
            let row = *row as usize;
            let Some(from) = sources[*run as usize].filter(|from| from.has(row)) else {
                column.push_absent(1, rows);
                continue;
            };
            if let Some(bits) = &mut column.present {
                bits.push(true);
            }
            match (&mut column.values, &from.values) {
                (Values::Numbers { values, .. }, Values::Numbers { values: new, .. }) => {
                    values.push(new[row])
                }
                (Values::Booleans(values), Values::Booleans(new)) => values.push(new[row]),
                (Values::Texts(texts), Values::Texts(new)) => {
                    let code = texts.code(new.get(row));
                    texts.codes.push(code);
                }
                _ => unreachable!("BUG: a field never changes its type (the catalog refuses it)"),
            }
        }
        column
    }
}

/// The doubles of each run, where every row of every run has one: the usual case, and the quick one.
fn dense_numbers<'c>(sources: &[Option<&'c Column>]) -> Option<Vec<&'c [f64]>> {
    let dense = |column: &Option<&'c Column>| match column {
        Some(Column {
            present: None,
            values: Values::Numbers { values, .. },
        }) => Some(&values[..]),
        _ => None,
    };
    sources.iter().map(dense).collect()
}

impl Columns {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.timestamps_ns.len()
    }

    /// About the memory they take, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let columns = self.fields.iter().map(|field| &field.column);
        let columns = columns.chain(self.metadata.as_deref());
        16 * self.rows() + columns.map(Column::memory_bytes).sum::<usize>()
    }

    /// (timestamp, sequence) of a row: the order of rows.
    #[inline]
    pub fn key(&self, row: usize) -> (i64, u64) {
        (self.timestamps_ns[row], self.sequences[row])
    }

    /// The column of a field, if any row has it.
    pub fn field(&self, field: u16) -> Option<&Column> {
        let index = self
            .fields
            .binary_search_by_key(&field, |column| column.field)
            .ok()?;
        Some(&self.fields[index].column)
    }

    /// Appends rows `range` of `table`; the record's first row has `first_sequence`.
    pub(crate) fn append(&mut self, table: &Table<'_>, range: Range<usize>, first_sequence: u64) {
        let rows = self.rows();
        self.timestamps_ns
            .extend_from_slice(&table.timestamps_ns[range.clone()]);
        self.sequences.extend(
            table.places[range.clone()]
                .iter()
                .map(|place| first_sequence + u64::from(*place)),
        );
        for from in &table.columns {
            let index = match self
                .fields
                .binary_search_by_key(&from.field, |column| column.field)
            {
                Ok(index) => index,
                Err(index) => {
                    let column = Column::absent(rows, &empty_like(&from.values));
                    self.fields.reserve_exact(1);
                    self.fields.insert(
                        index,
                        FieldColumn {
                            field: from.field,
                            column,
                        },
                    );
                    index
                }
            };
            self.fields[index].column.append(from, range.clone(), rows);
        }
        for known in &mut self.fields {
            if table
                .columns
                .binary_search_by_key(&known.field, |column| column.field)
                .is_err()
            {
                known.column.push_absent(range.len(), rows);
            }
        }
        let some = table
            .metadata
            .present
            .as_ref()
            .is_none_or(|present| !present.is_empty());
        if some || self.metadata.is_some() {
            self.metadata
                .get_or_insert_with(|| Box::new(Column::absent(rows, &Values::Texts(Box::default()))))
                .append(&table.metadata, range, rows);
        }
    }

    /// New columns of the picked rows `(run, row)`, in that order.
    pub(crate) fn gather(runs: &[&Columns], picks: &[(u32, u32)]) -> Columns {
        let mut fields: Vec<(u16, &Values)> = runs
            .iter()
            .flat_map(|run| &run.fields)
            .map(|column| (column.field, &column.column.values))
            .collect();
        fields.sort_by_key(|(field, _)| *field);
        fields.dedup_by_key(|(field, _)| *field);
        let pick = |(run, row): &(u32, u32)| (*run as usize, *row as usize);
        let any_metadata = runs.iter().any(|run| run.metadata.is_some());
        let fields = fields.into_iter().map(|(field, kind)| FieldColumn {
            field,
            column: Column::gather(kind, runs, picks, |run| run.field(field)),
        });
        Columns {
            timestamps_ns: picks
                .iter()
                .map(pick)
                .map(|(run, row)| runs[run].timestamps_ns[row])
                .collect(),
            sequences: picks
                .iter()
                .map(pick)
                .map(|(run, row)| runs[run].sequences[row])
                .collect(),
            fields: fields
                .filter(|field| field.column.count(picks.len()) > 0)
                .collect(),
            metadata: any_metadata
                .then(|| {
                    Column::gather(&Values::Texts(Box::default()), runs, picks, |run| {
                        run.metadata.as_deref()
                    })
                })
                .filter(|metadata| metadata.count(picks.len()) > 0)
                .map(Box::new),
        }
    }

    /// The rows of all runs in order of (timestamp, sequence).
    pub(crate) fn merged(runs: &[&Columns]) -> Columns {
        let mut picks: Vec<(u32, u32)> = Vec::with_capacity(runs.iter().map(|run| run.rows()).sum());
        for (index, run) in runs.iter().enumerate() {
            picks.extend((0..run.rows() as u32).map(|row| (index as u32, row)));
        }
        // The sort finds the runs that are already in order, so this is a merge.
        picks.sort_by_key(|(run, row)| runs[*run as usize].key(*row as usize));
        Columns::gather(runs, &picks)
    }
}

fn empty_like(values: &TableValues<'_>) -> Values {
    match values {
        TableValues::Numbers { .. } => Values::Numbers {
            values: Vec::new(),
            decimals: 0,
        },
        TableValues::Booleans(_) => Values::Booleans(Vec::new()),
        TableValues::Texts { .. } => Values::Texts(Box::default()),
    }
}
