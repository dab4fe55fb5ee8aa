//! `Idempotency-Key`: a repeated request is executed once.

use serde_json::{Value, json};

use crate::scene;
use crate::support::client::Answer;
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

fn post(bucket: &Bucket, path: &str, idempotency_key: &str, body: &str) -> Answer {
    let request = bucket
        .client
        .post(path)
        .key(&bucket.admin)
        .header("Idempotency-Key", idempotency_key);
    request.body(body).send()
}

fn single(bucket: &Bucket, source: &str, level: i64) -> String {
    json!({"bucketId": bucket.id, "dataSourceId": source, "values": {"level": level}}).to_string()
}

fn batch(bucket: &Bucket, entries: &[Value]) -> String {
    json!({"bucketId": bucket.id, "dataPoints": entries}).to_string()
}

#[track_caller]
fn assert_replay(first: &Answer, again: &Answer) {
    let sentence = "contract 4: the same key with the same body gives the first answer again";
    assert_eq!(again.status, first.status, "{sentence}: {again}");
    assert_eq!(again.text(), first.text(), "{sentence}, byte for byte");
    assert_eq!(
        again.header("idempotent-replayed"),
        Some("true"),
        "contract 4: a replay carries Idempotent-Replayed: true"
    );
    assert_eq!(
        again.header("content-type"),
        first.header("content-type"),
        "{sentence}, of the same type"
    );
    assert_ne!(
        again.header("x-request-id"),
        first.header("x-request-id"),
        "a replay is a request of its own"
    );
}

#[test]
fn a_replay_returns_the_first_answer_even_after_restarts() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let good = point(&source, now_ns(), &json!({"level": 3}));
    let requests = [
        ("/api/data", "one", single(&bucket, &source, 1), 201),
        (
            "/api/data/batch",
            "two",
            batch(&bucket, &[good.clone(), good.clone()]),
            201,
        ),
        (
            "/api/data/batch",
            "three",
            batch(&bucket, &[good.clone(), json!({"dataSourceId": "x"}), good]),
            207,
        ),
    ];
    let first: Vec<Answer> = requests
        .iter()
        .map(|(path, key, body, _)| post(&bucket, path, key, body))
        .collect();
    for (answer, (_, _, _, status)) in first.iter().zip(&requests) {
        answer.expect(
            *status,
            "contract 4: a first request with a key is a request like any other",
        );
        assert!(
            answer.header("idempotent-replayed").is_none(),
            "contract 4: the first answer is no replay: {answer}"
        );
    }
    let rows = bucket.rows(&json!({}));
    assert_eq!(rows.len(), 5, "every good entry is stored once");
    for when in ["at once", "after a kill", "after a stop", "after another kill"] {
        match when {
            "at once" => {}
            "after a stop" => _ = server.stop(),
            _ => server.kill(),
        }
        if when != "at once" {
            server.launch();
        }
        for (answer, (path, key, body, _)) in first.iter().zip(&requests) {
            assert_replay(answer, &post(&bucket, path, key, body));
        }
        assert_eq!(
            bucket.rows(&json!({})),
            rows,
            "contract 4: a replay inserts nothing ({when})"
        );
    }
}

#[test]
fn another_body_under_the_same_key_is_409() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = single(&bucket, &source, 1);
    post(&bucket, "/api/data", "key", &body).expect(201, "a first request");
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let sentence = "contract 4: with another body it gives 409";
        post(&bucket, "/api/data", "key", &single(&bucket, &source, 2)).refused(409, sentence);
        let spaced = body.replacen(':', ": ", 1);
        post(&bucket, "/api/data", "key", &spaced)
            .refused(409, "contract 4: the same body means the same bytes");
        let entry = json!({"dataSourceId": source, "values": {"level": 1}});
        let spanned = "contract 10: one key spans both ingest endpoints";
        post(&bucket, "/api/data/batch", "key", &batch(&bucket, &[entry])).refused(409, spanned);
        assert_eq!(bucket.rows(&json!({})).len(), 1, "{sentence} and inserts nothing");
        let again = post(&bucket, "/api/data", "key", &body);
        assert_eq!(
            again.status, 201,
            "a refused body does not take the key's place: {again}"
        );
    }
}

#[test]
fn a_key_is_scoped_to_its_bucket_for_all_credentials() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let (source, elsewhere) = (
        bucket.source("gauge", &["level"]),
        other.source("gauge", &["level"]),
    );
    let write = bucket.key("write");
    let body = single(&bucket, &source, 1);
    let first = post(&bucket, "/api/data", "key", &body);
    first.expect(201, "a first request");
    let in_other = post(&other, "/api/data", "key", &single(&other, &elsewhere, 1));
    in_other.expect(
        201,
        "contract 4: the same key for the same bucket; another bucket's is another key",
    );
    assert!(
        in_other.header("idempotent-replayed").is_none(),
        "another bucket's key is another key"
    );
    let by_write = account
        .client
        .post("/api/data")
        .key(&write)
        .header("Idempotency-Key", "key")
        .body(body.as_str());
    assert_replay(&first, &by_write.send());
    let by_bearer = account
        .client
        .post("/api/data")
        .bearer(&account.token)
        .header("Idempotency-Key", "key");
    assert_replay(&first, &by_bearer.body(body.as_str()).send());
    let upper = post(&bucket, "/api/data", "KEY", &body);
    assert!(
        upper.header("idempotent-replayed").is_none(),
        "keys differ by case: {upper}"
    );
    assert_eq!(
        bucket.rows(&json!({})).len(),
        2,
        "one point for each of the two keys"
    );
}

#[test]
fn bodies_are_compared_after_decompression() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = single(&bucket, &source, 1);
    let first = post(&bucket, "/api/data", "key", &body);
    first.expect(201, "a first request");
    let request = bucket
        .client
        .post("/api/data")
        .key(&bucket.admin)
        .header("Idempotency-Key", "key");
    let packed = zstd::encode_all(body.as_bytes(), 3).unwrap();
    let again = request.header("Content-Encoding", "zstd").body(packed).send();
    assert_replay(&first, &again);
    assert_eq!(
        bucket.rows(&json!({})).len(),
        1,
        "contract 4: same body (bytes, after decompression)"
    );
}

#[test]
fn refusals_are_not_stored() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let sentence = "contract 4: answers of 400 and above are not kept";
    let wrong = json!({"bucketId": bucket.id, "dataSourceId": source, "values": {"level": "x"}}).to_string();
    for _ in 0..2 {
        let answer = post(&bucket, "/api/data", "key", &wrong);
        answer.refused(400, sentence);
        assert!(
            answer.header("idempotent-replayed").is_none(),
            "{sentence}: {answer}"
        );
    }
    let none = batch(&bucket, &[json!({"dataSourceId": source, "values": {}})]);
    post(&bucket, "/api/data/batch", "key", &none).refused(400, sentence);
    let path = format!("/sources/{source}");
    bucket
        .call("PATCH", &path, &json!({"status": "inactive"}))
        .expect(200, "a source is switched off");
    let body = single(&bucket, &source, 1);
    post(&bucket, "/api/data", "key", &body).refused(409, "contract 3: an inactive source is 409");
    bucket
        .call("PATCH", &path, &json!({"status": "active"}))
        .expect(200, "a source is switched on");
    let answer = post(&bucket, "/api/data", "key", &body);
    answer.expect(201, sentence);
    assert!(
        answer.header("idempotent-replayed").is_none(),
        "{sentence}: {answer}"
    );
}

#[test]
fn keys_are_1_to_255_printable_characters() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let send = |path: &str, key: &[u8], body: &str| {
        let request = bucket
            .client
            .post(path)
            .key(&bucket.admin)
            .header("Idempotency-Key", key);
        request.body(body).send()
    };
    let one = single(&bucket, &source, 1);
    let longest = "k".repeat(255);
    let printable = "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~";
    for key in [
        "k",
        longest.as_str(),
        printable,
        "8e03978e-40d5-43e8-bc93-6894a57f9324",
        "two words",
    ] {
        let answer = send("/api/data", key.as_bytes(), &one);
        answer.expect(201, &format!("contract 4: 1-255 printable characters (`{key}`)"));
    }
    let entries = batch(
        &bucket,
        &[json!({"dataSourceId": source, "values": {"level": 1}})],
    );
    let too_long = "k".repeat(256);
    for key in [
        &b""[..],
        too_long.as_bytes(),
        b"a\tb",
        "é".as_bytes(),
        b"\xff",
        "ключ".as_bytes(),
    ] {
        let sentence =
            format!("contract 4, 10: an empty, longer, unprintable or non-ASCII key is 400 ({key:?})");
        send("/api/data", key, &one).refused(400, &sentence);
        send("/api/data/batch", key, &entries).refused(400, &sentence);
    }
    assert_eq!(
        bucket.rows(&json!({})).len(),
        5,
        "a request with an invalid key inserts nothing"
    );
}

/// A client whose connection failed retries while the first request is still in progress.
#[test]
fn concurrent_requests_with_one_key_insert_once_and_answer_equally() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let now = now_ns();
    for round in 0..10 {
        let entries: Vec<Value> = (0..50)
            .map(|nth| {
                point(
                    &source,
                    now + (round * 100 + nth) * SECOND,
                    &json!({"level": nth}),
                )
            })
            .collect();
        let body = batch(&bucket, &entries);
        let key = format!("round {round}");
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| post(&bucket, "/api/data/batch", &key, &body)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let sentence = "contract 4: the same key with the same body gives the first answer again";
        for answer in &answers {
            answer.expect(201, sentence);
            assert_eq!(answer.text(), answers[0].text(), "{sentence}");
        }
        let firsts = answers
            .iter()
            .filter(|answer| answer.header("idempotent-replayed").is_none())
            .count();
        assert_eq!(firsts, 1, "one request is the first, the others are replays");
    }
    assert_eq!(
        bucket.rows(&json!({})).len(),
        500,
        "contract 4: a replay inserts nothing"
    );
}

/// Regression: in `extend`, the schema was extended before the key was checked.
#[test]
fn a_request_refused_for_its_key_adds_no_fields() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source_with(
        &json!({"name": "open", "schema": {"level": {"type": "number"}}, "schemaMode": "extend"}),
    );
    let body = |field: &str| {
        json!({"bucketId": bucket.id, "dataSourceId": source, "values": {field: 1}}).to_string()
    };
    let many = |field: &str| batch(&bucket, &[json!({"dataSourceId": source, "values": {field: 1}})]);
    let first = post(&bucket, "/api/data", "once", &body("first"));
    first.expect(201, "contract 3: a new field is added");
    assert_replay(&first, &post(&bucket, "/api/data", "once", &body("first")));
    let sentence = "contract 4: a used key with another body is 409";
    post(&bucket, "/api/data", "once", &body("second")).refused(409, sentence);
    post(&bucket, "/api/data/batch", "once", &many("third")).refused(409, sentence);
    let path = format!("/api/buckets/{}/sources/{source}", bucket.id);
    let answer = bucket.client.get(&path).key(&bucket.admin).send().json();
    let text = answer.to_string();
    assert!(text.contains("\"first\""), "{text}");
    assert!(
        !text.contains("\"second\"") && !text.contains("\"third\""),
        "a refused request changes nothing: {text}"
    );
}
