//! Small print F: `duplicates: "skip"`.

use std::thread;

use serde_json::{Value, json};

use crate::scene::{self, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, SECOND, now_ns};

const SKIP: &str = "contract 12: a point whose series already has that field at that timestamp is dropped";

#[track_caller]
fn skipping(bucket: &Bucket, dimensions: &Value) -> String {
    bucket.source_with(&json!({
        "name": "s", "schema": {"v": {"type": "number"}, "w": {"type": "number"}}, "dimensions": dimensions,
        "duplicates": "skip"
    }))
}

#[test]
fn fields_are_dropped_one_by_one_and_the_first_value_stays() {
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = skipping(&bucket, &Value::Null);
    let at_ns = now_ns() - HOUR;
    let entry = |second: i64, values: Value| point(&source, at_ns + second * SECOND, &values);
    let first = bucket.batch(&[entry(0, json!({"v": 1})), entry(1, json!({"v": 2}))]);
    let first = first.expect(201, "a batch");
    assert_eq!(first["insertedCount"], 2);
    assert!(
        first.get("duplicateCount").is_none_or(|count| *count == 0),
        "small print F4: may be left out when 0"
    );
    let second = bucket.batch(&[
        entry(0, json!({"v": 9, "w": 5})),
        entry(1, json!({"v": 9})),
        entry(1, json!({"w": 7, "v": null})),
        entry(2, json!({"v": 3})),
        entry(2, json!({"v": 4})),
        json!({"dataSourceId": source, "values": {"v": "text"}}),
    ]);
    let second = second.expect(207, "small print F4: duplicates and faults");
    let counts =
        ["insertedCount", "duplicateCount", "failedCount"].map(|name| second[name].as_u64().unwrap());
    assert_eq!(
        counts,
        [3, 2, 1],
        "small print F4: inserted + duplicate + failed = entries: {second}"
    );
    assert_eq!(second["errors"][0]["index"], 5);
    let mut rows = bucket.rows(&json!({}));
    rows.sort_by_key(|row| (row["timestamp"].to_string(), row["values"].to_string()));
    let expected = [
        json!({"v": 1}),
        json!({"w": 5}),
        json!({"v": 2}),
        json!({"w": 7}),
        json!({"v": 3}),
    ];
    assert_eq!(
        column(&rows, "/values"),
        expected,
        "small print F1: field by field, the first value stays"
    );
}

#[test]
fn answers_count_duplicates() {
    let (mut server, _, bucket) = scene::bucket();
    let source = skipping(&bucket, &json!(["host"]));
    let at_ns = now_ns() - HOUR;
    let entry = |host: &str, values: Value| {
        let mut entry = point(&source, at_ns, &values);
        entry["metadata"] = json!({"host": host});
        entry
    };
    bucket.single(&entry("a", json!({"v": 1}))).expect(201, "a point");
    let again = bucket
        .single(&entry("a", json!({"v": 1})))
        .expect(200, "small print F3: 200");
    assert_eq!(
        (&again["insertedCount"], &again["duplicateCount"]),
        (&json!(0), &json!(1)),
        "small print F3"
    );
    assert!(
        again.get("dataPoint").is_none(),
        "small print F3: without dataPoint"
    );
    bucket
        .single(&entry("b", json!({"v": 1})))
        .expect(201, "another series has no such point");
    let all = bucket.batch(&[entry("a", json!({"v": 5})), entry("b", json!({"v": 5}))]);
    let all = all.expect(201, "small print F4: all duplicates: 201");
    assert_eq!(
        (&all["insertedCount"], &all["duplicateCount"]),
        (&json!(0), &json!(2))
    );
    let faulty = bucket.batch(&[entry("a", json!({"v": 5})), entry("b", json!({"x": 5}))]);
    let faulty = faulty.expect(
        207,
        "small print F4: duplicates and faults without any insertion: 207",
    );
    assert_eq!(
        (
            &faulty["insertedCount"],
            &faulty["duplicateCount"],
            &faulty["failedCount"]
        ),
        (&json!(0), &json!(1), &json!(1))
    );
    server.kill();
    server.launch();
    let again = bucket
        .single(&entry("a", json!({"v": 2})))
        .expect(200, "small print F2: it holds over restarts");
    assert_eq!(again["duplicateCount"], 1);
    server.stop();
    server.launch();
    bucket
        .single(&entry("b", json!({"v": 2})))
        .expect(200, "small print F2: also when sealed");
}

#[test]
fn an_idempotent_replay_repeats_the_first_numbers() {
    let (_server, _, bucket) = scene::bucket();
    let source = skipping(&bucket, &Value::Null);
    let at_ns = now_ns() - HOUR;
    bucket.send(&[point(&source, at_ns, &json!({"v": 1}))]);
    let body = json!({"bucketId": bucket.id, "dataPoints": [
        point(&source, at_ns, &json!({"v": 1})), point(&source, at_ns + SECOND, &json!({"v": 1}))
    ]});
    let send = || {
        let request = bucket.client.post("/api/data/batch").key(&bucket.admin);
        request.header("Idempotency-Key", "k").json(&body).send()
    };
    let (first, replayed) = (send(), send());
    assert_eq!(first.expect(201, SKIP)["duplicateCount"], 1);
    assert_eq!(
        replayed.body, first.body,
        "small print F4: a replay repeats the first answer's numbers"
    );
    assert_eq!(replayed.header("Idempotent-Replayed"), Some("true"));
}

#[test]
fn a_key_of_nothing_but_duplicates_is_kept_too() {
    let (_server, _, bucket) = scene::bucket();
    let source = skipping(&bucket, &Value::Null);
    let at_ns = now_ns() - HOUR;
    bucket.send(&[point(&source, at_ns, &json!({"v": 1}))]);
    let send = |route: &str, body: &Value| {
        let request = bucket.client.post(route).key(&bucket.admin);
        request
            .header("Idempotency-Key", format!("key of {route}"))
            .json(body)
            .send()
    };
    let batch = json!({"bucketId": bucket.id, "dataPoints": [point(&source, at_ns, &json!({"v": 1}))]});
    let mut single = point(&source, at_ns, &json!({"v": 1}));
    single["bucketId"] = json!(bucket.id);
    for (route, body, status) in [("/api/data/batch", &batch, 201), ("/api/data", &single, 200)] {
        let first = send(route, body);
        first.expect(status, SKIP);
        let all = json!({"bucketId": bucket.id, "filters": {"dataSourceIds": [source]}});
        scene::call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &all).expect(200, "delete");
        let again = send(route, body);
        assert_eq!(
            again.header("Idempotent-Replayed"),
            Some("true"),
            "contract 4: {route}"
        );
        assert_eq!(again.body, first.body, "contract 4: {route}");
        assert!(bucket.rows(&json!({})).is_empty(), "a replay stores nothing");
        let mut other = body.clone();
        other["note"] = json!("another body");
        send(route, &other).expect(409, "contract 4: a key is not used for another body");
        bucket.send(&[point(&source, at_ns, &json!({"v": 1}))]);
    }
}

#[test]
fn concurrent_writers_store_each_point_once() {
    const WRITERS: usize = 12;
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = skipping(&bucket, &json!("all"));
    let first_ns = now_ns() - HOUR;
    // Late points too: each writer begins elsewhere.
    let batches: Vec<Vec<Value>> = (0..60)
        .map(|batch| {
            let seconds = (0..200).map(|place| (batch * 37 + place * 3) % 500);
            let entry = |second: i64| {
                let mut entry = point(&source, first_ns + second * SECOND, &json!({"v": second}));
                entry["metadata"] = json!({"host": (second % 7).to_string()});
                entry
            };
            seconds.map(entry).collect()
        })
        .collect();
    let inserted: u64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (bucket, batches) = (&bucket, &batches);
                scope.spawn(move || {
                    let mine = batches.iter().skip(writer).step_by(WRITERS);
                    let sent = mine.map(|batch| {
                        let answer = bucket.batch(batch).expect(201, SKIP);
                        let count = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
                        assert_eq!(count("insertedCount") + count("duplicateCount"), 200, "{answer}");
                        count("insertedCount")
                    });
                    sent.sum::<u64>()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let rows = bucket.rows(&json!({}));
    assert_eq!(
        rows.len() as u64,
        inserted,
        "small print F2: among concurrent writers"
    );
    let mut seconds: Vec<i64> = column(&rows, "/values/v")
        .iter()
        .map(|value| value.as_i64().unwrap())
        .collect();
    let count = seconds.len();
    seconds.dedup();
    assert_eq!(seconds.len(), count, "each point once");
}
