//! Contract 11: `POST /api/data/export`, and its small print (L).

mod bounds;
mod broken;
mod csv;
mod formats;
mod groups;
mod refusals;
mod rows;
mod slow;
mod snapshot;

use serde_json::{Value, json};

use crate::scene::call;
use crate::support::client::Answer;
use crate::support::given::Bucket;

pub const EXPORT: &str = "contract 11: POST /api/data/export returns all rows";

/// Sends an export with the admin key; `body` lacks only the `bucketId`.
#[track_caller]
pub fn post(bucket: &Bucket, body: &Value) -> Answer {
    let mut body = body.clone();
    body["bucketId"] = json!(bucket.id);
    call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &body)
}

/// The file of an export in this format.
#[track_caller]
pub fn file(bucket: &Bucket, format: &str, query: &Value) -> Vec<u8> {
    let mut body = query.clone();
    body["format"] = json!(format);
    let answer = post(bucket, &body);
    assert_eq!(answer.status, 200, "{EXPORT}: {answer}");
    answer.body
}

/// The rows of an export as NDJSON.
#[track_caller]
pub fn lines(bucket: &Bucket, query: &Value) -> Vec<Value> {
    let text = String::from_utf8(file(bucket, "ndjson", query)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a line ends with LF");
    let lines = text.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The fields of each line of CSV; a field without a value is `None`.
pub fn fields(csv: &[u8]) -> Vec<Vec<Option<String>>> {
    let text = std::str::from_utf8(csv).unwrap();
    let (mut rows, mut row, mut rest) = (Vec::new(), Vec::new(), text);
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(_) => {
                let mut end = 1;
                loop {
                    end += rest[end..].find('"').unwrap() + 1;
                    if !rest[end..].starts_with('"') {
                        break end;
                    }
                    end += 1;
                }
            }
            None => rest.find([',', '\n']).unwrap(),
        };
        let field = &rest[..end];
        row.push(
            match field.strip_prefix('"').and_then(|field| field.strip_suffix('"')) {
                Some(quoted) => Some(quoted.replace("\"\"", "\"")),
                None if field.is_empty() => None,
                None => Some(field.to_owned()),
            },
        );
        if rest[end..].starts_with('\n') {
            rows.push(std::mem::take(&mut row));
        }
        rest = &rest[end + 1..];
    }
    assert!(row.is_empty(), "the last line ends with LF");
    rows
}
