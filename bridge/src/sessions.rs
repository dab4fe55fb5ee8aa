//! Keeps a connection to the broker, one after the other, and hands on what arrives within the bounds of memory.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evaluator::Backoff;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::BridgeError;
use crate::batch::Entry;
use crate::broker::{Ack, Ending, Event, Link, Message, Sender};
use crate::config::Broker;
use crate::reader::Reader;

/// All lines that are not yet stored.
const HELD_BYTES_MAX: usize = 32 << 20;
/// What a message takes beside its line.
const MESSAGE_BYTES: usize = 512;
/// How long the last acknowledgements and the disconnection may take.
const DISCONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What a message waits with for its end.
pub struct Ticket {
    pub arrived: Instant,
    ack: Ack,
    /// Its share of the bounds, given back with it.
    _held: [OwnedSemaphorePermit; 2],
}

impl Ticket {
    /// Acknowledges the message to the broker.
    pub fn acknowledge(self) {
        self.ack.send();
    }
}

/// The connections of a bridge.
pub struct Sessions {
    broker: Broker,
    reader: Reader,
    backoff: Backoff,
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Ends connections; set before the last acknowledgements are sent.
    stop: CancellationToken,
    /// Everything that was handed on is done with.
    is_drained: CancellationToken,
}

/// Where arrived messages go, until the bridge stops.
type Outlet = Option<mpsc::Sender<Entry<Ticket>>>;

impl Sessions {
    /// Connections to `broker`, whose messages `reader` reads. After `stop` no message is handed on; after `is_drained`
    /// the connection ends.
    pub fn new(
        broker: Broker,
        reader: Reader,
        backoff: Backoff,
        stop: CancellationToken,
        is_drained: CancellationToken,
    ) -> Self {
        Self {
            messages: Arc::new(Semaphore::new(usize::from(broker.in_flight))),
            bytes: Arc::new(Semaphore::new(HELD_BYTES_MAX)),
            broker,
            reader,
            backoff,
            stop,
            is_drained,
        }
    }

    /// Connects again and again until stopped.
    ///
    /// # Errors
    /// The broker refuses the connection or a subscription for good.
    pub async fn run(&self, outlet: mpsc::Sender<Entry<Ticket>>) -> Result<(), BridgeError> {
        let mut outlet = Some(outlet);
        let mut failures = 0;
        while !self.stop.is_cancelled() {
            let (link, sender) = Link::new(&self.broker)?;
            match self.connection(link, &sender, &mut outlet, &mut failures).await? {
                None => return Ok(()),
                Some(cause) => {
                    failures += 1;
                    let wait = self.backoff.delay(failures, None, fastrand::f64());
                    tracing::warn!(
                        cause,
                        failures,
                        ?wait,
                        "no connection to the broker: trying again"
                    );
                    self.stop.run_until_cancelled(tokio::time::sleep(wait)).await;
                }
            }
        }
        Ok(())
    }

    /// One connection. Returns the cause if it was lost.
    async fn connection(
        &self,
        mut link: Link,
        sender: &Sender,
        outlet: &mut Outlet,
        failures: &mut u32,
    ) -> Result<Option<String>, BridgeError> {
        let mut closing = pin!(self.close(sender));
        let mut is_leaving = false;
        loop {
            let event = {
                let mut next = pin!(link.next(sender));
                loop {
                    tokio::select! {
                        event = &mut next => break event,
                        () = self.stop.cancelled(), if outlet.is_some() => *outlet = None,
                        // The connection does not end in time.
                        () = &mut closing => return Ok(None),
                    }
                }
            };
            match event {
                Ok(Event::Connected { has_session }) => {
                    *failures = 0;
                    tracing::info!(has_session, "connected to the broker");
                    if !sender.subscribe(&self.reader.filters()) {
                        return Ok(Some("the subscription was not sent".to_owned()));
                    }
                }
                Ok(Event::Subscribed(answers)) => self.check_subscriptions(answers)?,
                Ok(Event::Message(message)) => self.hand_on(*message, outlet).await,
                // The broker ends the connection when it has read all of it. If the bridge did, it might not get so far.
                Ok(Event::Disconnected) => is_leaving = true,
                Ok(Event::Other) => {}
                Err(_) if is_leaving => return Ok(None),
                Err(Ending::Refused(cause)) => return Err(BridgeError::Broker(cause)),
                Err(Ending::Lost(cause)) => return Ok(Some(cause)),
            }
        }
    }

    /// Disconnects when everything is done with, and returns if that takes too long.
    async fn close(&self, sender: &Sender) {
        self.is_drained.cancelled().await;
        sender.disconnect();
        tokio::time::sleep(DISCONNECT_WITHIN).await;
    }

    fn check_subscriptions(&self, answers: Vec<Result<(), String>>) -> Result<(), BridgeError> {
        let refused = self.reader.filters().into_iter().zip(answers);
        for (filter, answer) in refused {
            if let Err(reason) = answer {
                return Err(BridgeError::Subscription { filter, reason });
            }
        }
        self.reader.subscribed();
        Ok(())
    }

    /// Waits for room; meanwhile nothing is read from the connection. A message that arrives after the stop stays
    /// unacknowledged: the broker keeps it.
    async fn hand_on(&self, message: Message, outlet: &mut Outlet) {
        let Some(sender) = outlet else { return };
        let line = self
            .reader
            .read(&message.topic, &message.payload, message.is_retained, now_ns());
        let bytes = line.as_ref().map_or(0, String::len) + MESSAGE_BYTES;
        let room = async {
            // Neither semaphore is ever closed.
            let slot = Arc::clone(&self.messages).acquire_owned().await.ok()?;
            let share = bytes.min(HELD_BYTES_MAX) as u32;
            let share = Arc::clone(&self.bytes).acquire_many_owned(share).await.ok()?;
            Some([slot, share])
        };
        let Some(Some(held)) = self.stop.run_until_cancelled(room).await else {
            return;
        };
        let ticket = Ticket {
            arrived: Instant::now(),
            ack: message.ack,
            _held: held,
        };
        // The channel has a place for each message that has a slot. It is closed only when the bridge ends.
        let _ = sender.try_send(Entry { line, ticket });
    }
}

/// Nanoseconds since 1970-01-01T00:00:00Z.
fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
