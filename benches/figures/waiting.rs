//! Requests that wait: what they cost those that are answered at once.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::Outcome;
use crate::ingest::{CLIENTS, Load};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const WAITING: Experiment = Experiment {
    figures: &[Figure {
        what: "server CPU per single-point request, 900 requests waiting against 90",
        required: Requirement::AtMost(1.15),
        unit: "× CPU",
    }],
    run: waiting,
};

const FEW: usize = 90;
const MANY: usize = 900;
const EACH: usize = 300;
/// The first round only warms up.
const ROUNDS: usize = 6;

fn waiting() -> Outcome<Vec<Measured>> {
    let mut load = Load::start(&[("server.request_timeout_seconds", "600")])?;
    let unfinished = unfinished(&mut load);
    let mut used: [Vec<f64>; 2] = Default::default();
    for round in 0..ROUNDS {
        for (waiting, used) in [FEW, MANY].into_iter().zip(&mut used) {
            let held = hold(&load, waiting, &unfinished)?;
            load.server.settle()?;
            let before = load.server.cpu_seconds()?;
            load.drive(EACH, 1)?;
            load.server.settle()?;
            if round > 0 {
                used.push((load.server.cpu_seconds()? - before) * 1e6 / (CLIENTS * EACH) as f64);
            }
            held.into_iter().try_for_each(waits)?;
        }
    }
    let [few_us, many_us] = used.map(|mut used| median(&mut used));
    let note = format!(
        "{} against {} µs, {CLIENTS} connections; a waiting request has sent all but the end of its body; median of {} \
         alternating rounds",
        significant(many_us),
        significant(few_us),
        ROUNDS - 1
    );
    Ok(vec![Measured {
        value: many_us / few_us,
        note,
    }])
}

/// A request of a single point that lacks the end of its body.
fn unfinished(load: &mut Load) -> Vec<u8> {
    let mut request = load.requests(1, 1).swap_remove(0).swap_remove(0);
    request.truncate(request.len() - 40);
    request
}

/// Checks that nothing was answered.
fn waits(mut stream: TcpStream) -> Outcome<()> {
    stream.set_nonblocking(true)?;
    match stream.read(&mut [0]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        _ => Err("a request that should wait was answered".into()),
    }
}

/// Connections whose requests wait for the rest of their bodies.
fn hold(load: &Load, waiting: usize, unfinished: &[u8]) -> Outcome<Vec<TcpStream>> {
    let begin = || -> Outcome<TcpStream> {
        let mut stream = TcpStream::connect(load.server.address)?;
        stream.write_all(unfinished)?;
        Ok(stream)
    };
    (0..waiting).map(|_| begin()).collect()
}
