use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use columnar::{ColumnSpec, Format, Kind, TableWriter};

use super::{cells, rng, shown};
use crate::ParquetReader;

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

/// A file of so many rows with a column of each type.
fn written(rows: usize) -> Vec<u8> {
    let spec = |name: &str, kind, is_nullable| ColumnSpec {
        name: name.to_owned(),
        kind,
        is_nullable,
        is_distinct: false,
    };
    let specs = [
        spec("time", Kind::Timestamp, false),
        spec("level", Kind::Number, true),
        spec("door", Kind::Boolean, true),
        spec("state", Kind::Text, true),
    ];
    let mut writer = TableWriter::new(Format::Parquet, &specs).unwrap();
    for row in 0..rows {
        let columns = writer.columns();
        columns[0].push_timestamp(row as i64);
        match row % 4 {
            0 => columns[1].push_null(),
            1 => columns[1].push_number(f64::NAN),
            _ => columns[1].push_number(row as f64 / 4.0),
        }
        columns[2].push_boolean(row % 2 == 0);
        columns[3].push_text(if row % 3 == 0 { "é" } else { "open" });
        writer.add_rows(1).unwrap();
    }
    writer.finish().unwrap();
    writer.take_bytes()
}

#[test]
fn rows_are_those_that_were_written() {
    let mut reader = ParquetReader::open(file_of(&written(20_000))).unwrap();
    let mut rows = Vec::new();
    while !reader.read().unwrap().is_empty() {
        assert!(reader.rows().len() <= crate::BATCH_ROWS_MAX);
        rows.extend(shown(reader.rows()));
    }
    assert_eq!(rows.len(), 20_000);
    let row = |row: usize| rows[row].1.clone();
    assert_eq!(
        row(1),
        cells(&[
            ("time", "Time(1)"),
            ("door", "Boolean(false)"),
            ("state", "Text(\"open\")")
        ])
    );
    assert_eq!(
        row(19_998),
        cells(&[
            ("time", "Time(19998)"),
            ("level", "Double(4999.5)"),
            ("door", "Boolean(true)"),
            ("state", "Text(\"é\")")
        ])
    );
}

#[test]
fn other_files_are_refused() {
    let refused = |bytes: &[u8]| ParquetReader::open(file_of(bytes)).err().unwrap().0;
    assert!(refused(b"").contains("too short"));
    assert!(refused(b"time,a\n1,2\n3,4\n").contains("does not end as one"));
    let mut footer = b"PAR1".to_vec();
    footer.extend_from_slice(&u32::MAX.to_le_bytes());
    footer.extend_from_slice(b"PAR1");
    assert!(refused(&footer).contains("row groups"));
}

/// Whatever is wrong with a file, reading it ends, without a panic and in bounded memory.
#[test]
fn damaged_files_are_refused_or_read() {
    let mut rng = rng();
    let whole = written(3_000);
    let mut opened = 0;
    for _ in 0..2_000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        if rng.u8(..8) == 0 {
            bytes.truncate(rng.usize(..bytes.len()));
        }
        let Ok(mut reader) = ParquetReader::open(file_of(&bytes)) else {
            continue;
        };
        opened += 1;
        while let Ok(rows) = reader.read() {
            if rows.is_empty() {
                break;
            }
        }
    }
    assert!(opened > 0);
}
