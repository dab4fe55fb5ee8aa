//! Writes the answer of a query in columns: one array for each member, for programs and charts. Missing values are null.

use std::collections::HashMap;

use super::{QueryMetadata, member_name, write_quoted};
use crate::error::ServiceError;
use crate::ingest::json::{write_number, write_scalar};
use crate::service::query::{
    Aggregation, Aggregations, Answer, Column, FieldNames, GroupField, Groups, Points, QueryResult, Run,
};
use crate::timestamp::{TimestampFormatter, format_timestamp_ns};

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

/// A value of a group: the index of its field, its row, and the field in the group.
type GroupValue<'a> = (u32, u32, GroupField<'a>);

fn write_groups(groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let cells = groups.cells;
    let mut held = answer.hold();
    let mut fields = FieldNames::default();
    let mut values: Vec<GroupValue<'_>> = Vec::new();
    held.reserve(&mut values, cells.iter().map(|cell| cell.values().count()).sum())?;
    for (row, cell) in (0..).zip(cells) {
        let names = groups.field_names(groups.schema(cell));
        for field in groups.fields(cell) {
            let name = names[field.number as usize];
            values.push((fields.index(name, &mut held)?, row, field));
        }
    }
    values.sort_unstable_by_key(|(field, row, _)| (*field, *row));
    answer.reserve(256 + VALUE_BYTES * (cells.len() + values.len()))?;
    let mut columns = Columns::begin(answer)?;
    columns.array("timestamp", cells, |cell, out| {
        write_quoted(format_timestamp_ns(cell.start_ns).as_bytes(), out);
    })?;
    if !groups.is_merged() {
        let source_ids = cells.iter().filter_map(|cell| groups.source_id(cell));
        columns.array("dataSourceId", source_ids, |source_id, out| {
            write_quoted(&source_id.to_hex(), out);
        })?;
    }
    let rows = cells.len();
    columns.object("values")?;
    for (field, name) in (0..).zip(fields.names()) {
        let values = || of_field(&values, field, rows);
        match groups.aggregations {
            Aggregations::One(one) => {
                columns.numbers(name, values(), |field| Some(one.of(field.aggregate)))?
            }
            Aggregations::Several(all) => {
                columns.object(name)?;
                let is_there =
                    |one: &&Aggregation| values().flatten().any(|field| field.value(**one).is_some());
                for one in all.iter().filter(is_there) {
                    columns.numbers(one.name(), values(), |field| field.value(*one))?;
                }
                columns.end_object()?;
            }
        }
    }
    columns.end_object()?;
    if groups.downsampled.is_some() {
        columns.object("stats")?;
        for (field, name) in (0..).zip(fields.names()) {
            let values = || of_field(&values, field, rows);
            columns.object(name)?;
            for stat in [Aggregation::Min, Aggregation::Max, Aggregation::Count] {
                columns.numbers(stat.name(), values(), |field| Some(stat.of(field.aggregate)))?;
            }
            columns.end_object()?;
        }
        columns.end_object()?;
    }
    columns.end_object()?;
    QueryMetadata::of_groups(groups).write(answer)?;
    Ok(rows)
}

/// The aggregates of a field for each row. `values` are sorted by field and row.
fn of_field<'a>(
    values: &[GroupValue<'a>],
    field: u32,
    rows: usize,
) -> impl Iterator<Item = Option<GroupField<'a>>> {
    let first = values.partition_point(|(other, ..)| *other < field);
    let past = values.partition_point(|(other, ..)| *other <= field);
    let mut values = values[first..past].iter().peekable();
    (0..rows).map(move |row| {
        let value = values.next_if(|(_, other, _)| *other as usize == row);
        value.map(|(.., field)| *field)
    })
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
        for (index, entry) in entries.into_iter().enumerate() {
            self.answer.write(|out| {
                if index > 0 {
                    out.push(b',');
                }
                write(entry, out);
            })?;
        }
        self.answer.write(|out| out.push(b']'))
    }

    /// Writes an array of numbers of a field, with null where there is none.
    fn numbers<'a>(
        &mut self,
        name: &str,
        fields: impl Iterator<Item = Option<GroupField<'a>>>,
        number: impl Fn(GroupField<'a>) -> Option<f64>,
    ) -> Result<(), ServiceError> {
        self.array(name, fields, |field, out| match field.and_then(&number) {
            Some(number) => write_number(number, out),
            None => out.extend_from_slice(b"null"),
        })
    }
}
