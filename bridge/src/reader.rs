//! From a message to its line: finds the pattern that takes the topic, reads the payload, gives it a time. Pure, except
//! that what cannot be read is logged and counted.

use std::cell::Cell;
use std::rc::Rc;

use crate::counts::Counts;
use crate::line::{self, LineError};
use crate::payload::{self, PayloadError};
use crate::topic::Pattern;

/// Reads the messages of a bridge.
pub struct Reader {
    patterns: Vec<Pattern>,
    counts: Rc<Counts>,
    last_arrival_ns: Cell<i64>,
}

/// Why a message has no line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A subscription of an earlier configuration is still in the broker's session.
    #[error("no [[topics]] takes it; a new client_id starts without the subscriptions of before")]
    NoPattern,
    /// The broker kept it for new subscriptions, so it is not known when it was measured.
    #[error("it is a retained message without a timestamp")]
    Retained,
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Line(#[from] LineError),
}

impl Reader {
    /// Reads by these patterns; the first that takes a topic counts.
    pub fn new(patterns: Vec<Pattern>, counts: Rc<Counts>) -> Self {
        Self {
            patterns,
            counts,
            last_arrival_ns: Cell::new(i64::MIN),
        }
    }

    /// The filters to subscribe to.
    pub fn filters(&self) -> Vec<String> {
        self.patterns.iter().map(Pattern::filter).collect()
    }

    /// The broker has confirmed the subscriptions.
    pub fn subscribed(&self) {
        self.counts.connected();
    }

    /// The line of a message, or none if it cannot be read. `now_ns` is the time of its arrival.
    pub fn read(&self, topic: &str, payload: &[u8], is_retained: bool, now_ns: i64) -> Option<String> {
        self.counts.received();
        // Two messages without a timestamp must not have the same one: the second would be taken for a repetition.
        let arrival_ns = now_ns.max(self.last_arrival_ns.get().saturating_add(1));
        self.last_arrival_ns.set(arrival_ns);
        match line(&self.patterns, topic, payload, is_retained, arrival_ns) {
            Ok(line) => Some(line),
            Err(Unreadable::Retained) => {
                self.counts.retained();
                tracing::info!(topic, "a retained message without a timestamp is dropped");
                None
            }
            Err(reason) => {
                self.counts.unreadable();
                tracing::warn!(topic, %reason, "a message cannot be read and is dropped");
                None
            }
        }
    }
}

/// The line of a message.
///
/// # Errors
/// See [`Unreadable`].
pub fn line(
    patterns: &[Pattern],
    topic: &str,
    payload: &[u8],
    is_retained: bool,
    arrival_ns: i64,
) -> Result<String, Unreadable> {
    let origin = patterns.iter().find_map(|pattern| pattern.matches(topic));
    let origin = origin.ok_or(Unreadable::NoPattern)?;
    let reading = payload::read(payload)?;
    let timestamp_ns = match reading.timestamp_ns {
        Some(timestamp_ns) => timestamp_ns,
        None if is_retained => return Err(Unreadable::Retained),
        None => arrival_ns,
    };
    Ok(line::write(&origin, &reading, timestamp_ns)?)
}
