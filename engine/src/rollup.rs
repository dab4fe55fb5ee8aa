//! Rollups: for each minute, hour and day that a block's rows touch, the aggregate of each field. They are a function
//! of the block's rows and nothing else, so that late points, merges and replays can neither miss one nor count one
//! twice: a late point lies in a block of its own, with rollups of its own, and a cell's answer adds up its parts.

use std::ops::Range;

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::bytes::{Reader, put_bytes};
use crate::calendar::Unit;
use crate::codec::{decode_doubles, decode_integers, encode_doubles, encode_integers};
use crate::column::{Column, Values};
use crate::decimal;
use crate::rows::NOT_DECIMAL;

/// The levels, finest first.
pub(crate) const LEVELS: [Unit; 3] = [Unit::Minute, Unit::Hour, Unit::Day];
/// The place of the hours among them.
pub(crate) const HOUR: usize = 1;

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
    if column.present.is_none()
        && let Some((mantissas, decimals)) = mantissas
        && let Some(exact) = of_mantissas(&mantissas[rows.clone()], decimals)
    {
        return exact;
    }
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
        if sum.unsigned_abs() <= u128::from(SUM_MAX) {
            let sum = decimal::value(sum as i64, decimal::power(decimals));
            aggregate = Aggregate::new(aggregate.count, sum, aggregate.min, aggregate.max);
        }
    }
    aggregate
}

/// The same from the mantissas alone, which is quicker and usually possible: they are in the order of their values, and
/// their sum is exact. `None` where it is beyond what a double holds exactly.
fn of_mantissas(mantissas: &[i64], decimals: u8) -> Option<Aggregate> {
    let (mut least, mut greatest, mut sum) = (i64::MAX, i64::MIN, 0i64);
    for mantissa in mantissas {
        least = least.min(*mantissa);
        greatest = greatest.max(*mantissa);
        sum = sum.wrapping_add(*mantissa);
    }
    let largest = least.unsigned_abs().max(greatest.unsigned_abs());
    let exact = largest <= SUM_MAX / mantissas.len().max(1) as u64;
    let scale = decimal::power(decimals);
    let value = |mantissa| decimal::value(mantissa, scale);
    (exact && !mantissas.is_empty())
        .then(|| Aggregate::new(mantissas.len() as u64, value(sum), value(least), value(greatest)))
}

/// Integers up to here are doubles.
const SUM_MAX: u64 = 1 << 53;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64], decimals: u8) -> Column {
        let values = values.to_vec();
        Column {
            present: None,
            values: Values::Numbers { values, decimals },
        }
    }

    /// Both ways to the same answer: from the mantissas, and value by value with the mantissas' sum.
    #[test]
    fn mantissas_alone_give_the_aggregate_of_their_values_to_the_bit() {
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..2_000 {
            let decimals = random.u8(0..4);
            let scale = decimal::power(decimals);
            let bound = 1i64 << random.u32(1..=51);
            let mantissas: Vec<i64> = (0..random.usize(1..200))
                .map(|_| random.i64(-bound..=bound))
                .collect();
            let values: Vec<f64> = mantissas.iter().map(|m| decimal::value(*m, scale)).collect();
            let column = column(&values, decimals);
            let mut slow = Aggregate::default();
            values.iter().for_each(|value| slow.add(*value));
            let sum: i128 = mantissas.iter().map(|mantissa| i128::from(*mantissa)).sum();
            if sum.unsigned_abs() <= 1 << 53 {
                slow = Aggregate::new(slow.count, decimal::value(sum as i64, scale), slow.min, slow.max);
            }
            let quick = aggregate(&column, Some((&mantissas, decimals)), 0..values.len());
            let bits = |a: &Aggregate| (a.count, a.sum().to_bits(), a.min.to_bits(), a.max.to_bits());
            assert_eq!(bits(&quick), bits(&slow), "seed {seed}, round {round}");
        }
    }
}
