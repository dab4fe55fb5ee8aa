//! Applies the commands about members of organizations and their sessions.

use std::sync::Arc;

use super::text_bytes::of_user;
use super::{Catalog, Invitation, KeyHash, PasswordHash, PasswordReset, User, UserSession};
use crate::ids::ObjectId;

impl Catalog {
    /// The members of an organization, oldest first.
    pub fn members_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<User>> {
        let entry = self.organizations.get(&organization_id).into_iter();
        let ids = entry.flat_map(|entry| &entry.members);
        ids.filter_map(|(_, id)| self.users.get(id))
    }

    pub fn member_count(&self, organization_id: ObjectId) -> usize {
        let entry = self.organizations.get(&organization_id);
        entry.map_or(0, |entry| entry.members.len())
    }

    /// The user with this SHA-256 of the token that sets a new password.
    pub fn user_by_reset(&self, hash: &KeyHash) -> Option<&Arc<User>> {
        self.users.get(self.user_by_reset.get(hash)?)
    }

    pub(super) fn insert_user(&mut self, user: Arc<User>) {
        if let Some(entry) = self.organizations.get_mut(&user.organization_id) {
            entry.members.insert((user.created_at_ns, user.id));
            entry.holdings.replace_text(0, of_user(&user));
        }
        if let Some(reset) = &user.reset {
            self.user_by_reset.insert(reset.hash, user.id);
        }
        self.user_by_email.insert(user.email.clone(), user.id);
        self.users.insert(user.id, user);
    }

    pub(super) fn change_user(&mut self, id: ObjectId, change: impl FnOnce(&mut User)) {
        if let Some(user) = self.users.get_mut(&id).map(Arc::make_mut) {
            change(user);
        }
    }

    pub(super) fn remove_user(&mut self, id: ObjectId) {
        let Some(user) = self.users.remove(&id) else {
            return;
        };
        if let Some(entry) = self.organizations.get_mut(&user.organization_id) {
            entry.members.remove(&(user.created_at_ns, id));
            entry.holdings.replace_text(of_user(&user), 0);
        }
        self.user_by_email.remove(&user.email);
        if let Some(reset) = &user.reset {
            self.user_by_reset.remove(&reset.hash);
        }
    }

    pub(super) fn change_password(
        &mut self,
        id: ObjectId,
        password: &PasswordHash,
        session: Option<&UserSession>,
    ) {
        self.set_reset(id, None);
        self.change_user(id, |user| {
            user.password.clone_from(password);
            user.password_version += 1;
            user.sessions = session.cloned().into_iter().collect();
        });
    }

    pub(super) fn set_reset(&mut self, id: ObjectId, reset: Option<PasswordReset>) {
        let Some(user) = self.users.get_mut(&id).map(Arc::make_mut) else {
            return;
        };
        if let Some(former) = std::mem::replace(&mut user.reset, reset) {
            self.user_by_reset.remove(&former.hash);
        }
        if let Some(reset) = reset {
            self.user_by_reset.insert(reset.hash, id);
        }
    }

    pub(super) fn touch_sessions(&mut self, touches: &[(ObjectId, u64, u32)]) {
        for (user_id, number, minute) in touches {
            self.change_user(*user_id, |user| {
                let mut sessions = user.sessions.iter_mut();
                if let Some(session) = sessions.find(|session| session.number == *number) {
                    session.save_use(*minute);
                }
            });
        }
    }

    pub(super) fn change_invitations(
        &mut self,
        organization_id: ObjectId,
        change: impl FnOnce(&mut Vec<Invitation>),
    ) {
        if let Some(entry) = self.organizations.get_mut(&organization_id) {
            change(&mut Arc::make_mut(&mut entry.organization).invitations);
        }
    }
}
