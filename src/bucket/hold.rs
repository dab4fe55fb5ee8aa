//! Messages to a bucket's actor about what new points are split by: a source whose points are held back while that is
//! changed, and how many series may be added.

use actix::{Addr, Message};
use tokio::sync::oneshot;

use super::actor::BucketActor;

pub(super) type HoldReply = oneshot::Sender<PointsHold>;

/// Holds back the points of a source, or of the whole bucket (`None`). The answer comes when earlier ones are applied.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HoldPoints {
    pub(super) source: Option<u32>,
    pub(super) reply: HoldReply,
}

/// These points may come again; they are parsed again first.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ReleasePoints(pub(super) Option<u32>);

/// Asks how many series may be added, and how many the bucket may have.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AskRoom {
    pub(super) now_ns: i64,
    pub(super) reply: oneshot::Sender<(u64, u64)>,
}

/// Holds back the points of a source, or of a whole bucket, until it is dropped.
#[must_use = "points come again when it is dropped"]
pub struct PointsHold {
    address: Addr<BucketActor>,
    source: Option<u32>,
}

impl PointsHold {
    pub(super) fn new(address: Addr<BucketActor>, source: Option<u32>) -> Self {
        PointsHold { address, source }
    }
}

impl Drop for PointsHold {
    fn drop(&mut self) {
        self.address.do_send(ReleasePoints(self.source));
    }
}
