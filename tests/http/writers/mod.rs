//! Contract 13: protocols that agents already speak, and their small print (I to L).

mod callers;
mod ends;
mod lines;
mod metric_types;
mod metrics;
mod remembered;
mod samples;

use serde_json::{Value, json};

use crate::scene::{self, array};
use crate::support::client::Answer;
use crate::support::given::Bucket;

/// Sends a body to a route with the admin key and the bucket's id.
#[track_caller]
fn post(bucket: &Bucket, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{joint}bucket={}", bucket.id);
    let mut request = bucket.client.post(&path).key(&bucket.admin).bytes(body);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    request.send()
}

/// The source of this name, if there is one.
fn source(bucket: &Bucket, name: &str) -> Option<Value> {
    let listed = bucket.call("GET", "/sources?limit=1000", &Value::Null).json();
    array(&listed, "/dataSources")
        .into_iter()
        .find(|source| source["name"] == name)
}

/// The rows of a source, oldest first: values and metadata.
#[track_caller]
fn rows_of(bucket: &Bucket, name: &str) -> Vec<(Value, Value)> {
    let source = source(bucket, name).unwrap_or_else(|| panic!("no source {name:?}"));
    let rows = bucket.rows(&json!({"dataSourceIds": [source["_id"]]}));
    rows.iter()
        .map(|row| (row["values"].clone(), row["metadata"].clone()))
        .collect()
}

/// A server with a bucket that keeps all points.
fn bucket() -> (
    crate::support::process::Server,
    crate::support::given::Account,
    Bucket,
) {
    scene::bucket()
}
