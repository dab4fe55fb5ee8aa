//! Webhooks with the format `email` (contract 14, small print 44 and 45).

use serde_json::{Value, json};

use super::mail_server::MailServer;
use super::{admin, send_test};
use crate::scene::{array, assert_faults, bucket_on};
use crate::support::given::{Account, Bucket, point, text};
use crate::support::process::{Server, Setup};
use crate::support::time::now_ns;
use crate::support::waiting::until;

fn scene_with(mail: &MailServer, tls: &str) -> (Server, Account, Bucket) {
    let port = mail.address.port().to_string();
    let setup = Setup::unlimited()
        .set("smtp.host", "127.0.0.1")
        .set("smtp.port", &port)
        .set("smtp.tls", tls)
        .set("smtp.from", "Tidewatch <alerts@example.org>");
    bucket_on(Server::start_with(setup))
}

fn body(url: &str) -> Value {
    json!({"url": url, "events": ["alert.triggered"], "format": "email"})
}

/// Waits until the delivery has ended; returns it.
fn ended(account: &Account, webhook: &str) -> Value {
    let path = format!("/api/webhooks/{webhook}/deliveries");
    until(&format!("the delivery of {webhook} has ended"), || {
        let listed = admin(account, "GET", &path, &Value::Null).expect(200, "contract 7: deliveries");
        let delivery = array(&listed, "/deliveries").remove(0);
        (delivery["status"] != "pending").then_some(delivery)
    })
}

#[test]
fn an_event_arrives_as_a_mail_that_is_not_signed() {
    let mail = MailServer::start(|_| "250 queued");
    let (_server, account, bucket) = scene_with(&mail, "none");
    let webhook = account.webhook(&body("mailto:a@example.com,b@example.net"));
    assert_eq!(webhook["format"], "email");
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns(), &json!({"level": 9}))]);
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "Öl\r\nBcc: c@example.com", "naturalLanguageQuery": "level is above 5",
        "evaluation": crate::support::watch::evaluation("level"),
    }));
    account.evaluator().evaluate(&rule, "met");
    let mail = mail.wait(1).remove(0);
    assert!(mail.from.contains("<alerts@example.org>"), "{mail:?}");
    let to: Vec<bool> = ["a@example.com", "b@example.net"]
        .iter()
        .map(|address| mail.to.iter().any(|to| to.contains(address)))
        .collect();
    assert_eq!(
        (mail.to.len(), to),
        (2, vec![true, true]),
        "14.44: all addresses, and no other: {mail:?}"
    );
    assert_eq!(
        mail.header("Bcc"),
        None,
        "14.45: nothing of a name becomes a header: {mail:?}"
    );
    assert_eq!(
        mail.header("From").as_deref(),
        Some("Tidewatch <alerts@example.org>")
    );
    let delivery = ended(&account, &text(&webhook, "/_id"));
    let id = text(&delivery, "/webhookId");
    assert_eq!(
        mail.header("X-Webhook-Id").as_deref(),
        Some(&*id),
        "14.45: the mail carries X-Webhook-Id"
    );
    assert!(
        mail.header("X-Webhook-Signature").is_none(),
        "14.45: not signed: {mail:?}"
    );
    assert!(
        mail.header("Content-Type")
            .is_some_and(|kind| kind.starts_with("text/plain")),
        "14.45: {mail:?}"
    );
    assert_eq!(delivery["status"], "delivered", "{delivery}");
    assert_eq!(
        delivery["attempts"][0]["statusCode"], 250,
        "14.45: the reply code as statusCode: {delivery}"
    );
}

#[test]
fn replies_of_4xx_and_5xx_are_retried_under_one_id() {
    let mail = MailServer::start(|nth| ["451 try later", "550 no such user", "250 queued"][nth.min(2)]);
    let (_server, account, _) = scene_with(&mail, "none");
    let mut settings = body("mailto:a@example.com");
    settings["retryConfig"] = json!({"maxRetries": 3, "backoffMultiplier": 1});
    let webhook = text(&account.webhook(&settings), "/_id");
    send_test(&account, &webhook);
    let mails = mail.wait(3);
    let ids: Vec<_> = mails.iter().map(|mail| mail.header("Message-ID")).collect();
    assert!(
        ids[0].is_some() && ids.iter().all(|id| *id == ids[0]),
        "one id: {ids:?}"
    );
    let delivery = ended(&account, &webhook);
    let codes: Vec<Value> = array(&delivery, "/attempts")
        .iter()
        .map(|attempt| attempt["statusCode"].clone())
        .collect();
    assert_eq!(
        codes,
        [451, 550, 250],
        "14.45: both are failures and retried: {delivery}"
    );
}

#[test]
fn without_encryption_that_was_asked_for_nothing_is_sent() {
    let mail = MailServer::start(|_| "250 queued");
    let (_server, account, _) = scene_with(&mail, "starttls");
    let mut settings = body("mailto:a@example.com");
    settings["retryConfig"] = json!({"maxRetries": 0});
    let webhook = text(&account.webhook(&settings), "/_id");
    send_test(&account, &webhook);
    let delivery = ended(&account, &webhook);
    assert_eq!(delivery["status"], "failed", "{delivery}");
    assert_eq!(delivery["attempts"][0]["statusCode"], Value::Null, "{delivery}");
    assert!(delivery["attempts"][0]["error"].is_string(), "{delivery}");
    let said = mail.commands();
    assert!(!said.iter().any(|line| line.starts_with("MAIL")), "{said:?}");
}

#[test]
fn addresses_go_with_mail_only() {
    let mail = MailServer::start(|_| "250 queued");
    let (_server, account, _) = scene_with(&mail, "none");
    let create = |settings: &Value| admin(&account, "POST", "/api/webhooks", settings);
    let sentence =
        "14.44: mailto: with one or more addresses by comma and nothing else, only with this format";
    for url in [
        "mailto:",
        "mailto:a",
        "mailto:a@example.com?subject=x",
        "mailto:a%40example.com",
        "mailto:a@example.com,",
        "https://example.com/hook",
    ] {
        assert_faults(&create(&body(url)), &["url"], sentence);
    }
    for format in ["standard", "slack", "ntfy"] {
        let mut settings = body("mailto:a@example.com");
        settings["format"] = json!(format);
        assert_faults(&create(&settings), &["url"], sentence);
    }
    let webhook = text(&account.webhook(&body("mailto:a@example.com")), "/_id");
    let path = format!("/api/webhooks/{webhook}");
    let change = |settings: Value| admin(&account, "PATCH", &path, &settings);
    assert_faults(&change(json!({"format": "standard"})), &["url"], sentence);
    assert_faults(
        &change(json!({"url": "https://example.com/hook"})),
        &["url"],
        sentence,
    );
    let changed =
        change(json!({"url": "mailto:b@example.com"})).expect(200, "contract 7: PATCH of a webhook");
    assert_eq!(changed["webhook"]["url"], "mailto:b@example.com");
    change(json!({"url": "http://example.com/", "format": "standard"}))
        .expect(200, "14.44: format and url change together");
}
