//! CPU cost of a body before it reaches the log: parsing it, and allocations on its way into the store.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use engine::Store;
use engine::rows::RowsWriter;
use tidewatch::catalog::{Field, FieldType, Schema, SchemaMode, Source, SourceStatus};
use tidewatch::ids::ObjectId;
use tidewatch::ingest::{Scratch, SourceView, parse_batch};
use tidewatch::journal::IngestRecord;

use crate::Outcome;
use crate::points::{BATCH, FIELDS, SECOND_NS, Series};
use crate::sonic;
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const PARSE: Experiment = Experiment {
    figures: &[Figure {
        what: "parsing a 1,000-point body into columns, against a visitor on sonic-rs",
        required: Requirement::AtLeast(1.5),
        unit: "× faster",
    }],
    run: parse,
};

pub const ALLOCATIONS: Experiment = Experiment {
    figures: &[Figure {
        what: "allocations per point of a 1,000-point request",
        required: Requirement::AtMost(0.05),
        unit: "allocations",
    }],
    run: allocations,
};

const FIRST_NS: i64 = 1_767_225_600 * SECOND_NS;
const NOW_NS: i64 = FIRST_NS + 86_400 * SECOND_NS;
/// Requests measured; a source seals a block in every eighth.
const REQUESTS: usize = 64;
const ROUNDS: usize = 300;

fn source() -> Arc<Source> {
    let number = |name: &str| Field {
        name: name.into(),
        kind: FieldType::Number,
        unit: None,
        description: None,
    };
    Arc::new(Source {
        id: ObjectId::from_bytes([7; 12]),
        ordinal: 1,
        bucket_id: ObjectId::from_bytes([9; 12]),
        name: "boiler".into(),
        kind: "sensor".into(),
        description: None,
        schema: Arc::new(Schema::from(Vec::from(FIELDS.map(number)))),
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

fn bodies(source: &Source, count: usize) -> Vec<Vec<u8>> {
    let mut series = Series::new(1, FIRST_NS, SECOND_NS);
    let (bucket, source) = (source.bucket_id.to_string(), source.id.to_string());
    (0..count)
        .map(|_| series.batch(&bucket, &source, BATCH))
        .collect()
}

fn lookup(source: &Arc<Source>) -> impl FnMut(ObjectId) -> Option<SourceView> {
    move |id| {
        (id == source.id).then(|| SourceView {
            source: Arc::clone(source),
            oldest_ns: 0,
            series: None,
        })
    }
}

/// Parses a body as the server does; all points must be valid.
fn read(body: &[u8], source: &Arc<Source>, scratch: &mut Scratch, rows: &mut RowsWriter) -> Outcome<()> {
    match parse_batch(body, NOW_NS, &mut lookup(source), scratch, rows) {
        Ok(batch) if batch.errors.is_empty() && rows.rows() as usize == BATCH => Ok(()),
        other => Err(format!("the body is not taken: {other:?}").into()),
    }
}

fn parse() -> Outcome<Vec<Measured>> {
    let source = source();
    let body = bodies(&source, 1).remove(0);
    let (mut scratch, mut rows) = (Scratch::default(), RowsWriter::new());
    let mut sonic_rows = RowsWriter::new();
    let (mut columns_us, mut sonic_us) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        read(black_box(&body), &source, &mut scratch, &mut rows)?;
        columns_us.push(started.elapsed().as_secs_f64() * 1e6);
        let started = Instant::now();
        sonic::parse_batch(black_box(&body), NOW_NS, &mut lookup(&source), &mut sonic_rows)?;
        sonic_us.push(started.elapsed().as_secs_f64() * 1e6);
    }
    let (columns, sonic) = (median(&mut columns_us), median(&mut sonic_us));
    let note = format!(
        "{} KB; our scanner {} µs, sonic-rs {} µs (medians of {ROUNDS} alternating rounds)",
        body.len() / 1_000,
        significant(columns),
        significant(sonic)
    );
    Ok(vec![Measured {
        value: sonic / columns,
        note,
    }])
}

fn allocations() -> Outcome<Vec<Measured>> {
    let source = source();
    let bodies = bodies(&source, 2 * REQUESTS);
    let (mut scratch, mut rows, mut store) = (Scratch::default(), RowsWriter::new(), Store::new());
    let (mut parsing, mut recording, mut applying) = (0, 0, 0);
    let mut of_requests = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let mut taken = Ok(());
        let parsed = allocation_counter::measure(|| taken = read(body, &source, &mut scratch, &mut rows));
        taken?;
        let recorded = allocation_counter::measure(|| {
            drop(black_box(IngestRecord::new(
                1,
                NOW_NS,
                rows.rows(),
                None,
                &[],
                |out| rows.encode(out),
            )));
        });
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        let mut applied = Ok(0);
        let first_sequence = (index * BATCH) as u64 + 1;
        let application =
            allocation_counter::measure(|| applied = store.apply(&encoded, first_sequence, &[]));
        applied.map_err(|error| format!("{error:?}"))?;
        // The first half fills the reused buffers.
        if index >= REQUESTS {
            parsing += parsed.count_total;
            recording += recorded.count_total;
            applying += application.count_total;
            let all = parsed.count_total + recorded.count_total + application.count_total;
            of_requests.push(all as f64 / BATCH as f64);
        }
    }
    let a_request = |count: u64| significant(count as f64 / REQUESTS as f64);
    let note = format!(
        "parse → record → apply, one source, {REQUESTS} requests in order, including the store's sealing; per request: parse {}, \
         record {}, apply {}; {} a point for requests without sealing; transport excluded",
        a_request(parsing),
        a_request(recording),
        a_request(applying),
        significant(median(&mut of_requests))
    );
    let value = (parsing + recording + applying) as f64 / (REQUESTS * BATCH) as f64;
    Ok(vec![Measured { value, note }])
}
