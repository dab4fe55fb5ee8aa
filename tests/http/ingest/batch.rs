//! POST /api/data/batch: a faulty entry does not affect the others.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, column, members};
use crate::support::given::point;
use crate::support::time::{MINUTE, SECOND, now_ns, timestamp};

use super::single::typed_source;

#[test]
fn a_whole_batch_is_201() {
    let (_server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    for count in [1, 2, 999, 1000] {
        let entry = json!({"dataSourceId": source, "values": {"level": 1}});
        let answer = bucket
            .batch(&vec![entry; count])
            .expect(201, "spec: 1 to 1000 entries");
        assert_eq!(
            members(&answer),
            ["insertedCount", "message"],
            "spec: {{message, insertedCount}}"
        );
        assert_eq!(answer["insertedCount"], count, "spec: insertedCount");
    }
}

#[test]
fn every_kind_of_fault_affects_only_its_entry() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let elsewhere = other.source("elsewhere", &["level"]);
    let source = typed_source(&bucket);
    let good = || json!({"dataSourceId": source, "values": {"level": 1}});
    let old = timestamp(now_ns() - 31 * 24 * 60 * MINUTE);
    let faulty = [
        ("a number instead of an entry", json!(5)),
        ("null instead of an entry", Value::Null),
        ("an array instead of an entry", json!([])),
        ("no members", json!({})),
        ("no source", json!({"values": {"level": 1}})),
        (
            "a malformed source id",
            json!({"dataSourceId": "nope", "values": {"level": 1}}),
        ),
        (
            "an uppercase source id",
            json!({"dataSourceId": source.to_uppercase() + "A", "values": {"level": 1}}),
        ),
        (
            "a source id of the wrong type",
            json!({"dataSourceId": 5, "values": {"level": 1}}),
        ),
        (
            "an unknown source",
            json!({"dataSourceId": UNKNOWN_ID, "values": {"level": 1}}),
        ),
        (
            "another bucket's source",
            json!({"dataSourceId": elsewhere, "values": {"level": 1}}),
        ),
        ("no values", json!({"dataSourceId": source})),
        (
            "values of the wrong type",
            json!({"dataSourceId": source, "values": [1]}),
        ),
        ("values null", json!({"dataSourceId": source, "values": null})),
        ("empty values", json!({"dataSourceId": source, "values": {}})),
        (
            "all values null",
            json!({"dataSourceId": source, "values": {"level": null}}),
        ),
        (
            "an undeclared field",
            json!({"dataSourceId": source, "values": {"level": 1, "depth": 1}}),
        ),
        (
            "an undeclared null field",
            json!({"dataSourceId": source, "values": {"level": 1, "depth": null}}),
        ),
        (
            "a value of the wrong type",
            json!({"dataSourceId": source, "values": {"level": "1"}}),
        ),
        (
            "an object as a value",
            json!({"dataSourceId": source, "values": {"level": {"a": 1}}}),
        ),
        (
            "an array as a value",
            json!({"dataSourceId": source, "values": {"level": [1]}}),
        ),
        (
            "a numeric timestamp",
            json!({"dataSourceId": source, "timestamp": 5, "values": {"level": 1}}),
        ),
        (
            "a malformed timestamp",
            json!({"dataSourceId": source, "timestamp": "now", "values": {"level": 1}}),
        ),
        (
            "an old timestamp",
            json!({"dataSourceId": source, "timestamp": old, "values": {"level": 1}}),
        ),
        (
            "metadata of the wrong type",
            json!({"dataSourceId": source, "values": {"level": 1}, "metadata": []}),
        ),
        (
            "metadata too large",
            json!({"dataSourceId": source, "values": {"level": 1}, "metadata": {"a": "x".repeat(16_384)}}),
        ),
    ];
    let sentence = "contract 4: an entry's fault never stops the others (207)";
    for (what, entry) in &faulty {
        let answer = bucket
            .batch(&[good(), entry.clone(), good()])
            .expect(207, &format!("{sentence}: {what}"));
        assert_eq!(
            members(&answer),
            ["errors", "failedCount", "insertedCount", "message"],
            "spec: members of 207 ({what})"
        );
        let counts = (&answer["insertedCount"], &answer["failedCount"]);
        assert_eq!(counts, (&json!(2), &json!(1)), "{sentence}: {what}");
        let errors = array(&answer, "/errors");
        assert_eq!(
            errors.len(),
            1,
            "contract 4: every entry is counted inserted or listed as failed ({what})"
        );
        assert_eq!(
            members(&errors[0]),
            ["error", "index"],
            "spec: errors [{{index, error}}] ({what})"
        );
        assert_eq!(
            errors[0]["index"], 1,
            "contract 4: errors[].index is the entry's place ({what})"
        );
        let has_message = errors[0]["error"].as_str().is_some_and(|text| !text.is_empty());
        assert!(
            has_message,
            "spec: errors [{{index, error}}] with a text ({what})"
        );
    }
    assert_eq!(
        bucket.rows(&json!({})).len(),
        2 * faulty.len(),
        "{sentence}: the good entries are stored"
    );
    assert!(
        other.rows(&json!({})).is_empty(),
        "nothing reaches another bucket"
    );

    // All of them together, mixed with valid entries.
    let entries: Vec<Value> = faulty
        .iter()
        .flat_map(|(_, entry)| [entry.clone(), good()])
        .collect();
    let answer = bucket.batch(&entries).expect(207, sentence);
    let indexes: Vec<Value> = (0..faulty.len()).map(|nth| json!(2 * nth)).collect();
    assert_eq!(
        column(&array(&answer, "/errors"), "/index"),
        indexes,
        "contract 4: errors[].index ascending"
    );
    assert_eq!(
        answer["insertedCount"],
        faulty.len(),
        "contract 4: every entry is counted inserted or listed as failed"
    );
    assert_eq!(
        answer["failedCount"],
        faulty.len(),
        "contract 4: every entry is counted inserted or listed as failed"
    );

    // Only faulty entries.
    let entries: Vec<Value> = faulty.iter().map(|(_, entry)| entry.clone()).collect();
    let answer = bucket
        .batch(&entries)
        .refused(400, "contract 4: all entries failed: 400");
    assert_eq!(
        answer["insertedCount"], 0,
        "contract 4: 400 with the same insertedCount"
    );
    assert_eq!(
        answer["failedCount"],
        faulty.len(),
        "contract 4: 400 with the same failedCount"
    );
    let indexes: Vec<Value> = (0..faulty.len()).map(|nth| json!(nth)).collect();
    assert_eq!(
        column(&array(&answer, "/errors"), "/index"),
        indexes,
        "contract 4: 400 with the same errors"
    );
}

#[test]
fn a_batch_of_many_faults_lists_each() {
    let (_server, _, bucket) = scene::bucket();
    let source = typed_source(&bucket);
    let entry = |nth: usize| match nth % 3 {
        0 => json!({"dataSourceId": source, "values": {"level": nth}}),
        1 => json!({"dataSourceId": source, "values": {"level": "x"}}),
        _ => json!({"dataSourceId": "x", "values": {"level": nth}}),
    };
    let entries: Vec<Value> = (0..1000).map(entry).collect();
    let answer = bucket.batch(&entries).expect(207, "contract 4: 207");
    assert_eq!(
        answer["insertedCount"], 334,
        "contract 4: every entry is counted inserted or listed as failed"
    );
    assert_eq!(
        answer["failedCount"], 666,
        "contract 4: every entry is counted inserted or listed as failed"
    );
    let indexes: Vec<Value> = (0..1000)
        .filter(|nth| nth % 3 != 0)
        .map(|nth| json!(nth))
        .collect();
    assert_eq!(
        column(&array(&answer, "/errors"), "/index"),
        indexes,
        "contract 4: errors[].index ascending, all of them"
    );
    let stored: Vec<Value> = (0..1000).step_by(3).map(|nth| json!(nth)).collect();
    let mut found = column(&bucket.rows(&json!({})), "/values/level");
    found.sort_by_key(Value::as_i64);
    assert_eq!(found, stored, "contract 4: exactly the good entries are stored");
}

#[test]
fn points_with_equal_timestamps_keep_the_order_of_their_batch() {
    let (_server, _, bucket) = scene::bucket();
    let sources = [
        bucket.source("a", &["level"]),
        bucket.source("b", &["level"]),
        bucket.source("c", &["level"]),
    ];
    let now = now_ns();
    let mut expected = Vec::new();
    for batch in 0..3 {
        let numbers = batch * 100..batch * 100 + 100;
        let entry = |number: i64| {
            point(
                &sources[(number * 7 % 3) as usize],
                now,
                &json!({"level": number}),
            )
        };
        bucket.send(&numbers.clone().map(entry).collect::<Vec<_>>());
        expected.extend(numbers.map(|number| json!(number)));
    }
    let rows = bucket.rows(&json!({}));
    let sentence = "contract 4: points of one batch with one timestamp keep the order of the batch";
    assert_eq!(column(&rows, "/values/level"), expected, "{sentence}");
}

/// Every order of arrival gives the same series.
#[test]
fn points_may_come_in_any_order() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() - 20 * 24 * 60 * MINUTE;
    let mut order: Vec<i64> = (0..3000).collect();
    random.shuffle(&mut order);
    for part in order.chunks(400) {
        let points: Vec<Value> = part
            .iter()
            .map(|nth| point(&source, start + nth * 10 * SECOND, &json!({"level": nth})))
            .collect();
        bucket.send(&points);
    }
    let expected: Vec<Value> = (0..3000).map(|nth| json!(nth)).collect();
    let sentence = "contract 4: points may come in any order";
    assert_eq!(
        column(&bucket.rows(&json!({})), "/values/level"),
        expected,
        "{sentence} (seed {seed})"
    );
    server.kill();
    server.launch();
    assert_eq!(
        column(&bucket.rows(&json!({})), "/values/level"),
        expected,
        "{sentence} (seed {seed}, after a kill)"
    );
}

#[test]
fn two_points_with_one_timestamp_are_two_points() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let same = point(&source, now_ns(), &json!({"level": 1}));
    bucket.single(&same).expect(201, "a point");
    bucket.single(&same).expect(201, "the same again");
    bucket.send(&[same.clone(), same]);
    let rows = bucket.rows(&json!({}));
    assert_eq!(
        rows.len(),
        4,
        "contract 4: two points with one timestamp are two points"
    );
    let grouped = bucket.query(&json!({"aggregation": "count", "groupBy": "minute"}));
    assert_eq!(
        grouped["data"][0]["values"]["level"], 4,
        "contract 4: two points with one timestamp count twice"
    );
}
