//! The order of checks: route, two credentials, 401, the route's 403, shape, named resources, 409.

use serde_json::{Value, json};

use crate::routes::{Ids, ROUTES, Role};
use crate::scene::{self, UNKNOWN_ID, assert_faults, call};

const TOO_LARGE: usize = 11 << 20;

#[test]
fn both_credentials_at_once_are_400_before_anything_else() {
    let (_server, account, bucket) = scene::bucket();
    let ids = Ids {
        bucket: bucket.id.clone(),
        ..Ids::all(UNKNOWN_ID)
    };
    for route in ROUTES {
        for (key, token) in [
            (account.admin.as_str(), account.token.as_str()),
            ("svc_a_wrong", account.token.as_str()),
            (account.admin.as_str(), "wrong"),
            ("", ""),
        ] {
            let mut request = account
                .client
                .request(route.method, &route.path(&ids))
                .key(key)
                .bearer(token);
            if route.body.is_some() {
                request = request.body("{");
            }
            let why = format!(
                "contract 10: both credentials at once are 400 ({} {})",
                route.method, route.path
            );
            request.send().refused(400, &why);
        }
    }
}

#[test]
fn both_credentials_at_once_are_400_where_none_is_needed() {
    let (_server, account, _) = scene::bucket();
    for (method, path) in [
        ("POST", "/api/auth/signup"),
        ("POST", "/api/auth/login"),
        ("GET", "/health"),
        ("GET", "/api/docs"),
        ("GET", "/metrics"),
    ] {
        let request = account.client.request(method, path);
        let answer = request
            .key(&account.admin)
            .bearer(&account.token)
            .body("{")
            .send();
        answer.refused(
            400,
            &format!("contract 10: both credentials at once ({method} {path})"),
        );
    }
}

/// 401 takes precedence over any fault of the body.
#[test]
fn a_missing_credential_is_401_before_the_body_is_checked() {
    let (_server, account, _) = scene::bucket();
    let ids = Ids::all("NOT-AN-ID");
    for route in ROUTES {
        let why = format!(
            "contract 1: 401 comes before 400 and 404 ({} {})",
            route.method, route.path
        );
        let path = route.path(&ids);
        account
            .client
            .request(route.method, &path)
            .send()
            .refused(401, &why);
        if route.body.is_none() {
            continue;
        }
        account
            .client
            .request(route.method, &path)
            .body("{")
            .send()
            .refused(401, &why);
        let encoded = account
            .client
            .request(route.method, &path)
            .header("Content-Encoding", "br")
            .body("{}");
        encoded.send().refused(401, "contract 10: 415 comes after 401");
        let corrupt = account
            .client
            .request(route.method, &path)
            .header("Content-Encoding", "gzip")
            .body("no gzip");
        corrupt
            .send()
            .refused(401, "contract 10: a corrupt body comes after 401");
    }
}

/// The route's 403 takes precedence over faults of the body.
#[test]
fn a_key_of_the_wrong_type_is_403_before_the_body_is_checked() {
    let (_server, account, bucket) = scene::bucket();
    let read = bucket.key("read");
    let ids = Ids::all("NOT-AN-ID");
    for route in ROUTES.iter().filter(|route| !route.roles.contains(&Role::Read)) {
        let path = route.path(&ids);
        let why = format!(
            "contract 1: the route's 403 comes before 400 and 404 ({} {})",
            route.method, route.path
        );
        account
            .client
            .request(route.method, &path)
            .key(&read)
            .send()
            .refused(403, &why);
        if route.body.is_none() {
            continue;
        }
        let request = || account.client.request(route.method, &path).key(&read);
        request().body("{").send().refused(403, &why);
        request()
            .header("Content-Encoding", "br")
            .body("{}")
            .send()
            .refused(403, "contract 10: 415 comes after 403");
        let corrupt = request().header("Content-Encoding", "gzip").body("no gzip");
        corrupt
            .send()
            .refused(403, "contract 10: a corrupt body comes after 403");
    }
}

/// 413 comes after 401 and 403: an oversized body without the permission to send it, compressed to fit the connection.
#[test]
fn size_is_checked_after_the_credential() {
    let (_server, account, bucket) = scene::bucket();
    let read = bucket.key("read");
    let body = super::bodies::gzip(&vec![b' '; TOO_LARGE]);
    for path in ["/api/data", "/api/data/batch", "/api/buckets"] {
        let request = || account.client.post(path).header("Content-Encoding", "gzip");
        request()
            .body(body.clone())
            .send()
            .refused(401, "contract 10: 413 comes after 401");
        request()
            .key("svc_w_wrong")
            .body(body.clone())
            .send()
            .refused(401, "contract 10: 413 comes after 401");
        request()
            .key(&read)
            .body(body.clone())
            .send()
            .refused(403, "contract 10: 413 comes after the route's 403");
        request()
            .key(&account.admin)
            .body(body.clone())
            .send()
            .refused(413, "contract 1: oversize is 413");
    }
}

#[test]
fn shape_is_checked_before_the_named_resources() {
    let (_server, account, bucket) = scene::bucket();
    let (client, key) = (&account.client, &account.admin);
    let write = bucket.key("write");
    let other = account.bucket("other");
    let why = "contract 1: 400 (shape) comes before 404/403 of the named resources";
    let single = json!({"bucketId": UNKNOWN_ID, "dataSourceId": UNKNOWN_ID, "values": {}});
    assert_faults(&call(client, key, "POST", "/api/data", &single), &["values"], why);
    let batch = json!({"bucketId": UNKNOWN_ID, "dataPoints": []});
    assert_faults(
        &call(client, key, "POST", "/api/data/batch", &batch),
        &["dataPoints"],
        why,
    );
    let query = json!({"bucketId": UNKNOWN_ID, "limit": 0});
    assert_faults(
        &call(client, key, "POST", "/api/data/query", &query),
        &["limit"],
        why,
    );
    let path = format!("/api/buckets/{UNKNOWN_ID}");
    assert_faults(
        &call(client, key, "PATCH", &path, &json!({"name": 5})),
        &["name"],
        why,
    );
    assert_faults(
        &call(
            client,
            key,
            "POST",
            &format!("{path}/sources"),
            &json!({"name": "a"}),
        ),
        &["schema"],
        why,
    );
    let keys = call(
        client,
        key,
        "POST",
        &format!("{path}/keys"),
        &json!({"name": "a", "type": "admin"}),
    );
    assert_faults(&keys, &["type"], why);
    let single = json!({"bucketId": other.id, "dataSourceId": UNKNOWN_ID, "values": {}});
    assert_faults(
        &call(client, &write, "POST", "/api/data", &single),
        &["values"],
        why,
    );
    let query = json!({"bucketId": other.id, "sort": "up"});
    assert_faults(
        &call(client, &write, "POST", "/api/data/query", &query),
        &["sort"],
        why,
    );
}

#[test]
fn faults_found_by_the_resource_come_after_its_404_and_403() {
    let (_server, account, bucket) = scene::bucket();
    let client = &account.client;
    let write = bucket.key("write");
    let other = account.bucket("other");
    let source = other.source("gauge", &["level"]);
    let why = "contract 10: faults that only the named resource can tell come after its 404/403";
    let wrong = json!({"nope": "text"});
    bucket
        .single(&json!({"dataSourceId": UNKNOWN_ID, "values": wrong}))
        .refused(404, why);
    let single = json!({"bucketId": other.id, "dataSourceId": source, "values": wrong});
    call(client, &write, "POST", "/api/data", &single).refused(403, why);
    let query = json!({"bucketId": other.id, "filters": {"fields": ["nope"]}});
    call(client, &write, "POST", "/api/data/query", &query).refused(403, why);
    let query = json!({"filters": {"dataSourceIds": [UNKNOWN_ID], "fields": ["nope"]}});
    bucket.post_query(&query).refused(404, why);
}

#[test]
fn conflicts_are_checked_last() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let why = "contract 1: 409 comes after 400";
    let body = json!({"name": "tides", "retentionDays": 0});
    assert_faults(
        &call(&account.client, &account.admin, "POST", "/api/buckets", &body),
        &["retentionDays"],
        why,
    );
    assert_faults(
        &bucket.call("POST", "/sources", &json!({"name": "gauge"})),
        &["schema"],
        why,
    );
    bucket.source("other", &["level"]);
    let patch = json!({"name": "other", "downsampling": "yes"});
    assert_faults(
        &bucket.call("PATCH", &format!("/sources/{source}"), &patch),
        &["downsampling"],
        why,
    );
    bucket
        .call("PATCH", &format!("/sources/{source}"), &json!({"name": "other"}))
        .refused(409, "spec: duplicate name");
    let missing = format!("/sources/{UNKNOWN_ID}");
    bucket
        .call("PATCH", &missing, &json!({"name": "other"}))
        .refused(404, "contract 1: 409 comes after 404");
    bucket
        .call("GET", "", &Value::Null)
        .expect(200, "the bucket is as before");
}
