//! The body of `POST /api/data`. It is checked in two steps, because the API checks the shape of a body before the
//! resources it names, and the rest after them: [`parse_point`] needs no source, [`PointBody::write`] takes one.

use engine::rows::RowsWriter;

use crate::error::ServiceError;
use crate::ids::ObjectId;

use super::extend::{NewField, NewFields};
use super::json::{Kind, Scanner};
use super::members::{
    Member, MetadataSlot, Slot, add_fault, check_object, read_id, read_metadata, read_timestamp, skip_other,
    too_old,
};
use super::series::SeriesOfRequest;
use super::sources::SourceView;
use super::values::Values;

/// A body without faults of shape, except that its values may all be null.
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

/// Parses the body and finds all faults that can be found without its resources, except values that are all null.
///
/// # Errors
/// The body is not JSON, or has faults of shape (all of them).
pub fn parse_point(body: &[u8]) -> Result<PointBody<'_>, ServiceError> {
    let mut scan = Scanner::new(body)?;
    let mut buffer = String::new();
    check_object(&mut scan)?;
    let (mut bucket_id, mut source_id): (Slot<ObjectId>, Slot<ObjectId>) = (Ok(None), Ok(None));
    let (mut timestamp, mut metadata): (Slot<i64>, MetadataSlot) = (Ok(None), Ok(None));
    let mut values: Slot<Values<'_>> = Ok(None);
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
                        Kind::Object => Ok(Some(Values::read(&mut scan, 1)?)),
                        found => skip_other(&mut scan, "an object", found, 1)?,
                    }
                }
                Member::Unknown => scan.skip_value(1)?,
            },
        }
        more = scan.more(b'}')?;
    }
    scan.end()?;

    let mut faults = Vec::new();
    add_fault(&bucket_id, "bucketId", true, &mut faults);
    add_fault(&source_id, "dataSourceId", true, &mut faults);
    add_fault(&timestamp, "timestamp", false, &mut faults);
    add_fault(&values, "values", true, &mut faults);
    if let Ok(Some(values)) = &values {
        values.shape_faults(&mut faults);
    }
    add_fault(&metadata, "metadata", false, &mut faults);
    if let Ok(Some(values)) = &values
        // Without other faults, `write` tells it, together with fields that the source does not declare.
        && (values.is_empty() || !faults.is_empty())
    {
        faults.extend(values.null_fault());
    }
    match (bucket_id, source_id, timestamp, metadata, values) {
        (Ok(Some(bucket_id)), Ok(Some(source_id)), Ok(timestamp_ns), Ok(metadata), Ok(Some(values)))
            if faults.is_empty() =>
        {
            Ok(PointBody {
                bucket_id,
                source_id,
                timestamp_ns,
                metadata: metadata.map(|(start, end)| scan.slice(start, end)),
                values,
            })
        }
        _ => Err(ServiceError::faults(faults)),
    }
}

impl PointBody<'_> {
    /// Writes the point as the only row of `rows`, with the timestamp `now_ns` (UTC nanoseconds) if it has none. The
    /// caller must check that the source belongs to the body's bucket, is accessible and is active. Returns the fields
    /// that the source needs first; if there are any, nothing was written.
    ///
    /// # Errors
    /// All faults with regard to the source; nothing was written.
    pub fn write(
        &self,
        view: &SourceView,
        now_ns: i64,
        rows: &mut RowsWriter,
        series: &mut SeriesOfRequest,
    ) -> Result<Vec<NewField>, ServiceError> {
        rows.clear();
        series.restart();
        let source = &view.source;
        let mut faults = Vec::new();
        let timestamp_ns = self.timestamp_ns.unwrap_or(now_ns);
        faults.extend(too_old(timestamp_ns, view.oldest_ns));
        faults.extend(self.values.null_fault());
        let new_fields = self
            .values
            .schema_faults(source, &NewFields::default(), &mut faults);
        if !faults.is_empty() {
            return Err(ServiceError::faults(faults));
        }
        if new_fields.is_empty() {
            let table = match (&view.series, &source.dimensions) {
                (Some(find), Some(dimensions)) => series
                    .table(source, &**find, dimensions, self.metadata)
                    .map_err(|fault| ServiceError::faults(vec![fault]))?,
                _ => source.ordinal,
            };
            rows.begin(table);
            self.values.write_row(source, rows);
            if let Some(metadata) = self.metadata {
                rows.metadata(metadata);
            }
            rows.commit(timestamp_ns);
        }
        Ok(new_fields)
    }

    /// Appends the values as a JSON object for the answer, in the order sent, without nulls.
    pub fn write_values(&self, out: &mut Vec<u8>) {
        self.values.write_json(out);
    }
}
