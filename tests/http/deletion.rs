//! Contract 11: `POST /api/data/delete`, and its small print (M).

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_faults, call, column};
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, point};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};

const DELETE: &str =
    "contract 11: POST /api/data/delete removes the matching points from queries when it answers";

fn post(bucket: &Bucket, body: &Value) -> Answer {
    let mut body = body.clone();
    body["bucketId"] = json!(bucket.id);
    call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &body)
}

/// Deletes; returns the number of deleted points.
#[track_caller]
fn delete(bucket: &Bucket, filters: &Value) -> u64 {
    let answer = post(bucket, &json!({"filters": filters})).expect(200, DELETE);
    assert!(
        answer["message"].is_string(),
        "contract 11: {{message, deletedCount}}: {answer}"
    );
    assert!(
        answer.get("dryRun").is_none(),
        "small print M4: dryRun only of a dry run"
    );
    answer["deletedCount"].as_u64().unwrap()
}

/// Points of a level each, a second apart, with the parity in their metadata.
fn points(source: &str, first_ns: i64, count: i64) -> Vec<Value> {
    let of_level = |level: i64| {
        let mut point = point(source, first_ns + level * SECOND, &json!({"level": level}));
        point["metadata"] =
            json!({"parity": if level % 2 == 0 { "even" } else { "odd" }, "nested": {"tens": level / 10}});
        point
    };
    (0..count).map(of_level).collect()
}

fn levels(rows: &[Value]) -> Vec<i64> {
    column(rows, "/values/level")
        .iter()
        .map(|level| level.as_i64().unwrap())
        .collect()
}

/// Filters, and whether they select a level.
type Case = (Value, fn(i64) -> bool);

/// The points that each filter selects, of those that [`points`] makes.
fn cases(source: &str, first_ns: i64) -> Vec<Case> {
    let at = |level: i64| timestamp(first_ns + level * SECOND);
    vec![
        (json!({"startTime": at(10), "endTime": at(19)}), |level| {
            (10..=19).contains(&level)
        }),
        (json!({"endTime": at(5)}), |level| level <= 5),
        (json!({"metadata": {"parity": "odd"}}), |level| level % 2 == 1),
        (json!({"metadata": {"nested.tens": 3}}), |level| level / 10 == 3),
        (json!({"values": {"level": {"gte": 40, "lt": 45}}}), |level| {
            (40..45).contains(&level)
        }),
        (
            json!({"startTime": at(50), "values": {"level": {"in": [2, 50, 52]}}}),
            |level| level == 50 || level == 52,
        ),
        (json!({"dataSourceIds": [source], "startTime": null}), |_| true),
    ]
}

#[test]
fn each_filter_deletes_what_it_selects_and_nothing_else_also_after_a_kill() {
    for sealed in [false, true] {
        let (mut server, _, bucket) = match sealed {
            true => scene::sealing_bucket(),
            false => scene::bucket(),
        };
        let (one, other) = (
            bucket.source("one", &["level"]),
            bucket.source("other", &["level"]),
        );
        let first_ns = now_ns() - HOUR;
        bucket.send(&points(&other, first_ns, 100));
        let mut expected: Vec<i64> = (0..100).collect();
        bucket.send(&points(&one, first_ns, 100));
        for (filters, selects) in cases(&one, first_ns) {
            let selected = expected.iter().filter(|level| selects(**level)).count() as u64;
            let mut filters = filters;
            filters["dataSourceIds"] = json!([one]);
            let counted = post(&bucket, &json!({"filters": filters, "dryRun": true}));
            let counted = counted.expect(200, "small print M4: a dry run");
            assert_eq!(
                counted["deletedCount"], selected,
                "small print M4: the same count: {filters}"
            );
            assert_eq!(counted["dryRun"], true, "small print M4: plus dryRun: true");
            assert_eq!(
                levels(&bucket.rows(&json!({"dataSourceIds": [one]}))),
                expected,
                "a dry run deletes nothing"
            );
            assert_eq!(delete(&bucket, &filters), selected, "{filters}");
            expected.retain(|level| !selects(*level));
            let left = |bucket: &Bucket| levels(&bucket.rows(&json!({"dataSourceIds": [one]})));
            assert_eq!(left(&bucket), expected, "{DELETE}: {filters}");
            assert_eq!(delete(&bucket, &filters), 0, "nothing is left to delete");
            server.kill();
            server.launch();
            assert_eq!(left(&bucket), expected, "contract 11: durable: {filters}");
        }
        let kept: Vec<i64> = (0..100).collect();
        assert_eq!(
            levels(&bucket.rows(&json!({"dataSourceIds": [other]}))),
            kept,
            "another source keeps all"
        );
    }
}

#[test]
fn statistics_and_groups_are_as_if_the_points_had_never_come() {
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["level"]);
    let first_ns = (now_ns() - 5 * HOUR) / HOUR * HOUR;
    let all: Vec<Value> = (0..10_000)
        .map(|level| point(&source, first_ns + level * SECOND, &json!({"level": level})))
        .collect();
    bucket.send(&all);
    // Of each hour, the second half; of the last rows, all.
    assert_eq!(
        delete(
            &bucket,
            &json!({"values": {"level": {"gte": 1_800, "lt": 3_600}}})
        ),
        1_800
    );
    assert_eq!(
        delete(
            &bucket,
            &json!({"startTime": timestamp(first_ns + 7_200 * SECOND)})
        ),
        2_800
    );

    let answer = bucket.call("GET", &format!("/sources/{source}"), &Value::Null);
    let found = answer.expect(200, "spec: GET of a source");
    let stats = &found["dataSource"]["stats"];
    assert_eq!(
        stats["totalDataPoints"], 5_400,
        "small print M6: stats of the source: {found}"
    );
    assert_eq!(
        stats["lastDataPoint"],
        timestamp(first_ns + 7_199 * SECOND),
        "small print M6: {found}"
    );
    let listed = bucket
        .call("GET", "", &Value::Null)
        .expect(200, "spec: GET of a bucket");
    assert_eq!(
        listed["bucket"]["stats"]["dataPointCount"], 5_400,
        "small print M6: stats of the bucket: {listed}"
    );
    let groups = json!({"aggregation": ["count", "sum", "max"], "groupBy": "hour"});
    let found = bucket.query(&groups);
    let rows = array(&found, "/data");
    let count_of = |row: &Value| row["values"]["level"]["count"].as_u64().unwrap();
    assert_eq!(
        rows.iter().map(count_of).collect::<Vec<_>>(),
        [1_800, 3_600],
        "contract 11: from rollups"
    );
    assert_eq!(rows[0]["values"]["level"]["max"], 1_799);
    assert_eq!(rows[0]["values"]["level"]["sum"], 1_799 * 1_800 / 2);
    let path = format!("/api/analytics/buckets/{}", bucket.id);
    let analytics = call(&bucket.client, &bucket.admin, "GET", &path, &Value::Null);
    let analytics = analytics.expect(200, "spec: analytics of a bucket");
    assert_eq!(
        analytics["analytics"]["summary"]["totalDataPoints"], 5_400,
        "small print M6: analytics: {analytics}"
    );
    assert_eq!(delete(&bucket, &json!({"dataSourceIds": [source]})), 5_400);
    let found = bucket.call("GET", &format!("/sources/{source}"), &Value::Null);
    let found = found.expect(200, "spec: GET of a source");
    let stats = &found["dataSource"]["stats"];
    assert_eq!(stats["totalDataPoints"], 0, "{found}");
    assert_eq!(stats["lastDataPoint"], Value::Null, "{found}");
    assert_eq!(
        stats["averageIntervalSeconds"],
        Value::Null,
        "small print M6: null below 2: {found}"
    );
}

#[test]
fn later_points_stay_replays_bring_nothing_back_and_cursors_go_on() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let first_ns = now_ns() - HOUR;
    let body = json!({"bucketId": bucket.id, "dataPoints": points(&source, first_ns, 30)}).to_string();
    let send = || {
        let request = bucket.client.post("/api/data/batch").key(&bucket.admin);
        request
            .header("Idempotency-Key", "once")
            .body(body.as_str())
            .send()
    };
    send().expect(201, "spec: a batch");
    let page = bucket.query(&json!({"limit": 10, "downsampling": false}));
    let before = array(&page, "/data");
    let filters =
        json!({"startTime": timestamp(first_ns + 5 * SECOND), "endTime": timestamp(first_ns + 14 * SECOND)});
    assert_eq!(delete(&bucket, &filters), 10);

    let cursor = &page["metadata"]["nextCursor"];
    let next = bucket.query(&json!({"limit": 10, "downsampling": false, "cursor": cursor}));
    let expected: Vec<i64> = (15..25).collect();
    assert_eq!(
        levels(&array(&next, "/data")),
        expected,
        "small print M7: a cursor goes on behind its last row"
    );

    let again = send();
    again.expect(201, "contract 4: a replay");
    assert_eq!(
        bucket.rows(&json!({})).len(),
        20,
        "small print M7: a replay brings nothing back"
    );

    let same_instant = point(&source, first_ns + 7 * SECOND, &json!({"level": 7}));
    let stored = bucket.single(&same_instant).expect(201, "spec: a point");
    let id = &stored["dataPoint"]["_id"];
    let rows = bucket.rows(&json!({}));
    assert_eq!(
        rows.len(),
        21,
        "small print M7: points that come later are kept, with the same instants too"
    );
    assert!(column(&rows, "/_id").contains(id), "{rows:?}");
    assert!(
        !column(&before, "/_id").contains(id),
        "small print M7: they have new ids"
    );
}

#[test]
fn who_may_delete_and_what_is_refused() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&points(&source, now_ns() - HOUR, 3));
    let some = json!({"bucketId": bucket.id, "filters": {"dataSourceIds": [source]}});
    for kind in ["write", "read"] {
        for dry_run in [false, true] {
            let mut body = some.clone();
            body["dryRun"] = json!(dry_run);
            call(
                &bucket.client,
                &bucket.key(kind),
                "POST",
                "/api/data/delete",
                &body,
            )
            .refused(403, "small print M1: write and read keys 403, with dryRun too");
        }
    }
    let nothing = "small print M2: at least one filter, else 400 at filters";
    for filters in [
        json!({}),
        Value::Null,
        json!({"dataSourceIds": []}),
        json!({"metadata": {}, "values": {}}),
        json!({"startTime": null, "endTime": null}),
    ] {
        assert_faults(
            &post(&bucket, &json!({"filters": filters})),
            &["filters"],
            nothing,
        );
    }
    assert_faults(&post(&bucket, &json!({})), &["filters"], nothing);
    let of_source = |member: &str, value: Value| {
        let mut filters = json!({"dataSourceIds": [source]});
        filters[member] = value;
        post(&bucket, &json!({"filters": filters}))
    };
    assert_faults(
        &of_source("fields", json!(["level"])),
        &["filters/fields"],
        "small print M3: 400 at filters.fields",
    );
    assert_faults(
        &of_source("startTme", json!("2026-01-01T00:00:00Z")),
        &["filters/startTme"],
        "small print M5: an unknown member of filters is 400 at its path",
    );
    assert_faults(
        &of_source("values", json!({"depth": {"gt": 1}})),
        &["filters/values/depth"],
        "small print A4: an unknown field is 400",
    );
    let unknown = json!({"filters": {"dataSourceIds": [UNKNOWN_ID]}});
    post(&bucket, &unknown).refused(404, "contract 3: an unknown source");
    let foreign = Account::sign_up(&server.client).bucket("foreign");
    let mut theirs = some.clone();
    theirs["bucketId"] = json!(foreign.id);
    call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &theirs)
        .refused(404, "contract 2: another organization's bucket");
    assert_eq!(
        bucket.rows(&json!({})).len(),
        3,
        "what is refused deletes nothing"
    );
    let by_bearer = account
        .client
        .post("/api/data/delete")
        .bearer(&account.token)
        .json(&some);
    let deleted = by_bearer.send().expect(200, "small print M1: the bearer");
    assert_eq!(deleted["deletedCount"], 3);
}

#[test]
fn rules_and_their_histories_stay() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&points(&source, now_ns() - MINUTE, 3));
    let rule = bucket.evaluated_rule("level", &source);
    let path = format!("/api/alerts/{rule}");
    let before = call(&bucket.client, &bucket.admin, "GET", &path, &Value::Null).expect(200, "spec: a rule");
    assert_eq!(delete(&bucket, &json!({"dataSourceIds": [source]})), 3);
    let after = call(&bucket.client, &bucket.admin, "GET", &path, &Value::Null).expect(200, "spec: a rule");
    assert_eq!(
        after["alertRule"], before["alertRule"],
        "small print M6: an evaluation's state does not change"
    );
}
