//! Ids: malformed ones are always 400, well-formed unknown ones are 404.

use serde_json::{Value, json};

use crate::routes::{Ids, ROUTES, Role, Route};
use crate::scene::{self, UNKNOWN_ID, assert_faults, call};
use crate::support::client::Request;
use crate::support::given::Account;

const MALFORMED: &[&str] = &[
    "ABCDEFABCDEFABCDEFABCDEF",
    "0123456789abcdef0123456",
    "0123456789abcdef012345678",
    "0123456789abcdef0123456g",
    "not-an-id",
    "0123456789abcdef0123456%20",
    "0123456789abcdef01234%C3%A9",
];

/// A request with the admin key, or with the bearer token where no key is taken.
fn request<'a>(account: &'a Account, route: &Route, ids: &Ids) -> Request<'a> {
    let request = account.client.request(route.method, &route.path(ids));
    match route.roles.contains(&Role::Admin) {
        true => request.key(&account.admin),
        false => request.bearer(&account.token),
    }
}

#[test]
fn a_malformed_id_in_a_path_is_400_and_an_unknown_one_404() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for route in ROUTES.iter().filter(|route| route.path.contains('{')) {
        for malformed in MALFORMED {
            let mut ids = Ids {
                bucket: bucket.id.clone(),
                ..Ids::all(malformed)
            };
            if !route.path.contains("{source}") && !route.path.contains("{key}") {
                ids.bucket = (*malformed).to_owned();
            }
            let body = route.body(&Ids {
                source: source.clone(),
                ..ids.clone()
            });
            let mut request = request(&account, route, &ids);
            if let Some(body) = body {
                request = request.body(body);
            }
            let why = format!(
                "contract 1: a malformed id is 400 ({} {}, `{malformed}`)",
                route.method, route.path
            );
            request.send().refused(400, &why);
        }
        let ids = Ids::all(UNKNOWN_ID);
        let mut request = request(&account, route, &ids);
        if let Some(body) = route.body(&ids) {
            request = request.body(body);
        }
        let why = format!(
            "contract 1: an unknown id is 404 ({} {})",
            route.method, route.path
        );
        request.send().refused(404, &why);
    }
}

#[test]
fn a_malformed_id_in_a_body_is_400_at_its_path() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let (client, key) = (&bucket.client, &bucket.admin);
    let malformed = [
        json!("ABCDEFABCDEFABCDEFABCDEF"),
        json!("0123456789abcdef0123456"),
        json!("0123456789abcdef012345678"),
        json!("0123456789abcdef0123456g"),
        json!(""),
        json!(12),
        json!({"$ne": "0123456789abcdef01234567"}),
    ];
    for id in malformed {
        let why = format!("contract 1: a malformed id ({id}) is 400");
        let single = json!({"bucketId": id, "dataSourceId": source, "values": {"level": 1}});
        assert_faults(
            &call(client, key, "POST", "/api/data", &single),
            &["bucketId"],
            &why,
        );
        assert_faults(
            &bucket.single(&json!({"dataSourceId": id, "values": {"level": 1}})),
            &["dataSourceId"],
            &why,
        );
        let batch = json!({"bucketId": id, "dataPoints": [{"dataSourceId": source, "values": {"level": 1}}]});
        assert_faults(
            &call(client, key, "POST", "/api/data/batch", &batch),
            &["bucketId"],
            &why,
        );
        assert_faults(
            &call(client, key, "POST", "/api/data/query", &json!({"bucketId": id})),
            &["bucketId"],
            &why,
        );
        let filters = json!({"filters": {"dataSourceIds": [source, id]}});
        assert_faults(&bucket.post_query(&filters), &["filters/dataSourceIds/1"], &why);
        let entries = [
            json!({"dataSourceId": id, "values": {"level": 1}}),
            json!({"dataSourceId": source, "values": {"level": 1}}),
        ];
        let answer = bucket
            .batch(&entries)
            .expect(207, &format!("contract 4: an entry error, {why}"));
        assert_eq!(
            answer["errors"][0]["index"], 0,
            "contract 4: the entry with the malformed id is named"
        );
    }
}

#[test]
fn an_unknown_id_in_a_body_is_404() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let (client, key) = (&bucket.client, &bucket.admin);
    let refused = |path: &str, body: Value| {
        call(client, key, "POST", path, &body).refused(
            404,
            &format!("contract 1: an unknown id is 404 (POST {path} {body})"),
        );
    };
    refused(
        "/api/data",
        json!({"bucketId": UNKNOWN_ID, "dataSourceId": source, "values": {"level": 1}}),
    );
    refused(
        "/api/data",
        json!({"bucketId": bucket.id, "dataSourceId": UNKNOWN_ID, "values": {"level": 1}}),
    );
    refused(
        "/api/data/batch",
        json!({"bucketId": UNKNOWN_ID, "dataPoints": [{"dataSourceId": source, "values": {"level": 1}}]}),
    );
    refused("/api/data/query", json!({"bucketId": UNKNOWN_ID}));
    refused(
        "/api/data/query",
        json!({"bucketId": bucket.id, "filters": {"dataSourceIds": [source, UNKNOWN_ID]}}),
    );
}

#[test]
fn ids_are_lowercase_hex_and_objects_are_found_only_in_their_parent() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let source = bucket.source("gauge", &["level"]);
    let created = bucket
        .call("POST", "/keys", &json!({"name": "reader", "type": "read"}))
        .json();
    let key = scene::array(&bucket.call("GET", "/keys", &Value::Null).json(), "/apiKeys")[0]["_id"].clone();
    assert_eq!(
        created["apiKey"]["_id"], key,
        "spec: the list shows the created key"
    );
    let point = bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .json();
    for id in [
        &json!(account.organization_id),
        &json!(bucket.id),
        &json!(source),
        &key,
        &point["dataPoint"]["_id"],
    ] {
        let hex = |text: &str| {
            text.len() == 24
                && text
                    .chars()
                    .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
        };
        assert!(
            id.as_str().is_some_and(hex),
            "contract 1: ids are 24 lowercase hex characters, not {id}"
        );
    }
    let key = key.as_str().unwrap();
    let nowhere = "contract 1: an id that names nothing there is 404";
    other
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .refused(404, nowhere);
    other
        .call("PATCH", &format!("/sources/{source}"), &json!({"name": "taken"}))
        .refused(404, nowhere);
    other
        .call("DELETE", &format!("/sources/{source}"), &Value::Null)
        .refused(404, nowhere);
    other
        .call("DELETE", &format!("/keys/{key}"), &Value::Null)
        .refused(404, nowhere);
    let organization_key = format!("/api/organization/keys/{key}");
    call(
        &account.client,
        &account.admin,
        "DELETE",
        &organization_key,
        &Value::Null,
    )
    .refused(404, nowhere);
    other
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .refused(404, nowhere);
    other
        .post_query(&json!({"filters": {"dataSourceIds": [source]}}))
        .refused(404, nowhere);
    bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .expect(200, "the source is still where it was");
}
