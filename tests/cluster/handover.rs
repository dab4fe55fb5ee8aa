//! Orderly hand-overs under load: SIGTERM of each node in turn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::load::{Call, Load};
use crate::node_faults::victim;
use crate::record::{Span, Verdict};
use crate::round::{rounds, run_rounds, wait_for_more};
use crate::turn::DIRECT;
use crate::world::NODES;

/// Evaluators that post a verdict for the same rule at the same time.
const EVALUATORS: usize = 3;

/// Calls that failed for a client of a node that does not stop. `stopping` is the node that does.
fn failed(load: &Load, since: u64, stopping: usize) -> Vec<String> {
    let calls = load.calls.lock().unwrap();
    let is_failure = |call: &&Call| {
        let is_refused = call.status.is_some_and(|status| status >= 500);
        // Clients of the node that stops find it gone.
        call.span.began >= since && (is_refused || call.status.is_none() && call.node != stopping)
    };
    let failed = calls.iter().filter(is_failure);
    failed
        .map(|call| format!("through node {} in {:?}: {}", call.node, call.span, call.text))
        .collect()
}

/// The slowest and the middle one of the requests that succeeded.
fn latencies(load: &Load, since: u64) -> (Duration, Duration) {
    let calls = load.calls.lock().unwrap();
    let ok = calls
        .iter()
        .filter(|call| call.span.began >= since && call.is_ok());
    let mut times: Vec<u64> = ok.map(|call| call.span.ended - call.span.began).collect();
    times.sort_unstable();
    let at = |index: usize| Duration::from_micros(times.get(index).copied().unwrap_or(0));
    (at(times.len().saturating_sub(1)), at(times.len() / 2))
}

#[test]
fn each_node_is_stopped_in_turn_and_no_client_sees_an_error() {
    DIRECT.run(|world| {
        run_rounds("SIGTERM", world, rounds(), |world, load, _| {
            let mut said = Vec::new();
            for node in 0..NODES {
                let (since, shards) = (load.now(), world.shards_of(node).len());
                assert!(
                    world.nodes[node].server.stop().success(),
                    "contract 9: SIGTERM: exit 0"
                );
                wait_for_more(load, "the load goes on");
                let (slowest, middle) = latencies(load, since);
                world.launch(node);
                wait_for_more(load, "the load goes on");
                let failed = failed(load, since, node);
                assert!(
                    failed.is_empty(),
                    "a hand-over costs a pause, not an error: {failed:#?}"
                );
                said.push(format!(
                    "{shards} shards handed over: slowest request {slowest:.0?}, median {middle:.1?}"
                ));
            }
            said.join("; ")
        });
    });
}

#[test]
fn verdicts_on_both_sides_of_a_hand_over_count_once() {
    DIRECT.run(|world| {
        run_rounds("verdicts", world, 1, |world, load, random| {
            let (node, shards) = victim(world, load, random);
            let (is_over, made) = (AtomicBool::new(false), AtomicU64::new(0));
            thread::scope(|scope| {
                let mut random = random.fork();
                let (is_over, made, shards) = (&is_over, &made, &shards);
                scope.spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        post_together(load, shards, &mut random);
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                });
                let stopped = world.nodes[node].server.stop();
                is_over.store(true, Ordering::SeqCst);
                assert!(stopped.success(), "contract 9: SIGTERM: exit 0");
            });
            world.launch(node);
            wait_for_more(load, "the load goes on");
            format!("{made:?} rules with {EVALUATORS} verdicts at the same time")
        });
    });
}

/// Makes a rule on one of these shards, and has several evaluators post a verdict for it at the same time.
fn post_together(load: &Load, shards: &[u16], random: &mut fastrand::Rng) {
    let tenants: Vec<_> = load
        .tenants
        .iter()
        .filter(|tenant| shards.contains(&tenant.shard))
        .collect();
    let tenant = tenants[random.usize(..tenants.len())];
    let Some((index, id)) = load.make_rule(tenant, 0, random) else {
        return;
    };
    let verdicts: Vec<(Span, Verdict)> = thread::scope(|scope| {
        let post = |_| {
            let (mut random, id) = (random.fork(), &id);
            scope.spawn(move || load.post_verdict(tenant, id, &mut random))
        };
        let posting: Vec<_> = (0..EVALUATORS).map(post).collect();
        posting.into_iter().map(|it| it.join().unwrap()).collect()
    });
    tenant.rules.lock().unwrap()[index].verdicts.extend(verdicts);
}
