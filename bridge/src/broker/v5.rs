//! MQTT 5.

use std::mem;
use std::time::Duration;

use rumqttc::Outgoing;
use rumqttc::Transport;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectProperties, ConnectReturnCode, Filter, Packet, RetainForwardRule, SubscribeReasonCode,
};
use rumqttc::v5::{ConnectionError, Event as Rumqttc, MqttOptions};

use super::{Ack, CONNECT_SECONDS_MAX, Ending, Event, KEEP_ALIVE_SECONDS, Message, Sender, Unacknowledged};
use crate::config::Broker;
use crate::payload::PAYLOAD_BYTES_MAX;

/// The session ends only when somebody removes it (MQTT 5, section 3.1.2.11.2).
const SESSION_NEVER_EXPIRES: u32 = u32::MAX;
/// Room for topic and properties beside a payload. The broker drops what is larger: the bridge could not read it.
const PACKET_BYTES_MAX: u32 = PAYLOAD_BYTES_MAX as u32 + 256 * 1024;
/// The bridge publishes nothing; the client has a slot for each message that it could publish.
const PUBLISHED_MAX: u16 = 1;

/// The options of a persistent session whose messages are acknowledged one by one.
pub fn options(broker: &Broker, transport: Transport) -> MqttOptions {
    let mut properties = ConnectProperties::new();
    properties.session_expiry_interval = Some(SESSION_NEVER_EXPIRES);
    properties.receive_maximum = Some(broker.in_flight);
    properties.max_packet_size = Some(PACKET_BYTES_MAX);
    let mut options = MqttOptions::new(&broker.client_id, &broker.host, broker.port);
    options
        .set_transport(transport)
        .set_clean_start(false)
        .set_manual_acks(true)
        .set_keep_alive(Duration::from_secs(KEEP_ALIVE_SECONDS))
        .set_connection_timeout(CONNECT_SECONDS_MAX)
        .set_outgoing_inflight_upper_limit(PUBLISHED_MAX)
        .set_connect_properties(properties);
    if let Some(credentials) = &broker.credentials {
        options.set_credentials(&credentials.user, &credentials.password);
    }
    options
}

/// Filters with QoS 1. Retained messages come only with a new subscription, not with each connection.
pub fn filters(filters: &[String]) -> Vec<Filter> {
    filters
        .iter()
        .map(|filter| {
            let mut filter = Filter::new(filter.clone(), QoS::AtLeastOnce);
            filter.retain_forward_rule = RetainForwardRule::OnNewSubscribe;
            filter
        })
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
                    reason => Err(format!("{reason:?}")),
                })
                .collect(),
        ),
        Rumqttc::Incoming(Packet::Publish(mut message)) => Event::Message(Box::new(Message {
            topic: String::from_utf8_lossy(&mem::take(&mut message.topic)).into_owned(),
            payload: mem::take(&mut message.payload),
            is_retained: message.retain,
            ack: Ack {
                sender: sender.clone(),
                message: Unacknowledged::V5(message),
            },
        })),
        Rumqttc::Outgoing(Outgoing::Disconnect) => Event::Disconnected,
        Rumqttc::Incoming(_) | Rumqttc::Outgoing(_) => Event::Other,
    }
}

/// Whether another connection may succeed.
pub fn ending(error: &ConnectionError) -> Ending {
    use ConnectReturnCode::{
        BadAuthenticationMethod, BadClientId, BadUserNamePassword, Banned, ClientIdentifierNotValid,
        NotAuthorized, RefusedProtocolVersion, UnsupportedProtocolVersion,
    };
    match error {
        ConnectionError::ConnectionRefused(
            code @ (RefusedProtocolVersion
            | UnsupportedProtocolVersion
            | BadClientId
            | ClientIdentifierNotValid
            | BadUserNamePassword
            | NotAuthorized
            | Banned
            | BadAuthenticationMethod),
        ) => Ending::Refused(format!("{code:?}")),
        error => Ending::Lost(error.to_string()),
    }
}
