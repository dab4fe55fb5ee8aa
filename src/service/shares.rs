//! Links that show a board to readers without a log-in.

use std::sync::Arc;

use parking_lot::Mutex;

use super::boards::board_for;
use super::keys::hash_of;
use super::page::{Page, PageRequest};
use super::secret_text::secret_text;
use super::sliding_window::{SlidingWindow, seconds_until};
use super::{Caller, Credential, Service};
use crate::catalog::{Board, Command, Share};
use crate::clock::{DAY_NS, MINUTE_NS};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{BOARD_SHARES_MAX, SHARE_DAYS_MAX, SHARED_CALLS_PER_MINUTE};
use crate::random;

/// A new link, as shown to its creator once.
pub struct CreatedShare {
    pub share: Share,
    /// Opens the board; not stored.
    pub token: String,
}

/// A board as the holder of a link reaches it.
pub struct SharedBoard {
    /// Reads what the board shows, within its organization.
    pub caller: Caller,
    pub board: Arc<Board>,
}

/// Limits the requests with each link.
pub(super) struct LinkLimiter(Mutex<SlidingWindow<ObjectId>>);

impl Default for LinkLimiter {
    fn default() -> Self {
        Self(Mutex::new(SlidingWindow::new(SHARED_CALLS_PER_MINUTE, MINUTE_NS)))
    }
}

impl LinkLimiter {
    /// Counts a request.
    ///
    /// # Errors
    /// 429 with the seconds until the next request is allowed. A refused request is not counted.
    fn admit(&self, share_id: ObjectId, now_ns: i64) -> Result<(), ServiceError> {
        let mut calls = self.0.lock();
        if let Some(free_at_ns) = calls.free_at_ns(&share_id, now_ns) {
            let seconds = seconds_until(free_at_ns, now_ns);
            return Err(ServiceError::too_many_requests(
                format!(
                    "this link takes {SHARED_CALLS_PER_MINUTE} requests a minute; try again in {seconds} seconds"
                ),
                seconds,
            ));
        }
        calls.note(share_id, now_ns);
        Ok(())
    }
}

impl Service {
    /// Lists the links of a board that have not expired, oldest first.
    ///
    /// # Errors
    /// 404.
    pub fn list_shares(
        &self,
        caller: &Caller,
        board_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<Share>, ServiceError> {
        let (board, now_ns) = (self.board(caller, board_id)?, self.now_ns());
        let count = board.shares_in_force(now_ns).count();
        Ok(page.cut(count, board.shares_in_force(now_ns).cloned()))
    }

    /// Makes a link that shows a board until its end. Its token is only in the answer and is not stored.
    ///
    /// # Errors
    /// 400 for an end that has passed or is too far away; 404; 409 for one link too many.
    pub async fn share_board(
        &self,
        caller: &Caller,
        board_id: ObjectId,
        expires_at_ns: i64,
    ) -> Result<CreatedShare, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let now_ns = self.now_ns();
        let latest_ns = now_ns.saturating_add(SHARE_DAYS_MAX * DAY_NS);
        if expires_at_ns <= now_ns || expires_at_ns > latest_ns {
            let message = format!("must be in the future, at most {SHARE_DAYS_MAX} days from now");
            return Err(ServiceError::faults(vec![Detail::at(&["expiresAt"], message)]));
        }
        let board = self.board(caller, board_id)?;
        let count = board.shares_in_force(now_ns).count();
        if count >= BOARD_SHARES_MAX {
            return Err(ServiceError::conflict(format!(
                "the board has {count} links, and may have {BOARD_SHARES_MAX}; remove some"
            )));
        }
        let token = secret_text("", random::bytes()?, self.place.as_ref().map(|place| place.name));
        let share = Share {
            id: self.next_id(),
            hash: hash_of(token.as_bytes()),
            expires_at_ns,
            created_at_ns: now_ns,
        };
        let command = Command::BoardShared {
            board_id,
            share: share.clone(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(CreatedShare { share, token })
    }

    /// Removes a link, effective immediately.
    ///
    /// # Errors
    /// 404.
    pub async fn unshare_board(
        &self,
        caller: &Caller,
        board_id: ObjectId,
        share_id: ObjectId,
    ) -> Result<Share, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let board = self
            .catalog
            .read(|catalog| board_for(catalog, caller, board_id))?;
        let mut shares = board.shares_in_force(self.now_ns());
        let share = shares.find(|share| share.id == share_id);
        let share = share.ok_or_else(|| ServiceError::not_found("link"))?.clone();
        let command = Command::BoardUnshared { board_id, share_id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(share)
    }

    /// Admits the holder of a link. The call counts against no quota, but against the link's own limit.
    ///
    /// # Errors
    /// 404 for a token that is unknown, expired or removed; 429.
    pub fn admit_link(&self, token: &str) -> Result<SharedBoard, ServiceError> {
        let (hash, now_ns) = (hash_of(token.as_bytes()), self.now_ns());
        let found = self.catalog.read(|catalog| {
            let (board, share) = catalog.board_by_share(&hash)?;
            (!share.has_expired(now_ns)).then(|| (Arc::clone(board), share.id))
        });
        let (board, id) = found.ok_or_else(unknown_link)?;
        self.link_calls.admit(id, now_ns)?;
        let caller = Caller {
            organization_id: board.organization_id,
            credential: Credential::Share { id },
            address: None,
        };
        Ok(SharedBoard { caller, board })
    }
}

pub(super) fn unknown_link() -> ServiceError {
    ServiceError::not_found("board of this link")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    #[test]
    fn each_link_has_its_own_minute() {
        let limiter = LinkLimiter::default();
        let [one, other] = [1, 2].map(|number| ObjectId::from_bytes([number; 12]));
        let start_ns = 1_700_000_000 * SECOND_NS;
        for call in 0..SHARED_CALLS_PER_MINUTE as i64 {
            limiter.admit(one, start_ns + call).unwrap();
        }
        let refused = limiter.admit(one, start_ns + 10 * SECOND_NS).unwrap_err();
        assert_eq!(refused.retry_after_seconds, Some(50));
        limiter.admit(other, start_ns + 10 * SECOND_NS).unwrap();
        limiter.admit(one, start_ns + MINUTE_NS).unwrap();
    }
}
