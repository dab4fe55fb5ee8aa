//! Payloads of the ledger's tail. Those that never change are compressed together: what is audited names its fields anew
//! in each entry, and a fleet's sources resemble each other, so that 600 bytes of text need about 50.

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Payloads are compressed together once they have this many bytes. More would be compressed better, but one payload
/// cannot be read without the others.
pub(super) const PACK_BYTES: usize = 16 << 10;
/// The fastest level of zstd that compresses names which recur.
const LEVEL: i32 = 1;

/// The payload of an entry. Cheap to clone.
#[derive(Clone, Debug)]
pub enum TailPayload {
    /// As it is.
    Plain(Arc<[u8]>),
    /// A part of payloads that are compressed together.
    Packed {
        pack: Arc<Pack>,
        /// Offset among the payloads.
        start: u32,
        /// Length, in bytes.
        len: u32,
    },
}

/// Payloads that are compressed together.
#[derive(Debug)]
pub struct Pack {
    compressed: Box<[u8]>,
    /// Sum of the payloads' lengths, in bytes.
    len: usize,
}

#[cfg(test)]
impl TailPayload {
    pub fn to_vec(&self) -> Vec<u8> {
        let (bytes, range) = Unpacker::default().read(self).unwrap();
        bytes[range].to_vec()
    }
}

/// Compresses payloads together. `None` if that does not make them shorter.
pub(super) fn pack(payloads: &[Arc<[u8]>]) -> Option<Vec<TailPayload>> {
    let plain = payloads.concat();
    // Offsets fit, as the payloads were records of the log.
    let compressed = zstd::bulk::compress(&plain, LEVEL).ok()?;
    if compressed.len() >= plain.len() || u32::try_from(plain.len()).is_err() {
        return None;
    }
    let pack = Arc::new(Pack {
        compressed: compressed.into(),
        len: plain.len(),
    });
    let mut start = 0;
    let packed = payloads.iter().map(|payload| {
        let len = payload.len() as u32;
        let packed = TailPayload::Packed {
            pack: Arc::clone(&pack),
            start,
            len,
        };
        start += len;
        packed
    });
    Some(packed.collect())
}

/// Reads payloads. Keeps the last pack that it has decompressed, because neighbouring entries share one.
#[derive(Debug, Default)]
pub struct Unpacker(Option<(Arc<Pack>, Arc<[u8]>)>);

impl Unpacker {
    /// The payload, as a range of shared bytes.
    ///
    /// # Errors
    /// The pack cannot be decompressed: memory is damaged, or used up.
    pub fn read(&mut self, payload: &TailPayload) -> io::Result<(Arc<[u8]>, Range<usize>)> {
        match payload {
            TailPayload::Plain(bytes) => Ok((Arc::clone(bytes), 0..bytes.len())),
            TailPayload::Packed { pack, start, len } => {
                let bytes = match &self.0 {
                    Some((known, bytes)) if Arc::ptr_eq(known, pack) => bytes,
                    _ => {
                        let bytes = zstd::bulk::decompress(&pack.compressed, pack.len)?;
                        if bytes.len() != pack.len {
                            return Err(io::ErrorKind::InvalidData.into());
                        }
                        &self.0.insert((Arc::clone(pack), bytes.into())).1
                    }
                };
                let start = *start as usize;
                Ok((Arc::clone(bytes), start..start + *len as usize))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_payloads_are_read_as_they_were() {
        let text = |number: usize| format!(r#"{{"name":"pump {number}","unit":"°C"}}"#).repeat(number % 5);
        let payloads: Vec<Arc<[u8]>> = (0..60).map(|number| text(number).into_bytes().into()).collect();
        let packed = pack(&payloads).unwrap();
        let mut unpacker = Unpacker::default();
        for (packed, plain) in packed.iter().zip(&payloads) {
            assert!(matches!(packed, TailPayload::Packed { .. }));
            let (bytes, range) = unpacker.read(packed).unwrap();
            assert_eq!(&bytes[range], &**plain);
        }
    }

    #[test]
    fn what_does_not_get_shorter_stays_as_it_is() {
        let mut random = fastrand::Rng::with_seed(7);
        let payloads = [(); 4].map(|()| Arc::from_iter((0..50).map(|_| random.u8(..))));
        assert!(pack(&payloads).is_none());
        assert!(pack(&[]).is_none());
    }
}
