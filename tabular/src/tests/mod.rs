//! Files that are read in pieces, and what their rows are.

mod csv;
mod ndjson;
mod parquet;

use fastrand::Rng;

use crate::{Cell, Format, Rows, TextReader, Unreadable};

/// A row as a test compares it: its line, and its cells or its fault.
pub type Read = (u64, Result<Vec<(String, String)>, String>);

/// Reads a file whose bytes arrive in pieces. Returns its rows, and the number of rows of each batch.
pub fn read(
    format: Format,
    file: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Result<(Vec<Read>, Vec<usize>), Unreadable> {
    let mut reader = TextReader::new(format);
    let (mut rows, mut batches) = (Vec::new(), Vec::new());
    let mut rest = file;
    while !rest.is_empty() {
        let (mut bytes, behind) = rest.split_at(piece().clamp(1, rest.len()));
        rest = behind;
        while !bytes.is_empty() {
            bytes = &bytes[reader.read(bytes)?..];
            if reader.rows().is_full() {
                rows.extend(shown(reader.rows()));
                batches.push(reader.rows().len());
                reader.clear();
            }
        }
    }
    reader.finish()?;
    rows.extend(shown(reader.rows()));
    batches.push(reader.rows().len());
    Ok((rows, batches))
}

/// Reads a file in one piece.
pub fn whole(format: Format, file: &str) -> Vec<Read> {
    read(format, file.as_bytes(), || usize::MAX).unwrap().0
}

pub fn shown(rows: &Rows) -> Vec<Read> {
    let names: Vec<&str> = rows.columns().collect();
    let row = |(index, row): (usize, crate::Row<'_>)| {
        let cells = row
            .cells()
            .map(|(column, cell)| (names[column].to_owned(), text(cell)));
        let read = match row.fault {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(cells.collect()),
        };
        (rows.line(index).unwrap_or(0), read)
    };
    rows.iter().enumerate().map(row).collect()
}

fn text(cell: Cell<'_>) -> String {
    match cell {
        Cell::Untyped(text) => text.to_owned(),
        other => format!("{other:?}"),
    }
}

pub fn cells(cells: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    let owned = cells
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Ok(owned.collect())
}

/// A generator, whose seed is printed.
pub fn rng() -> Rng {
    let seed = std::env::var("TABULAR_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("TABULAR_SEED={seed}");
    Rng::with_seed(seed)
}
