//! Columns of texts: a dictionary of the distinct texts, and a code per row.

use std::sync::Arc;

use super::{decode_integers, encode_integers};
use crate::EngineError;
use crate::bytes::{Reader, put_bytes, put_varint};
use crate::column::Texts;

/// Shorter dictionaries are not compressed.
const ZSTD_BYTES_MIN: usize = 128;
const ZSTD_LEVEL: i32 = 3;
/// Maximum size of a block's dictionary in bytes: 8,192 rows with the largest text of a request. Limits what a corrupt
/// length can make a reader allocate.
const DICTIONARY_BYTES_MAX: usize = 1 << 30;

/// Appends the texts of all rows; rows without a value keep their code, whatever it is.
pub(crate) fn encode_texts(out: &mut Vec<u8>, texts: &Texts) {
    let mut dictionary = Vec::new();
    texts
        .dictionary
        .iter()
        .for_each(|text| put_bytes(&mut dictionary, text.as_bytes()));
    put_varint(out, texts.dictionary.len() as u64);
    let packed = (dictionary.len() >= ZSTD_BYTES_MIN)
        .then(|| zstd::bulk::compress(&dictionary, ZSTD_LEVEL).ok())
        .flatten()
        .filter(|packed| packed.len() < dictionary.len());
    // The uncompressed length, or zero if the dictionary is not compressed.
    put_varint(out, packed.as_ref().map_or(0, |_| dictionary.len() as u64));
    put_bytes(out, packed.as_deref().unwrap_or(&dictionary));
    let codes: Vec<i64> = texts.codes.iter().map(|code| i64::from(*code)).collect();
    encode_integers(out, &codes);
}

/// Decodes the texts of `count` rows from all of `bytes`.
pub(crate) fn decode_texts(bytes: &[u8], count: usize) -> Result<Texts, EngineError> {
    let mut reader = Reader::new(bytes, "column of texts");
    let entries = reader.varint()? as usize;
    let plain_len = reader.varint()? as usize;
    let stored = reader.bytes()?;
    if entries > count || plain_len > DICTIONARY_BYTES_MAX {
        return Err(reader.corrupt("a dictionary no larger than its rows"));
    }
    let unpacked;
    let plain = if plain_len > 0 {
        unpacked = zstd::bulk::decompress(stored, plain_len).map_err(|_| reader.corrupt("a zstd frame"))?;
        &unpacked[..]
    } else {
        stored
    };
    let mut texts = Reader::new(plain, "dictionary of texts");
    let mut dictionary: Vec<Arc<str>> = Vec::with_capacity(entries);
    for _ in 0..entries {
        dictionary.push(texts.text()?.into());
    }
    let codes = decode_integers(reader.rest(), count)?;
    let codes: Option<Vec<u32>> = codes
        .into_iter()
        .map(|code| u32::try_from(code).ok().filter(|code| (*code as usize) < entries))
        .collect();
    Ok(Texts::new(
        dictionary,
        codes.ok_or_else(|| reader.corrupt("codes of the dictionary"))?,
    ))
}
