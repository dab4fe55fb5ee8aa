//! List parameters and pagination, on every list.

use serde_json::{Value, json};

use crate::scene::{self, array, column};
use crate::support::client::Client;
use crate::support::given::text;
use crate::support::process::OPERATOR_TOKEN;

/// One list: its path, and the member of the answer that contains it.
struct List {
    client: Client,
    credential: (&'static str, String),
    path: String,
    member: &'static str,
}

impl List {
    #[track_caller]
    fn get(&self, parameters: &str) -> crate::support::client::Answer {
        let path = format!("{}{parameters}", self.path);
        self.client
            .get(&path)
            .header(self.credential.0, self.credential.1.as_str())
            .send()
    }

    /// The ids on this page, and its `pagination`.
    #[track_caller]
    fn page(&self, parameters: &str) -> (Vec<Value>, Value) {
        let sentence = format!("spec: pagination of {}{parameters}", self.path);
        let body = self.get(parameters).expect(200, &sentence);
        (
            column(&array(&body, &format!("/{}", self.member)), "/_id"),
            body["pagination"].clone(),
        )
    }
}

/// Every list of the chapters tested here, with at least seven entries each.
fn lists() -> (crate::support::process::Server, Vec<List>) {
    let (server, account, bucket) = scene::bucket();
    for nth in 0..7 {
        account.bucket(&format!("bucket {nth}"));
        bucket.source(&format!("source {nth}"), &["level"]);
        bucket.key(if nth % 2 == 0 { "read" } else { "write" });
        let body = json!({"name": format!("key {nth}"), "type": "integration"});
        account
            .client
            .post("/api/organization/keys")
            .bearer(&account.token)
            .json(&body)
            .send()
            .expect(201, "a key");
        let body =
            json!({"email": format!("list{nth}@example.com"), "password": "a long password", "name": "Ada"});
        account
            .client
            .post("/api/auth/signup")
            .json(&body)
            .send()
            .expect(201, "an organization");
    }
    let source = bucket.source("watched", &["level"]);
    let hook =
        json!({"url": "https://hooks.invalid/tides", "events": ["bucket.updated"], "status": "paused"});
    let tests = format!("/api/webhooks/{}", text(&account.webhook(&hook), "/_id"));
    for nth in 0..7 {
        bucket.evaluated_rule(&format!("rule {nth}"), &source);
        account.webhook(&hook);
        scene::call(
            &account.client,
            &account.admin,
            "POST",
            &format!("{tests}/test"),
            &Value::Null,
        )
        .expect(202, "a test is queued");
    }
    let of = |header: &'static str, value: &str, path: String, member| List {
        client: account.client.clone(),
        credential: (header, value.to_owned()),
        path,
        member,
    };
    let lists = vec![
        of("X-API-Key", &account.admin, "/api/buckets".into(), "buckets"),
        of(
            "X-API-Key",
            &account.admin,
            format!("/api/buckets/{}/keys", bucket.id),
            "apiKeys",
        ),
        of(
            "X-API-Key",
            &account.admin,
            format!("/api/buckets/{}/sources", bucket.id),
            "dataSources",
        ),
        of(
            "X-API-Key",
            &account.admin,
            "/api/organization/keys".into(),
            "apiKeys",
        ),
        of(
            "X-API-Key",
            &account.admin,
            format!("/api/buckets/{}/alerts", bucket.id),
            "alertRules",
        ),
        of("X-API-Key", &account.admin, "/api/webhooks".into(), "webhooks"),
        of(
            "X-API-Key",
            &account.admin,
            format!("{tests}/deliveries"),
            "deliveries",
        ),
        of(
            "Authorization",
            &format!("Bearer {OPERATOR_TOKEN}"),
            "/api/operator/organizations".into(),
            "organizations",
        ),
    ];
    (server, lists)
}

#[test]
fn pages_concatenate_to_the_whole_list_in_order() {
    let (_server, lists) = lists();
    for list in lists {
        let (all, pagination) = list.page("");
        let total = all.len();
        assert!(
            total >= 7,
            "the scene has at least seven entries in {}",
            list.path
        );
        let whole = json!({"limit": 100, "offset": 0, "total": total, "hasMore": false});
        assert_eq!(
            pagination, whole,
            "spec: `pagination` of {} without parameters",
            list.path
        );
        for limit in [1, 2, 3, total - 1, total, total + 1] {
            let mut found = Vec::new();
            for page in 0.. {
                let offset = page * limit;
                let (ids, pagination) = list.page(&format!("?limit={limit}&offset={offset}"));
                let has_more = offset + limit < total;
                let expected = json!({"limit": limit, "offset": offset, "total": total, "hasMore": has_more});
                assert_eq!(pagination, expected, "spec: `pagination` of {}", list.path);
                found.extend(ids);
                if !has_more {
                    break;
                }
            }
            assert_eq!(
                found, all,
                "contract 1: pages of {limit} put together are the list {}",
                list.path
            );
        }
        let (beyond, pagination) = list.page(&format!("?offset={}", total + 5));
        assert!(
            beyond.is_empty(),
            "an offset beyond the end of {} is an empty page",
            list.path
        );
        assert_eq!(
            pagination["hasMore"], false,
            "nothing is behind the end of {}",
            list.path
        );
        assert_eq!(pagination["total"], total, "`total` does not depend on the page");
    }
}

#[test]
fn parameters_out_of_range_or_not_numbers_are_400() {
    let (_server, lists) = lists();
    for list in lists {
        for wrong in [
            "0",
            "1001",
            "-1",
            "1.5",
            "abc",
            "",
            "1e2",
            "%31%30x",
            "99999999999999999999",
        ] {
            let sentence = format!("contract 1: `limit={wrong}` of {} is 400", list.path);
            scene::assert_faults(&list.get(&format!("?limit={wrong}")), &["limit"], &sentence);
        }
        for wrong in ["-1", "1.5", "abc", "", "NaN"] {
            let sentence = format!("contract 1: `offset={wrong}` of {} is 400", list.path);
            scene::assert_faults(&list.get(&format!("?offset={wrong}")), &["offset"], &sentence);
        }
        scene::assert_faults(
            &list.get("?limit=x&offset=y"),
            &["limit", "offset"],
            "contract 1: all faults together",
        );
        list.get("?limit=1000").expect(200, "contract 1: limit 1..1000");
    }
}

#[test]
fn lists_are_ordered_by_creation_oldest_first() {
    let (_server, account, bucket) = scene::bucket();
    let names = ["m", "c", "z", "a", "q"];
    for name in names {
        account.bucket(name);
        let source = bucket.source(name, &["level"]);
        bucket
            .call("POST", "/keys", &json!({"name": name, "type": "read"}))
            .expect(201, "a key");
        bucket.evaluated_rule(name, &source);
        account
            .webhook(&json!({"url": format!("https://hooks.invalid/{name}"), "events": ["bucket.updated"]}));
    }
    let listed = |path: String, member: &str| {
        let answer =
            scene::call(&account.client, &account.admin, "GET", &path, &Value::Null).expect(200, "a list");
        let shown_name = |entry: &Value| match entry["url"].as_str() {
            Some(url) => json!(url.trim_start_matches("https://hooks.invalid/")),
            None => entry["name"].clone(),
        };
        array(&answer, member).iter().map(shown_name).collect::<Vec<_>>()
    };
    let sentence = "contract 1: lists are ordered by creation, oldest first";
    assert_eq!(
        listed("/api/buckets".into(), "/buckets")[1..],
        names,
        "{sentence} (buckets)"
    );
    assert_eq!(
        listed(format!("/api/buckets/{}/sources", bucket.id), "/dataSources"),
        names,
        "{sentence} (sources)"
    );
    assert_eq!(
        listed(format!("/api/buckets/{}/keys", bucket.id), "/apiKeys"),
        names,
        "{sentence} (keys)"
    );
    assert_eq!(
        listed(format!("/api/buckets/{}/alerts", bucket.id), "/alertRules"),
        names,
        "{sentence} (rules)"
    );
    assert_eq!(
        listed("/api/webhooks".into(), "/webhooks"),
        names,
        "{sentence} (webhooks)"
    );
}
