//! Password hashing on a separate thread, so that sign-ins do not delay requests with points. One thread and a bounded
//! queue: at 30 ms per hash, a flood of sign-ins takes at most the time of that thread, and requests that do not fit in
//! the queue are refused before any work is done.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;
use tokio::sync::oneshot;

use crate::catalog::{Bytes, PasswordHash};
use crate::error::ServiceError;
use crate::priority;

/// OWASP's minimum for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// About 8 s of waiting at 30 ms each, well below the request timeout.
const QUEUE_MAX: usize = 256;
/// `Retry-After` of a refused request; the queue is empty by then.
const RETRY_AFTER_SECONDS: u32 = 8;

type Job = Box<dyn FnOnce(&mut Hasher) + Send>;

/// Handle of the hashing thread, which ends when the handle is dropped.
pub struct Passwords {
    jobs: SyncSender<Job>,
}

impl Passwords {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system cannot create a thread.
    pub fn start() -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel::<Job>(QUEUE_MAX);
        thread::Builder::new()
            .name(String::from("passwords"))
            .spawn(move || {
                // If all cores are busy, ingests take precedence over a flood of sign-ins.
                priority::lower();
                let mut hasher = Hasher::default();
                for job in queue {
                    job(&mut hasher);
                }
            })?;
        Ok(Self { jobs })
    }

    /// Runs `work` on the thread, after all work queued before.
    ///
    /// # Errors
    /// 503 if the queue is full.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Hasher) -> R + Send + 'static,
    ) -> Result<R, ServiceError> {
        let (sender, result) = oneshot::channel();
        let job: Job = Box::new(move |hasher| {
            // Skip the hash if the request is gone.
            if !sender.is_closed() {
                let _ = sender.send(work(hasher));
            }
        });
        self.jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => ServiceError::unavailable(
                "too many sign-ins at once; try again shortly",
                RETRY_AFTER_SECONDS,
            ),
            TrySendError::Disconnected(_) => ServiceError::internal("the password thread has ended"),
        })?;
        result.await.map_err(ServiceError::internal)
    }
}

/// Argon2id with its working memory, which is reused between hashes.
#[derive(Default)]
pub struct Hasher {
    memory: Vec<Block>,
}

impl Hasher {
    /// Hashes a new password with the current parameters.
    ///
    /// # Errors
    /// 500 if argon2 rejects the constant parameters.
    pub fn hash(&mut self, password: &str, salt: [u8; 16]) -> Result<PasswordHash, ServiceError> {
        let mut made = PasswordHash {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: Bytes(salt),
            hash: Bytes([0; 32]),
        };
        made.hash = Bytes(self.compute(password, &made)?);
        Ok(made)
    }

    /// Whether the password matches the hash. Without a hash (unknown user) the check takes the same time and fails.
    ///
    /// # Errors
    /// 500 if argon2 rejects the stored parameters.
    pub fn verify(&mut self, password: &str, stored: Option<&PasswordHash>) -> Result<bool, ServiceError> {
        let Some(stored) = stored else {
            self.hash(password, [0; 16])?;
            return Ok(false);
        };
        let computed = self.compute(password, stored)?;
        Ok(computed.ct_eq(&stored.hash.0).into())
    }

    fn compute(&mut self, password: &str, settings: &PasswordHash) -> Result<[u8; 32], ServiceError> {
        let params = Params::new(settings.memory_kib, settings.passes, settings.lanes, Some(32))
            .map_err(|cause| ServiceError::internal(cause.to_string()))?;
        self.memory.resize(params.block_count(), Block::default());
        let mut hash = [0; 32];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(
                password.as_bytes(),
                &settings.salt.0,
                &mut hash,
                &mut self.memory,
            )
            .map_err(|cause| ServiceError::internal(cause.to_string()))?;
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hashed_password_verifies() {
        let mut hasher = Hasher::default();
        let stored = hasher.hash("correct horse", [7; 16]).unwrap();
        assert!(hasher.verify("correct horse", Some(&stored)).unwrap());
        assert!(!hasher.verify("correct hors", Some(&stored)).unwrap());
        assert!(!hasher.verify("correct horse", None).unwrap());
        assert_ne!(hasher.hash("correct horse", [8; 16]).unwrap().hash, stored.hash);
    }

    #[test]
    fn hashes_match_the_reference() {
        // `echo -n password | argon2 somesalt12345678 -id -t 2 -k 19456 -p 1 -l 32`, and the crate's
        // own one-shot call with the same parameters.
        let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(32)).unwrap();
        let mut expected = [0; 32];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(b"password", b"somesalt12345678", &mut expected)
            .unwrap();
        let mut hasher = Hasher::default();
        for _ in 0..2 {
            let made = hasher.hash("password", *b"somesalt12345678").unwrap();
            assert_eq!(
                made.hash.0, expected,
                "reused memory must not leak into the next hash"
            );
        }
    }
}
