//! Writes the answer of a query in columns: one array for each member, for programs and charts. Missing values are null.
//! Points are stored in columns, and are written array by array; groups are stored row by row or in columns
//! (`groups`).

mod groups;
mod texts;

use std::collections::HashMap;

use groups::write_groups;
use texts::ArrayText;

use super::{QueryMetadata, member_name, write_quoted, write_value};
use crate::error::ServiceError;
use crate::ingest::json::write_scalar;
use crate::service::query::{
    Answer, Column, FieldNames, GroupValue, Points, QueryResult, Run, RunExpression, Scalar,
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
            .map(|(run, row)| by_run[*run as usize].value(*row).map(Scalar::Number));
        columns.array(name, values, |value, out| {
            write_value(value.map(GroupValue::Value), out)
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

    /// Writes an array that has a text, and releases the memory of the text.
    fn text(&mut self, name: &str, mut text: ArrayText<'_>) -> Result<(), ServiceError> {
        self.name(name, b'[')?;
        let entries = text.complete()?;
        self.answer.reserve(entries.len() + 1)?;
        self.answer.write(|out| {
            out.extend_from_slice(entries);
            out.push(b']');
        })
    }
}
