//! The body of `POST /api/data/batch`: 1 to 1000 entries, of which each is either written or named as failed,
//! whatever becomes of the others.
//!
//! Entries are read against the body's bucket. Where `bucketId` stands behind `dataPoints`, it is guessed, and the
//! entries are read again when the guess was wrong: the order of members is a matter of speed, never of the result.

use engine::rows::RowsWriter;

use crate::error::{Detail, EntryError};
use crate::ids::ObjectId;
use crate::limits::BATCH_ENTRIES_MAX;

use super::entries::Entries;
use super::extend::NewField;
use super::json::{Kind, Malformed, Scanner};
use super::members::{IdSlot, Slot, detail, read_id};
use super::sources::SourceLookup;
use super::{BodyFault, Scratch};

/// A batch judged whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch {
    /// The accepted entries are the rows of the writer, in their order.
    Ready(BatchOutcome),
    /// Sources have to get fields first; nothing was written.
    NeedsFields {
        /// The bucket that the body names, whose access is still to be checked.
        bucket_id: ObjectId,
        /// The fields to add, in the order of their first values.
        new_fields: Vec<NewField>,
    },
}

/// What became of the entries: `rows.rows()` are written, the others are in `errors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchOutcome {
    /// The bucket that the body names.
    pub bucket_id: ObjectId,
    /// All entries, 1 to 1000.
    pub entries: u32,
    /// The entries that failed, ascending by index.
    pub errors: Vec<EntryError>,
}

/// What stands in `dataPoints`.
enum Points {
    Absent,
    Other(Kind),
    /// The array's place, and how many entries it has.
    Array(usize, usize),
}

/// Reads the body into `rows`. `now_ns` (UTC nanoseconds) is the time of entries that have none.
///
/// # Errors
/// It is not JSON, or something outside its entries is wrong: all of that. Nothing was written.
pub fn parse_batch(
    body: &[u8],
    now_ns: i64,
    sources: &mut dyn SourceLookup,
    scratch: &mut Scratch,
    rows: &mut RowsWriter,
) -> Result<Batch, BodyFault> {
    rows.clear();
    let result = parse(body, now_ns, sources, scratch, rows);
    scratch.clear();
    if !matches!(result, Ok(Batch::Ready(_))) {
        rows.clear();
    }
    result
}

fn parse(
    body: &[u8],
    now_ns: i64,
    sources: &mut dyn SourceLookup,
    scratch: &mut Scratch,
    rows: &mut RowsWriter,
) -> Result<Batch, BodyFault> {
    let mut scan = Scanner::new(body)?;
    let found = scan.kind()?;
    if found != Kind::Object {
        scan.skip_value(0)?;
        scan.end()?;
        return Err(BodyFault::Faults(vec![detail(
            &[],
            format!("the body must be an object, got {found}"),
        )]));
    }
    let mut entries = Entries::new(now_ns, sources, scratch, rows);
    let mut bucket_id = IdSlot::Absent;
    let mut points = Points::Absent;
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
                        Points::Array(start, count)
                    }
                    other => {
                        scan.skip_value(1)?;
                        Points::Other(other)
                    }
                }
            }
            _ => scan.skip_value(1)?,
        }
        more = scan.more(b'}')?;
    }
    scan.end()?;

    let faults = faults(&bucket_id, &points);
    match (bucket_id, points) {
        (Slot::Good(bucket_id), Points::Array(start, count)) if faults.is_empty() => {
            if read_for != Some(bucket_id) {
                scan.seek(start);
                entries.read(&mut scan, bucket_id)?;
            }
            Ok(entries.finish(bucket_id, count))
        }
        _ => Err(BodyFault::Faults(faults)),
    }
}

fn faults(bucket_id: &IdSlot, points: &Points) -> Vec<Detail> {
    let mut faults = Vec::new();
    bucket_id.fault("bucketId", "a string", true, &mut faults);
    let fault = match points {
        Points::Absent => Some("is required".to_owned()),
        Points::Other(kind) => Some(format!("must be an array, got {kind}")),
        Points::Array(_, 0) => Some("must have at least one entry".to_owned()),
        Points::Array(_, count @ BATCH_ENTRIES_MAX..) if *count > BATCH_ENTRIES_MAX => Some(format!(
            "must have at most {BATCH_ENTRIES_MAX} entries, got {count}"
        )),
        Points::Array(..) => None,
    };
    faults.extend(fault.map(|message| detail(&["dataPoints"], message)));
    faults
}

/// The bucket that a body names behind the place of `scan`, probably: the last text that looks like it. What is read
/// for a wrong guess is read again, so it only has to be right mostly, and cheap: the text is searched from its end.
fn guessed_bucket_id(scan: &Scanner<'_>) -> Option<ObjectId> {
    let mut there = *scan;
    there.seek(
        scan.text()
            .rfind("\"bucketId\"")
            .filter(|place| *place > scan.at())?,
    );
    there.name().ok()?;
    there.peek();
    read_id(&mut there, &mut String::new(), 1).ok()?.good()
}

/// Steps over the array that comes next; how many entries it has.
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
