//! The series of a bucket as entries of the ledger: keys, encoding, and what a checkpoint writes.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::ops::RangeInclusive;

use engine::SeriesRef;
use roaring::RoaringBitmap;
use siphasher::sip::SipHasher24;

use super::Digest;
use super::index::{NewSeries, Unsaved};
use super::labels::{digest_of, put_text};
use super::postings::postings;
use crate::catalog::{EntryKey, SeriesEntry, Stream, series_owner};
use crate::ids::ObjectId;
use crate::ledger::{Ledger, LedgerError, NewEntry};

/// Ordinals of one entry: those with the same upper 16 bits.
pub(super) const CHUNK_BITS: u32 = 16;

/// Position of an entry within its owner.
pub(super) type Place = (i64, ObjectId);

const LEAST_ID: ObjectId = ObjectId::from_bytes([0; 12]);
const GREATEST_ID: ObjectId = ObjectId::from_bytes([0xff; 12]);

/// The place of the digest of a series.
pub(super) fn digest_place(digest: &Digest) -> Place {
    let [a, b, c, d, e, f, g, h, second @ ..] = *digest;
    let mut id = [0; 12];
    id[..8].copy_from_slice(&second);
    (
        i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        ObjectId::from_bytes(id),
    )
}

/// The place of the labels of a series: its ordinal times an odd number, so that places are evenly distributed.
pub(super) fn labels_place(ordinal: u32) -> Place {
    let spread = u64::from(ordinal).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread as i64, LEAST_ID)
}

/// The part that has this ordinal.
pub(super) fn chunk_of(ordinal: u32) -> u16 {
    (ordinal >> CHUNK_BITS) as u16
}

/// The place of a part of all series of a source.
pub(super) fn all_place(chunk: u16) -> Place {
    (i64::from(chunk), LEAST_ID)
}

fn hash(parts: &[&str]) -> u64 {
    let mut hasher = SipHasher24::new();
    for part in parts {
        hasher.write_u32(part.len() as u32);
        hasher.write(part.as_bytes());
    }
    hasher.finish()
}

fn ending_in(chunk: u16, mut id: [u8; 12]) -> ObjectId {
    id[10..].copy_from_slice(&chunk.to_be_bytes());
    ObjectId::from_bytes(id)
}

/// The place of a part of the series that have a name.
fn name_place(name: &str, chunk: u16) -> Place {
    (hash(&[name]) as i64, ending_in(chunk, [0; 12]))
}

/// Up to this many bytes of a value are a part of its place, so that values are in order as far as they go.
const VALUE_BYTES: usize = 6;

/// The first bytes of a value, filled up.
fn start_of(value: &str, fill: u8) -> [u8; VALUE_BYTES] {
    let mut start = [fill; VALUE_BYTES];
    let length = value.len().min(VALUE_BYTES);
    start[..length].copy_from_slice(&value.as_bytes()[..length]);
    start
}

fn value_at(name: &str, start: [u8; VALUE_BYTES]) -> i64 {
    let [a, b, c, d, ..] = start;
    let upper = u64::from(hash(&[name]) as u32) << 32;
    // As signed numbers in the order of the unsigned ones.
    ((upper | u64::from(u32::from_be_bytes([a, b, c, d]))) ^ (1 << 63)) as i64
}

/// The place of a part of the series that have a value.
fn value_place(name: &str, value: &str, chunk: u16) -> Place {
    let start = start_of(value, 0);
    let mut id = [0; 12];
    id[..2].copy_from_slice(&start[4..]);
    id[2..10].copy_from_slice(&hash(&[name, value]).to_be_bytes());
    (value_at(name, start), ending_in(chunk, id))
}

/// The places of all parts of a name.
pub(super) fn of_name(name: &str) -> RangeInclusive<Place> {
    name_place(name, 0)..=name_place(name, u16::MAX)
}

/// The places of the parts of a value that contain series from the first of these ordinals to the last.
pub(super) fn of_value(name: &str, value: &str, ordinals: RangeInclusive<u32>) -> RangeInclusive<Place> {
    let place = |ordinal: u32| value_place(name, value, chunk_of(ordinal));
    place(*ordinals.start())..=place(*ordinals.end())
}

/// The places of the values of a name that begin with this prefix, and of some others.
pub(super) fn of_values(name: &str, prefix: &str) -> RangeInclusive<Place> {
    let first = (value_at(name, start_of(prefix, 0)), LEAST_ID);
    first..=(value_at(name, start_of(prefix, 0xff)), GREATEST_ID)
}

/// All places.
pub(super) const EVERYWHERE: RangeInclusive<Place> = (i64::MIN, LEAST_ID)..=(i64::MAX, GREATEST_ID);

/// The postings of an entry that is written.
#[derive(Default)]
struct Postings(Vec<(Box<str>, Box<str>, RoaringBitmap)>);

impl Postings {
    fn encode(mut self) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for (name, value, series) in &mut self.0 {
            put_text(&mut out, name);
            put_text(&mut out, value);
            // Ordinals are assigned in order, so that runs of them are usual.
            series.optimize();
            series.serialize_into(&mut out)?;
        }
        Ok(out)
    }

    /// The series of a name and value, created if there are none.
    fn of(&mut self, name: &str, value: &str) -> &mut RoaringBitmap {
        let is_it = |it: &(Box<str>, Box<str>, _)| *it.0 == *name && *it.1 == *value;
        let index = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.push((name.into(), value.into(), RoaringBitmap::new()));
            self.0.len() - 1
        });
        &mut self.0[index].2
    }

    /// Removes these series, and what is empty then.
    fn remove(&mut self, others: &Postings) {
        for (name, value, series) in &others.0 {
            *self.of(name, value) -= series;
        }
        self.0.retain(|(_, _, series)| !series.is_empty());
    }
}

/// How a checkpoint changes the postings of an entry.
#[derive(Default)]
struct Change {
    added: Postings,
    removed: Postings,
}

/// The entries that a checkpoint writes for the series that a bucket has got and forgotten since the last one. Entries
/// whose postings change are read and written anew.
///
/// # Errors
/// Entries cannot be read.
pub fn new_entries(bucket: u32, ledger: &Ledger, unsaved: &Unsaved) -> Result<Vec<NewEntry>, LedgerError> {
    let mut written = Vec::new();
    let mut changes: BTreeMap<EntryKey, Change> = BTreeMap::new();
    let entry = |key, payload: &[u8]| NewEntry {
        key,
        payload: payload.into(),
    };
    // If a log that was replayed has two series of the same labels, the newer one is found by them.
    let mut digests: BTreeMap<EntryKey, u32> = BTreeMap::new();
    for it in unsaved.series.iter().flat_map(|some| some.iter()) {
        let ordinal = it.series.ordinal;
        digests.insert(digest_key(bucket, it), ordinal);
        let payload = [&[LABELS_FORMAT], it.labels.as_bytes()].concat();
        written.push(entry(labels_key(bucket, it.series), &payload));
        for_each_posting(bucket, it, |key, name, value| {
            changes
                .entry(key)
                .or_default()
                .added
                .of(name, value)
                .insert(ordinal);
        });
    }
    for it in unsaved.forgotten.iter().flat_map(|some| some.iter()) {
        let SeriesRef { ordinal, source } = it.series;
        let digest = digest_key(bucket, it);
        if !digests.contains_key(&digest) {
            let known = ledger.newest(digest.stream, digest.owner, (digest.at_ns, digest.id), true)?;
            // Another series may have these labels now.
            if known.and_then(|payload| ordinal_of(&payload)) == Some(ordinal) {
                written.push(entry(digest, &[]));
            }
        }
        written.push(entry(labels_key(bucket, it.series), &[]));
        for_each_posting(bucket, it, |key, name, value| {
            changes
                .entry(key)
                .or_default()
                .removed
                .of(name, value)
                .insert(ordinal);
        });
        let forgotten = key(
            bucket,
            source,
            SeriesEntry::Forgotten,
            all_place(chunk_of(ordinal)),
        );
        changes
            .entry(forgotten)
            .or_default()
            .added
            .of("", "")
            .insert(ordinal);
    }
    let digests = digests.into_iter();
    written.extend(digests.map(|(key, ordinal)| entry(key, &ordinal.to_le_bytes())));
    // In the order of their keys, so that blocks of the ledger are read once.
    for (key, Change { mut added, removed }) in changes {
        let is_kind = |kind: SeriesEntry| key.owner.as_bytes()[0] == kind as u8;
        let chunk = match is_kind(SeriesEntry::All) || is_kind(SeriesEntry::Forgotten) {
            true => key.at_ns as u16,
            false => u16::from_be_bytes([key.id.as_bytes()[10], key.id.as_bytes()[11]]),
        };
        if u32::from(chunk) << CHUNK_BITS < unsaved.saved_below
            && let Some(payload) = ledger.newest(key.stream, key.owner, (key.at_ns, key.id), false)?
            && let Some(known) = postings(&payload).collect::<Option<Vec<_>>>()
        {
            for posting in known {
                posting.series.add_to(added.of(posting.name, posting.value));
            }
        }
        added.remove(&removed);
        // Without postings it is a tombstone.
        let payload = added
            .encode()
            .map_err(|error| LedgerError::Io("series".into(), error))?;
        written.push(entry(key, &payload));
    }
    if unsaved.next_ordinal > unsaved.saved_below {
        let next = key(bucket, 0, SeriesEntry::Next, (0, LEAST_ID));
        written.push(entry(next, &unsaved.next_ordinal.to_le_bytes()));
    }
    Ok(written)
}

fn key(bucket: u32, source: u32, entry: SeriesEntry, (at_ns, id): Place) -> EntryKey {
    EntryKey {
        stream: Stream::Series,
        owner: series_owner(entry, bucket, source),
        at_ns,
        id,
    }
}

fn digest_key(bucket: u32, NewSeries { series, labels }: &NewSeries) -> EntryKey {
    let digest = digest_of(series.source, labels.as_bytes());
    key(bucket, series.source, SeriesEntry::Digest, digest_place(&digest))
}

fn labels_key(bucket: u32, series: SeriesRef) -> EntryKey {
    key(
        bucket,
        series.source,
        SeriesEntry::Labels,
        labels_place(series.ordinal),
    )
}

/// Passes key, name and value of each posting that has a series to `each`.
fn for_each_posting(
    bucket: u32,
    NewSeries { series, labels }: &NewSeries,
    mut each: impl FnMut(EntryKey, &str, &str),
) {
    let chunk = chunk_of(series.ordinal);
    let key = |entry, place| key(bucket, series.source, entry, place);
    each(key(SeriesEntry::All, all_place(chunk)), "", "");
    for (name, value) in labels.iter() {
        each(key(SeriesEntry::Name, name_place(name, chunk)), name, "");
        each(
            key(SeriesEntry::Value, value_place(name, value, chunk)),
            name,
            value,
        );
    }
}

/// The first byte of a labels entry, so that it is never empty.
pub(super) const LABELS_FORMAT: u8 = 1;

/// The ordinal that the next series gets, as the last checkpoint has stored it.
pub(super) fn next_ordinal(bucket: u32, ledger: &Ledger) -> Result<Option<u32>, LedgerError> {
    let owner = series_owner(SeriesEntry::Next, bucket, 0);
    let payload = ledger.newest(Stream::Series, owner, (0, LEAST_ID), false)?;
    Ok(payload.and_then(|payload| ordinal_of(&payload)))
}

pub(super) fn ordinal_of(payload: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*payload.first_chunk()?))
}
