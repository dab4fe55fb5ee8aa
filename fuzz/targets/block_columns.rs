//! Arbitrary rows through memory, blocks and a segment file: they round-trip bit for bit, and a grouped query answers
//! as computed from all rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use engine::query::{GroupQuery, group};
use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{SegmentFile, SegmentWriter, SeriesSnapshot, Store, Unit, Values};

use super::rows_of::rows_of;

const SECOND_NS: i64 = 1_000_000_000;
const BUCKET: u32 = 3;
const FIELDS: u16 = 5;
const SOURCES: u8 = 3;
/// Enough for blocks with rollups of every level, and for fast inputs.
const ROWS_MAX: usize = 500;

#[derive(Arbitrary, Debug)]
enum Step {
    /// One row with any time.
    Row(u8, i64, Vec<(u8, Scalar)>, Option<String>),
    /// A sequence of rows: source, count, distance, first value, increment.
    Run(u8, u8, Distance, i16, i8, u8),
    /// Ends a log record with the rows since the last one.
    Record,
    /// Writes the rows in the log to a segment.
    Checkpoint,
}

#[derive(Arbitrary, Clone, Debug)]
enum Scalar {
    Number(f64),
    Decimal(i32, u8),
    Small(i8),
    Flag(bool),
    Text(String),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Distance {
    Nothing,
    Second,
    Minute,
    Hour,
    Any(i32),
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// The bits of a double.
    Number(u64),
    Boolean(bool),
    Text(String),
}

struct Row {
    source: u32,
    timestamp_ns: i64,
    sequence: u64,
    values: BTreeMap<u16, Value>,
    metadata: Option<String>,
}

#[derive(Default)]
struct Bucket {
    store: Store,
    writer: RowsWriter,
    rows: Vec<Row>,
    /// Number of rows applied to the store.
    applied: usize,
    files: u64,
    clock_ns: i64,
}

pub fn check(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let (Ok(unit), Ok(bounds)) = (
        data.choose(&Unit::ALL).copied(),
        <(i64, i64)>::arbitrary(&mut data),
    ) else {
        return;
    };
    let mut bucket = Bucket::default();
    while let Ok(step) = Step::arbitrary(&mut data) {
        if data.is_empty() || bucket.rows.len() >= ROWS_MAX {
            break;
        }
        bucket.take(step);
    }
    bucket.apply();
    bucket.check_rows();
    bucket.check_groups(unit, bounds);
    bucket.checkpoint();
    bucket.check_rows();
    bucket.check_groups(unit, bounds);
}

impl Bucket {
    fn take(&mut self, step: Step) {
        match step {
            Step::Row(source, timestamp_ns, values, metadata) => {
                self.row(source, timestamp_ns, &values, metadata);
            }
            Step::Run(source, count, distance, first, growth, decimals) => {
                let distance_ns = match distance {
                    Distance::Nothing => 0,
                    Distance::Second => SECOND_NS,
                    Distance::Minute => 60 * SECOND_NS,
                    Distance::Hour => 3_600 * SECOND_NS,
                    Distance::Any(ns) => i64::from(ns),
                };
                for number in 0..i32::from(count) {
                    self.clock_ns = self.clock_ns.wrapping_add(distance_ns);
                    let mantissa = i32::from(first) + number * i32::from(growth);
                    let values = [
                        (0, Scalar::Decimal(mantissa, decimals)),
                        (2, Scalar::Flag(number % 3 == 0)),
                    ];
                    self.row(source, self.clock_ns, &values, None);
                }
            }
            Step::Record => self.apply(),
            Step::Checkpoint => self.checkpoint(),
        }
    }

    fn row(&mut self, source: u8, timestamp_ns: i64, sent: &[(u8, Scalar)], metadata: Option<String>) {
        let source = u32::from(source % SOURCES);
        self.writer.begin(source);
        let mut values = BTreeMap::new();
        for (field, scalar) in sent {
            let field = u16::from(*field) % FIELDS;
            values.insert(field, self.write(field, scalar));
        }
        if let Some(text) = &metadata {
            self.writer.metadata(text);
        }
        self.writer.commit(timestamp_ns);
        let sequence = self.rows.len() as u64;
        self.rows.push(Row {
            source,
            timestamp_ns,
            sequence,
            values,
            metadata,
        });
    }

    /// Writes a value of the field's type: numbers in 0, 1 and 4, booleans in 2, texts in 3.
    fn write(&mut self, field: u16, scalar: &Scalar) -> Value {
        match field {
            2 => {
                let value = matches!(scalar, Scalar::Flag(true) | Scalar::Small(1..));
                self.writer.boolean(field, value);
                Value::Boolean(value)
            }
            3 => {
                let text = match scalar {
                    Scalar::Text(text) => text.clone(),
                    other => format!("{other:?}"),
                };
                self.writer.string(field, &text);
                Value::Text(text)
            }
            _ => {
                let (value, decimals) = match scalar {
                    // Non-finite values are refused by the parsers.
                    Scalar::Number(value) if value.is_finite() => (*value, NOT_DECIMAL),
                    Scalar::Decimal(mantissa, decimals) => {
                        let decimals = decimals % 12;
                        (f64::from(*mantissa) / 10f64.powi(i32::from(decimals)), decimals)
                    }
                    Scalar::Small(value) => (f64::from(*value), 0),
                    Scalar::Flag(_) => (-0.0, NOT_DECIMAL),
                    Scalar::Text(text) => (text.len() as f64, 0),
                    Scalar::Number(_) => (0.1, 1),
                };
                self.writer.number(field, value, decimals);
                Value::Number(value.to_bits())
            }
        }
    }

    fn apply(&mut self) {
        let mut record = Vec::new();
        self.writer.encode(&mut record);
        self.writer.clear();
        let applied = self.store.apply(&record, self.applied as u64, &[]).unwrap() as usize;
        self.applied += applied;
        assert_eq!(self.applied, self.rows.len());
    }

    fn checkpoint(&mut self) {
        let Some(checkpoint) = self.store.begin_checkpoint() else {
            return;
        };
        let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment)).unwrap();
        self.files += 1;
        let file = SegmentFile::open(self.files, Arc::new(bytes)).unwrap();
        let part = file.part(BUCKET).unwrap().unwrap();
        let blocks = part.verify().unwrap();
        assert!(blocks.iter().all(|block| block.fault.is_none()), "{blocks:?}");
        self.store.finish_checkpoint(checkpoint, Some(part), i64::MIN);
    }

    fn snapshot(&self) -> Vec<SeriesSnapshot> {
        let sources = 0..u32::from(SOURCES);
        sources
            .filter_map(|source| self.store.view().series(source))
            .collect()
    }

    fn check_rows(&self) {
        let snapshot = self.snapshot();
        let page = rows_of(&snapshot, usize::MAX, None).unwrap();
        let mut expected: Vec<&Row> = self.rows.iter().filter(|row| !row.values.is_empty()).collect();
        expected.sort_by_key(|row| (row.timestamp_ns, row.sequence));
        let has_value = |(run, row): &&(u32, u32)| {
            let fields = &page.runs[*run as usize].columns.fields;
            fields.iter().any(|field| field.column.has(*row as usize))
        };
        let found: Vec<_> = page.rows.iter().filter(has_value).collect();
        assert_eq!(found.len(), expected.len());
        for ((run, row), expected) in found.into_iter().zip(expected) {
            let (run, row) = (&page.runs[*run as usize], *row as usize);
            assert_eq!(
                (run.source, run.columns.key(row)),
                (expected.source, (expected.timestamp_ns, expected.sequence))
            );
            let text = |values: &Values| match values {
                Values::Texts(texts) => texts.get(row).to_string(),
                _ => panic!("no texts: {values:?}"),
            };
            let metadata = run.columns.metadata.as_ref().filter(|column| column.has(row));
            assert_eq!(metadata.map(|column| text(&column.values)), expected.metadata);
            for field in 0..FIELDS {
                let column = run.columns.field(field).filter(|column| column.has(row));
                let value = column.map(|column| match &column.values {
                    Values::Numbers { values, .. } => Value::Number(values[row].to_bits()),
                    Values::Booleans(values) => Value::Boolean(values[row]),
                    texts @ Values::Texts(_) => Value::Text(text(texts)),
                });
                assert_eq!(value.as_ref(), expected.values.get(&field), "field {field}");
            }
        }
    }

    fn check_groups(&self, unit: Unit, (one, other): (i64, i64)) {
        let range_ns = (one.min(other), one.max(other));
        let fields: Vec<u16> = (0..FIELDS).collect();
        for series in &self.snapshot() {
            let query = GroupQuery {
                range_ns,
                step: unit.into(),
                fields: &fields,
                metadata: None,
                stop: &|| false,
                values: &[],
            };
            let groups = group(series, &query).unwrap();
            let mut cells: BTreeMap<i64, Vec<Vec<&Value>>> = BTreeMap::new();
            for row in self.rows.iter().filter(|row| row.source == series.source) {
                if (range_ns.0..=range_ns.1).contains(&row.timestamp_ns) && !row.values.is_empty() {
                    let cell = cells
                        .entry(unit.start_ns(row.timestamp_ns))
                        .or_insert_with(|| vec![Vec::new(); 5]);
                    row.values
                        .iter()
                        .for_each(|(field, value)| cell[usize::from(*field)].push(value));
                }
            }
            assert_eq!(groups.starts_ns, cells.keys().copied().collect::<Vec<_>>());
            for (index, cell) in cells.values().enumerate() {
                for (aggregate, values) in groups.cell(index).iter().zip(cell) {
                    assert_eq!(aggregate.count, values.len() as u64);
                    let numbers: Vec<f64> = values
                        .iter()
                        .filter_map(|value| match value {
                            Value::Number(bits) => Some(f64::from_bits(*bits)),
                            _ => None,
                        })
                        .collect();
                    if numbers.is_empty() {
                        continue;
                    }
                    let min = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                    let max = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    assert_eq!((aggregate.min, aggregate.max), (min, max));
                    let magnitude: f64 = numbers.iter().map(|number| number.abs()).sum();
                    if magnitude < 1e300 {
                        let sum: f64 = numbers.iter().sum();
                        assert!(
                            (aggregate.sum() - sum).abs() <= 1e-12 * magnitude,
                            "{} is no {sum}",
                            aggregate.sum()
                        );
                    }
                }
            }
        }
    }
}
