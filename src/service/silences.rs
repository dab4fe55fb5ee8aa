//! Silences: times in which rules that fire are not delivered.

use std::collections::HashSet;
use std::sync::Arc;

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Service, bucket_for, rule_for};
use crate::catalog::{Catalog, Command, Silence, text_bytes};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;

/// What a new silence is about, and until when. Without bucket and rules it is about the whole organization.
pub struct NewSilence {
    pub bucket_id: Option<ObjectId>,
    /// Not empty.
    pub alert_ids: Option<Vec<ObjectId>>,
    /// UTC nanoseconds.
    pub until_ns: i64,
    /// Trimmed.
    pub reason: String,
}

impl Service {
    /// Lists the silences that have not ended. A key of a bucket sees those that touch its bucket.
    pub fn list_silences(&self, caller: &Caller, page: PageRequest) -> Page<Arc<Silence>> {
        let now_ns = self.now_ns();
        let is_shown = |silence: &&Arc<Silence>| {
            let touches = caller.bucket_id().is_none_or(|id| silence.touches(id));
            touches && !silence.has_ended(now_ns)
        };
        self.catalog.read(|catalog| {
            let shown = || catalog.silences_of(caller.organization_id).filter(is_shown);
            page.cut(shown().count(), shown().cloned())
        })
    }

    /// Returns one silence that has not ended.
    ///
    /// # Errors
    /// 404; 403 for a key of a bucket, if the silence is about anything else.
    pub fn silence(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Silence>, ServiceError> {
        let now_ns = self.now_ns();
        let silence = self.catalog.read(|catalog| catalog.silence(id).cloned());
        let silence = silence
            .filter(|it| it.organization_id == caller.organization_id && !it.has_ended(now_ns))
            .ok_or_else(|| ServiceError::not_found("silence"))?;
        match caller.bucket_id() {
            Some(bucket_id) if !silence.touches(bucket_id) => Err(ServiceError::forbidden(
                "API key does not have access to this bucket",
            )),
            Some(bucket_id) if !silence.is_within(bucket_id) => Err(too_wide()),
            _ => Ok(silence),
        }
    }

    /// Creates a silence, in force from now on.
    ///
    /// # Errors
    /// 400 for an end that has passed; 404 or 403 for the bucket and the rules; 403 for a key of a bucket that does not
    /// name its bucket or rules of it, and beyond a limit.
    pub async fn create_silence(
        &self,
        caller: &Caller,
        new: NewSilence,
    ) -> Result<Arc<Silence>, ServiceError> {
        if new.until_ns <= self.now_ns() {
            let fault = Detail::at(&["until"], "must be in the future");
            return Err(ServiceError::faults(vec![fault]));
        }
        let decision = self.decisions.begin(caller.organization_id).await;
        let alert_ids = new.alert_ids.map(each_once);
        let bucket_ids = self.catalog.read(|catalog| {
            let rules = alert_ids.as_deref().unwrap_or_default();
            buckets_of(catalog, caller, new.bucket_id, rules)
        })?;
        let subjects = alert_ids.as_ref().map_or(1, Vec::len);
        let (organization_id, now_ns) = (caller.organization_id, self.now_ns());
        // What has ended must not stand in the way of what removes it.
        let freed = self
            .catalog
            .read(|catalog| catalog.silence_bytes_freed(organization_id, now_ns));
        let text_bytes = text_bytes::of_silence(&new.reason, subjects).saturating_sub(freed);
        self.admit_one_more(organization_id, Countable::Silence, text_bytes)?;
        let silence = Silence {
            id: self.next_id(),
            organization_id,
            bucket_id: new.bucket_id,
            alert_ids,
            bucket_ids,
            until_ns: new.until_ns,
            reason: new.reason.into(),
            created_at_ns: now_ns,
            created_by: caller.actor_id(),
        };
        let command = Command::SilenceCreated {
            silence: silence.clone(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(Arc::new(silence))
    }

    /// Ends a silence.
    ///
    /// # Errors
    /// As [`Service::silence`].
    pub async fn delete_silence(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Silence>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let silence = self.silence(caller, id)?;
        let command = Command::SilenceDeleted { silence_id: id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(silence)
    }
}

/// Removes duplicates and keeps the order.
fn each_once(mut ids: Vec<ObjectId>) -> Vec<ObjectId> {
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(*id));
    ids
}

/// The buckets that a silence is about; none for the whole organization.
///
/// # Errors
/// 404 for an unknown bucket or rule, and for a rule of another bucket than the one named; 403 for a key of a bucket that
/// reaches for more.
fn buckets_of(
    catalog: &Catalog,
    caller: &Caller,
    bucket_id: Option<ObjectId>,
    rules: &[ObjectId],
) -> Result<Vec<ObjectId>, ServiceError> {
    let mut buckets = Vec::new();
    if let Some(bucket_id) = bucket_id {
        bucket_for(catalog, caller, bucket_id)?;
        buckets.push(bucket_id);
    }
    for rule_id in rules {
        let (bucket, _) = rule_for(catalog, caller, *rule_id)?;
        if bucket_id.is_some_and(|only| only != bucket.id) {
            return Err(ServiceError::not_found("alert rule"));
        }
        if !buckets.contains(&bucket.id) {
            buckets.push(bucket.id);
        }
    }
    if buckets.is_empty() && caller.bucket_id().is_some() {
        return Err(too_wide());
    }
    Ok(buckets)
}

fn too_wide() -> ServiceError {
    ServiceError::forbidden(
        "the API key of a bucket reaches silences of its bucket and of rules in it; name the bucket in bucketId, or use an admin key",
    )
}
