//! The history of a rule: verdicts and triggers with their evidence.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_timestamp, call, column, members};
use crate::support::given::text;

#[test]
fn verdicts_and_triggers_are_listed_newest_first() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let rule = bucket.evaluated_rule("judged", &source);
    assert!(bucket.history(&rule).is_empty(), "nothing was evaluated yet");
    let evidence = r#"{"mean": 7.50, "count":1e2,"why":["a",{"b":null}],"ok":true}"#;
    let path = format!("/api/evaluations/{rule}/verdict");
    let body = format!(r#"{{"outcome":"met","evidence":{evidence}}}"#);
    let answer = account.client.post(&path).key(&evaluator.key).body(body).send();
    let evaluation = answer.expect(200, "a verdict")["evaluation"].clone();
    let history = bucket.history(&rule);
    assert_eq!(
        column(&history, "/kind"),
        [json!("trigger"), json!("verdict")],
        "contract 6: verdicts and triggers, newest first"
    );
    for entry in &history {
        let mut expected = vec![
            "_id",
            "at",
            "evidence",
            "keyId",
            "kind",
            "outcome",
            "previousState",
        ];
        if entry["kind"] == "trigger" {
            expected.push("silenceId");
            assert_eq!(entry["silenceId"], Value::Null, "small print 25 of chapter 14");
        }
        expected.push("state");
        assert_eq!(
            members(entry),
            expected,
            "contract 10: the members of a history entry: {entry}"
        );
        assert_timestamp(&entry["at"], "at");
        assert_eq!(
            entry["at"], evaluation["lastEvaluatedAt"],
            "contract 10: `at` of a history entry"
        );
        assert_eq!(
            (&entry["outcome"], &entry["previousState"], &entry["state"]),
            (&json!("met"), &json!("armed"), &json!("firing")),
            "contract 10: outcome and states of a history entry"
        );
    }
    assert_ne!(
        history[0]["_id"], history[1]["_id"],
        "contract 10: each entry has an id of its own"
    );
    assert_eq!(
        history[1]["evidence"],
        serde_json::from_str::<Value>(evidence).unwrap(),
        "contract 6: verdicts with evidence"
    );
    let keys = account
        .client
        .get("/api/organization/keys")
        .bearer(&account.token)
        .send()
        .json();
    let keys = array(&keys, "/apiKeys");
    let key = keys.iter().find(|key| key["name"] == "evaluator").unwrap();
    assert_eq!(
        history[1]["keyId"], key["_id"],
        "contract 10: `keyId` is the key that posted the verdict"
    );
}

#[test]
fn a_verdict_without_trigger_is_one_entry() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    for outcome in ["not_met", "inconclusive"] {
        let rule = bucket.evaluated_rule(outcome, &source);
        evaluator
            .verdict(&rule, &json!({"outcome": outcome}))
            .expect(200, "contract 6: `evidence` may be absent");
        let history = bucket.history(&rule);
        assert_eq!(
            column(&history, "/kind"),
            [json!("verdict")],
            "contract 6: {outcome} triggers nothing"
        );
        assert_eq!(history[0]["outcome"], outcome, "contract 10: `outcome`");
        assert_eq!(history[0]["state"], "armed", "contract 10: `state`");
    }
}

#[test]
fn history_is_paged_and_readable_with_every_key_of_the_bucket() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let rule = bucket.evaluated_rule("judged", &source);
    account.evaluator().evaluate(&rule, "met");
    let all = bucket.history(&rule);
    let path = format!("/api/alerts/{rule}/history");
    for (offset, expected) in [(0, &all[..1]), (1, &all[1..]), (2, &[])] {
        let answer = call(
            &account.client,
            &bucket.key("read"),
            "GET",
            &format!("{path}?limit=1&offset={offset}"),
            &Value::Null,
        );
        let answer = answer.expect(
            200,
            "contract 6: GET /api/alerts/:id/history by admin, write, read",
        );
        assert_eq!(
            array(&answer, "/history"),
            expected,
            "contract 1: all lists of this page paginate"
        );
        assert_eq!(
            answer["pagination"],
            json!({"limit": 1, "offset": offset, "total": 2, "hasMore": offset == 0}),
            "contract 1: lists carry `pagination`"
        );
    }
    for wrong in ["?limit=0", "?limit=1001", "?offset=-1", "?limit=x"] {
        call(
            &account.client,
            &account.admin,
            "GET",
            &format!("{path}{wrong}"),
            &Value::Null,
        )
        .refused(400, "contract 1: list parameters out of range: 400");
    }
    let ids = column(&all, "/_id");
    assert!(
        ids.iter().all(|id| text(&json!({"id": id}), "/id").len() == 24),
        "contract 1: ids"
    );
}
