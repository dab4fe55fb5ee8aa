//! Formats points for webhooks as API answers do. Called where a delivery is built, independently of the ingestion
//! request.

use engine::rows::{NewestRow, Scalar};
use serde_json::value::RawValue;

use crate::bucket::point_id;
use crate::catalog::Schema;
use crate::delivery::{NewPoints, Shown};
use crate::ingest::json::{write_number, write_string};

/// Returns a point's id and values. A source never loses a field, so every value has a name.
pub(super) fn show(points: &NewPoints, row: &NewestRow<'_>, schema: &Schema) -> Option<Shown> {
    let id = point_id(
        points.bucket_ordinal,
        points.first_sequence + u64::from(row.place),
    );
    let mut json = vec![b'{'];
    for (field, value) in row.values() {
        let Some(field) = schema.fields.get(usize::from(field)) else {
            continue;
        };
        if json.len() > 1 {
            json.push(b',');
        }
        write_string(&field.name, &mut json);
        json.push(b':');
        match value {
            Scalar::Number(number) => write_number(number, &mut json),
            Scalar::Boolean(value) => json.extend_from_slice(if value { b"true" } else { b"false" }),
            Scalar::Text(text) => write_string(text, &mut json),
        }
    }
    json.push(b'}');
    Some(Shown {
        id: std::str::from_utf8(&id).ok()?.to_owned(),
        values: RawValue::from_string(String::from_utf8(json).ok()?).ok()?,
    })
}
