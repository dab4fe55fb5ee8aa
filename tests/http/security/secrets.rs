//! Secrets are stored only in the catalog: they are absent from logs of any level, error bodies, `/metrics`, and other
//! files. Only signing secrets are stored in the clear, since deliveries are signed with them.

use std::cell::RefCell;
use std::fs;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::operation::logged_server::LoggedServer;
use crate::operation::metrics::Metrics;
use crate::scene::files;
use crate::support::client::{Client, Request};
use crate::support::given::{Account, Bucket, point, text};
use crate::support::process::{OPERATOR_TOKEN, command, run_to_end, variable};
use crate::support::receiver::{Receiver, status};
use crate::support::time::now_ns;
use crate::support::waiting::until;

const EMAIL: &str = "planted@example.com";
const PASSWORD: &str = "planted-password-of-somebody";
const NEXT_PASSWORD: &str = "planted-password-of-tomorrow";
const WRONG_PASSWORD: &str = "planted-password-of-a-guess";
const BROKEN_PASSWORD: &str = "planted-password-in-broken-json";
const MISPLACED_PASSWORD: &str = "planted-password-as-an-email";
const WEBHOOK_SECRET: &str = "planted-webhook-secret";
const NEXT_WEBHOOK_SECRET: &str = "planted-webhook-secret-of-tomorrow";
const REFUSED_WEBHOOK_SECRET: &str = "planted-webhook-secret-of-nobody";
const RECEIVER_PATH: &str = "/planted-receiver-path";
const QUERY_SECRET: &str = "planted-query-secret";
const PATH_SECRET: &str = "planted-path-secret";
const HEADER_SECRET: &str = "planted-header-secret";
const BODY_SECRET: &str = "planted-body-secret";
const WRONG_OPERATOR_TOKEN: &str = "planted-operator-token-of-a-guess";
const POINT_TEXT: &str = "planted-point-text";

const THE_LAST_PATH: &str = "/api/operator/organizations";

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

/// Sends a request, and records the body of a refusal.
struct RecordingClient {
    client: Client,
    refusals: RefCell<Vec<String>>,
}

impl RecordingClient {
    #[track_caller]
    fn send(&self, status: u16, request: Request<'_>) -> Value {
        let answer = request.send();
        assert_eq!(answer.status, status, "{answer}");
        if status >= 400 {
            self.refusals.borrow_mut().push(answer.to_string());
        }
        answer.json()
    }

    fn request(&self, method: &str, path: &str) -> Request<'_> {
        self.client.request(method, path)
    }
}

/// Uses passwords and tokens in every way, including failures; returns the tokens.
fn use_passwords(recorder: &RecordingClient) -> Vec<String> {
    let post =
        |status, path: &str, body: Value| recorder.send(status, recorder.request("POST", path).json(&body));
    let credentials = |password: &str| json!({"email": EMAIL, "password": password, "name": "Planted Name"});
    let first = text(&post(201, "/api/auth/signup", credentials(PASSWORD)), "/token");
    post(409, "/api/auth/signup", credentials(PASSWORD));
    post(401, "/api/auth/login", credentials(WRONG_PASSWORD));
    post(
        400,
        "/api/auth/login",
        json!({"email": [MISPLACED_PASSWORD], "password": [MISPLACED_PASSWORD]}),
    );
    post(
        400,
        "/api/auth/signup",
        json!({"email": MISPLACED_PASSWORD, "password": MISPLACED_PASSWORD, "name": "x"}),
    );
    let broken = format!("{{\"email\": \"{EMAIL}\", \"password\": \"{BROKEN_PASSWORD}\"");
    recorder.send(400, recorder.request("POST", "/api/auth/login").body(broken));
    let second = text(&post(200, "/api/auth/login", credentials(PASSWORD)), "/token");
    let change = |status, current: &str, next: &str| {
        let body = json!({"currentPassword": current, "newPassword": next});
        recorder.send(
            status,
            recorder
                .request("POST", "/api/auth/password")
                .bearer(&second)
                .json(&body),
        )
    };
    change(401, WRONG_PASSWORD, NEXT_PASSWORD);
    let third = text(&change(200, PASSWORD, NEXT_PASSWORD), "/token");
    recorder.send(401, recorder.request("GET", "/api/auth/me").bearer(&first));
    recorder.send(401, recorder.request("GET", "/api/auth/me").key(&third));
    recorder.send(200, recorder.request("GET", "/api/auth/me").bearer(&third));
    vec![first, second, third]
}

/// Keys of every type, used, misused and deleted; returns their texts.
fn use_keys(recorder: &RecordingClient, account: &Account, bucket: &Bucket) -> Vec<String> {
    let own = format!("/api/buckets/{}/keys", bucket.id);
    let make = |path: &str, kind: &str| {
        let body = json!({"name": kind, "type": kind});
        let created = recorder.send(
            201,
            recorder.request("POST", path).bearer(&account.token).json(&body),
        );
        (text(&created, "/apiKey/_id"), text(&created, "/apiKey/key"))
    };
    let mut created = vec![
        make("/api/organization/keys", "admin"),
        make("/api/organization/keys", "integration"),
        make(&own, "write"),
        make(&own, "read"),
    ];
    let query = json!({"bucketId": bucket.id});
    for (_, key) in &created {
        recorder.send(
            200,
            recorder.request("POST", "/api/data/query").key(key).json(&query),
        );
        // In every place where keys do not belong.
        recorder.send(401, recorder.request("GET", "/api/buckets").bearer(key));
        recorder.send(
            401,
            recorder.request("GET", &format!("/api/buckets?apiKey={key}")),
        );
        recorder.send(404, recorder.request("GET", &format!("/{key}")));
        recorder.send(
            400,
            recorder
                .request("GET", &format!("/api/buckets/{key}"))
                .key(&account.admin),
        );
        recorder.send(
            400,
            recorder
                .request("POST", "/api/data/query")
                .key(key)
                .body(format!("{{\"apiKey\": \"{key}\",")),
        );
        recorder.send(
            400,
            recorder
                .request("POST", "/api/data/query")
                .key(key)
                .json(&json!({"bucketId": key})),
        );
        let cookie = recorder
            .request("GET", "/api/buckets")
            .header("Cookie", format!("key={key}"));
        recorder.send(401, cookie.header("X-Other", key.as_str()));
    }
    let (id, deleted) = make(&own, "write");
    recorder.send(
        200,
        recorder
            .request("DELETE", &format!("{own}/{id}"))
            .key(&account.admin),
    );
    recorder.send(401, recorder.request("GET", "/api/buckets").key(&deleted));
    let made_up = format!("svc_a_{}", "p".repeat(43));
    recorder.send(401, recorder.request("GET", "/api/buckets").key(&made_up));
    created.extend([(id, deleted), (String::new(), made_up)]);
    created.into_iter().map(|(_, key)| key).collect()
}

/// Secrets of webhooks: given, changed, generated, refused, used; returns the generated one.
fn use_webhooks(
    recorder: &RecordingClient,
    account: &Account,
    bucket: &Bucket,
    receiver: &Receiver,
) -> String {
    let source = bucket.source_with(&json!({"name": "s", "schema": {"note": {"type": "string"}}}));
    let admin = |status, method: &str, path: &str, body: Value| {
        recorder.send(
            status,
            recorder.request(method, path).key(&account.admin).json(&body),
        )
    };
    let body = json!({"url": receiver.url(RECEIVER_PATH), "events": ["data.received"],
        "secret": WEBHOOK_SECRET, "retryConfig": {"maxRetries": 0}});
    let created = admin(201, "POST", "/api/webhooks", body.clone());
    let mut refused = body.clone();
    refused["secret"] = json!(REFUSED_WEBHOOK_SECRET);
    refused["events"] = json!(["nothing"]);
    admin(400, "POST", "/api/webhooks", refused.clone());
    refused["secret"] = json!([REFUSED_WEBHOOK_SECRET]);
    admin(400, "POST", "/api/webhooks", refused);
    let mut generated = body;
    generated.as_object_mut().unwrap().remove("secret");
    let generated = text(&admin(201, "POST", "/api/webhooks", generated), "/webhook/secret");
    let send = || {
        let stored = bucket.single(&point(&source, now_ns(), &json!({"note": POINT_TEXT})));
        assert_eq!(stored.status, 201, "{stored}");
    };
    send();
    receiver.wait(RECEIVER_PATH, 2);
    let one = format!("/api/webhooks/{}", text(&created, "/webhook/_id"));
    admin(200, "PATCH", &one, json!({"secret": NEXT_WEBHOOK_SECRET}));
    send();
    receiver.wait(RECEIVER_PATH, 4);
    generated
}

#[test]
fn secrets_do_not_appear_in_logs_errors_metrics_or_files() {
    for format in ["text", "json"] {
        let root = TempDir::new().unwrap();
        let mut server = LoggedServer::start(
            command(root.path())
                .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
                .env(variable("operator.token"), OPERATOR_TOKEN)
                .env(variable("accounts.default_plan"), "Enterprise")
                .env(variable("webhooks.allow_private_networks"), "true")
                .env(variable("log.filter"), "trace")
                .env(variable("log.format"), format),
        );
        let client = Client::new();
        client.point_at(&server.base);
        let recorder = RecordingClient {
            client: client.clone(),
            refusals: RefCell::default(),
        };
        let receiver = Receiver::answering(|_, _| status(500));
        let account = Account::sign_up(&client);
        let bucket = account.bucket("planted bucket");
        let mut secrets = use_passwords(&recorder);
        secrets.extend(use_keys(&recorder, &account, &bucket));
        let generated = use_webhooks(&recorder, &account, &bucket, &receiver);

        let admin =
            |status, path: &str| recorder.send(status, recorder.request("GET", path).key(&account.admin));
        admin(200, &format!("/api/buckets?token={QUERY_SECRET}"));
        admin(400, &format!("/api/buckets/{PATH_SECRET}"));
        admin(404, &format!("/{PATH_SECRET}?token={QUERY_SECRET}"));
        let basic = recorder
            .request("GET", "/api/buckets")
            .header("Authorization", format!("Basic {HEADER_SECRET}"));
        recorder.send(401, basic);
        recorder.send(405, recorder.request("PUT", "/api/buckets").key(HEADER_SECRET));
        let ignored =
            json!({"name": "x", "retentionDays": 0, "secret": BODY_SECRET, BODY_SECRET: BODY_SECRET});
        recorder.send(
            400,
            recorder
                .request("POST", "/api/buckets")
                .key(&account.admin)
                .json(&ignored),
        );
        let wrong = recorder
            .request("GET", THE_LAST_PATH)
            .bearer(WRONG_OPERATOR_TOKEN);
        recorder.send(401, wrong);
        recorder.send(200, recorder.request("GET", THE_LAST_PATH).bearer(OPERATOR_TOKEN));

        let signing = [WEBHOOK_SECRET, NEXT_WEBHOOK_SECRET, &generated];
        secrets.extend([account.admin.clone(), account.token.clone()]);
        secrets.extend(signing.map(str::to_owned));
        secrets.extend(
            [
                PASSWORD,
                NEXT_PASSWORD,
                WRONG_PASSWORD,
                BROKEN_PASSWORD,
                MISPLACED_PASSWORD,
                REFUSED_WEBHOOK_SECRET,
                QUERY_SECRET,
                PATH_SECRET,
                HEADER_SECRET,
                BODY_SECRET,
                OPERATOR_TOKEN,
                WRONG_OPERATOR_TOKEN,
            ]
            .map(str::to_owned),
        );
        let log = until("the log tells of the last request", || {
            let log = server.log();
            log.contains(THE_LAST_PATH).then_some(log)
        });
        assert!(log.contains("request served"), "one line for each request: {log}");
        let metrics = Metrics::of(&client).text;
        let refusals = recorder.refusals.take();
        for secret in &secrets {
            assert!(!log.contains(secret), "`{secret}` stands in the log ({format})");
            assert!(!metrics.contains(secret), "`{secret}` stands in /metrics");
            // The request is before the arrow, the answer after it.
            let leak = refusals.iter().find(|answer| {
                let (_, answer) = answer.split_once('→').unwrap();
                answer.contains(secret)
            });
            assert_eq!(leak, None, "`{secret}` stands in an error body");
        }
        for personal in [
            POINT_TEXT,
            EMAIL,
            "Planted Name",
            "planted bucket",
            RECEIVER_PATH,
            &bucket.id,
        ] {
            assert!(!metrics.contains(personal), "`{personal}` stands in /metrics");
        }
        assert!(!log.contains(POINT_TEXT), "bodies stand in no log");
        assert!(
            !log.contains(RECEIVER_PATH),
            "the address of a webhook may be a secret"
        );

        assert!(server.stop().success());
        let data_dir = root.path().join("data");
        for file in files(&data_dir) {
            let bytes = fs::read(&file).unwrap();
            // In the catalog, and in the log until its next checkpoint.
            let within = file.strip_prefix(&data_dir).unwrap();
            let of_catalog = within.starts_with("ledger") || within.starts_with("log");
            for secret in &secrets {
                let may_stand = of_catalog && signing.contains(&secret.as_str());
                assert!(
                    may_stand || !holds(&bytes, secret),
                    "`{secret}` stands in {}",
                    within.display()
                );
            }
        }
    }
}

#[test]
fn the_tls_key_is_never_logged() {
    let root = TempDir::new().unwrap();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
    let key = signing_key.serialize_pem();
    fs::write(root.path().join("certificate.pem"), cert.pem()).unwrap();
    let with_key = |key: &str| {
        fs::write(root.path().join("key.pem"), key).unwrap();
        let mut command = command(root.path());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
            .env(variable("server.tls_certificate"), "certificate.pem")
            .env(variable("server.tls_key"), "key.pem")
            .env(variable("log.filter"), "trace");
        command
    };
    let secret = |key: &str| key.lines().nth(1).unwrap().to_owned();
    let mut server = LoggedServer::start(&mut with_key(&key));
    assert!(server.stop().success());
    assert!(!server.log().contains(&secret(&key)), "a key that is used");
    let cut = key.replace("-----END", "----END");
    let garbage = key.replace(&secret(&key), "planted+key+of+nobody");
    for broken in [cut, garbage] {
        let (ended, output) = run_to_end(&mut with_key(&broken), std::time::Duration::from_secs(20));
        assert!(!ended.success(), "such a key cannot be used: {output}");
        assert!(
            output.contains("tls_key"),
            "contract 9: the message names the key of the config: {output}"
        );
        assert!(
            !output.contains(&secret(&broken)),
            "a key that cannot be used: {output}"
        );
    }
}
