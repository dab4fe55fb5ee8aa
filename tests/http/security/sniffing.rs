//! Content sniffing is forbidden: a stored name or text must not be interpreted as a page.

use serde_json::json;

use crate::scene;
use crate::support::client::Answer;

#[test]
fn every_answer_forbids_sniffing() {
    let (server, account, bucket) = scene::bucket();
    let check = |answer: Answer, what: &str| {
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{what}: {answer}"
        );
    };
    for path in [
        "/",
        "/health",
        "/ready",
        "/metrics",
        "/api/docs",
        "/no/such/route",
        "/api/buckets",
    ] {
        for accepted in ["*/*", "text/html"] {
            check(server.client.get(path).header("Accept", accepted).send(), path);
        }
    }
    check(server.client.delete("/health").send(), "405");
    check(server.client.post("/api/auth/login").body("{").send(), "400");
    let path = format!("/api/buckets/{}", bucket.id);
    check(server.client.get(&path).key(&account.admin).send(), "200");
    let large = json!({"name": "x".repeat(2_000_000)}).to_string();
    check(
        server
            .client
            .post("/api/buckets")
            .key(&account.admin)
            .body(large)
            .send(),
        "413",
    );
}
