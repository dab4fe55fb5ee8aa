//! Parses bodies with `sonic-rs`, for comparison with the JSON scanner of `tidewatch::ingest`: a `serde` visitor writes
//! the same columns.
//!
//! It makes the same checks, but stops at the first fault instead of collecting all faults with their paths, and
//! expects `bucketId` before `dataPoints`. A complete implementation on `sonic-rs` would do more work.

use std::collections::HashMap;
use std::fmt;

use engine::rows::{NOT_DECIMAL, RowsWriter};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sonic_rs::LazyValue;
use tidewatch::catalog::{Field, FieldType, Schema, SourceStatus};
use tidewatch::ids::ObjectId;
use tidewatch::ingest::{SourceView, timestamp};
use tidewatch::limits::{BATCH_ENTRIES_MAX, METADATA_BYTES_MAX, SCHEMA_FIELDS_MAX};

/// Parses the body of a batch into `rows`.
pub fn parse_batch(
    body: &[u8],
    now_ns: i64,
    lookup: &mut dyn FnMut(ObjectId) -> Option<SourceView>,
    rows: &mut RowsWriter,
) -> Result<(), String> {
    rows.clear();
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let batch = Batch {
        now_ns,
        lookup,
        rows,
        seen: Vec::new(),
        by_id: HashMap::new(),
        last: 0,
    };
    let mut deserializer = sonic_rs::Deserializer::from_str(text);
    deserializer
        .deserialize_map(batch)
        .and_then(|()| deserializer.end())
        .map_err(|error| error.to_string())
}

struct Batch<'s> {
    now_ns: i64,
    lookup: &'s mut dyn FnMut(ObjectId) -> Option<SourceView>,
    rows: &'s mut RowsWriter,
    seen: Vec<Seen>,
    by_id: HashMap<ObjectId, usize>,
    /// Index of the source of the previous entry.
    last: usize,
}

struct Seen {
    text: [u8; 24],
    view: SourceView,
    /// For each position in `values`, the field of the previous entry of the same source.
    order: Vec<u16>,
}

impl<'de> Visitor<'de> for Batch<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a batch")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let (mut bucket_id, mut has_points) = (None, false);
        while let Some(name) = map.next_key()? {
            match name {
                Member::BucketId => bucket_id = Some(map.next_value::<ObjectId>()?),
                Member::DataPoints => {
                    let bucket_id = bucket_id.ok_or_else(|| A::Error::custom("bucketId comes first"))?;
                    map.next_value_seed(Entries(&mut self, bucket_id))?;
                    has_points = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match has_points {
            true => Ok(()),
            false => Err(A::Error::custom("dataPoints is required")),
        }
    }
}

struct Entries<'b, 's>(&'b mut Batch<'s>, ObjectId);

impl<'de> DeserializeSeed<'de> for Entries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut count = 0;
        while entries.next_element_seed(Entry(&mut *self.0, self.1))?.is_some() {
            count += 1;
        }
        match count {
            1..=BATCH_ENTRIES_MAX => Ok(()),
            _ => Err(A::Error::custom("1 to 1000 entries")),
        }
    }
}

struct Entry<'b, 's>(&'b mut Batch<'s>, ObjectId);

impl<'de> DeserializeSeed<'de> for Entry<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Entry(batch, bucket_id) = self;
        let (mut source, mut written_for, mut timestamp_ns) = (None, None, batch.now_ns);
        let mut metadata = None;
        while let Some(name) = map.next_key()? {
            match name {
                Member::DataSourceId => source = Some(map.next_value_seed(SourceOf(&mut *batch, bucket_id))?),
                Member::Timestamp => timestamp_ns = map.next_value_seed(Timestamp(batch.now_ns))?,
                Member::Values => {
                    // Values that precede their source probably belong to the previous entry's source.
                    let index = source.unwrap_or(batch.last);
                    let seen = batch
                        .seen
                        .get_mut(index)
                        .ok_or_else(|| A::Error::custom("dataSourceId comes first"))?;
                    let source = &seen.view.source;
                    batch.rows.begin(source.ordinal);
                    map.next_value_seed(Values {
                        schema: &source.schema,
                        order: &mut seen.order,
                        rows: batch.rows,
                    })?;
                    written_for = Some(index);
                }
                Member::Metadata => {
                    let json: LazyValue<'de> = map.next_value()?;
                    let json = json.as_raw_cow();
                    metadata = match json.as_bytes().first() {
                        Some(b'{') if json.len() <= METADATA_BYTES_MAX => Some(json),
                        Some(b'n') => None,
                        _ => return Err(A::Error::custom("metadata is an object of limited size")),
                    };
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let seen = source
            .filter(|source| written_for == Some(*source))
            .and_then(|source| batch.seen.get(source))
            .ok_or_else(|| A::Error::custom("dataSourceId and values are required"))?;
        if timestamp_ns < seen.view.oldest_ns {
            return Err(A::Error::custom("too old"));
        }
        if let Some(metadata) = metadata {
            batch.rows.metadata(&metadata);
        }
        batch.rows.commit(timestamp_ns);
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Member {
    BucketId,
    DataPoints,
    DataSourceId,
    Timestamp,
    Values,
    Metadata,
    #[serde(other)]
    Unknown,
}

/// Returns the index of an entry's source in `seen`.
struct SourceOf<'b, 's>(&'b mut Batch<'s>, ObjectId);

impl<'de> DeserializeSeed<'de> for SourceOf<'_, '_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for SourceOf<'_, '_> {
    type Value = usize;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        let SourceOf(batch, bucket_id) = self;
        let is = |index: usize| {
            let seen = batch.seen.get(index);
            seen.is_some_and(|seen| seen.text == text.as_bytes())
        };
        let next = if batch.last + 1 < batch.seen.len() {
            batch.last + 1
        } else {
            0
        };
        if let Some(index) = [batch.last, next].into_iter().find(|index| is(*index)) {
            batch.last = index;
            return Ok(index);
        }
        let id: ObjectId = text.parse().map_err(E::custom)?;
        let index = match batch.by_id.get(&id) {
            Some(index) => *index,
            None => {
                let view = (batch.lookup)(id)
                    .filter(|view| view.source.bucket_id == bucket_id)
                    .filter(|view| view.source.status == SourceStatus::Active)
                    .ok_or_else(|| E::custom("no such data source"))?;
                let fields = view.source.schema.fields.len() as u16;
                batch.seen.push(Seen {
                    text: id.to_hex(),
                    view,
                    order: (0..fields).collect(),
                });
                batch.by_id.insert(id, batch.seen.len() - 1);
                batch.seen.len() - 1
            }
        };
        batch.last = index;
        Ok(index)
    }
}

/// A timestamp; `null` becomes the given one.
struct Timestamp(i64);

impl<'de> DeserializeSeed<'de> for Timestamp {
    type Value = i64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<i64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Timestamp {
    type Value = i64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a timestamp")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
        timestamp::parse(text).map_err(E::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<i64, E> {
        Ok(self.0)
    }
}

struct Values<'b> {
    schema: &'b Schema,
    order: &'b mut [u16],
    rows: &'b mut RowsWriter,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut set = [0u64; SCHEMA_FIELDS_MAX / 64];
        let (mut place, mut measured) = (0, false);
        while let Some((ordinal, field)) = map.next_key_seed(FieldOf {
            schema: self.schema,
            order: &mut *self.order,
            place,
        })? {
            let (word, bit) = (usize::from(ordinal) / 64, 1 << (ordinal % 64));
            match set.get_mut(word) {
                Some(word) if *word & bit == 0 => *word |= bit,
                _ => return Err(A::Error::custom("a field occurs twice")),
            }
            measured |= match field.kind {
                FieldType::Number => match map.next_value_seed(RawText)? {
                    Some(raw) => {
                        let (value, decimals) = number(raw);
                        if !value.is_finite() {
                            return Err(A::Error::custom("beyond a double"));
                        }
                        self.rows.number(ordinal, value, decimals);
                        true
                    }
                    None => false,
                },
                FieldType::Boolean => match map.next_value::<Option<bool>>()? {
                    Some(value) => {
                        self.rows.boolean(ordinal, value);
                        true
                    }
                    None => false,
                },
                FieldType::String => match map.next_value::<Option<std::borrow::Cow<'de, str>>>()? {
                    Some(value) => {
                        self.rows.string(ordinal, &value);
                        true
                    }
                    None => false,
                },
            };
            place += 1;
        }
        match measured {
            true => Ok(()),
            false => Err(A::Error::custom("no values")),
        }
    }
}

/// A declared field by its name.
struct FieldOf<'b> {
    schema: &'b Schema,
    order: &'b mut [u16],
    place: usize,
}

impl<'de, 'b> DeserializeSeed<'de> for FieldOf<'b> {
    type Value = (u16, &'b Field);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'b> Visitor<'_> for FieldOf<'b> {
    type Value = (u16, &'b Field);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a declared field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let field = |ordinal: u16| self.schema.fields.get(usize::from(ordinal));
        if let Some(ordinal) = self.order.get(self.place)
            && let Some(field) = field(*ordinal)
            && &*field.name == name
        {
            return Ok((*ordinal, field));
        }
        let ordinal = self
            .schema
            .field(name)
            .ok_or_else(|| E::custom("not a declared field"))?;
        if let Some(expected) = self.order.get_mut(self.place) {
            *expected = ordinal;
        }
        let field = field(ordinal).ok_or_else(|| E::custom("not a declared field"))?;
        Ok((ordinal, field))
    }
}

/// The text of a number; `None` for `null`.
struct RawText;

impl<'de> DeserializeSeed<'de> for RawText {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Does what `LazyValue` does without copying the slice: the fastest access to the text of a value.
        deserializer.deserialize_newtype_struct("$sonic_rs::LazyValue", self)
    }
}

impl<'de> Visitor<'de> for RawText {
    type Value = Option<&'de str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number")
    }

    fn visit_borrowed_str<E: Error>(self, raw: &'de str) -> Result<Self::Value, E> {
        match raw.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => Ok(Some(raw)),
            Some(b'n') => Ok(None),
            _ => Err(E::custom("must be a number")),
        }
    }
}

/// The nearest double and the number of decimals of a well-formed number.
fn number(raw: &str) -> (f64, u8) {
    const POWERS: [f64; 20] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19,
    ];
    const EXACT_MAX: u64 = 1 << 53;
    const DECIMAL_BELOW: u64 = 1_000_000_000_000_000;
    let (digits, negative) = match raw.as_bytes() {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    let (mut mantissa, mut point) = (0u64, digits.len());
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' => point = at + 1,
            _ => return (raw.parse().unwrap_or(f64::INFINITY), NOT_DECIMAL),
        }
    }
    let decimals = digits.len() - point;
    match POWERS.get(decimals) {
        Some(power) if digits.len() <= 19 && mantissa <= EXACT_MAX => {
            let magnitude = mantissa as i64 as f64 / power;
            let stated = mantissa < DECIMAL_BELOW && !(negative && mantissa == 0);
            let value = if negative { -magnitude } else { magnitude };
            (value, if stated { decimals as u8 } else { NOT_DECIMAL })
        }
        _ => (raw.parse().unwrap_or(f64::INFINITY), NOT_DECIMAL),
    }
}
