//! Justifies our own JSON scanner: a body of 1,000 points with three number fields, as a sensor gateway sends it, is
//! parsed into columns by `tidewatch::ingest` and by a visitor on `sonic-rs`, and into a tree by `serde_json::Value`,
//! without the conversion to columns.

mod sonic;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::rows::RowsWriter;
use serde_json::Value;
use tidewatch::catalog::{Field, FieldType, Schema, SchemaMode, Source, SourceStatus};
use tidewatch::ids::ObjectId;
use tidewatch::ingest::{Scratch, SourceView, parse_batch};

const POINTS: u32 = 1_000;
const NOW_NS: i64 = 1_767_225_600_000_000_000;

fn source() -> Arc<Source> {
    let number = |name: &str| Field {
        name: name.into(),
        kind: FieldType::Number,
        unit: None,
        description: None,
    };
    let fields = ["temperature", "pressure", "counter"].map(number);
    Arc::new(Source {
        id: ObjectId::from_bytes([7; 12]),
        ordinal: 1,
        bucket_id: ObjectId::from_bytes([9; 12]),
        name: "boiler".into(),
        kind: "sensor".into(),
        description: None,
        schema: Arc::new(Schema::from(Vec::from(fields))),
        schema_mode: SchemaMode::Strict,
        downsampling: true,
        status: SourceStatus::Active,
        dimensions: None,
        duplicates: Default::default(),
        expected_interval_seconds: None,
        stale_since_ns: None,
        metric_type: None,
        created_at_ns: 0,
        updated_at_ns: 0,
    })
}

fn body(source: &Source) -> Vec<u8> {
    let points: Vec<String> = (0..POINTS)
        .map(|second| {
            format!(
                r#"{{"dataSourceId":"{}","timestamp":"2026-01-01T00:{:02}:{:02}Z","values":{{"temperature":{:.2},"pressure":{:.1},"counter":{}}}}}"#,
                source.id,
                second / 60,
                second % 60,
                20.15 + f64::from(second) * 0.01,
                3.1 + f64::from(second % 7) * 0.1,
                12_345 + second,
            )
        })
        .collect();
    format!(
        r#"{{"bucketId":"{}","dataPoints":[{}]}}"#,
        source.bucket_id,
        points.join(",")
    )
    .into_bytes()
}

fn parse(criterion: &mut Criterion) {
    let source = source();
    let body = body(&source);
    let mut group = criterion.benchmark_group("parse 1,000 points");
    group.throughput(Throughput::Elements(u64::from(POINTS)));

    let (mut scratch, mut rows) = (Scratch::default(), RowsWriter::new());
    let mut lookup = |id: ObjectId| {
        (id == source.id).then(|| SourceView {
            source: source.clone(),
            oldest_ns: 0,
            series: None,
        })
    };
    group.bench_function("columns", |bencher| {
        bencher.iter(|| {
            let batch = parse_batch(black_box(&body), NOW_NS, &mut lookup, &mut scratch, &mut rows);
            assert!(batch.is_ok_and(|batch| batch.errors.is_empty()));
            assert_eq!(rows.rows(), POINTS);
        });
    });
    let mut sonic_rows = RowsWriter::new();
    let encoded = |rows: &RowsWriter| {
        let mut out = Vec::new();
        rows.encode(&mut out);
        out
    };
    group.bench_function("columns by sonic-rs", |bencher| {
        bencher.iter(|| {
            let parsed = sonic::parse_batch(black_box(&body), NOW_NS, &mut lookup, &mut sonic_rows);
            assert_eq!(parsed, Ok(()));
            assert_eq!(sonic_rows.rows(), POINTS);
        });
    });
    assert_eq!(
        encoded(&sonic_rows),
        encoded(&rows),
        "both write the same columns"
    );
    group.bench_function("serde_json::Value", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Value>(black_box(&body)));
    });
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
