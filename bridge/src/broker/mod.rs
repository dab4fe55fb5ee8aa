//! The connection to the broker: one interface over the clients of both versions of MQTT.
//!
//! A [`Link`] is one connection. It never reconnects: an acknowledgement names its message by a number that has a
//! meaning in one connection only, so those of a lost connection must not reach the next one.

mod tls;
mod v3;
mod v5;

use rumqttc::{Transport, v5 as client5};

use crate::BridgeError;
use crate::config::{Broker, Version};

/// The largest packet that MQTT has (MQTT 5, section 2.1.4). With 3.1.1 a client cannot refuse a message by its size: a
/// smaller bound would end the connection, and the broker would send the same message again.
const PACKET_BYTES_MAX: usize = 268_435_460;
/// Keeps a connection open, and tells a lost one.
const KEEP_ALIVE_SECONDS: u64 = 30;
const CONNECT_SECONDS_MAX: u64 = 10;
/// The most requests that can wait to be sent: an acknowledgement for each packet identifier, a subscription and a
/// disconnection. So none is ever dropped for want of room. Memory is taken as they come.
const REQUESTS_MAX: usize = u16::MAX as usize + 2;

/// A connection to the broker, made with the first [`Link::next`].
pub struct Link {
    events: Events,
}

enum Events {
    V3(Box<rumqttc::EventLoop>),
    V5(Box<client5::EventLoop>),
}

/// Sends to the broker without waiting.
#[derive(Clone)]
pub enum Sender {
    V3(rumqttc::AsyncClient),
    V5(client5::AsyncClient),
}

/// Acknowledges one message.
pub struct Ack {
    sender: Sender,
    message: Unacknowledged,
}

/// A message without topic and payload.
enum Unacknowledged {
    V3(rumqttc::Publish),
    V5(client5::mqttbytes::v5::Publish),
}

/// What happens on a connection.
pub enum Event {
    /// The broker has accepted the connection.
    Connected {
        /// Whether it has kept the session of an earlier one.
        has_session: bool,
    },
    /// The broker's answers to the filters, in their order: the reason of a refusal.
    Subscribed(Vec<Result<(), String>>),
    /// A message arrived.
    Message(Box<Message>),
    /// Everything sent before, the disconnection included, is on its way.
    Disconnected,
    /// Nothing that matters here.
    Other,
}

/// A message as it arrived.
pub struct Message {
    pub topic: String,
    pub payload: bytes::Bytes,
    /// The broker kept it for new subscriptions.
    pub is_retained: bool,
    pub ack: Ack,
}

/// Why a connection ended.
pub enum Ending {
    /// Another may succeed.
    Lost(String),
    /// Any other would end so.
    Refused(String),
}

impl Link {
    /// A connection to this broker.
    ///
    /// # Errors
    /// The certificates to trust cannot be read.
    pub fn new(broker: &Broker) -> Result<(Self, Sender), BridgeError> {
        let transport = match &broker.encryption {
            None => Transport::tcp(),
            Some(encryption) => Transport::tls_with_config(tls::client(encryption)?.into()),
        };
        let (events, sender) = match broker.version {
            Version::V3 => {
                let (client, mut events) =
                    rumqttc::AsyncClient::new(v3::options(broker, transport), REQUESTS_MAX);
                events.network_options.set_connection_timeout(CONNECT_SECONDS_MAX);
                (Events::V3(Box::new(events)), Sender::V3(client))
            }
            Version::V5 => {
                let (client, events) =
                    client5::AsyncClient::new(v5::options(broker, transport), REQUESTS_MAX);
                (Events::V5(Box::new(events)), Sender::V5(client))
            }
        };
        Ok((Self { events }, sender))
    }

    /// Waits for the next event, sending meanwhile. Not to be dropped before it is ready: an acknowledgement may be lost.
    ///
    /// # Errors
    /// The connection has ended, or was not made.
    pub async fn next(&mut self, sender: &Sender) -> Result<Event, Ending> {
        match (&mut self.events, sender) {
            (Events::V3(events), sender) => events.poll().await.map_or_else(
                |error| Err(v3::ending(&error)),
                |event| Ok(v3::event(event, sender)),
            ),
            (Events::V5(events), sender) => events.poll().await.map_or_else(
                |error| Err(v5::ending(&error)),
                |event| Ok(v5::event(event, sender)),
            ),
        }
    }
}

impl Sender {
    /// Subscribes to filters with QoS 1. False if the connection is gone.
    pub fn subscribe(&self, filters: &[String]) -> bool {
        match self {
            Self::V3(client) => client.try_subscribe_many(v3::filters(filters)).is_ok(),
            Self::V5(client) => client.try_subscribe_many(v5::filters(filters)).is_ok(),
        }
    }

    /// Ends the connection; the broker keeps the session.
    pub fn disconnect(&self) {
        // Fails only if the connection is gone.
        let _ = match self {
            Self::V3(client) => client.try_disconnect().is_ok(),
            Self::V5(client) => client.try_disconnect().is_ok(),
        };
    }
}

impl Ack {
    /// Acknowledges the message, unless its connection is gone; then the broker sends it again.
    pub fn send(self) {
        let sent = match (&self.sender, &self.message) {
            (Sender::V3(client), Unacknowledged::V3(message)) => client.try_ack(message).is_ok(),
            (Sender::V5(client), Unacknowledged::V5(message)) => client.try_ack(message).is_ok(),
            (Sender::V3(_), Unacknowledged::V5(_)) | (Sender::V5(_), Unacknowledged::V3(_)) => false,
        };
        if !sent {
            tracing::debug!("a message is not acknowledged: its connection is gone");
        }
    }
}
