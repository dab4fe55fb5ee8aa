//! One column of rows: values of one type, and which rows have one. Texts are stored as codes into a dictionary of the
//! distinct texts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::block::FieldKind;
use crate::columns::Columns;
use crate::rows::{NOT_DECIMAL, Scalar, TableColumn, TableValues};

/// The column of one field.
#[derive(Debug, Clone)]
pub struct FieldColumn {
    /// The field's ordinal in its source's schema.
    pub field: u16,
    /// The field's values.
    pub column: Column,
}

/// Values, and which rows have one; a row without a value has an arbitrary placeholder.
#[derive(Debug, Clone)]
pub struct Column {
    /// `None`: every row has a value.
    pub present: Option<Box<Bitmap>>,
    /// One entry per row.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, Clone)]
pub enum Values {
    /// Doubles; `decimals` is the greatest number of decimal places of any of them, or [`NOT_DECIMAL`].
    Numbers {
        /// The doubles.
        values: Vec<f64>,
        /// Greatest number of decimal places, or [`NOT_DECIMAL`].
        decimals: u8,
    },
    /// Booleans.
    Booleans(Vec<bool>),
    /// Texts.
    Texts(Box<Texts>),
}

impl Values {
    pub(crate) fn kind(&self) -> FieldKind {
        match self {
            Values::Numbers { .. } => FieldKind::Number,
            Values::Booleans(_) => FieldKind::Boolean,
            Values::Texts(_) => FieldKind::String,
        }
    }

    /// Decimal places of numbers; [`NOT_DECIMAL`] if they are not stored as decimals.
    pub(crate) fn decimals(&self) -> u8 {
        match self {
            Values::Numbers { decimals, .. } => *decimals,
            Values::Booleans(_) | Values::Texts(_) => NOT_DECIMAL,
        }
    }
}

/// Memory of a distinct text in bytes, besides its content: pointers in dictionary and index, reference counts, code.
pub(crate) const TEXT_BYTES: usize = 64;

/// Not a valid code: a dictionary has at most as many texts as there are rows.
const NO_CODE: u32 = u32::MAX;

/// Texts as codes into a dictionary.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// The distinct texts.
    pub dictionary: Vec<Arc<str>>,
    /// One code per row.
    pub codes: Vec<u32>,
    /// The code of each text; filled only while texts are added.
    codes_by_text: HashMap<Arc<str>, u32>,
    /// Total size of the dictionary's texts in bytes.
    pub(crate) text_bytes: usize,
}

impl Texts {
    pub(crate) fn new(dictionary: Vec<Arc<str>>, codes: Vec<u32>) -> Self {
        Texts {
            text_bytes: dictionary.iter().map(|text| text.len()).sum(),
            dictionary,
            codes,
            codes_by_text: HashMap::new(),
        }
    }

    fn code(&mut self, text: &str) -> u32 {
        self.code_of(text, || text.into())
    }

    /// The code of a text. Adds it if it is new; `share` returns the text to store.
    fn code_of(&mut self, text: &str, share: impl FnOnce() -> Arc<str>) -> u32 {
        if let Some(code) = self.codes_by_text.get(text) {
            return *code;
        }
        let (code, text) = (self.dictionary.len() as u32, share());
        self.text_bytes += text.len();
        self.dictionary.push(Arc::clone(&text));
        self.codes_by_text.insert(text, code);
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

    /// The value of `row`, if it has one.
    #[inline]
    pub fn value(&self, row: usize) -> Option<Scalar<'_>> {
        self.has(row).then(|| match &self.values {
            Values::Numbers { values, .. } => Scalar::Number(values[row]),
            Values::Booleans(values) => Scalar::Boolean(values[row]),
            Values::Texts(texts) => Scalar::Text(texts.get(row)),
        })
    }

    /// Approximate heap memory in bytes; computed without visiting the rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.values {
            Values::Numbers { values, .. } => values.capacity() * size_of::<f64>(),
            Values::Booleans(values) => values.capacity(),
            Values::Texts(texts) => {
                texts.codes.capacity() * size_of::<u32>()
                    + texts.dictionary.len() * TEXT_BYTES
                    + texts.text_bytes
            }
        }
    }

    pub(crate) fn count(&self, rows: usize) -> usize {
        self.present.as_ref().map_or(rows, |present| present.ones())
    }

    /// A column of `rows` rows without values.
    pub(crate) fn absent(rows: usize, kind: FieldKind) -> Self {
        let values = match kind {
            FieldKind::Number => Values::Numbers {
                values: Vec::new(),
                decimals: 0,
            },
            FieldKind::Boolean => Values::Booleans(Vec::new()),
            FieldKind::String => Values::Texts(Box::default()),
        };
        let mut column = Column {
            present: None,
            values,
        };
        column.push_absent(rows, 0);
        column
    }

    pub(crate) fn push_absent(&mut self, count: usize, rows: usize) {
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

    /// Appends the rows `range` of a table's column to this column, which has `rows` rows.
    pub(crate) fn append(&mut self, from: &TableColumn<'_>, range: Range<usize>, rows: usize) {
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
                *decimals = (*decimals).max(stated.of(range.clone()));
                values.extend_from_slice(&new[range]);
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

    pub(crate) fn gather(
        kind: FieldKind,
        runs: &[&Columns],
        picks: &[(u32, u32)],
        of: impl Fn(&Columns) -> Option<&Column>,
    ) -> Self {
        let mut column = Column::absent(0, kind);
        let sources: Vec<Option<&Column>> = runs.iter().map(|run| of(run)).collect();
        if let Values::Numbers { decimals, .. } = &mut column.values {
            let stated = sources.iter().flatten().map(|column| column.values.decimals());
            *decimals = stated.max().unwrap_or(0);
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
        // Maps each run's codes to new ones, so that a text is looked up once rather than for each row.
        let mut codes: Vec<Vec<u32>> = vec![Vec::new(); runs.len()];
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
                    let known = &mut codes[*run as usize];
                    known.resize(new.dictionary.len(), NO_CODE);
                    let code = &mut known[new.codes[row] as usize];
                    if *code == NO_CODE {
                        let text = new.get(row);
                        *code = texts.code_of(text, || Arc::clone(text));
                    }
                    texts.codes.push(*code);
                }
                _ => unreachable!("BUG: a field never changes its type (the catalog refuses it)"),
            }
        }
        column
    }
}

/// The doubles of each run, if every row of every run has one: the common case, with a faster path.
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
