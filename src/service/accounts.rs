//! Sign-up, log-in and password changes.

use std::net::IpAddr;
use std::sync::Arc;

use super::audit::Auditor;
use super::decision::Decision;
use super::login_limiter::LoginLimiter;
use super::passwords::Hasher;
use super::sessions::{Client, bearer};
use super::tokens::{IssuedToken, Session};
use super::{Caller, Service, ShardPlace};
use crate::catalog::{Catalog, Command, Organization, PasswordHash, User};
use crate::config::Config;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::random;

/// A validated sign-up.
pub struct SignUp {
    /// Trimmed, in lower case.
    pub email: String,
    pub password: String,
    /// The person's name.
    pub name: String,
    /// The organization's name; derived from the person's name when absent.
    pub organization_name: Option<String>,
}

/// The account of a signed-in user.
pub struct Account {
    pub user: Arc<User>,
    pub organization: Arc<Organization>,
}

/// The account of a signed-in user, with a new token.
pub struct SignedIn {
    /// Sent as `Authorization: Bearer`.
    pub token: IssuedToken,
    pub account: Account,
}

pub(super) fn email_taken() -> ServiceError {
    ServiceError::conflict("this email has an account already; sign in instead")
}

/// Checks that the operator has not closed sign-up.
///
/// # Errors
/// 403 when sign-up is closed.
pub fn check_signup_open(config: &Config) -> Result<(), ServiceError> {
    if config.accounts.signup {
        return Ok(());
    }
    Err(ServiceError::forbidden(
        "sign-up is closed on this server; ask its operator for an account",
    ))
}

impl Service {
    /// Creates an organization and its first user.
    ///
    /// # Errors
    /// 409 when the email has an account; 429 after too many sign-ups from the address; 503 when too many sign up at
    /// once.
    pub async fn sign_up(&self, input: SignUp, client: &Client) -> Result<SignedIn, ServiceError> {
        self.resources.sign_ups.admit(client.address, self.now_ns())?;
        self.check_email_free(&input.email)?;
        let password = self.hash_password(input.password).await?;
        // Hashing is slow, so the lock on the email is taken only after it.
        let decision = self.decisions.begin(input.email.as_str()).await;
        self.check_email_free(&input.email)?;
        let organization_id = self.next_id();
        if let Some(ShardPlace { shard, directory, .. }) = &self.place {
            let taken = directory.take_email(&input.email, *shard, organization_id);
            if taken.await? != *shard {
                return Err(email_taken());
            }
        }
        let now_ns = self.now_ns();
        let organization = Organization {
            id: organization_id,
            name: input
                .organization_name
                .unwrap_or_else(|| format!("{}'s organization", input.name))
                .into_boxed_str(),
            plan: self.config.accounts.default_plan,
            invitations: Vec::new(),
            created_at_ns: now_ns,
            updated_at_ns: now_ns,
        };
        let session = self.new_session(client)?;
        let mut user = User::new(
            self.next_id(),
            organization.id,
            input.email,
            input.name,
            password,
            now_ns,
        );
        let (user_id, token_session) = (user.id, Session::of(&session));
        user.sessions.push(session);
        let auditor = self.auditor_of_user(organization_id, (user_id, &user.name), client.address);
        let command = auditor.audited(Command::SignedUp { organization, user });
        let _settled = decision.commit(command).await?;
        self.token_for(user_id, token_session)
    }

    /// Hashes a new password on the hashing thread.
    ///
    /// # Errors
    /// 503 when too many passwords wait for the thread.
    pub(super) async fn hash_password(&self, password: String) -> Result<PasswordHash, ServiceError> {
        let salt = random::bytes()?;
        self.resources
            .passwords
            .run(move |hasher| hasher.hash(&password, salt))
            .await?
    }

    /// Checks that an email address has no account in this shard.
    ///
    /// # Errors
    /// 409 when it has one.
    pub(super) fn check_email_free(&self, email: &str) -> Result<(), ServiceError> {
        if self.catalog.read(|it| it.user_by_email(email).is_none()) {
            return Ok(());
        }
        Err(email_taken())
    }

    /// Signs a user in. The email is trimmed and in lower case. Unknown emails and wrong passwords get the same answer after the same work.
    ///
    /// # Errors
    /// 401; 429 after too many failures; 503 when too many sign in at once.
    pub async fn log_in(
        &self,
        email: &str,
        password: String,
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let user = self.catalog.read(|catalog| catalog.user_by_email(email).cloned());
        let stored = user.as_ref().map(|user| user.password.clone());
        let verified = self
            .verify_password(
                &self.resources.logins,
                email,
                client.address,
                password,
                stored,
                |_| Ok(()),
            )
            .await?;
        match user.zip(verified) {
            Some((user, ())) => self.begin_session(&user, client).await,
            None => Err(ServiceError::unauthorized("wrong email or password")),
        }
    }

    /// Verifies a password on the hashing thread and runs `then` there. Returns `None` for a wrong password.
    ///
    /// # Errors
    /// 429 after too many wrong passwords; 503 when too many passwords wait for the thread; the error of `then`.
    async fn verify_password<R: Send + 'static>(
        &self,
        limiter: &Arc<LoginLimiter>,
        email: &str,
        address: Option<IpAddr>,
        password: String,
        stored: Option<PasswordHash>,
        then: impl FnOnce(&mut Hasher) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<Option<R>, ServiceError> {
        limiter.check(email, address, self.now_ns())?;
        let (limiter, clock, email) = (Arc::clone(limiter), Arc::clone(&self.clock), email.to_owned());
        self.resources
            .passwords
            .run(move |hasher| {
                // Check again on the single hashing thread, so that concurrent guesses are counted one by one.
                limiter.check(&email, address, clock.now_ns())?;
                if !hasher.verify(&password, stored.as_ref())? {
                    limiter.failed(&email, address, clock.now_ns());
                    return Ok(None);
                }
                limiter.succeeded(&email);
                then(hasher).map(Some)
            })
            .await?
    }

    /// Returns the account of a bearer.
    ///
    /// # Errors
    /// 401 when the account no longer exists.
    pub fn account(&self, caller: &Caller) -> Result<Account, ServiceError> {
        let (user_id, _) = bearer(caller)?;
        self.catalog.read(|catalog| account_of(catalog, user_id))
    }

    /// Changes the bearer's password and invalidates all older tokens.
    ///
    /// # Errors
    /// 401 when the current password is wrong; 429 after too many wrong ones.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: String,
        new: String,
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let (user_id, _) = bearer(caller)?;
        let wrong = || ServiceError::unauthorized("currentPassword is wrong; nothing was changed");
        let known = self.account(caller)?.user;
        let (guesses, stored, salt) = (
            &self.resources.password_guesses,
            known.password.clone(),
            random::bytes()?,
        );
        let hash_new = move |hasher: &mut Hasher| hasher.hash(&new, salt);
        let password = self
            .verify_password(
                guesses,
                &known.email,
                client.address,
                current,
                Some(stored),
                hash_new,
            )
            .await?
            .ok_or_else(wrong)?;
        let decision = self.decisions.begin(user_id).await;
        if self.account(caller)?.user.password_version != known.password_version {
            // A concurrent change came first: the verified password is no longer the current one.
            return Err(wrong());
        }
        let auditor = self.auditor(caller);
        self.replace_password(decision, &auditor, (user_id, password), client)
            .await
    }

    /// Replaces the password of a user, which ends all sessions of the user, and begins one.
    ///
    /// # Errors
    /// 503 when the log does not accept writes.
    pub(super) async fn replace_password(
        &self,
        decision: Decision,
        auditor: &Auditor,
        (user_id, password): (ObjectId, PasswordHash),
        client: &Client,
    ) -> Result<SignedIn, ServiceError> {
        let session = self.new_session(client)?;
        let token_session = Session::of(&session);
        let changed = Command::PasswordChanged {
            user_id,
            password,
            session: Some(session),
        };
        let _settled = decision.commit(auditor.audited(changed)).await?;
        self.token_for(user_id, token_session)
    }

    /// Whether no account exists yet.
    pub fn has_no_account(&self) -> bool {
        self.catalog.read(|catalog| catalog.organizations().len() == 0)
    }

    /// Issues a token for a session.
    ///
    /// # Errors
    /// 401 when the account no longer exists.
    pub(super) fn token_for(&self, user_id: ObjectId, session: Session) -> Result<SignedIn, ServiceError> {
        let account = self.catalog.read(|catalog| account_of(catalog, user_id))?;
        let token = self
            .tokens
            .issue(user_id, account.user.password_version, session, self.now_ns())?;
        Ok(SignedIn { token, account })
    }
}

fn account_of(catalog: &Catalog, user_id: ObjectId) -> Result<Account, ServiceError> {
    let gone = || ServiceError::unauthorized("the account no longer exists");
    let user = Arc::clone(catalog.user(user_id).ok_or_else(gone)?);
    let organization = Arc::clone(catalog.organization(user.organization_id).ok_or_else(gone)?);
    Ok(Account { user, organization })
}
