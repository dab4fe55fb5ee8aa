//! Two nodes that both think they own a shard: one of them cannot write.

use crate::link::Mode;
use crate::load::Load;
use crate::node_faults::victim;
use crate::round::{run_rounds, wait_for_all, wait_for_line, wait_for_more};
use crate::turn::SHARED;
use crate::waiting::until;
use crate::world::World;

/// Breaks a node's link to the database until others own all its shards, and have served each organization.
pub fn break_until_replaced(world: &World, load: &Load, (node, shards): (usize, &[u16]), mode: Mode) {
    let epochs = world.epochs(shards);
    let link = &world.nodes[node].to_database;
    link.set(mode);
    if mode == Mode::HoldRequests {
        until("an append is on its way", || (link.held() > 0).then_some(()));
    }
    until("others have claimed every shard of the node", || {
        let owners = world.owners();
        let is_claimed = |shard: &u16| owners.get(shard).is_some_and(|owner| *owner != node);
        let has_grown = world.epochs(shards) >= epochs + shards.len() as u64;
        (has_grown && shards.iter().all(is_claimed)).then_some(())
    });
    wait_for_all(load, load.now(), shards);
}

/// Replaces an owner that goes on, and mends its link to the database.
fn replace_owner(world: &World, load: &Load, random: &mut fastrand::Rng, mode: Mode) -> String {
    let (node, shards) = victim(world, load, random);
    break_until_replaced(world, load, (node, &shards), mode);
    // What the node has sent under its old epochs arrives now.
    world.nodes[node].to_database.set(Mode::Pass);
    wait_for_line(world, node, "this node was removed from the cluster");
    wait_for_more(load, "the load goes on");
    let lines = world.nodes[node].server.output_lines();
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    format!(
        "{} shards had two owners; the old one repeated {} appends and dropped {} shards",
        shards.len(),
        count("an append to the log store is repeated"),
        count("shard dropped"),
    )
}

/// The owner's appends are on their way while others take over, and arrive when the next owners have written.
#[test]
fn an_append_that_arrives_after_the_next_owner_s_is_refused() {
    SHARED.run(|world| {
        run_rounds("appends of an old owner", world, 1, |world, load, random| {
            replace_owner(world, load, random, Mode::HoldRequests)
        });
    });
}

/// The owner's renewals are delayed, and its appends are not.
#[test]
fn an_owner_that_cannot_renew_stops_although_its_appends_arrive() {
    SHARED.run(|world| {
        run_rounds("renewals delayed", world, 1, |world, load, random| {
            replace_owner(world, load, random, Mode::HoldRenewals)
        });
    });
}
