//! Contract 13: `POST /api/buckets/:bucketId/import` and `tidewatch import`, and their small print (M).

mod callers;
mod columns;
mod command;
mod exported;
mod rows;
mod times;
mod whole;

use serde_json::{Value, json};

use crate::scene::{self, array};
use crate::support::client::Answer;
use crate::support::given::Bucket;

pub const CSV: &str = "text/csv";
pub const NDJSON: &str = "application/x-ndjson";
pub const PARQUET: &str = "application/vnd.apache.parquet";

/// Sends a file to the source `file`, with the admin key.
#[track_caller]
pub fn post(bucket: &Bucket, media_type: &str, parameters: &str, file: &[u8]) -> Answer {
    let path = format!("/api/buckets/{}/import?source=file{parameters}", bucket.id);
    let request = bucket.client.post(&path).key(&bucket.admin).bytes(file);
    request.header("Content-Type", media_type).send()
}

/// Sends CSV all rows of which are stored.
#[track_caller]
pub fn imported(bucket: &Bucket, parameters: &str, file: &str) -> Value {
    post(bucket, CSV, parameters, file.as_bytes()).expect(201, "M2: answers as a batch")
}

/// The source of this name, if there is one.
pub fn source(bucket: &Bucket, name: &str) -> Option<Value> {
    let listed = bucket.call("GET", "/sources?limit=1000", &Value::Null).json();
    array(&listed, "/dataSources")
        .into_iter()
        .find(|source| source["name"] == name)
}

/// The rows of a source, oldest first: timestamp, values and metadata.
#[track_caller]
pub fn rows_of(bucket: &Bucket, name: &str) -> Vec<(Value, Value, Value)> {
    let source = source(bucket, name).unwrap_or_else(|| panic!("no source {name:?}"));
    let rows = bucket.rows(&json!({"dataSourceIds": [source["_id"]]}));
    rows.iter()
        .map(|row| {
            (
                row["timestamp"].clone(),
                row["values"].clone(),
                row["metadata"].clone(),
            )
        })
        .collect()
}

/// The values of the source `file`, oldest first.
pub fn values(bucket: &Bucket) -> Vec<Value> {
    rows_of(bucket, "file")
        .into_iter()
        .map(|(_, values, _)| values)
        .collect()
}

/// Index, line and text of each error of an answer.
pub fn errors(answer: &Answer) -> Vec<(u64, Option<u64>, String)> {
    let errors = array(&answer.json(), "/errors").into_iter();
    errors
        .map(|error| {
            let text = error["error"].as_str().unwrap().to_owned();
            (error["index"].as_u64().unwrap(), error["line"].as_u64(), text)
        })
        .collect()
}

/// A server with a bucket that keeps all points.
pub fn bucket() -> (
    crate::support::process::Server,
    crate::support::given::Account,
    Bucket,
) {
    scene::bucket()
}
