//! Where a log-in or a key goes: which shard has the account of an e-mail address, and the key of a hash.

use crate::{Shard, StoreError};

/// Maximum length of an e-mail address, and of an organization's id, in bytes.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Credentials that one statement adds.
pub const CREDENTIALS_BATCH: usize = 1_000;

/// The hash of a credential; 32 bytes, as the server keeps it.
pub type CredentialHash = [u8; 32];

/// Where an e-mail address belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The shard of its organization.
    pub shard: Shard,
    /// The organization's id.
    pub organization: String,
}

/// The directory of a cluster. Each call blocks its thread.
pub trait Directory: Send {
    /// Takes an address for an organization, unless another one has it. Returns who has it then: the same place if it was
    /// free, or had been taken for it before. Addresses are compared byte by byte, as the caller writes them.
    ///
    /// # Errors
    /// The store fails, or a text is longer than [`NAME_BYTES_MAX`]. Repeating the call is harmless.
    fn take(&mut self, email: &str, shard: Shard, organization: &str) -> Result<Place, StoreError>;

    /// Where an address belongs.
    ///
    /// # Errors
    /// The store fails.
    fn find(&mut self, email: &str) -> Result<Option<Place>, StoreError>;

    /// Makes an address of this shard free again. `false` if the shard does not have it.
    ///
    /// # Errors
    /// The store fails. Repeating the call is harmless.
    fn give_up(&mut self, email: &str, shard: Shard) -> Result<bool, StoreError>;

    /// Notes which shard has the keys of these hashes, in batches of [`CREDENTIALS_BATCH`]: for keys that do not say their
    /// shard, because they were made before their server joined a cluster. Returns those that another shard has; they stay
    /// its own.
    ///
    /// # Errors
    /// The store fails; some batches may have been added. Repeating the call is harmless.
    fn add_credentials(
        &mut self,
        credentials: &[(CredentialHash, Shard)],
    ) -> Result<Vec<CredentialHash>, StoreError>;

    /// The shard that has the key of this hash, if it was added.
    ///
    /// # Errors
    /// The store fails.
    fn find_credential(&mut self, hash: &CredentialHash) -> Result<Option<Shard>, StoreError>;
}

/// Refuses a text that is too long.
pub(crate) fn check_names(names: [&str; 2]) -> Result<(), StoreError> {
    match names.iter().map(|name| name.len()).max() {
        Some(bytes) if bytes > NAME_BYTES_MAX => Err(StoreError::Failed(
            format!("a text of {bytes} bytes is too long for the directory ({NAME_BYTES_MAX} bytes)").into(),
        )),
        _ => Ok(()),
    }
}
