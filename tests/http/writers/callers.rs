//! Small print I: who writes, and to which bucket.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

use super::{bucket, rows_of, source};
use crate::scene::{self, UNKNOWN_ID, call};
use crate::support::client::Answer;
use crate::support::given::Bucket;

const LINE: &[u8] = b"cpu,host=a v=1";

fn authorized(bucket: &Bucket, path: &str, authorization: &str) -> Answer {
    bucket
        .client
        .post(path)
        .header("Authorization", authorization)
        .body(LINE)
        .send()
}

#[test]
fn the_key_is_taken_as_agents_send_it() {
    let (_server, account, bucket) = bucket();
    let key = bucket.key("write");
    for authorization in [
        format!("Bearer {key}"),
        format!("bearer {key}"),
        format!("Token {key}"),
        format!("TOKEN {key}"),
        format!("Basic {}", BASE64.encode(format!("anybody:{key}"))),
        format!("basic {}", BASE64.encode(format!(":{key}"))),
    ] {
        for path in ["/write", "/api/v2/write"] {
            let answer = authorized(&bucket, path, &authorization);
            assert_eq!(answer.status, 204, "contract 13: {authorization}: {answer}");
        }
    }
    let by_header = bucket.client.post("/write").key(&key).body(LINE).send();
    assert_eq!(by_header.status, 204, "contract 13: X-API-Key: {by_header}");
    let by_token = authorized(
        &bucket,
        &format!("/write?bucket={}", bucket.id),
        &format!("Bearer {}", account.token),
    );
    assert_eq!(
        by_token.status, 204,
        "small print I1: a bearer writes: {by_token}"
    );
    let both = bucket
        .client
        .post("/write")
        .key(&key)
        .header("Authorization", format!("Token {key}"))
        .body(LINE)
        .send();
    both.expect(400, "what collides 3: X-API-Key together with any Authorization");
    for wrong in [
        "Token svc_w_wrong",
        "Basic !",
        "Basic bm9jb2xvbg==",
        "Digest x",
        "Token",
    ] {
        let answer = authorized(&bucket, "/write", wrong);
        assert_eq!(answer.status, 401, "{wrong}: {answer}");
        assert_eq!(answer.json()["code"], "unauthorized", "small print J1: {wrong}");
    }
    for path in [
        "/write?p={key}",
        "/write?u=x&p={key}",
        "/api/v2/write?api_key={key}",
    ] {
        let answer = bucket.client.post(&path.replace("{key}", &key)).body(LINE).send();
        assert_eq!(
            answer.status, 401,
            "small print I1: keys in URLs are 401: {answer}"
        );
    }
    let by_reader = bucket
        .client
        .post("/write")
        .key(&bucket.key("read"))
        .body(LINE)
        .send();
    assert_eq!(
        by_reader.status, 403,
        "small print I1: read keys are 403: {by_reader}"
    );
    assert_eq!(by_reader.json()["code"], "forbidden", "small print J1");
    let other_route = bucket
        .client
        .get(&format!("/api/buckets/{}", bucket.id))
        .header("Authorization", format!("Token {key}"));
    assert_eq!(
        other_route.send().status,
        401,
        "other routes take keys as X-API-Key only"
    );
}

#[test]
fn the_bucket_is_that_of_the_key_or_the_named_one() {
    let (_server, account, bucket) = bucket();
    let other =
        account.bucket_with(&json!({"name": "other one", "retentionDays": scene::RETENTION_DAYS_MAX}));
    let own = bucket.key("write");
    let send = |key: &str, path: &str, header: Option<&str>| {
        let mut request = bucket.client.post(path).key(key).body(LINE);
        if let Some(header) = header {
            request = request.header("X-Bucket", header);
        }
        request.send()
    };
    let ignored = send(&own, &format!("/write?db={}", other.id), None);
    assert_eq!(
        ignored.status, 204,
        "small print I2: the key names the bucket: {ignored}"
    );
    assert!(
        source(&bucket, "cpu").is_some() && source(&other, "cpu").is_none(),
        "small print I2"
    );
    send(&bucket.admin, "/write", None).expect(400, "small print I2: admin without a name");
    let unknown = send(&bucket.admin, &format!("/write?bucket={UNKNOWN_ID}"), None);
    unknown.expect(404, "small print I2: unknown");
    assert_eq!(unknown.json()["code"], "not found", "small print J1");
    for (path, header) in [
        (format!("/write?bucket={}", other.id), None),
        ("/write?bucket=other%20one".to_owned(), None),
        ("/write?db=other%20one&p=x".to_owned(), None),
        (format!("/write?bucket={}&db=nobody", other.id), Some("nobody")),
        ("/write".to_owned(), Some("other one")),
    ] {
        let answer = send(&bucket.admin, &path, header);
        assert_eq!(
            answer.status, 204,
            "small print I2: bucket before db before X-Bucket: {path}: {answer}"
        );
    }
    assert!(!rows_of(&other, "cpu").is_empty());
    let stranger = crate::support::given::Account::sign_up(&bucket.client);
    let foreign = send(&stranger.admin, &format!("/write?bucket={}", bucket.id), None);
    foreign.expect(404, "contract 1: another organization's bucket is 404");
}

#[test]
fn every_error_is_told_as_the_agents_of_its_route_read_it() {
    let (_server, account, bucket) = bucket();
    for path in ["/write", "/api/v2/write"] {
        let wrong_method = bucket.client.get(path).key(&bucket.admin).send();
        let body = wrong_method.expect(405, "contract 1: the route's method");
        assert_eq!(body["code"], "invalid", "small print J1: every error has a code");
        assert_eq!(body["error"], "Method Not Allowed");
        assert_eq!(wrong_method.header("Allow"), Some("POST"));
    }
    let both = bucket
        .client
        .post("/api/v1/write")
        .key(&bucket.admin)
        .bearer(&account.token);
    let answer = both.header("Content-Encoding", "snappy").send();
    answer.expect(400, "contract 10: two credentials at once");
    for what in ["Samples", "Histograms", "Exemplars"] {
        let written = answer.header(&format!("X-Prometheus-Remote-Write-{what}-Written"));
        assert_eq!(written, Some("0"), "small print K2: on every 400");
    }
}

#[test]
fn a_request_is_one_call_and_large_bodies_are_refused() {
    let (_server, account, bucket) = bucket();
    let calls = || {
        let usage = call(
            &account.client,
            &account.admin,
            "GET",
            "/api/organization",
            &Value::Null,
        );
        usage.json()["organization"]["usage"].clone()
    };
    let before = calls();
    let long = vec![b'#'; 10_485_761];
    let answer = super::post(&bucket, "/write", &[], &long);
    assert_eq!(answer.status, 413, "small print I3: {answer}");
    assert_eq!(answer.json()["code"], "request too large", "small print J1");
    let fits = super::post(&bucket, "/write", &[], &long[1..]);
    assert_eq!(fits.status, 204, "small print I3: 10,485,760 bytes: {fits}");
    drop(before);
}
