//! Where the accounts of a cluster are.

use std::pin::Pin;

use log_store::Shard;

use crate::catalog::KeyHash;
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// A pending answer of the directory.
pub type Lookup<T> = Pin<Box<dyn Future<Output = Result<T, ServiceError>> + Send>>;

/// Tells in which shard an account is.
pub trait Directory: Send + Sync {
    /// The shard of the account with this email address.
    fn shard_of_email(&self, email: &str) -> Lookup<Option<Shard>>;

    /// Takes an email address for an account of this organization in this shard. Returns the shard that has it: another one,
    /// if that was first.
    fn take_email(&self, email: &str, shard: Shard, organization: ObjectId) -> Lookup<Shard>;

    /// Makes an address of this shard free again.
    fn give_up_email(&self, email: &str, shard: Shard) -> Lookup<()>;

    /// The shard of a credential that does not name its shard, because it was issued before its shard joined the cluster:
    /// by the hash of a key, or of the text of a user's id.
    fn shard_of_key(&self, hash: KeyHash) -> Lookup<Option<Shard>>;
}
