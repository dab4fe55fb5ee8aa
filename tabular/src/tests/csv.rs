use super::{Read, cells, read, rng, whole};
use crate::{BATCH_ROWS_MAX, COLUMNS_MAX, Format, ROW_BYTES_MAX, TextReader};

fn csv(file: &str) -> Vec<Read> {
    whole(Format::Csv, file)
}

fn unreadable(file: &[u8]) -> String {
    read(Format::Csv, file, || usize::MAX).unwrap_err().0
}

#[test]
fn cells_are_what_rfc_4180_says() {
    let rows = csv("time,a,b\r\n1,\"x, \"\"y\"\"\",\r\n\r\n2,\"\",\"line\nbreak\"\r\n3,5\" pipe,z");
    assert_eq!(
        rows,
        [
            (2, cells(&[("time", "1"), ("a", "x, \"y\"")])),
            (4, cells(&[("time", "2"), ("a", ""), ("b", "line\nbreak")])),
            (6, cells(&[("time", "3"), ("a", "5\" pipe"), ("b", "z")])),
        ]
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_header() {
    let expected = [(2, cells(&[("time", "1")]))];
    assert_eq!(csv("\u{feff}time\n1\n"), expected);
    assert_eq!(csv("\u{feff}\"time\"\n1\n"), expected);
    let in_bytes = read(Format::Csv, "\u{feff}time\n1\n".as_bytes(), || 1);
    assert_eq!(in_bytes.unwrap().0, expected);
    // The beginning of one, and then something else: a column with the name "！".
    assert_eq!(csv("\u{ff01}\n1\n"), [(2, cells(&[("\u{ff01}", "1")]))]);
}

#[test]
fn rows_with_faults_are_named_and_the_others_go_on() {
    let mut file = b"time,a\n1\n2,b,c\n3,\xff\n".to_vec();
    file.extend_from_slice(&vec![b'x'; ROW_BYTES_MAX + 1]);
    file.extend_from_slice(b",y\n5,e\n6");
    let (rows, _) = read(Format::Csv, &file, || 1_000).unwrap();
    let faults: Vec<(u64, Option<&str>)> = rows
        .iter()
        .map(|(line, row)| (*line, row.as_ref().err().map(String::as_str)))
        .collect();
    assert_eq!(
        faults,
        [
            (2, Some("has 1 cells, and the header has 2")),
            (3, Some("has 3 cells, and the header has 2")),
            (4, Some("is not UTF-8")),
            (5, Some("is longer than 1048576 bytes")),
            (6, None),
            (7, Some("has 1 cells, and the header has 2")),
        ]
    );
}

/// Regression: the two halves of a character in two cells made a row of empty texts.
#[test]
fn a_character_is_in_one_cell() {
    let (rows, _) = read(Format::Csv, b"a,b\n\xc3,\xa9\n\xc3\xa9,\n", || 1_000).unwrap();
    assert_eq!(rows[0].1.as_ref().unwrap_err(), "is not UTF-8");
    assert!(rows[1].1.is_ok());
}

#[test]
fn files_that_differ_in_what_is_no_text_have_other_digests() {
    let digest = |file: &[u8]| {
        let mut reader = TextReader::new(Format::Csv);
        reader.read(file).unwrap();
        reader.finish().unwrap();
        let mut covered = Vec::new();
        reader.rows().digest(|bytes| covered.extend_from_slice(bytes));
        covered
    };
    let files: [&[u8]; 4] = [b"a\n\xff\n", b"a\n\xfe\n", b"a\n1\n\xff\n", b"a\n1\n"];
    for (index, file) in files.iter().enumerate() {
        for other in &files[index + 1..] {
            assert_ne!(digest(file), digest(other), "{file:?} {other:?}");
        }
    }
}

#[test]
fn a_header_that_names_no_columns_makes_the_file_unreadable() {
    assert!(unreadable(b"").contains("empty"));
    assert!(unreadable(b"\n\n").contains("empty"));
    assert!(unreadable(b"a,,b\n").contains("column 2"));
    assert!(unreadable(b"a,b,a\n").contains("\"a\" twice"));
    assert!(unreadable(b"a,\xff\n").contains("UTF-8"));
    let many: Vec<String> = (0..=COLUMNS_MAX).map(|column| column.to_string()).collect();
    assert!(unreadable(many.join(",").as_bytes()).contains("more than 1024 columns"));
    assert!(unreadable(&vec![b'x'; ROW_BYTES_MAX + 1]).contains("longer"));
    assert_eq!(csv("a,b\n"), []);
}

/// The text of a cell, quoted if it has to be or at random.
fn quoted(text: &str, quotes: bool) -> String {
    match quotes || text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[test]
fn the_same_rows_and_batches_come_of_any_pieces() {
    let mut rng = rng();
    let pieces = ["", "1", "x", ",", "\"", "\n", "\r\n", "é", "港", " "];
    let columns = rng.usize(1..6);
    let mut file = (0..columns)
        .map(|column| format!("c{column}"))
        .collect::<Vec<_>>()
        .join(",");
    let mut expected = Vec::new();
    for _ in 0..2 * BATCH_ROWS_MAX + 100 {
        let texts: Vec<String> = (0..columns)
            .map(|_| {
                (0..rng.usize(0..4))
                    .map(|_| pieces[rng.usize(..pieces.len())])
                    .collect()
            })
            .collect();
        // A row of one empty cell is a blank line unless it is quoted.
        let cells: Vec<String> = texts
            .iter()
            .map(|text| quoted(text, columns == 1 || rng.bool()))
            .collect();
        file.push_str(if rng.bool() { "\n" } else { "\r\n" });
        file.push_str(&cells.join(","));
        let read = texts
            .iter()
            .zip(&cells)
            .enumerate()
            .filter(|(_, (_, cell))| !cell.is_empty());
        expected.push(
            read.map(|(column, (text, _))| (format!("c{column}"), text.clone()))
                .collect::<Vec<_>>(),
        );
    }
    let once = read(Format::Csv, file.as_bytes(), || usize::MAX).unwrap();
    let rows: Vec<_> = once.0.iter().map(|(_, row)| row.clone().unwrap()).collect();
    assert!(rows == expected);
    for most in [1, 7, 1_000, 100_000] {
        let again = read(Format::Csv, file.as_bytes(), || rng.usize(1..=most)).unwrap();
        assert!(again == once, "pieces of up to {most} bytes");
    }
}

#[test]
fn batches_are_bounded_whatever_the_rows_are() {
    // Many cells without text, and few with much.
    let header = (0..1_000)
        .map(|column| column.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let row = vec!["1"; 1_000].join(",");
    let file = format!("{header}\n{}", format!("{row}\n").repeat(1_000));
    let (_, batches) = read(Format::Csv, file.as_bytes(), || 65_536).unwrap();
    assert!(batches.iter().all(|rows| *rows <= 132), "{batches:?}");
    let file = format!("a\n{}", format!("{}\n", "x".repeat(ROW_BYTES_MAX)).repeat(5));
    let (rows, batches) = read(Format::Csv, file.as_bytes(), || 65_536).unwrap();
    assert_eq!((rows.len(), batches), (5, vec![1, 1, 1, 1, 1, 0]));
}
