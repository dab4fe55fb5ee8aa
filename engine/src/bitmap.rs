//! Marks the rows of a column that have a value.

use crate::EngineError;
use crate::bytes::{Reader, put_varint};

/// One bit per row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub(crate) fn filled(len: usize, bit: bool) -> Self {
        let mut bitmap = Bitmap::default();
        bitmap.extend(len, bit);
        bitmap
    }

    /// The bit of `row`.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= u64::from(bit) << (self.len % 64);
        }
        self.len += 1;
    }

    pub(crate) fn extend(&mut self, count: usize, bit: bool) {
        for _ in 0..count {
            self.push(bit);
        }
    }

    pub(crate) fn ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Encodes the bitmap as run lengths, beginning with a run of zeros, or as bits, whichever is shorter.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(0);
        let (mut bit, mut run) = (false, 0u64);
        for row in 0..self.len {
            if self.get(row) != bit {
                put_varint(out, run);
                (bit, run) = (!bit, 0);
            }
            run += 1;
        }
        put_varint(out, run);
        let bits = self.len.div_ceil(8);
        if out.len() - start > bits + 1 {
            out.truncate(start);
            out.push(1);
            out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()).take(bits));
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>, len: usize) -> Result<Self, EngineError> {
        let mut bitmap = Bitmap::default();
        match reader.byte()? {
            0 => {
                let mut bit = false;
                while bitmap.len < len || len == 0 && !bit {
                    let run = reader.varint()? as usize;
                    if run > len - bitmap.len {
                        return Err(reader.corrupt("runs of as many bits as rows"));
                    }
                    bitmap.extend(run, bit);
                    bit = !bit;
                }
            }
            1 => {
                let bits = reader.take(len.div_ceil(8))?;
                (0..len).for_each(|row| bitmap.push(bits[row / 8] >> (row % 8) & 1 == 1));
            }
            _ => return Err(reader.corrupt("a form of bitmap")),
        }
        Ok(bitmap)
    }
}
