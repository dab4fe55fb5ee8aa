//! Creates, lists, changes and deletes buckets.

use std::sync::Arc;

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Service, bucket_for};
use crate::catalog::{Bucket, BucketContents, Catalog, Command, Event, NewBucket, text_bytes};
use crate::delivery::{BucketChanges, BucketUpdate, Change, new_deliveries};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;
use crate::limits::RETENTION_DAYS_UNLIMITED_DEFAULT;
use crate::timestamp::Timestamp;

/// A validated creation.
pub struct BucketInput {
    /// Trimmed.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Within the plan's limit; the plan's maximum when absent.
    pub retention_days: Option<u32>,
}

/// A validated change; `None` keeps the value.
#[derive(Default)]
pub struct BucketPatch {
    /// Trimmed.
    pub name: Option<String>,
    /// `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// Within the plan's limit, or unchanged.
    pub retention_days: Option<u32>,
}

/// A bucket with its statistics.
pub struct BucketWithStats {
    pub bucket: Arc<Bucket>,
    /// Counts of the resources in it.
    pub contents: BucketContents,
    /// Points in it, without expired ones.
    pub points: u64,
}

impl Service {
    /// Lists the organization's buckets.
    pub fn list_buckets(&self, caller: &Caller, page: PageRequest) -> Page<Arc<Bucket>> {
        let organization_id = caller.organization_id;
        self.catalog.read(|catalog| {
            page.cut(
                catalog.bucket_count(organization_id),
                catalog.buckets_of(organization_id).cloned(),
            )
        })
    }

    /// Creates a bucket.
    ///
    /// # Errors
    /// 403 beyond the plan's number of buckets or a limit of the server, 409 when the name is in use.
    pub async fn create_bucket(
        &self,
        caller: &Caller,
        input: BucketInput,
    ) -> Result<Arc<Bucket>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let organization = self.organization(caller.organization_id)?;
        let limits = organization.plan.limits();
        check_retention(input.retention_days, limits.retention_days_max)?;
        let retention_days = input
            .retention_days
            .or(limits.retention_days_max)
            .unwrap_or(RETENTION_DAYS_UNLIMITED_DEFAULT);
        let count = self.catalog.read(|catalog| catalog.bucket_count(organization.id));
        if let Some(max) = limits.buckets_max.filter(|max| count >= *max as usize) {
            return Err(ServiceError::forbidden(format!(
                "the {} plan allows {max} buckets and all are in use; delete one or change the plan",
                organization.plan.name()
            )));
        }
        self.check_bucket_name(organization.id, &input.name)?;
        let text_bytes = text_bytes::of_bucket(&input.name, input.description.as_deref());
        self.admit_one_more(organization.id, Countable::Bucket, text_bytes)?;
        let id = self.next_id();
        let bucket = NewBucket {
            id,
            organization_id: organization.id,
            name: input.name.into(),
            description: input.description.map(Into::into),
            retention_days,
            created_at_ns: self.now_ns(),
        };
        let _settled = decision
            .commit(self.auditor(caller).audited(Command::BucketCreated { bucket }))
            .await?;
        self.bucket(caller, id)
    }

    /// Returns one bucket.
    pub fn bucket(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Bucket>, ServiceError> {
        self.catalog.read(|catalog| bucket_for(catalog, caller, id))
    }

    /// Returns one bucket with its statistics.
    pub async fn bucket_with_stats(
        &self,
        caller: &Caller,
        id: ObjectId,
    ) -> Result<BucketWithStats, ServiceError> {
        let (bucket, contents) = self.catalog.read(|catalog| {
            let bucket = bucket_for(catalog, caller, id)?;
            Ok::<_, ServiceError>((bucket, catalog.contents_of(id)))
        })?;
        let points = self.buckets.points(&bucket).await?;
        Ok(BucketWithStats {
            bucket,
            contents,
            points,
        })
    }

    /// Changes a bucket. Writes nothing if no value changes.
    ///
    /// # Errors
    /// 404, 403, also beyond a limit; 409 when the name is in use; 503 when too many deliveries are pending.
    pub async fn update_bucket(
        &self,
        caller: &Caller,
        id: ObjectId,
        patch: BucketPatch,
    ) -> Result<Arc<Bucket>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.bucket(caller, id)?;
        let name: Box<str> = patch.name.map_or_else(|| known.name.clone(), Into::into);
        let description = patch.description.map_or_else(
            || known.description.clone(),
            |description| description.map(Into::into),
        );
        let retention_days = patch.retention_days.unwrap_or(known.retention_days);
        if retention_days != known.retention_days {
            // An unchanged value stays valid, also after a downgrade.
            let limits = self.organization(caller.organization_id)?.plan.limits();
            check_retention(Some(retention_days), limits.retention_days_max)?;
        }
        if name != known.name {
            self.check_bucket_name(known.organization_id, &name)?;
        }
        if name == known.name && description == known.description && retention_days == known.retention_days {
            return Ok(known);
        }
        let before = text_bytes::of_bucket(&known.name, known.description.as_deref());
        let after = text_bytes::of_bucket(&name, description.as_deref());
        self.admit_text(known.organization_id, before, after)?;
        // Take the time before the sequence number: points that arrive in between get numbers from there on and have
        // not expired at this time.
        let at_ns = self.now_ns();
        let next_sequence = match retention_days == known.retention_days {
            true => None,
            false => Some(self.buckets.next_sequence(&known).await?),
        };
        let update = BucketUpdate {
            changes: BucketChanges {
                name: Change::between(&*known.name, &*name),
                description: Change::between(known.description.as_deref(), description.as_deref()),
                retention_days: Change::between(known.retention_days, retention_days),
            },
            updated_by: caller.actor_id(),
            updated_at: Timestamp(at_ns),
        };
        let webhooks: Vec<_> = self
            .catalog
            .read(|catalog| catalog.webhooks_of(caller.organization_id).cloned().collect());
        let new = new_deliveries(
            Event::BucketUpdated,
            id,
            &webhooks,
            &self.resources.ids,
            at_ns,
            &update,
        );
        self.admit_deliveries(caller.organization_id, &new)?;
        let owed = new.ids();
        let command = Command::BucketUpdated {
            bucket_id: id,
            name,
            description,
            retention_days,
            at_ns,
            next_sequence,
            deliveries: new.deliveries,
            fan_out: new.fan_out,
        };
        let command = self.auditor(caller).audited(command);
        let queued = self.deliveries.clone();
        let _settled = decision.commit_then(command, move || queued.queued(owed)).await?;
        self.bucket(caller, id)
    }

    fn check_bucket_name(&self, organization_id: ObjectId, name: &str) -> Result<(), ServiceError> {
        let is_free = |catalog: &Catalog| catalog.bucket_by_name(organization_id, name).is_none();
        if self.catalog.read(is_free) {
            return Ok(());
        }
        Err(ServiceError::conflict(format!(
            "a bucket named {name:?} exists already; choose another name"
        )))
    }

    /// Deletes a bucket with all its contents.
    pub async fn delete_bucket(
        &self,
        caller: &Caller,
        id: ObjectId,
    ) -> Result<BucketWithStats, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let (bucket, contents, sources) = self.catalog.read(|catalog| {
            let bucket = bucket_for(catalog, caller, id)?;
            let sources: Vec<u32> = catalog.sources_of(id).map(|source| source.ordinal).collect();
            Ok::<_, ServiceError>((bucket, catalog.contents_of(id), sources))
        })?;
        let command = self
            .auditor(caller)
            .audited(Command::BucketDeleted { bucket_id: id });
        let (buckets, of) = (self.buckets.clone(), Arc::clone(&bucket));
        let deletion = async move { buckets.delete(&of, None, &sources, command).await };
        let (points, _) = decision.carry_out(deletion).await?;
        self.watch.forget(id);
        Ok(BucketWithStats {
            bucket,
            contents,
            points,
        })
    }
}

/// Returns 400 for a retention beyond the plan's limit.
fn check_retention(days: Option<u32>, plan_max: Option<u32>) -> Result<(), ServiceError> {
    match (days, plan_max) {
        (Some(days), Some(max)) if days > max => {
            let message = format!("must be at most {max} on this plan, not {days}");
            Err(ServiceError::faults(vec![Detail::at(
                &["retentionDays"],
                message,
            )]))
        }
        _ => Ok(()),
    }
}
