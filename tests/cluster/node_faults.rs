//! Faults of a node: it is killed, frozen, or cut off from the database or from the other nodes.

use rustix::process::Signal;

use crate::link::Mode;
use crate::load::Load;
use crate::round::{
    Said, hold_for, rounds, run_rounds, wait_for_all, wait_for_count, wait_for_more, wait_for_others,
};
use crate::turn::SHARED;
use crate::world::{LEASE, NODES, World};

/// Requests to wait for while most clients wait for an answer that does not come.
const DIRECT: u64 = 6;

fn run<S: Into<Said>>(test: &str, fault: impl FnMut(&mut World, &Load, &mut fastrand::Rng) -> S) {
    SHARED.run(|world| run_rounds(test, world, rounds(), fault));
}

/// A node that owns shards of the load, and all its shards.
pub fn victim(world: &World, load: &Load, random: &mut fastrand::Rng) -> (usize, Vec<u16>) {
    let owners = world.owners();
    let of_load = |node: &usize| {
        let is_owner = |shard: u16| owners.get(&shard) == Some(node);
        load.tenants.iter().any(|tenant| is_owner(tenant.shard))
    };
    let nodes: Vec<usize> = (0..NODES).filter(of_load).collect();
    let node = nodes[random.usize(..nodes.len())];
    (node, world.shards_of(node))
}

#[test]
fn killed() {
    run("kill -9", |world, load, random| {
        let (node, shards) = victim(world, load, random);
        let since = load.now();
        world.nodes[node].server.kill();
        let back = wait_for_others(load, node, &shards);
        wait_for_all(load, since, &[]);
        world.launch(node);
        wait_for_more(load, "the load goes on");
        Said::back_after(back)
    });
}

#[test]
fn frozen_for_three_leases() {
    run("SIGSTOP", |world, load, random| {
        let (node, shards) = victim(world, load, random);
        let since = load.now();
        world.signal(node, Signal::STOP);
        let back = wait_for_others(load, node, &shards);
        hold_for((3 * LEASE).saturating_sub(back));
        wait_for_all(load, since, &[]);
        world.signal(node, Signal::CONT);
        wait_for_more(load, "the load goes on");
        Said::back_after(back)
    });
}

#[test]
fn cut_off_from_the_database() {
    run("cut off from the database", |world, load, random| {
        let (node, shards) = victim(world, load, random);
        let mode = [Mode::Cut, Mode::Hold, Mode::HoldRequests][random.usize(..3)];
        // Some cuts are shorter than the lease.
        let time = LEASE * random.u32(1..=6) / 2;
        let since = load.now();
        world.nodes[node].to_database.set(mode);
        hold_for(time);
        let is_taken = time > LEASE;
        if is_taken {
            wait_for_all(load, since, &shards);
        }
        world.nodes[node].to_database.set(Mode::Pass);
        let mended = load.now();
        wait_for_all(load, mended, &[]);
        wait_for_more(load, "the load goes on");
        format!("{mode:?} for {time:?}")
    });
}

#[test]
fn cut_off_from_the_other_nodes() {
    run("cut off from the other nodes", |world, load, random| {
        let mode = [Mode::Cut, Mode::Hold][random.usize(..2)];
        let (node, _) = victim(world, load, random);
        // Nobody reaches the node, or no node reaches another.
        let is_one = random.bool();
        let cut: Vec<usize> = (0..NODES).filter(|other| !is_one || *other == node).collect();
        for node in &cut {
            world.nodes[*node].from_nodes.set(mode);
        }
        hold_for(LEASE);
        // Where the owner is asked directly, it answers.
        wait_for_count(load, DIRECT, "what needs no other node goes on");
        for node in &cut {
            world.nodes[*node].from_nodes.set(Mode::Pass);
        }
        let mended = load.now();
        wait_for_all(load, mended, &[]);
        wait_for_more(load, "the load goes on");
        format!("{mode:?} of the way to {} nodes", cut.len())
    });
}
