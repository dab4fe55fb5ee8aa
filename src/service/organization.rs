//! The caller's organization.

use std::sync::Arc;

use super::{Caller, Service};
use crate::catalog::{Command, Organization, Revisions};
use crate::error::ServiceError;
use crate::ids::ObjectId;

impl Service {
    /// Returns an organization.
    ///
    /// # Errors
    /// 404 when it does not exist.
    pub fn organization(&self, id: ObjectId) -> Result<Arc<Organization>, ServiceError> {
        self.catalog
            .read(|catalog| catalog.organization(id).cloned())
            .ok_or_else(|| ServiceError::not_found("organization"))
    }

    /// Returns a number that identifies this run of the server, and the organization's revision numbers in this run.
    ///
    /// # Errors
    /// 404 when it no longer exists.
    pub fn revisions(&self, caller: &Caller) -> Result<(u64, Revisions), ServiceError> {
        let found = self
            .catalog
            .read(|catalog| catalog.revisions(caller.organization_id));
        let revisions = found.ok_or_else(|| ServiceError::not_found("organization"))?;
        Ok((self.resources.run, revisions))
    }

    /// Renames the organization if a different name is given.
    ///
    /// # Errors
    /// 503 when the log does not accept writes.
    pub async fn rename_organization(
        &self,
        caller: &Caller,
        name: Option<String>,
    ) -> Result<Arc<Organization>, ServiceError> {
        let organization_id = caller.organization_id;
        let decision = self.decisions.begin(organization_id).await;
        let known = self.organization(organization_id)?;
        let Some(name) = name.filter(|name| **name != *known.name) else {
            return Ok(known);
        };
        let at_ns = self.now_ns();
        let command = Command::OrganizationRenamed {
            organization_id,
            name: name.into(),
            at_ns,
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        self.organization(organization_id)
    }
}
