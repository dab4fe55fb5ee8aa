//! From answers to results.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{ANSWER_BYTES_MAX, Outcome, outcome};
use crate::api::Reply;
use crate::tools::ToolName;

fn reply(status: u16, body: &Value) -> Reply {
    Reply {
        status,
        retry_after: None,
        body: Bytes::from(body.to_string()),
    }
}

fn failure(tool: ToolName, reply: &Reply) -> String {
    match outcome(tool, reply, "svc_r_secret") {
        Outcome::Failed(message) => message,
        done => panic!("{done:?}"),
    }
}

fn hint(tool: ToolName, body: &Value) -> Option<String> {
    match outcome(tool, &reply(200, body), "svc_r_secret") {
        Outcome::Done { json, hint } => {
            assert_eq!(json, body.to_string());
            hint
        }
        failed => panic!("{failed:?}"),
    }
}

#[test]
fn an_answer_is_passed_on_as_it_is_with_a_hint_if_there_is_more() {
    assert_eq!(
        hint(
            ToolName::Query,
            &json!({"data": [], "metadata": {"hasMore": false}})
        ),
        None
    );
    let more = json!({"data": [], "metadata": {"count": 200, "hasMore": true, "nextCursor": "abc"}});
    let told = hint(ToolName::Query, &more).unwrap();
    assert!(
        told.contains("200") && told.contains("cursor") && told.contains("groupBy"),
        "{told}"
    );
    let groups = json!({"data": [], "metadata": {"count": 200, "hasMore": true}});
    assert!(hint(ToolName::Query, &groups).unwrap().contains("offset"));
    let list = json!({"pagination": {"limit": 50, "offset": 50, "total": 120, "hasMore": true}});
    let told = hint(ToolName::ListSources, &list).unwrap();
    assert!(told.contains("120") && told.contains("offset = 100"), "{told}");
    assert_eq!(hint(ToolName::Due, &json!({"count": 0, "evaluations": []})), None);
}

#[test]
fn an_answer_that_is_too_large_says_how_to_narrow() {
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    assert_eq!(hint(ToolName::Query, &text(ANSWER_BYTES_MAX)), None);
    let told = failure(ToolName::Query, &reply(200, &text(ANSWER_BYTES_MAX + 1)));
    assert!(told.contains("startTime") && told.contains("262145"), "{told}");
    let told = failure(ToolName::Due, &reply(200, &text(ANSWER_BYTES_MAX + 1)));
    assert!(told.contains("limit"), "{told}");
}

#[test]
fn an_error_has_the_api_s_own_message_and_its_details() {
    let body = json!({
        "error": "Validation Error", "message": "the body is not valid",
        "details": [{"path": ["filters", "startTime"], "message": "must be before endTime"}],
    });
    let told = failure(ToolName::Query, &reply(400, &body));
    assert_eq!(
        told,
        "400 Validation Error: the body is not valid\n- filters.startTime: must be before endTime"
    );
    let single = json!({
        "error": "Validation Error", "message": "limit: must be at least 1",
        "details": [{"path": ["limit"], "message": "must be at least 1"}],
    });
    assert_eq!(
        failure(ToolName::Query, &reply(400, &single)),
        "400 Validation Error: limit: must be at least 1"
    );
    let many = json!({"details": vec![json!({"path": ["a"], "message": "wrong"}); 1_000]});
    assert_eq!(failure(ToolName::Query, &reply(400, &many)).lines().count(), 21);
}

#[test]
fn a_403_names_the_kind_of_key_and_what_is_needed() {
    let body = json!({"error": "Forbidden", "message": "this key may not"});
    let told = failure(ToolName::Verdict, &reply(403, &body));
    assert!(
        told.contains("this key may not") && told.contains("a read key"),
        "{told}"
    );
    assert!(
        told.contains("integration or admin key") && !told.contains("secret"),
        "{told}"
    );
    let told = failure(ToolName::ListBuckets, &reply(401, &json!({})));
    assert!(
        told.contains("does not know this key") && !told.contains("secret"),
        "{told}"
    );
}

#[test]
fn a_repeated_verdict_is_told_what_is_recorded_and_a_busy_service_when_to_come_back() {
    let body = json!({"error": "Conflict", "message": "not due", "evaluation": {"outcome": "met"}});
    let told = failure(ToolName::Verdict, &reply(409, &body));
    assert!(told.contains(r#""outcome":"met""#), "{told}");
    let busy = Reply {
        retry_after: Some(Duration::from_secs(3)),
        ..reply(
            503,
            &json!({"error": "Service Unavailable", "message": "too busy"}),
        )
    };
    assert!(failure(ToolName::Query, &busy).ends_with("Try again in 3 s."));
    let html = Reply {
        status: 502,
        retry_after: None,
        body: Bytes::from_static(b"<html>"),
    };
    assert!(failure(ToolName::Query, &html).starts_with("502"));
}
