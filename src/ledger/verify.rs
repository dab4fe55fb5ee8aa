//! Verifies a run completely, for `tidewatch check`, and salvages the readable entries of a damaged one.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::error::LedgerError;
use super::format::{BLOCK_ENTRIES, HEADER_BYTES, header, moment_ns};
use super::run::Run;
use super::writer::{Item, RunWriter};
use crate::catalog::{EntryKey, Stream};

/// Contents and damage of a run.
#[derive(Debug, Default)]
pub struct RunReport {
    /// Number of readable entries.
    pub sound: u64,
    /// Damaged parts, each with the number of entries lost with it.
    pub damages: Vec<(LedgerError, u64)>,
    /// The lost entries whose position is known, because only their payload is damaged.
    pub lost: Vec<EntryKey>,
}

/// Reads and verifies all entries and payloads, and passes each readable entry to `sound`, in order.
///
/// # Errors
/// The tables cannot be read.
pub fn verify(run: &Run, mut sound: impl FnMut(&Item<&[u8]>)) -> Result<RunReport, LedgerError> {
    visit(run, |item| {
        sound(item);
        Ok(())
    })
}

/// Writes the readable entries to a new run.
///
/// # Errors
/// Errors of `out`, or the tables cannot be read.
pub fn salvage(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = RunWriter::new(out, run.stream)?;
    visit(run, |item| writer.push(item))?;
    writer.finish()
}

/// For a run that cannot be opened: its stream, and the repaired run if only the header is damaged. The header of each
/// stream is tried, because the footer's checksum covers it. The stream is `None` if it cannot be determined.
pub fn without_header(id: u64, path: &Path, bytes: &[u8]) -> (Option<Stream>, Option<Vec<u8>>) {
    for stream in Stream::ALL {
        let mut mended = header(stream).to_vec();
        mended.extend_from_slice(bytes.get(HEADER_BYTES..).unwrap_or_default());
        if Run::open(id, path, Arc::new(mended.clone())).is_ok() {
            return (Some(stream), Some(mended));
        }
    }
    let found = bytes.first_chunk().and_then(super::format::stream_of);
    (found, None)
}

fn visit<E: From<LedgerError>>(
    run: &Run,
    mut sound: impl FnMut(&Item<&[u8]>) -> Result<(), E>,
) -> Result<RunReport, E> {
    let mut report = RunReport::default();
    let mut entries = run.entries();
    let mut number = 0;
    while number < run.footer.entries {
        let owner = entries.owner(number)?;
        let entry = match entries.get(number) {
            Ok(entry) => entry,
            Err(error) => {
                let next_block = (number / BLOCK_ENTRIES + 1) * BLOCK_ENTRIES;
                let lost = next_block.min(run.footer.entries) - number;
                report.damages.push((error, lost));
                number += lost;
                continue;
            }
        };
        number += 1;
        let key = entry.key(run.stream, owner);
        match run.payload(&entry) {
            Ok(payload) => {
                report.sound += 1;
                sound(&Item {
                    key,
                    again: entry.again,
                    moment_ns: moment_ns(&key, &payload).unwrap_or(run.footer.newest_ns),
                    payload: &payload,
                    crc: entry.crc,
                })?;
            }
            Err(error) => {
                report.damages.push((error, 1));
                report.lost.push(key);
            }
        }
    }
    Ok(report)
}
