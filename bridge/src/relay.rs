//! Gathers messages into batches, writes one batch after the other, and acknowledges each message after its point is
//! durable, in the order of arrival.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::BridgeError;
use crate::batch::{Batch, Bounds, Entry};
use crate::counts::Counts;
use crate::sessions::Ticket;
use crate::store::Store;

/// The writing half of a bridge.
pub struct Relay<'a> {
    pub store: Store,
    pub bounds: Bounds,
    /// How long the first message of a batch waits for others. While a batch is written, those behind it gather anyway.
    pub linger: Duration,
    pub counts: &'a Counts,
    /// Ends the retries.
    pub give_up: CancellationToken,
}

impl Relay<'_> {
    /// Writes what arrives until no more can.
    ///
    /// # Errors
    /// The service refuses everything, or the relay was told to give up.
    pub async fn run(&self, mut arriving: mpsc::Receiver<Entry<Ticket>>) -> Result<(), BridgeError> {
        let mut waiting = None;
        while let Some(batch) = self.gather(&mut arriving, &mut waiting).await {
            let acknowledge = |part: Batch<Ticket>| part.into_tickets().for_each(Ticket::acknowledge);
            self.store
                .write(batch, self.counts, &self.give_up, acknowledge)
                .await?;
        }
        Ok(())
    }

    /// The next batch. A message that did not fit waits for the one after it.
    async fn gather(
        &self,
        arriving: &mut mpsc::Receiver<Entry<Ticket>>,
        waiting: &mut Option<Entry<Ticket>>,
    ) -> Option<Batch<Ticket>> {
        let first = match waiting.take() {
            Some(entry) => entry,
            None => arriving.recv().await?,
        };
        let until = first.ticket.arrived + self.linger;
        let mut batch = Batch::new();
        batch.push(first);
        while !batch.is_full(self.bounds) {
            // Also after the deadline, what has arrived is taken: receiving is tried before the time is looked at.
            match tokio::time::timeout_at(until, arriving.recv()).await {
                Ok(Some(entry)) if batch.has_room_for(&entry, self.bounds) => batch.push(entry),
                Ok(Some(entry)) => {
                    *waiting = Some(entry);
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }
}
