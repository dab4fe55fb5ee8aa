//! Operations of the server's operator: list organizations and change their plans.

use std::net::IpAddr;
use std::sync::Arc;

use super::Service;
use super::page::{Page, PageRequest};
use crate::catalog::{Command, Organization, Plan};
use crate::error::ServiceError;
use crate::ids::ObjectId;

impl Service {
    pub fn all_organizations(&self, page: PageRequest) -> Page<Arc<Organization>> {
        self.catalog.read(|catalog| {
            let all = catalog.organizations();
            page.cut(all.len(), all.cloned())
        })
    }

    /// Changes an organization's plan. Existing resources stay, also beyond the new plan's limits.
    pub async fn change_plan(
        &self,
        organization_id: ObjectId,
        plan: Plan,
        address: Option<IpAddr>,
    ) -> Result<Arc<Organization>, ServiceError> {
        let decision = self.decisions.begin(organization_id).await;
        let known = self.organization(organization_id)?;
        if known.plan == plan {
            return Ok(known);
        }
        let command = Command::PlanChanged {
            organization_id,
            plan,
            at_ns: self.now_ns(),
        };
        let auditor = self.auditor_of_operator(organization_id, address);
        let _settled = decision.commit(auditor.audited(command)).await?;
        self.organization(organization_id)
    }
}
