//! Writes the answer of a query with an object for each row.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::{QueryMetadata, member_name};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::json::{write_number, write_scalar};
use crate::service::query::{
    Aggregate, Aggregations, Answer, Cell, Column, Groups, Held, PIECE_BYTES, Points, QueryResult, Run,
};
use crate::timestamp::{TimestampFormatter, format_timestamp_ns};

/// Estimated size of a point in the answer.
const POINT_BYTES: usize = 160;
/// Estimated size of a group in the answer.
const GROUP_BYTES: usize = 200;

/// The members of a group itself. A field with one of these names appears only in `values`.
const GROUP_MEMBERS: [&str; 5] = ["timestamp", "time", "dataSourceId", "values", "stats"];

/// Writes a result in rows; see [`crate::service::query::WriteResult`].
///
/// # Errors
/// 400 if the query exceeds its memory limit.
pub fn write_rows(result: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    match result {
        QueryResult::Points(points) => write_points(points, answer),
        QueryResult::Groups(groups) => write_groups(groups, answer),
    }
}

fn write_points(points: &Points<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let rows = points.rows();
    if answer.is_empty() {
        answer.reserve((256 + POINT_BYTES * rows.len()).min(PIECE_BYTES))?;
    }
    if points.rows_before == 0 {
        answer.write(|out| out.extend_from_slice(br#"{"data":["#))?;
    }
    let mut held = answer.hold();
    // The fields of each schema that occurs, with their ordinals.
    let mut fields: HashMap<usize, Vec<(u16, Vec<u8>)>> = HashMap::new();
    for run in points.runs() {
        if let Entry::Vacant(entry) = fields.entry(run.schema) {
            entry.insert(with_member_names(run.fields(), &mut held)?);
        }
    }
    let mut writers = Vec::new();
    held.reserve(&mut writers, points.runs().len())?;
    for run in points.runs() {
        let fields = fields.get(&run.schema).map_or(&[][..], Vec::as_slice);
        writers.push(RunWriter::new(run, fields, &mut held)?);
    }
    let mut timestamps = TimestampFormatter::default();
    for (index, (run, row)) in rows.iter().enumerate() {
        if answer.is_full() {
            return Ok(index);
        }
        let is_first = points.rows_before + index == 0;
        answer.write(|out| {
            if !is_first {
                out.push(b',');
            }
            writers[*run as usize].write(*row, &mut timestamps, out);
        })?;
    }
    if let Some(page) = &points.end {
        answer.write(|out| out.push(b']'))?;
        QueryMetadata::of_points(page).write(answer)?;
    }
    Ok(rows.len())
}

/// Writes points of one run.
struct RunWriter<'a> {
    run: Run<'a>,
    /// The text between a point's timestamp and its values, which contains the source.
    source: Vec<u8>,
    /// The requested fields that the run has, by their member names.
    columns: Vec<(&'a [u8], &'a Column)>,
}

impl<'a> RunWriter<'a> {
    fn new(run: Run<'a>, fields: &'a [(u16, Vec<u8>)], held: &mut Held<'_>) -> Result<Self, ServiceError> {
        let mut columns = Vec::new();
        for (ordinal, name) in fields {
            if let Some(column) = run.column(*ordinal) {
                held.reserve(&mut columns, 1)?;
                columns.push((name.as_slice(), column));
            }
        }
        let source_id = run.source_id.to_hex();
        let source = [
            br#"","dataSourceId":""#.as_slice(),
            &source_id,
            br#"","values":{"#,
        ]
        .concat();
        held.grow(source.capacity())?;
        Ok(RunWriter { run, source, columns })
    }

    fn write(&self, row: u32, timestamps: &mut TimestampFormatter, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"_id":""#);
        out.extend_from_slice(&self.run.point_id(row).to_hex());
        out.extend_from_slice(br#"","timestamp":""#);
        out.extend_from_slice(timestamps.format(self.run.timestamp_ns(row)).as_bytes());
        out.extend_from_slice(&self.source);
        let mut is_first = true;
        for (name, column) in &self.columns {
            let Some(value) = column.value(row as usize) else {
                continue;
            };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(name);
            write_scalar(value, out);
        }
        out.push(b'}');
        if let Some(metadata) = self.run.metadata(row) {
            out.extend_from_slice(br#","metadata":"#);
            out.extend_from_slice(metadata.as_bytes());
        }
        out.push(b'}');
    }
}

fn write_groups(groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    answer.reserve(256 + GROUP_BYTES * groups.cells.len())?;
    answer.write(|out| out.extend_from_slice(br#"{"data":["#))?;
    let mut held = answer.hold();
    // The fields of each schema that occurs, with whether they are also members of the group itself.
    let mut fields: HashMap<usize, Vec<(bool, Vec<u8>)>> = HashMap::new();
    for (index, cell) in groups.cells.iter().enumerate() {
        let schema = groups.schema(cell);
        let fields = match fields.entry(schema) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let names = groups.field_names(schema).iter();
                let is_member = |name: &str| !GROUP_MEMBERS.contains(&name);
                let fields = names.map(|name| (is_member(name), *name));
                entry.insert(with_member_names(fields, &mut held)?)
            }
        };
        answer.write(|out| {
            if index > 0 {
                out.push(b',');
            }
            write_group(groups, cell, fields, out);
        })?;
    }
    answer.write(|out| out.push(b']'))?;
    QueryMetadata::of_groups(groups).write(answer)?;
    Ok(groups.cells.len())
}

fn write_group(groups: &Groups<'_>, cell: &Cell, fields: &[(bool, Vec<u8>)], out: &mut Vec<u8>) {
    let start = format_timestamp_ns(cell.start_ns);
    out.extend_from_slice(br#"{"timestamp":""#);
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(br#"","time":""#);
    out.extend_from_slice(start.as_bytes());
    out.push(b'"');
    if let Some(source_id) = groups.source_id(cell).map(ObjectId::to_hex) {
        out.extend_from_slice(br#","dataSourceId":""#);
        out.extend_from_slice(&source_id);
        out.push(b'"');
    }
    let values = || {
        let values = cell.values();
        values.map(|(number, aggregate)| (&fields[number as usize], aggregate))
    };
    out.extend_from_slice(br#","values":"#);
    let Aggregations::One(aggregation) = *groups.aggregations else {
        write_nested(groups, cell, fields, out);
        out.push(b'}');
        return;
    };
    let write_value = |aggregate: &Aggregate, out: &mut Vec<u8>| write_number(aggregation.of(aggregate), out);
    write_object(values(), out, write_value);
    if groups.downsampled.is_some() {
        out.extend_from_slice(br#","stats":"#);
        write_object(values(), out, write_stats);
    }
    for ((_, name), aggregate) in values().filter(|((is_member, _), _)| *is_member) {
        out.push(b',');
        out.extend_from_slice(name);
        write_value(aggregate, out);
    }
    out.push(b'}');
}

/// Writes an object with a member for each field, whose value is an object with a member for each aggregation.
fn write_nested(groups: &Groups<'_>, cell: &Cell, fields: &[(bool, Vec<u8>)], out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, field) in groups.fields(cell).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&fields[field.number as usize].1);
        let mut separator = b'{';
        for aggregation in groups.aggregations.all() {
            if let Some(value) = field.value(*aggregation) {
                out.push(separator);
                separator = b',';
                out.push(b'"');
                out.extend_from_slice(aggregation.name().as_bytes());
                out.extend_from_slice(b"\":");
                write_number(value, out);
            }
        }
        out.push(b'}');
    }
    out.push(b'}');
}

/// Writes an object with a member for each field.
fn write_object<'a>(
    values: impl Iterator<Item = (&'a (bool, Vec<u8>), &'a Aggregate)>,
    out: &mut Vec<u8>,
    write: impl Fn(&Aggregate, &mut Vec<u8>),
) {
    out.push(b'{');
    for (index, ((_, name), aggregate)) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name);
        write(aggregate, out);
    }
    out.push(b'}');
}

fn write_stats(aggregate: &Aggregate, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"min":"#);
    write_number(aggregate.min, out);
    out.extend_from_slice(br#","max":"#);
    write_number(aggregate.max, out);
    out.extend_from_slice(br#","count":"#);
    write_number(aggregate.count as f64, out);
    out.push(b'}');
}

/// Makes the member names of these fields, which count against the query's memory.
fn with_member_names<'a, T>(
    fields: impl Iterator<Item = (T, &'a Arc<str>)>,
    held: &mut Held<'_>,
) -> Result<Vec<(T, Vec<u8>)>, ServiceError> {
    let fields: Vec<_> = fields.map(|(field, name)| (field, member_name(name))).collect();
    let names_bytes: usize = fields.iter().map(|(_, name)| name.capacity()).sum();
    held.grow(names_bytes + fields.len() * size_of::<(T, Vec<u8>)>())?;
    Ok(fields)
}
