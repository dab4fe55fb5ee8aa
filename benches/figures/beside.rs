//! Acknowledgements at a fixed rate, while something else goes on beside them.

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

/// What disturbs: it goes on until told to stop.
pub type Disturbance<'a> = dyn Fn(&Load, &AtomicBool) -> Outcome<()> + Sync + 'a;

/// How much slower acknowledgements are beside so many disturbers at once: the ratio of the p99 with and without, median
/// of rounds taken in turns, and how it was measured.
pub fn slowdown(load: &mut Load, disturbers: usize, disturbance: &Disturbance<'_>) -> Outcome<(f64, String)> {
    let (mut ratios, mut quiet, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let without = p99_ms(load, 0, disturbance)?;
        let with = p99_ms(load, disturbers, disturbance)?;
        ratios.push(with / without);
        quiet.push(without);
        busy.push(with);
    }
    let note = format!(
        "{BATCHES_A_SECOND} batches of {BATCH} points a second, latency from the time a batch was due; p99 {} ms \
         without, {} ms with; medians of {ROUNDS} rounds of {ROUND:?} each, taken in turns",
        significant(median(&mut quiet)),
        significant(median(&mut busy)),
    );
    Ok((median(&mut ratios), note))
}

/// Latencies of batches that fall due at a fixed rate, whatever became of those before.
fn p99_ms(load: &mut Load, disturbers: usize, disturbance: &Disturbance<'_>) -> Outcome<f64> {
    let each = BATCHES_A_SECOND * ROUND.as_secs() as usize / SENDERS;
    let requests: Vec<Vec<Vec<u8>>> = load.requests(each, BATCH).into_iter().take(SENDERS).collect();
    let (load, stop) = (&*load, &AtomicBool::new(false));
    thread::scope(|scope| {
        let disturbers: Vec<_> = (0..disturbers)
            .map(|_| scope.spawn(move || disturbance(load, stop)))
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
        for disturber in disturbers {
            disturber.join().map_err(|_| "a disturber panicked")??;
        }
        Ok(quantile(&mut took_ms, 0.99))
    })
}
