//! Sources that are expected to send: what they show, and what webhooks hear of them, once each.

use serde_json::{Value, json};
use tidewatch::clock::Clock;

use crate::receiver::Receiver;
use crate::time::{SECOND, timestamp};
use crate::waiting::until;
use crate::world::{Scene, receiver, scene};

/// Expected seconds between two points; the source is stale after three times as many.
const INTERVAL: i64 = 20;

fn scene_with_webhook() -> (Scene, Receiver) {
    let (scene, receiver) = (scene(), receiver());
    let events = ["source.stale", "source.recovered"];
    scene
        .account
        .webhook(&json!({"url": receiver.url("/"), "events": events}));
    (scene, receiver)
}

fn now(scene: &Scene, offset: i64) -> String {
    timestamp(scene.world.clock.now_ns() + offset * SECOND)
}

impl Scene {
    fn source_path(&self, source: &str) -> String {
        format!("/api/buckets/{}/sources/{source}", self.bucket.id)
    }

    #[track_caller]
    fn patch_source(&self, source: &str, body: &Value) -> Value {
        let answer = self.call("PATCH", &self.source_path(source), body);
        answer.expect(200, "PATCH of a source")["dataSource"].clone()
    }

    fn freshness(&self, source: &str) -> Value {
        let answer = self.call("GET", &self.source_path(source), &Value::Null);
        answer.expect(200, "GET of a source")["dataSource"]["freshness"].clone()
    }

    /// A source that is expected to send.
    #[track_caller]
    fn expected_source(&self, name: &str) -> String {
        let body = json!({
            "name": name, "schema": {"level": {"type": "number"}}, "expectedIntervalSeconds": INTERVAL,
        });
        let path = format!("/api/buckets/{}/sources", self.bucket.id);
        let created = self.call("POST", &path, &body).expect(201, "a source is created");
        assert_eq!(created["dataSource"]["expectedIntervalSeconds"], INTERVAL);
        assert_eq!(
            created["dataSource"]["freshness"], "unknown",
            "14.11: no point yet"
        );
        created["dataSource"]["_id"].as_str().unwrap().to_owned()
    }

    /// Stores a point of this time, relative to now. Returns the time.
    #[track_caller]
    fn point(&self, source: &str, offset: i64) -> String {
        let at = now(self, offset);
        let body = json!({"bucketId": self.bucket.id, "dataSourceId": source, "timestamp": at, "values": {"level": 1}});
        self.call("POST", "/api/data", &body)
            .expect(201, "a point is stored");
        at
    }

    /// Waits until a stale and a recovered event of another source were told, which come after all that time has brought
    /// about by now, and asserts that this many were told of others.
    #[track_caller]
    fn assert_told_of_sources(&self, receiver: &Receiver, count: usize) {
        let last = self.expected_source("last");
        self.point(&last, -10 * INTERVAL);
        let of_last = |data: &Value| data["dataSourceId"] == last.as_str();
        until("the last source is stale", || {
            let received = receiver.received("/");
            received
                .iter()
                .any(|request| of_last(&request.json()["data"]))
                .then_some(())
        });
        let mut told = told(receiver);
        told.retain(|(_, data)| !of_last(data));
        assert_eq!(told.len(), count, "{told:?}");
    }
}

fn told(receiver: &Receiver) -> Vec<(String, Value)> {
    let received = receiver.received("/");
    let bodies = received.iter().map(|request| request.json());
    bodies
        .map(|body| (body["event"].as_str().unwrap().to_owned(), body["data"].clone()))
        .collect()
}

#[track_caller]
fn last(receiver: &Receiver, count: usize, event: &str) -> Value {
    receiver.wait("/", count);
    let (name, data) = told(receiver).pop().unwrap();
    assert_eq!(name, event, "event {count}");
    data
}

#[test]
fn a_source_that_is_silent_for_three_intervals_is_stale_until_a_new_point_comes() {
    let (mut scene, receiver) = scene_with_webhook();
    let source = scene.expected_source("pump");
    let newest = scene.point(&source, 0);
    assert_eq!(scene.freshness(&source), "fresh");
    scene.world.advance(3 * INTERVAL);
    assert_eq!(scene.freshness(&source), "fresh", "14.12: strictly older");
    let since = now(&scene, 0);
    scene.world.advance(1);
    assert_eq!(scene.freshness(&source), "stale");
    let stale = json!({
        "dataSourceId": source, "dataSourceName": "pump", "expectedIntervalSeconds": INTERVAL,
        "lastDataPoint": newest, "staleSince": since,
    });
    assert_eq!(last(&receiver, 1, "source.stale"), stale, "14.14");
    scene.world.restart(100);
    // A point that is old itself ends nothing.
    scene.point(&source, -4 * INTERVAL);
    assert_eq!(scene.freshness(&source), "stale");
    let ended = scene.point(&source, -INTERVAL);
    assert_eq!(scene.freshness(&source), "fresh");
    let mut recovered = stale;
    recovered["lastDataPoint"] = json!(ended);
    recovered["recoveredAt"] = json!(now(&scene, 0));
    assert_eq!(last(&receiver, 2, "source.recovered"), recovered, "14.14");
    scene.assert_told_of_sources(&receiver, 2);
}

#[test]
fn a_source_that_fell_silent_while_the_server_was_down_is_told_after_its_start_and_once() {
    let (mut scene, receiver) = scene_with_webhook();
    let source = scene.expected_source("pump");
    scene.point(&source, 0);
    scene.world.restart(500);
    assert_eq!(last(&receiver, 1, "source.stale")["dataSourceId"], json!(source));
    scene.world.restart(5);
    scene.assert_told_of_sources(&receiver, 1);
}

#[test]
fn a_change_of_the_interval_tells_and_one_to_or_from_unknown_does_not() {
    let (scene, receiver) = scene_with_webhook();
    let source = scene.expected_source("pump");
    // The first point is old already.
    scene.point(&source, -100);
    last(&receiver, 1, "source.stale");
    let slower = scene.patch_source(&source, &json!({"expectedIntervalSeconds": 40}));
    assert_eq!(slower["freshness"], "fresh");
    let recovered = last(&receiver, 2, "source.recovered");
    assert_eq!(recovered["expectedIntervalSeconds"], 40);
    assert_eq!(recovered["lastDataPoint"], json!(now(&scene, -100)));
    scene.patch_source(&source, &json!({"expectedIntervalSeconds": INTERVAL}));
    last(&receiver, 3, "source.stale");
    // While it is inactive or expects nothing it is unknown, which nobody hears.
    let inactive = scene.patch_source(&source, &json!({"status": "inactive"}));
    assert_eq!(inactive["freshness"], "unknown");
    assert_eq!(
        inactive["expectedIntervalSeconds"], INTERVAL,
        "a member that is absent stays"
    );
    scene.assert_told_of_sources(&receiver, 3);
    scene.patch_source(&source, &json!({"status": "active"}));
    last(&receiver, 5, "source.stale");
    let none = scene.patch_source(&source, &json!({"expectedIntervalSeconds": null}));
    assert_eq!(none["expectedIntervalSeconds"], Value::Null);
    assert_eq!(none["freshness"], "unknown");
}

#[test]
fn many_sources_that_fall_silent_at_once_are_all_told() {
    const SOURCES: usize = 60;
    let (scene, receiver) = scene_with_webhook();
    for number in 0..SOURCES {
        let source = scene.expected_source(&number.to_string());
        scene.point(&source, 5);
    }
    scene.world.advance(3 * INTERVAL + 5);
    let quiet = scene.source.clone();
    scene.point(&quiet, 0);
    assert!(
        told(&receiver).is_empty(),
        "14.12: a point in the future is fresh"
    );
    scene.world.advance(1);
    receiver.wait("/", SOURCES);
    scene.assert_told_of_sources(&receiver, SOURCES);
}
