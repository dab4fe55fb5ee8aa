//! Blocks round-trip, and damage is reported instead of returning wrong rows.

use std::sync::Arc;

use super::read::SectionKind;
use super::*;
use crate::aggregate::Aggregate;
use crate::bytes::Reader;
use crate::cache::Cache;
use crate::column::Values;
use crate::columns::Columns;
use crate::rows::{RowsReader, RowsWriter, Table};
use crate::value::{Ends, Value};

/// `rows` rows, one a second, with a number in every row and a text in every fifth.
fn columns(rows: i64) -> Columns {
    let mut writer = RowsWriter::new();
    for row in 0..rows {
        writer.begin(1);
        writer.number(0, (200 + row % 17) as f64 / 10.0, 1);
        if row % 5 == 0 {
            writer.string(3, "text");
            writer.metadata("{}");
        }
        writer.commit(row * 1_000_000_000);
    }
    decoded(&writer)
}

/// The rows of a writer with one source.
fn decoded(writer: &RowsWriter) -> Columns {
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    let mut columns = Columns::default();
    let mut reader = RowsReader::new(&bytes, Table::default()).unwrap();
    let table = reader.next().unwrap().unwrap();
    columns.append(table, 0..table.timestamps_ns.len(), 1);
    columns
}

/// Regression: the row count of an entry with a valid checksum was trusted, and rows with equal steps take two numbers
/// on disk.
#[test]
fn more_rows_than_a_block_may_hold_are_damage() {
    let block = encode_block(7, &columns(100));
    for (rows, reads) in [
        (1, true),
        (BLOCK_ROWS_MAX as u32, true),
        (BLOCK_ROWS_MAX as u32 + 1, false),
        (u32::MAX, false),
    ] {
        let summary = BlockSummary {
            rows,
            fields: Box::default(),
            ..BlockSummary::clone(&block.summary)
        };
        let mut bytes = Vec::new();
        summary.encode(&mut bytes);
        let read = BlockSummary::decode(&mut Reader::new(&bytes, "entry"));
        assert_eq!(read.is_ok(), reads, "{rows}");
    }
}

/// Found by the fuzz target `segment`: a block without a footer whose directory had fields out of order was accepted,
/// and the block written from it was damaged.
#[test]
fn fields_out_of_order_are_damage() {
    let block = encode_block(7, &columns(100));
    assert!(BlockReader::new(&block).unwrap().columns().is_ok());
    let [first, second] = &block.summary.fields[..] else {
        panic!("two fields")
    };
    for fields in [[second, first], [first, first]] {
        let summary = BlockSummary {
            fields: fields.map(Clone::clone).into(),
            ..BlockSummary::clone(&block.summary)
        };
        let home: SharedBytes = Arc::new(block.bytes().unwrap().to_vec());
        let block = Block::new(summary, home, 0..block.place().len());
        assert!(BlockReader::new(&block).unwrap().columns().is_err());
    }
}

/// Decimals as sensors send them take the same space as before carries were introduced.
#[test]
fn carries_are_written_only_for_very_long_decimals() {
    let written = |rows: i64, first: i64| {
        let mut original = columns(rows);
        let Values::Numbers { values, .. } = &mut original.fields[0].column.values else {
            panic!("numbers")
        };
        values
            .iter_mut()
            .for_each(|value| *value = (first + (*value * 10.0) as i64) as f64 / 10.0);
        let block = encode_block(7, &original);
        let carries = SectionKind::RollupCarries as u8;
        let sections = BlockReader::new(&block).unwrap().directory.sections;
        let in_rollups = sections.iter().any(|section| section.kind == carries);
        let mut footer = Vec::new();
        block.summary.encode(&mut footer);
        (in_rollups, footer.len())
    };
    let (in_rollups, len) = written(8_192, 0);
    assert!(!in_rollups);
    assert!(!written(8_192, 12_345_678).0);
    let (in_rollups, with_carry) = written(8_192, 100_000_000_000_000);
    assert!(in_rollups);
    assert!(with_carry > len + 16, "doubles in the footer, and one more");
}

/// A count is added to others, and must not overflow.
#[test]
fn more_values_than_rows_are_damage() {
    let block = encode_block(7, &columns(100));
    // The number is in each of 100 rows, the text in 20 of them.
    for (rows, reads) in [(100, [true, true]), (99, [false, true]), (19, [false, false])] {
        let summary = BlockSummary {
            rows,
            ..BlockSummary::clone(&block.summary)
        };
        for (kept, reads) in summary.fields.iter().zip(reads) {
            let fields = Box::new([kept.clone()]);
            let mut bytes = Vec::new();
            BlockSummary {
                fields,
                ..summary.clone()
            }
            .encode(&mut bytes);
            let read = BlockSummary::decode(&mut Reader::new(&bytes, "entry"));
            assert_eq!(read.is_ok(), reads, "{rows} rows");
        }
    }
}

/// Sum and extremes of a field are the same, bit by bit, whether they are written as decimals or as doubles.
#[test]
fn the_aggregates_of_an_entry_are_read_as_they_were() {
    let most = (1i64 << 51) as f64;
    for (count, sum, min, max, bytes) in [
        (8_192, 409_600.0, 0.0, 100.0, 10),
        (8_192, -409_600.0, -100.0, 0.0, 10),
        (1, 20.15, 20.15, 20.15, 8),
        (3, 0.3, -0.1, 0.5, 7),
        (2, 0.000_003, 0.000_001, 0.000_002, 7),
        (8_192, most, -most, most, 28),
        (2, 1e300, -1e300, 1e300, 28),
        (2, 0.1 + 0.2, 0.1, 0.2, 28),
        (1, -0.0, -0.0, -0.0, 28),
        (1, f64::MIN_POSITIVE, f64::MIN_POSITIVE, f64::MIN_POSITIVE, 28),
    ] {
        let block = encode_block(7, &columns(100));
        let aggregate = Aggregate::new(count, sum, min, max);
        let bits = |aggregate: &Aggregate| {
            let Aggregate { min, max, .. } = *aggregate;
            [aggregate.sum(), min, max].map(f64::to_bits)
        };
        let written = bits(&aggregate);
        let summary = BlockSummary {
            rows: BLOCK_ROWS_MAX as u32,
            fields: Box::new([FieldSummary {
                field: 3,
                kind: FieldKind::Number,
                aggregate,
            }]),
            ..BlockSummary::clone(&block.summary)
        };
        let (mut with, mut without) = (Vec::new(), Vec::new());
        summary.encode(&mut with);
        let fields = Box::default();
        BlockSummary { fields, ..summary }.encode(&mut without);
        let case = format!("{count} values, sum {sum}, {min} to {max}");
        assert!(with.len() - without.len() <= bytes, "{case}");
        let mut reader = Reader::new(&with, "entry");
        let read = BlockSummary::decode(&mut reader).unwrap();
        assert!(reader.is_empty(), "{case}");
        let aggregate = &read.fields[0].aggregate;
        assert_eq!(bits(aggregate), written, "{case}");
        assert_eq!((aggregate.count, read.fields[0].field), (count, 3), "{case}");
        assert!(aggregate.is_one_double(), "{case}");
    }
}

#[test]
fn a_block_round_trips() {
    for rows in [1, 2, 31, 500, 8_192] {
        let original = columns(rows);
        let block = encode_block(7, &original);
        let back = BlockReader::new(&block).unwrap().columns().unwrap();
        assert_eq!(back.timestamps_ns, original.timestamps_ns);
        assert_eq!(back.sequences, original.sequences);
        let (Values::Numbers { values: a, .. }, Values::Numbers { values: b, .. }) =
            (&back.field(0).unwrap().values, &original.field(0).unwrap().values)
        else {
            panic!("numbers")
        };
        assert_eq!(a, b);
        assert!((0..rows as usize).all(|row| back.field(3).unwrap().has(row) == (row % 5 == 0)));
        let summary = &block.summary;
        assert_eq!(
            (summary.source, i64::from(summary.rows), summary.first_ns),
            (7, rows, 0)
        );
        assert_eq!(summary.field(0).unwrap().aggregate.count, rows as u64);
        let tenths: i64 = (0..rows).map(|row| 200 + row % 17).sum();
        assert_eq!(
            summary.field(0).unwrap().aggregate.sum(),
            tenths as f64 / 10.0,
            "the sum of decimals is exact"
        );
    }
}

#[test]
fn first_and_last_values_are_those_of_the_rows() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stored = 0;
    for _ in 0..200 {
        let rows = random.i64(10..200);
        let mut writer = RowsWriter::new();
        for row in 0..rows {
            writer.begin(1);
            for field in 0..4 {
                // A field that few rows have has its ends in other rows than the block.
                if random.u8(0..20) >= field * 6 {
                    writer.number(field.into(), random.i32(-50..50).into(), 0);
                }
            }
            writer.boolean(4, random.bool());
            if random.u8(0..3) == 0 {
                writer.string(5, ["on", "off", &"long".repeat(30)][random.usize(0..3)]);
            }
            writer.commit(row / 3 * 1_000_000_000);
        }
        let mut columns = decoded(&writer);
        // Later rows may have arrived before.
        random.shuffle(&mut columns.sequences);
        let block = encode_block(7, &columns);
        let Some(found) = BlockReader::new(&block).unwrap().first_last().unwrap() else {
            assert!(rows < 16, "{rows}");
            continue;
        };
        stored += 1;
        assert_eq!(found.len(), columns.fields.len());
        for (found, field) in found.iter().zip(&columns.fields) {
            assert_eq!(found.field, field.field);
            let mut rows = (0..columns.rows()).filter(|row| field.column.has(*row));
            let first = rows.next().unwrap();
            let last = rows.next_back().unwrap_or(first);
            let value = |row: usize| Value::of(field.column.value(row).unwrap());
            let expected = Ends {
                first: (columns.key(first), value(first)),
                last: (columns.key(last), value(last)),
            };
            let is_long = [first, last].iter().any(|row| value(*row).text_bytes() > 64);
            assert_eq!(found.ends, (!is_long).then_some(expected));
        }
    }
    assert!(stored > 100);
}

#[test]
fn a_flipped_bit_is_detected_when_its_section_is_read() {
    let original = columns(300);
    let whole = encode_block(7, &original).bytes().unwrap().to_vec();
    let summary = encode_block(7, &original).summary;
    for byte in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[byte] ^= 0x10;
        let len = flipped.len();
        let block = Block::new(BlockSummary::clone(&summary), Arc::new(flipped), 0..len);
        let read = || {
            let reader = BlockReader::new(&block)?;
            reader.columns()?;
            reader.first_last()?;
            for level in 0..3 {
                if let Some(starts) = reader.rollup_starts_ns(level)? {
                    reader.rollup(level, 0, starts.len())?;
                    reader.rollup(level, 3, starts.len())?;
                }
            }
            Ok::<_, crate::EngineError>(())
        };
        assert!(read().is_err(), "flipped at {byte}");
    }
}

#[test]
fn a_rollup_level_is_kept_when_its_cells_hold_over_sixty_rows() {
    let block = encode_block(7, &columns(8_192));
    let reader = BlockReader::new(&block).unwrap();
    let cells = |level: usize| reader.rollup_starts_ns(level).unwrap().map(|cells| cells.len());
    assert_eq!(cells(0), None, "minutes of 60 rows are read as quickly");
    assert_eq!(cells(1), Some(3), "hours of 3,600 rows");
    assert_eq!(cells(2), None, "one day is the block's summary");
    let hours = reader.rollup(1, 0, 3).unwrap();
    assert_eq!(
        hours.iter().map(|hour| hour.count).collect::<Vec<_>>(),
        [3_600, 3_600, 992]
    );
}

/// The rows of an hour are those of a field that every row has; without such a field, they are stored separately.
#[test]
fn hourly_row_counts_are_known_for_any_set_of_fields() {
    let rows_of_hours = |columns: &Columns| {
        let block = encode_block(7, columns);
        let kept = BlockReader::new(&block).unwrap().rollup_rows(1, 3).unwrap();
        let cache = Cache::new(1 << 20);
        let level = block.level(1, &cache).unwrap().unwrap();
        let known = || level.rows().unwrap().map(|rows| rows.to_vec());
        let read = known();
        assert_eq!(known(), read, "from the cache");
        (kept, read)
    };
    let hours = vec![3_600, 3_600, 992];
    let mut columns = columns(8_192);
    assert_eq!(rows_of_hours(&columns), (None, Some(hours.clone())));
    columns.fields.retain(|field| field.field == 3);
    assert_eq!(rows_of_hours(&columns), (Some(hours.clone()), Some(hours)));
}
