//! Links with which a member sets a new password, made by an owner for somebody who has forgotten the old one.

use std::sync::Arc;

use super::accounts::SignedIn;
use super::invitations::INVITATION_PREFIX;
use super::keys::hash_of;
use super::secret_text::{secret_text, shard_named_in};
use super::sessions::Client;
use super::shard_name::ShardName;
use super::{Caller, Service};
use crate::catalog::{Command, KeyHash, PasswordReset, User};
use crate::clock::HOUR_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::RESET_HOURS;
use crate::random;

/// The first characters of the token of a link.
const RESET_PREFIX: &str = "rst_";

/// A new link, as shown to who made it once.
pub struct CreatedReset {
    /// The token of the link.
    pub token: String,
    /// UTC nanoseconds.
    pub expires_at_ns: i64,
}

impl Service {
    /// Makes a link with which a member sets a password once. It ends an older link, and nothing else before it is used.
    ///
    /// # Errors
    /// 404.
    pub async fn create_reset(
        &self,
        caller: &Caller,
        user_id: ObjectId,
    ) -> Result<CreatedReset, ServiceError> {
        let decision = self.decisions.begin(user_id).await;
        self.member(caller, user_id)?;
        let shard = self.place.as_ref().map(|place| place.name);
        let token = secret_text(RESET_PREFIX, random::bytes()?, shard);
        let expires_at_ns = self.now_ns() + RESET_HOURS * HOUR_NS;
        let reset = PasswordReset {
            hash: hash_of(token.as_bytes()),
            expires_at_ns,
        };
        let command = Command::ResetCreated { user_id, reset };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(CreatedReset { token, expires_at_ns })
    }

    /// Sets the password of the member that the link is for, ends all sessions of the member, and begins one.
    ///
    /// # Errors
    /// 404 for a link that was used or replaced, has ended or never was.
    pub async fn reset_password(
        &self,
        token: &str,
        new: String,
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let hash = hash_of(token.as_bytes());
        let user_id = self.user_of_reset(&hash)?.id;
        let password = self.hash_password(new).await?;
        let decision = self.decisions.begin(user_id).await;
        let user = self.user_of_reset(&hash)?;
        let auditor = self.auditor_of_user(user.organization_id, (user_id, &user.name), client.address);
        let signed_in = self
            .replace_password(decision, &auditor, (user_id, password), client)
            .await?;
        // Whoever has tried too often before may log in with the new password at once.
        self.resources.logins.succeeded(&user.email);
        Ok(signed_in)
    }

    fn user_of_reset(&self, hash: &KeyHash) -> Result<Arc<User>, ServiceError> {
        let now_ns = self.now_ns();
        let found = self.catalog.read(|catalog| catalog.user_by_reset(hash).cloned());
        found
            .filter(|user| user.reset.is_some_and(|reset| now_ns < reset.expires_at_ns))
            .ok_or_else(|| ServiceError::not_found("link"))
    }
}

/// The shard that the token of an invitation or of a link names; `None` for one that names none.
pub(super) fn shard_of_link(token: &[u8]) -> Option<ShardName> {
    shard_named_in(token, [INVITATION_PREFIX, RESET_PREFIX])
}
