//! Columns of doubles: stored as integer mantissas if their decimals allow it, otherwise as doubles.

use super::integers::decode_pco;
use super::{PCO_ROWS_MIN, decode_integers, encode_integers, pco_config};
use crate::EngineError;
use crate::bytes::{Reader, put_doubles};
use crate::decimal;
use crate::rows::NOT_DECIMAL;

/// The number of decimals, then integers.
const DECIMAL: u8 = 0;
/// Eight bytes per value.
const RAW: u8 = 1;
/// A pco standalone file of f64.
const PCO: u8 = 2;

/// Appends `values`; `decimals` is the greatest number of decimal places with which any of them was written. Returns
/// the mantissas if they were stored.
pub(crate) fn encode_doubles(out: &mut Vec<u8>, values: &[f64], decimals: u8) -> Option<Vec<i64>> {
    if let Some(mantissas) = mantissas(values, decimals) {
        out.extend([DECIMAL, decimals]);
        encode_integers(out, &mantissas);
        return Some(mantissas);
    }
    if values.len() >= PCO_ROWS_MIN
        && let Ok(compressed) = pco::standalone::simple_compress(values, &pco_config())
    {
        out.push(PCO);
        out.extend_from_slice(&compressed);
        return None;
    }
    out.push(RAW);
    put_doubles(out, values);
    None
}

fn mantissas(values: &[f64], decimals: u8) -> Option<Vec<i64>> {
    if decimals == NOT_DECIMAL {
        return None;
    }
    let scale = decimal::power(decimals);
    let mantissas = values.iter().map(|value| decimal::mantissa(*value, scale));
    mantissas.collect()
}

/// Decodes `count` doubles from all of `bytes`, and returns the number of decimals with which they were stored.
pub(crate) fn decode_doubles(bytes: &[u8], count: usize) -> Result<(Vec<f64>, u8), EngineError> {
    if count == 0 {
        return Ok((Vec::new(), 0));
    }
    let mut reader = Reader::new(bytes, "column of doubles");
    match reader.byte()? {
        DECIMAL => {
            let decimals = reader.byte()?;
            let mantissas = decode_integers(reader.rest(), count)?;
            Ok((decimal::values(&mantissas, decimals), decimals))
        }
        RAW => Ok((reader.doubles(count)?.collect(), NOT_DECIMAL)),
        PCO => Ok((decode_pco(&reader, count)?, NOT_DECIMAL)),
        _ => Err(reader.corrupt("a form of doubles")),
    }
}
