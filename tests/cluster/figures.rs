//! A request that is passed on against the same request at its owner. What it costs is a row of `make bench`.

use std::fs;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::tenant::Tenant;
use crate::turn::DIRECT;
use crate::world::{NODES, World};

/// Requests of each kind.
const REQUESTS: usize = 200;
/// The kernel's unit of CPU time, for user space.
const TICKS_A_SECOND: f64 = 100.0;

#[test]
fn a_request_that_is_passed_on_against_one_at_its_owner() {
    DIRECT.run(|world| {
        world.settle();
        let load = Load::new(world);
        let tenant = &load.tenants[0];
        let owner = world.owners()[&tenant.shard];
        let other = (owner + 1) % NODES;
        let mut figures = Vec::new();
        for node in [owner, other] {
            send(&load, tenant, node, REQUESTS / 10);
            let before = cpu_seconds(world);
            let mut times = send(&load, tenant, node, REQUESTS);
            let cpu = cpu_seconds(world) - before;
            times.sort_unstable();
            figures.push((times[REQUESTS / 2], cpu / REQUESTS as f64));
        }
        let [(direct, direct_cpu), (forwarded, forwarded_cpu)] = figures[..] else {
            panic!("two kinds of requests")
        };
        println!(
            "one point at its owner: p50 {direct:.2?}, {:.2} ms CPU of all nodes; passed on: p50 {forwarded:.2?}, {:.2} ms CPU",
            direct_cpu * 1e3,
            forwarded_cpu * 1e3
        );
        let shown = tenant
            .bucket
            .query(&serde_json::json!({"limit": 1_000, "downsampling": false}));
        let count = shown["data"].as_array().map_or(0, Vec::len);
        assert_eq!(count, 2 * (REQUESTS + REQUESTS / 10), "each is there once");
    });
}

/// Sends points through a node, one after the other; returns the time that each took.
fn send(load: &Load, tenant: &Tenant, node: usize, count: usize) -> Vec<Duration> {
    let send = |_| {
        let body = tenant.points(tenant.take_numbers(1), false, 0);
        let began = Instant::now();
        let request = load.clients[node].post("/api/data").key(&tenant.bucket.admin);
        request
            .json(&body)
            .send()
            .expect(201, "contract 4: a point is accepted at any node");
        began.elapsed()
    };
    (0..count).map(send).collect()
}

/// CPU time of all nodes so far.
fn cpu_seconds(world: &World) -> f64 {
    let of_node = |node: usize| {
        let path = format!("/proc/{}/stat", world.nodes[node].server.pid());
        let stat = fs::read_to_string(path).unwrap();
        // After the name, which may contain anything, the 12th and 13th fields.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS_A_SECOND
    };
    (0..NODES).map(of_node).sum()
}
