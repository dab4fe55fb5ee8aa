//! Files after a crash or a disk failure: a torn end is cut, damage before the end is refused.
//!
//! Points have a text that is found in the log verbatim, so that these tests are independent of its format.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::given::{Account, Bucket};
use crate::support::process::{Server, Setup, command, run_to_end};
use crate::support::time::{SECOND, now_ns, timestamp};

const WITHIN: Duration = Duration::from_secs(30);

fn marker(nth: i64) -> String {
    format!("needle-{nth:06}-in-the-log")
}

struct Scene {
    server: Server,
    bucket: Bucket,
    source: String,
    start: i64,
}

impl Scene {
    fn new() -> Self {
        let server = Server::start_with(Setup::unlimited());
        let bucket = Account::sign_up(&server.client).bucket("tides");
        let source = bucket.source_with(&json!({"name": "texts", "schema": {"text": {"type": "string"}}}));
        Self {
            server,
            bucket,
            source,
            start: now_ns() / SECOND * SECOND,
        }
    }

    /// Sends one request for each point, so that each is acknowledged separately.
    fn write(&self, numbers: std::ops::Range<i64>) {
        for nth in numbers {
            let body = json!({
                "bucketId": self.bucket.id, "dataSourceId": self.source,
                "timestamp": timestamp(self.start + nth * SECOND), "values": {"text": marker(nth)},
            });
            let answer = self
                .bucket
                .client
                .post("/api/data")
                .key(&self.bucket.admin)
                .json(&body)
                .send();
            answer.expect(201, "spec: POST /api/data");
        }
    }

    fn texts(&self) -> Vec<String> {
        let answer = self
            .bucket
            .query(&json!({"limit": 10_000, "downsampling": false}));
        let text = |row: &Value| row["values"]["text"].as_str().unwrap_or("?").to_owned();
        answer["data"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect()
    }

    /// The file of the data directory that contains this marker, and its offset.
    fn find(&self, nth: i64) -> (PathBuf, u64) {
        let needle = marker(nth);
        for file in files(&self.server.data_dir()) {
            let bytes = fs::read(&file).unwrap();
            if let Some(at) = bytes
                .windows(needle.len())
                .position(|window| window == needle.as_bytes())
            {
                return (file, at as u64);
            }
        }
        panic!(
            "`{needle}` is in no file: texts are no longer logged as they are, and this test needs another aim"
        )
    }

    fn start_again(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.server.data_dir());
        command
            .args(arguments)
            .arg("--data-dir")
            .arg(self.server.data_dir());
        command
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

fn markers(numbers: impl Iterator<Item = i64>) -> Vec<String> {
    numbers.map(marker).collect()
}

/// R1 and R2: the torn record is cut, earlier ones are kept, and later ones are written in its place.
#[test]
fn a_torn_end_is_cut_and_writing_continues_after_it() {
    for cut in [1, 10] {
        let mut scene = Scene::new();
        scene.write(0..20);
        scene.server.kill();
        let (file, at) = scene.find(19);
        OpenOptions::new()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(at + cut)
            .unwrap();
        scene.server.launch();
        let sentence = "design: a torn last frame is cut, whatever was acknowledged before it stays";
        assert_eq!(scene.texts(), markers(0..19), "{sentence}");
        scene.write(20..30);
        scene.server.kill();
        scene.server.launch();
        let sentence =
            "design: the tail is cut before anything is appended, so nothing is lost at the second crash";
        assert_eq!(scene.texts(), markers((0..19).chain(20..30)), "{sentence}");
    }
}

/// R1: a bad frame followed by good ones is not a torn tail.
#[test]
fn damage_before_the_end_is_refused_naming_the_file() {
    let mut scene = Scene::new();
    scene.write(0..20);
    scene.server.kill();
    let (file, at) = scene.find(7);
    let open = OpenOptions::new().write(true).open(&file).unwrap();
    open.write_at(b"X", at + 3).unwrap();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"]] {
        let (status, output) = run_to_end(&mut scene.start_again(arguments), WITHIN);
        let sentence = "design: corruption is refused, file and offset are said";
        assert!(!status.success(), "{sentence} ({arguments:?}): {output}");
        assert!(
            output.contains(&name),
            "{sentence} ({arguments:?}), `{name}` is not in: {output}"
        );
        assert!(
            !output.contains("panicked"),
            "corruption must not panic ({arguments:?}): {output}"
        );
    }
    // The refused start altered nothing: with the byte restored, all points are present.
    open.write_at(&marker(7).as_bytes()[3..4], at + 3).unwrap();
    let (status, output) = run_to_end(&mut scene.start_again(&["check"]), WITHIN);
    assert!(
        status.success(),
        "`tidewatch check` finds no fault in a sound directory: {output}"
    );
    scene.server.launch();
    assert_eq!(
        scene.texts(),
        markers(0..20),
        "a refused start changes nothing on disk"
    );
}

/// R11: unknown files are kept and do not prevent a start.
#[test]
fn stray_files_do_not_prevent_a_start() {
    let mut scene = Scene::new();
    scene.write(0..5);
    scene.server.stop();
    let root = scene.server.data_dir();
    let directories: Vec<PathBuf> = std::iter::once(root.clone())
        .chain(
            files(&root)
                .iter()
                .filter_map(|file| file.parent().map(Path::to_path_buf)),
        )
        .collect();
    let stray: Vec<PathBuf> = directories
        .iter()
        .map(|directory| directory.join("notes.txt"))
        .collect();
    for file in &stray {
        fs::write(file, "of the administrator").unwrap();
    }
    scene.server.launch();
    assert_eq!(
        scene.texts(),
        markers(0..5),
        "reliability: start-up tolerates files it does not know"
    );
    assert!(
        stray.iter().all(|file| file.exists()),
        "reliability: unknown files are kept"
    );
}
