//! Writes the answer of a query in columns: one array for each member, for programs and charts. Missing values are null.

use std::collections::HashMap;
use std::sync::Arc;

use super::{QueryMetadata, member_name, write_dimension, write_quoted, write_value};
use crate::error::ServiceError;
use crate::ingest::json::write_scalar;
use crate::service::query::{
    Aggregations, Answer, Column, FieldNames, GroupField, GroupRow, GroupValue, Groups, Held, Points,
    QueryResult, Run, RunExpression, Scalar,
};
use crate::timestamp::TimestampFormatter;

/// Entries of an array are counted against the query's memory whenever they have so many bytes.
const CHUNK_BYTES: usize = 4_096;
/// Estimated size of a value in the answer.
const VALUE_BYTES: usize = 20;

/// Writes a result in columns; see [`crate::service::query::WriteResult`].
///
/// # Errors
/// 400 if the query exceeds its memory limit.
pub fn write_columns(result: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    match result {
        QueryResult::Points(points) => write_points(points, answer),
        QueryResult::Groups(groups) => write_groups(groups, answer),
    }
}

fn write_points(points: &Points<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let rows = points.rows();
    let mut held = answer.hold();
    let mut fields = FieldNames::default();
    // The columns of each run, by the indexes of their fields.
    let mut runs: Vec<(Run<'_>, HashMap<u32, &Column>)> = Vec::new();
    held.reserve(&mut runs, points.runs().len())?;
    for run in points.runs() {
        let mut columns = HashMap::new();
        for (ordinal, name) in run.fields() {
            if let Some(column) = run.column(ordinal) {
                held.grow(4 * size_of::<&Column>())?;
                columns.insert(fields.index(name, &mut held)?, column);
            }
        }
        runs.push((run, columns));
    }
    let run_of = |run: &u32| &runs[*run as usize].0;
    let mut timestamps = TimestampFormatter::default();
    answer.reserve(256 + VALUE_BYTES * 4 * rows.len())?;
    let mut columns = Columns::begin(answer)?;
    columns.array("_id", rows, |(run, row), out| {
        write_quoted(&run_of(run).point_id(*row).to_hex(), out);
    })?;
    columns.array("timestamp", rows, |(run, row), out| {
        write_quoted(timestamps.format(run_of(run).timestamp_ns(*row)).as_bytes(), out);
    })?;
    columns.array("dataSourceId", rows, |(run, _), out| {
        write_quoted(&run_of(run).source_id.to_hex(), out);
    })?;
    columns.object("values")?;
    for (index, name) in (0..).zip(fields.names()) {
        let by_run: Vec<Option<&Column>> = runs
            .iter()
            .map(|(_, columns)| columns.get(&index).copied())
            .collect();
        columns.array(name, rows, |(run, row), out| {
            let column = by_run[*run as usize];
            match column.and_then(|column| column.value(*row as usize)) {
                Some(value) => write_scalar(value, out),
                None => out.extend_from_slice(b"null"),
            }
        })?;
    }
    for index in 0..runs.first().map_or(0, |(run, _)| run.expressions().len()) {
        let by_run: Vec<RunExpression<'_>> = runs
            .iter()
            .filter_map(|(run, _)| run.expressions().nth(index))
            .collect();
        let name = by_run.first().map_or("", |expression| &*expression.named.name);
        let values = rows
            .iter()
            .map(|(run, row)| by_run[*run as usize].value(*row).map(number));
        columns.values(name, values)?;
    }
    columns.end_object()?;
    let metadata = |(run, row): &(u32, u32)| run_of(run).metadata(*row);
    if rows.iter().any(|row| metadata(row).is_some()) {
        columns.array("metadata", rows, |row, out| {
            out.extend_from_slice(metadata(row).unwrap_or("null").as_bytes());
        })?;
    }
    columns.end_object()?;
    if let Some(page) = &points.end {
        QueryMetadata::of_points(page).write(answer)?;
    }
    Ok(rows.len())
}

/// Fields of groups by the indexes of their names, each with its rows in order.
struct GroupFields<'a> {
    names: FieldNames<'a>,
    fields: Vec<Vec<(u32, GroupField<'a>)>>,
    rows: usize,
}

/// A name, and its index in the answer once it is known.
type KnownName<'a> = (&'a Arc<str>, Option<u32>);

fn write_groups(groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let mut held = answer.hold();
    let fields = GroupFields::of(groups, |row| groups.fields(row), &mut held)?;
    let values: usize = fields.fields.iter().map(Vec::len).sum();
    answer.reserve(256 + VALUE_BYTES * (groups.len() + values))?;
    let mut columns = Columns::begin(answer)?;
    let mut timestamps = TimestampFormatter::default();
    columns.array("timestamp", groups.rows(), |row, out| {
        write_quoted(timestamps.format(row.start_ns).as_bytes(), out);
    })?;
    if !groups.is_merged() {
        let source_ids = groups.rows().filter_map(|row| row.source_id);
        columns.array("dataSourceId", source_ids, |source_id, out| {
            write_quoted(&source_id.to_hex(), out);
        })?;
    }
    if !groups.dimensions().is_empty() {
        columns.object("dimensions")?;
        for (index, name) in groups.dimensions().iter().enumerate() {
            columns.array(name, groups.rows(), |row, out| {
                write_dimension(&row.dimensions[index], out)
            })?;
        }
        columns.end_object()?;
    }
    write_values("values", groups, &fields, &mut columns)?;
    if groups.downsampled.is_some() {
        columns.object("stats")?;
        for (field, name) in fields.names.names().iter().enumerate() {
            // Results of expressions have none.
            let stats = || {
                fields
                    .of_field(field)
                    .map(|field| field.and_then(|field| field.stats()))
            };
            if stats().flatten().next().is_none() {
                continue;
            }
            columns.object(name)?;
            for (index, stat) in ["min", "max", "count"].into_iter().enumerate() {
                let values = stats().map(|stats| stats.map(|stats| stats[index]));
                columns.values(stat, values.map(|value| value.map(number)))?;
            }
            columns.end_object()?;
        }
        columns.end_object()?;
    }
    if groups.is_compared() {
        let previous = GroupFields::of(groups, |row| groups.previous(row), &mut held)?;
        write_values("previous", groups, &previous, &mut columns)?;
    }
    columns.end_object()?;
    QueryMetadata::of_groups(groups).write(answer)?;
    Ok(groups.len())
}

fn number<'a>(number: f64) -> GroupValue<'a> {
    GroupValue::Value(Scalar::Number(number))
}

/// Writes an object with the values of each field.
fn write_values(
    member: &str,
    groups: &Groups<'_>,
    fields: &GroupFields<'_>,
    columns: &mut Columns<'_, '_>,
) -> Result<(), ServiceError> {
    columns.object(member)?;
    for (field, name) in fields.names.names().iter().enumerate() {
        let of_field = || fields.of_field(field);
        match groups.aggregations {
            Aggregations::One(one) => {
                columns.values(
                    name,
                    of_field().map(|field| field.and_then(|field| field.value(0, *one))),
                )?;
            }
            Aggregations::Several(all) => {
                columns.object(name)?;
                for (index, one) in all.iter().enumerate() {
                    let values =
                        || of_field().map(move |field| field.and_then(|field| field.value(index, *one)));
                    if values().any(|value| value.is_some()) {
                        columns.values(&one.name(), values())?;
                    }
                }
                columns.end_object()?;
            }
        }
    }
    columns.end_object()
}

impl<'a> GroupFields<'a> {
    fn of<F: Iterator<Item = GroupField<'a>>>(
        groups: &Groups<'a>,
        fields_of: impl Fn(GroupRow<'a>) -> F,
        held: &mut Held<'_>,
    ) -> Result<Self, ServiceError> {
        let mut names = FieldNames::default();
        let mut fields: Vec<Vec<(u32, GroupField<'a>)>> = Vec::new();
        // The names of each schema that occurs, and their indexes in the answer as far as they are known.
        let mut by_schema: HashMap<usize, Vec<KnownName<'a>>> = HashMap::new();
        for (index, row) in (0..).zip(groups.rows()) {
            let own = by_schema.entry(row.schema).or_insert_with(|| {
                let names = groups.names(row.schema).into_iter();
                names.map(|name| (name, None)).collect()
            });
            for field in fields_of(row) {
                let (name, known) = &mut own[field.index as usize];
                let place = match known {
                    Some(place) => *place,
                    None => *known.insert(names.index(name, held)?),
                } as usize;
                if place == fields.len() {
                    held.reserve(&mut fields, 1)?;
                    fields.push(Vec::new());
                }
                held.reserve(&mut fields[place], 1)?;
                fields[place].push((index, field));
            }
        }
        Ok(GroupFields {
            names,
            fields,
            rows: groups.len(),
        })
    }

    /// A field of each row.
    fn of_field(&self, name: usize) -> impl Iterator<Item = Option<GroupField<'a>>> {
        let mut fields = self.fields[name].iter().peekable();
        (0..self.rows).map(move |row| {
            let field = fields.next_if(|(other, _)| *other as usize == row);
            field.map(|(_, field)| *field)
        })
    }
}

/// Writes `{"columns":{…}`, member by member.
struct Columns<'o, 'b> {
    answer: &'o mut Answer<'b>,
    /// Whether the open object has no members yet.
    is_first: bool,
}

impl<'o, 'b> Columns<'o, 'b> {
    fn begin(answer: &'o mut Answer<'b>) -> Result<Self, ServiceError> {
        answer.write(|out| out.extend_from_slice(br#"{"columns":{"#))?;
        Ok(Columns {
            answer,
            is_first: true,
        })
    }

    fn name(&mut self, name: &str, opening: u8) -> Result<(), ServiceError> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        self.answer.write(|out| {
            if !is_first {
                out.push(b',');
            }
            out.extend_from_slice(&member_name(name));
            out.push(opening);
        })
    }

    fn object(&mut self, name: &str) -> Result<(), ServiceError> {
        self.name(name, b'{')?;
        self.is_first = true;
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), ServiceError> {
        self.is_first = false;
        self.answer.write(|out| out.push(b'}'))
    }

    /// Writes an array of these entries.
    fn array<T>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Vec<u8>),
    ) -> Result<(), ServiceError> {
        self.name(name, b'[')?;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            self.answer.write(|out| {
                let start = out.len();
                for entry in entries.by_ref() {
                    write(entry, out);
                    out.push(b',');
                    if out.len() - start >= CHUNK_BYTES {
                        break;
                    }
                }
            })?;
        }
        self.answer.write(|out| match out.last_mut() {
            // Behind the last entry.
            Some(last) if *last == b',' => *last = b']',
            _ => out.push(b']'),
        })
    }

    /// Writes an array of values, with null where there is none.
    fn values<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<GroupValue<'a>>>,
    ) -> Result<(), ServiceError> {
        self.array(name, values, write_value)
    }
}
