//! Removes one source, or all of them with the bucket, in order with the ingests.

use actix::{AsyncContext, Handler, Message};
use tokio::sync::oneshot;

use super::{BucketActor, respond};
use crate::bucket::state::BucketState;
use crate::catalog::Command;
use crate::error::ServiceError;
use crate::journal::JournalError;

type DeleteReply = oneshot::Sender<Result<u64, ServiceError>>;

/// Deletes one source, or all of them with the bucket, in order with the ingests.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::bucket) struct Delete {
    pub(in crate::bucket) source: Option<u32>,
    pub(in crate::bucket) command: Command,
    pub(in crate::bucket) reply: DeleteReply,
}

/// The journal's result for a deletion.
#[derive(Message)]
#[rtype(result = "()")]
struct Deleted {
    outcome: Result<(), JournalError>,
    source: Option<u32>,
    reply: DeleteReply,
}

impl Handler<Delete> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Delete, context: &mut Self::Context) {
        let Delete {
            source,
            command,
            reply,
        } = message;
        let (address, changed) = (context.address(), self.dependencies.changed.clone());
        self.intake.lock().close(source);
        self.dependencies.journal.submit_command(command, move |outcome| {
            address.do_send(Deleted {
                outcome,
                source,
                reply,
            });
            changed.set();
        });
    }
}

impl Handler<Deleted> for BucketActor {
    type Result = ();

    fn handle(&mut self, message: Deleted, _: &mut Self::Context) {
        let Deleted {
            outcome,
            source,
            reply,
        } = message;
        let remove = |state: &mut BucketState| match source {
            Some(source) => state.store.remove_source(source),
            None => state.store.remove_all(),
        };
        let points = outcome.map(|()| self.work(remove));
        if source.is_none()
            && points.is_ok()
            && let Some(registry) = self.dependencies.registry.upgrade()
        {
            // Here rather than where the answer is awaited: the client may have disconnected.
            registry.forget(self.ordinal);
        }
        respond(reply, points.map_err(ServiceError::from));
        self.intake.lock().open(source);
    }
}
