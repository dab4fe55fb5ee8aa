//! Parses the entries of a batch one by one. An entry in the expected form is written while it is scanned; any other is
//! checked in detail. Both paths write the same rows; only the second produces error messages.

use std::fmt::Write as _;

use engine::rows::RowsWriter;

use crate::error::{Detail, EntryError};
use crate::ids::ObjectId;
use crate::limits::BATCH_ENTRIES_MAX;

use super::batch::Batch;
use super::extend::NewFields;
use super::json::{Kind, Malformed, Scanner};
use super::members::{
    Member, MetadataSlot, Slot, add_fault, common_timestamp, read_id, read_metadata, read_timestamp,
    skip_other, too_old,
};
use super::sources::{SeenSource, SourceLookup};
use super::values::Values;
use super::{Scratch, columns};

/// Size of an entry's error in bytes after which further faults are only counted, so that an answer is never many times
/// the size of the request.
const ERROR_BYTES_MAX: usize = 8_192;

/// Nesting depth of an entry's members: the body, `dataPoints`, the entry.
const ENTRY_DEPTH: u32 = 3;

/// Number of members whose order is remembered from the previous entry.
const ORDER_MAX: usize = 8;

/// Parses entries into rows, errors and new fields.
pub(super) struct Entries<'s> {
    now_ns: i64,
    lookup: &'s mut SourceLookup<'s>,
    pub(super) scratch: &'s mut Scratch,
    rows: &'s mut RowsWriter,
    errors: Vec<EntryError>,
    new_fields: NewFields,
    /// The order of members in the previous entry.
    order: [Member; ORDER_MAX],
    /// Index of the source of the previous entry.
    last: usize,
}

/// The members of an entry parsed so far.
struct Entry {
    /// Index of the source in `Scratch::sources`.
    source: Slot<usize>,
    timestamp: Slot<i64>,
    metadata: MetadataSlot,
    /// Offset of the object.
    values: Slot<usize>,
    /// Index of the source for which the open row contains these values.
    written_for: Option<usize>,
}

impl<'s> Entries<'s> {
    pub(super) fn new(
        now_ns: i64,
        lookup: &'s mut SourceLookup<'s>,
        scratch: &'s mut Scratch,
        rows: &'s mut RowsWriter,
    ) -> Self {
        Self {
            now_ns,
            lookup,
            scratch,
            rows,
            errors: Vec::new(),
            new_fields: NewFields::default(),
            order: [Member::Unknown; ORDER_MAX],
            last: 0,
        }
    }

    /// Parses the next array for this bucket, or skips it if there is none, and discards earlier results. Returns its
    /// number of entries.
    pub(super) fn read(
        &mut self,
        scan: &mut Scanner<'_>,
        bucket_id: Option<ObjectId>,
    ) -> Result<usize, Malformed> {
        self.rows.clear();
        let version = self.scratch.version;
        self.scratch.sources.begin(bucket_id, version, self.lookup);
        self.scratch.series.restart();
        self.errors.clear();
        self.new_fields = NewFields::default();
        let mut count = 0;
        let mut more = scan.open(b']')?;
        while more {
            match bucket_id {
                Some(bucket_id) if count < BATCH_ENTRIES_MAX => self.entry(scan, bucket_id, count as u32)?,
                // A batch with more entries is refused as a whole, so only their number matters.
                _ => scan.skip_value(ENTRY_DEPTH - 1)?,
            }
            count += 1;
            more = scan.more(b']')?;
        }
        Ok(count)
    }

    /// The result for `count` parsed entries.
    pub(super) fn finish(self, bucket_id: ObjectId, count: usize) -> Batch {
        Batch {
            bucket_id,
            entries: count as u32,
            errors: self.errors,
            new_fields: self.new_fields.list,
            once: self.scratch.sources.once(),
        }
    }

    fn entry(&mut self, scan: &mut Scanner<'_>, bucket_id: ObjectId, index: u32) -> Result<(), Malformed> {
        let found = scan.kind()?;
        if found != Kind::Object {
            scan.skip_value(ENTRY_DEPTH - 1)?;
            self.errors.push(EntryError {
                index,
                line: None,
                error: format!("must be an object, not {found}"),
            });
            return Ok(());
        }
        let mut entry = Entry {
            source: Ok(None),
            timestamp: Ok(None),
            metadata: Ok(None),
            values: Ok(None),
            written_for: None,
        };
        let mut place = 0;
        let mut more = scan.open(b'}')?;
        while more {
            let member = self.member(scan, place)?;
            scan.peek();
            match member {
                Member::DataSourceId => match self.scratch.sources.expected(scan, self.last) {
                    Some(index) => {
                        self.last = index;
                        entry.source = Ok(Some(index));
                    }
                    None => entry.source = self.source(scan, bucket_id)?,
                },
                Member::Timestamp => match common_timestamp(scan) {
                    Some(timestamp_ns) => entry.timestamp = Ok(Some(timestamp_ns)),
                    None => entry.timestamp = read_timestamp(scan, &mut self.scratch.text, ENTRY_DEPTH)?,
                },
                Member::Values => self.values(scan, &mut entry)?,
                Member::Metadata => entry.metadata = read_metadata(scan, ENTRY_DEPTH)?,
                Member::Unknown => scan.skip_value(ENTRY_DEPTH)?,
            }
            place += 1;
            more = scan.more(b'}')?;
        }
        self.end_entry(scan, &mut entry, index)
    }

    /// The member whose name and colon come next.
    #[inline(always)]
    fn member(&mut self, scan: &mut Scanner<'_>, place: usize) -> Result<Member, Malformed> {
        scan.peek();
        let hit = match self.order.get(place) {
            Some(Member::DataSourceId) => scan.eat(b"\"dataSourceId\":"),
            Some(Member::Timestamp) => scan.eat(b"\"timestamp\":"),
            Some(Member::Values) => scan.eat(b"\"values\":"),
            Some(Member::Metadata) => scan.eat(b"\"metadata\":"),
            Some(Member::Unknown) | None => false,
        };
        if hit {
            return Ok(self.order[place]);
        }
        let member = Member::of(scan.name()?.get(&mut self.scratch.text));
        if let Some(expected) = self.order.get_mut(place) {
            *expected = member;
        }
        Ok(member)
    }

    /// The source whose id comes next, if it is not one of the expected ones.
    #[inline(never)]
    fn source(&mut self, scan: &mut Scanner<'_>, bucket_id: ObjectId) -> Result<Slot<usize>, Malformed> {
        let id = read_id(scan, &mut self.scratch.text, ENTRY_DEPTH)?;
        if let Ok(Some(id)) = id {
            self.last = self.scratch.sources.find(id, bucket_id, self.lookup);
        }
        Ok(id.map(|id| id.map(|_| self.last)))
    }

    /// Writes the values into a row if the source is known and active; otherwise skips them.
    #[inline(always)]
    fn values(&mut self, scan: &mut Scanner<'_>, entry: &mut Entry) -> Result<(), Malformed> {
        let found = scan.kind()?;
        entry.written_for = None;
        if found != Kind::Object {
            entry.values = skip_other(scan, "an object", found, ENTRY_DEPTH)?;
            return Ok(());
        }
        let start = scan.at();
        entry.values = Ok(Some(start));
        if self.write_row(scan, entry)? {
            return Ok(());
        }
        scan.seek(start);
        scan.skip_value(ENTRY_DEPTH)
    }

    /// Opens a row with the next values. `false` if the source is not known yet or the slow path is needed.
    #[inline(always)]
    fn write_row(&mut self, scan: &mut Scanner<'_>, entry: &mut Entry) -> Result<bool, Malformed> {
        let Scratch { sources, text, .. } = &mut *self.scratch;
        let index = match entry.source {
            Ok(Some(index)) => index,
            // Values before their source probably belong to the previous entry's source; `end_entry` checks that.
            Ok(None) => self.last,
            Err(_) => return Ok(false),
        };
        let Some((view, order)) = sources.active_with_order(index) else {
            return Ok(false);
        };
        let source = &view.source;
        if view.series.is_some() {
            // The row belongs to a series, which is known with the metadata.
            return Ok(false);
        }
        self.rows.begin(source.ordinal);
        let end = columns::write_row(scan, &source.schema, order, text, self.rows)?;
        entry.written_for = end.map(|_| index);
        scan.seek(end.unwrap_or(scan.at()));
        Ok(end.is_some())
    }

    /// Writes the row of a source that is split by dimensions, once all members are known. `false` if the slow path is
    /// needed.
    fn write_row_of_series(&mut self, scan: &mut Scanner<'_>, entry: &Entry) -> Result<bool, Malformed> {
        let (Ok(Some(index)), Ok(timestamp_ns), Ok(metadata), Ok(Some(start))) =
            (entry.source, entry.timestamp, entry.metadata, entry.values)
        else {
            return Ok(false);
        };
        let Scratch {
            sources,
            text,
            series,
            ..
        } = &mut *self.scratch;
        let Some((view, order)) = sources.active_with_order(index) else {
            return Ok(false);
        };
        let source = &view.source;
        let (Some(find), Some(dimensions)) = (&view.series, &source.dimensions) else {
            return Ok(false);
        };
        if timestamp_ns.unwrap_or(self.now_ns) < view.oldest_ns {
            return Ok(false);
        }
        let metadata_text = metadata.map(|(start, end)| scan.slice(start, end));
        let Ok(table) = series.table(source, &**find, dimensions, metadata_text) else {
            return Ok(false);
        };
        let end = scan.at();
        scan.seek(start);
        self.rows.begin(table);
        let written = columns::write_row(scan, &source.schema, order, text, self.rows)?.is_some();
        scan.seek(end);
        if written {
            self.commit(scan, timestamp_ns, metadata);
        }
        Ok(written)
    }

    /// Ends an entry: commits its row or records its error.
    #[inline(always)]
    fn end_entry(&mut self, scan: &mut Scanner<'_>, entry: &mut Entry, index: u32) -> Result<(), Malformed> {
        if let (Ok(Some(source)), Ok(Some(start))) = (entry.source, entry.values)
            && entry.written_for != Some(source)
        {
            // Usually because the values came before the source, and the source is not the expected one.
            let end = scan.at();
            scan.seek(start);
            self.write_row(scan, entry)?;
            scan.seek(end);
        }
        if let (Ok(Some(source)), Ok(timestamp_ns), Ok(metadata)) =
            (entry.source, entry.timestamp, entry.metadata)
            && entry.written_for == Some(source)
            && let Some(view) = self.scratch.sources.get(source).and_then(SeenSource::active)
            && timestamp_ns.unwrap_or(self.now_ns) >= view.oldest_ns
        {
            self.commit(scan, timestamp_ns, metadata);
            return Ok(());
        }
        if self.write_row_of_series(scan, entry)? {
            return Ok(());
        }
        self.check_entry(scan, entry, index)
    }

    /// Ends the open row.
    #[inline(always)]
    fn commit(&mut self, scan: &Scanner<'_>, timestamp_ns: Option<i64>, metadata: Option<(usize, usize)>) {
        if let Some((start, end)) = metadata {
            self.rows.metadata(scan.slice(start, end));
        }
        self.rows.commit(timestamp_ns.unwrap_or(self.now_ns));
    }

    /// Slow path: parses the entry's values again, and either writes its row or reports all its faults.
    #[cold]
    fn check_entry(&mut self, scan: &mut Scanner<'_>, entry: &Entry, index: u32) -> Result<(), Malformed> {
        self.rows.abort();
        let end = scan.at();
        let mut values = None;
        if let Ok(Some(start)) = entry.values {
            scan.seek(start);
            values = Some(Values::read(scan, ENTRY_DEPTH)?);
        }
        scan.seek(end);

        let mut faults = Vec::new();
        let timestamp_ns = entry.timestamp.ok().flatten();
        add_fault(&entry.source, "dataSourceId", true, &mut faults);
        let source = entry.source.ok().flatten();
        let seen = source.and_then(|source| self.scratch.sources.get(source));
        faults.extend(seen.and_then(source_fault));
        add_fault(&entry.timestamp, "timestamp", false, &mut faults);
        let view = seen.and_then(|seen| seen.view.as_ref());
        let at_ns = timestamp_ns.unwrap_or(self.now_ns);
        faults.extend(view.and_then(|view| too_old(at_ns, view.oldest_ns)));
        add_fault(&entry.values, "values", true, &mut faults);
        let mut new_fields = Vec::new();
        if let Some(values) = &values {
            faults.extend(values.null_fault());
            values.shape_faults(&mut faults);
            if let Some(view) = view {
                new_fields = values.schema_faults(&view.source, &self.new_fields, &mut faults);
            }
        }
        add_fault(&entry.metadata, "metadata", false, &mut faults);
        let mut table = view.map_or(0, |view| view.source.ordinal);
        if let (Some(view), true) = (view, faults.is_empty())
            && let (Some(find), Some(dimensions)) = (&view.series, &view.source.dimensions)
        {
            let metadata = entry
                .metadata
                .ok()
                .flatten()
                .map(|(start, end)| scan.slice(start, end));
            let found = self
                .scratch
                .series
                .table(&view.source, &**find, dimensions, metadata);
            table = found.unwrap_or_else(|fault| {
                faults.push(fault);
                0
            });
        }
        let (Some(view), Some(values), true) = (view, values, faults.is_empty()) else {
            self.errors.push(EntryError {
                index,
                line: None,
                error: joined(&faults),
            });
            return Ok(());
        };
        self.new_fields.add(new_fields);
        self.rows.begin(table);
        values.write_row(&view.source, self.rows);
        self.commit(scan, timestamp_ns, entry.metadata.ok().flatten());
        Ok(())
    }
}

fn source_fault(seen: &SeenSource) -> Option<Detail> {
    let message = match (&seen.view, seen.active()) {
        (_, Some(_)) => return None,
        (None, _) => format!("no data source {} in this bucket", seen.id),
        (Some(_), None) => format!("data source {} is inactive and takes no data", seen.id),
    };
    Some(Detail::at(&["dataSourceId"], message))
}

/// All faults in one message.
fn joined(faults: &[Detail]) -> String {
    let mut error = String::new();
    for (index, fault) in faults.iter().enumerate() {
        if error.len() > ERROR_BYTES_MAX {
            let _ = write!(error, "; and {} more faults", faults.len() - index);
            break;
        }
        let separator = if index == 0 { "" } else { "; " };
        // The messages contain the field names.
        let member = fault.path.first().map_or("", String::as_str);
        let _ = write!(error, "{separator}{member}: {}", fault.message);
    }
    error
}
