//! Bucket-scoped keys on other buckets, integration keys beyond their endpoints, ids mixed across organizations.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, call};
use crate::support::client::Answer;
use crate::support::given::{Account, text};

const OTHER_BUCKET: &str = "API key does not have access to this bucket";

#[track_caller]
fn assert_other_bucket(answer: &Answer, sentence: &str) {
    assert_eq!(
        answer.refused(403, sentence)["message"],
        OTHER_BUCKET,
        "spec: the message of 403 for another bucket"
    );
}

#[test]
fn a_bucket_key_is_403_in_its_organization_and_404_outside() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let source = other.source("gauge", &["level"]);
    let foreign = Account::sign_up(&account.client).bucket("foreign");
    let foreign_source = foreign.source("gauge", &["level"]);
    for kind in ["write", "read"] {
        let key = bucket.key(kind);
        let send_all = |bucket: &str, source: &str| {
            let path = format!("/api/buckets/{bucket}/sources");
            let query = json!({"bucketId": bucket});
            vec![
                call(&account.client, &key, "GET", &path, &Value::Null),
                call(
                    &account.client,
                    &key,
                    "GET",
                    &format!("{path}/{source}"),
                    &Value::Null,
                ),
                call(&account.client, &key, "POST", "/api/data/query", &query),
            ]
        };
        for answer in send_all(&other.id, &source) {
            assert_other_bucket(
                &answer,
                "contract 1: a bucket-scoped key on another bucket of its organization: 403",
            );
        }
        // The bucket decides, whether or not the source exists in it.
        for answer in send_all(&other.id, UNKNOWN_ID) {
            assert_other_bucket(
                &answer,
                "contract 1: a bucket-scoped key on another bucket of its organization: 403",
            );
        }
        for answer in send_all(&foreign.id, &foreign_source)
            .iter()
            .chain(&send_all(UNKNOWN_ID, UNKNOWN_ID))
        {
            answer.refused(404, "contract 1: on an unknown or foreign bucket: 404");
        }
    }
}

#[test]
fn a_bucket_key_reaches_all_of_its_own_bucket() {
    let (_server, account, bucket) = scene::bucket();
    let (write, read) = (bucket.key("write"), bucket.key("read"));
    let by =
        |key: &str, method: &str, path: &str, body: &Value| call(&account.client, key, method, path, body);
    let sources = format!("/api/buckets/{}/sources", bucket.id);
    let body = json!({"name": "gauge", "schema": {"level": {"type": "number"}}});
    let created = by(&write, "POST", &sources, &body).expect(201, "spec: a write key creates data sources");
    let source = text(&created, "/dataSource/_id");
    let point = json!({"bucketId": bucket.id, "dataSourceId": source, "values": {"level": 1}});
    by(&write, "POST", "/api/data", &point).expect(201, "spec: a write key ingests");
    by(&read, "POST", "/api/data", &point).refused(403, "spec: a read key cannot modify anything");
    for key in [&write, &read] {
        let rows = by(key, "POST", "/api/data/query", &json!({"bucketId": bucket.id}));
        assert_eq!(
            array(&rows.expect(200, "spec: write and read keys query"), "/data").len(),
            1,
            "the one point"
        );
        by(key, "GET", &sources, &Value::Null).expect(200, "spec: write and read keys list data sources");
        let one = format!("{sources}/{source}");
        by(key, "GET", &one, &Value::Null)
            .expect(200, "contract 3: GET of a source by any key of the bucket");
        by(key, "DELETE", &one, &Value::Null).refused(403, "contract 3: DELETE of a source is for admin");
    }
}

#[test]
fn an_integration_key_only_queries_all_buckets_of_its_organization() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let foreigner = Account::sign_up(&account.client);
    let foreign = foreigner.bucket("foreign");
    let request = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let key = request
        .json(&json!({"name": "i", "type": "integration"}))
        .send()
        .json();
    let key = text(&key, "/apiKey/key");
    let query = |id: &str| {
        call(
            &account.client,
            &key,
            "POST",
            "/api/data/query",
            &json!({"bucketId": id}),
        )
    };
    for bucket in [&bucket, &other] {
        query(&bucket.id).expect(
            200,
            "contract 6: integration keys reach all buckets of their organization by query",
        );
        let sources = format!("/api/buckets/{}/sources", bucket.id);
        let nothing_else = "contract 6: integration keys reach nothing beyond the three endpoints";
        call(&account.client, &key, "GET", &sources, &Value::Null).refused(403, nothing_else);
    }
    query(&foreign.id).refused(404, "contract 1: a foreign bucket is 404");
}

/// A path or body that pairs an own bucket with a foreign source, key or filter.
#[test]
fn foreign_ids_inside_an_own_bucket_are_404() {
    let (_server, account, bucket) = scene::bucket();
    let foreign = Account::sign_up(&account.client).bucket("foreign");
    let source = foreign.source("gauge", &["level"]);
    let created = foreign
        .call("POST", "/keys", &json!({"name": "k", "type": "read"}))
        .json();
    let key = text(&created, "/apiKey/_id");
    let sentence = "contract 1: ids of another organization are always 404";
    bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .refused(404, sentence);
    bucket
        .call("PATCH", &format!("/sources/{source}"), &json!({"name": "mine"}))
        .refused(404, sentence);
    bucket
        .call("DELETE", &format!("/sources/{source}"), &Value::Null)
        .refused(404, sentence);
    bucket
        .call("DELETE", &format!("/keys/{key}"), &Value::Null)
        .refused(404, sentence);
    bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
        .refused(404, sentence);
    bucket
        .post_query(&json!({"filters": {"dataSourceIds": [source]}}))
        .refused(404, sentence);
    let path = format!("/api/organization/keys/{key}");
    call(&account.client, &account.admin, "DELETE", &path, &Value::Null).refused(404, sentence);
    let batch = bucket.batch(&[json!({"dataSourceId": source, "values": {"level": 1}})]);
    let batch = batch.refused(400, "contract 4: another bucket's source is an entry error");
    let missing = bucket
        .batch(&[json!({"dataSourceId": UNKNOWN_ID, "values": {"level": 1}})])
        .json();
    let hidden = |answer: &Value, id: &str| answer.to_string().replace(id, "ID");
    assert_eq!(
        hidden(&batch, &source),
        hidden(&missing, UNKNOWN_ID),
        "{sentence}, and so in a batch"
    );
    assert!(
        foreign.rows(&json!({})).is_empty(),
        "nothing was written into the foreign bucket"
    );
}

#[test]
fn a_list_shows_only_objects_of_the_caller() {
    let (_server, account, bucket) = scene::bucket();
    let foreigner = Account::sign_up(&account.client);
    foreigner.bucket("foreign");
    let listed = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/buckets",
        &Value::Null,
    )
    .json();
    assert_eq!(
        listed["pagination"]["total"], 1,
        "a list has no foreign buckets: {listed}"
    );
    assert_eq!(
        listed["buckets"][0]["_id"], bucket.id,
        "a list has the own bucket"
    );
    let keys = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/organization/keys",
        &Value::Null,
    )
    .json();
    let foreign_keys = call(
        &account.client,
        &foreigner.admin,
        "GET",
        "/api/organization/keys",
        &Value::Null,
    )
    .json();
    for key in array(&keys, "/apiKeys") {
        assert!(
            !array(&foreign_keys, "/apiKeys").contains(&key),
            "keys of one organization are not another's"
        );
    }
}
