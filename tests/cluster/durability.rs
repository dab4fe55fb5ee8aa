//! A database whose commits reach one disk only.

use serde_json::Value;

use crate::process::OPERATOR_TOKEN;
use crate::tenant::Tenant;
use crate::turn::SHARED;
use crate::waiting::until;
use crate::world::{Node, World};

/// Sets the standbys that a commit waits for; `None` for those of the configuration file.
fn set_standbys(world: &World, names: Option<&str>) {
    let change = match names {
        Some(names) => format!("SET synchronous_standby_names = '{names}'"),
        None => "RESET synchronous_standby_names".to_owned(),
    };
    world.sql(&format!("ALTER SYSTEM {change}"));
    world.sql("SELECT pg_reload_conf()");
}

/// What the operator is shown of the database.
fn shown(node: &Node) -> (Value, Value) {
    let request = node
        .server
        .client
        .get("/api/operator/cluster")
        .bearer(OPERATOR_TOKEN);
    let mut answer = request.send().expect(200, "the operator sees nodes and shards");
    let cluster = &mut answer["cluster"];
    (cluster["commitsReplicated"].take(), cluster["weakness"].take())
}

#[test]
fn nothing_is_acknowledged_while_a_commit_reaches_one_disk_only() {
    SHARED.run(|world| {
        let tenant = Tenant::sign_up(world, &world.nodes[0].server.client);
        let mut number = 0;
        let mut write = || {
            number += 1;
            let request = world.nodes[0].server.client.post("/api/data/batch");
            let points = tenant.points(number - 1..number, true, 0);
            request.key(&tenant.bucket.admin).json(&points).send()
        };
        write().expect(201, "contract 3: ingest");
        set_standbys(world, Some(""));
        until("writes are refused", || (write().status == 503).then_some(()));
        for node in &world.nodes {
            until("the operator is told why", || {
                let (is_replicated, weakness) = shown(node);
                let is_named = weakness
                    .as_str()
                    .is_some_and(|said| said.contains("synchronous_standby_names"));
                (is_replicated == false && is_named).then_some(())
            });
            let ready = node.server.client.get("/ready").send();
            assert_eq!(ready.status, 503, "a node that takes no writes is not ready");
            let said = ready.text();
            assert!(
                !said.contains("synchronous") && said.contains("the log store takes no writes"),
                "anybody may ask, so settings of the database are not named: {said}"
            );
        }
        for _ in 0..10 {
            assert_eq!(write().status, 503, "nothing is acknowledged");
        }
        set_standbys(world, None);
        until("writes are taken again", || (write().status == 201).then_some(()));
        world.settle();
        for node in &world.nodes {
            until("the operator is told that it is over", || {
                (shown(node) == (Value::Bool(true), Value::Null)).then_some(())
            });
        }
    });
}
