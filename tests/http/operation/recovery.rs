//! Answers during the recovery of the data directory.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::logged_server::LoggedServer;
use crate::scene;
use crate::support::process::command;
use crate::support::waiting::until;

/// A recovery that blocks at the manifest, which is replaced by an empty pipe.
pub struct BlockedRecovery {
    path: PathBuf,
    manifest: Vec<u8>,
}

impl BlockedRecovery {
    pub fn of(data_dir: &Path) -> Self {
        let path = data_dir.join("manifest");
        let manifest = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self { path, manifest }
    }

    /// Writes the manifest, so that recovery continues.
    pub fn finish(self) {
        fs::write(self.path, self.manifest).unwrap();
    }
}

#[test]
fn health_answers_during_recovery_and_ready_only_after_it() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point = json!({"dataSourceId": source, "values": {"level": 1}});
    bucket.single(&point).expect(201, "a point");
    assert!(server.stop().success());

    let held = BlockedRecovery::of(&server.data_dir());
    let recovering = LoggedServer::recovering(
        command(&server.data_dir())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(server.data_dir()),
    );
    server.client.point_at(&recovering.base);
    for _ in 0..3 {
        let health = server.client.get("/health").send();
        assert_eq!(health.status, 200, "the process lives: {health}");
        assert!(health.header("x-request-id").is_some(), "{health}");
        let wrong = server.client.post("/health").send();
        wrong.refused(405, "contract 1: wrong methods are 405 with Allow");
        assert_eq!(wrong.header("allow"), Some("GET, HEAD"), "{wrong}");
        for path in ["/ready", "/api/buckets", "/metrics", "/no/such/route"] {
            let answer = server.client.get(path).key(&bucket.admin).send();
            let body = answer.expect(503, "nothing is served before recovery is done");
            let message = body["message"].as_str().unwrap_or_default();
            assert!(message.contains("recovering"), "{path}: {answer}");
            assert!(answer.header("retry-after").is_some(), "{path}: {answer}");
        }
        let refused = bucket.single(&point);
        assert_eq!(refused.status, 503, "nothing is stored either: {refused}");
    }
    assert!(
        !recovering.log().contains("listening on"),
        "it would be too early"
    );

    held.finish();
    until("recovery is done", || {
        let answer = server.client.get("/ready").try_send().ok()?;
        (answer.status == 200).then_some(())
    });
    assert_eq!(bucket.rows(&json!({})).len(), 1, "who is ready has all there is");
    bucket.single(&point).expect(201, "and takes more");
}
