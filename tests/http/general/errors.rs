//! Error bodies of all routes; `X-Request-Id`; bodies that are not JSON.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::routes::{Ids, ROUTES};
use crate::scene::{self, UNKNOWN_ID};

#[test]
fn an_unknown_route_is_404_with_or_without_credentials() {
    let (_server, account, _) = scene::bucket();
    let unknown = [
        ("GET", "/nope"),
        ("GET", "/api"),
        ("GET", "/api/"),
        ("GET", "/api/nope"),
        ("POST", "/api/nope"),
        ("DELETE", "/api/data/batch/nope"),
        ("GET", "/api/buckets/0123456789abcdef01234567/nope"),
        ("PATCH", "/api/organization/keys/0123456789abcdef01234567/nope"),
        ("GET", "/api/../etc/passwd"),
        ("GET", "/API/buckets"),
    ];
    for (method, path) in unknown {
        let why = format!("contract 1: an unknown route is 404 ({method} {path})");
        account.client.request(method, path).send().refused(404, &why);
        account
            .client
            .request(method, path)
            .key(&account.admin)
            .send()
            .refused(404, &why);
    }
}

#[test]
fn a_wrong_method_is_405_and_lists_the_allowed_ones() {
    let (_server, account, _) = scene::bucket();
    let one = format!("/api/buckets/{UNKNOWN_ID}");
    let table: &[(&str, String, &[&str])] = &[
        ("PUT", "/api/buckets".into(), &["GET", "POST"]),
        ("PUT", one.clone(), &["GET", "PATCH", "DELETE"]),
        ("PATCH", format!("{one}/keys"), &["GET", "POST"]),
        ("GET", format!("{one}/keys/{UNKNOWN_ID}"), &["DELETE"]),
        ("DELETE", format!("{one}/sources"), &["GET", "POST"]),
        (
            "POST",
            format!("{one}/sources/{UNKNOWN_ID}"),
            &["GET", "PATCH", "DELETE"],
        ),
        ("GET", "/api/data".into(), &["POST"]),
        ("DELETE", "/api/data/batch".into(), &["POST"]),
        ("GET", "/api/data/query".into(), &["POST"]),
        ("GET", "/api/auth/signup".into(), &["POST"]),
        ("GET", "/api/auth/login".into(), &["POST"]),
        ("POST", "/api/auth/me".into(), &["GET"]),
        ("GET", "/api/auth/password".into(), &["POST"]),
        ("POST", "/api/organization".into(), &["GET", "PATCH"]),
        ("PUT", "/api/organization/keys".into(), &["GET", "POST"]),
        ("GET", format!("/api/organization/keys/{UNKNOWN_ID}"), &["DELETE"]),
        ("DELETE", "/api/alerts".into(), &["POST"]),
        (
            "PUT",
            format!("/api/alerts/{UNKNOWN_ID}"),
            &["GET", "PATCH", "DELETE"],
        ),
        ("POST", format!("/api/alerts/{UNKNOWN_ID}/history"), &["GET"]),
        ("GET", "/api/alerts/backtest".into(), &["POST"]),
        ("DELETE", format!("/api/alerts/{UNKNOWN_ID}/backtest"), &["POST"]),
        ("GET", "/api/alerts/backtest/verdicts".into(), &["POST"]),
        ("POST", format!("{one}/alerts"), &["GET"]),
        ("POST", "/api/evaluations/due".into(), &["GET"]),
        ("GET", format!("/api/evaluations/{UNKNOWN_ID}/verdict"), &["POST"]),
        ("PUT", "/api/webhooks".into(), &["GET", "POST"]),
        (
            "POST",
            format!("/api/webhooks/{UNKNOWN_ID}"),
            &["GET", "PATCH", "DELETE"],
        ),
        ("GET", format!("/api/webhooks/{UNKNOWN_ID}/test"), &["POST"]),
        ("POST", "/health".into(), &["GET"]),
        ("POST", "/ready".into(), &["GET"]),
        ("BREW", "/api/buckets".into(), &["GET", "POST"]),
    ];
    for (method, path, allowed) in table {
        for key in [None, Some(&account.admin)] {
            let mut request = account.client.request(method, path);
            if let Some(key) = key {
                request = request.key(key);
            }
            let answer = request.send();
            answer.refused(
                405,
                "contract 1: a wrong method is 405, before the credentials are looked at",
            );
            let allow = answer
                .header("allow")
                .unwrap_or_else(|| panic!("contract 1: 405 comes with `Allow`: {answer}"));
            let allow: HashSet<&str> = allow.split(',').map(str::trim).collect();
            for must in *allowed {
                assert!(
                    allow.contains(must),
                    "contract 1: `Allow` of {path} names {must}, not only {allow:?}"
                );
            }
            assert!(
                !allow.contains(method),
                "contract 1: `Allow` of {path} must not name {method} ({allow:?})"
            );
        }
    }
}

#[test]
fn malformed_json_is_400_on_every_route_that_takes_a_body() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let ids = Ids {
        bucket: bucket.id.clone(),
        source,
        ..Ids::all(UNKNOWN_ID)
    };
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"{",
        b"}",
        b"[]",
        b"null",
        b"42",
        b"\"text\"",
        b"{\"name\":}",
        b"{\"name\":1,}",
        b"{'name':1}",
        b"{\"name\":\"x\"} {}",
        b"{\"name\":\"x\"",
        b"{\"name\":\"x}",
        b"{\"name\":\"\xff\"}",
        b"\xef\xbb\xbf\xbf{}",
        b"{\"name\":tru}",
        b"{\"name\":\"\\x\"}",
        b"{name:1}",
    ];
    for route in ROUTES.iter().filter(|route| route.body.is_some()) {
        let path = route.path(&ids);
        for body in bodies {
            let answer = account
                .client
                .request(route.method, &path)
                .bearer(&account.token)
                .body(*body)
                .send();
            let shown = String::from_utf8_lossy(body);
            answer.refused(
                400,
                &format!(
                    "contract 1: malformed JSON is 400 ({} {path} `{shown}`)",
                    route.method
                ),
            );
        }
    }
    for path in ["/api/auth/signup", "/api/auth/login"] {
        for body in bodies {
            let answer = account.client.post(path).body(*body).send();
            let shown = String::from_utf8_lossy(body);
            answer.refused(
                400,
                &format!("contract 1: malformed JSON is 400 (POST {path} `{shown}`)"),
            );
        }
    }
}

#[test]
fn every_response_has_a_unique_request_id() {
    let (_server, account, bucket) = scene::bucket();
    let mut seen = HashSet::new();
    let answers = [
        account.client.get("/health").send(),
        account.client.get("/api/nope").send(),
        account.client.request("PUT", "/api/buckets").send(),
        account.client.get("/api/buckets").send(),
        account.client.get("/api/buckets").key(&account.admin).send(),
        account
            .client
            .get("/api/buckets?limit=x")
            .key(&account.admin)
            .send(),
        bucket.call("POST", "/sources", &json!({})),
        bucket.call("GET", "", &Value::Null),
        bucket.post_query(&json!({})),
        bucket.post_query(&json!({})),
    ];
    for answer in answers {
        let id = answer.header("x-request-id").unwrap_or_default().to_owned();
        assert!(
            !id.is_empty(),
            "contract 1: every response has X-Request-Id: {answer}"
        );
        assert!(
            seen.insert(id),
            "contract 1: X-Request-Id tells requests apart: {answer}"
        );
    }
}
