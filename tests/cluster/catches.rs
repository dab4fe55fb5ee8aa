//! The harness finds what it is there to find: with the fence switched off, with acknowledgements before the commit, and with
//! a root that is moved before its upload, the audit has faults. What is switched off is so outside the product: by what
//! passes a link, by the database, by the object store.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::audit::audit;
use crate::checker::Kind;
use crate::link::Mode;
use crate::load::{Call, Load};
use crate::node_faults::victim;
use crate::owners::break_until_replaced;
use crate::round::{hold_for, load_with, seed, wait_for_all, wait_for_more};
use crate::tenant::Tenant;
use crate::turn::in_own_world;
use crate::waiting::until;
use crate::world::{NODES, Node, Plan, World};

/// Time for each request of these audits: a shard that cannot be opened does not answer.
const WITHIN: Duration = Duration::from_secs(6);

/// Checkpoints are rare, so that the log is read after a kill.
fn without_checkpoints() -> Plan {
    Plan {
        settings: vec![
            ("storage.checkpoint_bytes", "67108864".to_owned()),
            ("storage.remote_period_seconds", "3600".to_owned()),
        ],
        ..Plan::default()
    }
}

fn kill_all(world: &mut World) {
    for node in 0..NODES {
        world.nodes[node].server.kill();
    }
}

fn launch_all(world: &mut World) {
    for node in 0..NODES {
        world.launch(node);
    }
}

/// Asserts that the audit finds a fault of one of these kinds after this, and prints it.
#[track_caller]
fn assert_found(
    test: &str,
    world: &mut World,
    kinds: &[Kind],
    fault: impl FnOnce(&mut World, &Load, &mut fastrand::Rng),
) {
    let mut random = fastrand::Rng::with_seed(seed(test));
    let load = Load::new(world);
    let (load, ()) = load_with(world, &mut random, load, fault);
    let found = audit(&load, &load.clients, WITHIN).find(|fault| kinds.contains(&fault.kind));
    println!("{test}: {found:?}");
    assert!(found.is_some(), "one of {kinds:?} is found");
}

/// Writes of old epochs pass: the statements that compare epochs are changed on their way to the database, and all that later
/// owners have written at their place and after it gives way. The first row of an owner alone may have nothing of a client.
const NO_FENCE: (&[u8], &[u8]) = (b"shard.epoch = g.epoch", b"shard.epoch >=g.epoch");
const OVERWRITE: &str = "
CREATE FUNCTION overwrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM log WHERE shard = NEW.shard AND first >= NEW.first AND epoch > NEW.epoch;
    RETURN NEW;
END $$;
CREATE TRIGGER overwrite BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION overwrite()";

#[test]
fn a_fence_that_is_switched_off() {
    in_own_world(&without_checkpoints(), |world| {
        world.sql(OVERWRITE);
        let (from, to) = NO_FENCE;
        for node in &world.nodes {
            node.to_database.change(from, to);
        }
        // The log has rows of two owners: something is gone, or the shard cannot be opened.
        let kinds = [Kind::Lost, Kind::Unexpected, Kind::TakenBack, Kind::Torn];
        assert_found("without a fence", world, &kinds, |world, load, random| {
            wait_for_more(load, "appends go on through new connections");
            let changed: u64 = world.nodes.iter().map(|node| node.to_database.changed()).sum();
            assert!(
                changed > 0,
                "the statement of an append is the one that is changed"
            );
            let (node, shards) = victim(world, load, random);
            // What it appends next arrives later.
            break_until_replaced(world, load, (node, &shards), Mode::HoldRequests);
            let since = load.now();
            until("the next owners have acknowledged points", || {
                let calls = load.calls.lock().unwrap();
                let has_points = |tenant: &Tenant| {
                    let is_ingest = |call: &Call| call.status == Some(201) && call.span.began > since;
                    calls
                        .iter()
                        .any(|call| call.shard == tenant.shard && is_ingest(call))
                };
                let mut tenants = load.tenants.iter();
                tenants
                    .all(|tenant| !shards.contains(&tenant.shard) || has_points(tenant))
                    .then_some(())
            });
            world.nodes[node].to_database.set(Mode::Pass);
            until("the old owner has written", || {
                (world.late_rows() > 0).then_some(())
            });
            kill_all(world);
            launch_all(world);
        });
    });
}

/// The database says that rows are committed, and does not keep them.
const FORGET: &str = "
CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM log WHERE shard = NEW.shard AND first = NEW.first;
    RETURN NULL;
END $$;
CREATE TRIGGER forget AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION forget()";

#[test]
fn an_acknowledgement_before_the_commit() {
    in_own_world(&without_checkpoints(), |world| {
        assert_found(
            "acknowledged before the commit",
            world,
            &[Kind::Lost],
            |world, load, _| {
                world.sql(FORGET);
                wait_for_more(load, "appends go on");
                kill_all(world);
                world.sql("DROP TRIGGER forget ON log");
                let since = load.now();
                launch_all(world);
                wait_for_all(load, since, &[]);
            },
        );
    });
}

#[test]
fn a_root_that_is_moved_before_its_upload() {
    in_own_world(&Plan::default(), |world| {
        // A shard is not opened without its files.
        assert_found(
            "root before upload",
            world,
            &[Kind::Unexpected],
            |world, load, _| {
                // Checkpoints of all shards of the load.
                let tenants: Vec<u16> = load.tenants.iter().map(|tenant| tenant.shard).collect();
                until("every shard of the load has a root", || {
                    let named = world.sql("SELECT id FROM shard WHERE root IS NOT NULL");
                    let has_root = |shard: &u16| named.lines().any(|line| line == shard.to_string());
                    tenants.iter().all(has_root).then_some(())
                });
                hold_for(Duration::from_secs(3));
                kill_all(world);
                for shard in tenants {
                    remove_newest(&world.objects_dir(), shard);
                }
                launch_all(world);
            },
        );
        let says = |node: &Node| {
            let lines = node.server.output_lines();
            lines
                .iter()
                .any(|line| line.contains("a shard could not be opened"))
        };
        assert!(
            world.nodes.iter().any(says),
            "the log says why it does not answer"
        );
    });
}

/// Removes the newest file of a shard's checkpoint.
fn remove_newest(objects: &Path, shard: u16) {
    let is_of_shard = |path: &PathBuf| {
        let part = format!("/{shard:05}/files/");
        path.to_string_lossy().contains(&part)
    };
    let mut found: Vec<(SystemTime, PathBuf)> = files(objects)
        .into_iter()
        .filter(|path| is_of_shard(path))
        .map(|path| (fs::metadata(&path).unwrap().modified().unwrap(), path))
        .collect();
    found.sort();
    if let Some((_, newest)) = found.pop() {
        fs::remove_file(newest).unwrap();
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (dirs, mut found): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    found.extend(dirs.iter().flat_map(|dir| files(dir)));
    found
}
