use super::{Read, cells, read, rng, whole};
use crate::{BATCH_ROWS_MAX, COLUMNS_MAX, Format, ROW_BYTES_MAX};

fn ndjson(file: &str) -> Vec<Read> {
    whole(Format::Ndjson, file)
}

#[test]
fn members_are_columns_and_keep_their_types() {
    let rows = ndjson(
        "{\"time\":1700000000000000001,\"a\":\"x\\n\\u00e9\",\"b\":null,\"c\":true}\r\n\n  \n\
         { \"c\" : false , \"d\" : {\"e\":[1]} , \"f\":-1.50 }",
    );
    assert_eq!(
        rows,
        [
            (
                1,
                cells(&[
                    ("time", "Spelled(\"1700000000000000001\")"),
                    ("a", "Text(\"x\\né\")"),
                    ("c", "Boolean(true)")
                ])
            ),
            (
                4,
                cells(&[
                    ("c", "Boolean(false)"),
                    ("d", "Json(\"{\\\"e\\\":[1]}\")"),
                    ("f", "Spelled(\"-1.50\")")
                ])
            ),
        ]
    );
}

#[test]
fn rows_with_faults_are_named_and_the_others_go_on() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(ROW_BYTES_MAX));
    let mut file = format!(
        "[1]\n{{\"a\":1\n{{\"a\":1}} 2\n{{\"a\":1,\"a\":2}}\n{long}\n{{\"a\":}}\n{{\"a\":\"\\x\"}}\n"
    )
    .into_bytes();
    file.extend_from_slice(b"{\"a\":\"\xff\"}\n{\"a\":3}");
    for piece in [usize::MAX, 1_000] {
        let (rows, _) = read(Format::Ndjson, &file, || piece).unwrap();
        let good: Vec<_> = rows.iter().filter(|(_, row)| row.is_ok()).collect();
        assert_eq!(good, [&(9, cells(&[("a", "Spelled(\"3\")")]))]);
        let fault = |line: usize| rows[line - 1].1.clone().unwrap_err();
        assert!(fault(1).contains("not a JSON object"), "{}", fault(1));
        assert!(fault(4).contains("\"a\" twice"), "{}", fault(4));
        assert!(fault(5).contains("longer than"), "{}", fault(5));
        assert!(fault(8).contains("UTF-8"), "{}", fault(8));
    }
}

#[test]
fn the_columns_of_a_batch_are_bounded() {
    let many: Vec<String> = (0..=COLUMNS_MAX)
        .map(|column| format!("\"{column}\":1"))
        .collect();
    let file = format!("{{{}}}\n{{\"0\":1}}\n", many.join(","));
    let rows = ndjson(&file);
    assert!(rows[0].1.as_ref().unwrap_err().contains("different members"));
    assert!(rows[1].1.is_ok());
}

#[test]
fn the_same_rows_and_batches_come_of_any_pieces() {
    let mut rng = rng();
    let mut file = String::new();
    for row in 0..2 * BATCH_ROWS_MAX + 10 {
        let end = if rng.bool() { "\n" } else { "\r\n\n" };
        file.push_str(&format!(
            "{{\"time\":{row},\"c{}\":\"é\\\"\"}}{end}",
            rng.u32(0..4)
        ));
    }
    let once = read(Format::Ndjson, file.as_bytes(), || usize::MAX).unwrap();
    assert_eq!(once.1, [BATCH_ROWS_MAX, BATCH_ROWS_MAX, 10]);
    for most in [1, 30, 100_000] {
        let again = read(Format::Ndjson, file.as_bytes(), || rng.usize(1..=most)).unwrap();
        assert!(again == once, "pieces of up to {most} bytes");
    }
}
