//! What must hold, whatever happens to nodes.

use std::time::Duration;

use super::world::{LEASE, World};

/// Everything that a death sets off, with the slowest clocks.
const SOON: Duration = Duration::from_secs(3 * 4);
/// Hand-overs begin after a minute, one at a time from each node.
const LATER: Duration = Duration::from_secs(200);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_single_node_owns_everything_at_once() {
    let mut world = World::new(1, 1, 64);
    world.until("it owns all shards", seconds(1.5), World::all_owned);
}

#[test]
fn nodes_that_come_get_their_share_and_no_more_moves() {
    let mut world = World::new(2, 1, 64);
    world.until("the first owns all shards", SOON, World::all_owned);
    world.start_node();
    world.start_node();
    world.until("shards have moved", LATER, World::all_where_they_should_be);
    world.until("they are open", SOON, World::all_owned);
    let before = world.claims;
    world.pass(LATER);
    assert_eq!(
        world.claims, before,
        "nothing moves once all are where they should be"
    );
}

#[test]
fn shards_of_a_node_that_dies_are_owned_again_soon() {
    for (nodes, shards) in [(10, 64), (100, 256), (1_000, 256)] {
        let mut world = World::new(3, nodes, shards);
        world.until("all are owned", SOON, World::all_owned);
        let owners = |world: &World| {
            (0..nodes)
                .filter(|node| !world.nodes[*node].owned.is_empty())
                .collect::<Vec<_>>()
        };
        let victim = owners(&world)[0];
        world.kill(victim);
        let took = world.until("all are owned again", SOON, World::all_owned);
        println!("{nodes} nodes, {shards} shards: owned again after {took:?}, with a lease of {LEASE:?}");
        assert!(took <= LEASE.mul_f64(1.5), "{took:?}");
    }
}

#[test]
fn a_node_that_stops_hands_its_shards_over_without_a_lease() {
    let mut world = World::new(4, 3, 64);
    world.until("all are owned", SOON, World::all_owned);
    let had = world.nodes[0].owned.len();
    world.drain(0);
    world.until("it has nothing left", seconds(60.0), |world| {
        world.nodes[0].owned.is_empty()
    });
    world.until("all are owned", SOON, World::all_owned);
    assert!(had > 0 && world.nodes[1].owned.len() + world.nodes[2].owned.len() == 64);
}

/// Random deaths, freezes, cuts, starts and stops. That no two nodes answer for a shard is checked at every claim.
#[test]
fn no_two_nodes_answer_for_a_shard_and_every_shard_finds_an_owner() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let seeds = match number("CLUSTER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CLUSTER_ROUNDS").unwrap_or(150),
    };
    for seed in seeds {
        println!("CLUSTER_SEED={seed}");
        let mut world = World::new(seed, 1 + (seed % 8) as usize, 16);
        for _ in 0..40 {
            let span = seconds(world.rng.f64() * 12.0);
            world.pass(seconds(world.rng.clone().f64() * 4.0));
            let living = world.living();
            let node = living[world.rng.usize(..living.len())];
            match world.rng.u8(0..10) {
                0 | 1 if living.len() > 1 => world.kill(node),
                2..5 => world.freeze(node, span),
                5 | 6 => world.cut_off(node, span),
                7 if living.len() > 2 => world.drain(node),
                8 => world.start_node(),
                _ => {}
            }
        }
        // One that neither stops nor dies, at the latest now.
        world.start_node();
        world.pass(seconds(12.0));
        world.until("all are owned", seconds(40.0), World::all_owned);
        world.until(
            "all are where they should be",
            LATER,
            World::all_where_they_should_be,
        );
    }
}

/// The simulation notices what it should: nodes that trust their leases for longer than others wait.
#[test]
fn the_check_catches_a_lease_that_is_too_long() {
    let caught = std::panic::catch_unwind(|| {
        for seed in 0..20 {
            let mut world = World::new(seed, 4, 16);
            world.until("all are owned", SOON, World::all_owned);
            world.lengthen_leases();
            for _ in 0..20 {
                world.freeze(world.rng.clone().usize(..4), seconds(3.0));
                world.pass(seconds(3.5));
            }
        }
    });
    assert!(caught.is_err());
}
