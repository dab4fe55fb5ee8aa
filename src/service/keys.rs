//! API keys of an organization and of its buckets.

use std::mem::take;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Credential, Service, bucket_for};
use crate::catalog::{Bucket, Bytes, Catalog, Command, Key, KeyHash, KeyType, LastUse, text_bytes};
use crate::error::ServiceError;
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

    /// Creates a key of a bucket or of the organization, with a trimmed name. Its text is only in the answer and is not
    /// stored.
    ///
    /// # Errors
    /// 404 or 403 for the bucket; 403 when an admin key asks for an admin key, and beyond a limit.
    pub async fn create_key(
        &self,
        caller: &Caller,
        bucket_id: Option<ObjectId>,
        name: String,
        kind: KeyType,
    ) -> Result<CreatedKey, ServiceError> {
        if kind == KeyType::Admin && !matches!(caller.credential, Credential::Bearer { .. }) {
            return Err(ServiceError::forbidden(
                "an admin key cannot make admin keys; use the bearer token of a sign-in",
            ));
        }
        let decision = self.decisions.begin(caller.organization_id).await;
        let bucket = bucket_id.map(|id| self.bucket(caller, id)).transpose()?;
        self.admit_one_more(caller.organization_id, Countable::Key, text_bytes::of_key(&name))?;
        let random = URL_SAFE_NO_PAD.encode(random::bytes::<32>()?);
        let text = format!("{}{random}", kind.prefix());
        let key = Key {
            id: self.next_id(),
            organization_id: caller.organization_id,
            bucket_id,
            kind,
            name: name.into(),
            hash: hash_of(text.as_bytes()),
            shown_prefix: text[..SHOWN_CHARS].into(),
            created_at_ns: self.now_ns(),
            last_used_minute: LastUse::default(),
        };
        let _settled = decision.commit(Command::KeyCreated { key: key.clone() }).await?;
        Ok(CreatedKey {
            key: Arc::new(key),
            text,
            bucket,
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
        let key = self.catalog.read(|catalog| {
            let owner = owner_of(catalog, caller, bucket_id)?;
            catalog
                .keys_of(owner)
                .find(|key| key.id == key_id)
                .cloned()
                .ok_or_else(|| ServiceError::not_found("API key"))
        })?;
        let _settled = decision.commit(Command::KeyDeleted { key_id }).await?;
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
            .commit_count(Command::KeysTouched { touches })
            .await
    }
}

/// How many characters of a key lists show.
const SHOWN_CHARS: usize = 12;

/// The hash under which a key is stored.
pub(super) fn hash_of(text: &[u8]) -> KeyHash {
    Bytes(Sha256::digest(text).into())
}

/// The owner of the keys of a bucket, or of those of the organization.
fn owner_of(catalog: &Catalog, caller: &Caller, bucket: Option<ObjectId>) -> Result<ObjectId, ServiceError> {
    bucket.map_or(Ok(caller.organization_id), |id| {
        bucket_for(catalog, caller, id).map(|bucket| bucket.id)
    })
}
