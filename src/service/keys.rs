//! API keys of an organization and of its buckets.

use std::mem::take;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::secret_text::{secret_text, shard_named_in};
use super::shard_name::ShardName;
use super::{Caller, Credential, Service, bucket_for};
use crate::catalog::{Bucket, Bytes, Catalog, Command, Key, KeyCalls, KeyHash, KeyType, LastUse, text_bytes};
use crate::clock::SECOND_NS;
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;
use crate::random;

/// A new key, as shown to its creator once.
pub struct CreatedKey {
    /// The stored key.
    pub key: Arc<Key>,
    /// The complete text of the key.
    pub text: String,
    /// The key's bucket, for bucket keys.
    pub bucket: Option<Arc<Bucket>>,
}

/// The settings of a new key.
pub struct NewKey {
    /// Trimmed.
    pub name: String,
    pub kind: KeyType,
    /// When it stops working, in UTC nanoseconds; `None` for never.
    pub expires_at_ns: Option<i64>,
}

impl Service {
    /// Lists the keys of a bucket, or those of the organization.
    pub fn keys(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        page: PageRequest,
    ) -> Result<Page<Arc<Key>>, ServiceError> {
        self.catalog.read(|catalog| {
            let owner = owner_of(catalog, caller, bucket_id)?;
            Ok(page.cut(catalog.key_count(owner), catalog.keys_of(owner).cloned()))
        })
    }

    /// Creates a key of a bucket or of the organization. Its text is only in the answer and is not
    /// stored.
    ///
    /// # Errors
    /// 404 or 403 for the bucket; 403 when an admin key asks for an admin key, and beyond a limit; 400 for a key that has
    /// expired already.
    pub async fn create_key(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        NewKey {
            name,
            kind,
            expires_at_ns,
        }: NewKey,
    ) -> Result<CreatedKey, ServiceError> {
        may_make(caller, kind)?;
        let now_ns = self.now_ns();
        if expires_at_ns.is_some_and(|expires_at_ns| expires_at_ns <= now_ns) {
            let fault = Detail::at(&["expiresAt"], "must be in the future");
            return Err(ServiceError::faults(vec![fault]));
        }
        let decision = self.decisions.begin(caller.organization_id).await;
        let bucket = bucket_id.map(|id| self.bucket(caller, id)).transpose()?;
        self.admit_one_more(caller.organization_id, Countable::Key, text_bytes::of_key(&name))?;
        let text = self.new_key_text(kind)?;
        let key = Key {
            id: self.next_id(),
            organization_id: caller.organization_id,
            bucket_id,
            kind,
            name: name.into(),
            hash: hash_of(text.as_bytes()),
            shown_prefix: text[..SHOWN_CHARS].into(),
            created_at_ns: now_ns,
            expires_at_ns,
            former: None,
            last_used_minute: LastUse::default(),
            calls: KeyCalls::default(),
        };
        let _settled = decision
            .commit(
                self.auditor(caller)
                    .audited(Command::KeyCreated { key: key.clone() }),
            )
            .await?;
        Ok(CreatedKey {
            key: Arc::new(key),
            text,
            bucket,
        })
    }

    fn new_key_text(&self, kind: KeyType) -> Result<String, ServiceError> {
        let shard = self.place.as_ref().map(|place| place.name);
        Ok(secret_text(kind.prefix(), random::bytes()?, shard))
    }

    /// Gives a key a new value. The former one works for some more seconds, unless that is 0; one that still works from
    /// an earlier rotation ends.
    ///
    /// # Errors
    /// 404 or 403 for the bucket; 404 for the key; 403 when an admin key asks for a new value of an admin key.
    pub async fn rotate_key(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        key_id: ObjectId,
        overlap_seconds: u64,
    ) -> Result<CreatedKey, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let bucket = bucket_id.map(|id| self.bucket(caller, id)).transpose()?;
        let key = self.key(caller, bucket_id, key_id)?;
        may_make(caller, key.kind)?;
        let text = self.new_key_text(key.kind)?;
        let overlap_ns = overlap_seconds as i64 * SECOND_NS;
        let until_ns = self.now_ns().saturating_add(overlap_ns);
        let rotated = Command::KeyRotated {
            key_id,
            hash: hash_of(text.as_bytes()),
            shown_prefix: text[..SHOWN_CHARS].into(),
            former_until_ns: (overlap_seconds > 0).then_some(until_ns),
        };
        let _settled = decision.commit(self.auditor(caller).audited(rotated)).await?;
        Ok(CreatedKey { key, text, bucket })
    }

    fn key(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        key_id: ObjectId,
    ) -> Result<Arc<Key>, ServiceError> {
        self.catalog.read(|catalog| {
            let owner = owner_of(catalog, caller, bucket_id)?;
            let mut keys = catalog.keys_of(owner);
            let found = keys.find(|key| key.id == key_id).cloned();
            found.ok_or_else(|| ServiceError::not_found("API key"))
        })
    }

    /// Deletes a key, effective immediately.
    ///
    /// # Errors
    /// 404 or 403 for the bucket; 404 for the key.
    pub async fn delete_key(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        key_id: ObjectId,
    ) -> Result<Arc<Key>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let key = self.key(caller, bucket_id, key_id)?;
        let command = Command::KeyDeleted { key_id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(key)
    }

    /// Makes the key uses recorded since the last call durable. Called once a minute.
    ///
    /// # Errors
    /// 503 when the log does not accept writes; these uses are then lost, not retried.
    pub async fn flush_key_touches(&self) -> Result<(), ServiceError> {
        let touches = take(&mut *self.unsaved_key_uses.lock());
        if touches.is_empty() {
            return Ok(());
        }
        self.decisions
            .commit_observed(Command::KeysTouched { touches })
            .await
    }
}

/// Checks that the caller may make keys of this type.
fn may_make(caller: &Caller, kind: KeyType) -> Result<(), ServiceError> {
    match caller.credential {
        Credential::Key { .. } if kind == KeyType::Admin => Err(ServiceError::forbidden(
            "an admin key cannot make admin keys; use the bearer token of a sign-in",
        )),
        Credential::Key { .. } | Credential::Bearer { .. } | Credential::Share { .. } => Ok(()),
    }
}

/// How many characters of a key lists show.
const SHOWN_CHARS: usize = 12;

/// The shard that a key names; `None` for one that names none.
pub(super) fn shard_of_key(key: &[u8]) -> Option<ShardName> {
    shard_named_in(key, KeyType::ALL.map(KeyType::prefix))
}

/// The hash under which a key is stored.
pub fn hash_of(text: &[u8]) -> KeyHash {
    Bytes(Sha256::digest(text).into())
}

/// The owner of the keys of a bucket, or of those of the organization.
fn owner_of(catalog: &Catalog, caller: &Caller, bucket: Option<ObjectId>) -> Result<ObjectId, ServiceError> {
    bucket.map_or(Ok(caller.organization_id), |id| {
        bucket_for(catalog, caller, id).map(|bucket| bucket.id)
    })
}
