//! Limits the memory of answers that wait for their clients. An answer counts from when it is made until its client has
//! taken it. No organization gets more than half of the budget, so an organization with slow clients only refuses itself.
//! Answers to everybody together get a quarter. Files that the server keeps anyway count nothing.
//!
//! Small answers have a budget of their own, a quarter in addition: whoever has many large ones wait still gets them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::web::Bytes;
use listener::Kept;
use parking_lot::Mutex;

use crate::error::ServiceError;
use crate::ids::ObjectId;

/// Smaller answers, which are nearly all, never touch the shared counters. As many as there may be connections have to fit
/// into memory beside the budget.
const FREE_BYTES: u64 = 4 * 1_024;
/// Answers up to this count as small.
const SMALL_BYTES: u64 = 64 * 1_024;
/// The budget of small answers is that of large ones divided by this.
const SMALL_SHARE: u64 = 4;
/// Cost of an answer that is made in pieces: the waiting piece, the encoder, and the next piece.
pub(in crate::http) const PIECES_BYTES: u64 = 1_024 * 1_024;
/// One organization may use the budget divided by this.
const SHARES: u64 = 2;
/// Those without one may together use the budget divided by this.
const PUBLIC_SHARES: u64 = 4;
/// Clients take their answers within seconds, or are cut.
const RETRY_AFTER_SECONDS: u32 = 1;

/// What an answer that is made in pieces holds, if that is more than usual: an extension of the response.
#[derive(Clone, Copy)]
pub(in crate::http) struct HeldBytes(pub u64);

/// Bytes of waiting answers and their limit. Cheap to clone.
#[derive(Clone)]
pub struct AnswerBudget {
    large: Pool,
    small: Pool,
}

/// The memory of one kind of answers.
#[derive(Clone)]
struct Pool {
    bytes_max: u64,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    bytes: u64,
    /// `None`: of requests without an organization.
    by_organization: HashMap<Option<ObjectId>, u64>,
}

/// One answer's share of the budget, given back when dropped.
struct Share {
    held: Arc<Mutex<Held>>,
    organization: Option<ObjectId>,
    bytes: u64,
}

/// A body that counts until dropped.
struct CountedBody {
    body: BoxBody,
    _share: Share,
}

impl AnswerBudget {
    /// A budget of so many bytes for large answers.
    pub fn new(bytes_max: u64) -> Self {
        AnswerBudget {
            large: Pool::new(bytes_max),
            small: Pool::new(bytes_max / SMALL_SHARE),
        }
    }

    /// Bytes held now, without small answers.
    pub fn held_bytes(&self) -> u64 {
        self.large.held.lock().bytes
    }

    /// The limit.
    pub fn bytes_max(&self) -> u64 {
        self.large.bytes_max
    }

    /// Counts an answer for this organization until its client has taken it; `None` for a request without one.
    ///
    /// # Errors
    /// 503 when too many other answers wait for their clients.
    pub(in crate::http) fn count(
        &self,
        organization: Option<ObjectId>,
        answer: ServiceResponse<BoxBody>,
    ) -> Result<ServiceResponse<BoxBody>, ServiceError> {
        let bytes = match answer.response().body().size() {
            BodySize::None => 0,
            BodySize::Sized(bytes) => bytes,
            BodySize::Stream => {
                let held = answer.response().extensions().get::<HeldBytes>().copied();
                held.map_or(PIECES_BYTES, |HeldBytes(bytes)| bytes)
            }
        };
        if bytes <= FREE_BYTES || answer.response().extensions().get::<Kept>().is_some() {
            return Ok(answer);
        }
        let pool = if bytes <= SMALL_BYTES {
            &self.small
        } else {
            &self.large
        };
        let share = pool.hold(organization, bytes)?;
        Ok(answer.map_body(|_, body| BoxBody::new(CountedBody { body, _share: share })))
    }

    /// Whether a large answer of this size would be taken now. Asked before the work for one begins; otherwise, at twice the
    /// capacity, a third of the processor went into answers that were then refused.
    ///
    /// # Errors
    /// 503 when too many other answers wait for their clients.
    pub(in crate::http) fn admit(&self, organization: ObjectId, bytes: u64) -> Result<(), ServiceError> {
        let held = self.large.held.lock();
        self.large.check(&held, Some(organization), bytes).map(drop)
    }
}

impl Pool {
    fn new(bytes_max: u64) -> Self {
        let held = Arc::default();
        Pool { bytes_max, held }
    }

    /// Returns what the organization holds.
    fn check(&self, held: &Held, organization: Option<ObjectId>, bytes: u64) -> Result<u64, ServiceError> {
        let own = held.by_organization.get(&organization).copied().unwrap_or(0);
        let shares = if organization.is_some() {
            SHARES
        } else {
            PUBLIC_SHARES
        };
        // A single answer may exceed the limit: it already exists.
        let is_over = |held: u64, bytes_max: u64| held > 0 && held + bytes > bytes_max;
        if is_over(held.bytes, self.bytes_max) || is_over(own, self.bytes_max / shares) {
            return Err(ServiceError::unavailable(
                "the server holds as many answers as it has room for until their clients have taken them; send it again \
                 in a moment",
                RETRY_AFTER_SECONDS,
            ));
        }
        Ok(own)
    }

    fn hold(&self, organization: Option<ObjectId>, bytes: u64) -> Result<Share, ServiceError> {
        let mut held = self.held.lock();
        let own = self.check(&held, organization, bytes)?;
        held.bytes += bytes;
        held.by_organization.insert(organization, own + bytes);
        Ok(Share {
            held: Arc::clone(&self.held),
            organization,
            bytes,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.bytes -= self.bytes;
        if let Some(own) = held.by_organization.get_mut(&self.organization) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_organization.remove(&self.organization);
            }
        }
    }
}

impl MessageBody for CountedBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::ids::ObjectIds;

    #[test]
    fn an_organization_gets_half_of_the_budget_and_releases_it() {
        let budget = AnswerBudget::new(100);
        let pool = &budget.large;
        let ids = ObjectIds::new().unwrap();
        let [one, other, third] = [(); 3].map(|()| Some(ids.next(0)));
        let refused = |organization, bytes| {
            let refusal = pool.hold(organization, bytes).err().expect("there is no room");
            assert!(refusal.retry_after_seconds.is_some());
            refusal.kind
        };
        let mut held = vec![pool.hold(one, 30).unwrap(), pool.hold(one, 20).unwrap()];
        assert_eq!(refused(one, 1), ErrorKind::Unavailable);
        held.push(pool.hold(other, 50).unwrap());
        assert_eq!(refused(third, 1), ErrorKind::Unavailable);
        assert_eq!(budget.held_bytes(), 100);
        held.remove(0);
        drop(pool.hold(one, 30).unwrap());
        held.clear();
        assert_eq!(budget.held_bytes(), 0);
        assert!(pool.held.lock().by_organization.is_empty());
        // What is made already is sent, where nothing else waits.
        drop(pool.hold(one, 1_000).unwrap());
    }

    #[test]
    fn an_answer_is_not_begun_when_there_is_no_room_for_it() {
        let budget = AnswerBudget::new(4 * PIECES_BYTES);
        let ids = ObjectIds::new().unwrap();
        let [one, other] = [(); 2].map(|()| ids.next(0));
        budget.admit(one, PIECES_BYTES).unwrap();
        let held = [(); 2].map(|()| budget.large.hold(Some(one), PIECES_BYTES).unwrap());
        let refused = budget.admit(one, PIECES_BYTES).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        budget.admit(other, PIECES_BYTES).unwrap();
        drop(held);
        budget.admit(one, PIECES_BYTES).unwrap();
    }

    #[test]
    fn answers_to_everybody_together_get_a_quarter() {
        let pool = Pool::new(100);
        let held = pool.hold(None, 25).unwrap();
        let refused = pool.hold(None, 1).err().expect("there is no room");
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        let own = Some(ObjectIds::new().unwrap().next(0));
        drop(pool.hold(own, 50).unwrap());
        drop(held);
        drop(pool.hold(None, 25).unwrap());
    }

    #[test]
    fn small_answers_have_a_budget_of_their_own_with_the_same_shares() {
        let budget = AnswerBudget::new(16 * SMALL_BYTES);
        let ids = ObjectIds::new().unwrap();
        let [one, other] = [(); 2].map(|()| Some(ids.next(0)));
        let answer = |organization, bytes: u64| {
            let body = vec![b'x'; bytes as usize];
            let answer = actix_web::HttpResponse::Ok().body(body);
            let request = actix_web::test::TestRequest::get().to_http_request();
            budget.count(organization, ServiceResponse::new(request, answer))
        };
        let mut held = vec![answer(one, 8 * SMALL_BYTES).unwrap()];
        assert!(
            answer(one, SMALL_BYTES + 1).is_err(),
            "large ones have used up its half"
        );
        held.extend((0..2).map(|_| answer(one, SMALL_BYTES).unwrap()));
        assert!(answer(one, FREE_BYTES + 1).is_err(), "so have small ones");
        held.push(answer(one, FREE_BYTES).unwrap());
        held.push(answer(other, SMALL_BYTES).unwrap());
        drop(held);
        answer(one, SMALL_BYTES).unwrap();
        assert!(budget.small.held.lock().by_organization.is_empty());
    }
}
