//! Random bytes of the operating system, for ids, keys, salts and secrets.

use std::fmt;

/// The operating system gave no random bytes.
#[derive(Debug)]
pub struct NoRandomness(getrandom::Error);

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operating system gives no random bytes: {}", self.0)
    }
}

impl std::error::Error for NoRandomness {}

/// `N` random bytes fit for secrets.
///
/// # Errors
/// The operating system gives none.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}
