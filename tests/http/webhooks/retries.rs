//! Failures and their retries: all in one scene, so that their delays are concurrent.

use std::time::Duration;

use serde_json::{Value, json};

use super::{receiver, scene, send_test, wait_until_ended};
use crate::scene::{array, assert_timestamp, column};
use crate::support::given::text;
use crate::support::receiver::{Received, Receiver, answer, status};

/// Tolerance for delays on two busy cores; a second would hide the next wait.
const LATE_MAX: Duration = Duration::from_millis(900);

struct Case {
    path: &'static str,
    retry: Value,
    /// The response to each attempt: a status, or `None` for no response.
    codes: &'static [Option<u16>],
    /// Seconds before each further attempt.
    waits: &'static [u64],
    status: &'static str,
}

const fn codes(code: u16) -> [Option<u16>; 4] {
    [Some(code); 4]
}

fn cases() -> Vec<Case> {
    let case = |path, retry, codes, waits, status| Case {
        path,
        retry,
        codes,
        waits,
        status,
    };
    const REFUSED: &[Option<u16>] = &codes(500);
    const REDIRECTED: &[Option<u16>] = &codes(302);
    vec![
        case("/refused", Value::Null, REFUSED, &[1, 2, 4], "failed"),
        case("/redirected", Value::Null, REDIRECTED, &[1, 2, 4], "failed"),
        case("/closed", Value::Null, &[None; 4], &[1, 2, 4], "failed"),
        case(
            "/recovers",
            Value::Null,
            &[Some(503), Some(404), Some(201)],
            &[1, 2],
            "delivered",
        ),
        case("/once", json!({"maxRetries": 0}), &[Some(400)], &[], "failed"),
        case(
            "/evenly",
            json!({"maxRetries": 4, "backoffMultiplier": 1}),
            &[Some(429); 5],
            &[1, 1, 1, 1],
            "failed",
        ),
        case(
            "/steep",
            json!({"maxRetries": 2, "backoffMultiplier": 3.5}),
            &[Some(301); 3],
            &[1, 3],
            "failed",
        ),
        case("/huge", Value::Null, &[Some(200)], &[], "delivered"),
        case("/empty", Value::Null, &[Some(204)], &[], "delivered"),
        case("/accepted", Value::Null, &[Some(299)], &[], "delivered"),
    ]
}

fn reply(request: &Received, before: usize) -> Vec<u8> {
    let cases = cases();
    let Some(case) = cases.iter().find(|case| case.path == request.path) else {
        return status(200);
    };
    match (request.path.as_str(), case.codes.get(before).copied().flatten()) {
        ("/redirected", Some(code)) => answer(code, "Location: /elsewhere\r\n", b""),
        // Far more than the sender reads of an answer.
        ("/huge", Some(code)) => answer(code, "", &vec![b' '; 8 << 20]),
        (_, Some(code)) => status(code),
        (_, None) => Vec::new(),
    }
}

#[test]
fn failed_deliveries_are_retried_with_exponential_backoff() {
    let (_server, account, _) = scene();
    let receiver = Receiver::answering(reply);
    let cases = cases();
    let webhooks: Vec<String> = cases
        .iter()
        .map(|case| {
            let mut body = json!({"url": receiver.url(case.path), "events": ["bucket.updated"]});
            if !case.retry.is_null() {
                body["retryConfig"] = case.retry.clone();
            }
            let webhook = text(&account.webhook(&body), "/_id");
            let delivery = send_test(&account, &webhook);
            assert_eq!(
                delivery["status"], "pending",
                "contract 7: 202 `{{message, delivery}}`: {delivery}"
            );
            webhook
        })
        .collect();
    for (case, webhook) in cases.iter().zip(&webhooks) {
        let delivery = wait_until_ended(&account, &format!("webhooks/{webhook}"), 1).remove(0);
        let path = case.path;
        assert_eq!(
            delivery["status"], case.status,
            "contract 7: any answer but 2xx is a failure ({path})"
        );
        assert_eq!(
            delivery["nextAttemptAt"],
            Value::Null,
            "contract 10: `nextAttemptAt` is null when finished ({path})"
        );
        let attempts = array(&delivery, "/attempts");
        let codes: Vec<Value> = case.codes.iter().map(|code| json!(code)).collect();
        assert_eq!(
            column(&attempts, "/statusCode"),
            codes,
            "contract 7: attempt 1, then up to `maxRetries` more ({path}): {delivery}"
        );
        for attempt in &attempts {
            assert_timestamp(&attempt["at"], "at");
            assert!(
                attempt["durationMs"].is_u64(),
                "contract 7: attempts have `durationMs`: {attempt}"
            );
            let ok = attempt["statusCode"]
                .as_u64()
                .is_some_and(|code| (200..300).contains(&code));
            assert!(
                ok != attempt["error"].is_string(),
                "contract 7: attempts [{{at, statusCode?, error?, durationMs}}], failures with an error: {attempt}"
            );
        }
        let received = receiver.received(path);
        assert_eq!(
            received.len(),
            case.codes.len(),
            "contract 7: as many requests as attempts ({path})"
        );
        for (pair, wait) in received.windows(2).zip(case.waits) {
            let waited = pair[1].at - pair[0].at;
            let due = Duration::from_secs(*wait)
                + if path == "/steep" && *wait == 3 {
                    HALF
                } else {
                    Duration::ZERO
                };
            assert!(
                waited + SLACK >= due && waited <= due + LATE_MAX,
                "contract 7: the n-th after `backoffMultiplier`^(n−1) seconds ({path}): {waited:?}, not {due:?}"
            );
        }
        for request in &received {
            assert_eq!(
                request.body, received[0].body,
                "contract 7: `webhookId` is the same on every attempt, and so is all of the body ({path})"
            );
            assert_eq!(
                request.json()["webhookId"],
                delivery["webhookId"],
                "contract 7: `webhookId` identifies the delivery ({path})"
            );
        }
    }
    assert!(
        receiver.received("/elsewhere").is_empty(),
        "contract 7: redirects are not followed"
    );
    // There is no attempt after the last one.
    for case in &cases {
        assert_eq!(
            receiver.received(case.path).len(),
            case.codes.len(),
            "contract 7: after the last: kept, not tried again ({})",
            case.path
        );
    }
}

const HALF: Duration = Duration::from_millis(500);
/// The receiver records the arrival of the whole request; the sender counts from the end of the previous attempt.
const SLACK: Duration = Duration::from_millis(50);

#[test]
fn an_unreachable_receiver_is_a_failure() {
    let (_server, account, _) = scene();
    let gone = receiver().url("/");
    let body = json!({"url": gone, "events": ["bucket.updated"], "retryConfig": {"maxRetries": 1}});
    let webhook = text(&account.webhook(&body), "/_id");
    send_test(&account, &webhook);
    let delivery = wait_until_ended(&account, &format!("webhooks/{webhook}"), 1).remove(0);
    assert_eq!(
        delivery["status"], "failed",
        "contract 7: no connection is a failure: {delivery}"
    );
    let attempts = array(&delivery, "/attempts");
    assert_eq!(
        attempts.len(),
        2,
        "contract 7: attempt 1, then up to `maxRetries` more: {delivery}"
    );
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt["error"].is_string() && attempt.get("statusCode").is_none()),
        "contract 7: without an answer there is an error and no status: {delivery}"
    );
}
