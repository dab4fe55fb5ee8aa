//! Compression of one column. Each encoder picks the cheapest of a few forms and stores the choice in the first byte.
//! The number of entries is not stored, because the reader knows the number of rows. See FORMAT.md, "Columns".

mod digits;
mod doubles;
mod integers;
mod packed;
mod texts;

pub(crate) use doubles::{decode_doubles, encode_doubles};
pub(crate) use integers::{decode_integers, encode_integers, even};
pub(crate) use texts::{decode_texts, encode_texts};

use pco::ChunkConfig;

/// Shorter columns are not compressed with pco: the chunk header would outweigh the gain.
const PCO_ROWS_MIN: usize = 32;

fn pco_config() -> ChunkConfig {
    ChunkConfig::default().with_compression_level(PCO_LEVEL)
}

/// Higher levels reduce the size by less than 1 % on sensor series and double the time.
const PCO_LEVEL: usize = 8;

#[cfg(test)]
mod tests;
