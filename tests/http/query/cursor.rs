//! Cursors: the next page starts exactly after the last row, regardless of later arrivals.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};
use crate::support::client::Answer;
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, SECOND, now_ns, timestamp};

fn levels(answer: &Value) -> Vec<i64> {
    column(&array(answer, "/data"), "/values/level")
        .iter()
        .filter_map(Value::as_i64)
        .collect()
}

/// Sends points 0..count, three for each timestamp.
fn fill(bucket: &Bucket, source: &str, start: i64, count: i64) {
    let points: Vec<Value> = (0..count)
        .map(|nth| point(source, start + nth / 3 * SECOND, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
}

#[test]
fn pages_by_cursor_give_all_rows_in_both_orders() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    fill(&bucket, &source, now_ns(), 2000);
    for sort in ["asc", "desc"] {
        let mut expected: Vec<i64> = (0..2000).collect();
        if sort == "desc" {
            expected.reverse();
        }
        let mut found = Vec::new();
        let mut body = json!({"sort": sort, "downsampling": false});
        let mut restarts = 0;
        loop {
            // Another page size each time: a cursor is a position, not a page.
            body["limit"] = json!(random.usize(1..400));
            let answer = bucket.query(&body);
            let rows = levels(&answer);
            assert_eq!(
                answer["metadata"]["count"],
                rows.len(),
                "contract 5: count is the number of rows in this answer"
            );
            found.extend(rows);
            if answer["metadata"]["hasMore"] == false {
                assert!(
                    answer["metadata"]["nextCursor"].is_null(),
                    "no cursor after the last row"
                );
                break;
            }
            body["cursor"] = answer["metadata"]["nextCursor"].clone();
            if restarts < 2 && found.len() > 600 * (restarts + 1) {
                restarts += 1;
                server.kill();
                server.launch();
            }
        }
        let sentence = "contract 5, 10: cursors go on exactly behind the last row and survive restarts";
        assert_eq!(found, expected, "{sentence} ({sort}, seed {seed})");
        assert!(restarts > 0, "the test restarted the server between pages");
    }
}

#[test]
fn points_arriving_before_the_cursor_shift_nothing_later_ones_appear() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns();
    fill(&bucket, &source, start, 300);
    // 100 rows are read: level 99 is the last, at second 33, where levels 100 and 101 are also.
    let first = bucket.query(&json!({"limit": 100, "downsampling": false}));
    assert_eq!(levels(&first), (0..100).collect::<Vec<_>>(), "the first page");
    let arrivals = [
        (start - 5 * SECOND, 1000),
        (start + 33 * SECOND - 1, 1001),
        (start + 10 * SECOND, 1002),
        (start + 33 * SECOND, 2000),
        (start + 33 * SECOND + 1, 2001),
        (start + 99 * SECOND, 2002),
        (start + DAY, 2003),
    ];
    bucket.send(&arrivals.map(|(at, level)| point(&source, at, &json!({"level": level}))));
    let sentence = "contract 5: the answer goes on exactly behind the last row, whatever has arrived since";
    let rest = bucket
        .query(&json!({"limit": 1000, "downsampling": false, "cursor": first["metadata"]["nextCursor"]}));
    let mut expected = vec![100, 101, 2000, 2001];
    expected.extend(102..300);
    expected.extend([2002, 2003]);
    assert_eq!(levels(&rest), expected, "{sentence}");

    // The same position in the opposite order.
    let all = bucket.query(&json!({"limit": 1000, "downsampling": false, "sort": "desc"}));
    let page = bucket.query(&json!({"limit": 50, "downsampling": false, "sort": "desc"}));
    bucket.send(&[point(&source, start + 2 * DAY, &json!({"level": 3000}))]);
    let body = json!({"limit": 1000, "downsampling": false, "sort": "desc", "cursor": page["metadata"]["nextCursor"]});
    assert_eq!(
        levels(&bucket.query(&body)),
        levels(&all)[50..],
        "{sentence} (desc)"
    );
}

#[test]
fn a_cursor_belongs_to_its_bucket_filter_and_sort() {
    let (_server, account, bucket) = scene::bucket();
    let (source, second) = (
        bucket.source("gauge", &["level", "depth"]),
        bucket.source("second", &["level", "depth"]),
    );
    let other = account.bucket("other");
    let elsewhere = other.source("gauge", &["level"]);
    let start = now_ns();
    fill(&bucket, &source, start, 50);
    fill(&bucket, &second, start, 50);
    fill(&other, &elsewhere, start, 50);
    let filters = json!({
        "dataSourceIds": [source], "startTime": timestamp(start), "endTime": timestamp(start + DAY), "fields": ["level"],
        "metadata": {},
    });
    let body = json!({"filters": filters, "limit": 5, "sort": "asc", "downsampling": false});
    let cursor = bucket.query(&body)["metadata"]["nextCursor"].clone();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = body.clone();
        body["cursor"] = cursor.clone();
        change(&mut body);
        body
    };
    let fits = with(&|_| ());
    assert_eq!(
        levels(&bucket.query(&fits)),
        [5, 6, 7, 8, 9],
        "the cursor itself is good"
    );
    let sentence =
        "contract 10: a cursor with another bucket, filter or sort than it was made for: 400 at `cursor`";
    assert_faults(
        &other.post_query(&json!({"limit": 5, "cursor": cursor, "downsampling": false})),
        &["cursor"],
        sentence,
    );
    let changes: [&dyn Fn(&mut Value); 9] = [
        &|body| body["sort"] = json!("desc"),
        &|body| body["filters"]["dataSourceIds"] = json!([second]),
        &|body| body["filters"]["dataSourceIds"] = json!([source, second]),
        &|body| body["filters"]["dataSourceIds"] = json!([]),
        &|body| body["filters"]["startTime"] = json!(timestamp(start - 1)),
        &|body| body["filters"]["endTime"] = json!(timestamp(start + DAY + 1)),
        &|body| body["filters"]["fields"] = json!(["depth"]),
        &|body| body["filters"]["fields"] = json!(["level", "depth"]),
        &|body| body["filters"]["metadata"] = json!({"a": 1}),
    ];
    for change in changes {
        let body = with(change);
        assert_faults(
            &bucket.post_query(&body),
            &["cursor"],
            &format!("{sentence} ({body})"),
        );
    }
    let sentence = "contract 10: a cursor with `offset`: 400 at `cursor`";
    assert_faults(
        &bucket.post_query(&with(&|body| body["offset"] = json!(5))),
        &["cursor"],
        sentence,
    );
}

#[test]
fn a_forged_cursor_is_400() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    fill(&bucket, &source, now_ns(), 50);
    let cursor = bucket.query(&json!({"limit": 5, "downsampling": false}))["metadata"]["nextCursor"].clone();
    let cursor = cursor
        .as_str()
        .unwrap_or_else(|| panic!("contract 5: nextCursor with more to come"))
        .to_owned();
    let query_from = |cursor: &str| -> Answer {
        bucket.post_query(&json!({"limit": 5, "downsampling": false, "cursor": cursor}))
    };
    query_from(&cursor).expect(200, "the cursor itself is good");
    let malformed = [
        String::new(),
        "x".to_owned(),
        "AAAA".to_owned(),
        "0".repeat(500),
        "é".to_owned(),
        "../../etc/passwd".to_owned(),
        cursor[..cursor.len() / 2].to_owned(),
        cursor[1..].to_owned(),
        format!("{cursor}{cursor}"),
        format!("{cursor} "),
        cursor.chars().rev().collect(),
    ];
    for wrong in malformed {
        assert_faults(
            &query_from(&wrong),
            &["cursor"],
            &format!("contract 10: a malformed cursor is 400 at `cursor` (`{wrong}`)"),
        );
    }
    // One changed character: the cursor is refused or is still a position in the same list; never a 500.
    for at in 0..cursor.len() {
        let mut changed = cursor.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let answer = query_from(&String::from_utf8(changed).unwrap());
        match answer.status {
            400 => drop(answer.refused(400, "contract 10: a malformed cursor is 400")),
            status => assert_eq!(status, 200, "a cursor with character {at} changed: {answer}"),
        }
    }
}
