//! Writes the answer of a query with an object for each row.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::{QueryMetadata, member_name, write_dimension, write_value};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::json::{write_number, write_scalar, write_string};
use crate::service::query::{
    Aggregation, Aggregations, Answer, Column, DimensionValue, GroupField, GroupRow, GroupValue, Groups,
    Held, PIECE_BYTES, Points, QueryResult, Run, RunExpression, Scalar,
};
use crate::timestamp::{TimestampFormatter, TimestampText};

/// Estimated size of a point in the answer.
const POINT_BYTES: usize = 160;
/// Estimated size of a group in the answer.
const GROUP_BYTES: usize = 200;

/// The members of a group itself. A field with one of these names appears only in `values`.
const GROUP_MEMBERS: [&str; 7] = [
    "timestamp",
    "time",
    "dataSourceId",
    "dimensions",
    "values",
    "stats",
    "previous",
];

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
    let fields = point_fields(points, &mut held)?;
    let writers = run_writers(points, &fields, &mut held)?;
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

/// The fields of each schema that occurs, with their ordinals, by their member names.
pub(super) type PointFields = BTreeMap<usize, Vec<(u16, Vec<u8>)>>;

pub(super) fn point_fields(points: &Points<'_>, held: &mut Held<'_>) -> Result<PointFields, ServiceError> {
    let mut fields = BTreeMap::new();
    for run in points.runs() {
        if let Entry::Vacant(entry) = fields.entry(run.schema) {
            entry.insert(with_member_names(run.fields(), held)?);
        }
    }
    Ok(fields)
}

/// A writer for each run.
pub(super) fn run_writers<'a>(
    points: &Points<'a>,
    fields: &'a PointFields,
    held: &mut Held<'_>,
) -> Result<Vec<RunWriter<'a>>, ServiceError> {
    let mut writers = Vec::new();
    held.reserve(&mut writers, points.runs().len())?;
    for run in points.runs() {
        let fields = fields.get(&run.schema).map_or(&[][..], Vec::as_slice);
        writers.push(RunWriter::new(run, fields, held)?);
    }
    Ok(writers)
}

/// Writes points of one run.
pub(super) struct RunWriter<'a> {
    run: Run<'a>,
    /// The text between a point's timestamp and its values, which contains the source.
    source: Vec<u8>,
    /// The requested fields that the run has, by their member names.
    columns: Vec<(&'a [u8], &'a Column)>,
    /// Expressions, by their member names.
    expressions: Vec<(Vec<u8>, RunExpression<'a>)>,
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
        let expressions = run.expressions().map(|it| (member_name(&it.named.name), it));
        let expressions: Vec<_> = expressions.collect();
        held.grow(source.capacity() + size_of_val(&*expressions))?;
        Ok(RunWriter {
            run,
            source,
            columns,
            expressions,
        })
    }

    pub(super) fn write(&self, row: u32, timestamps: &mut TimestampFormatter, out: &mut Vec<u8>) {
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
        for (name, expression) in &self.expressions {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(name);
            let value = expression.value(row).map(Scalar::Number);
            write_value(value.map(GroupValue::Value), out);
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
    answer.reserve(256 + GROUP_BYTES * groups.len())?;
    answer.write(|out| out.extend_from_slice(br#"{"data":["#))?;
    let mut held = answer.hold();
    let mut names = GroupNames::default();
    let mut timestamps = TimestampFormatter::default();
    for (index, row) in groups.rows().enumerate() {
        let names = names.of(groups, row.schema, &mut held)?;
        answer.write(|out| {
            if index > 0 {
                out.push(b',');
            }
            write_group(groups, row, names, &timestamps.format(row.start_ns), out);
        })?;
    }
    answer.write(|out| out.push(b']'))?;
    QueryMetadata::of_groups(groups).write(answer)?;
    Ok(groups.len())
}

/// The member names of the fields of each schema that occurs, with whether they are also members of the group itself.
#[derive(Default)]
pub(super) struct GroupNames(BTreeMap<usize, Vec<(bool, Vec<u8>)>>);

impl GroupNames {
    pub(super) fn of(
        &mut self,
        groups: &Groups<'_>,
        schema: usize,
        held: &mut Held<'_>,
    ) -> Result<&[(bool, Vec<u8>)], ServiceError> {
        Ok(match self.0.entry(schema) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let names = groups.names(schema).into_iter();
                let is_member = |name: &str| !GROUP_MEMBERS.contains(&name);
                let fields = names.map(|name| (is_member(name), name));
                entry.insert(with_member_names(fields, held)?)
            }
        })
    }
}

pub(super) fn write_group(
    groups: &Groups<'_>,
    row: GroupRow<'_>,
    names: &[(bool, Vec<u8>)],
    start: &TimestampText,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(br#"{"timestamp":""#);
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(br#"","time":""#);
    out.extend_from_slice(start.as_bytes());
    out.push(b'"');
    if let Some(source_id) = row.source_id.map(ObjectId::to_hex) {
        out.extend_from_slice(br#","dataSourceId":""#);
        out.extend_from_slice(&source_id);
        out.push(b'"');
    }
    if !groups.dimensions().is_empty() {
        out.extend_from_slice(br#","dimensions":"#);
        write_dimensions(groups.dimensions(), row.dimensions, out);
    }
    out.extend_from_slice(br#","values":"#);
    write_values(groups, groups.fields(row), names, out);
    let name = |field: &GroupField<'_>| &names[field.index as usize];
    if groups.downsampled.is_some() {
        out.extend_from_slice(br#","stats":"#);
        let stats = groups.fields(row);
        let stats = stats.filter_map(|field| Some((&*name(&field).1, field.stats()?)));
        write_object(stats, out, |stats, out| write_stats(*stats, out));
    }
    if groups.is_compared() {
        out.extend_from_slice(br#","previous":"#);
        write_values(groups, groups.previous(row), names, out);
    }
    if let Aggregations::One(only) = groups.aggregations {
        for field in groups.fields(row) {
            let (is_member, name) = name(&field);
            if *is_member {
                out.push(b',');
                out.extend_from_slice(name);
                write_value(field.value(0, *only), out);
            }
        }
    }
    out.push(b'}');
}

/// Writes an object with a member for each dimension.
fn write_dimensions(names: &[String], values: &[DimensionValue], out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_dimension(value, out);
    }
    out.push(b'}');
}

/// Writes an object with a member for each field.
fn write_values<'a>(
    groups: &Groups<'_>,
    fields: impl Iterator<Item = GroupField<'a>>,
    names: &[(bool, Vec<u8>)],
    out: &mut Vec<u8>,
) {
    let named = fields.map(|field| (&*names[field.index as usize].1, field));
    write_object(named, out, |field, out| match groups.aggregations {
        Aggregations::One(only) => write_value(field.value(0, *only), out),
        Aggregations::Several(all) => write_nested(all, field, out),
    });
}

/// Writes an object with a member for each aggregation.
fn write_nested(aggregations: &[Aggregation], field: &GroupField<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut is_first = true;
    for (index, aggregation) in aggregations.iter().enumerate() {
        if let Some(value) = field.value(index, *aggregation) {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(aggregation.name().as_bytes());
            out.extend_from_slice(b"\":");
            write_value(Some(value), out);
        }
    }
    out.push(b'}');
}

/// Writes an object of these members.
fn write_object<'n, T>(
    members: impl Iterator<Item = (&'n [u8], T)>,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    out.push(b'{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name);
        write(&value, out);
    }
    out.push(b'}');
}

fn write_stats([min, max, count]: [f64; 3], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"min":"#);
    write_number(min, out);
    out.extend_from_slice(br#","max":"#);
    write_number(max, out);
    out.extend_from_slice(br#","count":"#);
    write_number(count, out);
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
