use std::sync::Arc;

use serde_json::{Value, json};

use super::{Template, render};
use crate::catalog::{Secret, WebhookFormat};

fn triggered() -> Value {
    json!({
        "event": "alert.triggered", "timestamp": "2026-01-02T03:04:05Z",
        "webhookId": "0a0a0a0a0a0a0a0a0a0a0a0a", "bucketId": "0b0b0b0b0b0b0b0b0b0b0b0b",
        "data": {
            "alertId": "0c0c0c0c0c0c0c0c0c0c0c0c", "alertName": "Hot <pump> & \"more\"",
            "dataSourceId": "0d0d0d0d0d0d0d0d0d0d0d0d", "dataSourceName": "Kühlung",
            "condition": "temperature > 80", "currentValue": 81.5, "threshold": 80, "operator": "gt",
            "triggeredAt": "2026-01-02T03:04:05Z",
            "dataPoint": {"timestamp": "2026-01-02T03:04:00Z", "values": {"temperature": 81.5}, "metadata": {}},
        },
    })
}

fn rendered(format: &WebhookFormat, event: &Value) -> (String, Vec<(&'static str, String)>, String) {
    let envelope: Arc<[u8]> = event.to_string().into_bytes().into();
    let rendered = render(format, envelope).unwrap();
    let body = String::from_utf8(rendered.body.to_vec()).unwrap();
    (rendered.content_type.to_owned(), rendered.headers, body)
}

fn json_of(format: &WebhookFormat, event: &Value) -> Value {
    let (content_type, headers, body) = rendered(format, event);
    assert_eq!(content_type, "application/json");
    assert!(headers.is_empty());
    serde_json::from_str(&body).unwrap()
}

#[test]
fn the_standard_format_is_the_envelope_byte_for_byte() {
    let (content_type, headers, body) = rendered(&WebhookFormat::Standard, &triggered());
    assert_eq!(content_type, "application/json");
    assert!(headers.is_empty());
    assert_eq!(body, triggered().to_string());
}

#[test]
fn slack_gets_a_text_without_markup_of_names() {
    let message = json_of(&WebhookFormat::Slack, &triggered());
    assert_eq!(
        message,
        json!({"text": "Hot &lt;pump&gt; &amp; \"more\" has fired\nCondition: temperature &gt; 80\nValue: 81.5\n\
            Operator: gt\nThreshold: 80\nSource: Kühlung\nTriggered: 2026-01-02T03:04:05Z"})
    );
}

#[test]
fn teams_gets_an_adaptive_card() {
    let message = json_of(&WebhookFormat::Teams, &triggered());
    assert_eq!(message["type"], "message");
    let attachment = &message["attachments"][0];
    assert_eq!(
        attachment["contentType"],
        "application/vnd.microsoft.card.adaptive"
    );
    let card = &attachment["content"];
    assert_eq!(card["type"], "AdaptiveCard");
    assert_eq!(card["body"][0]["text"], "Hot <pump> & \"more\" has fired");
    assert_eq!(card["body"][0]["color"], "attention");
    assert_eq!(
        card["body"][1]["facts"][1],
        json!({"title": "Value", "value": "81.5"})
    );
}

#[test]
fn ntfy_gets_plain_text_and_headers() {
    let (content_type, headers, body) = rendered(&WebhookFormat::Ntfy, &triggered());
    assert_eq!(content_type, "text/plain; charset=utf-8");
    let plain = json!([
        ["title", "Hot <pump> & \"more\" has fired"],
        ["priority", "high"],
        ["tags", "rotating_light"]
    ]);
    assert_eq!(json!(headers), plain);
    assert!(body.contains("Source: Kühlung"), "{body}");
}

#[test]
fn pagerduty_resolves_under_the_key_that_it_triggered() {
    let format = WebhookFormat::PagerDuty {
        routing_key: Secret("R0".into()),
    };
    for (first, second, about, severity) in [
        (
            "alert.triggered",
            "alert.resolved",
            "alert-0c0c0c0c0c0c0c0c0c0c0c0c",
            "critical",
        ),
        (
            "evaluation.overdue",
            "evaluation.resumed",
            "evaluation-0c0c0c0c0c0c0c0c0c0c0c0c",
            "warning",
        ),
        (
            "source.stale",
            "source.recovered",
            "source-0d0d0d0d0d0d0d0d0d0d0d0d",
            "warning",
        ),
    ] {
        let [trigger, resolve] = [first, second].map(|name| {
            let mut event = triggered();
            event["event"] = json!(name);
            json_of(&format, &event)
        });
        assert_eq!(trigger["routing_key"], "R0");
        assert_eq!(
            (&trigger["event_action"], &resolve["event_action"]),
            (&json!("trigger"), &json!("resolve"))
        );
        assert_eq!(
            (&trigger["dedup_key"], &resolve["dedup_key"]),
            (&json!(about), &json!(about))
        );
        assert_eq!(trigger["payload"]["severity"], severity);
        assert_eq!(trigger["payload"]["source"], "Kühlung");
        assert_eq!(trigger["payload"]["timestamp"], "2026-01-02T03:04:05Z");
        assert_eq!(trigger["payload"]["custom_details"]["currentValue"], 81.5);
    }
    let test =
        json!({"event": "webhook.test", "webhookId": "0a0a", "bucketId": null, "timestamp": "t", "data": {}});
    assert_eq!(json_of(&format, &test)["dedup_key"], "webhook-0a0a");
}

#[test]
fn a_template_has_strings_escaped_and_the_rest_as_json() {
    let given = |text: &str| {
        Template::parse(text)
            .unwrap()
            .render(&triggered(), 1_000)
            .unwrap()
    };
    assert_eq!(
        given(r#"{"a":"{{data.alertName}}","v":{{ data.currentValue }},"gone":{{data.resolvedAt}}}"#),
        r#"{"a":"Hot <pump> & \"more\"","v":81.5,"gone":null}"#
    );
    assert_eq!(
        given("{{data.dataPoint.values.temperature}} }} { }"),
        "81.5 }} { }"
    );
    assert_eq!(given("{{data.dataPoint.values}}"), r#"{"temperature":81.5}"#);
    assert_eq!(
        given("{{event}} {{data.changes.name.old}}"),
        "alert.triggered null"
    );
    let mut nested = triggered();
    nested["data"]["alertName"] = json!("{{data.condition}}\n");
    let template = Template::parse("{{data.alertName}}").unwrap();
    assert_eq!(template.render(&nested, 100).unwrap(), "{{data.condition}}\\n");
}

#[test]
fn a_template_that_no_event_can_fill_is_refused() {
    for (text, part) in [
        ("a {{data.alertName", "without }}"),
        ("{{data.alertname}}", "data.alertname"),
        ("{{}}", "no member"),
        ("{{data.}}", "no member"),
        ("{{data.dataPoint..a}}", "no member"),
        ("{{event.x}}", "no member"),
        ("{{data.changes.name.older}}", "no member"),
        ("{{ {{event}} }}", "no member"),
    ] {
        let refused = Template::parse(text).unwrap_err();
        assert!(refused.contains(part), "{text}: {refused}");
    }
}

#[test]
fn a_template_that_grows_beyond_its_bound_is_not_sent() {
    let text = "{{data}}".repeat(100);
    let template = Template::parse(&text).unwrap();
    assert!(
        template
            .render(&triggered(), 1_000)
            .unwrap_err()
            .contains("1000 bytes")
    );
    let format = WebhookFormat::Template { text: text.into() };
    let mut event = triggered();
    event["data"]["condition"] = json!("x".repeat(20_000));
    let refused = render(&format, event.to_string().into_bytes().into()).unwrap_err();
    assert!(refused.contains("the template gives more than"), "{refused}");
}
