//! A round: load, a fault under it, and the audit.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::audit::audit;
use crate::checker::Fault;
use crate::client::Client;
use crate::load::{CLIENTS, Call, Load, Stop};
use crate::waiting::{until, until_within};
use crate::world::{LEASE, World};

/// Acknowledged requests before the fault, and after it.
const WARM: u64 = 60;
/// Time for each request of the audit.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// Time for the load after the fault, including all that a cluster needs to recover.
const GOES_ON_WITHIN: Duration = Duration::from_secs(60);
/// Time until another node has taken a shard over.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(4 * LEASE.as_secs());
/// Faults that a failure shows.
const SHOWN_MAX: usize = 12;

/// What a round has to say.
pub struct Said {
    pub text: String,
    /// Time until shards that had lost their node answered again.
    pub back: Option<Duration>,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Said { text, back: None }
    }
}

impl Said {
    /// After a takeover.
    pub fn back_after(back: Duration) -> Self {
        Said {
            text: format!(
                "answered again after {:.2} s (lease {LEASE:?})",
                back.as_secs_f64()
            ),
            back: Some(back),
        }
    }
}

/// The seed of a test, which is printed.
pub fn seed(test: &str) -> u64 {
    let seed = from_environment("CLUSTER_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("{test}: CLUSTER_SEED={seed}");
    seed
}

/// Rounds of each fault of a node.
pub fn rounds() -> u64 {
    from_environment("CLUSTER_ROUNDS").unwrap_or(1)
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|error| panic!("{name}={value}: {error}")),
    )
}

/// The load of a world, with a fault under it. Returns when the load has ended.
pub fn load_with<R>(
    world: &mut World,
    random: &mut fastrand::Rng,
    load: Load,
    fault: impl FnOnce(&mut World, &Load, &mut fastrand::Rng) -> R,
) -> (Load, R) {
    let result = thread::scope(|scope| {
        let stop = Stop(&load);
        for _ in 0..CLIENTS {
            let (load, random) = (&load, random.fork());
            scope.spawn(move || load.run(random));
        }
        wait_for_more(&load, "the load has begun");
        let result = fault(world, &load, random);
        drop(stop);
        result
    });
    (load, result)
}

/// Waits until more requests are acknowledged.
pub fn wait_for_more(load: &Load, what: &str) {
    wait_for_count(load, WARM, what);
}

/// Waits until so many more requests are acknowledged.
pub fn wait_for_count(load: &Load, count: u64, what: &str) {
    let before = load.acknowledged.load(Ordering::SeqCst);
    until_within(GOES_ON_WITHIN, what, || {
        (load.acknowledged.load(Ordering::SeqCst) >= before + count).then_some(())
    });
}

/// Waits until a request to each organization succeeds that was sent from now on. Returns how long it took until the last one
/// of these shards was answered.
pub fn wait_for_all(load: &Load, since: u64, shards: &[u16]) -> Duration {
    let took = until_within(GOES_ON_WITHIN, "every organization is served again", || {
        let calls = load.calls.lock().unwrap();
        let answered = load.tenants.iter().map(|tenant| {
            let is_answer =
                |call: &&Call| call.shard == tenant.shard && call.is_ok() && call.span.began > since;
            let ended = calls.iter().find(is_answer)?.span.ended;
            Some((tenant.shard, ended))
        });
        let answered: Option<Vec<(u16, u64)>> = answered.collect();
        let of_shards = answered?.into_iter().filter(|(shard, _)| shards.contains(shard));
        Some(of_shards.map(|(_, ended)| ended - since).max().unwrap_or(0))
    });
    Duration::from_micros(took)
}

/// Asks the other nodes for the organizations of these shards until each has answered. Returns how long it took. The load
/// cannot tell if a node only keeps silent: all its clients may be waiting for just that node.
pub fn wait_for_others(load: &Load, silent: usize, shards: &[u16]) -> Duration {
    let began = Instant::now();
    let others = load.clients.iter().enumerate();
    let others = others
        .filter(|(node, _)| *node != silent)
        .map(|(_, client)| client);
    let mut others = others.cycle();
    for tenant in load
        .tenants
        .iter()
        .filter(|tenant| shards.contains(&tenant.shard))
    {
        let body = json!({"bucketId": tenant.bucket.id, "limit": 1});
        until_within(
            TAKEN_OVER_WITHIN,
            "the other nodes serve the organization",
            || {
                let request = others.next()?.post("/api/data/query").key(&tenant.bucket.admin);
                let answer = request.json(&body).try_send();
                answer.is_ok_and(|answer| answer.status == 200).then_some(())
            },
        );
    }
    began.elapsed()
}

/// Waits until this time is over.
pub fn hold_for(time: Duration) {
    let began = Instant::now();
    until_within(time * 2, "time passes", || {
        (began.elapsed() >= time).then_some(())
    });
}

/// The clients of an audit, one for each node.
pub fn auditors(world: &World) -> Vec<Client> {
    world
        .nodes
        .iter()
        .map(|node| node.server.client.clone())
        .collect()
}

/// Audits a load that has ended.
pub fn audited(world: &World, load: &Load) -> Vec<Fault> {
    audit(load, &auditors(world), ANSWERED_WITHIN).collect()
}

#[track_caller]
pub fn assert_none(faults: &[Fault], context: &str) {
    let shown: Vec<String> = faults
        .iter()
        .take(SHOWN_MAX)
        .map(|fault| format!("{:?}: {}", fault.kind, fault.what))
        .collect();
    assert!(
        faults.is_empty(),
        "{} faults ({context}):\n{}",
        faults.len(),
        shown.join("\n")
    );
}

/// Rounds of a fault, each with new organizations; at the end, those of all rounds are audited again. Prints what each round
/// has to say.
pub fn run_rounds<S: Into<Said>>(
    test: &str,
    world: &mut World,
    rounds: u64,
    mut fault: impl FnMut(&mut World, &Load, &mut fastrand::Rng) -> S,
) {
    let seed = seed(test);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut loads, mut backs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let began = Instant::now();
        let load = Load::new(world);
        let (load, said) = load_with(world, &mut random, load, &mut fault);
        let Said { text, back } = said.into();
        backs.extend(back);
        let context = format!("{test}, round {round}, CLUSTER_SEED={seed}");
        world.settle();
        assert_none(&audited(world, &load), &context);
        assert_eq!(
            world.late_rows(),
            0,
            "nothing is written under an old epoch ({context})"
        );
        println!(
            "{test}: round {} of {rounds}: {text}; {} requests acknowledged, {} of them on being repeated, {:.1} s",
            round + 1,
            load.acknowledged.load(Ordering::SeqCst),
            load.replayed.load(Ordering::SeqCst),
            began.elapsed().as_secs_f64()
        );
        loads.push(load);
    }
    if rounds > 1 {
        for load in &loads {
            assert_none(
                &audited(world, load),
                &format!("{test}, at the end, CLUSTER_SEED={seed}"),
            );
        }
        backs.sort();
        println!("{test}: {rounds} rounds without a fault");
        if let (Some(middle), Some(most)) = (backs.get(backs.len() / 2), backs.last()) {
            println!("{test}: answered again after {middle:?} in the middle, {most:?} at most");
        }
    }
}

/// Waits for a condition on the output of a node.
pub fn wait_for_line(world: &World, node: usize, part: &str) {
    until(&format!("node {node} says `{part}`"), || {
        let lines = world.nodes[node].server.output_lines();
        lines.iter().any(|line| line.contains(part)).then_some(())
    });
}
