//! Answers in columnar layout: one array per member, for programs and charts. Missing values are null.

use std::collections::HashMap;

use engine::query::{Cell, Grouped, Held, Page, PageRun, scan_within};
use engine::{Aggregate, Column, Values};

use super::answer::Answer;
use super::grouped::{Coverage, value};
use super::plan::{Plan, Reached, Selected};
use super::raw::Progress;
use super::{AnswerBytes, Grouping, engine_error, member_name};
use crate::bucket::point_id;
use crate::error::ServiceError;
use crate::ingest::json::{write_number, write_string};
use crate::query_pool::Stop;
use crate::timestamp::{TimestampFormatter, format_timestamp_ns};

/// Estimated size of a value in the answer.
const VALUE_BYTES: usize = 20;

/// The fields of an answer, in the order in which they first occur in its rows.
#[derive(Default)]
struct Fields<'n> {
    names: Vec<&'n str>,
    places: HashMap<&'n str, u32>,
}

impl<'n> Fields<'n> {
    /// The index of a field's column.
    fn place(&mut self, name: &'n str, held: &mut Held<'_>) -> Result<u32, ServiceError> {
        if let Some(place) = self.places.get(name) {
            return Ok(*place);
        }
        held.grow(4 * size_of::<&str>()).map_err(engine_error)?;
        let place = self.names.len() as u32;
        self.names.push(name);
        self.places.insert(name, place);
        Ok(place)
    }
}

/// The columns of a run by their indexes in the answer.
type RunColumns<'p> = HashMap<u32, &'p Column>;

/// A value of a cell: its column, its row, and the aggregate.
type Placed<'c> = (u32, u32, &'c Aggregate);

impl Plan {
    pub(super) fn write_group_columns<'b>(
        &self,
        groups: &Grouped<'_>,
        sources: &[Selected],
        coverage: &Coverage,
        grouping: &Grouping,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let (page, more) = self.page_of(groups);
        let mut held = stop.budget().hold();
        let (fields, placed) = self.placed(page, sources, coverage, &mut held)?;
        let mut out = Answer::new(256 + VALUE_BYTES * (page.len() + placed.len()), stop.budget())
            .map_err(engine_error)?;
        let mut columns = Columns::begin(&mut out)?;
        columns.array("timestamp", page, |cell, out| {
            let start = format_timestamp_ns(cell.start_ns);
            quoted(start.as_bytes(), out);
        })?;
        if coverage.merged.is_none() {
            columns.array("dataSourceId", page, |cell, out| {
                quoted(&sources[cell.source as usize].source.id.to_hex(), out);
            })?;
        }
        let rows = page.len();
        let number = |make: fn(&Aggregate) -> f64| {
            move |aggregate: &Aggregate, out: &mut Vec<u8>| write_number(make(aggregate), out)
        };
        columns.object("values")?;
        for (place, name) in (0..).zip(&fields.names) {
            columns.sparse(name, of_column(&placed, place), rows, |aggregate, out| {
                write_number(value(aggregate, grouping.aggregation), out);
            })?;
        }
        columns.end_object()?;
        if grouping.chosen.is_some() {
            columns.object("stats")?;
            for (place, name) in (0..).zip(&fields.names) {
                let placed = of_column(&placed, place);
                columns.object(name)?;
                columns.sparse("min", placed, rows, number(|aggregate| aggregate.min))?;
                columns.sparse("max", placed, rows, number(|aggregate| aggregate.max))?;
                columns.sparse("count", placed, rows, number(|aggregate| aggregate.count as f64))?;
                columns.end_object()?;
            }
            columns.end_object()?;
        }
        columns.end()?;
        out.write(|out| self.write_groups_end(page.len(), more, grouping, out))
            .map_err(engine_error)?;
        out.finish().map_err(engine_error)
    }

    /// The fields of the page, and its values sorted by column and row.
    fn placed<'c>(
        &'c self,
        page: &'c [Cell],
        sources: &[Selected],
        coverage: &'c Coverage,
        held: &mut Held<'_>,
    ) -> Result<(Fields<'c>, Vec<Placed<'c>>), ServiceError> {
        let mut fields = Fields::default();
        let mut placed = Vec::new();
        held.reserve(&mut placed, page.iter().map(|cell| cell.values().count()).sum())
            .map_err(engine_error)?;
        for (row, cell) in (0..).zip(page) {
            for (number, aggregate) in cell.values() {
                let name = match &coverage.merged {
                    Some(names) => &names[number as usize],
                    None => {
                        let schema = sources[cell.source as usize].schema;
                        let field = coverage.by_schema[schema].fields[number as usize];
                        self.schemas[schema].name(field)
                    }
                };
                placed.push((fields.place(name, held)?, row, aggregate));
            }
        }
        placed.sort_unstable_by_key(|(column, row, _)| (*column, *row));
        Ok((fields, placed))
    }

    pub(super) fn raw_columns<'b>(
        &self,
        reached: &Reached<'_>,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let (selections, _selected) = self.selections(reached, stop)?;
        let filter = |text: Option<&str>| self.passes(text);
        let stop_now = || stop.now();
        let progress = Progress::whole(self.raw_limit());
        let query = self.scan_query(&filter, &progress, &stop_now);
        let (page, _held) = scan_within(&selections, &query, stop.budget()).map_err(engine_error)?;
        stop.touched(page.touched);
        self.write_raw_columns(&page, &reached.sources, stop)
    }

    fn write_raw_columns<'b>(
        &self,
        page: &Page,
        sources: &[Selected],
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let mut held = stop.budget().hold();
        let (fields, by_run) = self.run_columns(page, sources, &mut held)?;
        let rows = &page.rows;
        let run_of = |run: &u32| &page.runs[*run as usize];
        let mut timestamps = TimestampFormatter::default();
        let mut out = Answer::new(256 + VALUE_BYTES * 4 * rows.len(), stop.budget()).map_err(engine_error)?;
        let mut columns = Columns::begin(&mut out)?;
        columns.array("_id", rows, |(run, row), out| {
            let (_, sequence) = run_of(run).columns.key(*row as usize);
            quoted(&point_id(self.bucket.ordinal, sequence), out);
        })?;
        columns.array("timestamp", rows, |(run, row), out| {
            let (timestamp_ns, _) = run_of(run).columns.key(*row as usize);
            quoted(timestamps.format(timestamp_ns).as_bytes(), out);
        })?;
        columns.array("dataSourceId", rows, |(run, _), out| {
            quoted(&sources[run_of(run).selection].source.id.to_hex(), out);
        })?;
        columns.object("values")?;
        for (place, name) in (0..).zip(&fields.names) {
            let of_runs = by_run.iter().map(|columns| columns.get(&place).copied());
            let of_runs: Vec<Option<&Column>> = of_runs.collect();
            columns.array(name, rows, |(run, row), out| {
                write_value(of_runs[*run as usize], *row as usize, out);
            })?;
        }
        columns.end_object()?;
        let metadata = |run: &u32| run_of(run).columns.metadata.as_deref();
        let has_metadata =
            |(run, row): &(u32, u32)| metadata(run).is_some_and(|column| column.has(*row as usize));
        if rows.iter().any(has_metadata) {
            columns.array("metadata", rows, |(run, row), out| {
                match metadata(run).filter(|column| column.has(*row as usize)) {
                    Some(Column {
                        values: Values::Texts(texts),
                        ..
                    }) => out.extend_from_slice(texts.get(*row as usize).as_bytes()),
                    _ => out.extend_from_slice(b"null"),
                }
            })?;
        }
        columns.end()?;
        let last = rows
            .last()
            .map(|(run, row)| run_of(run).columns.key(*row as usize));
        let progress = Progress::through(rows.len(), last);
        out.write(|out| self.write_end(&progress, page.more, out))
            .map_err(engine_error)?;
        out.finish().map_err(engine_error)
    }

    /// The fields of the page, and the columns of each run by their indexes in the answer.
    fn run_columns<'p>(
        &'p self,
        page: &'p Page,
        sources: &[Selected],
        held: &mut Held<'_>,
    ) -> Result<(Fields<'p>, Vec<RunColumns<'p>>), ServiceError> {
        let mut fields = Fields::default();
        let mut by_run = Vec::new();
        held.reserve(&mut by_run, page.runs.len()).map_err(engine_error)?;
        for PageRun {
            selection, columns, ..
        } in &page.runs
        {
            let resolved = self.resolved(&sources[*selection]);
            let mut of_run = HashMap::new();
            for ordinal in resolved.ordinals() {
                if let Some(column) = columns.field(ordinal) {
                    held.grow(4 * size_of::<&Column>()).map_err(engine_error)?;
                    of_run.insert(fields.place(resolved.name(ordinal), held)?, column);
                }
            }
            by_run.push(of_run);
        }
        Ok((fields, by_run))
    }
}

/// The values of one column, ascending by row.
fn of_column<'p, 'c>(placed: &'p [Placed<'c>], column: u32) -> &'p [Placed<'c>] {
    let first = placed.partition_point(|(other, ..)| *other < column);
    let past = placed.partition_point(|(other, ..)| *other <= column);
    &placed[first..past]
}

fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

fn write_value(column: Option<&Column>, row: usize, out: &mut Vec<u8>) {
    match column
        .filter(|column| column.has(row))
        .map(|column| &column.values)
    {
        Some(Values::Numbers { values, .. }) => write_number(values[row], out),
        Some(Values::Booleans(values)) => out.extend_from_slice(if values[row] { b"true" } else { b"false" }),
        Some(Values::Texts(texts)) => write_string(texts.get(row), out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes `{"columns":{…}`, member by member.
struct Columns<'o, 'b> {
    out: &'o mut Answer<'b>,
    /// Whether the open object has no members yet.
    is_first: bool,
}

impl<'o, 'b> Columns<'o, 'b> {
    fn begin(out: &'o mut Answer<'b>) -> Result<Self, ServiceError> {
        out.write(|out| out.extend_from_slice(br#"{"columns":{"#))
            .map_err(engine_error)?;
        Ok(Columns { out, is_first: true })
    }

    /// Ends the columns. The metadata of the answer follows.
    fn end(self) -> Result<(), ServiceError> {
        self.out.write(|out| out.push(b'}')).map_err(engine_error)
    }

    fn name(&mut self, name: &str, opening: u8) -> Result<(), ServiceError> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let named = |out: &mut Vec<u8>| {
            if !is_first {
                out.push(b',');
            }
            out.extend_from_slice(&member_name(name));
            out.push(opening);
        };
        self.out.write(named).map_err(engine_error)
    }

    fn object(&mut self, name: &str) -> Result<(), ServiceError> {
        self.name(name, b'{')?;
        self.is_first = true;
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), ServiceError> {
        self.is_first = false;
        self.out.write(|out| out.push(b'}')).map_err(engine_error)
    }

    /// Writes an array with an entry for each row.
    fn array<T>(
        &mut self,
        name: &str,
        rows: &[T],
        mut write: impl FnMut(&T, &mut Vec<u8>),
    ) -> Result<(), ServiceError> {
        self.name(name, b'[')?;
        for (index, row) in rows.iter().enumerate() {
            let entry = |out: &mut Vec<u8>| {
                if index > 0 {
                    out.push(b',');
                }
                write(row, out);
            };
            self.out.write(entry).map_err(engine_error)?;
        }
        self.out.write(|out| out.push(b']')).map_err(engine_error)
    }

    /// Writes an array from the rows that have a value, with null for the others.
    fn sparse(
        &mut self,
        name: &str,
        placed: &[Placed<'_>],
        rows: usize,
        write: impl Fn(&Aggregate, &mut Vec<u8>),
    ) -> Result<(), ServiceError> {
        self.name(name, b'[')?;
        let mut placed = placed.iter().peekable();
        for index in 0..rows {
            let there = placed.next_if(|(_, row, _)| *row as usize == index);
            let entry = |out: &mut Vec<u8>| {
                if index > 0 {
                    out.push(b',');
                }
                match there {
                    Some((.., aggregate)) => write(aggregate, out),
                    None => out.extend_from_slice(b"null"),
                }
            };
            self.out.write(entry).map_err(engine_error)?;
        }
        self.out.write(|out| out.push(b']')).map_err(engine_error)
    }
}
