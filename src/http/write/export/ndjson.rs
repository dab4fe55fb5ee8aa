//! Exports as NDJSON: each line is a row of a query's `data`.

use super::super::rows::{GroupNames, point_fields, run_writers, write_group};
use crate::error::ServiceError;
use crate::service::query::{Answer, Groups, Points, QueryResult, WriteExport};
use crate::timestamp::TimestampFormatter;

/// Writes NDJSON.
pub struct NdjsonWriter;

impl WriteExport for NdjsonWriter {
    fn begin(&mut self, _: &mut Answer<'_>) -> Result<(), ServiceError> {
        Ok(())
    }

    fn write(&mut self, rows: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        match rows {
            QueryResult::Points(points) => write_points(points, answer),
            QueryResult::Groups(groups) => write_groups(groups, answer),
        }
    }

    fn end(&mut self, _: &mut Answer<'_>) -> Result<(), ServiceError> {
        Ok(())
    }
}

fn write_points(points: &Points<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let mut held = answer.hold();
    let fields = point_fields(points, &mut held)?;
    let writers = run_writers(points, &fields, &mut held)?;
    let mut timestamps = TimestampFormatter::default();
    for (index, (run, row)) in points.rows().iter().enumerate() {
        if answer.is_full() {
            return Ok(index);
        }
        answer.write(|out| {
            writers[*run as usize].write(*row, &mut timestamps, out);
            out.push(b'\n');
        })?;
    }
    Ok(points.rows().len())
}

fn write_groups(groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let mut held = answer.hold();
    let mut names = GroupNames::default();
    let mut timestamps = TimestampFormatter::default();
    for (index, row) in groups.rows().enumerate() {
        if answer.is_full() {
            return Ok(index);
        }
        let names = names.of(groups, row.schema, &mut held)?;
        answer.write(|out| {
            write_group(groups, row, names, &timestamps.format(row.start_ns), out);
            out.push(b'\n');
        })?;
    }
    Ok(groups.len())
}
