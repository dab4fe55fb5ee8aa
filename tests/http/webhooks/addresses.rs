//! Addresses that are not public: refused at registration and again at every delivery, unless the operator allows them.

use serde_json::{Value, json};

use super::{admin, receiver, send_test, wait_until_ended};
use crate::scene::{self, assert_faults};
use crate::support::given::{Account, text};
use crate::support::process::{Server, Setup};

const NOT_PUBLIC: &[&str] = &[
    "http://localhost/",
    "http://LOCALHOST./",
    "http://127.0.0.1/",
    "http://127.1.2.3:8080/x",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::]/",
    "http://[::1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[ff02::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2001:db8::1]/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://127.0.1/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127%2e0.0.1/",
    "http://127。0。0。1/",
    "http://①②⑦.0.0.1/",
    "http://tides.localhost/",
    "https://user:password@127.0.0.1/",
    "https://hooks.invalid@127.0.0.1/",
    "https://127.0.0.1#@hooks.invalid/",
    "https://127.0.0.1?@hooks.invalid/",
    "https://127.0.0.1\\@hooks.invalid/",
    "http://172.20.0.1/",
    "http://100.127.255.255/",
    "http://192.0.0.1/",
    "http://192.88.99.1/",
    "http://198.51.100.1/",
    "http://240.0.0.1/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[100::1]/",
    "http://[2001::1]/",
    "http://[2002:7f00:1::1]/",
    "http://[2002:a00:1::1]/",
    "http://[febf::1]/",
    "http://[fec0::1]/",
    "http://[ff0e::1]/",
];

#[test]
fn addresses_that_are_not_public_are_400() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let created = account.webhook(&json!({"url": "https://hooks.invalid/", "events": ["bucket.updated"]}));
    let path = format!("/api/webhooks/{}", text(&created, "/_id"));
    for url in NOT_PUBLIC {
        let sentence =
            format!("contract 7: a host that is a non-public address is refused when creating: {url}");
        let body = json!({"url": url, "events": ["bucket.updated"]});
        assert_faults(
            &admin(&account, "POST", "/api/webhooks", &body),
            &["url"],
            &sentence,
        );
        assert_faults(&admin(&account, "PATCH", &path, &body), &["url"], &sentence);
        let rule = json!({
            "bucketId": bucket.id, "dataSourceId": source, "name": "a", "condition": "level > 5", "webhookUrl": url,
        });
        assert_faults(
            &admin(&account, "POST", "/api/alerts", &rule),
            &["webhookUrl"],
            &sentence,
        );
    }
    for url in [
        "ftp://hooks.invalid/",
        "hooks.invalid",
        "",
        "http://",
        "https:///path",
        "https:hooks.invalid",
        "file:///etc/passwd",
    ] {
        let body = json!({"url": url, "events": ["bucket.updated"]});
        assert_faults(
            &admin(&account, "POST", "/api/webhooks", &body),
            &["url"],
            &format!("contract 7: URLs are http or https: {url:?}"),
        );
    }
    let shown = admin(&account, "GET", &path, &Value::Null).json();
    assert_eq!(
        shown["webhook"]["url"], "https://hooks.invalid/",
        "what was refused changed nothing"
    );
}

/// Link-local addresses serve the credentials of cloud machines; no private network needs them.
#[test]
fn link_local_addresses_are_400_where_private_ones_are_allowed() {
    let (_server, account, _) = super::scene();
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://2852039166/",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::1]/",
    ] {
        let body = json!({"url": url, "events": ["bucket.updated"]});
        let answer = admin(&account, "POST", "/api/webhooks", &body);
        assert_faults(&answer, &["url"], &format!("a link-local address: {url}"));
        assert!(answer.text().contains("link-local"), "{answer}");
    }
    account.webhook(&json!({"url": "http://10.0.0.1/", "events": ["bucket.updated"]}));
}

#[test]
fn a_name_that_does_not_resolve_yet_may_be_registered() {
    let (_server, account, _) = scene::bucket();
    for url in ["https://hooks.invalid/a", "HTTP://Hooks.Invalid:81/b?c=d"] {
        account.webhook(&json!({"url": url, "events": ["bucket.updated"]}));
    }
    let body = json!({"url": "https://hooks.invalid/", "events": ["bucket.updated"], "retryConfig": {"maxRetries": 0}});
    let webhook = text(&account.webhook(&body), "/_id");
    send_test(&account, &webhook);
    let delivery = wait_until_ended(&account, &format!("webhooks/{webhook}"), 1).remove(0);
    assert_eq!(
        delivery["status"], "failed",
        "contract 7: a name that does not resolve is a failure"
    );
    assert!(
        delivery["attempts"][0]["error"].is_string() && delivery["attempts"][0].get("statusCode").is_none(),
        "contract 7: attempts [{{at, statusCode?, error?, durationMs}}]: {delivery}"
    );
}

/// An address that is allowed at registration but not at delivery: no connection is made.
#[test]
fn addresses_are_checked_again_at_every_delivery() {
    let receiver = receiver();
    let mut server = Server::start_with(Setup::unlimited().set("webhooks.allow_private_networks", "true"));
    let account = Account::sign_up(&server.client);
    let by_name = receiver.url("/name").replace("127.0.0.1", "localhost");
    let webhooks: Vec<String> = [receiver.url("/address"), by_name]
        .iter()
        .map(|url| {
            let retries = json!({"maxRetries": 0});
            let body = json!({"url": url, "events": ["bucket.updated"], "retryConfig": retries});
            text(&account.webhook(&body), "/_id")
        })
        .collect();
    for webhook in &webhooks {
        send_test(&account, webhook);
        let delivery = wait_until_ended(&account, &format!("webhooks/{webhook}"), 1).remove(0);
        assert_eq!(
            delivery["status"], "delivered",
            "contract 9: `webhooks.allow_private_networks`: {delivery}"
        );
    }
    assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
    server.configure(Setup::unlimited());
    server.launch();
    for webhook in &webhooks {
        send_test(&account, webhook);
        let delivery = wait_until_ended(&account, &format!("webhooks/{webhook}"), 2).remove(0);
        assert_eq!(
            delivery["status"], "failed",
            "contract 7: refused again at every delivery after resolving: {delivery}"
        );
    }
    assert_eq!(
        (
            receiver.received("/address").len(),
            receiver.received("/name").len()
        ),
        (1, 1),
        "contract 7: nothing is sent to an address that is not public"
    );
}
