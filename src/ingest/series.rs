//! The series of a request's points: the labels in their metadata, and which series these are.
//!
//! Rows of a series are written to a table of its own, whose number is [`SERIES_ORDINALS_FROM`] and the position of the
//! series among those of the request. Series that do not exist yet get their ordinals from the bucket's actor.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use engine::SERIES_ORDINALS_FROM;
use roaring::RoaringBitmap;

use super::digests::KnownDigests;
use super::json::{Kind, Malformed, Scanner, write_number};
use super::keys::{Indexed, KnownKeys, Place};
use crate::catalog::{Dimensions, Source};
use crate::error::{Detail, ServiceError};
use crate::limits::DIMENSION_VALUE_BYTES_MAX;
use crate::series::{Digest, DimensionValues, Labels, LabelsWriter, digest_of};

/// Finds the series of a bucket.
pub trait FindSeries: Send + Sync {
    /// The ordinal of a source's series with this digest of its labels; `None` if there is none yet.
    ///
    /// # Errors
    /// The index cannot be read.
    fn find(&self, source: u32, digest: &Digest) -> Result<Option<u32>, ServiceError>;

    /// Version of the index, which no other index has had: while it stays, series that were found are there with these
    /// ordinals. `None` if nothing is known of it.
    fn version(&self) -> Option<u64>;

    /// The dimension of a source with most values.
    ///
    /// # Errors
    /// The index cannot be read.
    fn fullest(&self, source: u32) -> Result<Option<DimensionValues>, ServiceError>;
}

/// A series that rows of a request belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSeries {
    /// The source's ordinal.
    pub source: u32,
    /// The digest of its labels.
    pub digest: Digest,
    /// `None` if it does not exist yet.
    pub ordinal: Option<u32>,
    /// Its encoded labels; empty if it exists.
    pub labels: Vec<u8>,
}

/// How many series a request may add.
#[derive(Clone, Debug)]
pub struct SeriesRoom {
    pub series: u64,
    /// Number of series that the bucket may have.
    pub series_max: u64,
    /// The ordinals of series that exist and have no points, so that they need a place as new ones do.
    pub without_points: Arc<RoaringBitmap>,
}

/// The series of a request.
#[derive(Debug, Default)]
pub struct SeriesOfRequest {
    series: Vec<RequestSeries>,
    by_digest: HashMap<Digest, u32, foldhash::fast::RandomState>,
    /// Number of series that need a place.
    new: u64,
    room: Option<SeriesRoom>,
    /// The faults of points that would make one more, by source.
    faults: HashMap<u32, String>,
    failed: Option<ServiceError>,
    known: KnownDigests,
    /// What the keys of agents mean.
    pub keys: KnownKeys,
    writer: LabelsWriter,
    encoded: Vec<u8>,
}

impl SeriesOfRequest {
    /// Forgets the series of an earlier request, but not what metadata and keys mean.
    pub fn clear(&mut self, room: Option<SeriesRoom>) {
        self.series.clear();
        self.by_digest.clear();
        self.faults.clear();
        (self.new, self.room, self.failed) = (0, room, None);
    }

    /// Forgets the series found so far, to parse the same body again.
    pub(super) fn restart(&mut self) {
        let room = self.room.take();
        self.clear(room);
    }

    /// The series of the rows.
    ///
    /// # Errors
    /// A series could not be looked up.
    pub fn take(&mut self) -> Result<Vec<RequestSeries>, ServiceError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.series)),
        }
    }

    /// The number of the table for the rows of a source's point with this metadata.
    ///
    /// # Errors
    /// What is wrong with the point.
    pub fn table(
        &mut self,
        source: &Source,
        find: &dyn FindSeries,
        dimensions: &Dimensions,
        metadata: Option<&str>,
    ) -> Result<u32, Detail> {
        let digest = self.digest(source, dimensions, metadata);
        if let Some(place) = self.by_digest.get(&digest) {
            return Ok(SERIES_ORDINALS_FROM + place);
        }
        let ordinal = self.find(source.ordinal, &digest, find);
        self.add(source, find, dimensions, metadata, digest, ordinal)
    }

    /// The same if `source` and `metadata` are those of the key that [`keys`](Self::keys) read last, or if it read none.
    ///
    /// # Errors
    /// What is wrong with the point.
    pub fn table_of_key(
        &mut self,
        source: &Source,
        find: &dyn FindSeries,
        dimensions: &Dimensions,
        metadata: Option<&str>,
    ) -> Result<u32, Detail> {
        // Read before the series is looked up: a change in between must not go unnoticed.
        let version = find.version().filter(|_| *dimensions == Dimensions::All);
        let place = version.map(|version| Place {
            version,
            source: source.ordinal,
        });
        let known = place.and_then(|place| self.keys.indexed(place));
        let digest = match known {
            Some(known) => known.digest,
            None => self.digest(source, dimensions, metadata),
        };
        if let Some(table) = self.by_digest.get(&digest) {
            return Ok(SERIES_ORDINALS_FROM + table);
        }
        let ordinal = match known {
            Some(known) => Some(known.ordinal),
            None => {
                let found = self.find(source.ordinal, &digest, find);
                if let (Some(place), Some(ordinal)) = (place, found) {
                    self.keys.note_indexed(place, Indexed { digest, ordinal });
                }
                found
            }
        };
        self.add(source, find, dimensions, metadata, digest, ordinal)
    }

    /// Adds a series to those of the request. `ordinal`: as it was found.
    fn add(
        &mut self,
        source: &Source,
        find: &dyn FindSeries,
        dimensions: &Dimensions,
        metadata: Option<&str>,
        digest: Digest,
        ordinal: Option<u32>,
    ) -> Result<u32, Detail> {
        if ordinal.is_none_or(|ordinal| !self.has_points(ordinal)) {
            self.take_place(source.ordinal, find)?;
        }
        let labels = match ordinal {
            Some(_) => Vec::new(),
            None => {
                if self.encoded.is_empty() {
                    self.encode(dimensions, metadata);
                }
                self.encoded.clone()
            }
        };
        Ok(self.push(RequestSeries {
            source: source.ordinal,
            digest,
            ordinal,
            labels,
        }))
    }

    /// The same for a series that has points, or rows in this request; `None` for any other.
    pub fn known_table(
        &mut self,
        source: &Source,
        find: &dyn FindSeries,
        dimensions: &Dimensions,
        metadata: Option<&str>,
    ) -> Option<u32> {
        let digest = self.digest(source, dimensions, metadata);
        if let Some(place) = self.by_digest.get(&digest) {
            return Some(SERIES_ORDINALS_FROM + place);
        }
        let ordinal = self.find(source.ordinal, &digest, find);
        let ordinal = ordinal.filter(|ordinal| self.has_points(*ordinal))?;
        Some(self.push(RequestSeries {
            source: source.ordinal,
            digest,
            ordinal: Some(ordinal),
            labels: Vec::new(),
        }))
    }

    /// The digest of the labels in metadata. They are encoded only if it was not known.
    fn digest(&mut self, source: &Source, dimensions: &Dimensions, metadata: Option<&str>) -> Digest {
        if let Some(metadata) = metadata
            && let Some(known) = self.known.get(source.id, dimensions, metadata)
        {
            self.encoded.clear();
            return known;
        }
        self.encode(dimensions, metadata);
        let digest = digest_of(source.ordinal, &self.encoded);
        if let Some(metadata) = metadata {
            self.known.keep(source.id, dimensions, metadata, digest);
        }
        digest
    }

    /// Encodes the labels in metadata.
    fn encode(&mut self, dimensions: &Dimensions, metadata: Option<&str>) {
        self.writer.clear();
        if let Some(metadata) = metadata {
            // It was scanned before, so it is well-formed.
            let _ = read_labels(metadata, dimensions, &mut self.writer);
        }
        self.encoded.clear();
        self.writer.encode(&mut self.encoded);
    }

    /// The ordinal of a series that exists.
    fn find(&mut self, source: u32, digest: &Digest, find: &dyn FindSeries) -> Option<u32> {
        find.find(source, digest).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            None
        })
    }

    /// Whether a series that exists needs no place, as far as is known.
    fn has_points(&self, ordinal: u32) -> bool {
        let room = self.room.as_ref();
        !room.is_some_and(|room| room.without_points.contains(ordinal))
    }

    /// Counts a series that needs a place; the fault of its point if there is none.
    fn take_place(&mut self, source: u32, find: &dyn FindSeries) -> Result<(), Detail> {
        if let Some(room) = self.room.as_ref().filter(|room| self.new >= room.series) {
            let own = &self.series;
            let fault = self.faults.entry(source).or_insert_with(|| {
                let fullest = find.fullest(source).unwrap_or_else(|error| {
                    self.failed.get_or_insert(error);
                    None
                });
                let fullest = fullest.into_iter().chain(fullest_of(own, source));
                too_many_series(room, fullest.max_by_key(|it| it.values))
            });
            return Err(Detail::at(&["metadata"], fault.as_str()));
        }
        self.new += 1;
        Ok(())
    }

    fn push(&mut self, series: RequestSeries) -> u32 {
        let place = self.series.len() as u32;
        self.by_digest.insert(series.digest, place);
        self.series.push(series);
        SERIES_ORDINALS_FROM + place
    }
}

/// The dimension of a source with most values among the new series of a request.
fn fullest_of(series: &[RequestSeries], source: u32) -> Option<DimensionValues> {
    let mut values: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    let new = series
        .iter()
        .filter(|series| series.source == source && !series.labels.is_empty());
    for series in new {
        for (name, value) in Labels::decode(&series.labels)?.iter() {
            values
                .entry(name.to_owned())
                .or_default()
                .insert(value.to_owned());
        }
    }
    let counts = values.into_iter().map(|(name, values)| DimensionValues {
        name: name.into(),
        values: values.len() as u64,
    });
    // Of several, the first.
    counts.rev().max_by_key(|it| it.values)
}

/// The fault of a point for whose series there is no room.
pub fn no_series(series_max: u64) -> String {
    format!(
        "would make one more series, and the bucket has all {series_max} that it may have (storage.series_max)"
    )
}

fn too_many_series(room: &SeriesRoom, fullest: Option<DimensionValues>) -> String {
    let fault = no_series(room.series_max);
    match fullest {
        Some(DimensionValues { name, values }) => {
            format!("{fault}; the dimension {name:?} of its data source has most values: {values}")
        }
        None => fault,
    }
}

/// Adds the members of metadata that are dimensions: strings that are not too long, numbers and booleans.
fn read_labels(metadata: &str, dimensions: &Dimensions, labels: &mut LabelsWriter) -> Result<(), Malformed> {
    let mut scan = Scanner::new(metadata.as_bytes())?;
    let mut more = scan.open(b'}')?;
    let mut number_text = Vec::new();
    while more {
        let name = scan.name()?.into_cow();
        let kind = scan.kind()?;
        if !dimensions.has(&name) {
            scan.skip_value(1)?;
            more = scan.more(b'}')?;
            continue;
        }
        match kind {
            Kind::String => match scan.string()?.into_cow() {
                text if text.len() <= DIMENSION_VALUE_BYTES_MAX => labels.push(&name, &text),
                _ => labels.remove(&name),
            },
            Kind::Boolean => labels.push(&name, if scan.boolean()? { "true" } else { "false" }),
            Kind::Number => {
                let start = scan.at();
                let number = scan.number()?;
                let text = scan.slice(start, scan.at());
                match number_label(text, number.value, &mut number_text) {
                    // Of any length that metadata may have.
                    Some(text) => labels.push(&name, text),
                    None => labels.remove(&name),
                }
            }
            Kind::Null | Kind::Array | Kind::Object => {
                scan.skip_value(1)?;
                labels.remove(&name);
            }
        }
        more = scan.more(b'}')?;
    }
    Ok(())
}

/// The text of a number: an integer that is spelled with digits only as it is, so that long ids stay apart; any other
/// as the service writes its double. `None` beyond the range of doubles.
fn number_label<'a>(text: &'a str, value: f64, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(if text == "-0" { "0" } else { text });
    }
    if !value.is_finite() {
        return None;
    }
    buffer.clear();
    // Zero has one spelling.
    write_number(if value == 0.0 { 0.0 } else { value }, buffer);
    str::from_utf8(buffer).ok()
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
