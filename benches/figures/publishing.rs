//! What publishing a checkpoint to an object store costs: it follows what has changed, not what exists.

use crate::Outcome;
use crate::client::drive;
use crate::ingest::Load;
use crate::metrics::{Metrics, wait_for_merges};
use crate::server::data_root;
use crate::table::{Experiment, Figure, Measured, Requirement, quantile, significant};

pub const PUBLISHING: Experiment = Experiment {
    figures: &[
        Figure {
            // A segment and a root; also a run and a root, if the count of calls follows in a checkpoint of its own.
            what: "uploads of a published checkpoint after one changed bucket, 10× more sealed data",
            required: Requirement::AtMost(6.0),
            unit: "objects",
        },
        Figure {
            what: "bytes of a published checkpoint after one changed bucket, 10× more sealed data",
            required: Requirement::AtMost(1.3),
            unit: "× bytes",
        },
    ],
    run: publishing,
};

const UPLOADS: &str = "tidewatch_remote_uploads_total";
const UPLOAD_BYTES: &str = "tidewatch_remote_upload_bytes_total";
const COVERED: &str = "tidewatch_remote_covered_record";
const RECORDS: &str = "tidewatch_log_records_total";
const ROUNDS: usize = 7;
/// Requests of 1,000 points of each round: enough that a root is small beside them.
const CHANGES: usize = 20;
/// Requests of each client, of 1,000 points: the sealed data, once and ten times.
const FILLING: [usize; 2] = [2, 18];

/// Uploads and bytes of each round.
type Costs = [Vec<f64>; 2];

fn publishing() -> Outcome<Vec<Measured>> {
    let store = data_root()?;
    let url = format!("file://{}", store.path().display());
    let settings = [
        ("storage.remote", url.as_str()),
        ("storage.remote_period_seconds", "1"),
    ];
    let mut load = Load::start(&settings)?;
    let mut costs: [Costs; 2] = Default::default();
    for (filling, costs) in FILLING.into_iter().zip(&mut costs) {
        load.drive(filling, 1_000)?;
        wait_until_published(&load)?;
        for _ in 0..ROUNDS {
            let before = Metrics::of(&load.server)?;
            let one = load.requests(CHANGES, 1_000).remove(0);
            drive(load.server.address, &[one])?;
            wait_until_published(&load)?;
            let after = Metrics::of(&load.server)?;
            for (cost, name) in costs.iter_mut().zip([UPLOADS, UPLOAD_BYTES]) {
                cost.push(after.get(name)? - before.get(name)?);
            }
        }
    }
    load.server.stop()?;
    let [mut small, mut large] = costs;
    // Some rounds include a merge, or further checkpoints.
    let mut least = |which: usize| (quantile(&mut large[which], 0.0), quantile(&mut small[which], 0.0));
    let (uploads, bytes) = (least(0), least(1));
    let note = |(large, small): (f64, f64), what: &str| {
        let (large, small) = (significant(large), significant(small));
        format!("{large} against {small} {what}, the least of {ROUNDS} rounds")
    };
    Ok(vec![
        Measured {
            value: uploads.0,
            note: note(uploads, "objects"),
        },
        Measured {
            value: bytes.0 / bytes.1,
            note: note(bytes, "bytes"),
        },
    ])
}

/// Waits until the object store has everything, merges included.
fn wait_until_published(load: &Load) -> Outcome<()> {
    loop {
        wait_for_merges(&load.server)?;
        let metrics = Metrics::of(&load.server)?;
        let uploads = metrics.get(UPLOADS)?;
        wait_for_merges(&load.server)?;
        let later = Metrics::of(&load.server)?;
        if later.get(COVERED)? >= later.get(RECORDS)? && later.get(UPLOADS)? == uploads {
            return Ok(());
        }
    }
}
