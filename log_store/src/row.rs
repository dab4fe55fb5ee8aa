//! A row of the log as it is read: checked, and passed on record by record.

use crate::body::{checksum, decode};
use crate::{Each, Epoch, ROOT_BYTES_MAX, ReplayError, Replayed, Sequence, Shard, StoreError};

/// Refuses a root whose name is too long.
pub(crate) fn check_root(root: Option<&str>) -> Result<(), StoreError> {
    match root.map_or(0, str::len) {
        ..=ROOT_BYTES_MAX => Ok(()),
        bytes => {
            let message =
                format!("the name of a root has {bytes} bytes; it may have {ROOT_BYTES_MAX} at most");
            Err(StoreError::Failed(message.into()))
        }
    }
}

/// Refuses a replay from a sequence whose successors the log no longer has.
pub(crate) fn begins_early_enough(
    shard: Shard,
    covered: Sequence,
    from: Sequence,
) -> Result<(), ReplayError> {
    if from < covered {
        let (expected, found) = (from + 1, covered + 1);
        return Err(ReplayError::Gap {
            shard,
            expected,
            found,
        });
    }
    Ok(())
}

/// A row.
pub(crate) struct Row<'a> {
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) epoch: Epoch,
    pub(crate) crc: u32,
    pub(crate) body: &'a [u8],
}

impl Row<'_> {
    /// Passes on the records that come after what has been replayed.
    pub(crate) fn pass_on(
        &self,
        shard: Shard,
        replayed: &mut Replayed,
        each: &mut Each<'_>,
    ) -> Result<(), ReplayError> {
        let Row { first, last, .. } = *self;
        let is_whole = checksum(shard, self.epoch, first, self.body) == self.crc;
        let records = decode(self.body).filter(|records| first + records.len() as u64 == last + 1);
        let Some(records) = records.filter(|_| is_whole) else {
            return Err(ReplayError::Damaged { shard, first });
        };
        let expected = replayed.last + 1;
        if first > expected {
            let found = first;
            return Err(ReplayError::Gap {
                shard,
                expected,
                found,
            });
        }
        for (sequence, record) in (first..).zip(records) {
            if sequence > replayed.last {
                each(sequence, record).map_err(|source| ReplayError::Record { sequence, source })?;
                replayed.records += 1;
            }
        }
        replayed.last = replayed.last.max(last);
        replayed.bytes += self.body.len() as u64;
        Ok(())
    }
}
