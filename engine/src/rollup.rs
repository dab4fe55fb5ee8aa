//! Rollups: the aggregate of each field for each minute, hour and day that a block's rows touch. They depend only on
//! the block's rows, so late points, merges and replays can neither miss a row nor count it twice: a late point is in
//! another block, with its own rollups, and a cell's result merges its parts.

use std::ops::Range;

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::bytes::{Reader, put_bytes, put_varint};
use crate::calendar::Unit;
use crate::codec::{decode_doubles, decode_integers, encode_doubles, encode_integers};
use crate::column::{Column, Values};
use crate::decimal;
use crate::rows::NOT_DECIMAL;

/// The levels, finest first.
pub(crate) const LEVELS: [Unit; 3] = [Unit::Minute, Unit::Hour, Unit::Day];
/// Index of the hours in [`LEVELS`].
pub(crate) const HOUR: usize = 1;
/// Index of the minutes in [`LEVELS`].
pub(crate) const MINUTE: usize = 0;

/// A level is stored if one of its cells has more rows than this. So no cell of a query reads more rows, and sparse
/// rows need no rollup.
const ROWS_PER_CELL_MAX: usize = 60;

/// The cells of one level over sorted timestamps: start time and rows of each. `None` if the level is not stored: a
/// single cell equals the block's summary, and few rows are read as quickly.
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

/// The aggregate of a column over some rows. `mantissas` are those of all rows if the column is stored as decimals: if
/// their sum is small enough, the result is the exact decimal sum, which fits into one double.
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
        let (mut sum, mut whole) = (0i128, 0u128);
        for row in present {
            sum += i128::from(mantissas[row]);
            whole += u128::from(mantissas[row].unsigned_abs());
        }
        if whole <= u128::from(sum_max(decimals)) {
            let sum = decimal::value(sum as i64, decimal::power(decimals));
            aggregate = Aggregate::new(aggregate.count, sum, aggregate.min, aggregate.max);
        }
    }
    aggregate
}

/// The same from the mantissas alone, which is faster and usually possible: mantissas have the order of their values,
/// and their sum is exact. `None` if it may exceed [`sum_max`].
fn of_mantissas(mantissas: &[i64], decimals: u8) -> Option<Aggregate> {
    let (mut least, mut greatest, mut sum) = (i64::MAX, i64::MIN, 0i64);
    for mantissa in mantissas {
        least = least.min(*mantissa);
        greatest = greatest.max(*mantissa);
        sum = sum.wrapping_add(*mantissa);
    }
    let largest = least.unsigned_abs().max(greatest.unsigned_abs());
    let exact = largest <= sum_max(decimals) / mantissas.len().max(1) as u64;
    let scale = decimal::power(decimals);
    let value = |mantissa| decimal::value(mantissa, scale);
    (exact && !mantissas.is_empty())
        .then(|| Aggregate::new(mantissas.len() as u64, value(sum), value(least), value(greatest)))
}

/// Limit of the sum of absolute mantissas up to which their sum may replace that of the doubles. Integers up to 2⁵³ are
/// exact. The doubles of decimals have a relative error of up to 2⁻⁵³, and so has the double of their sum: up to 2⁴⁰
/// that is at most 2⁻¹² of a unit of the last decimal. Beyond, cancellation could make the error visible, so the
/// doubles themselves are added, with a carry.
fn sum_max(decimals: u8) -> u64 {
    if decimals == 0 { 1 << 53 } else { 1 << 40 }
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
        // A cell without values has infinite extremes, which have no mantissa: zeros are stored instead.
        let column: Vec<f64> = aggregates
            .iter()
            .map(|a| if a.count == 0 { 0.0 } else { part(a) })
            .collect();
        encode_doubles(&mut section, &column, *decimals);
        put_bytes(out, &section);
    }
}

/// Appends the carries of the sums of [`encode`]; returns whether there are any. Nothing is appended if all sums are
/// exact doubles, as with decimals.
pub(crate) fn encode_carries(out: &mut Vec<u8>, aggregates: &[Aggregate]) -> bool {
    if aggregates.iter().all(Aggregate::is_one_double) {
        return false;
    }
    let parts: Vec<(f64, f64)> = aggregates.iter().map(Aggregate::parts).collect();
    let carries: Vec<f64> = parts.iter().map(|(_, carry)| *carry).collect();
    let mut section = Vec::new();
    encode_doubles(&mut section, &carries, NOT_DECIMAL);
    put_bytes(out, &section);
    let beyond: Vec<usize> = (0..aggregates.len())
        .filter(|cell| aggregates[*cell].is_beyond())
        .collect();
    put_varint(out, beyond.len() as u64);
    for cell in beyond {
        put_varint(out, cell as u64);
        out.extend_from_slice(&parts[cell].0.to_le_bytes());
    }
    true
}

/// Decodes what [`encode`] and [`encode_carries`] wrote for `cells` cells.
pub(crate) fn decode(
    bytes: &[u8],
    carries: Option<&[u8]>,
    cells: usize,
    numbers: bool,
) -> Result<Vec<Aggregate>, EngineError> {
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
    let mut aggregates: Vec<Aggregate> = counts
        .iter()
        .zip(numbers)
        .map(|(count, ((sum, min), max))| Aggregate::new(*count as u64, sum, min, max))
        .collect();
    if let Some(bytes) = carries {
        decode_carries(bytes, &mut aggregates)?;
    }
    Ok(aggregates)
}

fn decode_carries(bytes: &[u8], aggregates: &mut [Aggregate]) -> Result<(), EngineError> {
    let mut reader = Reader::new(bytes, "rollup carries");
    let (carries, _) = decode_doubles(reader.bytes()?, aggregates.len())?;
    let with = |aggregate: &Aggregate, sum: f64, carry: f64| {
        Aggregate::of_parts(aggregate.count, (sum, carry), aggregate.min, aggregate.max)
    };
    for (aggregate, carry) in aggregates.iter_mut().zip(carries) {
        *aggregate = with(aggregate, aggregate.parts().0, carry);
    }
    for _ in 0..reader.count()? {
        let cell = reader.varint()? as usize;
        let sum = reader.f64()?;
        let Some(aggregate) = aggregates.get_mut(cell) else {
            return Err(reader.corrupt("a cell of the level"));
        };
        *aggregate = with(aggregate, sum, aggregate.carry());
    }
    Ok(())
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

    /// Both ways give the same result: from the mantissas alone, and with rows without values in between.
    #[test]
    fn mantissas_give_the_same_aggregate_as_their_values() {
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
            let whole: u64 = mantissas.iter().map(|mantissa| mantissa.unsigned_abs()).sum();
            if whole <= sum_max(decimals) {
                let sum = decimal::value(mantissas.iter().sum(), scale);
                slow = Aggregate::new(slow.count, sum, slow.min, slow.max);
            }
            let quick = aggregate(&column, Some((&mantissas, decimals)), 0..values.len());
            let bits = |a: &Aggregate| (a.count, a.parts(), a.min.to_bits(), a.max.to_bits());
            assert_eq!(bits(&quick), bits(&slow), "seed {seed}, round {round}");
        }
    }

    #[test]
    fn carries_are_written_only_when_present() {
        let of = |values: &[f64]| {
            let mut aggregate = Aggregate::default();
            values.iter().for_each(|value| aggregate.add(*value));
            aggregate
        };
        let values = Values::Numbers {
            values: Vec::new(),
            decimals: NOT_DECIMAL,
        };
        let plain = [of(&[1.0, 2.5]), of(&[]), of(&[1e300])];
        assert!(!encode_carries(&mut Vec::new(), &plain));
        let cells = [
            of(&[1e16, 1.0]),
            of(&[]),
            of(&[f64::MAX, f64::MAX, 1.0]),
            of(&[f64::MIN, f64::MIN]),
            of(&[1e300, 1e-300]),
            of(&[3.0]),
        ];
        let (mut bytes, mut carries) = (Vec::new(), Vec::new());
        encode(&mut bytes, &cells, &values);
        assert!(encode_carries(&mut carries, &cells));
        let found = decode(&bytes, Some(&carries), cells.len(), true).unwrap();
        for (found, cell) in found.iter().zip(&cells) {
            assert_eq!((found.count, found.parts()), (cell.count, cell.parts()));
        }
        for len in 0..carries.len() {
            assert!(
                decode(&bytes, Some(&carries[..len]), cells.len(), true).is_err(),
                "{len}"
            );
        }
    }
}
