//! `tidewatch import`: several files, refused rows, and what happens when it or the server is killed.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::{bucket, source, values};
use crate::scene;
use crate::support::given::Bucket;
use crate::support::process::{Server, Setup, command, run_to_end};
use crate::support::waiting::until_within;

const WITHIN: Duration = Duration::from_secs(120);

fn import(bucket: &Bucket, directory: &Path, files: &[&str], more: &[&str]) -> Command {
    let mut import = command(directory);
    import.arg("import").args(files);
    import.args([
        "--url",
        &bucket.client.base(),
        "--bucket",
        &bucket.id,
        "--source",
        "file",
    ]);
    import.args(more).env("TIDEWATCH_KEY", &bucket.admin);
    import
}

fn points(bucket: &Bucket) -> u64 {
    source(bucket, "file").map_or(0, |source| source["stats"]["totalDataPoints"].as_u64().unwrap())
}

#[test]
fn files_are_imported_one_after_the_other_and_refused_rows_are_named() {
    let (_server, _, bucket) = bucket();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "a.csv",
        "time,host,v\n2026-01-01T00:00:00Z,x,1\n2026-01-01T00:00:01Z,x,\"2\n\"\n2026-01-01T00:00:02Z,x\n",
    );
    write(
        "b.jsonl",
        "{\"time\":\"2026-01-01T00:00:05Z\",\"v\":5,\"host\":\"y\"}\n",
    );
    let (status, output) = run_to_end(
        &mut import(
            &bucket,
            directory.path(),
            &["a.csv", "b.jsonl"],
            &["--dimensions", "host"],
        ),
        WITHIN,
    );
    assert!(!status.success(), "rows were refused: {output}");
    assert!(output.contains("a.csv, line 5: "), "{output}");
    assert!(
        output.contains("a.csv: 1 rows stored, 0 were there already, 2 refused"),
        "{output}"
    );
    assert!(output.contains("b.jsonl: 1 rows stored"), "{output}");
    assert_eq!(values(&bucket), [json!({"v": 1}), json!({"v": 5})]);
    // By name, with an admin key; a second time all is there.
    let mut again = command(directory.path());
    again.args([
        "import",
        "b.jsonl",
        "--url",
        &bucket.client.base(),
        "--source",
        "file",
        "--dimensions",
        "host",
    ]);
    let name = bucket.call("GET", "", &serde_json::Value::Null).json()["bucket"]["name"].clone();
    again.args(["--bucket", name.as_str().unwrap(), "--key", &bucket.admin]);
    let (status, output) = run_to_end(&mut again, WITHIN);
    assert!(
        status.success() && output.contains("0 rows stored, 1 were there already"),
        "{output}"
    );
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        2,
        "nothing is left beside the files"
    );
}

#[test]
fn what_the_service_refuses_is_said() {
    let (_server, _, bucket) = bucket();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.csv"), "when,v\n1,2\n").unwrap();
    fs::write(directory.path().join("a.txt"), "").unwrap();
    for (file, more, expected) in [
        ("a.csv", &[][..], "no column"),
        ("a.txt", &[], "give --format"),
        ("none.csv", &[], "none.csv"),
        ("a.csv", &["--time", "nope"], "no column \"nope\""),
    ] {
        let (status, output) = run_to_end(&mut import(&bucket, directory.path(), &[file], more), WITHIN);
        assert!(!status.success(), "{output}");
        assert!(output.contains(expected), "{expected}: {output}");
    }
}

/// Whoever is killed, each row is stored once, in a source that keeps duplicates.
#[test]
fn an_import_that_is_killed_goes_on_where_it_was() {
    // The server has the same address when it is started again.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let (mut server, _, bucket) = scene::bucket_on(Server::start_with(Setup {
        address: Some(address),
        ..Setup::unlimited()
    }));
    let schema = json!({"v": {"type": "number"}, "text": {"type": "string"}});
    bucket.source_with(&json!({"name": "file", "schema": schema}));
    let directory = tempfile::tempdir().unwrap();
    let rows = 600_000;
    let mut file = String::from("time,v,text\n");
    for row in 0..rows {
        file.push_str(&format!("{},{row},\"a\nb\"\n", 1_767_225_600 + row));
    }
    fs::write(directory.path().join("long.csv"), file).unwrap();
    let start = || {
        let mut import = import(&bucket, directory.path(), &["long.csv"], &["--precision", "s"]);
        import
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut stored = 0;
    for _ in 0..3 {
        let mut killed = start();
        until_within(WITHIN, "more is stored", || {
            (points(&bucket) > stored).then_some(())
        });
        killed.kill().unwrap();
        killed.wait().unwrap();
        stored = points(&bucket);
    }
    assert!(stored < rows, "it was killed before its end");
    let mut last = start();
    until_within(WITHIN, "more is stored", || {
        (points(&bucket) > stored).then_some(())
    });
    server.kill();
    server.launch();
    let ended = until_within(WITHIN, "the import ends", || last.try_wait().unwrap());
    assert!(ended.success(), "it goes on when the server is there again");
    assert_eq!(points(&bucket), rows, "each row once");
}
