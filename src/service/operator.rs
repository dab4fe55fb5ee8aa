//! Operations of the server's operator: list organizations and change their plans.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Service;
use super::page::{Page, PageRequest};
use crate::catalog::{Command, Organization, Plan};
use crate::error::ServiceError;
use crate::ids::ObjectId;

impl Service {
    /// Whether the operator routes exist.
    pub fn has_operator(&self) -> bool {
        self.config.operator.token.is_some()
    }

    /// Compares the operator's token in constant time.
    pub fn check_operator(&self, presented: Option<&str>) -> Result<(), ServiceError> {
        let expected = self.config.operator.token.as_deref().unwrap_or_default();
        let presented = presented.unwrap_or_default();
        // Digests have the same length, so that timing does not reveal even the token's length.
        let [of_expected, of_presented] = [expected, presented].map(Sha256::digest);
        if !expected.is_empty() && bool::from(of_expected.as_slice().ct_eq(of_presented.as_slice())) {
            return Ok(());
        }
        Err(ServiceError::unauthorized(
            "send the operator token as authorization: bearer",
        ))
    }

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
        let _settled = decision.commit(command).await?;
        self.organization(organization_id)
    }
}
