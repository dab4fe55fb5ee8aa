//! Ids of resources: 12 bytes, written as 24 lowercase hex characters.
//!
//! An id reveals its time of creation and nothing else. It can be guessed, so it is never a permission: every lookup by
//! id is followed by a check of the caller (`service::bucket_for` and similar functions).

use std::cmp;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{hex, random};

const ID_BYTES: usize = 12;
/// Mask of the counter's three bytes.
const COUNTER_MASK: u32 = 0x00ff_ffff;

/// An id: 4 bytes of Unix seconds, 5 random bytes of the process, 3 bytes of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId([u8; ID_BYTES]);

/// The order of the bytes. They are compared as one number: a comparison of arrays of 12 bytes is a call, and lookups in
/// the catalog and the ledger compare ids often.
impl Ord for ObjectId {
    #[inline]
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        let number = |id: &Self| {
            let mut bytes = [0; size_of::<u128>()];
            bytes[..ID_BYTES].copy_from_slice(&id.0);
            u128::from_be_bytes(bytes)
        };
        number(self).cmp(&number(other))
    }
}

impl PartialOrd for ObjectId {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl ObjectId {
    /// The id with these twelve bytes, as stored in the log and the snapshot.
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// The id of a point: four bytes of its bucket's ordinal and eight of its sequence. It is derived, so it costs no
    /// storage, and unique, because neither number is ever reused.
    pub fn of_point(bucket: u32, sequence: u64) -> Self {
        let mut bytes = [0; ID_BYTES];
        bytes[..4].copy_from_slice(&bucket.to_be_bytes());
        bytes[4..].copy_from_slice(&sequence.to_be_bytes());
        Self(bytes)
    }

    /// The twelve bytes.
    pub const fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// The 24 lowercase hex characters, without allocating.
    pub fn to_hex(self) -> [u8; 2 * ID_BYTES] {
        let mut digits = [0; 2 * ID_BYTES];
        hex::write(&self.0, &mut digits);
        digits
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.to_hex();
        f.write_str(std::str::from_utf8(&hex).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 24 lowercase hex characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an id of 24 lowercase hex characters")]
pub struct MalformedId;

impl FromStr for ObjectId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let digits: &[u8; 2 * ID_BYTES] = text.as_bytes().try_into().map_err(|_| MalformedId)?;
        let mut bytes = [0; ID_BYTES];
        hex::read(digits, &mut bytes).ok_or(MalformedId)?;
        Ok(Self(bytes))
    }
}

/// Encoded as text in JSON, and as twelve raw bytes in the log and the snapshot.
impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            return text.parse().map_err(D::Error::custom);
        }
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let expected = &"an id of 24 lowercase hex characters, or its 12 bytes";
        let id = bytes.try_into().map(ObjectId);
        id.map_err(|_| D::Error::invalid_length(bytes.len(), expected))
    }
}

/// Generates ids that are unique within this process. Across processes they are unique except for a chance of 1 in 2^40
/// per second and counter value.
#[derive(Debug)]
pub struct ObjectIds {
    process: [u8; 5],
    counter: AtomicU32,
}

impl ObjectIds {
    /// Creates a generator with random process bytes and a random first counter.
    ///
    /// # Errors
    /// The operating system returns no random bytes.
    pub fn new() -> Result<Self, random::NoRandomness> {
        let process = random::bytes()?;
        let counter = u32::from_le_bytes(random::bytes()?);
        Ok(Self {
            process,
            counter: AtomicU32::new(counter),
        })
    }

    /// The next id. `now_ns` is UTC nanoseconds since the epoch.
    pub fn next(&self, now_ns: i64) -> ObjectId {
        let seconds = now_ns.div_euclid(1_000_000_000) as u32;
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) & COUNTER_MASK;
        let mut bytes = [0; ID_BYTES];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&self.process);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "65a0c3f40123456789abcdef";
        let id: ObjectId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
        let packed = rmp_serde::to_vec_named(&id).unwrap();
        assert_eq!(packed.len(), 2 + ID_BYTES);
        assert_eq!(rmp_serde::from_slice::<ObjectId>(&packed).unwrap(), id);
    }

    #[test]
    fn point_ids_are_24_hex_characters_in_order_of_arrival() {
        assert_eq!(&ObjectId::of_point(1, 255).to_hex(), b"0000000100000000000000ff");
        assert!(ObjectId::of_point(7, u64::MAX) < ObjectId::of_point(8, 0));
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in [
            "",
            "65a0c3f4",
            "65A0C3F40123456789ABCDEF",
            "65a0c3f40123456789abcdeg",
            "é5a0c3f40123456789abcde",
        ] {
            assert_eq!(text.parse::<ObjectId>(), Err(MalformedId), "{text:?}");
        }
    }

    #[test]
    fn ids_are_in_the_order_of_their_bytes() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..10_000 {
            let mut one = [0; ID_BYTES];
            rng.fill(&mut one);
            let (mut other, same) = (one, rng.usize(0..=ID_BYTES));
            rng.fill(&mut other[same..]);
            let ids = (ObjectId::from_bytes(one), ObjectId::from_bytes(other));
            assert_eq!(ids.0.cmp(&ids.1), one.cmp(&other), "{one:?} {other:?}");
            assert_eq!(ids.0 == ids.1, one == other);
        }
    }

    #[test]
    fn ids_differ_and_start_with_the_second() {
        let ids = ObjectIds::new().unwrap();
        let made: std::collections::HashSet<_> =
            (0..10_000).map(|_| ids.next(1_700_000_000_999_999_999)).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| id.to_string().starts_with("6553f100")));
    }
}
