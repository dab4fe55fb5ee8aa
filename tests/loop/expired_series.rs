//! Small print B6 and G: a series whose points have all expired frees its place under `storage.series_max`.

use std::sync::Arc;

use disk::{Disk, StdDisk};
use serde_json::{Value, json};
use tidewatch::checkpoint::Manifest;
use tidewatch::ledger::LedgerFiles;
use tidewatch::series::SeriesIndex;

use crate::client::Answer;
use crate::time::{HOUR, timestamp};
use crate::world::{START, Scene, scene_with};

const HOUR_SECONDS: i64 = 3_600;
const B6: &str = "small print B6: a series without points frees its place";

/// Sends a point of the source's series of this host.
#[track_caller]
fn send(scene: &Scene, source: &str, host: &str, at_ns: i64) -> Answer {
    scene.call(
        "POST",
        "/api/data",
        &json!({
            "bucketId": scene.bucket.id, "dataSourceId": source, "timestamp": timestamp(at_ns),
            "values": {"v": 1}, "metadata": {"host": host},
        }),
    )
}

/// The hosts whose series have points.
#[track_caller]
fn hosts(scene: &Scene, source: &str) -> Vec<Value> {
    let path = format!("/api/buckets/{}/sources/{source}/series", scene.bucket.id);
    let listed = scene
        .call("GET", &path, &Value::Null)
        .expect(200, "small print C");
    let listed = listed["series"].as_array().cloned().unwrap_or_default();
    listed
        .iter()
        .map(|series| series["dimensions"]["host"].clone())
        .collect()
}

#[test]
fn a_series_whose_points_have_expired_frees_its_place() {
    let mut scene = scene_with(|config| config.storage.series_max = 2);
    let path = format!("/api/buckets/{}", scene.bucket.id);
    scene
        .call("PATCH", &path, &json!({"retentionDays": 1}))
        .expect(200, "contract 3: PATCH");
    let source = scene.bucket.source_with(&json!({
        "name": "cpu", "schema": {"v": {"type": "number"}}, "schemaMode": "extend", "dimensions": "all",
    }));
    send(&scene, &source, "old", *START - 23 * HOUR).expect(201, "the first series");
    send(&scene, &source, "young", *START - HOUR).expect(201, "the second series");
    send(&scene, &source, "new", *START).expect(400, "small print G1: no room for a third");
    scene.world.advance(2 * HOUR_SECONDS);
    assert_eq!(hosts(&scene, &source), ["young"], "small print B6: in no listing");
    send(&scene, &source, "new", *START).expect(201, B6);
    send(&scene, &source, "newer", *START).expect(400, "only one");
    for restart in 0..2 {
        let answer = send(&scene, &source, "old", *START + HOUR);
        answer.expect(400, "an expired series needs a place as a new one does");
        if restart == 0 {
            scene.world.restart(0);
        }
    }
    // It comes back when another has ended.
    scene.world.advance(22 * HOUR_SECONDS);
    send(&scene, &source, "old", *START + 23 * HOUR).expect(201, B6);
    send(&scene, &source, "newer", *START + 23 * HOUR).expect(400, "only one");
    assert_eq!(
        hosts(&scene, &source),
        ["old", "new"],
        "small print C2: in a stable order"
    );
}

/// Takes a checkpoint, as each deletion of points does.
#[track_caller]
fn checkpoint(scene: &Scene) {
    let body = json!({"bucketId": scene.bucket.id, "filters": {"dataSourceIds": [scene.source]}});
    let deleted = scene.call("POST", "/api/data/delete", &body);
    assert_eq!(deleted.expect(200, "contract 11: delete")["deletedCount"], 0);
}

/// Number of series in the index that a stopped server has left.
fn indexed(scene: &Scene) -> usize {
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let data_dir = scene.world.data_dir();
    let manifest = Manifest::read(&*disk, &data_dir).unwrap().unwrap();
    let files = LedgerFiles::open(Arc::clone(&disk), &data_dir, &manifest.runs)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut count = 0;
    for bucket in manifest.buckets.keys() {
        let index = SeriesIndex::open(*bucket, files.ledger().clone()).unwrap();
        index.for_each_saved(|_| count += 1).unwrap();
    }
    count
}

#[test]
fn series_whose_points_have_expired_leave_the_index_and_come_back_as_new_ones() {
    let mut scene = scene_with(|_| {});
    let path = format!("/api/buckets/{}", scene.bucket.id);
    scene
        .call("PATCH", &path, &json!({"retentionDays": 1}))
        .expect(200, "contract 3: PATCH");
    let source = scene.bucket.source_with(&json!({
        "name": "cpu", "schema": {"v": {"type": "number"}}, "schemaMode": "extend", "dimensions": "all",
    }));
    for host in ["a", "b", "c"] {
        send(&scene, &source, host, *START).expect(201, "the first points");
    }
    checkpoint(&scene);
    // Expired points are removed when they had expired at two checkpoints an hour apart.
    let mut at_ns = *START;
    for hours in [25, 2] {
        scene.world.advance(hours * HOUR_SECONDS);
        at_ns += hours * HOUR;
        send(&scene, &source, "c", at_ns).expect(201, "a series that goes on");
        checkpoint(&scene);
    }
    assert_eq!(hosts(&scene, &source), ["c"]);
    scene.world.stop();
    assert_eq!(indexed(&scene), 1, "only c has points");
    scene.world.launch();
    send(&scene, &source, "a", at_ns).expect(201, "it comes back");
    for _ in 0..2 {
        assert_eq!(
            hosts(&scene, &source),
            ["c", "a"],
            "small print C2: in a stable order"
        );
        scene.world.restart(0);
    }
    scene.world.stop();
    assert_eq!(indexed(&scene), 2);
    scene.world.launch();
}
