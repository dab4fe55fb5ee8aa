//! Columns of i64: timestamps, sequences, codes, mantissas, counts.

use pco::{DeltaSpec, ModeSpec};

use super::packed::{
    Form, ORDER_MAX, PACKED_ROWS_MAX, Packing, decode_digits, decode_packed, differences_of,
};
use super::{PCO_ROWS_MIN, pco_config};
use crate::EngineError;
use crate::bytes::{Reader, put_signed};

/// First value and step only.
const LINEAR: u8 = 0;
/// First value and differences as varints.
const VARINTS: u8 = 1;
/// A pco standalone file of i64.
const PCO: u8 = 2;
/// Differences of a fixed width in bits.
const PACKED: u8 = 3;
/// Differences as digits of a base, in blocks of version 3 and later.
const DIGITS: u8 = 4;

/// Appends `values` in a short form that is read fast.
pub(crate) fn encode_integers(out: &mut Vec<u8>, values: &[i64]) {
    let (Some(first), second) = (values.first(), values.get(1)) else {
        return;
    };
    let step = second.map_or(0, |second| second.wrapping_sub(*first));
    if values
        .windows(2)
        .all(|pair| pair[1].wrapping_sub(pair[0]) == step)
    {
        out.push(LINEAR);
        put_signed(out, *first);
        put_signed(out, step);
        return;
    }
    // Longer columns are shorter in another form, because each varint takes at least a byte.
    let varints = (values.len() < 8 * PCO_ROWS_MIN).then(|| varints_of(values));
    let bytes_below = varints.as_ref().map_or(usize::MAX, Vec::len);
    let shape = Shape::of(values);
    let (pco, packed) = match &shape.packing {
        Some(packing) if shape.is_packed_surely(packing) => (None, Some(packing)),
        packing => {
            let pco = shape.compressed(values);
            let bytes_max = pco
                .as_ref()
                .map_or(usize::MAX, |pco| pco.len() * PACKED_PERCENT_MAX / 100);
            (
                pco,
                packing.as_ref().filter(|packing| packing.bytes() <= bytes_max),
            )
        }
    };
    if let Some(packing) = packed.filter(|packing| packing.bytes() < bytes_below) {
        out.push(match packing.form() {
            Form::Bits(_) => PACKED,
            Form::Digits(_) => DIGITS,
        });
        packing.encode(out, values);
    } else if let Some(compressed) = pco.filter(|pco| pco.len() < bytes_below) {
        out.push(PCO);
        out.extend_from_slice(&compressed);
    } else {
        out.push(VARINTS);
        out.extend(varints.unwrap_or_else(|| varints_of(values)));
    }
}

/// The first value and the differences.
fn varints_of(values: &[i64]) -> Vec<u8> {
    let mut varints = Vec::with_capacity(2 * values.len());
    let mut before = 0i64;
    for value in values {
        put_signed(&mut varints, value.wrapping_sub(before));
        before = *value;
    }
    varints
}

/// Number of values, from the middle of a column, that determine how it is compressed.
const SAMPLE_ROWS: usize = 1_024;
/// A packing is made for the whole column.
const _: () = assert!(PACKED_ROWS_MAX <= SAMPLE_ROWS);

/// What decides how a column is compressed. By default, pco tries several ways on a sample, which costs more than the
/// compression itself: half of the time and two thirds of the allocations for a sensor's column.
struct Shape {
    rows: usize,
    /// The order of differences that needs the fewest bits.
    order: usize,
    /// Estimated bits per value, see [`spread`]; infinite if the column is too short for pco.
    bits: f64,
    /// The shortest packing, if the column is not too long for one.
    packing: Option<Packing>,
}

impl Shape {
    fn of(values: &[i64]) -> Self {
        let rows = values.len();
        let start = rows.saturating_sub(SAMPLE_ROWS) / 2;
        let mut differences = values[start..rows.min(start + SAMPLE_ROWS)].to_vec();
        let mut firsts = Vec::with_capacity(ORDER_MAX);
        let mut shape = Shape {
            rows,
            order: 0,
            bits: f64::INFINITY,
            packing: None,
        };
        for order in 0..=ORDER_MAX {
            let packing = (rows <= PACKED_ROWS_MAX)
                .then(|| Packing::of(&firsts, &differences))
                .flatten();
            let factor = packing.as_ref().map_or(1, Packing::factor);
            if rows >= PCO_ROWS_MIN {
                let bits = spread(&differences, factor);
                if bits < shape.bits {
                    (shape.bits, shape.order) = (bits, order);
                }
            }
            shape.packing = shape
                .packing
                .into_iter()
                .chain(packing)
                .min_by_key(Packing::bytes);
            firsts.extend(differences.first());
            differences = differences_of(&differences);
        }
        shape
    }

    /// Whether pco is sure not to be much shorter. If it might be, both are tried.
    fn is_packed_surely(&self, packing: &Packing) -> bool {
        let bits = self.bits + PCO_BITS_MAX.min(2.0 * self.bits);
        packing.bytes() as f64 <= PCO_HEAD_BYTES + self.rows as f64 / 8.0 * bits
    }

    /// The column as a pco file; `None` if it is too short.
    fn compressed(&self, values: &[i64]) -> Option<Vec<u8>> {
        if self.rows < PCO_ROWS_MIN {
            return None;
        }
        let delta = match self.order {
            0 => DeltaSpec::NoOp,
            order => DeltaSpec::TryConsecutive(order),
        };
        let config = pco_config().with_delta_spec(delta);
        // Searching for a mode pays only if there is a common factor, as in timestamps of whole milliseconds.
        let factor = values.iter().all(|value| value % 1_000 == 0);
        let config = match factor {
            true => config,
            false => config.with_mode_spec(ModeSpec::Classic),
        };
        pco::standalone::simple_compress(values, &config).ok()
    }
}

/// What pco needs besides the [`spread`] of a short column: bytes for its headers, and bits for each value, fewer if they
/// are nearly all the same. Measured on sensors' series and on random ones of 100 to 1,000 values.
const PCO_HEAD_BYTES: f64 = 36.0;
const PCO_BITS_MAX: f64 = 2.6;
/// How long a packed column may be, against that of pco: sensors' series of 1,000 values take up to 13 % more, and are read
/// several times as fast.
const PACKED_PERCENT_MAX: usize = 115;

/// Estimated bits per value: the mean logarithm of the distance from the median, in multiples of a factor. An outlier
/// counts only with its own bits.
fn spread(values: &[i64], factor: u64) -> f64 {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    let Some((_, median, _)) = (!sorted.is_empty()).then(|| sorted.select_nth_unstable(middle)) else {
        return 0.0;
    };
    let (median, factor) = (*median, factor as f64);
    let bits = |value: &i64| approximate_log2(1.0 + (*value as f64 - median as f64).abs() / factor);
    values.iter().map(bits).sum::<f64>() / values.len() as f64
}

/// The logarithm of a normal positive double to base 2, at most 0.09 too small: the mantissa is taken for the fraction
/// (Mitchell, "Computer multiplication and division using binary logarithms", 1962). The exact one took most of the time of
/// the choice, and differs only between orders of nearly the same size.
fn approximate_log2(value: f64) -> f64 {
    const EXPONENT_OF_ONE: f64 = 1_023.0;
    const MANTISSAS: f64 = (1u64 << 52) as f64;
    value.to_bits() as f64 / MANTISSAS - EXPONENT_OF_ONE
}

/// The first value and the step of values in linear form; `None` for other forms.
pub(crate) fn even(bytes: &[u8]) -> Result<Option<(i64, i64)>, EngineError> {
    let mut reader = Reader::new(bytes, "column of integers");
    match reader.byte()? {
        LINEAR => Ok(Some((reader.signed()?, reader.signed()?))),
        _ => Ok(None),
    }
}

/// Decodes `count` values from all of `bytes`.
pub(crate) fn decode_integers(bytes: &[u8], count: usize) -> Result<Vec<i64>, EngineError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(bytes, "column of integers");
    match reader.byte()? {
        LINEAR => {
            let (first, step) = (reader.signed()?, reader.signed()?);
            Ok((0..count as i64)
                .map(|index| first.wrapping_add(step.wrapping_mul(index)))
                .collect())
        }
        VARINTS => {
            let mut values = Vec::with_capacity(count.min(bytes.len()));
            let mut value = 0i64;
            for _ in 0..count {
                value = value.wrapping_add(reader.signed()?);
                values.push(value);
            }
            Ok(values)
        }
        PCO => decode_pco(&reader, count),
        PACKED => decode_packed(&mut reader, count),
        DIGITS => decode_digits(&mut reader, count),
        _ => Err(reader.corrupt("a form of integers")),
    }
}

/// Decodes `count` numbers from a pco file in the rest of the reader.
pub(super) fn decode_pco<T: pco::data_types::Number + Default>(
    reader: &Reader<'_>,
    count: usize,
) -> Result<Vec<T>, EngineError> {
    let mut values = vec![T::default(); count];
    match pco::standalone::simple_decompress_into(reader.rest(), &mut values) {
        Ok(progress) if progress.n_processed == count && progress.finished => Ok(values),
        _ => Err(reader.corrupt("a pco chunk of as many numbers as rows")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximate_logarithm_is_close() {
        for value in [1.0, std::f64::consts::LOG2_E, 1.5, 2.0, 3.0, 1e3, 1e18, 1.844e19] {
            let error = f64::log2(value) - approximate_log2(value);
            assert!((-1e-9..0.0861).contains(&error), "{value}: {error}");
        }
    }
}
