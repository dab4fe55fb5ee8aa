//! Small print G: `storage.series_max`.

use serde_json::{Value, json};

use super::{labelled, split_source};
use crate::scene::{self, call};
use crate::support::time::{HOUR, SECOND, now_ns};

#[test]
fn a_point_that_would_make_one_series_too_many_is_refused_by_name() {
    let (mut server, _, bucket) = scene::bucket_on(scene::server_with("storage.series_max", "10"));
    let source = split_source(&bucket, "cpu", &json!("all"));
    let plain = bucket.source("plain", &["v"]);
    let at_ns = now_ns() - HOUR;
    let entry = |host: i64| {
        labelled(
            &source,
            at_ns + host * SECOND,
            host,
            &json!({"host": host.to_string(), "site": "s"}),
        )
    };
    bucket.send(&(0..8).map(entry).collect::<Vec<_>>());
    let sent = bucket.batch(&[
        entry(7),
        entry(8),
        entry(9),
        entry(10),
        entry(3),
        labelled(&plain, at_ns, 1, &json!({"host": "x"})),
        entry(11),
    ]);
    let sent = sent.expect(207, "contract 12: an entry error");
    assert_eq!(
        sent["insertedCount"], 5,
        "small print G2: in order, existing series go on, plain sources do not count: {sent}"
    );
    let indexes: Vec<&Value> = sent["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["index"])
        .collect();
    assert_eq!(indexes, [3, 6], "small print G2: entries are judged in order");
    let text = sent["errors"][0].to_string();
    assert!(
        text.contains("host") && text.contains("10"),
        "small print G1: names the dimension with most values: {text}"
    );
    let single = bucket.single(&entry(20));
    single.expect(400, "small print G1: a single point is 400");
    assert!(single.text().contains("host"), "small print G1: {single}");
    bucket
        .single(&entry(1))
        .expect(201, "small print G2: existing series go on");
    server.kill();
    server.launch();
    bucket
        .single(&entry(20))
        .expect(400, "the limit holds after a restart");
    let one = json!({"bucketId": bucket.id, "filters": {"dimensions": {"host": "0"}}});
    call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &one).expect(200, "delete");
    bucket
        .single(&entry(20))
        .expect(201, "small print B6: a series without points frees its place");
    bucket.single(&entry(21)).expect(400, "but one");
    let deleted = bucket
        .call("DELETE", &format!("/sources/{source}"), &Value::Null)
        .expect(200, "delete");
    assert_eq!(
        deleted["deletedResources"]["dataPoints"], 13,
        "points of all series: {deleted}"
    );
    let other = split_source(&bucket, "other", &json!("all"));
    let points: Vec<Value> = (0..10)
        .map(|host| labelled(&other, at_ns, host, &json!({"host": host})))
        .collect();
    bucket.send(&points);
}

#[test]
fn a_first_request_of_too_many_series_names_its_dimension() {
    let (_server, _, bucket) = scene::bucket_on(scene::server_with("storage.series_max", "3"));
    let source = split_source(&bucket, "cpu", &json!("all"));
    let at_ns = now_ns() - HOUR;
    let entries: Vec<Value> = (0..5)
        .map(|host| {
            labelled(
                &source,
                at_ns,
                host,
                &json!({"host": host.to_string(), "site": "s"}),
            )
        })
        .collect();
    let sent = bucket.batch(&entries).expect(207, "contract 12: an entry error");
    let text = sent["errors"][0].to_string();
    assert!(text.contains("\\\"host\\\""), "small print G1: {text}");
    let single = bucket.single(&labelled(&source, at_ns, 9, &json!({"host": "9", "site": "s"})));
    single.expect(400, "small print G1");
    assert!(single.text().contains("host"), "small print G1: {single}");
    let path = format!("/write?bucket={}", bucket.id);
    let line = bucket
        .client
        .post(&path)
        .key(&bucket.admin)
        .body("disk,host=a v=1")
        .send();
    line.expect(400, "contract 13: the line is refused");
    let sources = bucket.call("GET", "/sources", &Value::Null).json();
    assert_eq!(
        sources["totalCount"]
            .as_u64()
            .or(sources["dataSources"].as_array().map(|all| all.len() as u64)),
        Some(1),
        "small print I5: no source is created for points that are refused: {sources}"
    );
}
