//! Series that have lost their points and leave the index: the cost by the number of series that stay. It grows with the
//! files of the ledger that a look-up reads, and with their blocks that no cache holds.

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::Connection;
use crate::dimensions::{CORES, source_of, write_series};
use crate::points::days_ago_ns;
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const FORGETTING: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU to forget a series without points, 10,000 of 100,000",
            required: Requirement::Shown,
            unit: "µs",
        },
        Figure {
            what: "server CPU to forget a series without points, 10,000 of 1,000,000",
            required: Requirement::AtMost(25.0),
            unit: "µs",
        },
    ],
    run: forgetting,
};

/// Hosts whose series are written; each has [`CORES`] of them.
const HOSTS: [usize; 2] = [1_000, 10_000];
/// Hosts whose points are deleted.
const GONE: usize = 100;

fn forgetting() -> Outcome<Vec<Measured>> {
    let mut measured = Vec::new();
    for hosts in HOSTS {
        let dir = data_root()?;
        let data_dir = dir.path().join("data");
        let server = Server::start(&data_dir, &[])?;
        let mut account = Account::sign_up(&server, NAME)?;
        let bucket = account.bucket("plant")?;
        write_series(&server, &account, &bucket, hosts, days_ago_ns(1)?)?;
        let source = source_of(&server, &account, &bucket)?;
        let other = account.source(&bucket, "without points")?;
        let of_hosts: Vec<String> = (0..GONE).map(|host| format!("h{host:05}")).collect();
        let filters = json!({"dataSourceIds": [source], "dimensions": {"host": of_hosts}});
        let deleted = delete(&server, &account, &bucket, &filters)?;
        if deleted != GONE * CORES {
            return Err(format!("{deleted} points were deleted").into());
        }
        // A stop takes a last checkpoint, which may forget them.
        server.kill()?;
        let server = Server::start(&data_dir, &[])?;
        server.settle()?;
        // A deletion takes a checkpoint. The first one after a start compares index and store.
        let mut cpu_s = [0.0; 2];
        for used in &mut cpu_s {
            let before = server.cpu_seconds()?;
            delete(&server, &account, &bucket, &json!({"dataSourceIds": [other]}))?;
            server.settle()?;
            *used = server.cpu_seconds()? - before;
        }
        let [forgets, idle] = cpu_s.map(|used| used * 1e6 / (GONE * CORES) as f64);
        measured.push(Measured {
            value: forgets - idle,
            note: format!(
                "{} series; a checkpoint that forgets none takes {} ms of CPU",
                hosts * CORES,
                significant(cpu_s[1] * 1e3)
            ),
        });
    }
    Ok(measured)
}

/// Returns the number of points that were deleted.
fn delete(server: &Server, account: &Account, bucket: &str, filters: &Value) -> Outcome<usize> {
    let body = json!({"bucketId": bucket, "filters": filters});
    let mut connection = Connection::open(server.address)?;
    let answer = connection.json("POST", "/api/data/delete", &account.credential, &body)?;
    let count = answer["deletedCount"].as_u64().ok_or("no count")?;
    Ok(count as usize)
}
