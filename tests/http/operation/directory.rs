//! A data directory that is removed under a running server.

use std::fs;

use serde_json::json;

use crate::scene;
use crate::support::waiting::until;

/// Regression: points were still acknowledged, although a restart would not find their files.
#[test]
fn a_missing_data_directory_ends_writing_until_a_restart() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point = json!({"dataSourceId": source, "values": {"level": 1}});
    bucket.single(&point).expect(201, "a point");

    let (data_dir, away) = (server.data_dir(), server.data_dir().with_extension("away"));
    fs::rename(&data_dir, &away).unwrap();
    let refused = until("it is noticed", || {
        let ready = server.client.get("/ready").send();
        (ready.status == 503).then_some(ready)
    });
    assert!(
        refused
            .text()
            .contains("the data directory is not there any more"),
        "{refused}"
    );
    let before = points(&server);
    let body = bucket.single(&point).expect(503, "it would be lost");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains("data directory"), "{message}");
    assert_eq!(points(&server), before);

    // The server uses neither another directory in its place nor the restored original one.
    fs::create_dir(&data_dir).unwrap();
    bucket.single(&point).expect(503, "it is another one");
    assert_eq!(
        scene::files(&data_dir),
        [] as [std::path::PathBuf; 0],
        "nothing is written there"
    );
    fs::remove_dir(&data_dir).unwrap();
    fs::rename(&away, &data_dir).unwrap();
    bucket.single(&point).expect(503, "until a restart");
    server.client.get("/ready").send().expect(503, "until a restart");
    let is_report = |line: &&String| line.contains("the data directory was removed or replaced");
    assert_eq!(
        server.output_lines().iter().filter(is_report).count(),
        1,
        "logged once"
    );

    server.kill();
    server.launch();
    assert_eq!(bucket.rows(&json!({})).len() as u64, before);
    bucket.single(&point).expect(201, "writes are accepted again");
}

/// Number of points in the bucket.
fn points(server: &crate::support::process::Server) -> u64 {
    let metrics = server.client.get("/metrics").send().text();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("tidewatch_ingest_points_total "));
    line.unwrap().parse().unwrap()
}
