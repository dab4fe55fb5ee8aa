//! Contract 12: dimensions, and its small print (A to H).

mod duplicates;
mod forgotten;
mod grouping;
mod inputs;
mod listing;
mod many;
mod matchers;
mod random;
mod restarts;
mod series_max;
mod settings;

use serde_json::{Value, json};

use crate::scene;
use crate::support::given::{Account, Bucket, point};
use crate::support::process::Server;
use crate::support::time::{HOUR, SECOND, now_ns};

/// A source with a field `v` whose points are split by these dimensions.
#[track_caller]
fn split_source(bucket: &Bucket, name: &str, dimensions: &Value) -> String {
    bucket.source_with(&json!({
        "name": name, "schema": {"v": {"type": "number"}}, "schemaMode": "extend", "dimensions": dimensions
    }))
}

/// A point of a source with metadata.
fn labelled(source: &str, at_ns: i64, value: i64, metadata: &Value) -> Value {
    let mut point = point(source, at_ns, &json!({"v": value}));
    point["metadata"] = metadata.clone();
    point
}

/// A source that takes all metadata as dimensions, with a point for each metadata, a second apart; the value of each is
/// its place.
fn scene_of(all: &[Value]) -> (Server, Account, Bucket, String) {
    let (server, account, bucket) = scene::bucket();
    let source = split_source(&bucket, "cpu", &json!("all"));
    let first_ns = now_ns() - HOUR;
    let points = (0..).zip(all);
    let points =
        points.map(|(place, metadata)| labelled(&source, first_ns + place * SECOND, place, metadata));
    bucket.send(&points.collect::<Vec<_>>());
    (server, account, bucket, source)
}

/// The values of the points that a query with these filters returns, in order of time.
#[track_caller]
fn values(bucket: &Bucket, dimensions: &Value) -> Vec<i64> {
    let rows = bucket.rows(&json!({"dimensions": dimensions}));
    let values = scene::column(&rows, "/values/v");
    values.iter().map(|value| value.as_i64().unwrap()).collect()
}
