//! Secrets stand nowhere but in the catalog: not in logs, whatever their level, not in `/metrics`, not in other files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::metrics::Metrics;
use super::spoken::Spoken;
use crate::support::client::Client;
use crate::support::given::{Account, point, text};
use crate::support::process::{OPERATOR_TOKEN, command, variable};
use crate::support::receiver::{Receiver, status};
use crate::support::time::now_ns;
use crate::support::waiting::until;

const PASSWORD: &str = "planted-password-of-somebody";
const NEW_PASSWORD: &str = "planted-password-of-tomorrow";
const WEBHOOK_SECRET: &str = "planted-webhook-secret";
const QUERY_SECRET: &str = "planted-query-secret";
const PATH_SECRET: &str = "planted-path-secret";
const POINT_TEXT: &str = "planted-point-text";

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn planted_secrets_stand_neither_in_logs_nor_in_metrics_nor_in_files() {
    for format in ["text", "json"] {
        let root = TempDir::new().unwrap();
        let mut server = Spoken::start(
            command(root.path())
                .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
                .env(variable("operator.token"), OPERATOR_TOKEN)
                .env(variable("webhooks.allow_private_networks"), "true")
                .env(variable("log.filter"), "trace")
                .env(variable("log.format"), format),
        );
        let client = Client::new();
        client.point_at(&server.base);
        let receiver = Receiver::answering(|_, _| status(500));
        let account = Account::sign_up(&client);
        let planted = json!({"email": "planted@example.com", "password": PASSWORD, "name": "Planted Name"});
        let signed_up = client.post("/api/auth/signup").json(&planted).send();
        let token = text(&signed_up.expect(201, "contract 2: sign-up"), "/token");
        let wrong = json!({"email": "planted@example.com", "password": NEW_PASSWORD});
        assert_eq!(client.post("/api/auth/login").json(&wrong).send().status, 401);
        let broken = format!("{{\"email\": \"planted@example.com\", \"password\": \"{PASSWORD}\"");
        assert_eq!(client.post("/api/auth/login").body(broken).send().status, 400);

        let bucket = account.bucket("planted bucket");
        let source = bucket.source_with(&json!({"name": "s", "schema": {"note": {"type": "string"}}}));
        let webhook = json!({"url": receiver.url("/planted-receiver"), "events": ["data.received"],
            "secret": WEBHOOK_SECRET, "retryConfig": {"maxRetries": 0}});
        let created = client
            .post("/api/webhooks")
            .key(&account.admin)
            .json(&webhook)
            .send();
        created.expect(201, "contract 7: POST /api/webhooks");
        let stored = bucket.single(&point(&source, now_ns(), &json!({"note": POINT_TEXT})));
        assert_eq!(stored.status, 201, "{stored}");
        receiver.wait("/planted-receiver", 1);

        let with_query = format!("/api/buckets?token={QUERY_SECRET}");
        assert_eq!(client.get(&with_query).key(&account.admin).send().status, 200);
        let with_path = format!("/api/buckets/{PATH_SECRET}");
        assert_eq!(client.get(&with_path).key(&account.admin).send().status, 400);
        let nowhere = format!("/{PATH_SECRET}?token={QUERY_SECRET}");
        assert_eq!(client.get(&nowhere).bearer(&token).send().status, 404);
        let organizations = client.get("/api/operator/organizations").bearer(OPERATOR_TOKEN);
        assert_eq!(organizations.send().status, 200);

        let secrets = [
            PASSWORD,
            NEW_PASSWORD,
            WEBHOOK_SECRET,
            QUERY_SECRET,
            PATH_SECRET,
            OPERATOR_TOKEN,
            &account.admin,
            &account.token,
            &token,
        ];
        let log = until("the log tells of the last request", || {
            let log = server.log();
            log.contains("/api/operator/organizations").then_some(log)
        });
        assert!(log.contains("request served"), "one line for each request: {log}");
        let metrics = Metrics::of(&client).text;
        for secret in secrets {
            assert!(
                !log.contains(secret),
                "reliability 3: `{secret}` stands in the log ({format})"
            );
            assert!(
                !metrics.contains(secret),
                "reliability 3: `{secret}` stands in /metrics"
            );
        }
        for personal in [
            POINT_TEXT,
            "planted@example.com",
            "Planted Name",
            "planted bucket",
            &bucket.id,
        ] {
            assert!(!metrics.contains(personal), "`{personal}` stands in /metrics");
        }
        assert!(!log.contains(POINT_TEXT), "bodies stand in no log");

        assert!(server.stop().success());
        let data_dir = root.path().join("data");
        for file in files(&data_dir) {
            let bytes = fs::read(&file).unwrap();
            // What a webhook is signed with has to be kept: in the catalog, and in the log until its next checkpoint.
            let within = file.strip_prefix(&data_dir).unwrap();
            let of_catalog = within == Path::new("catalog.snapshot") || within.starts_with("log");
            for secret in secrets
                .iter()
                .filter(|secret| **secret != WEBHOOK_SECRET || !of_catalog)
            {
                assert!(
                    !holds(&bytes, secret),
                    "reliability 3: `{secret}` stands in {}",
                    within.display()
                );
            }
        }
    }
}
