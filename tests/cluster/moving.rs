//! `tidewatch cluster import` and `export`: a server's data in a cluster that runs, and back.

use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::given::{Account, Bucket, PASSWORD, point, text};
use crate::objects_server::environment;
use crate::process::{Server, Setup, command, run_to_end};
use crate::receiver::{Receiver, status};
use crate::time::{SECOND, now_ns};
use crate::turn::in_own_world;
use crate::waiting::until_within;
use crate::world::{NODES, Objects, Plan, S3_URL, SHARDS, World, init};

/// Time for an import or an export.
const COMMAND_WITHIN: Duration = Duration::from_secs(120);
/// Time until nodes have taken an imported shard over.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
/// Points that the server has when it becomes a shard.
const POINTS: usize = 500;
const HOOK: &str = "/owed";

/// An account with one of everything, and what it was answered.
struct House {
    account: Account,
    bucket: Bucket,
    source: String,
    /// A key of each type, in the order admin, integration, write, read.
    keys: [String; 4],
    rule: String,
    /// Ids of the points, in order of time.
    points: Vec<String>,
    first_ns: i64,
}

/// A server alone, whose directory is imported.
fn server() -> Server {
    Server::start_with(alone())
}

fn alone() -> Setup {
    Setup::unlimited().set("webhooks.allow_private_networks", "true")
}

impl House {
    fn build(client: &Client, receiver: &Receiver) -> Self {
        let account = Account::sign_up(client);
        let bucket = account.bucket("tides");
        let source = bucket.source("gauge", &["number", "level"]);
        let integration = text(
            &post(
                client,
                "/api/organization/keys",
                Some(&account.token),
                "",
                &json!({"name": "i", "type": "integration"}),
            ),
            "/apiKey/key",
        );
        let of_bucket = |of: &str| {
            let path = format!("/api/buckets/{}/keys", bucket.id);
            let answer = post(
                client,
                &path,
                None,
                &account.admin,
                &json!({"name": of, "type": of}),
            );
            text(&answer, "/apiKey/key")
        };
        let keys = [
            account.admin.clone(),
            integration,
            of_bucket("write"),
            of_bucket("read"),
        ];
        let rule = json!({
            "bucketId": bucket.id, "dataSourceId": source, "name": "high water",
            "naturalLanguageQuery": "level is above 5", "webhookUrl": receiver.url(HOOK),
            "evaluation": {
                "intervalSeconds": 86_400, "windowSeconds": 300, "inputs": [{"key": "x", "field": "level"}],
                "parameters": {},
            },
        });
        let rule = text(
            &post(client, "/api/alerts", None, &account.admin, &rule),
            "/alertRule/_id",
        );
        let mut house = House {
            first_ns: now_ns() / SECOND * SECOND - 3_600 * SECOND,
            account,
            bucket,
            source,
            keys,
            rule,
            points: Vec::new(),
        };
        house.write(client, POINTS);
        let verdict = json!({"outcome": "met", "evidence": {"currentValue": 9}});
        let path = format!("/api/evaluations/{}/verdict", house.rule);
        let request = client.post(&path).key(&house.keys[1]).json(&verdict);
        request.send().expect(200, "contract 6: a verdict of a due rule");
        house.points = house.shown(client).into_iter().map(|(id, _)| id).collect();
        house
    }

    /// Adds points with the write key, behind those that are there.
    fn write(&self, client: &Client, count: usize) {
        let first = self.shown(client).len();
        let entry = |number: usize| {
            let at = self.first_ns + number as i64 * SECOND;
            point(&self.source, at, &json!({"number": number, "level": 1}))
        };
        let entries: Vec<Value> = (first..first + count).map(entry).collect();
        let body = json!({"bucketId": self.bucket.id, "dataPoints": entries});
        let request = client.post("/api/data/batch").key(&self.keys[2]).json(&body);
        request.send().expect(201, "contract 4: a write key ingests");
    }

    /// The ids and numbers of all points, with the read key.
    fn shown(&self, client: &Client) -> Vec<(String, u64)> {
        let body = json!({"bucketId": self.bucket.id, "limit": 10_000, "downsampling": false});
        let request = client.post("/api/data/query").key(&self.keys[3]).json(&body);
        let answer = request.send().expect(200, "contract 5: a read key queries");
        let rows = answer["data"].as_array().into_iter().flatten();
        rows.map(|row| (text(row, "/_id"), row["values"]["number"].as_u64().unwrap()))
            .collect()
    }

    /// Asserts that credentials, points, rule and history are there, and so many points.
    #[track_caller]
    fn assert_served(&self, client: &Client, points: usize) {
        let body = json!({"email": self.account.email, "password": PASSWORD});
        let logged_in = client.post("/api/auth/login").json(&body).send();
        logged_in.expect(200, "an account of the server logs in");
        let me = client.get("/api/auth/me").bearer(&self.account.token).send();
        me.expect(200, "a token of the server is taken");
        let due = client.get("/api/evaluations/due").key(&self.keys[1]).send();
        due.expect(200, "an integration key of the server is taken");
        let path = format!("/api/alerts/{}/history", self.rule);
        let history = client.get(&path).key(&self.keys[0]).send();
        let history = history.expect(200, "an admin key of the server is taken");
        let verdicts = history["history"].as_array().into_iter().flatten();
        assert_eq!(
            verdicts.filter(|entry| entry["kind"] == "verdict").count(),
            1,
            "the verdict is there once: {history}"
        );
        let shown = self.shown(client);
        let ids: Vec<&String> = shown.iter().map(|(id, _)| id).take(self.points.len()).collect();
        assert_eq!(
            ids,
            self.points.iter().collect::<Vec<_>>(),
            "ids stay as they were answered"
        );
        let numbers: Vec<u64> = shown.into_iter().map(|(_, number)| number).collect();
        assert_eq!(
            numbers,
            (0..points as u64).collect::<Vec<_>>(),
            "every point is there once"
        );
    }
}

/// The answer to a request that creates something, with a token or a key.
#[track_caller]
fn post(client: &Client, path: &str, token: Option<&str>, key: &str, body: &Value) -> Value {
    let request = client.post(path).json(body);
    let request = match token {
        Some(token) => request.bearer(token),
        None => request.key(key),
    };
    request.send().expect(201, &format!("contract: POST {path}"))
}

/// The settings of a node of the cluster that has this log store, and the object store of the world.
fn member(world: &World, log: &str) -> Setup {
    let Objects::S3(objects) = &world.objects else {
        panic!("these tests use an S3 server")
    };
    let setup = alone()
        .set("cluster.log", log)
        .set("cluster.objects", S3_URL)
        .set("cluster.secret", "a secret of the tests");
    let variables = environment(objects.address, "key", "secret");
    variables
        .into_iter()
        .fold(setup, |setup, (name, value)| setup.environment(&name, &value))
}

/// Runs `tidewatch cluster import` or `export` on the directory of a server.
fn cluster_at(member: &Setup, server: &Server, arguments: &[&str]) -> (ExitStatus, String) {
    let mut command = command(&std::env::temp_dir());
    command.arg("cluster").args(arguments);
    command.arg("--data-dir").arg(server.data_dir());
    command.envs(member.variables.iter().cloned());
    run_to_end(&mut command, COMMAND_WITHIN)
}

/// The same for the cluster of the world.
fn cluster(world: &World, server: &Server, arguments: &[&str]) -> (ExitStatus, String) {
    cluster_at(&member(world, &world.url()), server, arguments)
}

#[track_caller]
fn assert_refused((status, said): (ExitStatus, String), why: &str) {
    assert!(
        !status.success() && said.contains(why),
        "`{why}` is expected: {status}, {said}"
    );
}

/// The shards, their roots and who has an account where.
fn directory(world: &World) -> String {
    world.sql("SELECT id, root IS NULL FROM shard ORDER BY id")
        + &world.sql("SELECT email, shard FROM directory ORDER BY email")
}

fn with_s3() -> Plan {
    Plan {
        has_s3: true,
        ..Plan::default()
    }
}

#[test]
fn a_server_moves_into_a_running_cluster_and_back() {
    in_own_world(&with_s3(), |world| {
        let may_arrive = Arc::new(AtomicBool::new(false));
        let may = Arc::clone(&may_arrive);
        let receiver =
            Receiver::answering(move |_, _| status(if may.load(Ordering::SeqCst) { 200 } else { 503 }));
        let mut server = server();
        let house = House::build(&server.client, &receiver);
        // It is owed from now on.
        let owed = receiver.wait(HOOK, 1);
        assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");

        let (done, said) = cluster(world, &server, &["import"]);
        assert!(done.success(), "{said}");
        let shard = world.sql(&format!(
            "SELECT shard FROM directory WHERE email = '{}'",
            house.account.email
        ));
        assert!(
            said.contains(&format!("is shard {shard} of the cluster")),
            "{said}"
        );
        let mut moved = command(&std::env::temp_dir());
        moved
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(server.data_dir());
        assert_refused(run_to_end(&mut moved, COMMAND_WITHIN), "MOVED");

        for node in &world.nodes {
            until_within(TAKEN_WITHIN, "a node serves the imported account", || {
                let due = node.server.client.get("/api/evaluations/due").key(&house.keys[1]);
                due.try_send().ok().filter(|answer| answer.status == 200)
            });
            house.assert_served(&node.server.client, POINTS);
        }
        for (written, node) in (1..).zip(&world.nodes) {
            house.write(&node.server.client, 1);
            house.assert_served(&node.server.client, POINTS + written);
        }
        may_arrive.store(true, Ordering::SeqCst);
        let ids = |received: &[crate::receiver::Received]| -> Vec<Option<String>> {
            let ids = received
                .iter()
                .map(|one| one.header("x-webhook-id").map(str::to_owned));
            ids.collect()
        };
        let received = receiver.wait(HOOK, owed.len() + 1);
        assert_eq!(
            ids(&received)[0],
            ids(&received)[owed.len()],
            "the owed delivery is made under its id"
        );

        for node in &mut world.nodes {
            assert!(node.server.stop().success(), "contract 9: SIGTERM: exit 0");
        }
        let mut back = Server::stopped(alone());
        let (done, said) = cluster(world, &back, &["export", "--shard", &shard]);
        assert!(done.success(), "{said}");
        back.launch();
        house.assert_served(&back.client, POINTS + NODES);
        house.write(&back.client, 1);
        house.assert_served(&back.client, POINTS + NODES + 1);
    });
}

/// Regression: the last owner of a shard was taken to be alive for ever, and no node was left to find out.
#[test]
fn a_shard_is_exported_after_all_nodes_were_killed() {
    in_own_world(&with_s3(), |world| {
        let receiver = Receiver::answering(|_, _| status(200));
        let house = House::build(&world.nodes[0].server.client, &receiver);
        let shard = world.sql(&format!(
            "SELECT shard FROM directory WHERE email = '{}'",
            house.account.email
        ));
        let back = |world: &World| {
            let back = Server::stopped(alone());
            let outcome = cluster(world, &back, &["export", "--shard", &shard]);
            (back, outcome)
        };
        assert_refused(back(world).1, "stop all nodes before");
        for node in &mut world.nodes {
            node.server.kill();
        }
        let (mut back, (done, said)) = back(world);
        assert!(done.success(), "{said}");
        back.launch();
        house.assert_served(&back.client, POINTS);
        assert!(back.stop().success(), "contract 9: SIGTERM: exit 0");

        // Its keys and tokens name a shard of the first cluster, which is another organization's place here.
        world.sql("CREATE DATABASE another");
        let primary = &world.databases[world.primary()];
        let other = member(world, &primary.url("another", primary.port));
        init(&primary.url("another", primary.port), SHARDS);
        let place = (shard.parse::<u16>().unwrap() + 1) % SHARDS;
        let (done, said) = cluster_at(&other, &back, &["import", "--shard", &place.to_string()]);
        assert!(done.success(), "{said}");
        let node = Server::start_with(other.set("cluster.listen", "127.0.0.1:0"));
        until_within(TAKEN_WITHIN, "the node serves the imported account", || {
            let due = node.client.get("/api/evaluations/due").key(&house.keys[1]);
            due.try_send().ok().filter(|answer| answer.status == 200)
        });
        house.assert_served(&node.client, POINTS);
    });
}

#[test]
fn an_import_that_is_refused_changes_nothing() {
    in_own_world(&with_s3(), |world| {
        let receiver = Receiver::answering(|_, _| status(200));
        let mut server = server();
        let house = House::build(&server.client, &receiver);
        let email = &house.account.email;
        let body =
            json!({"email": email, "password": PASSWORD, "name": "Ada", "organizationName": "Another"});
        let signed_up = world.nodes[0]
            .server
            .client
            .post("/api/auth/signup")
            .json(&body)
            .send();
        let token = text(&signed_up.expect(201, "contract 2: sign-up"), "/token");
        let before = directory(world);

        let in_use = cluster(world, &server, &["import"]);
        assert_refused(in_use, "in use");
        assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
        assert_refused(cluster(world, &server, &["import"]), email);
        let taken = world.sql(&format!("SELECT shard FROM directory WHERE email = '{email}'"));
        let into_taken = cluster(world, &server, &["import", "--shard", &taken]);
        assert_refused(into_taken, &format!("shard {taken} has 1 accounts"));

        assert_eq!(directory(world), before, "the cluster is as it was");
        let me = world.nodes[1].server.client.get("/api/auth/me").bearer(&token);
        me.send().expect(200, "the account of the cluster is served");
        server.launch();
        house.assert_served(&server.client, POINTS);
    });
}
