//! The body of `POST /api/data`. It is checked in two steps, because the API checks the shape of a body before the
//! resources it names, and the rest after them: [`parse_point`] needs no source, [`PointBody::write`] takes one.

use std::convert::Infallible;

use engine::rows::RowsWriter;

use crate::error::Detail;
use crate::ids::ObjectId;

use super::BodyFault;
use super::extend::{NewField, NewFields};
use super::json::{Kind, Scanner};
use super::members::{
    IdSlot, Member, MetadataSlot, Slot, TimestampSlot, check_object, read_id, read_metadata, read_timestamp,
    skip_other, too_old,
};
use super::sources::SourceView;
use super::values::Values;

/// A body without faults of shape.
#[derive(Debug, Clone)]
pub struct PointBody<'a> {
    /// `bucketId`
    pub bucket_id: ObjectId,
    /// `dataSourceId`
    pub source_id: ObjectId,
    /// `timestamp`, if present.
    pub timestamp_ns: Option<i64>,
    /// `metadata` exactly as sent, if present.
    pub metadata: Option<&'a str>,
    values: Values<'a>,
}

/// A point checked against its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// The point is the only row of the writer.
    Ready {
        /// The timestamp sent, or the time of the request.
        timestamp_ns: i64,
    },
    /// The source needs these fields first; nothing was written.
    NeedsFields(Vec<NewField>),
}

/// Parses the body and finds all faults that can be found without its resources.
///
/// # Errors
/// The body is not JSON, or has faults of shape (all of them).
pub fn parse_point(body: &[u8]) -> Result<PointBody<'_>, BodyFault> {
    let mut scan = Scanner::new(body)?;
    let mut buffer = String::new();
    check_object(&mut scan)?;
    let (mut bucket_id, mut source_id) = (IdSlot::Absent, IdSlot::Absent);
    let (mut timestamp, mut metadata) = (TimestampSlot::Absent, MetadataSlot::Absent);
    let mut values: Slot<Values<'_>, Infallible> = Slot::Absent;
    let mut more = scan.open(b'}')?;
    while more {
        let name = scan.name()?;
        scan.peek();
        match name.get(&mut buffer) {
            "bucketId" => bucket_id = read_id(&mut scan, &mut buffer, 1)?,
            name => match Member::of(name) {
                Member::DataSourceId => source_id = read_id(&mut scan, &mut buffer, 1)?,
                Member::Timestamp => timestamp = read_timestamp(&mut scan, &mut buffer, 1)?,
                Member::Metadata => metadata = read_metadata(&mut scan, 1)?,
                Member::Values => {
                    values = match scan.kind()? {
                        Kind::Object => Slot::Good(Values::read(&mut scan, 1)?),
                        other => skip_other(&mut scan, other, 1)?,
                    }
                }
                Member::Unknown => scan.skip_value(1)?,
            },
        }
        more = scan.more(b'}')?;
    }
    scan.end()?;

    let mut faults = Vec::new();
    bucket_id.fault("bucketId", "a string", true, &mut faults);
    source_id.fault("dataSourceId", "a string", true, &mut faults);
    timestamp.fault("timestamp", "an ISO 8601 string", false, &mut faults);
    values.fault("values", "an object", true, &mut faults);
    if let Slot::Good(values) = &values {
        values.shape_faults(&mut faults);
    }
    metadata.fault("metadata", "an object", false, &mut faults);
    match (bucket_id, source_id, values) {
        (Slot::Good(bucket_id), Slot::Good(source_id), Slot::Good(values)) if faults.is_empty() => {
            let metadata = metadata.good().map(|(start, end)| scan.slice(start, end));
            Ok(PointBody {
                bucket_id,
                source_id,
                timestamp_ns: timestamp.good(),
                metadata,
                values,
            })
        }
        _ => Err(BodyFault::Faults(faults)),
    }
}

impl PointBody<'_> {
    /// Writes the point as the only row of `rows`, with the timestamp `now_ns` (UTC nanoseconds) if it has none. The
    /// caller must check that the source belongs to the body's bucket, is accessible and is active.
    ///
    /// # Errors
    /// All faults with regard to the source; nothing was written.
    pub fn write(&self, view: &SourceView, now_ns: i64, rows: &mut RowsWriter) -> Result<Point, Vec<Detail>> {
        rows.clear();
        let source = &view.source;
        let mut faults = Vec::new();
        let timestamp_ns = self.timestamp_ns.unwrap_or(now_ns);
        faults.extend(too_old(timestamp_ns, view.oldest_ns));
        let new_fields = self
            .values
            .schema_faults(source, &NewFields::default(), &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        if !new_fields.is_empty() {
            return Ok(Point::NeedsFields(new_fields));
        }
        rows.begin(source.ordinal);
        self.values.write_row(source, rows);
        if let Some(metadata) = self.metadata {
            rows.metadata(metadata);
        }
        rows.commit(timestamp_ns);
        Ok(Point::Ready { timestamp_ns })
    }

    /// Appends the values as a JSON object for the answer, in the order sent, without nulls.
    pub fn write_values(&self, out: &mut Vec<u8>) {
        self.values.write_json(out);
    }
}
