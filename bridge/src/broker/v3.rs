//! MQTT 3.1.1.

use std::mem;
use std::time::Duration;

use rumqttc::{
    ConnectReturnCode, ConnectionError, Event as Rumqttc, MqttOptions, Outgoing, Packet, QoS,
    SubscribeFilter, SubscribeReasonCode, Transport,
};

use super::{Ack, Ending, Event, KEEP_ALIVE_SECONDS, Message, PACKET_BYTES_MAX, Sender, Unacknowledged};
use crate::config::Broker;

/// What the bridge sends is small.
const SENT_BYTES_MAX: usize = 1 << 20;

/// The options of a persistent session whose messages are acknowledged one by one.
pub fn options(broker: &Broker, transport: Transport) -> MqttOptions {
    let mut options = MqttOptions::new(&broker.client_id, &broker.host, broker.port);
    options
        .set_transport(transport)
        .set_clean_session(false)
        .set_manual_acks(true)
        .set_keep_alive(Duration::from_secs(KEEP_ALIVE_SECONDS))
        .set_max_packet_size(PACKET_BYTES_MAX, SENT_BYTES_MAX);
    if let Some(credentials) = &broker.credentials {
        options.set_credentials(&credentials.user, &credentials.password);
    }
    options
}

/// Filters with QoS 1.
pub fn filters(filters: &[String]) -> Vec<SubscribeFilter> {
    filters
        .iter()
        .map(|filter| SubscribeFilter::new(filter.clone(), QoS::AtLeastOnce))
        .collect()
}

/// What an event of the client means.
pub fn event(event: Rumqttc, sender: &Sender) -> Event {
    match event {
        Rumqttc::Incoming(Packet::ConnAck(answer)) => Event::Connected {
            has_session: answer.session_present,
        },
        Rumqttc::Incoming(Packet::SubAck(answer)) => Event::Subscribed(
            answer
                .return_codes
                .into_iter()
                .map(|code| match code {
                    SubscribeReasonCode::Success(QoS::AtMostOnce) => Err("only QoS 0 is granted".to_owned()),
                    SubscribeReasonCode::Success(_) => Ok(()),
                    SubscribeReasonCode::Failure => Err("refused".to_owned()),
                })
                .collect(),
        ),
        Rumqttc::Incoming(Packet::Publish(mut message)) => Event::Message(Box::new(Message {
            topic: mem::take(&mut message.topic),
            payload: mem::take(&mut message.payload),
            is_retained: message.retain,
            ack: Ack {
                sender: sender.clone(),
                message: Unacknowledged::V3(message),
            },
        })),
        Rumqttc::Outgoing(Outgoing::Disconnect) => Event::Disconnected,
        Rumqttc::Incoming(_) | Rumqttc::Outgoing(_) => Event::Other,
    }
}

/// Whether another connection may succeed.
pub fn ending(error: &ConnectionError) -> Ending {
    use ConnectReturnCode::{BadClientId, BadUserNamePassword, NotAuthorized, RefusedProtocolVersion};
    match error {
        ConnectionError::ConnectionRefused(
            code @ (RefusedProtocolVersion | BadClientId | BadUserNamePassword | NotAuthorized),
        ) => Ending::Refused(format!("{code:?}")),
        error => Ending::Lost(error.to_string()),
    }
}
