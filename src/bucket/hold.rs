//! Messages to a bucket's actor about what new points are split by: a source whose points are held back while that is
//! changed, and how many series may be added.

use actix::{Addr, Message};
use tokio::sync::oneshot;

use super::actor::BucketActor;

pub(super) type HoldReply = oneshot::Sender<SourceHold>;

/// Holds back the points of a source. The answer comes when earlier ones are applied.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HoldSource {
    pub(super) source: u32,
    pub(super) reply: HoldReply,
}

/// Points of the source may come again; they are parsed again first.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ReleaseSource(pub(super) u32);

/// Asks how many series may be added, and how many the bucket may have.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AskRoom {
    pub(super) now_ns: i64,
    pub(super) reply: oneshot::Sender<(u64, u64)>,
}

/// Holds back the points of a source until it is dropped.
#[must_use = "points come again when it is dropped"]
pub struct SourceHold {
    address: Addr<BucketActor>,
    source: u32,
}

impl SourceHold {
    pub(super) fn new(address: Addr<BucketActor>, source: u32) -> Self {
        SourceHold { address, source }
    }
}

impl Drop for SourceHold {
    fn drop(&mut self) {
        self.address.do_send(ReleaseSource(self.source));
    }
}
