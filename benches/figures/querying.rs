//! Grouped queries within the engine, over a segment read from bytes.

use std::sync::Arc;
use std::time::Instant;

use engine::query::{GroupQuery, Groups, group};
use engine::rows::RowsWriter;
use engine::{BLOCK_ROWS_MAX, SegmentFile, SegmentWriter, SeriesSnapshot, SharedBytes, Store, Unit};

use crate::Outcome;
use crate::points::{BATCH, SECOND_NS, Series};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const ROWS_READ: Experiment = Experiment {
    figures: &[Figure {
        what: "rows and cells read by a grouped query per cell of the answer, without 2 edge blocks",
        required: Requirement::AtMost(60.0),
        unit: "rows",
    }],
    run: rows_read,
};

pub const HOURLY: Experiment = Experiment {
    figures: &[Figure {
        what: "hourly average over 1,000,000 points, within the engine",
        required: Requirement::AtMost(0.2),
        unit: "ms",
    }],
    run: hourly,
};

pub const MINUTELY: Experiment = Experiment {
    figures: &[
        Figure {
            what: "average by minute over 100,000 points at 1 Hz, within the engine",
            required: Requirement::AtMost(0.345),
            unit: "ms",
        },
        Figure {
            what: "average by minute over 100,000 points at 1 Hz, within the engine, first query",
            required: Requirement::AtMost(0.45),
            unit: "ms",
        },
    ],
    run: minutely,
};

pub const TENFOLD: Experiment = Experiment {
    figures: &[Figure {
        what: "grouped query with 10× more points in the range, same rows in the answer, within the engine",
        required: Requirement::AtMost(1.3),
        unit: "× time",
    }],
    run: tenfold,
};

pub const MANY_SOURCES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "snapshot of a bucket, 100,000 sources against 1,000, within the engine",
            required: Requirement::AtMost(1.5),
            unit: "× time",
        },
        Figure {
            what: "query of an empty range, 100,000 sources against 1,000, within the engine",
            required: Requirement::AtMost(100.0),
            unit: "× time",
        },
    ],
    run: many_sources,
};

const BUCKET: u32 = 1;
const SOURCE: u32 = 1;
const POINTS: usize = 1_000_000;
const FIRST_NS: i64 = 1_767_225_600 * SECOND_NS;
const SPAN_NS: i64 = POINTS as i64 * SECOND_NS;
const ALL: (i64, i64) = (FIRST_NS, FIRST_NS + SPAN_NS);
const ROUNDS: usize = 201;

/// The points of a source in one reopened segment.
pub fn sealed(points: usize, interval_ns: i64) -> Outcome<[SeriesSnapshot; 1]> {
    opened(segment(points, interval_ns)?)
}

fn segment(points: usize, interval_ns: i64) -> Outcome<SharedBytes> {
    let (mut store, mut rows, mut encoded) = (Store::new(), RowsWriter::new(), Vec::new());
    let mut series = Series::new(1, FIRST_NS, interval_ns);
    for request in 0..points / BATCH {
        rows.clear();
        for _ in 0..BATCH {
            let point = series.next();
            rows.begin(SOURCE);
            for field in 0..point.fields.len() {
                rows.number(field as u16, point.value(field), point.fields[field].1);
            }
            rows.commit(point.timestamp_ns);
        }
        encoded.clear();
        rows.encode(&mut encoded);
        let applied = store.apply(&encoded, (request * BATCH) as u64 + 1, &[]);
        applied.map_err(|error| format!("{error:?}"))?;
    }
    let checkpoint = store.begin_checkpoint().ok_or("nothing to seal")?;
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment))?;
    Ok(Arc::new(bytes))
}

/// A store with this segment and an empty cache.
fn opened(segment: SharedBytes) -> Outcome<[SeriesSnapshot; 1]> {
    let file = SegmentFile::open(1, segment).map_err(|error| format!("{error:?}"))?;
    let part = file.part(BUCKET).map_err(|error| format!("{error:?}"))?;
    let mut opened = Store::new();
    opened.add_segment(part.ok_or("a segment without blocks")?);
    Ok([opened.view().series(SOURCE).ok_or("a segment without points")?])
}

fn run_query(series: &SeriesSnapshot, range_ns: (i64, i64), unit: Unit, fields: &[u16]) -> Outcome<Groups> {
    let query = GroupQuery {
        range_ns,
        step: unit.into(),
        fields,
        metadata: None,
        stop: &|| false,
        values: &[],
    };
    group(series, &query).map_err(|error| format!("{error:?}").into())
}

fn timed_us(series: &SeriesSnapshot, range_ns: (i64, i64), unit: Unit, fields: &[u16]) -> Outcome<f64> {
    let started = Instant::now();
    let groups = std::hint::black_box(run_query(series, range_ns, unit, fields)?);
    let took = started.elapsed();
    if groups.starts_ns.is_empty() {
        return Err("an empty answer".into());
    }
    Ok(took.as_secs_f64() * 1e6)
}

fn median_us(series: &SeriesSnapshot, range_ns: (i64, i64), unit: Unit, fields: &[u16]) -> Outcome<f64> {
    let mut took = (0..ROUNDS)
        .map(|_| timed_us(series, range_ns, unit, fields))
        .collect::<Outcome<Vec<_>>>()?;
    Ok(median(&mut took))
}

fn rows_read() -> Outcome<Vec<Measured>> {
    let snapshot = sealed(POINTS, SECOND_NS)?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut worst = (f64::MIN, String::new());
    for unit in [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month] {
        for _ in 0..100 {
            let (one, other) = (random.i64(ALL.0..ALL.1), random.i64(ALL.0..ALL.1));
            let groups = run_query(&snapshot[0], (one.min(other), one.max(other)), unit, &[0])?;
            let (rows, cells) = (groups.touched.rows, groups.touched.cells);
            let beyond = (rows + cells) as f64 - 2.0 * BLOCK_ROWS_MAX as f64;
            let of_a_cell = beyond.max(0.0) / groups.starts_ns.len().max(1) as f64;
            let whole = (rows + cells) as f64 / groups.starts_ns.len().max(1) as f64;
            if of_a_cell >= worst.0 {
                let answered = groups.starts_ns.len();
                let seen = format!(
                    "{rows} rows and {cells} rollup cells for {answered} of {unit:?} ({whole:.0} each)"
                );
                worst = (of_a_cell, seen);
            }
        }
    }
    let note = format!(
        "worst of 500 random ranges (seed 1) over {POINTS} points, all units; distinct raw rows and rollup \
         cells are both counted; for example {}",
        worst.1
    );
    Ok(vec![Measured { value: worst.0, note }])
}

fn hourly() -> Outcome<Vec<Measured>> {
    let snapshot = sealed(POINTS, SECOND_NS)?;
    let series = &snapshot[0];
    let one = median_us(series, ALL, Unit::Hour, &[0])?;
    let three = median_us(series, ALL, Unit::Hour, &[0, 1, 2])?;
    let ragged = median_us(
        series,
        (ALL.0 + 1_234_567_890, ALL.1 - 1_234_567_890),
        Unit::Hour,
        &[0],
    )?;
    let daily = median_us(series, ALL, Unit::Day, &[0])?;
    let note = format!(
        "median of {ROUNDS}, one field; three fields {} µs; range that begins and ends within a minute {} µs; daily {} µs",
        significant(three),
        significant(ragged),
        significant(daily)
    );
    Ok(vec![Measured {
        value: one / 1e3,
        note,
    }])
}

/// A minute has 60 points, too few for a rollup on disk. The first query reads each point and caches the minutes.
fn minutely() -> Outcome<Vec<Measured>> {
    let points = POINTS / 10;
    let segment = segment(points, SECOND_NS)?;
    let snapshot = opened(Arc::clone(&segment))?;
    let again = |fields: &[u16]| median_us(&snapshot[0], ALL, Unit::Minute, fields);
    let first = |fields: &[u16]| {
        let took = (0..ROUNDS).map(|_| {
            let snapshot = opened(Arc::clone(&segment))?;
            timed_us(&snapshot[0], ALL, Unit::Minute, fields)
        });
        Outcome::Ok(median(&mut took.collect::<Outcome<Vec<_>>>()?))
    };
    let measured = |one: f64, three: f64| Measured {
        value: one / 1e3,
        note: format!(
            "median of {ROUNDS}, one field, {} ns a point; three fields {} µs",
            significant(one * 1e3 / points as f64),
            significant(three)
        ),
    };
    Ok(vec![
        measured(again(&[0])?, again(&[0, 1, 2])?),
        measured(first(&[0])?, first(&[0, 1, 2])?),
    ])
}

fn tenfold() -> Outcome<Vec<Measured>> {
    let (sparse, dense) = (sealed(POINTS / 10, 10 * SECOND_NS)?, sealed(POINTS, SECOND_NS)?);
    let mut notes = Vec::new();
    let mut worst = f64::MIN;
    for unit in [Unit::Hour, Unit::Day] {
        let (mut of_sparse, mut of_dense) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_sparse.push(timed_us(&sparse[0], ALL, unit, &[0])?);
            of_dense.push(timed_us(&dense[0], ALL, unit, &[0])?);
        }
        let (of_sparse, of_dense) = (median(&mut of_sparse), median(&mut of_dense));
        worst = worst.max(of_dense / of_sparse);
        notes.push(format!(
            "{unit:?}: {} against {} µs",
            significant(of_dense),
            significant(of_sparse)
        ));
    }
    let note = format!(
        "the same 11.6 days at 1 s and at 10 s, medians of {ROUNDS} alternating queries, the worse of: {}",
        notes.join(", ")
    );
    Ok(vec![Measured { value: worst, note }])
}

/// A store with one row of each of `sources` sources.
fn wide(sources: u32) -> Outcome<Store> {
    let (mut store, mut rows, mut encoded) = (Store::new(), RowsWriter::new(), Vec::new());
    for source in 0..sources {
        rows.begin(source);
        rows.number(0, f64::from(source), 0);
        rows.commit(FIRST_NS + i64::from(source));
    }
    rows.encode(&mut encoded);
    let applied = store.apply(&encoded, 1, &[]);
    applied.map_err(|error| format!("{error:?}"))?;
    Ok(store)
}

/// Mean time of one of many repetitions in nanoseconds.
fn each_ns(mut work: impl FnMut()) -> f64 {
    const TIMES: u32 = 100;
    let started = Instant::now();
    (0..TIMES).for_each(|_| work());
    started.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}

fn many_sources() -> Outcome<Vec<Measured>> {
    let stores = [wide(1_000)?, wide(100_000)?];
    let (mut views, mut empty) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let behind = (FIRST_NS + SPAN_NS, i64::MAX);
    for _ in 0..ROUNDS {
        for (place, store) in stores.iter().enumerate() {
            views[place].push(each_ns(|| drop(std::hint::black_box(store.view()))));
            let view = store.view();
            empty[place].push(each_ns(|| {
                std::hint::black_box(view.reaching(behind).count());
            }));
        }
    }
    let measured = |times: [Vec<f64>; 2]| {
        let [few, many] = times.map(|mut times| median(&mut times));
        Measured {
            value: many / few,
            note: format!(
                "{} against {} ns, medians of {ROUNDS} alternating queries",
                significant(many),
                significant(few)
            ),
        }
    };
    Ok(vec![measured(views), measured(empty)])
}
