//! Invitations: each lets the holder of its link join the organization with one email address.

use serde::{Deserialize, Serialize};

use super::{Catalog, KeyHash, Organization, Role, User};
use crate::ids::ObjectId;

/// An open invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub id: ObjectId,
    /// Trimmed and in lower case.
    pub email: Box<str>,
    /// The role of the member that it makes.
    pub role: Role,
    /// SHA-256 of the token in its link.
    pub hash: KeyHash,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// The owner who invited.
    pub created_by: ObjectId,
    /// When it ends, in UTC nanoseconds.
    pub expires_at_ns: i64,
}

impl Invitation {
    pub fn is_open(&self, now_ns: i64) -> bool {
        now_ns < self.expires_at_ns
    }
}

impl Catalog {
    /// The invitation with this SHA-256 of its token, and its organization.
    pub fn invitation_by_hash(&self, hash: &KeyHash) -> Option<(&Organization, &Invitation)> {
        let organization = self.organization(*self.invitation_by_hash.get(hash)?)?;
        let found = organization.invitations.iter().find(|it| it.hash == *hash);
        found.map(|invitation| (&**organization, invitation))
    }

    /// Makes the invitations of an organization findable by their tokens.
    pub(super) fn index_invitations(&mut self, organization: &Organization) {
        let hashes = organization.invitations.iter().map(|it| it.hash);
        self.invitation_by_hash
            .extend(hashes.map(|hash| (hash, organization.id)));
    }

    /// Adds an invitation. Those that have ended are removed.
    pub(super) fn create_invitation(&mut self, organization_id: ObjectId, invitation: &Invitation) {
        let at_ns = invitation.created_at_ns;
        self.retain_invitations(organization_id, |it| it.is_open(at_ns));
        self.change_invitations(organization_id, |all| all.push(invitation.clone()));
        if self.organizations.contains_key(&organization_id) {
            self.invitation_by_hash.insert(invitation.hash, organization_id);
        }
    }

    pub(super) fn delete_invitation(&mut self, organization_id: ObjectId, id: ObjectId) {
        self.retain_invitations(organization_id, |it| it.id != id);
    }

    /// Uses up an invitation. Has no effect if it is gone, or its address has an account.
    pub(super) fn accept_invitation(&mut self, id: ObjectId, user: &User) {
        let organization = self.organization(user.organization_id);
        let is_open = organization.is_some_and(|it| it.invitations.iter().any(|it| it.id == id));
        if is_open && !self.user_by_email.contains_key(&user.email) {
            self.delete_invitation(user.organization_id, id);
            self.insert_user(user.clone().into());
        }
    }

    fn retain_invitations(&mut self, organization_id: ObjectId, keep: impl Fn(&Invitation) -> bool) {
        let all = self.organization(organization_id).map(|it| &it.invitations);
        let gone = all.into_iter().flatten().filter(|it| !keep(it));
        let gone: Vec<KeyHash> = gone.map(|it| it.hash).collect();
        if gone.is_empty() {
            return;
        }
        for hash in &gone {
            self.invitation_by_hash.remove(hash);
        }
        self.change_invitations(organization_id, |all| all.retain(keep));
    }
}
