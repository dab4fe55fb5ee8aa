//! What must hold, whatever happens to nodes.

use std::time::Duration;

use super::world::{LEASE, World};

/// Everything that a death sets off, with the slowest clocks.
const SOON: Duration = Duration::from_secs(12);
/// Hand-overs begin after a minute, one at a time from each node.
const LATER: Duration = Duration::from_secs(300);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_single_node_owns_everything_soon() {
    let mut world = World::new(1, 1, 64);
    world.until("it owns all shards", seconds(3.0), World::all_owned);
}

#[test]
fn nodes_that_come_get_their_share_and_no_more_moves() {
    let mut world = World::new(2, 1, 64);
    world.until("the first owns all shards", SOON, World::all_owned);
    world.start_node();
    world.start_node();
    world.until("shards have moved", LATER, World::all_where_they_should_be);
    world.until("they are open", SOON, World::all_owned);
    let before = world.epochs();
    world.pass(LATER);
    assert_eq!(
        world.epochs(),
        before,
        "nothing moves once all are where they should be"
    );
}

#[test]
fn shards_of_a_node_that_dies_are_owned_again_soon() {
    for (nodes, shards) in [(10, 64), (100, 256), (1_000, 256)] {
        let mut world = World::new(3, nodes, shards);
        world.until("all are owned", SOON, World::all_owned);
        let mut owners = (0..nodes).filter(|node| !world.nodes[*node].owned.is_empty());
        let victim = owners.next().unwrap();
        world.kill(victim);
        let took = world.until("all are owned again", SOON, World::all_owned);
        println!("{nodes} nodes, {shards} shards: owned again after {took:?}, with a lease of {LEASE:?}");
        assert!(took <= LEASE.mul_f64(1.5), "{took:?}");
    }
}

/// The next owner looks when the lease ends, and again when it has removed the node.
#[test]
fn a_dead_node_is_replaced_without_waiting_for_the_next_round() {
    const SEEDS: u32 = 20;
    let took = (0..SEEDS).map(|seed| {
        let mut world = World::new(u64::from(seed), 3, 16);
        world.until("all are owned", SOON, World::all_owned);
        world.kill(0);
        world.until("all are owned again", SOON, World::all_owned)
    });
    let mean = took.sum::<Duration>() / SEEDS;
    assert!(mean < LEASE.mul_f64(1.1), "{mean:?}");
}

#[test]
fn shards_of_half_of_the_nodes_are_owned_again_soon() {
    let mut world = World::new(6, 100, 256);
    world.until("all are owned", SOON, World::all_owned);
    (0..50).for_each(|node| world.kill(node));
    world.until("all are owned again", 2 * SOON, World::all_owned);
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

/// While the store does not answer, all beats stand still; afterwards nobody is taken for dead because of that.
#[test]
fn an_outage_of_the_store_removes_nobody() {
    for seed in 0..20 {
        let mut world = World::new(seed, 6, 64);
        world.until("all are owned", SOON, World::all_owned);
        let (members, epochs) = (world.members(), world.epochs());
        world.outage(LEASE.mul_f64(0.5 + 0.25 * seed as f64));
        world.pass(LEASE.mul_f64(8.0));
        assert_eq!(world.members(), members, "seed {seed}");
        assert_eq!(world.epochs(), epochs, "seed {seed}");
        world.until("all are owned", SOON, World::all_owned);
    }
}

/// Random deaths, freezes, cuts, starts and stops, while operations are lost or late.
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
        world.is_troubled = true;
        for _ in 0..40 {
            let (pause, span) = (world.rng.f64() * 4.0, world.rng.f64() * 12.0);
            world.pass(seconds(pause));
            let living = world.living();
            let node = living[world.rng.usize(..living.len())];
            match world.rng.u8(0..11) {
                0 | 1 if living.len() > 1 => world.kill(node),
                2..5 => world.freeze(node, seconds(span)),
                5 | 6 => world.cut_off(node, seconds(span)),
                7 if living.len() > 2 => world.drain(node),
                8 => world.start_node(),
                9 => world.outage(seconds(span)),
                _ => {}
            }
        }
        world.is_troubled = false;
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
        for seed in 0..40 {
            let mut world = World::new(seed, 4, 16);
            world.until("all are owned", SOON, World::all_owned);
            world.lengthen_leases(1.5);
            world.pass(LEASE);
            for _ in 0..20 {
                let node = world.rng.usize(..4);
                world.freeze(node, seconds(6.0));
                world.pass(seconds(6.5));
            }
        }
    });
    let message = caught.expect_err("two nodes answer for a shard");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(message.contains("answer for shard"), "{message}");
}
