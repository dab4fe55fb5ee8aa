//! The bytes of a group: for each record its length (`u32`, little-endian) and its content. A CRC-32 over shard, epoch,
//! first sequence and these bytes stands beside them in the row.

use crate::{Epoch, Group, Sequence, Shard};

/// Maximum size of a group's body in bytes: as much as a frame of a local log may have.
pub const BODY_BYTES_MAX: u64 = 64 << 20;

/// Size of the length in front of each record.
const LENGTH_BYTES: usize = 4;

/// Size of the body of these records in bytes.
pub fn body_bytes(records: &[Vec<u8>]) -> u64 {
    let bytes = |record: &Vec<u8>| (LENGTH_BYTES + record.len()) as u64;
    records.iter().map(bytes).sum()
}

/// Encodes the records. The caller has checked [`body_bytes`] against [`BODY_BYTES_MAX`].
pub fn encode(records: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::with_capacity(body_bytes(records) as usize);
    for record in records {
        body.extend_from_slice(&(record.len() as u32).to_le_bytes());
        body.extend_from_slice(record);
    }
    body
}

/// The records of a body; `None` if a length does not fit.
pub fn decode(mut body: &[u8]) -> Option<Vec<&[u8]>> {
    let mut records = Vec::new();
    while !body.is_empty() {
        let (length, rest) = body.split_first_chunk::<LENGTH_BYTES>()?;
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        records.push(record);
        body = rest;
    }
    Some(records)
}

/// The checksum of a row. It covers the place, so that a row which stands in another one's place is noticed.
pub fn checksum(shard: Shard, epoch: Epoch, first: Sequence, body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&shard.0.to_le_bytes());
    crc.update(&epoch.to_le_bytes());
    crc.update(&first.to_le_bytes());
    crc.update(body);
    crc.finalize()
}

impl Group<'_> {
    /// Sequence of the last record.
    pub fn last(&self) -> Sequence {
        self.first + self.records.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = vec![b"one".to_vec(), Vec::new(), vec![7; 300]];
        let body = encode(&records);
        assert_eq!(body.len() as u64, body_bytes(&records));
        assert_eq!(decode(&body).unwrap(), records);
        assert_eq!(decode(&[]).unwrap(), Vec::<&[u8]>::new());
    }

    #[test]
    fn a_body_that_ends_early_is_refused() {
        let body = encode(&[b"one".to_vec(), b"two".to_vec()]);
        for length in 0..body.len() {
            let whole = decode(&body[..length]).is_some();
            assert_eq!(whole, length == 0 || length == 7, "{length} bytes");
        }
    }

    #[test]
    fn a_checksum_tells_shard_epoch_and_place() {
        let of = |shard, epoch, first| checksum(Shard(shard), epoch, first, b"body");
        let all = [of(1, 1, 1), of(2, 1, 1), of(1, 2, 1), of(1, 1, 2)];
        for (place, crc) in all.iter().enumerate() {
            assert!(!all[..place].contains(crc), "{place}");
        }
    }
}
