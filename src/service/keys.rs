//! API keys of an organization and of its buckets.

use std::mem::take;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::shard_name::{NAME_BYTES, ShardName};
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
        let _settled = decision.commit(Command::KeyCreated { key: key.clone() }).await?;
        Ok(CreatedKey {
            key: Arc::new(key),
            text,
            bucket,
        })
    }

    fn new_key_text(&self, kind: KeyType) -> Result<String, ServiceError> {
        let shard = self.place.as_ref().map(|place| place.name);
        Ok(key_text(kind, random::bytes()?, shard))
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
        let _settled = decision.commit(rotated).await?;
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
        Credential::Key { .. } | Credential::Bearer { .. } => Ok(()),
    }
}

/// How many characters of a key lists show.
const SHOWN_CHARS: usize = 12;

/// The text of a key. In a cluster its first bytes name the shard. 43 characters hold two bits more than the 32 bytes: the
/// last one is set if the key names a shard.
fn key_text(kind: KeyType, mut random: [u8; 32], shard: Option<ShardName>) -> String {
    if let Some(name) = shard {
        random[..NAME_BYTES].copy_from_slice(&name.to_bytes());
    }
    let mut text = format!("{}{}", kind.prefix(), URL_SAFE_NO_PAD.encode(random));
    if shard.is_some()
        && let Some(last) = text.pop()
    {
        // Its value is a multiple of four, and the next character of the alphabet has the value after it.
        text.push(after(last));
    }
    text
}

/// The characters that can end 43 characters of base64url without a spare bit, and those after them.
const LAST: [(char, char); 16] = [
    ('A', 'B'),
    ('E', 'F'),
    ('I', 'J'),
    ('M', 'N'),
    ('Q', 'R'),
    ('U', 'V'),
    ('Y', 'Z'),
    ('c', 'd'),
    ('g', 'h'),
    ('k', 'l'),
    ('o', 'p'),
    ('s', 't'),
    ('w', 'x'),
    ('0', '1'),
    ('4', '5'),
    ('8', '9'),
];

fn after(last: char) -> char {
    let found = LAST.iter().find(|(plain, _)| *plain == last);
    found.map_or(last, |(_, marked)| *marked)
}

/// The shard that a key names; `None` for one that names none.
pub(super) fn shard_of_key(key: &[u8]) -> Option<ShardName> {
    let random = KeyType::ALL
        .iter()
        .find_map(|kind| key.strip_prefix(kind.prefix().as_bytes()))?;
    let last = char::from(*random.last()?);
    if random.len() != KEY_CHARS || !LAST.iter().any(|(_, marked)| *marked == last) {
        return None;
    }
    let name = URL_SAFE_NO_PAD.decode(&random[..NAME_CHARS]).ok()?;
    Some(ShardName::of_bytes(name.try_into().ok()?))
}

/// Characters of a shard's name in a key.
const NAME_CHARS: usize = NAME_BYTES / 3 * 4;

/// Characters of a key behind its prefix.
const KEY_CHARS: usize = 43;

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

#[cfg(test)]
mod tests {
    use log_store::Shard;

    use super::*;
    use crate::service::shard_name::ClusterTag;

    #[test]
    fn a_key_of_a_cluster_names_its_shard_and_others_name_none() {
        for kind in KeyType::ALL {
            for (shard, byte) in [(0, 0), (1, 255), (63, 7), (4_095, 130), (u16::MAX, 64)] {
                let random = [byte; 32];
                let name = ShardName {
                    cluster: ClusterTag::of("a cluster"),
                    shard: Shard(shard),
                };
                let named = key_text(kind, random, Some(name));
                assert_eq!(shard_of_key(named.as_bytes()), Some(name), "{named}");
                assert_eq!(name.within(name.cluster), Some(Shard(shard)));
                assert_eq!(name.within(ClusterTag::of("another")), None);
                assert_eq!(named.len(), kind.prefix().len() + KEY_CHARS);
                let plain = key_text(kind, random, None);
                assert_eq!(shard_of_key(plain.as_bytes()), None, "{plain}");
            }
        }
        for wrong in ["", "svc_a_", "svc_a_B", "svc_x_AAAB", "svc_a_====B"] {
            assert_eq!(shard_of_key(wrong.as_bytes()), None);
        }
    }
}
