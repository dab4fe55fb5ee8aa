//! The body of `POST /api/data/batch`: 1 to 1000 entries. Each entry is either written or reported as failed,
//! independently of the others.
//!
//! Entries are parsed against the body's bucket. If `bucketId` follows `dataPoints`, the bucket is guessed, and the
//! entries are parsed again if the guess was wrong: the order of members affects speed, never the result.

use engine::rows::RowsWriter;

use crate::error::EntryError;
use crate::ids::ObjectId;
use crate::limits::BATCH_ENTRIES_MAX;

use super::entries::Entries;
use super::extend::NewField;
use super::json::{Kind, Malformed, Scanner};
use super::members::{IdSlot, Slot, check_object, read_id, skip_other};
use super::sources::SourceLookup;
use super::{BodyFault, Scratch};

/// A parsed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch {
    /// The accepted entries are the rows of the writer, in their order.
    Ready(BatchOutcome),
    /// Sources need new fields first; nothing was written.
    NeedsFields {
        /// The bucket named in the body, whose access is not checked yet.
        bucket_id: ObjectId,
        /// The fields to add, in the order in which their first values occur.
        new_fields: Vec<NewField>,
    },
}

/// The result per entry: `rows.rows()` entries are written, the others are in `errors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchOutcome {
    /// The bucket named in the body.
    pub bucket_id: ObjectId,
    /// Number of entries, 1 to 1000.
    pub entries: u32,
    /// The failed entries, ascending by index.
    pub errors: Vec<EntryError>,
}

/// The value of `dataPoints`: the offset of the array, and its number of entries.
type PointsSlot = Slot<(usize, usize), String>;

/// Parses the body into `rows`. `now_ns` (UTC nanoseconds) is the timestamp of entries that have none.
///
/// # Errors
/// The body is not JSON, or something outside its entries is invalid (all such faults). Nothing was written.
pub fn parse_batch(
    body: &[u8],
    now_ns: i64,
    lookup: &mut SourceLookup<'_>,
    scratch: &mut Scratch,
    rows: &mut RowsWriter,
) -> Result<Batch, BodyFault> {
    rows.clear();
    let result = parse(body, now_ns, lookup, scratch, rows);
    scratch.sources.clear();
    if !matches!(result, Ok(Batch::Ready(_))) {
        rows.clear();
    }
    result
}

fn parse(
    body: &[u8],
    now_ns: i64,
    lookup: &mut SourceLookup<'_>,
    scratch: &mut Scratch,
    rows: &mut RowsWriter,
) -> Result<Batch, BodyFault> {
    let mut scan = Scanner::new(body)?;
    check_object(&mut scan)?;
    let mut entries = Entries::new(now_ns, lookup, scratch, rows);
    let mut bucket_id = IdSlot::Absent;
    let mut points = PointsSlot::Absent;
    let mut read_for = None;
    let mut more = scan.open(b'}')?;
    while more {
        let name = scan.name()?;
        match name.get(&mut entries.scratch.text) {
            "bucketId" => bucket_id = read_id(&mut scan, &mut entries.scratch.text, 1)?,
            "dataPoints" => {
                read_for = None;
                points = match scan.kind()? {
                    Kind::Array => {
                        let start = scan.at();
                        read_for = bucket_id.good().or_else(|| guessed_bucket_id(&scan));
                        let count = match read_for {
                            Some(bucket_id) => entries.read(&mut scan, bucket_id)?,
                            None => count(&mut scan)?,
                        };
                        match count {
                            0 => Slot::Bad("must have at least one entry".to_owned()),
                            1..=BATCH_ENTRIES_MAX => Slot::Good((start, count)),
                            _ => Slot::Bad(format!(
                                "must have at most {BATCH_ENTRIES_MAX} entries, not {count}"
                            )),
                        }
                    }
                    other => skip_other(&mut scan, other, 1)?,
                }
            }
            _ => scan.skip_value(1)?,
        }
        more = scan.more(b'}')?;
    }
    scan.end()?;

    let mut faults = Vec::new();
    bucket_id.fault("bucketId", "a string", true, &mut faults);
    points.fault("dataPoints", "an array", true, &mut faults);
    match (bucket_id, points) {
        (Slot::Good(bucket_id), Slot::Good((start, count))) => {
            if read_for != Some(bucket_id) {
                scan.seek(start);
                entries.read(&mut scan, bucket_id)?;
            }
            Ok(entries.finish(bucket_id, count))
        }
        _ => Err(BodyFault::Faults(faults)),
    }
}

/// A guess of the bucket that the body names after the position of `scan`: the last text that looks like it. After a
/// wrong guess everything is parsed again, so the guess only has to be usually right, and cheap: the text is searched
/// from its end.
fn guessed_bucket_id(scan: &Scanner<'_>) -> Option<ObjectId> {
    let start = scan.text().rfind("\"bucketId\"")?;
    if start < scan.at() {
        return None;
    }
    let mut ahead = *scan;
    ahead.seek(start);
    ahead.name().ok()?;
    ahead.peek();
    read_id(&mut ahead, &mut String::new(), 1).ok()?.good()
}

/// Skips the next array. Returns its number of entries.
fn count(scan: &mut Scanner<'_>) -> Result<usize, Malformed> {
    let mut count = 0;
    let mut more = scan.open(b']')?;
    while more {
        scan.skip_value(2)?;
        count += 1;
        more = scan.more(b']')?;
    }
    Ok(count)
}
