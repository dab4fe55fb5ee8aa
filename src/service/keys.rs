//! API keys of an organization and of its buckets.

use std::sync::Arc;

use parking_lot::Mutex;

use super::allowance::Countable;
use super::credentials::FreshKey;
use super::page::{Page, PageRequest};
use super::{Caller, Credential, Service, bucket_for};
use crate::catalog::{Bucket, Catalog, Command, Key, KeyType, text_bytes};
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// A validated creation.
pub struct NewKey {
    /// Trimmed.
    pub name: String,
    /// One of the types that the route creates.
    pub kind: KeyType,
}

/// A new key, as shown to its creator once.
pub struct CreatedKey {
    /// The stored key.
    pub key: Arc<Key>,
    /// The complete text of the key.
    pub text: String,
    /// The key's bucket, for bucket keys.
    pub bucket: Option<Arc<Bucket>>,
}

/// The scope of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// The caller's organization.
    Organization,
    /// One bucket of it.
    Bucket(ObjectId),
}

impl Service {
    /// Lists the keys of a scope.
    ///
    /// # Errors
    /// 404 or 403 for the bucket.
    pub fn keys(
        &self,
        caller: &Caller,
        scope: KeyScope,
        page: PageRequest,
    ) -> Result<Page<Arc<Key>>, ServiceError> {
        self.catalog.read(|catalog| {
            let keys = keys_of(catalog, caller, scope)?;
            Ok(page.cut(keys.len(), keys.iter().cloned()))
        })
    }

    /// Creates a key. Its text is only in the answer and is not stored.
    ///
    /// # Errors
    /// 404 or 403 for the bucket; 403 when an admin key asks for an admin key, and beyond a limit.
    pub async fn create_key(
        &self,
        caller: &Caller,
        scope: KeyScope,
        new: NewKey,
    ) -> Result<CreatedKey, ServiceError> {
        if new.kind == KeyType::Admin && !matches!(caller.credential, Credential::Bearer { .. }) {
            return Err(ServiceError::forbidden(
                "an admin key cannot make admin keys; use the bearer token of a sign-in",
            ));
        }
        let decision = self.decisions.begin(caller.organization_id).await;
        let bucket = match scope {
            KeyScope::Organization => None,
            KeyScope::Bucket(id) => Some(self.catalog.read(|catalog| bucket_for(catalog, caller, id))?),
        };
        self.admit_one_more(
            caller.organization_id,
            Countable::Key,
            text_bytes::of_key(&new.name),
        )?;
        let fresh = FreshKey::new(new.kind)?;
        let key = Key::new(
            self.next_id(),
            caller.organization_id,
            bucket.as_ref().map(|bucket| bucket.id),
            new.kind,
            new.name.into(),
            fresh.hash,
            fresh.shown_prefix().into(),
            self.now_ns(),
        );
        let _settled = decision.commit(Command::KeyCreated { key: key.clone() }).await?;
        Ok(CreatedKey {
            key: Arc::new(key),
            text: fresh.text,
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
        scope: KeyScope,
        key_id: ObjectId,
    ) -> Result<Arc<Key>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let key = self.catalog.read(|catalog| {
            keys_of(catalog, caller, scope)?
                .iter()
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
        let touches = std::mem::take(&mut *self.touches.0.lock());
        if touches.is_empty() {
            return Ok(());
        }
        self.decisions
            .commit_count(Command::KeysTouched { touches })
            .await
    }
}

/// Uses of keys that are not in the log yet: at most one for each key and minute.
#[derive(Default)]
pub(super) struct KeyTouches(Mutex<Vec<(ObjectId, u32)>>);

impl KeyTouches {
    pub fn note(&self, key: &Key, minute: u32) {
        if key.touch(minute) {
            self.0.lock().push((key.id, minute));
        }
    }
}

fn keys_of<'a>(
    catalog: &'a Catalog,
    caller: &Caller,
    scope: KeyScope,
) -> Result<&'a [Arc<Key>], ServiceError> {
    match scope {
        KeyScope::Organization => Ok(catalog.organization_keys(caller.organization_id)),
        KeyScope::Bucket(id) => bucket_for(catalog, caller, id).map(|bucket| catalog.bucket_keys(bucket.id)),
    }
}
