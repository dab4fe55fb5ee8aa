//! Columns of i64: timestamps, sequences, codes, mantissas, counts.

use super::{PCO_ROWS_MIN, pco_config};
use crate::EngineError;
use crate::bytes::{Reader, put_signed};

/// First value and step; nothing more.
const LINEAR: u8 = 0;
/// First value and differences as varints.
const VARINTS: u8 = 1;
/// A pco standalone file of i64.
const PCO: u8 = 2;

/// Appends `values` in the shortest of the forms.
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
    let start = out.len();
    if values.len() >= PCO_ROWS_MIN {
        out.push(PCO);
        if let Ok(compressed) = pco::standalone::simple_compress(values, &pco_config()) {
            out.extend_from_slice(&compressed);
            // Beyond this length varints, at a byte a value at the least, cannot win.
            if values.len() >= 8 * PCO_ROWS_MIN || compressed.len() < values.len() {
                return;
            }
        } else {
            out.truncate(start);
        }
    }
    let varints = out.len();
    out.push(VARINTS);
    let mut before = 0i64;
    for value in values {
        put_signed(out, value.wrapping_sub(before));
        before = *value;
    }
    if varints > start {
        if out.len() - varints < varints - start {
            out.drain(start..varints);
        } else {
            out.truncate(varints);
        }
    }
}

/// Reads `count` values from the whole of `bytes`.
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
        _ => Err(reader.corrupt("a form of integers")),
    }
}

/// Reads a pco file of `count` numbers that takes the rest of the reader.
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
