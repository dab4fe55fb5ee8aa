//! Rollups: for each minute, hour and day that a block's rows touch, the aggregate of each field. They are a function
//! of the block's rows and nothing else, so that late points, merges and replays can neither miss one nor count one
//! twice: a late point lies in a block of its own, with rollups of its own, and a cell's answer adds up its parts.

use std::ops::Range;

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::bytes::{Reader, put_bytes};
use crate::calendar::Unit;
use crate::codec::{decode_doubles, decode_integers, encode_doubles, encode_integers};
use crate::columns::{Column, Values};
use crate::decimal;
use crate::rows::NOT_DECIMAL;

/// The levels, finest first.
pub(crate) const LEVELS: [Unit; 3] = [Unit::Minute, Unit::Hour, Unit::Day];

/// A level is kept when one of its cells holds more rows than this: so no cell of an answer costs more, and where rows
/// are sparse they are their own rollup.
const ROWS_PER_CELL_MAX: usize = 60;

/// The cells of one level over sorted timestamps: start and rows of each. `None` where the level is not kept:
/// one cell is the block's summary, and few rows are read as quickly.
pub(crate) fn cells(level: Unit, timestamps_ns: &[i64]) -> Option<Vec<(i64, Range<usize>)>> {
    let mut cells = Vec::new();
    let mut row = 0;
    while row < timestamps_ns.len() {
        let start = level.start_ns(timestamps_ns[row]);
        let next = level.next_ns(timestamps_ns[row]);
        let len = timestamps_ns[row..]
            .partition_point(|timestamp| *timestamp < next)
            .max(1);
        cells.push((start, row..row + len));
        row += len;
    }
    let pays = cells.iter().any(|(_, rows)| rows.len() > ROWS_PER_CELL_MAX);
    (cells.len() > 1 && pays).then_some(cells)
}

/// The aggregate of a column over some rows. `mantissas` are those of all rows when the column is kept as decimals:
/// their sum is exact.
pub(crate) fn aggregate(column: &Column, mantissas: Option<(&[i64], u8)>, rows: Range<usize>) -> Aggregate {
    let present = rows.clone().filter(|row| column.has(*row));
    let Values::Numbers { values, .. } = &column.values else {
        return Aggregate::of_count(present.count() as u64);
    };
    let mut aggregate = Aggregate::default();
    if column.present.is_none() {
        values[rows.clone()]
            .iter()
            .for_each(|value| aggregate.add(*value));
    } else {
        present.clone().for_each(|row| aggregate.add(values[row]));
    }
    if let Some((mantissas, decimals)) = mantissas {
        let sum: i128 = present.map(|row| i128::from(mantissas[row])).sum();
        if sum.unsigned_abs() <= 1 << 53 {
            let sum = decimal::value(sum as i64, decimal::power(decimals));
            aggregate = Aggregate::new(aggregate.count, sum, aggregate.min, aggregate.max);
        }
    }
    aggregate
}

/// Appends the aggregates of one field and level.
pub(crate) fn encode(out: &mut Vec<u8>, aggregates: &[Aggregate], values: &Values) {
    let counts: Vec<i64> = aggregates
        .iter()
        .map(|aggregate| aggregate.count as i64)
        .collect();
    let mut section = Vec::new();
    encode_integers(&mut section, &counts);
    put_bytes(out, &section);
    let Values::Numbers { decimals, .. } = values else {
        return;
    };
    let parts: [fn(&Aggregate) -> f64; 3] = [Aggregate::sum, |a| a.min, |a| a.max];
    for part in parts {
        section.clear();
        // A cell without a value has infinite extremes, which no mantissa holds: zero stands in for them.
        let column: Vec<f64> = aggregates
            .iter()
            .map(|a| if a.count == 0 { 0.0 } else { part(a) })
            .collect();
        encode_doubles(&mut section, &column, *decimals);
        put_bytes(out, &section);
    }
}

/// Reads what [`encode`] wrote for `cells` cells.
pub(crate) fn decode(bytes: &[u8], cells: usize, numbers: bool) -> Result<Vec<Aggregate>, EngineError> {
    let mut reader = Reader::new(bytes, "rollup");
    let counts = decode_integers(reader.bytes()?, cells)?;
    if !numbers {
        return Ok(counts
            .iter()
            .map(|count| Aggregate::of_count(*count as u64))
            .collect());
    }
    let mut part = || -> Result<Vec<f64>, EngineError> { Ok(decode_doubles(reader.bytes()?, cells)?.0) };
    let (sums, mins, maxs) = (part()?, part()?, part()?);
    let numbers = sums.into_iter().zip(mins).zip(maxs);
    Ok(counts
        .iter()
        .zip(numbers)
        .map(|(count, ((sum, min), max))| Aggregate::new(*count as u64, sum, min, max))
        .collect())
}

/// The mantissas of a number column for [`aggregate`], if it keeps any.
pub(crate) fn decimals_of(values: &Values) -> u8 {
    match values {
        Values::Numbers { decimals, .. } => *decimals,
        Values::Booleans(_) | Values::Texts(_) => NOT_DECIMAL,
    }
}
