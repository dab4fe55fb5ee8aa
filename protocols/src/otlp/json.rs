//! The JSON of OTLP, turned into protobuf while it is scanned: without a tree, and in any order of members.
//!
//! The result is at most five times as long as the JSON, which is a list of short numbers.
//!
//! Source: "JSON Protobuf Encoding" of the OTLP specification. Names are in lowerCamelCase only, unknown ones are skipped,
//! `null` is as left out, numbers may be strings, and 64-bit integers are.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::response::{write_bytes, write_varint};

/// A message by the fields that are read of it.
type Message = &'static [Member];

struct Member {
    name: &'static str,
    number: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Bool,
    /// Encoded as a varint.
    Integer,
    /// `fixed64` or `sfixed64`.
    Fixed,
    Double,
    Message(Message),
    /// `repeated` of another kind.
    List(&'static Kind),
}

const fn member(name: &'static str, number: u32, kind: Kind) -> Member {
    Member { name, number, kind }
}

const REQUEST: Message = &[member(
    "resourceMetrics",
    1,
    Kind::List(&Kind::Message(RESOURCE_METRICS)),
)];
const RESOURCE_METRICS: Message = &[
    member("resource", 1, Kind::Message(RESOURCE)),
    member("scopeMetrics", 2, Kind::List(&Kind::Message(SCOPE_METRICS))),
];
const RESOURCE: Message = &[member("attributes", 1, ATTRIBUTES)];
const SCOPE_METRICS: Message = &[member("metrics", 2, Kind::List(&Kind::Message(METRIC)))];
const METRIC: Message = &[
    member("name", 1, Kind::Text),
    member("description", 2, Kind::Text),
    member("unit", 3, Kind::Text),
    member("gauge", 5, Kind::Message(SUM)),
    member("sum", 7, Kind::Message(SUM)),
    member("histogram", 9, Kind::Message(HISTOGRAM)),
    member("exponentialHistogram", 10, Kind::Message(EXPONENTIAL_HISTOGRAM)),
    member("summary", 11, Kind::Message(SUMMARY)),
];
/// A gauge has no more than data points.
const SUM: Message = &[
    member("dataPoints", 1, Kind::List(&Kind::Message(NUMBER_POINT))),
    member("aggregationTemporality", 2, Kind::Integer),
    member("isMonotonic", 3, Kind::Bool),
];
const HISTOGRAM: Message = &[member(
    "dataPoints",
    1,
    Kind::List(&Kind::Message(HISTOGRAM_POINT)),
)];
const EXPONENTIAL_HISTOGRAM: Message = &[member(
    "dataPoints",
    1,
    Kind::List(&Kind::Message(EXPONENTIAL_POINT)),
)];
const SUMMARY: Message = &[member("dataPoints", 1, Kind::List(&Kind::Message(SUMMARY_POINT)))];
const NUMBER_POINT: Message = &[
    member("timeUnixNano", 3, Kind::Fixed),
    member("asDouble", 4, Kind::Double),
    member("asInt", 6, Kind::Fixed),
    member("attributes", 7, ATTRIBUTES),
    member("flags", 8, Kind::Integer),
];
const HISTOGRAM_POINT: Message = &[
    member("timeUnixNano", 3, Kind::Fixed),
    member("count", 4, Kind::Fixed),
    member("sum", 5, Kind::Double),
    member("bucketCounts", 6, Kind::List(&Kind::Fixed)),
    member("explicitBounds", 7, Kind::List(&Kind::Double)),
    member("attributes", 9, ATTRIBUTES),
    member("flags", 10, Kind::Integer),
    member("min", 11, Kind::Double),
    member("max", 12, Kind::Double),
];
const EXPONENTIAL_POINT: Message = &[
    member("attributes", 1, ATTRIBUTES),
    member("timeUnixNano", 3, Kind::Fixed),
    member("count", 4, Kind::Fixed),
    member("sum", 5, Kind::Double),
    member("flags", 10, Kind::Integer),
    member("min", 12, Kind::Double),
    member("max", 13, Kind::Double),
];
const SUMMARY_POINT: Message = &[
    member("timeUnixNano", 3, Kind::Fixed),
    member("count", 4, Kind::Fixed),
    member("sum", 5, Kind::Double),
    member("quantileValues", 6, Kind::List(&Kind::Message(QUANTILE))),
    member("attributes", 7, ATTRIBUTES),
    member("flags", 8, Kind::Integer),
];
const QUANTILE: Message = &[
    member("quantile", 1, Kind::Double),
    member("value", 2, Kind::Double),
];
const ATTRIBUTES: Kind = Kind::List(&Kind::Message(&KEY_VALUE));
static KEY_VALUE: [Member; 2] = [
    member("key", 1, Kind::Text),
    member("value", 2, Kind::Message(&ANY_VALUE)),
];
static ANY_VALUE: [Member; 7] = [
    member("stringValue", 1, Kind::Text),
    member("boolValue", 2, Kind::Bool),
    member("intValue", 3, Kind::Integer),
    member("doubleValue", 4, Kind::Double),
    member("arrayValue", 5, Kind::Message(&ARRAY)),
    member("kvlistValue", 6, Kind::Message(&MAP)),
    // Base64 in JSON, and in metadata again: it goes through as a text.
    member("bytesValue", 1, Kind::Text),
];
static ARRAY: [Member; 1] = [member("values", 1, Kind::List(&Kind::Message(&ANY_VALUE)))];
static MAP: [Member; 1] = [member("values", 1, Kind::List(&Kind::Message(&KEY_VALUE)))];

/// Appends the message that the JSON is to `out`.
pub(super) fn to_protobuf(json: &[u8], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    Members {
        message: REQUEST,
        out,
    }
    .deserialize(&mut reader)?;
    reader.end()
}

/// Reads an object as the fields of a message.
struct Members<'o> {
    message: Message,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key_seed(Name(self.message))? {
            match member {
                None => map.next_value::<IgnoredAny>().map(drop)?,
                Some(member) => map.next_value_seed(ValueOf {
                    number: member.number,
                    kind: member.kind,
                    out: self.out,
                })?,
            }
        }
        Ok(())
    }
}

/// Finds a member by its name.
struct Name(Message);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static Member>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static Member>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|member| member.name == name))
    }
}

/// Reads the value of a member, and writes it as a field.
struct ValueOf<'o> {
    number: u32,
    kind: Kind,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for ValueOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl ValueOf<'_> {
    fn key(&mut self, wire: u32) {
        write_varint(u64::from(self.number << 3 | wire), self.out);
    }

    fn fixed(&mut self, bits: u64) {
        self.key(1);
        self.out.extend_from_slice(&bits.to_le_bytes());
    }

    /// Writes an integer, negative ones as two's complement.
    fn integer<E: Error>(mut self, integer: u64) -> Result<(), E> {
        match self.kind {
            Kind::Integer => {
                self.key(0);
                write_varint(integer, self.out);
            }
            Kind::Fixed => self.fixed(integer),
            _ => return Err(E::custom("a number where another type belongs")),
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for ValueOf<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.kind {
            Kind::Text => "a string",
            Kind::Bool => "true or false",
            Kind::Integer | Kind::Fixed => "an integer, or a string of one",
            Kind::Double => "a number, or a string of one",
            Kind::Message(_) => "an object",
            Kind::List(_) => "an array",
        })
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        let Kind::Bool = self.kind else {
            return Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self));
        };
        self.key(0);
        self.out.push(u8::from(value));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match self.kind {
            Kind::Double => self.visit_f64(value as f64),
            _ => self.integer(value),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.kind {
            Kind::Double => self.visit_f64(value as f64),
            _ => self.integer(value.cast_unsigned()),
        }
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        match self.kind {
            Kind::Double => {
                self.fixed(value.to_bits());
                Ok(())
            }
            // `1.0` and `1e3` are integers as well.
            Kind::Integer | Kind::Fixed if value.fract() == 0.0 && value.abs() < 9.2e18 => {
                self.integer((value as i64).cast_unsigned())
            }
            _ => Err(E::invalid_value(serde::de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        match self.kind {
            Kind::Text => {
                write_bytes(self.number, value.as_bytes(), self.out);
                return Ok(());
            }
            Kind::Integer | Kind::Fixed => {
                let signed = value.parse().map(i64::cast_unsigned);
                if let Ok(integer) = signed.or_else(|_| value.parse()) {
                    return self.integer(integer);
                }
            }
            Kind::Double => {
                let number = match value {
                    "NaN" => Some(f64::NAN),
                    "Infinity" => Some(f64::INFINITY),
                    "-Infinity" => Some(f64::NEG_INFINITY),
                    _ => value.parse().ok().filter(|number: &f64| number.is_finite()),
                };
                if let Some(number) = number {
                    self.fixed(number.to_bits());
                    return Ok(());
                }
            }
            _ => {}
        }
        Err(E::invalid_value(serde::de::Unexpected::Str(value), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Kind::List(kind) = self.kind else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        while let Some(()) = list.next_element_seed(ValueOf {
            number: self.number,
            kind: *kind,
            out: self.out,
        })? {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<(), A::Error> {
        let Kind::Message(message) = self.kind else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        };
        self.key(2);
        let start = self.out.len();
        // Room for the length, which is known afterwards: a varint may have more bytes than it needs.
        self.out.extend_from_slice(&[0; LENGTH_BYTES]);
        let members = Members {
            message,
            out: self.out,
        };
        members.visit_map(map)?;
        let length = self.out.len() - start - LENGTH_BYTES;
        for (at, byte) in self.out[start..start + LENGTH_BYTES].iter_mut().enumerate() {
            let more = if at + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = (length >> (7 * at)) as u8 & 0x7f | more;
        }
        Ok(())
    }
}

/// Bytes of the length of a message: enough for 32 GiB.
const LENGTH_BYTES: usize = 5;
