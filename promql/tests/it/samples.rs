//! Generated series: counters with resets, gauges, gaps, stale markers, histograms, series that appear and vanish.

use fastrand::Rng;
use promql::{Labels, MemoryStorage, STALE_MARKER};

/// The first instant with samples: a multiple of every step that is asked for.
pub const START_MS: i64 = 1_699_999_200_000;

/// How long there are samples. It fits into the head of Prometheus's database, which takes samples of any age once.
pub const LENGTH_MS: i64 = 150 * 60_000;

const SCRAPE_MS: i64 = 15_000;

/// How the samples of a series follow each other.
#[derive(Clone, Copy)]
struct Life {
    from_ms: i64,
    to_ms: i64,
    /// Ends with a stale marker.
    is_marked: bool,
    /// Samples are late by up to so much.
    jitter_ms: i64,
    /// Of a hundred samples, how many are missing.
    missing: u32,
    /// Of a thousand samples, how many are followed by some minutes of nothing.
    gaps: u32,
}

const WHOLE: Life = Life {
    from_ms: 0,
    to_ms: LENGTH_MS,
    is_marked: false,
    jitter_ms: 0,
    missing: 0,
    gaps: 0,
};

/// All series of a seed.
pub fn generated(rng: &mut Rng) -> MemoryStorage {
    let mut storage = MemoryStorage::default();
    counters(rng, &mut storage);
    gauges(rng, &mut storage);
    histograms(rng, &mut storage);
    vanishing(rng, &mut storage);
    storage
}

fn counters(rng: &mut Rng, storage: &mut MemoryStorage) {
    for job in ["api", "web"] {
        for instance in ["a:1", "b:1", "c:1"] {
            for code in ["200", "404", "500"] {
                let labels = [
                    ("__name__", "requests_total"),
                    ("job", job),
                    ("instance", instance),
                    ("code", code),
                ];
                let life = Life {
                    jitter_ms: if instance == "c:1" { 700 } else { 0 },
                    missing: if code == "404" { 10 } else { 0 },
                    gaps: if code == "500" { 6 } else { 0 },
                    ..WHOLE
                };
                let mut total = f64::from(rng.u32(0..1_000));
                let growth = rng.u32(1..50);
                push(rng, storage, &labels, life, |rng, _| {
                    total = if rng.u32(0..150) == 0 {
                        f64::from(rng.u32(0..5))
                    } else {
                        total
                    };
                    total += f64::from(rng.u32(0..growth));
                    total
                });
            }
        }
    }
}

fn gauges(rng: &mut Rng, storage: &mut MemoryStorage) {
    for instance in ["a:1", "b:1", "c:1", "d:1"] {
        for room in ["hall", "lab"] {
            let labels = [
                ("__name__", "temperature"),
                ("instance", instance),
                ("room", room),
            ];
            let life = Life {
                jitter_ms: 2_000,
                missing: 3,
                ..WHOLE
            };
            let mut value = 20.0 * rng.f64() - 5.0;
            push(rng, storage, &labels, life, |rng, _| {
                value += rng.f64() - 0.5;
                value
            });
        }
        let labels = [
            ("__name__", "memory_bytes"),
            ("instance", instance),
            ("job", "api"),
        ];
        let mut value = 4e9;
        push(rng, storage, &labels, WHOLE, |rng, _| {
            value += (rng.f64() - 0.5) * 1e8;
            value.round()
        });
        let labels = [
            ("__name__", "memory_limit_bytes"),
            ("instance", instance),
            ("job", "api"),
        ];
        push(rng, storage, &labels, WHOLE, |_, _| 8_589_934_592.0);
        let labels = [("__name__", "queue_length"), ("instance", instance)];
        let life = Life {
            missing: 60,
            gaps: 40,
            ..WHOLE
        };
        push(rng, storage, &labels, life, |rng, _| f64::from(rng.u32(0..7)));
        let labels = [("__name__", "up"), ("instance", instance), ("job", "api")];
        push(rng, storage, &labels, WHOLE, |rng, _| {
            f64::from(rng.u8(0..20).min(1))
        });
    }
}

fn histograms(rng: &mut Rng, storage: &mut MemoryStorage) {
    for (instance, code) in [("a:1", "200"), ("b:1", "200"), ("b:1", "500")] {
        let bounds = [("0.1", 3), ("0.5", 9), ("1", 4), ("2.5", 2), ("+Inf", 2)];
        let labels = |name, le| {
            [
                ("__name__", name),
                ("instance", instance),
                ("code", code),
                ("le", le),
            ]
        };
        let mut counts = [0.0; 5];
        let mut sum = 0.0;
        let mut columns: Vec<[f64; 5]> = Vec::new();
        let mut sums = Vec::new();
        for _ in 0..LENGTH_MS / SCRAPE_MS {
            let mut below = 0.0;
            for (count, (_, growth)) in counts.iter_mut().zip(bounds) {
                below += f64::from(rng.u32(0..growth));
                *count += below;
            }
            sum += below * rng.f64();
            columns.push(counts);
            sums.push(sum);
        }
        for (bucket, (le, _)) in bounds.into_iter().enumerate() {
            let value = |_: &mut Rng, at: usize| columns[at][bucket];
            push(rng, storage, &labels("latency_seconds_bucket", le), WHOLE, value);
        }
        push(
            rng,
            storage,
            &labels("latency_seconds_sum", ""),
            WHOLE,
            |_, at| sums[at],
        );
        push(
            rng,
            storage,
            &labels("latency_seconds_count", ""),
            WHOLE,
            |_, at| columns[at][4],
        );
    }
}

/// Series that end, with and without a marker, and others of the same metric that begin.
fn vanishing(rng: &mut Rng, storage: &mut MemoryStorage) {
    for (at, version) in ["1.0", "1.1", "1.10"].into_iter().enumerate() {
        for instance in ["a:1", "b:1"] {
            let third = LENGTH_MS / 3;
            let from_ms = third * at as i64 / SCRAPE_MS * SCRAPE_MS;
            let life = Life {
                from_ms,
                to_ms: from_ms + third,
                is_marked: instance == "a:1",
                ..WHOLE
            };
            let labels = [
                ("__name__", "build_info"),
                ("instance", instance),
                ("version", version),
            ];
            push(rng, storage, &labels, life, |_, _| 1.0);
        }
    }
    for worker in ["w1", "w2", "w3", "w4"] {
        let from_ms = rng.i64(0..LENGTH_MS / SCRAPE_MS) * SCRAPE_MS;
        let life = Life {
            from_ms,
            to_ms: from_ms + rng.i64(4..200) * SCRAPE_MS,
            is_marked: rng.bool(),
            jitter_ms: 300,
            missing: 5,
            gaps: 20,
        };
        let labels = [
            ("__name__", "jobs_total"),
            ("worker", worker),
            ("instance", "a:1"),
        ];
        let mut total = 0.0;
        push(rng, storage, &labels, life, |rng, _| {
            total += f64::from(rng.u32(0..4));
            total
        });
    }
}

fn push(
    rng: &mut Rng,
    storage: &mut MemoryStorage,
    labels: &[(&str, &str)],
    life: Life,
    mut value: impl FnMut(&mut Rng, usize) -> f64,
) {
    let labels = Labels::from_pairs(labels.iter().copied());
    let mut silent_until = 0;
    let mut last = None;
    for (at, scraped_ms) in (0..LENGTH_MS).step_by(SCRAPE_MS as usize).enumerate() {
        let time_ms = scraped_ms
            + if life.jitter_ms > 0 {
                rng.i64(0..life.jitter_ms)
            } else {
                0
            };
        let value = value(rng, at);
        if scraped_ms < life.from_ms.max(silent_until)
            || scraped_ms >= life.to_ms
            || rng.u32(0..100) < life.missing
        {
            continue;
        }
        storage.push(&labels, START_MS + time_ms, value);
        last = Some(time_ms);
        if rng.u32(0..1_000) < life.gaps {
            silent_until = scraped_ms + rng.i64(2..9) * 60_000;
            if rng.bool() {
                storage.push(&labels, START_MS + time_ms + 1_000, STALE_MARKER);
            }
        }
    }
    if let Some(last) = last.filter(|_| life.is_marked) {
        storage.push(&labels, START_MS + last + 5_000, STALE_MARKER);
    }
}
