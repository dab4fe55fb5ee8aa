//! Who may create, see and end which silences.

use serde_json::{Value, json};

use super::{at, create, listed, post};
use crate::scene::{self, UNKNOWN_ID};
use crate::support::given::{Account, Bucket};

struct Scene {
    account: Account,
    bucket: Bucket,
    other: Bucket,
    /// Rules of both buckets.
    rule: String,
    other_rule: String,
}

fn scene_on(account: Account) -> Scene {
    let (bucket, other) = (account.bucket("tides"), account.bucket("other"));
    let source = bucket.source("gauge", &["level"]);
    let other_source = other.source("gauge", &["level"]);
    Scene {
        rule: bucket.evaluated_rule("high", &source),
        other_rule: other.evaluated_rule("high", &other_source),
        account,
        bucket,
        other,
    }
}

#[test]
fn a_bucket_key_reaches_silences_of_its_bucket() {
    let server = scene::server();
    let it = scene_on(Account::sign_up(&server.client));
    let (account, write, read) = (&it.account, it.bucket.key("write"), it.bucket.key("read"));
    let (own, other) = (&it.bucket.id, &it.other.id);
    // In order of creation.
    let mut shown = Vec::new();
    for body in [
        json!({"bucketId": own}),
        json!({"alertIds": [it.rule]}),
        json!({"bucketId": own, "alertIds": [it.rule]}),
    ] {
        let created = post(account, &write, &body).expect(201, "small print 22: its bucket, or rules of it");
        shown.push(crate::support::given::text(&created, "/silence/_id"));
    }
    for body in [
        json!({}),
        json!({"bucketId": other}),
        json!({"alertIds": [it.rule, it.other_rule]}),
        json!({"alertIds": [it.other_rule]}),
    ] {
        post(account, &write, &body).refused(403, "small print 22: anything wider is 403");
    }
    for (key, sentence) in [
        (&read, "admin, write"),
        (&account.evaluator().key, "admin, write"),
    ] {
        post(account, key, &json!({"bucketId": own})).refused(403, sentence);
    }
    // A key of the bucket reads or ends none that is wider, though it sees those that touch the bucket.
    let wide = [
        create(account, &json!({})),
        create(account, &json!({"alertIds": [it.rule, it.other_rule]})),
    ];
    let elsewhere = create(account, &json!({"bucketId": other}));
    let narrow = shown.clone();
    shown.extend(wide.iter().cloned());
    assert_eq!(
        listed(account, &read),
        shown,
        "small print 22: the mutes that touch its bucket"
    );
    assert_eq!(
        listed(account, &write),
        shown,
        "small print 22: the mutes that touch its bucket"
    );
    shown.push(elsewhere.clone());
    assert_eq!(listed(account, &account.admin), shown, "oldest first");
    for silence in wide.iter().chain([&elsewhere]) {
        at(account, &read, "GET", silence).refused(403, "small print 22: also to GET");
        at(account, &write, "GET", silence).refused(403, "small print 22: also to GET");
        at(account, &write, "DELETE", silence).refused(403, "small print 22: or DELETE");
    }
    at(account, &read, "GET", &narrow[0]).expect(200, "it is about the key's bucket");
    at(account, &read, "DELETE", &narrow[0]).refused(403, "a read key changes nothing");
    for silence in &narrow {
        let deleted = at(account, &write, "DELETE", silence).expect(200, "contract 14: DELETE");
        assert!(deleted["message"].is_string());
        assert_eq!(
            deleted["deletedSilence"],
            json!({"_id": silence}),
            "small print 1"
        );
        at(account, &write, "GET", silence).expect(404, "it is gone");
        at(account, &write, "DELETE", silence).expect(404, "it is gone");
    }
    let patch = format!("/api/silences/{}", wide[0]);
    let patch = scene::call(&account.client, &account.admin, "PATCH", &patch, &json!({}));
    assert_eq!(patch.status, 405, "small print 22: no PATCH");
    // Others learn nothing.
    let foreigner = Account::sign_up(&server.client);
    assert_eq!(listed(&foreigner, &foreigner.admin), [""; 0]);
    for method in ["GET", "DELETE"] {
        at(&foreigner, &foreigner.admin, method, &wide[0]).expect(404, "contract 1: always 404");
    }
    for body in [
        json!({"bucketId": own}),
        json!({"alertIds": [it.rule]}),
        json!({"alertIds": [UNKNOWN_ID]}),
    ] {
        post(&foreigner, &foreigner.admin, &body).expect(404, "contract 1: always 404");
    }
}

#[test]
fn a_silence_shows_its_members_and_rules_must_be_in_the_bucket() {
    let server = scene::server();
    let it = scene_on(Account::sign_up(&server.client));
    let account = &it.account;
    let created = post(
        account,
        &account.admin,
        &json!({"alertIds": [it.rule, it.other_rule, it.rule], "until": "2200-01-01T02:00:00+02:00", "reason": " paint "}),
    );
    let created = created.expect(201, "rules of several buckets");
    assert!(created["message"].is_string());
    let silence = &created["silence"];
    let id = silence["_id"].as_str().unwrap();
    scene::assert_timestamp(&silence["createdAt"], "createdAt");
    assert!(silence["createdBy"].is_string(), "small print 1: {silence}");
    let expected = json!({
        "_id": id, "bucketId": null, "alertIds": [it.rule, it.other_rule], "until": "2200-01-01T00:00:00Z",
        "reason": "paint", "createdAt": silence["createdAt"], "createdBy": silence["createdBy"],
    });
    assert_eq!(*silence, expected, "small print 20: what is not given is null");
    let shown = at(account, &account.admin, "GET", id).expect(200, "contract 14: GET");
    assert_eq!(shown, json!({"silence": expected}), "small print 1");
    let both = json!({"bucketId": it.bucket.id, "alertIds": [it.rule, it.other_rule]});
    post(account, &account.admin, &both).expect(404, "small print 20: rules of that bucket");
    // It keeps its rules, and goes with its buckets.
    let delete = |path: String| {
        scene::call(&account.client, &account.admin, "DELETE", &path, &Value::Null).expect(200, "deleted");
    };
    delete(format!("/api/alerts/{}", it.rule));
    let shown = at(account, &account.admin, "GET", id).expect(200, "its rule is gone");
    assert_eq!(shown["silence"], expected);
    let of_bucket = create(account, &json!({"bucketId": it.bucket.id}));
    let of_all = create(account, &json!({}));
    delete(format!("/api/buckets/{}", it.bucket.id));
    at(account, &account.admin, "GET", &of_bucket).expect(404, "it goes with its bucket");
    delete(format!("/api/buckets/{}", it.other.id));
    assert_eq!(
        listed(account, &account.admin),
        [of_all],
        "with the last of its buckets"
    );
}
