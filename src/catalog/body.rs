//! Bodies of deliveries: either bytes of their own, or those of an event that goes to several webhooks and is stored
//! once.

use std::fmt;
use std::sync::Arc;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::ObjectId;

/// Length of an id in a body, in characters.
const ID_CHARS: usize = 24;

/// Shared immutable bytes; encoded as `bin` on disk.
#[derive(Clone, Debug, Eq)]
pub struct BodyBytes(pub Arc<[u8]>);

/// Bytes at the same address are equal without being compared.
impl PartialEq for BodyBytes {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// The body of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Bytes of its own; every attempt sends the same.
    Whole(BodyBytes),
    /// The body of an event that goes to several webhooks.
    Shared(Arc<EventBody>),
    /// A reference to such an event, as stored in the ledger, where the bytes exist once for all deliveries.
    Named(EventName),
}

/// The body of an event for all webhooks that subscribe to it. Their bodies differ only in the `webhookId`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBody {
    pub id: ObjectId,
    /// The organization of the event.
    pub organization_id: ObjectId,
    /// UTC nanoseconds; the same as in its deliveries.
    pub created_at_ns: i64,
    /// The body, with the event's own id in place of the `webhookId`.
    text: BodyBytes,
    /// Offset of that id in the text.
    webhook_id_at: u32,
}

/// Locates the body of an event in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName {
    /// The organization of the event.
    pub organization_id: ObjectId,
    pub event_id: ObjectId,
}

impl Body {
    /// A body with bytes of its own.
    pub fn whole(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Whole(BodyBytes(bytes.into()))
    }

    /// The body for a receiver that knows the delivery by this id; `None` if the bytes are in the ledger.
    pub fn sent_as(&self, webhook_id: ObjectId) -> Option<Arc<[u8]>> {
        match self {
            Self::Whole(bytes) => Some(Arc::clone(&bytes.0)),
            Self::Shared(event) => Some(event.sent_as(webhook_id)),
            Self::Named(_) => None,
        }
    }

    /// Bytes that are not shared with other deliveries.
    pub fn own_bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.0.len(),
            Self::Shared(_) | Self::Named(_) => 0,
        }
    }
}

impl EventBody {
    /// Creates the body of an event from the text for a receiver that knows the delivery by the event's id.
    pub fn new(
        id: ObjectId,
        organization_id: ObjectId,
        created_at_ns: i64,
        text: impl Into<Arc<[u8]>>,
    ) -> Self {
        let text = text.into();
        let place = id.to_string();
        let found = text
            .windows(ID_CHARS)
            .position(|window| window == place.as_bytes());
        let webhook_id_at = found.and_then(|at| u32::try_from(at).ok());
        Self {
            id,
            organization_id,
            created_at_ns,
            text: BodyBytes(text),
            // The id does not occur: an offset after the end disables the replacement.
            webhook_id_at: webhook_id_at.unwrap_or(u32::MAX),
        }
    }

    /// Where the body is found in the ledger.
    pub fn name(&self) -> EventName {
        EventName {
            organization_id: self.organization_id,
            event_id: self.id,
        }
    }

    /// Length of the text in bytes.
    pub fn bytes(&self) -> usize {
        self.text.0.len()
    }

    /// The body for a receiver that knows the delivery by this id.
    pub fn sent_as(&self, webhook_id: ObjectId) -> Arc<[u8]> {
        let mut sent = self.text.0.to_vec();
        let at = self.webhook_id_at as usize;
        if let Some(place) = at.checked_add(ID_CHARS).and_then(|end| sent.get_mut(at..end)) {
            place.copy_from_slice(webhook_id.to_string().as_bytes());
        }
        sent.into()
    }

    /// Decodes a record of the ledger.
    ///
    /// # Errors
    /// The bytes are not the body of an event, or of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

impl Serialize for BodyBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for BodyBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Body::deserialize(deserializer)? {
            Body::Whole(bytes) => Ok(bytes),
            Body::Shared(_) | Body::Named(_) => {
                Err(D::Error::custom("expected bytes, not the name of an event"))
            }
        }
    }
}

/// Encoded as `bin`, or, if shared, as an array of the organization and the event.
impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self {
            Self::Whole(bytes) => return bytes.serialize(serializer),
            Self::Shared(event) => event.name(),
            Self::Named(name) => *name,
        };
        (name.organization_id, name.event_id).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BodyVisitor;
        impl<'de> Visitor<'de> for BodyVisitor {
            type Value = Body;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes, or the name of an event")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Body, E> {
                Ok(Body::whole(bytes))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Body, A::Error> {
                let (organization_id, event_id) = Deserialize::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(Body::Named(EventName {
                    organization_id,
                    event_id,
                }))
            }
        }
        deserializer.deserialize_any(BodyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    #[test]
    fn each_receiver_gets_the_body_with_its_own_id() {
        let text = format!("{{\"webhookId\":\"{}\",\"data\":\"{}\"}}", id(7), id(7));
        let event = EventBody::new(id(7), id(1), 5, text.clone().into_bytes());
        for receiver in [id(8), id(9)] {
            let expected = text.replacen(&id(7).to_string(), &receiver.to_string(), 1);
            assert_eq!(&*event.sent_as(receiver), expected.as_bytes());
        }
        let without = EventBody::new(id(7), id(1), 5, b"{}".as_slice());
        assert_eq!(&*without.sent_as(id(8)), b"{}");
    }

    #[test]
    fn bodies_are_stored_as_bytes_or_by_event_name() {
        let read =
            |body: &Body| -> Body { rmp_serde::from_slice(&rmp_serde::to_vec_named(body).unwrap()).unwrap() };
        let whole = Body::whole(b"{}".as_slice());
        assert_eq!(read(&whole), whole);
        let bytes = rmp_serde::to_vec_named(&BodyBytes(b"{}".as_slice().into())).unwrap();
        assert_eq!(
            rmp_serde::from_slice::<Body>(&bytes).unwrap(),
            whole,
            "as it always was"
        );
        let event = EventBody::new(id(7), id(1), 5, b"{}".as_slice());
        let shared = Body::Shared(Arc::new(event.clone()));
        assert_eq!(read(&shared), Body::Named(event.name()));
        assert_eq!(
            EventBody::decode(&rmp_serde::to_vec_named(&event).unwrap()).unwrap(),
            event
        );
    }
}
