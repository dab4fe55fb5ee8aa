//! `/api/operator/cluster` of a server on one machine.

use serde_json::{Value, json};

use crate::scene;
use crate::support::client::Client;
use crate::support::process::{OPERATOR_TOKEN, Server, Setup};
use crate::support::waiting::until;

const PATH: &str = "/api/operator/cluster";

fn cluster(client: &Client) -> Value {
    let answer = client.get(PATH).bearer(OPERATOR_TOKEN).send();
    answer.expect(200, "the operator sees nodes and shards")["cluster"].take()
}

fn number(shard: &Value, member: &str) -> u64 {
    let found = shard[member].as_u64();
    found.unwrap_or_else(|| panic!("{member} is a number: {shard}"))
}

#[test]
fn one_machine_is_a_node_with_one_shard() {
    let server = Server::start_with(Setup::unlimited());
    let seen = cluster(&server.client);
    let node = json!({
        "id": null, "address": null, "shards": 1, "leaseSeconds": null, "state": "member", "isThis": true,
    });
    assert_eq!(seen["nodes"], json!([node]), "what only a cluster has is null");
    for (member, value) in [
        ("clustered", json!(false)),
        ("commitsReplicated", json!(null)),
        ("weakness", json!(null)),
        ("unownedShards", json!(0)),
    ] {
        assert_eq!(seen[member], value, "{member}: {seen}");
    }
    let shards = seen["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 1, "{seen}");
    for (member, value) in [
        ("number", json!(0)),
        ("epoch", json!(null)),
        ("owner", json!(null)),
        ("root", json!(null)),
    ] {
        assert_eq!(shards[0][member], value, "{member}: {seen}");
    }
}

#[test]
fn the_shard_of_one_machine_shows_what_a_start_has_to_replay() {
    let (mut server, _, bucket) = scene::bucket();
    let before = cluster(&server.client)["shards"][0].take();
    bucket
        .call("PATCH", "", &json!({"name": "renamed"}))
        .expect(200, "contract 3: PATCH");
    // The journal acknowledges a record before it notes the size of the log.
    let after = until("the log has grown", || {
        let after = cluster(&server.client)["shards"][0].take();
        let has_grown = |name: &str| number(&after, name) > number(&before, name);
        (has_grown("lastSequence") && has_grown("tailBytes")).then_some(after)
    });
    server.kill();
    server.launch();
    let killed = cluster(&server.client)["shards"][0].take();
    // Counters are logged beside.
    assert!(
        number(&killed, "lastSequence") >= number(&after, "lastSequence"),
        "{after} {killed}"
    );
    assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
    server.launch();
    let stopped = cluster(&server.client)["shards"][0].take();
    assert!(
        number(&stopped, "coveredSequence") >= number(&after, "lastSequence"),
        "{after} {stopped}"
    );
    assert!(
        number(&stopped, "lastSequence") >= number(&stopped, "coveredSequence"),
        "{stopped}"
    );
}
