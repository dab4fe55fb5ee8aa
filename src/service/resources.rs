//! What the shards of a node share: threads for queries and passwords, and limits per address.

use std::sync::Arc;
use std::thread::available_parallelism;

use super::login_limiter::LoginLimiter;
use super::passwords::Passwords;
use super::signup_limiter::SignUpLimiter;
use crate::config::Config;
use crate::error::ServiceError;
use crate::ids::ObjectIds;
use crate::query_pool::QueryPool;
use crate::random;

/// Threads and limits of a node, whatever its shards.
pub struct Resources {
    /// Generates ids.
    pub ids: Arc<ObjectIds>,
    /// Runs scans and aggregations.
    pub queries: QueryPool,
    /// A random number that distinguishes this run of the server from others.
    pub(super) run: u64,
    pub(super) passwords: Passwords,
    pub(super) logins: Arc<LoginLimiter>,
    /// Separate from log-in failures: somebody who only knows the email cannot keep its owner from changing the
    /// password.
    pub(super) password_guesses: Arc<LoginLimiter>,
    pub(super) sign_ups: SignUpLimiter,
}

impl Resources {
    /// Starts the threads.
    ///
    /// # Errors
    /// The operating system provides no random bytes or no thread.
    pub fn start(config: &Config) -> Result<Arc<Self>, ServiceError> {
        let cores = available_parallelism().map_or(1, usize::from);
        let threads = match config.query.threads {
            0 => cores / 2,
            threads => threads,
        };
        let queries = QueryPool::start(
            threads,
            config.query.queue_max,
            config.query.timeout,
            config.query.memory_bytes_max,
        );
        Ok(Arc::new(Resources {
            ids: Arc::new(ObjectIds::new()?),
            queries: queries.map_err(ServiceError::internal)?,
            run: u64::from_le_bytes(random::bytes()?),
            passwords: Passwords::start().map_err(ServiceError::internal)?,
            logins: Arc::new(LoginLimiter::new("failed sign-ins")),
            password_guesses: Arc::new(LoginLimiter::new("wrong passwords")),
            sign_ups: SignUpLimiter::new(config.accounts.signups_per_hour_max),
        }))
    }
}
