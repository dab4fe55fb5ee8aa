//! Exports as Parquet and Arrow. A field that sources declare with different types is a text in the spelling of JSON.

use columnar::{Column, ColumnSpec, Format, Kind, TableWriter};

use super::table::{Holds, RunColumns, Table, TableColumn};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::json::write_scalar;
use crate::service::query::{
    Answer, ColumnType, ExportShape, GroupValue, Groups, Points, QueryResult, Scalar, WriteExport,
};

/// Rows added before the size of the batch is looked at.
const ROWS_AT_ONCE: usize = 128;

/// Writes Parquet or Arrow.
pub struct BinaryWriter {
    table: Table,
    writer: TableWriter,
}

impl BinaryWriter {
    /// Begins a table.
    ///
    /// # Errors
    /// 500 if the columns make no schema.
    pub fn new(format: Format, shape: &ExportShape) -> Result<Self, ServiceError> {
        let table = Table::new(shape);
        let specs: Vec<_> = table.columns.iter().map(spec).collect();
        let writer = TableWriter::new(format, &specs).map_err(ServiceError::internal)?;
        Ok(BinaryWriter { table, writer })
    }

    fn write_points(&mut self, points: &Points<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        let mut held = answer.hold();
        let runs = self.table.runs(points, &mut held)?;
        let (rows, mut written) = (points.rows(), 0);
        while written < rows.len() && !answer.is_full() {
            let count = self.writer.room().min(ROWS_AT_ONCE).min(rows.len() - written);
            let batch = &rows[written..written + count];
            let mut place = 0;
            for (column, values) in self.table.columns.iter().zip(self.writer.columns()) {
                for (run, row) in batch {
                    push_of_point(values, column.holds, &runs[*run as usize], *row, place);
                }
                place += usize::from(matches!(column.holds, Holds::Value(_)));
            }
            add_rows(&mut self.writer, count, answer)?;
            written += count;
        }
        Ok(written)
    }

    fn write_groups(&mut self, groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        let mut reader = self.table.groups(groups);
        for (index, row) in groups.rows().enumerate() {
            if answer.is_full() {
                return Ok(index);
            }
            let mut found = reader.values(row).iter();
            for (column, values) in self.table.columns.iter().zip(self.writer.columns()) {
                match column.holds {
                    Holds::Timestamp => values.push_timestamp(row.start_ns),
                    Holds::SourceId => match row.source_id {
                        Some(id) => push_id(values, id),
                        None => values.push_null(),
                    },
                    Holds::Dimension(index) => match &row.dimensions[index] {
                        Some(value) => values.push_text(value),
                        None => values.push_null(),
                    },
                    Holds::Value(column_type) => match found.next() {
                        Some(Some(GroupValue::Value(value))) => push(values, column_type, Some(*value)),
                        Some(Some(GroupValue::Null) | None) | None => values.push_null(),
                    },
                    // Groups have neither.
                    Holds::PointId | Holds::Metadata => values.push_null(),
                }
            }
            add_rows(&mut self.writer, 1, answer)?;
        }
        Ok(groups.len())
    }
}

impl WriteExport for BinaryWriter {
    fn begin(&mut self, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
        pass_on(&mut self.writer, answer)
    }

    fn write(&mut self, rows: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
        match rows {
            QueryResult::Points(points) => self.write_points(points, answer),
            QueryResult::Groups(groups) => self.write_groups(groups, answer),
        }
    }

    fn end(&mut self, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
        self.writer.finish().map_err(ServiceError::internal)?;
        pass_on(&mut self.writer, answer)
    }
}

/// Counts rows whose values are in the columns, and writes the bytes that are complete.
fn add_rows(writer: &mut TableWriter, rows: usize, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
    writer.add_rows(rows).map_err(ServiceError::internal)?;
    pass_on(writer, answer)
}

fn pass_on(writer: &mut TableWriter, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
    let bytes = writer.take_bytes();
    if !bytes.is_empty() {
        answer.reserve(bytes.len())?;
        answer.write(|out| out.extend_from_slice(&bytes))?;
    }
    Ok(())
}

fn spec(column: &TableColumn) -> ColumnSpec {
    ColumnSpec {
        name: column.name.clone(),
        kind: match column.holds {
            Holds::Timestamp => Kind::Timestamp,
            Holds::Value(ColumnType::One(FieldType::Number)) => Kind::Number,
            Holds::Value(ColumnType::One(FieldType::Boolean)) => Kind::Boolean,
            Holds::Value(ColumnType::One(FieldType::String) | ColumnType::Several)
            | Holds::SourceId
            | Holds::PointId
            | Holds::Dimension(_)
            | Holds::Metadata => Kind::Text,
        },
        is_nullable: matches!(
            column.holds,
            Holds::Value(_) | Holds::Dimension(_) | Holds::Metadata
        ),
        is_distinct: matches!(column.holds, Holds::Timestamp | Holds::PointId),
    }
}

/// Adds a value of a point. `place`: of which field or expression.
fn push_of_point(values: &mut Column, holds: Holds, columns: &RunColumns<'_>, row: u32, place: usize) {
    let run = &columns.run;
    match holds {
        Holds::Timestamp => values.push_timestamp(run.timestamp_ns(row)),
        Holds::SourceId => push_id(values, run.source_id),
        Holds::PointId => push_id(values, run.point_id(row)),
        // Points have their dimensions in their metadata.
        Holds::Dimension(_) => values.push_null(),
        Holds::Metadata => match run.metadata(row) {
            Some(metadata) => values.push_text(metadata),
            None => values.push_null(),
        },
        Holds::Value(column_type) => {
            let value = match columns.fields.get(place) {
                Some(column) => column.and_then(|column| column.value(row as usize)),
                None => {
                    let expression = columns.expressions.get(place - columns.fields.len());
                    let number = expression.and_then(|expression| expression.value(row));
                    number.map(Scalar::Number)
                }
            };
            push(values, column_type, value);
        }
    }
}

fn push_id(values: &mut Column, id: ObjectId) {
    match std::str::from_utf8(&id.to_hex()) {
        Ok(text) => values.push_text(text),
        Err(_) => values.push_null(),
    }
}

fn push(values: &mut Column, column_type: ColumnType, value: Option<Scalar<'_>>) {
    match (column_type, value) {
        (_, None) => values.push_null(),
        (ColumnType::Several, Some(value)) => {
            let mut spelling = Vec::new();
            write_scalar(value, &mut spelling);
            values.push_text(&String::from_utf8_lossy(&spelling));
        }
        (ColumnType::One(_), Some(Scalar::Number(number))) => values.push_number(number),
        (ColumnType::One(_), Some(Scalar::Boolean(boolean))) => values.push_boolean(boolean),
        (ColumnType::One(_), Some(Scalar::Text(text))) => values.push_text(text),
    }
}
