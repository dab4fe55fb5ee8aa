//! Log-ins concurrent with ingest: hashing a password deliberately takes tens of milliseconds of a core.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::Outcome;
use crate::client::{Connection, request};
use crate::concurrent::{ROUND, ROUNDS, slowdown};
use crate::ingest::Load;
use crate::server::{NAME, PASSWORD};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const LOGINS: Experiment = Experiment {
    figures: &[Figure {
        what: "ingest p99 during a flood of log-ins, against without",
        required: Requirement::AtMost(2.0),
        unit: "× p99",
    }],
    run: logins,
};

const CLIENTS: usize = 32;

fn logins() -> Outcome<Vec<Measured>> {
    let mut load = Load::start(&[])?;
    load.drive(8, 1_000)?;
    load.server.settle()?;
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let (value, note) = slowdown(&mut load, CLIENTS, &|load, stop| {
        let mut connection = Connection::open(load.server.address)?;
        let body = json!({"email": format!("{NAME}@example.com"), "password": PASSWORD}).to_string();
        let request = request("POST", "/api/auth/login", "x-of: bench", body.as_bytes());
        while !stop.load(Ordering::Relaxed) {
            let count = match connection.send(&request)?.0 {
                200 => &done,
                _ => &refused,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    let a_second = |count: AtomicU64| count.into_inner() as f64 / (ROUND.as_secs_f64() * ROUNDS as f64);
    let note = format!(
        "{note}; {CLIENTS} clients log in with the right password in a loop ({} log-ins and {} refusals a second)",
        significant(a_second(done)),
        significant(a_second(refused))
    );
    Ok(vec![Measured { value, note }])
}
