//! The body of `POST /api/data/batch`: 1 to 1000 entries. Each entry is either written or reported as failed,
//! independently of the others.
//!
//! Entries are parsed against the body's bucket. If `bucketId` follows `dataPoints`, the bucket is guessed, and the
//! entries are parsed again if the guess was wrong: the order of members affects speed, never the result.

use engine::rows::RowsWriter;

use crate::error::{EntryError, ServiceError};
use crate::ids::ObjectId;
use crate::limits::BATCH_ENTRIES_MAX;

use super::Scratch;
use super::entries::Entries;
use super::extend::NewField;
use super::json::{Kind, Scanner};
use super::members::{MemberFault, Slot, add_fault, check_object, read_id, skip_other};
use super::sources::SourceLookup;

/// A parsed batch. The accepted entries are the rows of the writer, in their order; the others are in `errors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The bucket named in the body, whose access is not checked yet.
    pub bucket_id: ObjectId,
    /// Number of entries, 1 to 1000.
    pub entries: u32,
    /// The failed entries, ascending by index.
    pub errors: Vec<EntryError>,
    /// Fields that sources need first, in the order in which their first values occur. If there are any, nothing was
    /// written.
    pub new_fields: Vec<NewField>,
    /// Ordinals of the sources that do not take points twice, ascending.
    pub once: Vec<u32>,
}

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
) -> Result<Batch, ServiceError> {
    rows.clear();
    scratch.series.restart();
    let result = parse(body, Entries::new(now_ns, lookup, scratch, rows));
    scratch.sources.end();
    if !matches!(&result, Ok(batch) if batch.new_fields.is_empty()) {
        rows.clear();
    }
    result
}

fn parse(body: &[u8], mut entries: Entries<'_>) -> Result<Batch, ServiceError> {
    let mut scan = Scanner::new(body)?;
    check_object(&mut scan)?;
    let mut bucket_id: Slot<ObjectId> = Ok(None);
    // The offset of the array, and its number of entries.
    let mut points: Slot<(usize, usize)> = Ok(None);
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
                        read_for = bucket_id.ok().flatten().or_else(|| guessed_bucket_id(&scan));
                        match entries.read(&mut scan, read_for)? {
                            0 => Err(MemberFault::NoEntries),
                            count @ 1..=BATCH_ENTRIES_MAX => Ok(Some((start, count))),
                            count => Err(MemberFault::TooManyEntries(count)),
                        }
                    }
                    found => skip_other(&mut scan, "an array", found, 1)?,
                }
            }
            _ => scan.skip_value(1)?,
        }
        more = scan.more(b'}')?;
    }
    scan.end()?;

    let mut faults = Vec::new();
    add_fault(&bucket_id, "bucketId", true, &mut faults);
    add_fault(&points, "dataPoints", true, &mut faults);
    let (Ok(Some(bucket_id)), Ok(Some((start, count)))) = (bucket_id, points) else {
        return Err(ServiceError::faults(faults));
    };
    if read_for != Some(bucket_id) {
        scan.seek(start);
        entries.read(&mut scan, Some(bucket_id))?;
    }
    Ok(entries.finish(bucket_id, count))
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
    read_id(&mut ahead, &mut String::new(), 1).ok()?.ok()?
}
