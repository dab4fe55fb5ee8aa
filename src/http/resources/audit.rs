//! `/api/organization/audit`: who changed what, and from where.

use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::views::view;
use crate::catalog::{Actor, AuditEntry, EntryKey, Role, Target};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Pagination, Reply, get};
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

view! {
    /// A change and who made it.
    pub struct AuditEntryView<'a> of(key: &EntryKey, entry: &'a AuditEntry, changes: Box<RawValue>) {
        /// ID of the entry.
        #[serde(rename = "_id")]
        id: ObjectId = key.id,
        /// When the change was made.
        at: Timestamp = Timestamp(key.at_ns),
        /// What was done: the kind of the target, and `created`, `updated`, `deleted`, `rotated` or `acknowledged`.
        #[schema(example = "rule.updated")]
        action: String = format!("{}.{}", entry.target.kind.name(), entry.verb.name()),
        /// Who made the change.
        actor: ActorView<'a> = ActorView::of(&entry.actor),
        /// What was changed.
        target: TargetView<'a> = TargetView::of(&entry.target),
        /// By member, `{old, new}`, null where there is no value; secrets are shown as `hidden`, and long values are cut. Of
        /// a deletion of points: its `filters` and `deletedCount`.
        #[schema(value_type = Object)]
        changes: Box<RawValue> = changes,
        /// IP address of the client; null if it was not known.
        address: Option<&'a str> = entry.address.as_deref(),
    }
}

view! {
    /// Who made a change.
    #[schema(as = AuditActor)]
    pub struct ActorView<'a> of(actor: &'a Actor) {
        /// `user`, `key`, or `operator` for whoever runs the server.
        kind: &'static str = actor.kind.name(),
        /// ID of the user or the key; null for the operator.
        #[serde(rename = "_id")]
        id: Option<ObjectId> = actor.id,
        /// Name at the time of the change.
        name: &'a str = &actor.name,
    }
}

view! {
    /// What was changed.
    #[schema(as = AuditTarget)]
    pub struct TargetView<'a> of(target: &'a Target) {
        /// `organization`, `member`, `invitation`, `key`, `bucket`, `source`, `data`, `rule`, `webhook`, `mute`, `annotation`
        /// or `board`.
        kind: &'static str = target.kind.name(),
        /// ID of the target; for `data` that of the bucket.
        #[serde(rename = "_id")]
        id: ObjectId = target.id,
        /// Name at the time of the change; for what has none, its email address, URL or text.
        name: &'a str = &target.name,
    }
}

/// A page of the audit.
#[derive(serde::Serialize, ToSchema)]
pub struct AuditAnswer<'a> {
    /// Entries, newest first.
    audit: Vec<AuditEntryView<'a>>,
    /// Position of this page in the list.
    pagination: Pagination,
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/organization/audit", "listAudit", list).least_role(Role::Owner)]
}

async fn list(call: Call<Admin, PageRequest>) -> Reply<AuditAnswer<'static>> {
    let page = call.service.audit(&call.caller, call.params)?;
    let views = page.entries.iter().map(|(key, entry)| {
        let changes = RawValue::from_string(entry.changes.to_string());
        Ok(AuditEntryView::of(
            key,
            entry,
            changes.map_err(ServiceError::internal)?,
        ))
    });
    Answer::of(&AuditAnswer {
        audit: views.collect::<Result<_, ServiceError>>()?,
        pagination: Pagination::of(call.params, &page),
    })
}
