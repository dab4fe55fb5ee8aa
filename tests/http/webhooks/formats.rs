//! What is sent in each format, and what a format needs.

use serde_json::{Value, json};

use super::signatures::assert_signed_as;
use super::{admin, receiver, scene, send_test};
use crate::scene::{assert_faults, members};
use crate::support::given::{Account, text};
use crate::support::receiver::Receiver;

const SECRET: &str = "a secret of mine";
const ROUTING_KEY: &str = "R0123456789";

fn body(receiver: &Receiver, format: &str) -> Value {
    json!({
        "url": receiver.url(&format!("/{format}")), "events": ["alert.triggered"], "format": format, "secret": SECRET,
    })
}

fn patch(account: &Account, webhook: &str, body: &Value) -> crate::support::client::Answer {
    admin(account, "PATCH", &format!("/api/webhooks/{webhook}"), body)
}

#[test]
fn each_format_is_sent_signed_over_its_own_bytes() {
    let (_server, account, _) = scene();
    let receiver = receiver();
    for format in ["standard", "slack", "teams", "ntfy", "pagerduty", "template"] {
        let mut body = body(&receiver, format);
        if format == "template" {
            body["template"] =
                json!("{\"what\":\"{{event}}\",\"said\":\"{{ data.message }}\",\"rule\":{{data.alertName}}}");
        }
        if format == "pagerduty" {
            body["routingKey"] = json!(ROUTING_KEY);
        }
        let webhook = account.webhook(&body);
        assert_eq!(webhook["format"], format);
        assert_eq!(webhook["template"], body["template"]);
        assert!(
            !webhook.to_string().contains(ROUTING_KEY),
            "14.43: never shown: {webhook}"
        );
        let delivery = send_test(&account, &text(&webhook, "/_id"));
        let received = receiver.wait(&format!("/{format}"), 1).remove(0);
        assert_signed_as(
            &text(&delivery, "/webhookId"),
            &received,
            SECRET,
            SECRET.as_bytes(),
        );
        let content_type = received.header("content-type").unwrap().to_owned();
        if format == "ntfy" {
            assert_eq!(content_type, "text/plain; charset=utf-8", "14.42");
            assert_eq!(received.header("title"), Some("Test of a webhook"), "14.42");
            assert!(
                received.header("priority").is_some() && received.header("tags").is_some(),
                "14.42"
            );
            assert!(
                received.body.starts_with(b"Test of a webhook\n"),
                "{:?}",
                received.body
            );
            continue;
        }
        assert_eq!(content_type, "application/json");
        let sent = received.json();
        match format {
            "slack" => assert_eq!(members(&sent), ["text"], "14.40: {sent}"),
            "teams" => assert_eq!(
                sent["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive",
                "14.41: {sent}"
            ),
            "pagerduty" => {
                assert_eq!(sent["routing_key"], ROUTING_KEY, "14.43: {sent}");
                assert_eq!(sent["event_action"], "trigger", "14.43: {sent}");
            }
            "template" => {
                assert_eq!(sent["what"], "webhook.test", "14.46: {sent}");
                assert_eq!(
                    sent["said"], "this is a test: deliveries reach this webhook",
                    "14.46"
                );
                assert_eq!(
                    sent["rule"],
                    Value::Null,
                    "14.46: a member that the event has not"
                );
            }
            _ => assert_eq!(sent["event"], "webhook.test"),
        }
    }
}

#[test]
fn what_a_format_needs_is_asked_for_at_its_place() {
    let (_server, account, _) = scene();
    let receiver = receiver();
    let with = |format: &str, more: Value| {
        let mut body = body(&receiver, format);
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for (body, paths) in [
        (with("sms", json!({})), ["format"]),
        (with("email", json!({})), ["format"]),
        (with("template", json!({})), ["template"]),
        (with("template", json!({"template": ""})), ["template"]),
        (
            with("template", json!({"template": "x".repeat(16_385)})),
            ["template"],
        ),
        (
            with("template", json!({"template": "{{data.alertName"})),
            ["template"],
        ),
        (
            with("template", json!({"template": "{{data.alertname}}"})),
            ["template"],
        ),
        (with("slack", json!({"template": "x"})), ["template"]),
        (with("slack", json!({"routingKey": "x"})), ["routingKey"]),
        (with("pagerduty", json!({})), ["routingKey"]),
        (
            with(
                "pagerduty",
                json!({"routingKey": "x", "events": ["data.received"]}),
            ),
            ["events"],
        ),
        (
            with(
                "pagerduty",
                json!({"routingKey": "x", "events": ["alert.triggered", "bucket.updated"]}),
            ),
            ["events"],
        ),
    ] {
        let answer = admin(&account, "POST", "/api/webhooks", &body);
        assert_faults(&answer, &paths, "small print 14.43 to 14.46");
    }
    let longest = with("template", json!({"template": "x".repeat(16_384)}));
    account.webhook(&longest);
}

#[test]
fn a_change_keeps_what_its_format_still_needs() {
    let (_server, account, _) = scene();
    let receiver = receiver();
    let webhook = text(&account.webhook(&body(&receiver, "standard")), "/_id");
    let to_template = patch(&account, &webhook, &json!({"format": "template"}));
    assert_faults(&to_template, &["template"], "a template is required");
    let changed = patch(
        &account,
        &webhook,
        &json!({"format": "template", "template": "{{event}}"}),
    );
    assert_eq!(changed.expect(200, "PATCH")["webhook"]["template"], "{{event}}");
    let other = patch(&account, &webhook, &json!({"status": "active"})).expect(200, "PATCH");
    assert_eq!(other["webhook"]["template"], "{{event}}", "absent members stay");
    let slack = patch(&account, &webhook, &json!({"format": "slack"})).expect(200, "PATCH");
    assert_eq!(slack["webhook"]["template"], Value::Null);
    let key = patch(
        &account,
        &webhook,
        &json!({"format": "pagerduty", "routingKey": ROUTING_KEY}),
    );
    key.expect(200, "PATCH");
    let events = patch(&account, &webhook, &json!({"events": ["data.received"]}));
    assert_faults(&events, &["events"], "also when only the events change");
}
