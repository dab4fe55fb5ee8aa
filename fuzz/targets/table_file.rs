//! Files of rows as CSV and NDJSON: whatever they hold, the same rows and batches come of any pieces, in bounded memory.
//!
//! The first byte of an input selects the format, the second the size of pieces.

use tabular::{Cell, Format, TextReader};

use super::memory;

/// Cells and texts of a batch, and the input itself as rows.
const HELD_PER_BYTE: u64 = 64;

pub fn check(data: &[u8]) {
    let Some(([kind, piece], file)) = data.split_first_chunk() else {
        return;
    };
    let format = if kind % 2 == 0 {
        Format::Csv
    } else {
        Format::Ndjson
    };
    memory::bounded(file.len(), HELD_PER_BYTE, || {
        let whole = read(format, file, file.len().max(1));
        let in_pieces = read(format, file, usize::from(*piece) + 1);
        assert!(
            whole == in_pieces,
            "{:?}: {whole:?} is not {in_pieces:?}",
            String::from_utf8_lossy(file)
        );
    });
}

/// What is read of a file, as text; `Err` if it is unreadable.
fn read(format: Format, file: &[u8], piece: usize) -> Result<String, String> {
    let mut reader = TextReader::new(format);
    let mut out = String::new();
    for mut bytes in file.chunks(piece) {
        while !bytes.is_empty() {
            let taken = reader.read(bytes).map_err(|error| error.to_string())?;
            bytes = &bytes[taken..];
            if reader.rows().is_full() {
                show(&reader, &mut out);
                reader.clear();
            }
        }
    }
    reader.finish().map_err(|error| error.to_string())?;
    show(&reader, &mut out);
    Ok(out)
}

fn show(reader: &TextReader, out: &mut String) {
    let columns = reader.rows().columns().len();
    for (place, row) in reader.rows().iter().enumerate() {
        for (column, cell) in row.cells() {
            assert!(column < columns);
            assert!(!matches!(cell, Cell::Double(number) if !number.is_finite()));
            out.push_str(&format!("{column}={cell:?},"));
        }
        out.push_str(&format!("{:?} {:?}\n", reader.rows().line(place), row.fault));
    }
    out.push_str("--\n");
}
