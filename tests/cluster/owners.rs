//! Two nodes that both think they own a shard: one of them cannot write.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::link::Mode;
use crate::load::Load;
use crate::node_faults::victim;
use crate::process::OPERATOR_TOKEN;
use crate::round::{run_rounds, wait_for_all, wait_for_line, wait_for_more};
use crate::turn::SHARED;
use crate::waiting::until;
use crate::world::{NODES, SHARDS, World};

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

/// ID and place of a node that the operator is shown.
fn place<'a>(world: &World, shown: &'a Value) -> Option<(&'a str, usize)> {
    let place = world.node_at(shown["address"].as_str()?)?;
    Some((shown["id"].as_str()?, place))
}

/// The owners of all shards as a node shows them to the operator; `None` unless it shows this many nodes.
fn shown_owners(world: &World, node: usize, nodes: usize) -> Option<BTreeMap<u16, usize>> {
    let request = world.nodes[node].server.client.get("/api/operator/cluster");
    let answer = request.bearer(OPERATOR_TOKEN).send();
    let cluster = answer.expect(200, "the operator sees nodes and shards")["cluster"].take();
    let shown = cluster["nodes"].as_array().unwrap();
    let this = shown.iter().find(|node| node["isThis"] == true).unwrap();
    assert_eq!(place(world, this).unwrap().1, node, "{cluster}");
    assert_eq!(cluster["commitsReplicated"], true, "{cluster}");
    let shards = cluster["shards"].as_array().unwrap();
    assert_eq!(shards.len(), usize::from(SHARDS), "{cluster}");
    let places: BTreeMap<&str, usize> = shown.iter().filter_map(|node| place(world, node)).collect();
    let owner = |shard: &Value| {
        let number = u16::try_from(shard["number"].as_u64()?).ok()?;
        Some((number, *places.get(shard["owner"].as_str()?)?))
    };
    (shown.len() == nodes).then(|| shards.iter().filter_map(owner).collect())
}

#[test]
fn every_node_shows_the_operator_the_owners_that_the_database_has() {
    SHARED.run(|world| {
        let agree = |world: &World, running: &[usize]| {
            until("all nodes show the owners that the database has", || {
                let owners = world.owners();
                let is_shown =
                    |node: &usize| shown_owners(world, *node, running.len()).as_ref() == Some(&owners);
                (owners.len() == usize::from(SHARDS) && running.iter().all(is_shown)).then_some(())
            });
        };
        let all: Vec<usize> = (0..NODES).collect();
        agree(world, &all);
        assert!(
            world.nodes[0].server.stop().success(),
            "contract 9: SIGTERM: exit 0"
        );
        for node in 1..NODES {
            let owners = shown_owners(world, node, NODES).or_else(|| shown_owners(world, node, NODES - 1));
            let is_gone = owners.is_some_and(|owners| owners.values().all(|owner| *owner != 0));
            assert!(is_gone, "a node ends when the others know that it owns nothing");
        }
        agree(world, &all[1..]);
        world.launch(0);
        world.settle();
    });
}
