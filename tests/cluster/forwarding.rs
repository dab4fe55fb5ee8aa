//! Requests that arrive at a node which does not own the organization's shard.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Answer, Client};
use crate::process::{Server, command, variable, wait_for_exit};
use crate::tenant::Tenant;
use crate::turn::SHARED;
use crate::waiting::until;
use crate::world::{REQUEST_TIMEOUT, World};

/// More than a node has threads that make connections.
const REQUESTS: u64 = 200;

/// Time for an answer or for the end of a process, on two busy cores.
const WITHIN: Duration = Duration::from_secs(20);

/// A bucket of a new organization, and a node that does not own its shard.
pub fn elsewhere(world: &World) -> (Tenant, usize) {
    let tenant = Tenant::sign_up(world, &world.nodes[0].server.client);
    let owner = until("the shard has an owner", || {
        world.owners().get(&tenant.shard).copied()
    });
    let other = (0..world.nodes.len()).find(|node| *node != owner);
    (tenant, other.unwrap())
}

fn client(world: &World, node: usize) -> &Client {
    &world.nodes[node].server.client
}

/// A key that names the shard of another, and was never made: its last character but one is another one.
fn unknown_key(key: &str) -> String {
    let (rest, end) = key.split_at(key.len() - 2);
    let swapped = if end.starts_with('A') { 'B' } else { 'A' };
    format!("{rest}{swapped}{}", &end[1..])
}

/// Sends the head of a request with a body of this length, and none of the body. Returns what is answered.
fn answer_to_head(server: &Server, headers: &str, length: usize) -> String {
    let base = server.client.base();
    let mut connection = TcpStream::connect(base.trim_start_matches("http://")).unwrap();
    connection.set_read_timeout(Some(WITHIN)).unwrap();
    write!(
        connection,
        "POST /api/data/batch HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n"
    )
    .unwrap();
    let mut answer = [0; 4_096];
    let read = connection.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// Regression: a node held a body of 10 MiB for anybody, and passed it on, before its owner refused the caller.
#[test]
fn a_large_body_is_read_for_known_callers_only() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let server = &world.nodes[node].server;
        let admin = &tenant.bucket.admin;
        let tokens = [
            format!("x-api-key: {}\r\n", unknown_key(admin)),
            "authorization: Bearer e30.e30.AAAA\r\n".to_owned(),
            String::new(),
        ];
        for headers in tokens {
            let answer = answer_to_head(server, &headers, 9 << 20);
            assert!(answer.starts_with("HTTP/1.1 401 "), "{headers:?}: {answer}");
        }
        let entries: Vec<Value> = (0..1_000)
            .map(|number| tenant.points(number..number + 1, true, 0)["dataPoints"][0].clone())
            .collect();
        let batch = json!({"bucketId": tenant.bucket.id, "dataPoints": entries});
        let large = client(world, node)
            .post("/api/data/batch")
            .key(admin)
            .json(&batch)
            .send();
        assert_eq!(
            large.expect(201, "any node takes any request")["insertedCount"],
            1_000
        );
        let beyond = vec![b' '; 12 << 20];
        let refused = client(world, node)
            .post("/api/data/batch")
            .key(admin)
            .body(beyond)
            .send();
        refused.expect(413, "contract 10: beyond the limit of a body");
    });
}

/// Requests with single points share a request between the nodes if they arrive together.
#[test]
fn single_points_of_one_moment_are_passed_on_together_and_answered_one_by_one() {
    const CLIENTS: u64 = 24;
    const ROUNDS: u64 = 10;
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let admin = &tenant.bucket.admin;
        let unknown = unknown_key(admin);
        let send = |node: usize, key: &str, number: u64, change: &[(&str, Value)]| {
            let mut point = tenant.points(number..number + 1, false, 0);
            for (member, value) in change {
                point[member] = value.clone();
            }
            client(world, node).post("/api/data").key(key).json(&point).send()
        };
        let no_source = [("dataSourceId", json!("000000000000000000000000"))];
        let no_values = [("values", json!({}))];
        // What each kind of request is answered by the owner itself, without what is of one request only.
        type Case<'a> = (&'a str, &'a [(&'a str, Value)]);
        let cases: [Case<'_>; 4] = [
            (admin, &[]),
            (&unknown, &[]),
            (admin, &no_source),
            (admin, &no_values),
        ];
        let common = |answer: &Answer| {
            let mut body = answer.json();
            let id = body.get_mut("requestId").map(Value::take);
            let header = answer
                .header("x-request-id")
                .expect("each answer has an id")
                .to_owned();
            assert!(id.is_none_or(|id| id == *header), "of another request");
            let stored = body.pointer_mut("/dataPoint").map(Value::take);
            (answer.status, body, stored.is_some())
        };
        let expected = cases.map(|(key, change)| common(&send(owner, key, 0, change)));
        let statuses = expected.each_ref().map(|(status, ..)| *status);
        assert_eq!(statuses, [201, 401, 404, 400]);
        // Counted, and not changed.
        const BUNDLE: &[u8] = b"POST /cluster/bundle ";
        let to_owner = &world.nodes[owner].from_nodes;
        to_owner.change(BUNDLE, BUNDLE);
        let before = to_owner.changed();
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (send, common, cases, expected) = (&send, &common, &cases, &expected);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let kind = (number % cases.len() as u64) as usize;
                        let (key, change) = cases[kind];
                        let answer = send(node, key, 1 + number * ROUNDS + round, change);
                        assert_eq!(common(&answer), expected[kind], "{answer}");
                    }
                });
            }
        });
        let bundles = to_owner.changed() - before;
        let requests = CLIENTS * ROUNDS;
        assert!(
            (1..requests).contains(&bundles),
            "{bundles} bundles of {requests} requests"
        );
        let query = json!({"bucketId": tenant.bucket.id, "downsampling": false, "limit": 1_000});
        let read = client(world, node)
            .post("/api/data/query")
            .key(admin)
            .json(&query)
            .send();
        let read = read.expect(200, "any node takes any request");
        let rows = read["data"].as_array().unwrap().len() as u64;
        assert_eq!(
            rows,
            1 + CLIENTS / cases.len() as u64 * ROUNDS,
            "what was acknowledged, once"
        );
    });
}

/// An export may take longer than other requests, and is streamed on.
#[test]
fn an_export_is_passed_on_by_any_node() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let entries: Vec<Value> = (0..1_000)
            .map(|number| tenant.points(number..number + 1, true, 0)["dataPoints"][0].clone())
            .collect();
        let post = |node: usize, path: &str, body: &Value| {
            let request = client(world, node).post(path).key(&tenant.bucket.admin);
            request.json(body).send()
        };
        let batch = json!({"bucketId": tenant.bucket.id, "dataPoints": entries});
        post(node, "/api/data/batch", &batch).expect(201, "any node takes any request");
        for format in ["csv", "parquet"] {
            let body = json!({"bucketId": tenant.bucket.id, "format": format});
            let [own, other] = [owner, node].map(|node| post(node, "/api/data/export", &body));
            assert_eq!(own.status, 200, "{own}");
            assert_eq!(other.status, 200, "{other}");
            assert_eq!(other.header("content-type"), own.header("content-type"));
            assert!(
                other.header("content-disposition").is_some(),
                "the name of the file"
            );
            assert!(
                other.body == own.body,
                "{format} through another node has other bytes"
            );
        }
        let csv = post(
            node,
            "/api/data/export",
            &json!({"bucketId": tenant.bucket.id, "format": "csv"}),
        );
        assert_eq!(csv.text().lines().count(), 1_001);
    });
}

/// A file has any length, so that it is passed on as it arrives; a refusal arrives before the file has.
#[test]
fn an_import_is_passed_on_by_any_node() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let import = |parameters: &str, key: &str, file: &str| {
            let path = format!(
                "/api/buckets/{}/import?source=file&format=csv&precision=s{parameters}",
                tenant.bucket.id
            );
            let request = client(world, node).post(&path).key(key);
            request.header("Idempotency-Key", "file").bytes(file).send()
        };
        let mut file = "time,a,state\n".to_owned();
        let end_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        for row in 0..400_000 {
            writeln!(file, "{},{row},\"on\"", end_s - row).unwrap();
        }
        let admin = &tenant.bucket.admin;
        for _ in 0..2 {
            let answer = import("", admin, &file).expect(201, "any node takes any file");
            assert_eq!(answer["insertedCount"], 400_000);
        }
        // Longer than what a connection reads behind an answer.
        let refused = import("&dimensions=nope", admin, &file.repeat(4));
        assert_eq!(refused.status, 400, "{refused}");
        assert!(refused.text().contains("nope"), "{refused}");
        let refused = import("", &unknown_key(admin), &file);
        assert_eq!(refused.status, 401, "{refused}");
    });
}

/// Regression: the end of an answer was never read, so each request that was passed on had a connection of its own.
#[test]
fn connections_between_nodes_are_used_again() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let before = world.nodes[owner].from_nodes.accepted();
        let answer = |path: &str| client(world, node).get(path).key(&tenant.bucket.admin).send();
        for _ in 0..REQUESTS {
            let bucket = answer(&format!("/api/buckets/{}", tenant.bucket.id));
            bucket.expect(200, "any node takes any request");
            assert_eq!(answer("/api/buckets/0").status, 400, "errors have bodies, too");
        }
        let made = world.nodes[owner].from_nodes.accepted() - before;
        assert!(
            made < REQUESTS,
            "{made} connections for {} requests",
            2 * REQUESTS
        );
    });
}

/// Regression: a write that was sent to a node which lost its power waited until the request's time was over.
#[test]
fn a_write_is_not_waited_for_when_its_owner_was_replaced() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let write = |number: u64| {
            let request = client(world, node).post("/api/data").key(&tenant.bucket.admin);
            request.json(&tenant.points(number..number + 1, false, 0)).send()
        };
        write(0).expect(201, "any node takes any request");
        world.signal(owner, Signal::STOP);
        let began = Instant::now();
        let answer = write(1);
        let took = began.elapsed();
        world.signal(owner, Signal::CONT);
        world.settle();
        assert_eq!(answer.status, 503, "its fate is not known");
        assert!(took < REQUEST_TIMEOUT, "after {took:?}");
        write(2).expect(201, "the next owner takes writes");
    });
}

/// Regression: a forwarded error named another request in its body and in the owner's log than in its header.
#[test]
fn a_request_has_one_id_on_all_nodes() {
    SHARED.run(|world| {
        let (tenant, node) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let path = format!("/api/buckets/{}", tenant.bucket.id);
        // Counted, and not changed.
        const NAMED: &[u8] = b"x-tidewatch-request-id: ";
        let to_owner = &world.nodes[owner].from_nodes;
        to_owner.change(NAMED, NAMED);
        let before = to_owner.changed();
        let answer = client(world, node).get(&path).key(&tenant.bucket.admin).send();
        answer.expect(200, "any node takes any request");
        assert!(to_owner.changed() > before, "the owner is told the id");
        // In a bundle, too.
        let before = to_owner.changed();
        let point = client(world, node).post("/api/data").key(&tenant.bucket.admin);
        let point = point.json(&tenant.points(0..1, false, 0)).send();
        point.expect(201, "any node takes any request");
        assert!(to_owner.changed() > before, "the owner is told the id");
        // As another node passes it on.
        let inside = Client::new();
        inside.point_at(&format!("http://127.0.0.1:{}", to_owner.port));
        let id = "0123456789abcdef89abcdef";
        let ask = || {
            let request = inside.get(&path).key(&tenant.bucket.admin);
            let request = request.header("x-tidewatch-shard", tenant.shard.to_string());
            request.header("x-tidewatch-request-id", id)
        };
        let passed_on = ask().header("x-tidewatch-secret", "a secret of the tests").send();
        assert_eq!(passed_on.header("x-request-id"), Some(id));
        passed_on.expect(200, "the owner serves it");
        assert_eq!(ask().send().status, 401, "only nodes have the secret");
        // A client cannot choose it.
        let forged = client(world, node).get(&path).key(&tenant.bucket.admin);
        let forged = forged.header("x-tidewatch-request-id", id).send();
        assert_ne!(forged.header("x-request-id"), Some(id));
    });
}

/// Regression: SIGTERM had no effect while a node waited for its database.
#[test]
fn a_node_that_waits_for_its_database_stops() {
    // It takes connections, and says nothing.
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = TempDir::new().unwrap();
    let port = database.local_addr().unwrap().port();
    let mut child = command(root.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(root.path().join("data"))
        .env(
            variable("cluster.log"),
            format!("postgres://tidewatch@127.0.0.1:{port}/tidewatch"),
        )
        .env(
            variable("cluster.objects"),
            format!("file://{}", root.path().display()),
        )
        .env(variable("cluster.listen"), "127.0.0.1:0")
        .env(variable("cluster.secret"), "a secret of the tests")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The node has connected, so that it listens for signals.
    let _connection = database.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = wait_for_exit(&mut child, WITHIN);
    let _ = child.kill();
    assert_eq!(
        status.and_then(|status| status.code()),
        Some(0),
        "contract 9: SIGTERM: exit 0"
    );
}
