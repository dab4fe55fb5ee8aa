//! Compression of one column. Each encoder picks the cheapest of a few forms and says which in its first byte; the
//! number of entries is not written, because whoever decodes a column knows its rows. See FORMAT.md, "Columns".

mod doubles;
mod integers;
mod texts;

pub(crate) use doubles::{decode_doubles, encode_doubles};
pub(crate) use integers::{decode_integers, encode_integers, even};
pub(crate) use texts::{decode_texts, encode_texts};

use pco::ChunkConfig;

/// Columns shorter than this are written plainly: the header of a pco chunk would outweigh what it saves.
const PCO_ROWS_MIN: usize = 32;

fn pco_config() -> ChunkConfig {
    ChunkConfig::default().with_compression_level(PCO_LEVEL)
}

/// Higher levels gain under 1 % in size on sensor series and cost twice the time.
const PCO_LEVEL: usize = 8;

#[cfg(test)]
mod tests;
