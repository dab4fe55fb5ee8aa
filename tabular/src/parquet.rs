//! Parquet: the rows of a file, by crate `columnar`.

use std::fs::File;

use columnar::{Batch, TableReader, Value};

use crate::{BATCH_ROWS_MAX, Rows, Unreadable};

/// Reads a Parquet file.
pub struct ParquetReader {
    reader: TableReader,
    /// The rows that `columnar` has read, and the next of them.
    batch: Option<(Batch, usize)>,
    rows: Rows,
}

impl ParquetReader {
    /// Begins a file.
    ///
    /// # Errors
    /// It is no Parquet file, or has something that cannot be read within bounded memory.
    pub fn open(file: File) -> Result<Self, Unreadable> {
        let reader = TableReader::open(file).map_err(unreadable)?;
        let mut rows = Rows::default();
        for name in reader.columns() {
            if name.is_empty() {
                return Err(Unreadable("the file has a column without a name".to_owned()));
            }
            if rows.add_column(name).is_none() {
                return Err(Unreadable(format!(
                    "the file has the column {name:?} twice, or too many columns"
                )));
            }
        }
        Ok(ParquetReader {
            reader,
            batch: None,
            rows,
        })
    }

    /// Fills the next batch. It is empty if there are no more rows.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn read(&mut self) -> Result<&Rows, Unreadable> {
        self.rows.clear();
        while self.rows.len() < BATCH_ROWS_MAX && !self.rows.is_full() {
            let (batch, row) = match self.batch.take() {
                Some((batch, row)) if row < batch.rows() => (batch, row),
                _ => match self.reader.read().map_err(unreadable)? {
                    Some(batch) => (batch, 0),
                    None => break,
                },
            };
            if row < batch.rows() {
                push_row(&mut self.rows, &batch, row);
            }
            self.batch = Some((batch, row + 1));
        }
        Ok(&self.rows)
    }

    /// The batch.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
}

fn push_row(rows: &mut Rows, batch: &Batch, row: usize) {
    let columns = rows.columns().len();
    for column in 0..columns {
        let place = column as u32;
        match batch.value(column, row) {
            Value::Null => {}
            // Parquet's writers use NaN for values that are missing.
            Value::Number(number) if number.is_nan() => {}
            Value::Number(number) if number.is_infinite() => {
                let name = rows.columns().nth(column).unwrap_or_default();
                let fault = format!("has {number} in column {name:?}; numbers have to be finite");
                return rows.end_faulty_row(None, fault);
            }
            Value::Number(number) => rows.push_double(place, number),
            Value::Integer(number) => rows.push_integer(place, number),
            Value::Boolean(boolean) => rows.push_boolean(place, boolean),
            Value::Timestamp(ns) => rows.push_time(place, ns),
            Value::Text(text) => rows.push_text(place, text),
            Value::OutOfRange => {
                let name = rows.columns().nth(column).unwrap_or_default();
                let fault = format!("has a time in column {name:?} that nanoseconds in 64 bits do not reach");
                return rows.end_faulty_row(None, fault);
            }
        }
    }
    rows.end_row(None);
}

fn unreadable(error: columnar::ReadError) -> Unreadable {
    Unreadable(error.to_string())
}
