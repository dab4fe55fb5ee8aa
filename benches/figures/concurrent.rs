//! Latency of acknowledgements at a fixed rate under concurrent load of another kind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::Connection;
use crate::ingest::Load;
use crate::table::{median, quantile, significant};

const SENDERS: usize = 4;
const BATCH: usize = 200;
const BATCHES_A_SECOND: usize = 100;
pub const ROUND: Duration = Duration::from_secs(4);
pub const ROUNDS: usize = 5;

/// Concurrent load; it runs until the flag is set.
pub type ConcurrentLoad<'a> = dyn Fn(&Load, &AtomicBool) -> Outcome<()> + Sync + 'a;

/// The slowdown of acknowledgements during the load on `threads` threads: the ratio of the p99 with and without it, as
/// the median of alternating rounds, and a note on the measurement.
pub fn slowdown(
    load: &mut Load,
    threads: usize,
    concurrent_load: &ConcurrentLoad<'_>,
) -> Outcome<(f64, String)> {
    let (mut ratios, mut quiet, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let without = p99_ms(load, 0, concurrent_load)?;
        let with = p99_ms(load, threads, concurrent_load)?;
        ratios.push(with / without);
        quiet.push(without);
        busy.push(with);
    }
    let note = format!(
        "{BATCHES_A_SECOND} batches of {BATCH} points a second, latency from when a batch was due; p99 {} ms \
         without, {} ms with; medians of {ROUNDS} rounds of {ROUND:?} each, alternating",
        significant(median(&mut quiet)),
        significant(median(&mut busy)),
    );
    Ok((median(&mut ratios), note))
}

/// Latencies of batches that are due at a fixed rate, regardless of earlier answers; returns the p99.
fn p99_ms(load: &mut Load, threads: usize, concurrent_load: &ConcurrentLoad<'_>) -> Outcome<f64> {
    let each = BATCHES_A_SECOND * ROUND.as_secs() as usize / SENDERS;
    let requests: Vec<Vec<Vec<u8>>> = load.requests(each, BATCH).into_iter().take(SENDERS).collect();
    let (load, stop) = (&*load, &AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| scope.spawn(move || concurrent_load(load, stop)))
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
                        connection.send_ok(request)?;
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
        for disturber in threads {
            disturber.join().map_err(|_| "a disturber panicked")??;
        }
        Ok(quantile(&mut took_ms, 0.99))
    })
}
