//! Bodies of points: the scanner accepts the same JSON as serde_json, and accepted values equal those that serde_json
//! reads.
//!
//! The body is parsed as a batch and as a single point.

use std::sync::{Arc, LazyLock};

use engine::query::Page;
use engine::rows::RowsWriter;
use engine::{Store, Values};
use serde_json::{Map, Value};
use tidewatch::catalog::{Field, FieldType, SchemaMode, Source, SourceStatus};
use tidewatch::error::ServiceError;
use tidewatch::ids::ObjectId;
use tidewatch::ingest::{Scratch, SeriesOfRequest, SourceView, parse_batch, parse_point, timestamp};

use super::rows_of::rows_of;

const NOW_NS: i64 = 1_767_225_600_000_000_000; // 2026-01-01T00:00:00Z
const OLDEST_NS: i64 = 1_764_633_600_000_000_000; // 2025-12-02T00:00:00Z
const BUCKET: &str = "0000000000000000000000b1";
const STRICT: &str = "000000000000000000000001";
const EXTEND: &str = "000000000000000000000002";

static SOURCES: LazyLock<[SourceView; 2]> = LazyLock::new(|| {
    use FieldType::{Boolean, Number, String};
    let strict = [
        ("t", Number),
        ("p", Number),
        ("on", Boolean),
        ("state", String),
        ("a\":1,\"t", Number),
    ];
    [
        source(STRICT, 1, SchemaMode::Strict, &strict),
        source(EXTEND, 2, SchemaMode::Extend, &strict[..1]),
    ]
});

fn source(id: &str, ordinal: u32, schema_mode: SchemaMode, fields: &[(&str, FieldType)]) -> SourceView {
    let field = |(name, kind): &(&str, FieldType)| Field {
        name: (*name).into(),
        kind: *kind,
        unit: None,
        description: None,
    };
    let source = Source {
        id: id.parse().unwrap(),
        ordinal,
        bucket_id: BUCKET.parse().unwrap(),
        name: id.into(),
        kind: "sensor".into(),
        description: None,
        schema: Arc::new(fields.iter().map(field).collect::<Vec<_>>().into()),
        schema_mode,
        downsampling: true,
        status: SourceStatus::Active,
        dimensions: None,
        duplicates: Default::default(),
        expected_interval_seconds: None,
        stale_since_ns: None,
        metric_type: None,
        created_at_ns: 0,
        updated_at_ns: 0,
    };
    SourceView {
        source: Arc::new(source),
        oldest_ns: OLDEST_NS,
        series: None,
    }
}

fn view(id: ObjectId) -> Option<SourceView> {
    SOURCES.iter().find(|view| view.source.id == id).cloned()
}

pub fn check(body: &[u8]) {
    let tree = serde_json::from_slice::<Value>(body);
    let mut rows = RowsWriter::new();
    let batch = parse_batch(body, NOW_NS, &mut view, &mut Scratch::default(), &mut rows);
    let point = parse_point(body);
    check_syntax(&tree, is_malformed(&batch));
    check_syntax(&tree, is_malformed(&point));
    let tree = tree.unwrap_or_default();
    match batch {
        Ok(outcome) if outcome.new_fields.is_empty() => {
            assert_eq!(rows.rows() + outcome.errors.len() as u32, outcome.entries);
            assert!(outcome.errors.is_sorted_by(|one, next| one.index < next.index));
            if let Some(entries) = tree["dataPoints"].as_array() {
                assert_eq!(
                    tree["bucketId"].as_str().unwrap().to_lowercase(),
                    outcome.bucket_id.to_string()
                );
                let failed =
                    |index: &usize| outcome.errors.iter().any(|error| error.index as usize == *index);
                let written = (0..entries.len()).filter(|index| !failed(index));
                check_rows(&rows, written.map(|index| &entries[index]));
            }
        }
        _ => assert_eq!(rows.rows(), 0),
    }
    if let Ok(point) = point
        && let Some(view) = view(point.source_id)
        && let Ok(new_fields) = point.write(&view, NOW_NS, &mut rows, &mut SeriesOfRequest::default())
        && new_fields.is_empty()
        && !tree.is_null()
    {
        assert_eq!(rows.rows(), 1);
        assert_eq!(
            point.source_id.to_string(),
            tree["dataSourceId"].as_str().unwrap().to_lowercase()
        );
        check_rows(&rows, [&tree].into_iter());
        let mut echo = Vec::new();
        point.write_values(&mut echo);
        let echoed: Map<String, Value> = serde_json::from_slice(&echo).unwrap();
        let sent = tree["values"].as_object().unwrap();
        let present: Vec<_> = sent.iter().filter(|(_, value)| !value.is_null()).collect();
        assert_eq!(echoed.len(), present.len());
        assert!(
            present
                .iter()
                .all(|(name, value)| same_value(&echoed[*name], value))
        );
    }
}

fn is_malformed<T>(result: &Result<T, ServiceError>) -> bool {
    matches!(result, Err(error) if error.message.starts_with("malformed json at byte "))
}

/// Both parsers agree on whether a body is JSON. A number beyond the range of doubles is a fault of its point, not of
/// the body, and no fault in metadata.
fn check_syntax(tree: &serde_json::Result<Value>, malformed: bool) {
    match tree {
        Ok(tree) => assert!(!malformed, "{tree}"),
        Err(error) if error.to_string().starts_with("number out of range") => {}
        Err(error) => assert!(malformed, "{error}"),
    }
}

fn same_value(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits() || (one == 0.0 && other == 0.0),
        _ => one == other,
    }
}

/// Asserts that the rows are these entries, in order.
fn check_rows<'t>(rows: &RowsWriter, entries: impl Iterator<Item = &'t Value>) {
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    let mut store = Store::new();
    store.apply(&encoded, 0, &[]).unwrap();
    let page = all_rows(&store);
    let mut places: Vec<Option<(u32, u32)>> = vec![None; page.rows.len()];
    for (run, row) in &page.rows {
        let sequence = page.runs[*run as usize].columns.sequences[*row as usize];
        places[sequence as usize] = Some((*run, *row));
    }
    let mut found = places.into_iter();
    for entry in entries {
        let (run, row) = found.next().flatten().unwrap();
        check_row(&page, run as usize, row as usize, entry);
    }
    assert_eq!(found.next(), None);
}

fn all_rows(store: &Store) -> Page {
    let snapshot: Vec<_> = [1, 2]
        .into_iter()
        .filter_map(|it| store.view().series(it))
        .collect();
    rows_of(&snapshot, 1_000, None).unwrap()
}

fn check_row(page: &Page, run: usize, row: usize, entry: &Value) {
    let (source, columns) = (page.runs[run].source, &page.runs[run].columns);
    let view = &SOURCES[source as usize - 1];
    assert_eq!(
        entry["dataSourceId"].as_str().unwrap().to_lowercase(),
        view.source.id.to_string()
    );
    let timestamp_ns = match &entry["timestamp"] {
        Value::Null => NOW_NS,
        text => timestamp::parse(text.as_str().unwrap()).unwrap(),
    };
    assert_eq!(columns.timestamps_ns[row], timestamp_ns);
    let metadata = columns.metadata.as_ref().filter(|column| column.has(row));
    let metadata = metadata.map_or(Value::Null, |column| match &column.values {
        Values::Texts(texts) => serde_json::from_str(texts.get(row)).unwrap(),
        _ => panic!("metadata is text"),
    });
    assert_eq!(metadata, entry["metadata"]);
    let mut values = 0;
    for (name, value) in entry["values"].as_object().unwrap() {
        if value.is_null() {
            continue;
        }
        values += 1;
        let field = view.source.schema.field(name).unwrap();
        let column = columns.field(field).filter(|column| column.has(row)).unwrap();
        let equal = match &column.values {
            Values::Numbers { values, .. } => value.as_f64().map(f64::to_bits) == Some(values[row].to_bits()),
            Values::Booleans(values) => *value == values[row],
            Values::Texts(texts) => *value == **texts.get(row),
        };
        assert!(equal, "{name} of {entry}");
    }
    assert_eq!(
        values,
        columns
            .fields
            .iter()
            .filter(|field| field.column.has(row))
            .count()
    );
    assert!(values > 0);
}
