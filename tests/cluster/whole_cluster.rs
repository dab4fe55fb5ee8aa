//! Faults of whole parts: all nodes at once, the data directory of a node, the database's primary.

use std::time::Duration;

use crate::link::Mode;
use crate::load::{Load, RECEIVER_PATH};
use crate::node_faults::victim;
use crate::round::{Said, run_rounds, wait_for_all, wait_for_more};
use crate::turn::{SHARED, in_own_world};
use crate::world::{NODES, Plan, SHARDS, World};

#[test]
fn all_nodes_killed_at_once() {
    SHARED.run(|world| {
        run_rounds("all nodes killed", world, 1, |world, load, random| {
            let since = load.now();
            for node in 0..NODES {
                world.nodes[node].server.kill();
            }
            for node in 0..NODES {
                // Another size of checkpoints changes nothing, and recovery may be killed, too.
                let bytes = [65_536, 1_048_576][random.usize(..2)].to_string();
                let setup = world.nodes[node].setup.clone();
                let setup = setup.set("storage.checkpoint_bytes", &bytes);
                world.nodes[node].server.configure(setup);
                let after = Duration::from_micros(random.u64(0..200_000));
                world.nodes[node].server.launch_and_kill(after);
                world.launch(node);
            }
            let back = wait_for_all(load, since, &all_shards(load));
            wait_for_more(load, "the load goes on");
            // The audit looks for what is owed for each rule.
            load.receiver.wait(RECEIVER_PATH, 1);
            Said::back_after(back)
        });
    });
}

#[test]
fn the_data_directory_of_a_node_is_erased() {
    SHARED.run(|world| {
        run_rounds("data directory erased", world, 1, |world, load, random| {
            let (node, _) = victim(world, load, random);
            world.nodes[node].server.kill();
            std::fs::remove_dir_all(world.nodes[node].server.data_dir()).unwrap();
            world.launch(node);
            world.settle();
            // The others hand everything over to it.
            let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
            for other in &others {
                let stopped = world.nodes[*other].server.stop();
                assert!(stopped.success(), "contract 9: SIGTERM: exit 0");
            }
            let since = load.now();
            wait_for_all(load, since, &[]);
            assert_eq!(world.shards_of(node).len(), usize::from(SHARDS));
            for other in others {
                world.launch(other);
            }
            wait_for_more(load, "the load goes on");
            "the node without its directory served all shards".to_owned()
        });
    });
}

/// Regression: a node whose directory was removed opened its shards again in a directory that it had not locked.
#[test]
fn the_data_directory_of_a_running_node_is_removed() {
    SHARED.run(|world| {
        run_rounds("data directory removed", world, 1, |world, load, random| {
            let (node, shards) = victim(world, load, random);
            let since = load.now();
            std::fs::remove_dir_all(world.nodes[node].server.data_dir()).unwrap();
            let ended = world.nodes[node].server.wait();
            assert_eq!(
                ended.code(),
                Some(1),
                "whoever starts it again sees that it has failed"
            );
            let back = wait_for_all(load, since, &shards);
            world.launch(node);
            wait_for_more(load, "the load goes on");
            Said::back_after(back)
        });
    });
}

#[test]
fn the_primary_of_the_database_is_killed_and_a_standby_promoted() {
    in_own_world(&Plan::default(), |world: &mut World| {
        run_rounds("primary killed", world, 1, |world, load, _| {
            let since = load.now();
            // As with an address that is moved: nobody reaches the old one.
            for node in &world.nodes {
                node.to_database.set(Mode::Hold);
            }
            world.fail_over();
            for node in &world.nodes {
                node.to_database.set(Mode::Pass);
            }
            let back = wait_for_all(load, since, &all_shards(load));
            wait_for_more(load, "the load goes on");
            Said::back_after(back)
        });
    });
}

fn all_shards(load: &Load) -> Vec<u16> {
    load.tenants.iter().map(|tenant| tenant.shard).collect()
}
