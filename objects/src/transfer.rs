//! Reading and comparing objects in pieces, for any store.

use crate::{Bytes, ObjectError, ObjectStore};

/// Bytes in memory while objects are compared.
const PIECE_BYTES: u64 = 8 << 20;

/// Whether an object has exactly these bytes. Reads it in pieces, to the first difference.
///
/// # Errors
/// Those of [`ObjectStore::get_range`], except that an object that ends early is another one.
pub(crate) fn is_same(
    store: &dyn ObjectStore,
    name: &str,
    stored_bytes: u64,
    bytes: &Bytes,
) -> Result<bool, ObjectError> {
    let all = bytes.len() as u64;
    if stored_bytes != all {
        return Ok(false);
    }
    let mut from = 0;
    while from < all {
        let to = (from + PIECE_BYTES).min(all);
        let piece = match store.get_range(name, from..to) {
            Err(ObjectError::Short(..)) => return Ok(false),
            piece => piece?,
        };
        if piece[..] != bytes[from as usize..to as usize] {
            return Ok(false);
        }
        from = to;
    }
    Ok(true)
}
