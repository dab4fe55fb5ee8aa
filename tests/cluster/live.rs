//! `make cluster`: a cluster on this machine under load, which a person breaks by pressing keys, and which says what
//! happens. A test starts itself as such a session, and drives it.

mod balancer;
mod faults;
mod keys;
mod meter;
mod screen;
mod script;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::given::PASSWORD;
use crate::load::{CLIENTS, Load};
use crate::process::OPERATOR_TOKEN;
use crate::round::{assert_none, audited, load_with, wait_for_all};
use crate::world::{LEASE, NODES, Plan, World};

use faults::Session;
use keys::{Key, Keys};
use meter::{Meter, summary};
use screen::Screen;

/// With this variable in the environment the test is a session, which reads keys from standard input.
const SESSION: &str = "CLUSTER_SESSION";

/// Time between two looks at the cluster.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// Enough for each node to own some, and some that the organizations of the load are on.
const SHARDS: u16 = 32;
const TENANTS: usize = 12;

/// The nodes have the server's own settings here, not those by which tests have many checkpoints.
const SETTINGS: [(&str, &str); 2] = [
    ("storage.checkpoint_bytes", "67108864"),
    ("storage.remote_period_seconds", "300"),
];

#[test]
fn a_session() {
    if std::env::var_os(SESSION).is_some() {
        run();
    } else {
        script::drive_sessions();
    }
}

fn run() {
    let dir = tempfile::Builder::new()
        .prefix("tidewatch-cluster-")
        .tempdir()
        .unwrap();
    // The database runs under an account of its own, and has a directory below.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    tempfile::env::override_temp_dir(dir.path()).unwrap();
    // A Ctrl-C of the terminal would end the databases, too, as long as there are any.
    let keys = Keys::open();
    println!(
        "starting PostgreSQL with two standbys, an S3 server and {NODES} nodes in {}",
        dir.path().display()
    );
    let mut world = World::start(&Plan {
        has_s3: true,
        is_tied: true,
        has_fsync: true,
        shards: Some(SHARDS),
        settings: SETTINGS.map(|(key, value)| (key, value.to_owned())).to_vec(),
        ..Plan::default()
    });
    let load = Load::with_tenants(&world, TENANTS);
    let mut random = fastrand::Rng::new();
    let (load, (mut meter, mut screen)) = load_with(&mut world, &mut random, load, |world, load, _| {
        session(world, load, &keys, dir.path())
    });
    world.settle();
    screen.tell("the load has ended; comparing what was acknowledged with what is there");
    // Together with all points, these would take long.
    meter.check_reads(&load, u64::MAX);
    meter.update(&load);
    let mut faults = std::mem::take(&mut meter.faults);
    faults.extend(audited(&world, &load));
    screen.tell(&format!(
        "{} acknowledged writes of {} points compared: {}",
        meter.acknowledged(),
        meter.points(),
        summary(&faults)
    ));
    assert_none(&faults, "what was acknowledged and what is there");
    assert_eq!(world.late_rows(), 0, "nothing is written under an old epoch");
}

/// Until the person ends it; then everything that was broken is mended.
fn session(world: &mut World, load: &Load, keys: &Keys, dir: &Path) -> (Meter, Screen) {
    let screen = Screen::new(head(load, dir));
    let mut session = Session::new(world, load, screen);
    loop {
        match keys.next(LOOK_PERIOD) {
            Some(Key::Quit) => break,
            Some(key) => session.press(key),
            None => {}
        }
        session.look();
    }
    session.mend_all();
    let (meter, screen) = session.end();
    wait_for_all(load, load.now(), &[]);
    (meter, screen)
}

/// What does not change while the session lasts.
fn head(load: &Load, dir: &Path) -> Vec<String> {
    vec![
        format!(
            "{NODES} nodes, {SHARDS} shards, a lease of {} s; {CLIENTS} clients use {} organizations through the nodes that are ready",
            LEASE.as_secs(),
            load.tenants.len()
        ),
        format!("everything is in {}", dir.display()),
        format!(
            "log in at the page of any node: {}, password `{PASSWORD}`",
            load.tenants[0].email
        ),
        format!("the cluster is at /#/operator of any node, with the operator token `{OPERATOR_TOKEN}`"),
    ]
}
