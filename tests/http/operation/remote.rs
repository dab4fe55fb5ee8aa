//! Checkpoints in an object store: published by a running server, restored elsewhere after it was killed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::metrics::Metrics;
use crate::support::given::{Account, Bucket, point};
use crate::support::process::{Server, Setup, command, run_to_end};
use crate::support::time::{SECOND, now_ns};
use crate::support::waiting::until;

const WITHIN: Duration = Duration::from_secs(60);
const PUBLISHED: &str = "tidewatch_remote_publishes_total{outcome=\"done\"}";

fn publishing(url: &str) -> Setup {
    Setup::unlimited()
        .set("storage.remote", url)
        .set("storage.remote_period_seconds", "1")
}

fn restore(url: &str, root: &Path) -> Command {
    let mut command = command(root);
    command.args(["restore", "--from", url]);
    command
}

/// Waits until the object store has everything up to this record of the log.
fn wait_until_published(server: &Server, record: f64) {
    until("the checkpoint is published", || {
        let metrics = Metrics::of(&server.client);
        (metrics.value("tidewatch_remote_covered_record") >= record).then_some(())
    });
}

fn ingest(bucket: &Bucket, source: &str, levels: std::ops::Range<i64>) {
    let at = now_ns();
    for level in levels {
        let sent = bucket.single(&point(source, at + level * SECOND, &json!({"level": level})));
        assert_eq!(sent.status, 201, "{sent}");
    }
}

fn levels(bucket: &Bucket) -> Vec<i64> {
    let rows = bucket.rows(&json!({"order": "asc"}));
    let levels = rows.iter().map(|row| row["values"]["level"].as_i64());
    let mut levels: Vec<i64> = levels.map(|level| level.unwrap_or(-1)).collect();
    levels.sort_unstable();
    levels
}

#[test]
fn a_killed_server_is_restored_from_its_object_store_and_goes_on() {
    let store = tempfile::tempdir().unwrap();
    let url = format!("file://{}", store.path().display());
    let mut server = Server::start_with(publishing(&url));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tank");
    let source = bucket.source("gauge", &["level"]);
    ingest(&bucket, &source, 0..20);
    let records = Metrics::of(&server.client).value("tidewatch_log_records_total");
    wait_until_published(&server, records);
    let metrics = Metrics::of(&server.client);
    assert!(
        metrics.value("tidewatch_remote_uploads_total") >= 3.0,
        "{}",
        metrics.text
    );
    assert!(metrics.value("tidewatch_remote_upload_bytes_total") > 100.0);
    assert!(metrics.value("tidewatch_remote_files") >= 2.0);
    assert!(metrics.value("tidewatch_remote_age_seconds") < 60.0);
    let data_dir = server.data_dir();
    server.kill();

    let root = data_dir.parent().unwrap().to_owned();
    let (status, listed) = run_to_end(restore(&url, &root).arg("--list"), WITHIN);
    assert!(
        status.success() && listed.contains("checkpoint 1-1, taken at 20"),
        "{listed}"
    );
    let (status, verified) = run_to_end(restore(&url, &root).arg("--verify"), WITHIN);
    assert!(status.success() && verified.contains("whole"), "{verified}");

    std::fs::remove_dir_all(&data_dir).unwrap();
    let (status, output) = run_to_end(restore(&url, &root).arg("--data-dir").arg(&data_dir), WITHIN);
    assert!(status.success() && output.contains("restored to"), "{output}");
    let (status, output) = run_to_end(restore(&url, &root).arg("--data-dir").arg(&data_dir), WITHIN);
    assert!(
        !status.success() && output.contains("empty directory"),
        "{output}"
    );
    let (status, output) = run_to_end(
        command(&root).arg("check").arg("--data-dir").arg(&data_dir),
        WITHIN,
    );
    assert!(status.success() && output.contains("sound"), "{output}");

    server.launch();
    let bucket = Bucket {
        client: server.client.clone(),
        ..bucket
    };
    assert_eq!(levels(&bucket), (0..20).collect::<Vec<_>>());
    ingest(&bucket, &source, 20..25);
    assert!(server.stop().success());
    let (status, listed) = run_to_end(restore(&url, &root).arg("--list"), WITHIN);
    assert!(
        status.success() && listed.starts_with("checkpoint 2-"),
        "{listed}"
    );

    // Both checkpoints restore: the newest one, which a stop publishes, and an older one by its name.
    for (arguments, expected) in [(vec![], 25), (vec!["--checkpoint", "1-1"], 20)] {
        std::fs::remove_dir_all(&data_dir).unwrap();
        let mut command = restore(&url, &root);
        command.args(&arguments).arg("--data-dir").arg(&data_dir);
        let (status, output) = run_to_end(&mut command, WITHIN);
        assert!(status.success(), "{output}");
        server.configure(Setup::unlimited());
        server.launch();
        let bucket = Bucket {
            client: server.client.clone(),
            ..bucket.clone()
        };
        let found = levels(&bucket);
        // The first checkpoint may have been taken between two points.
        match arguments.is_empty() {
            true => assert_eq!(found, (0..expected).collect::<Vec<_>>()),
            false => assert!(found.len() <= expected as usize, "{found:?}"),
        }
        server.kill();
    }
}

#[test]
fn an_unreachable_object_store_stops_nothing() {
    let root = tempfile::tempdir().unwrap();
    let url = format!("file://{}/not-mounted", root.path().display());
    let mut server = Server::start_with(publishing(&url));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tank");
    let source = bucket.source("gauge", &["level"]);
    ingest(&bucket, &source, 0..3);
    let failed = "tidewatch_remote_publishes_total{outcome=\"failed\"}";
    until("publishing fails again and again", || {
        (Metrics::of(&server.client).value(failed) >= 2.0).then_some(())
    });
    assert_eq!(server.client.get("/ready").send().status, 200);
    ingest(&bucket, &source, 3..5);
    let warnings = server.output_lines();
    let warnings = warnings
        .iter()
        .filter(|line| line.contains("could not be published"));
    assert_eq!(warnings.count(), 1, "an outage is reported once");
    // It is back.
    std::fs::create_dir(root.path().join("not-mounted")).unwrap();
    until("a checkpoint is published", || {
        (Metrics::of(&server.client).value(PUBLISHED) >= 1.0).then_some(())
    });
    assert!(server.stop().success());
}

#[test]
fn an_unusable_url_stops_the_start() {
    let root = tempfile::tempdir().unwrap();
    for url in ["s3://", "https://example.com/a", "file://host/a", "store"] {
        let mut command = command(root.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(root.path().join("data"));
        command.env("TIDEWATCH_STORAGE__REMOTE", url);
        let (status, output) = run_to_end(&mut command, WITHIN);
        assert!(!status.success(), "{output}");
        assert!(
            output.contains("storage.remote") && output.contains(url),
            "{output}"
        );
    }
    let (status, output) = run_to_end(&mut restore("s3://", root.path()), WITHIN);
    assert!(!status.success() && !output.contains("panicked"), "{output}");
    let mut with_path = restore("backup.tar", root.path());
    let (status, output) = run_to_end(with_path.arg("--list"), WITHIN);
    assert!(!status.success() && output.contains("object store"), "{output}");
}
