//! Invitations into an organization: made and withdrawn by owners, accepted by whoever has the link.

use super::accounts::{SignedIn, email_taken};
use super::keys::hash_of;
use super::page::{Page, PageRequest};
use super::secret_text::secret_text;
use super::sessions::Client;
use super::tokens::Session;
use super::{Caller, Service, ShardPlace};
use crate::catalog::{Command, Invitation, KeyHash, Role, User};
use crate::clock::HOUR_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{INVITATION_DAYS, INVITATIONS_MAX, MEMBERS_MAX};
use crate::random;

/// The first characters of the token of an invitation.
pub(super) const INVITATION_PREFIX: &str = "inv_";

/// A new invitation, as shown to who made it once.
pub struct CreatedInvitation {
    pub invitation: Invitation,
    /// The token of its link.
    pub token: String,
}

/// What an invited person says about itself.
pub struct Joining {
    /// The token of the link.
    pub token: String,
    pub name: String,
    pub password: String,
}

impl Service {
    /// The open invitations of the caller's organization, oldest first.
    ///
    /// # Errors
    /// 404 when the organization does not exist.
    pub fn list_invitations(
        &self,
        caller: &Caller,
        page: PageRequest,
    ) -> Result<Page<Invitation>, ServiceError> {
        let now_ns = self.now_ns();
        let organization = self.organization(caller.organization_id)?;
        let open = organization.invitations.iter().filter(|it| it.is_open(now_ns));
        Ok(page.cut(open.clone().count(), open.cloned()))
    }

    /// An open invitation of the caller's organization.
    ///
    /// # Errors
    /// 404.
    pub fn invitation(&self, caller: &Caller, id: ObjectId) -> Result<Invitation, ServiceError> {
        let now_ns = self.now_ns();
        let organization = self.organization(caller.organization_id)?;
        let mut open = organization.invitations.iter().filter(|it| it.is_open(now_ns));
        let found = open.find(|invitation| invitation.id == id).cloned();
        found.ok_or_else(not_found)
    }

    /// Invites a person by an email address. The token is only in the answer and is not stored.
    ///
    /// # Errors
    /// 409 when the address has an account; 403 beyond a limit.
    pub async fn invite(
        &self,
        caller: &Caller,
        email: String,
        role: Role,
    ) -> Result<CreatedInvitation, ServiceError> {
        self.check_email_free(&email)?;
        if let Some(ShardPlace { shard, directory, .. }) = &self.place {
            let taken = directory.shard_of_email(&email).await?;
            if taken.is_some_and(|taken| taken != *shard) {
                return Err(email_taken());
            }
        }
        let organization_id = caller.organization_id;
        let decision = self.decisions.begin(organization_id).await;
        self.check_email_free(&email)?;
        let now_ns = self.now_ns();
        let organization = self.organization(organization_id)?;
        let invitations = organization.invitations.iter();
        let open = invitations.filter(|it| it.is_open(now_ns)).count();
        let members = self.catalog.read(|it| it.member_count(organization_id));
        check_room(members, open)?;
        let shard = self.place.as_ref().map(|place| place.name);
        let token = secret_text(INVITATION_PREFIX, random::bytes()?, shard);
        let invitation = Invitation {
            id: self.next_id(),
            email: email.into(),
            role,
            hash: hash_of(token.as_bytes()),
            created_at_ns: now_ns,
            created_by: caller.actor_id(),
            expires_at_ns: now_ns + INVITATION_DAYS * 24 * HOUR_NS,
        };
        let created = Command::InvitationCreated {
            organization_id,
            invitation: invitation.clone(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(created)).await?;
        Ok(CreatedInvitation { invitation, token })
    }

    /// Withdraws an invitation: its link no longer works.
    ///
    /// # Errors
    /// 404.
    pub async fn withdraw_invitation(
        &self,
        caller: &Caller,
        id: ObjectId,
    ) -> Result<Invitation, ServiceError> {
        let organization_id = caller.organization_id;
        let decision = self.decisions.begin(organization_id).await;
        let invitation = self.invitation(caller, id)?;
        let deleted = Command::InvitationDeleted {
            organization_id,
            invitation_id: id,
        };
        let _settled = decision.commit(self.auditor(caller).audited(deleted)).await?;
        Ok(invitation)
    }

    /// Makes an account for an invited person, who joins the organization. Works while sign-up is closed.
    ///
    /// # Errors
    /// 404 for a link that was used, withdrawn, has ended or never was; 409 when the address has an account by now.
    pub async fn accept_invitation(
        &self,
        joining: Joining,
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let hash = hash_of(joining.token.as_bytes());
        let (_, known) = self.open_invitation(&hash)?;
        self.check_email_free(&known.email)?;
        let password = self.hash_password(joining.password).await?;
        // One decision for an address, as when it signs up. That the invitation is still there is decided in the order of
        // the log: without it, the command has no effect.
        let decision = self.decisions.begin(&*known.email).await;
        let (organization_id, invitation) = self.open_invitation(&hash)?;
        self.check_email_free(&invitation.email)?;
        if let Some(ShardPlace { shard, directory, .. }) = &self.place {
            let taken = directory.take_email(&invitation.email, *shard, organization_id);
            if taken.await? != *shard {
                return Err(email_taken());
            }
        }
        let session = self.new_session(client)?;
        let token_session = Session::of(&session);
        let email = invitation.email.clone();
        let now_ns = self.now_ns();
        let user = User {
            role: invitation.role,
            sessions: vec![session],
            created_by: Some(invitation.created_by),
            ..User::new(
                self.next_id(),
                organization_id,
                email,
                joining.name,
                password,
                now_ns,
            )
        };
        let user_id = user.id;
        let auditor = self.auditor_of_user(organization_id, (user_id, &user.name), client.address);
        let accepted = Command::InvitationAccepted {
            invitation_id: invitation.id,
            user,
        };
        let settled = decision.commit(auditor.audited(accepted)).await?;
        if self.catalog.read(|catalog| catalog.user(user_id).is_none()) {
            drop(settled);
            self.give_up_email(&invitation.email).await;
            return Err(not_found());
        }
        self.token_for(user_id, token_session)
    }

    /// The open invitation with this hash of its token, and its organization.
    fn open_invitation(&self, hash: &KeyHash) -> Result<(ObjectId, Invitation), ServiceError> {
        let now_ns = self.now_ns();
        self.catalog.read(|catalog| {
            let found = catalog.invitation_by_hash(hash);
            let (organization, invitation) =
                found.filter(|(_, it)| it.is_open(now_ns)).ok_or_else(not_found)?;
            Ok((organization.id, invitation.clone()))
        })
    }
}

fn not_found() -> ServiceError {
    ServiceError::not_found("invitation")
}

/// Checks that an organization may have one more invitation.
fn check_room(members: usize, open: usize) -> Result<(), ServiceError> {
    if open >= INVITATIONS_MAX {
        return Err(ServiceError::forbidden(format!(
            "the organization has {open} open invitations, and may have {INVITATIONS_MAX}; withdraw some it does not need"
        )));
    }
    if members + open >= MEMBERS_MAX {
        return Err(ServiceError::forbidden(format!(
            "the organization has {members} members and {open} open invitations, and may have {MEMBERS_MAX} together; \
             remove or withdraw some"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_invitations_are_bounded() {
        assert!(check_room(1, INVITATIONS_MAX - 1).is_ok());
        assert!(check_room(1, INVITATIONS_MAX).is_err());
        assert!(check_room(MEMBERS_MAX - 1, 0).is_ok());
        assert!(check_room(MEMBERS_MAX - 1, 1).is_err());
        assert!(check_room(MEMBERS_MAX, 0).is_err());
    }
}
