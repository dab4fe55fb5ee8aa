//! Members of an organization: who they are and what they may do.

use std::sync::Arc;

use super::page::{Page, PageRequest};
use super::{Caller, Service, ShardPlace};
use crate::catalog::{Catalog, Command, Role, User};
use crate::error::ServiceError;
use crate::ids::ObjectId;

impl Service {
    /// The members of the caller's organization, oldest first.
    pub fn list_members(&self, caller: &Caller, page: PageRequest) -> Page<Arc<User>> {
        let id = caller.organization_id;
        self.catalog
            .read(|catalog| page.cut(catalog.member_count(id), catalog.members_of(id).cloned()))
    }

    /// Changes what a member may do, from its next request on.
    ///
    /// # Errors
    /// 404; 409 for the last owner.
    pub async fn change_role(
        &self,
        caller: &Caller,
        user_id: ObjectId,
        role: Role,
    ) -> Result<Arc<User>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.member(caller, user_id)?;
        if known.role == role {
            return Ok(known);
        }
        self.check_owner_remains(&known)?;
        let command = Command::MemberRoleChanged { user_id, role };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        self.member(caller, user_id)
    }

    /// Removes a member, whose tokens end at once. The email address is free again.
    ///
    /// # Errors
    /// 404; 409 for the last owner.
    pub async fn remove_member(&self, caller: &Caller, user_id: ObjectId) -> Result<Arc<User>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.member(caller, user_id)?;
        self.check_owner_remains(&known)?;
        let command = Command::MemberRemoved { user_id };
        let settled = decision.commit(self.auditor(caller).audited(command)).await?;
        drop(settled);
        self.give_up_email(&known.email).await;
        Ok(known)
    }

    /// Finds a member of the caller's organization.
    ///
    /// # Errors
    /// 404.
    pub(super) fn member(&self, caller: &Caller, user_id: ObjectId) -> Result<Arc<User>, ServiceError> {
        let found = self.catalog.read(|catalog| catalog.user(user_id).cloned());
        found
            .filter(|user| user.organization_id == caller.organization_id)
            .ok_or_else(|| ServiceError::not_found("member"))
    }

    /// Checks that the organization has an owner without this member. Decided while changes of the organization are
    /// serialized: two owners who demote each other at once leave one.
    fn check_owner_remains(&self, member: &User) -> Result<(), ServiceError> {
        let is_other_owner = |other: &Arc<User>| other.role == Role::Owner && other.id != member.id;
        let remains = |catalog: &Catalog| {
            let mut members = catalog.members_of(member.organization_id);
            member.role != Role::Owner || members.any(is_other_owner)
        };
        if self.catalog.read(remains) {
            return Ok(());
        }
        Err(ServiceError::conflict(
            "the organization needs an owner, and this is the last one; make another member an owner first",
        ))
    }

    /// Makes an address free in the directory of a cluster, if it has no account any more. If the directory does not answer,
    /// the address stays with this shard, where a sign-up or an invitation finds it free.
    pub(super) async fn give_up_email(&self, email: &str) {
        let Some(ShardPlace { shard, directory, .. }) = &self.place else {
            return;
        };
        // A sign-up with this address takes it under the same decision.
        let _decision = self.decisions.begin(email).await;
        if self.check_email_free(email).is_err() {
            return;
        }
        if let Err(error) = directory.give_up_email(email, *shard).await {
            tracing::warn!(%error, "the address of a removed member stays with this shard");
        }
    }
}
