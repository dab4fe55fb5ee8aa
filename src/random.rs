//! Random bytes of the operating system, for ids, keys, salts and secrets.

/// The operating system returned no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(getrandom::Error);

/// Returns `N` random bytes suitable for secrets.
///
/// # Errors
/// The operating system returns none.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}
