//! Reads and writes the integers, lengths and texts that the engine's formats consist of: LEB128 varints, zigzag for
//! signed numbers, little-endian fixed widths. The reader does not panic on any input.

use crate::EngineError;

/// Maps small negative and positive numbers to small unsigned ones.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Appends `value` as LEB128.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` as zigzag LEB128.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends eight bytes per double, little-endian.
pub(crate) fn put_doubles(out: &mut Vec<u8>, doubles: &[f64]) {
    for double in doubles {
        out.extend_from_slice(&double.to_le_bytes());
    }
}

/// A cursor over bytes that returns [`EngineError::Corrupt`] if they are truncated or invalid.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// `what` names the input in errors.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Reader {
            bytes,
            position: 0,
            what,
        }
    }

    /// The error for the current position.
    pub(crate) fn corrupt(&self, expected: &'static str) -> EngineError {
        EngineError::corrupt(self.what, self.position, expected)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.position == self.bytes.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, EngineError> {
        let byte = *self
            .bytes
            .get(self.position)
            .ok_or_else(|| self.corrupt("a byte"))?;
        self.position += 1;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, EngineError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.corrupt("a varint of at most ten bytes"))
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, EngineError> {
        Ok(unzigzag(self.varint()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, EngineError> {
        u32::try_from(self.varint()?).map_err(|_| self.corrupt("a number below 2^32"))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, EngineError> {
        u16::try_from(self.varint()?).map_err(|_| self.corrupt("a number below 2^16"))
    }

    /// A count of items that each take at least one bit of the remaining input: a corrupt count cannot make the caller
    /// allocate more than eight items per byte of input.
    pub(crate) fn count(&mut self) -> Result<usize, EngineError> {
        let count = self.varint()?;
        if count > (self.rest().len() as u64).saturating_mul(8).saturating_add(8) {
            return Err(self.corrupt("a count that fits into what follows"));
        }
        Ok(count as usize)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], EngineError> {
        let end = self
            .position
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.corrupt("more bytes"))?;
        let taken = &self.bytes[self.position..end];
        self.position = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], EngineError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Four bytes, little-endian.
    pub(crate) fn le_u32(&mut self) -> Result<u32, EngineError> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    /// Eight bytes, little-endian.
    pub(crate) fn le_u64(&mut self) -> Result<u64, EngineError> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, EngineError> {
        Ok(f64::from_le_bytes(self.fixed()?))
    }

    /// What [`put_doubles`] wrote for this many doubles.
    pub(crate) fn doubles(
        &mut self,
        count: usize,
    ) -> Result<impl Iterator<Item = f64> + use<'a>, EngineError> {
        let (doubles, _) = self.take(count.saturating_mul(8))?.as_chunks();
        Ok(doubles.iter().map(|double| f64::from_le_bytes(*double)))
    }

    /// A length and that many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], EngineError> {
        let len = self.varint()?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, EngineError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("utf-8 text"))
    }
}
