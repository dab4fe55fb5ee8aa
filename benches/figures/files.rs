//! Number of files in a data directory, and of mapped files, with many buckets and many checkpoints.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::{Connection, drive, request};
use crate::fleet::Fleet;
use crate::ingest::CLIENTS;
use crate::metrics::{CHECKPOINTS, FAILED_CHECKPOINTS, metric};
use crate::points::{SECOND_NS, Series, days_ago_ns};
use crate::server::{Server, data_root, files_below};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

// The number of files grows with the logarithm of the data, not with buckets or checkpoints: a few for each size class
// of segments and for each of the ledger's five streams. 200 leaves a process far from 65,530 mappings and 1,024 open
// files.
pub const FILES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "mapped files, 10,000 buckets × 50 checkpoints with idempotency keys",
            required: Requirement::AtMost(200.0),
            unit: "files",
        },
        Figure {
            what: "files in the data directory, 10,000 buckets × 50 checkpoints with idempotency keys",
            required: Requirement::AtMost(200.0),
            unit: "files",
        },
    ],
    run: files,
};

const BUCKETS: usize = 10_000;
const CHECKPOINTS_WANTED: f64 = 50.0;
const CHECKPOINTS_OF_A_START: f64 = 10.0;
/// About as much log as a round writes.
const CHECKPOINT_BYTES: (&str, &str) = ("storage.checkpoint_bytes", "4194304");
/// Keys of each round that are sent again after each restart.
const REPEATED: usize = 8;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A request with an idempotency key, and its first answer.
struct RepeatableRequest {
    request: Vec<u8>,
    answer: Vec<u8>,
}

fn files() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let began = Instant::now();
    let server = Server::start(&data_dir, &[])?;
    let mut fleet = Fleet::sign_up(&server)?;
    fleet.create(&server, BUCKETS, 1)?;
    server.stop()?;
    let created_s = began.elapsed().as_secs_f64();
    let mut most = Maxima::default();
    let (mut server, mut round, mut kept) = (Server::start(&data_dir, &[CHECKPOINT_BYTES])?, 0, Vec::new());
    let (mut done, mut starts, mut slowest_ready_s) = (0.0, 0, 0.0f64);
    loop {
        let of_start = rounds(&server, &data_dir, &fleet, &mut round, &mut kept, &mut most)?;
        done += of_start;
        // Stops and crashes alternate, so that the files left by both are opened.
        match starts % 2 {
            0 => server.kill()?,
            _ => server.stop()?,
        }
        starts += 1;
        server = Server::start(&data_dir, &[CHECKPOINT_BYTES])?;
        slowest_ready_s = slowest_ready_s.max(server.ready_after.as_secs_f64());
        repeat(&server, &kept)?;
        if done >= CHECKPOINTS_WANTED {
            break;
        }
    }
    most.observe(&server, &data_dir)?;
    let note = format!(
        "greatest number observed, polled every {POLL_INTERVAL:?}; {done} checkpoints in {round} rounds of a point for each \
         bucket, each under its own Idempotency-Key; {starts} restarts, alternating SIGKILL and SIGTERM, at most {} s to \
         ready, each answered {REPEATED} keys of each round as before; buckets created in {} s, all in {} s",
        significant(slowest_ready_s),
        significant(created_s),
        significant(began.elapsed().as_secs_f64())
    );
    let measured = |value: &AtomicUsize, note: String| Measured {
        value: value.load(Ordering::Relaxed) as f64,
        note,
    };
    Ok(vec![
        measured(&most.maps, note),
        measured(&most.files, String::from("the same run; log and LOCK included")),
    ])
}

/// Runs rounds until this process of the server has taken its checkpoints; returns their number.
fn rounds(
    server: &Server,
    data_dir: &Path,
    fleet: &Fleet,
    round: &mut u64,
    kept: &mut Vec<RepeatableRequest>,
    most: &mut Maxima,
) -> Outcome<f64> {
    let stop = &AtomicBool::new(false);
    let most = &*most;
    thread::scope(|scope| {
        let looking = scope.spawn(move || -> Outcome<()> {
            while !stop.load(Ordering::Relaxed) {
                most.observe(server, data_dir)?;
                thread::sleep(POLL_INTERVAL);
            }
            Ok(())
        });
        let mut send = || -> Outcome<f64> {
            loop {
                send_round(server, fleet, *round, kept)?;
                *round += 1;
                let done = metric(server, CHECKPOINTS)?;
                if done >= CHECKPOINTS_OF_A_START {
                    return Ok(done);
                }
            }
        };
        let sent = send();
        stop.store(true, Ordering::Relaxed);
        looking.join().map_err(|_| "a thread panicked")??;
        let failed = metric(server, FAILED_CHECKPOINTS)?;
        if failed > 0.0 {
            return Err(format!("{failed} checkpoints failed").into());
        }
        sent
    })
}

/// Sends one point to each bucket.
fn send_round(server: &Server, fleet: &Fleet, round: u64, kept: &mut Vec<RepeatableRequest>) -> Outcome<()> {
    let first_ns = days_ago_ns(20)? + round as i64 * 60 * SECOND_NS;
    let requests = fleet.buckets.iter().enumerate().map(|(index, bucket)| {
        let body = Series::new(round, first_ns, SECOND_NS).single(&bucket.id, &bucket.sources[0]);
        let key = format!("{}\r\nidempotency-key: {round}-{index}", fleet.credential(bucket));
        request("POST", "/api/data", &key, &body)
    });
    let mut requests: Vec<Vec<u8>> = requests.collect();
    let mut connection = Connection::open(server.address)?;
    for place in 0..REPEATED {
        let request = requests.swap_remove(place * requests.len() / REPEATED);
        let answer = connection.send_ok(&request)?.to_vec();
        kept.push(RepeatableRequest { request, answer });
    }
    let each = requests.len().div_ceil(CLIENTS);
    let clients: Vec<Vec<Vec<u8>>> = requests.chunks(each).map(<[_]>::to_vec).collect();
    drive(server.address, &clients).map(drop)
}

/// Sends the kept requests again; the first answers must be repeated.
fn repeat(server: &Server, kept: &[RepeatableRequest]) -> Outcome<()> {
    let mut connection = Connection::open(server.address)?;
    for (index, kept) in kept.iter().enumerate() {
        let answer = connection.send_ok(&kept.request)?;
        if answer != kept.answer {
            return Err(format!(
                "key {index} of {} was answered {} first, and {} after a restart",
                String::from_utf8_lossy(&kept.request),
                String::from_utf8_lossy(&kept.answer),
                String::from_utf8_lossy(answer)
            )
            .into());
        }
    }
    Ok(())
}

/// The greatest numbers observed.
#[derive(Default)]
struct Maxima {
    maps: AtomicUsize,
    files: AtomicUsize,
}

impl Maxima {
    fn observe(&self, server: &Server, data_dir: &Path) -> Outcome<()> {
        self.maps
            .fetch_max(server.mappings_below(data_dir)?, Ordering::Relaxed);
        self.files.fetch_max(files_below(data_dir), Ordering::Relaxed);
        Ok(())
    }
}
