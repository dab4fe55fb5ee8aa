//! The feed of changes that an open page polls.

use serde_json::{Value, json};

use crate::scene;
use crate::support::client::Answer;
use crate::support::given::{Account, point};
use crate::support::time::now_ns;

fn get_changes(account: &Account, tag: Option<&str>) -> Answer {
    let request = account.client.get("/api/changes").bearer(&account.token);
    match tag {
        Some(tag) => request.header("If-None-Match", tag),
        None => request,
    }
    .send()
}

fn tag(answer: &Answer) -> String {
    let tag = answer.header("etag");
    tag.unwrap_or_else(|| panic!("it has a tag: {answer}")).to_owned()
}

/// The kinds of resources that have changed.
#[track_caller]
fn changed(account: &Account, before: &mut (String, Value)) -> Vec<String> {
    let answer = get_changes(account, Some(&before.0));
    if answer.status == 304 {
        assert_eq!(answer.text(), "", "304 has no body");
        assert_eq!(tag(&answer), before.0);
        return Vec::new();
    }
    let body = answer.expect(200, "something has changed");
    let kinds = body["changes"].as_object().unwrap();
    let changed = kinds
        .iter()
        .filter(|(kind, text)| before.1["changes"][kind.as_str()] != **text);
    let mut changed: Vec<String> = changed.map(|(kind, _)| kind.clone()).collect();
    changed.sort();
    *before = (tag(&answer), body);
    changed
}

#[test]
fn each_change_is_reported_by_kind_and_reading_changes_nothing() {
    let (mut server, account, bucket) = scene::bucket();
    let first = get_changes(&account, None);
    let mut before = (tag(&first), first.expect(200, "the first answer"));
    assert_eq!(changed(&account, &mut before), [""; 0], "nothing has happened");

    let source = bucket.source("gauge", &["level"]);
    assert_eq!(changed(&account, &mut before), ["buckets", "sources"]);
    bucket.send(&[point(&source, now_ns(), &json!({"level": 1}))]);
    assert_eq!(changed(&account, &mut before), [""; 0], "points are not a change");
    let rule = bucket.evaluated_rule("high", &source);
    assert_eq!(changed(&account, &mut before), ["rules"]);
    let verdict = json!({"outcome": "met"});
    let path = format!("/api/evaluations/{rule}/verdict");
    let judged = account
        .client
        .post(&path)
        .key(&account.admin)
        .json(&verdict)
        .send();
    judged.expect(200, "judged");
    assert!(
        changed(&account, &mut before).contains(&"rules".to_owned()),
        "a rule that fires is a change"
    );
    bucket.key("read");
    assert_eq!(changed(&account, &mut before), ["keys"]);
    account
        .client
        .get("/api/organization")
        .key(&account.admin)
        .send()
        .expect(200, "looked at");
    assert_eq!(changed(&account, &mut before), [""; 0], "a call is not a change");
    let webhook = json!({"url": "https://example.com/hook", "events": ["alert.triggered"]});
    account
        .client
        .post("/api/webhooks")
        .key(&account.admin)
        .json(&webhook)
        .send()
        .expect(201, "a webhook");
    assert_eq!(changed(&account, &mut before), ["webhooks"]);
    bucket.silence();
    assert_eq!(changed(&account, &mut before), ["silences"]);
    bucket.annotation();
    assert_eq!(changed(&account, &mut before), ["annotations"]);
    bucket.board();
    assert_eq!(changed(&account, &mut before), ["boards"]);
    let rename = account
        .client
        .request("PATCH", "/api/organization")
        .key(&account.admin);
    rename
        .json(&json!({"name": "Tide Lab 2"}))
        .send()
        .expect(200, "renamed");
    assert_eq!(changed(&account, &mut before), ["organization"]);

    let other = Account::sign_up(&account.client);
    other.bucket("elsewhere");
    assert_eq!(
        changed(&account, &mut before),
        [""; 0],
        "changes of other organizations are not reported"
    );
    let path = format!("/api/buckets/{}", bucket.id);
    account
        .client
        .delete(&path)
        .key(&account.admin)
        .send()
        .expect(200, "deleted");
    let all = [
        "annotations",
        "buckets",
        "keys",
        "rules",
        "silences",
        "sources",
        "webhooks",
    ];
    assert_eq!(changed(&account, &mut before), all, "what is gone with a bucket");
    server.stop();
    server.launch();
    assert_eq!(
        get_changes(&account, Some(&before.0)).status,
        200,
        "another run tells its own changes"
    );
}
