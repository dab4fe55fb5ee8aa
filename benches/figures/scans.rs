//! Readers beside writers: acknowledgements at a fixed rate while full scans of the same bucket loop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::Connection;
use crate::ingest::Load;
use crate::table::{Bar, Experiment, Figure, Measured, median, quantile, significant};

pub const SCANS: Experiment = Experiment {
    figures: &[Figure {
        what: "ingest p99 of a bucket while eight full raw scans of it loop",
        bar: Bar::AtMost(2.0),
        unit: "× p99",
    }],
    run: scans,
};

const SCANNERS: usize = 8;
const SENDERS: usize = 4;
const BATCH: usize = 200;
const BATCHES_A_SECOND: usize = 100;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 5;

fn scans() -> Outcome<Vec<Measured>> {
    let mut load = Load::start(&[])?;
    load.drive(8, 1_000)?;
    load.server.settle()?;
    let (mut ratios, mut quiet, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    let pages = AtomicU64::new(0);
    for _ in 0..ROUNDS {
        let without = p99_ms(&mut load, None)?;
        let with = p99_ms(&mut load, Some(&pages))?;
        ratios.push(with / without);
        quiet.push(without);
        busy.push(with);
    }
    let note = format!(
        "{BATCHES_A_SECOND} batches of {BATCH} points a second, latency from the time a batch was due; p99 {} ms \
         without, {} ms with {SCANNERS} clients reading pages of 10,000 rows in a loop ({} pages a second); medians of \
         {ROUNDS} rounds of {ROUND:?} each, taken in turns",
        significant(median(&mut quiet)),
        significant(median(&mut busy)),
        significant(pages.into_inner() as f64 / (ROUND.as_secs_f64() * ROUNDS as f64))
    );
    Ok(vec![Measured {
        value: median(&mut ratios),
        note,
    }])
}

/// Latencies of batches that fall due at a fixed rate, whatever became of those before; with scans where pages are
/// to be counted.
fn p99_ms(load: &mut Load, pages: Option<&AtomicU64>) -> Outcome<f64> {
    let each = BATCHES_A_SECOND * ROUND.as_secs() as usize / SENDERS;
    let requests: Vec<Vec<Vec<u8>>> = load.requests(each, BATCH).into_iter().take(SENDERS).collect();
    let (load, stop) = (&*load, &AtomicBool::new(false));
    thread::scope(|scope| {
        let scanners: Vec<_> = (0..if pages.is_some() { SCANNERS } else { 0 })
            .map(|_| scope.spawn(move || scan(load, stop, pages)))
            .collect();
        let start = Instant::now() + Duration::from_millis(200);
        let interval = Duration::from_secs(1) / BATCHES_A_SECOND as u32;
        let senders: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(sender, requests)| {
                scope.spawn(move || -> Outcome<Vec<f64>> {
                    let mut connection = Connection::open(load.server.address)?;
                    let mut took_ms = Vec::new();
                    for (index, request) in requests.iter().enumerate() {
                        let due = start + interval * (index * SENDERS + sender) as u32;
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                        connection.done(request)?;
                        took_ms.push(due.elapsed().as_secs_f64() * 1e3);
                    }
                    Ok(took_ms)
                })
            })
            .collect();
        let mut took_ms = Vec::new();
        for sender in senders {
            took_ms.extend(sender.join().map_err(|_| "a sender panicked")??);
        }
        stop.store(true, Ordering::Relaxed);
        for scanner in scanners {
            scanner.join().map_err(|_| "a scanner panicked")??;
        }
        Ok(quantile(&mut took_ms, 0.99))
    })
}

/// Reads the bucket from end to end, again and again.
fn scan(load: &Load, stop: &AtomicBool, pages: Option<&AtomicU64>) -> Outcome<()> {
    let mut connection = Connection::open(load.server.address)?;
    let mut cursor: Option<String> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut body = json!({"bucketId": load.bucket, "limit": 10_000, "downsampling": false});
        if let Some(cursor) = cursor.take() {
            body["cursor"] = Value::from(cursor);
        }
        let answer = connection.done(&load.account.query(&body))?;
        cursor = next_cursor(answer);
        if let Some(pages) = pages {
            pages.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// The cursor at the end of a page, found without reading the page.
fn next_cursor(page: &[u8]) -> Option<String> {
    let end = std::str::from_utf8(&page[page.len().saturating_sub(400)..]).ok()?;
    let (_, cursor) = end.rsplit_once(r#""nextCursor":""#)?;
    Some(cursor.split_once('"')?.0.to_owned())
}
