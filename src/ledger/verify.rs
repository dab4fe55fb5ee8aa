//! Reads a run to the last byte, for `tidewatch check`, and writes again what reads of a damaged one.

use std::io::{self, Write};

use super::error::LedgerError;
use super::format::{BLOCK_ENTRIES, moment_ns};
use super::run::Run;
use super::writer::{Item, RunWriter};
use crate::ids::ObjectId;

/// What a run holds, and where it is not what was written.
#[derive(Debug, Default)]
pub struct RunReport {
    /// Entries that read.
    pub sound: u64,
    /// Parts that do not, and how many entries they take with them.
    pub damages: Vec<(LedgerError, u64)>,
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
            Err(error) => report.damages.push((error, 1)),
        }
    }
    Ok(())
}
