//! The audit: who changed what, and from where (contract, chapter 14). An entry is in the log record of its change.

mod described;
mod shown;

pub(super) use shown::settings_of;

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::page::{Page, PageRequest};
use super::{Caller, Credential, Resources, Service};
use crate::catalog::{
    Actor, ActorKind, Audit, AuditEntry, AuditVerb, Bucket, Catalog, CatalogHandle, Command, EntryKey,
    Stream, Target, TargetKind,
};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::AUDIT_FILTERS_BYTES_MAX;
use described::{Described, described};
use shown::cut;

/// The name of the actor of changes that the operator makes.
const OPERATOR: &str = "operator";

/// Who makes a change.
#[derive(Clone, Debug)]
enum Author {
    Caller(Credential),
    /// A user without a session: one who signs up, joins or sets a password with a link.
    User {
        id: ObjectId,
        name: Box<str>,
    },
    Operator,
}

/// Adds entries to the audit. Owned, for changes that other rooms make.
#[derive(Clone)]
pub(super) struct Auditor {
    catalog: CatalogHandle,
    resources: Arc<Resources>,
    clock: Arc<dyn Clock>,
    organization_id: ObjectId,
    author: Author,
    address: Option<IpAddr>,
}

impl Service {
    /// Audits the changes of a caller.
    pub(super) fn auditor(&self, caller: &Caller) -> Auditor {
        let author = Author::Caller(caller.credential);
        self.auditor_of(caller.organization_id, author, caller.address)
    }

    /// Audits what a user does who has no session yet.
    pub(super) fn auditor_of_user(
        &self,
        organization_id: ObjectId,
        (id, name): (ObjectId, &str),
        address: Option<IpAddr>,
    ) -> Auditor {
        let name = name.into();
        self.auditor_of(organization_id, Author::User { id, name }, address)
    }

    /// Audits the changes of the operator.
    pub(super) fn auditor_of_operator(&self, organization_id: ObjectId, address: Option<IpAddr>) -> Auditor {
        self.auditor_of(organization_id, Author::Operator, address)
    }

    fn auditor_of(&self, organization_id: ObjectId, author: Author, address: Option<IpAddr>) -> Auditor {
        Auditor {
            catalog: self.catalog.clone(),
            resources: Arc::clone(&self.resources),
            clock: Arc::clone(&self.clock),
            organization_id,
            author,
            address,
        }
    }

    /// The audit of the caller's organization, newest first, within its retention.
    ///
    /// # Errors
    /// 500 if the ledger cannot be read.
    pub fn audit(
        &self,
        caller: &Caller,
        request: PageRequest,
    ) -> Result<Page<(EntryKey, AuditEntry)>, ServiceError> {
        let organization_id = caller.organization_id;
        let view = self
            .catalog
            .read(|catalog| self.ledger.view(catalog, Stream::Audit, organization_id));
        self.page_of(&view, Stream::Audit, request, super::records::audit_entry_of)
    }
}

impl Auditor {
    /// The command with its entry in the audit; the command alone if it changes nothing that the audit shows. Call it
    /// while the objects that the command changes cannot change otherwise.
    pub fn audited(&self, command: Command) -> Command {
        let audit = self.catalog.read(|catalog| {
            let described = described(catalog, &command)?;
            Some(self.entry(catalog, described))
        });
        match audit {
            Some(audit) => Command::Audited {
                command: Box::new(command),
                audit,
            },
            None => command,
        }
    }

    /// The entry for a deletion of points by filters, as they were sent.
    pub fn points_deleted(&self, bucket: &Bucket, filters: &Value, points: u64) -> Command {
        let changes = Map::from_iter([
            (
                "filters".to_owned(),
                cut(filters.clone(), AUDIT_FILTERS_BYTES_MAX),
            ),
            ("deletedCount".to_owned(), points.into()),
        ]);
        let described = Described {
            verb: AuditVerb::Deleted,
            target: Target {
                kind: TargetKind::Data,
                id: bucket.id,
                name: bucket.name.clone(),
            },
            changes,
        };
        let audit = self.catalog.read(|catalog| self.entry(catalog, described));
        Command::PointsDeleted { audit }
    }

    fn entry(&self, catalog: &Catalog, described: Described) -> Audit {
        let at_ns = self.clock.now_ns();
        Audit {
            id: self.resources.ids.next(at_ns),
            organization_id: self.organization_id,
            at_ns,
            entry: AuditEntry {
                verb: described.verb,
                actor: self.author.shown(catalog),
                target: described.target,
                changes: Value::Object(described.changes).to_string().into(),
                address: self.address.map(|address| address.to_string().into()),
            },
        }
    }
}

impl Author {
    /// The author with its name at present.
    fn shown(&self, catalog: &Catalog) -> Actor {
        let (kind, id, name) = match self {
            Self::Caller(Credential::Bearer { user_id, .. }) => {
                let name = catalog.user(*user_id).map(|user| user.name.clone());
                (ActorKind::User, Some(*user_id), name.unwrap_or_default())
            }
            // A link only reads.
            Self::Caller(Credential::Key { id, .. } | Credential::Share { id }) => {
                let name = catalog.key(*id).map(|key| key.name.clone());
                (ActorKind::Key, Some(*id), name.unwrap_or_default())
            }
            Self::User { id, name } => (ActorKind::User, Some(*id), name.clone()),
            Self::Operator => (ActorKind::Operator, None, OPERATOR.into()),
        };
        Actor { kind, id, name }
    }
}
