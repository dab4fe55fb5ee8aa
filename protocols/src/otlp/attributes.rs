//! Attributes of data points and resources as metadata.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::Refusal;
use crate::json::{write_integer, write_number, write_string};
use crate::metadata::{METADATA_BYTES_MAX, Metadata, write_member};
use crate::names;
use crate::refusal::Fault;
use crate::sink::{KeyKind, SeriesKey};
use crate::wire::{self, Fields, Malformed, Wire};

/// Arrays and maps of an attribute in each other.
pub const NESTING_MAX: usize = 32;

/// The key of an attribute, and the message of its value.
type Attribute<'a> = (&'a [u8], &'a [u8]);

/// The attributes of data points, one after the other.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    resource: Resource<'a>,
    /// Of the current data point.
    point: Vec<Attribute<'a>>,
    /// Those that the metadata was built of.
    built: Vec<Attribute<'a>>,
    /// Whether the metadata is that of `built` and the resource.
    is_built: bool,
    /// Those of the sink's current series.
    current: Vec<Attribute<'a>>,
    /// Whether that series is of the source that is the metric, and of the resource.
    is_current: bool,
    keys: Vec<&'a [u8]>,
    /// The key of a series: name and resource, then attributes.
    key: Vec<u8>,
    /// Where the attributes begin in it.
    key_begin: usize,
}

impl<'a> Attributes<'a> {
    /// Begins the data points of another resource.
    pub(super) fn begin_resource(&mut self, resource: Resource<'a>) {
        self.resource = resource;
        self.is_built = false;
    }

    /// Begins the data points of a metric.
    pub(super) fn begin_metric(&mut self, name: &str) {
        self.is_current = false;
        self.key.clear();
        put_part(name.as_bytes(), &mut self.key);
        put_part(&self.resource.json, &mut self.key);
        self.key_begin = self.key.len();
    }

    /// Begins a data point.
    pub(super) fn begin(&mut self) {
        self.point.clear();
    }

    /// The key of the data point's series.
    pub(super) fn key(&mut self) -> SeriesKey<'_> {
        self.key.truncate(self.key_begin);
        for (name, value) in &self.point {
            put_part(name, &mut self.key);
            put_part(value, &mut self.key);
        }
        SeriesKey::new(KeyKind::DataPoint, &self.key)
    }

    /// Whether the data point belongs to the sink's current series.
    pub(super) fn are_current(&self) -> bool {
        self.is_current && self.point == self.current
    }

    /// The sink's current series is that of the data point.
    pub(super) fn set_current(&mut self) {
        self.current.clone_from(&self.point);
        self.is_current = true;
    }

    /// The sink's current series is another.
    pub(super) fn unset_current(&mut self) {
        self.is_current = false;
    }

    /// Adds a field `attributes` of the data point.
    pub(super) fn add(&mut self, value: Wire<'a>) -> Result<(), Malformed> {
        self.point.push(wire::pair(value)?);
        Ok(())
    }

    /// Refuses an attribute whose name a label of the data point's buckets or quantiles has.
    pub(super) fn reserve(&self, name: &'static str) -> Result<(), Refusal<'a>> {
        match self.point.iter().any(|(key, _)| *key == name.as_bytes()) {
            true => Err(Refusal::ReservedAttribute(name)),
            false => Ok(()),
        }
    }

    /// Builds the metadata of the data point, unless it is that of the one before.
    pub(super) fn build(&mut self, metadata: &mut Metadata) -> Result<(), Fault<'a>> {
        if self.is_built && self.point == self.built {
            return Ok(());
        }
        self.is_built = false;
        if let Some(refusal) = self.resource.refusal {
            return Err(refusal.into());
        }
        metadata.check_total()?;
        self.keys.clear();
        self.keys.extend(self.point.iter().map(|(key, _)| *key));
        if self.keys.iter().any(|key| key.is_empty()) {
            return Err(Refusal::EmptyName.into());
        }
        if let Some(key) = names::twice(&mut self.keys) {
            return Err(Refusal::NameTwice(key).into());
        }
        match self.keys.iter().any(|key| is_kept(key)) {
            false => metadata.begin_with(&self.resource.json),
            true => self.resource.write_without(&self.keys, metadata),
        }
        for (key, value) in &self.point {
            metadata.json(key, |json| write_value(value, 0, json))?;
        }
        metadata.close()?;
        self.built.clone_from(&self.point);
        self.is_built = true;
        Ok(())
    }
}

/// Appends a part of a key behind its length, so that different parts make different keys.
fn put_part(part: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(&part.len().to_le_bytes());
    key.extend_from_slice(part);
}

/// The attributes of a resource that become metadata.
#[derive(Default)]
pub(super) struct Resource<'a> {
    /// As members of the metadata, each followed by a comma.
    json: Vec<u8>,
    /// Their keys, and where each ends in `json`.
    keys: Vec<(&'a [u8], usize)>,
    /// Why all its data points are refused.
    refusal: Option<Refusal<'a>>,
}

/// Whether an attribute of a resource says where its data points come from. Others are dropped.
fn is_kept(key: &[u8]) -> bool {
    match key.first() {
        Some(b's') => key.starts_with(b"service."),
        Some(b'h') => key == b"host.name",
        Some(b'k') => key.starts_with(b"k8s."),
        _ => false,
    }
}

impl<'a> Resource<'a> {
    /// Adds the attributes of a message `Resource`.
    pub(super) fn add(&mut self, resource: Fields<'a>) -> Result<(), Malformed> {
        resource.each(|number, value| {
            if number != 1 || self.refusal.is_some() {
                return Ok(());
            }
            let (key, value) = wire::pair(value)?;
            if is_kept(key) {
                write_member(key, |json| write_value(value, 0, json), &mut self.json)?;
                self.keys.push((key, self.json.len()));
                if self.json.len() > METADATA_BYTES_MAX {
                    self.refusal = Some(Refusal::MetadataTooLong);
                }
            }
            Ok(())
        })
    }

    /// Checks the attributes, all of which were added.
    pub(super) fn finish(mut self) -> Self {
        let mut keys: Vec<_> = self.keys.iter().map(|(key, _)| *key).collect();
        if let Some(key) = names::twice(&mut keys) {
            self.refusal = Some(Refusal::NameTwice(key));
        }
        self
    }

    /// Begins the metadata of a data point with the attributes that it does not have itself.
    fn write_without(&self, keys: &[&[u8]], metadata: &mut Metadata) {
        metadata.begin();
        let mut start = 0;
        for (key, end) in &self.keys {
            if !names::contains(keys, key) {
                metadata.members(&self.json[start..*end]);
            }
            start = *end;
        }
    }
}

/// Appends a message `AnyValue` as JSON. A value that is not set is `null`, and bytes are base64, as in the JSON of
/// protobuf.
fn write_value(value: &[u8], depth: usize, json: &mut Vec<u8>) -> Result<(), Malformed> {
    // Nearly every value is a string shorter than 128 bytes.
    if let [0x0a, length @ 0..0x80, text @ ..] = value
        && text.len() == usize::from(*length)
    {
        write_string(text, json);
        return Ok(());
    }
    let start = json.len();
    json.extend_from_slice(b"null");
    Fields::of(value).each(|number, value| {
        if !(1..=7).contains(&number) {
            return Ok(());
        }
        json.truncate(start);
        match number {
            1 => write_string(value.bytes()?, json),
            2 => json.extend_from_slice(if value.varint()? == 0 { b"false" } else { b"true" }),
            3 => write_integer(value.varint()? as i64, json),
            4 => write_number(value.double()?, json),
            5 => write_list(value, [b'[', b']'], depth, json, |value, json| {
                write_value(value.bytes()?, depth + 1, json)
            })?,
            6 => write_list(value, [b'{', b'}'], depth, json, |value, json| {
                let (key, value) = wire::pair(value)?;
                write_string(key, json);
                json.push(b':');
                write_value(value, depth + 1, json)
            })?,
            _ => write_string(BASE64_STANDARD.encode(value.bytes()?).as_bytes(), json),
        }
        Ok(())
    })
}

/// Appends the elements of an array or a map, which have the number 1 in both messages.
fn write_list<'a>(
    value: Wire<'a>,
    [open, close]: [u8; 2],
    depth: usize,
    json: &mut Vec<u8>,
    write: impl Fn(Wire<'a>, &mut Vec<u8>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    if depth == NESTING_MAX {
        return Err(Malformed::Nesting);
    }
    json.push(open);
    let start = json.len();
    value.message()?.each(|number, element| {
        if number == 1 {
            if json.len() > start {
                json.push(b',');
            }
            write(element, json)?;
        }
        Ok(())
    })?;
    json.push(close);
    Ok(())
}
