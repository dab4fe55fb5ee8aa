//! Reads a run to the last byte, for `tidewatch check`, and writes again what reads of a damaged one.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::error::LedgerError;
use super::format::{BLOCK_ENTRIES, HEADER_BYTES, header, moment_ns};
use super::run::Run;
use super::writer::{Item, RunWriter};
use crate::catalog::Stream;
use crate::ids::ObjectId;

/// What a run holds, and where it is not what was written.
#[derive(Debug, Default)]
pub struct RunReport {
    /// Entries that read.
    pub sound: u64,
    /// Parts that do not, and how many entries they take with them.
    pub damages: Vec<(LedgerError, u64)>,
    /// Which entries these are, as far as they tell: where only what they say does not read.
    pub lost: Vec<EntryPlace>,
}

/// Where an entry stands, and whether an older version of it stands in what is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPlace {
    /// Whom it belongs to.
    pub owner: ObjectId,
    /// Its place within the owner, together with `id`.
    pub at_ns: i64,
    /// The rest of its place.
    pub id: ObjectId,
    /// Whether it is a further version.
    pub again: bool,
}

/// Reads all entries and payloads.
///
/// # Errors
/// The tables do not read.
pub fn verify(run: &Run) -> Result<RunReport, LedgerError> {
    let mut report = RunReport::default();
    visit(run, &mut report, |_| Ok::<_, LedgerError>(()))?;
    Ok(report)
}

/// Writes the entries that read as a run of their own.
///
/// # Errors
/// Those of `out`, or the tables do not read.
pub fn salvage(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = RunWriter::new(out, run.stream())?;
    let mut report = RunReport::default();
    visit(run, &mut report, |item| writer.push(item))?;
    writer.finish()
}

/// Gives the place and payload of each entry that reads to `each`, in order.
///
/// # Errors
/// The tables do not read.
pub fn for_each_sound(run: &Run, mut each: impl FnMut(EntryPlace, &[u8])) -> Result<(), LedgerError> {
    let mut report = RunReport::default();
    visit(run, &mut report, |item| {
        let place = EntryPlace {
            owner: item.owner,
            at_ns: item.at_ns,
            id: item.id,
            again: item.again,
        };
        each(place, item.payload);
        Ok(())
    })
}

/// Which stream the entries of a run are of that does not open, and the whole run where only its header is damaged: the
/// footer's checksum covers that, and there is one for each stream. `None` for the stream where nothing tells.
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
    report: &mut RunReport,
    mut sound: impl FnMut(&Item<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut entries = run.entries();
    let (mut number, mut owner_number, mut owner_end) = (0, 0, 0);
    let mut owner = ObjectId::from_bytes([0; 12]);
    while number < run.entry_count() {
        while number >= owner_end {
            owner = run.owner(owner_number)?.owner;
            owner_end = run.end_of_owner(owner_number)?;
            owner_number += 1;
        }
        let entry = match entries.get(number) {
            Ok(entry) => entry,
            Err(error) => {
                let next_block = (number / BLOCK_ENTRIES + 1) * BLOCK_ENTRIES;
                let lost = next_block.min(run.entry_count()) - number;
                report.damages.push((error, lost));
                number += lost;
                continue;
            }
        };
        number += 1;
        match run.payload(&entry) {
            Ok(payload) => {
                report.sound += 1;
                sound(&Item {
                    owner,
                    at_ns: entry.at_ns,
                    id: entry.id,
                    moment_ns: moment_ns(run.stream(), entry.at_ns, &payload)
                        .unwrap_or_else(|| run.newest_ns()),
                    again: entry.again,
                    payload: &payload,
                    crc: entry.crc,
                })?;
            }
            Err(error) => {
                report.damages.push((error, 1));
                report.lost.push(EntryPlace {
                    owner,
                    at_ns: entry.at_ns,
                    id: entry.id,
                    again: entry.again,
                });
            }
        }
    }
    Ok(())
}
