//! Walks the files of a log in order and decides, in this one place, what is valid, what is a torn tail and what is
//! damage. Never writes. Open, check and repair all use it, so they cannot disagree. `FORMAT.md` has the decision
//! table.

use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::check::{CheckReport, FileReport};
use crate::error::{Damage, DamageKind, LogError};
use crate::file::{self, FILE_HEADER_BYTES, Predecessor};
use crate::frame;
use crate::reader::{FileReader, Found};
use crate::recover::TornTail;
use disk::{Disk, list_existing};

/// Maximum number of damages listed. Further ones are only counted, so that a fully corrupt log cannot fill memory.
const DAMAGES_LISTED_MAX: usize = 1_000;

/// What a walk does where the log differs from what was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtDamage {
    /// Ends with the damage as its error.
    Stop,
    /// Lists the damage and continues behind it.
    Continue,
}

/// Walks the log. `from`, if given, is the last sequence that its owner does not need. Valid records are passed to
/// `each`, in order; the bytes are borrowed from the read buffer.
pub(crate) fn walk<E: From<LogError>>(
    disk: &dyn Disk,
    dir: &Path,
    from: Option<Sequence>,
    at_damage: AtDamage,
    each: impl FnMut(Sequence, &[u8]) -> Result<(), E>,
) -> Result<CheckReport, E> {
    let mut walk = Walk {
        report: CheckReport::default(),
        from,
        at_damage,
        each,
    };
    let mut files = Vec::new();
    // Empty if the log was never opened.
    for name in list_existing(disk, dir).map_err(LogError::io("list", dir))? {
        match file::parse_name(&name) {
            Some(first_sequence) => files.push((first_sequence, dir.join(name))),
            None => walk.report.ignored.push(name),
        }
    }
    // Digits are padded in the names, so their order is that of the sequences.
    for (index, (first_sequence, path)) in files.iter().enumerate() {
        let opened = disk.open_read(path).map_err(LogError::io("open", path))?;
        let mut reader = FileReader::new(opened, path, *first_sequence)?;
        walk.file(&mut reader, index == 0, index + 1 == files.len())?;
    }
    if let Some(covered) = from.filter(|covered| walk.report.last_sequence < *covered) {
        let last = walk.report.files.last();
        let (path, offset) = last.map_or((dir.to_owned(), 0), |file| (file.path.clone(), file.bytes));
        let due = walk.report.last_sequence + 1;
        walk.damage(&path, offset, due, DamageKind::EndsEarly { covered })?;
    }
    let mut report = walk.report;
    report.first_sequence = report.files.first().map(|file| file.first_sequence);
    Ok(report)
}

struct Walk<F> {
    report: CheckReport,
    from: Option<Sequence>,
    at_damage: AtDamage,
    each: F,
}

impl<E: From<LogError>, F: FnMut(Sequence, &[u8]) -> Result<(), E>> Walk<F> {
    fn file(&mut self, reader: &mut FileReader<'_>, is_first: bool, is_last: bool) -> Result<(), E> {
        let (path, first_sequence) = (reader.path, reader.first_sequence);
        self.report.bytes += reader.file_bytes;
        let tail_at = |offset, file_bytes| TornTail {
            path: path.to_owned(),
            offset,
            bytes: file_bytes - offset,
        };
        let due = match self.from {
            _ if !is_first => self.report.last_sequence.saturating_add(1),
            // Files before the first may have been trimmed. Files are trimmed once covered, so the first may begin
            // before `from + 1`, but never after it.
            Some(from) => first_sequence.min(from.saturating_add(1)),
            None => first_sequence,
        };
        let header = match reader.header()? {
            Ok(header) => Some(header),
            Err(fault) => {
                // A header is synced before the first frame is written, and a file is trimmed only after its
                // successor's header is synced. So only the last file can have been torn at its creation, with no byte
                // behind its header, and only if it begins where its predecessor ends.
                let short = reader.file_bytes <= FILE_HEADER_BYTES;
                let begun_here = first_sequence == if is_first { 1 } else { due };
                if is_last && short && begun_here && self.report.files.last().is_none_or(|file| file.clean) {
                    self.report.torn_tail = Some(tail_at(0, reader.file_bytes));
                    return Ok(());
                }
                self.damage(path, 0, due, DamageKind::Header(fault))?;
                None
            }
        };
        if first_sequence != due {
            let found = first_sequence;
            self.damage(path, 0, due, DamageKind::MissingFile { found })?;
        } else if let (Some((header, _)), Some(before)) = (header, self.report.files.last())
            && before.clean
            && header.predecessor != before.predecessor()
        {
            let kind = DamageKind::Predecessor {
                expected: header.predecessor.first_sequence,
                expected_bytes: header.predecessor.bytes,
                found: before.first_sequence,
                found_bytes: before.bytes,
            };
            self.damage(path, 0, due, kind)?;
        }
        let header_bytes = FILE_HEADER_BYTES.min(reader.file_bytes);
        let crc = header.map_or(0, |(_, crc)| crc);
        let mut state = FileReport::begun(path.to_owned(), first_sequence, header_bytes, crc);
        state.clean = header.is_some();
        let mut offset = FILE_HEADER_BYTES;
        loop {
            let due = state.last_sequence.saturating_add(1);
            match reader.frame(offset)? {
                Found::End => break,
                Found::Frame(header, payload) => {
                    let found = header.first_sequence;
                    if found != due {
                        state.clean = false;
                        self.damage(path, offset, due, DamageKind::Gap { found })?;
                    }
                    // The frame's checksum is verified, so every record is complete.
                    for (sequence, record) in (found..).zip(frame::records(payload).flatten()) {
                        self.report.highest_sequence = self.report.highest_sequence.max(sequence);
                        (self.each)(sequence, record)?;
                    }
                    state.last_sequence = found.saturating_sub(1);
                    let frame_bytes = header.frame_bytes();
                    state.push_frame(offset, frame_bytes, u64::from(header.records), header.crc);
                    offset += frame_bytes;
                }
                Found::Bad { fault, end } => {
                    if is_last && state.clean && reader.is_zero_from(offset)? {
                        // Preallocated zeros.
                        break;
                    }
                    let next = reader.next_valid(offset + 1, due)?;
                    // A frame that was being written is followed by nothing, or by zeros of a file that the file
                    // system has extended. Anything else was written later, when this frame was complete.
                    let nothing_behind =
                        next.is_none() && end.map_or(Ok(true), |end| reader.is_zero_from(end))?;
                    if is_last && state.clean && nothing_behind {
                        self.report.torn_tail = Some(tail_at(offset, reader.file_bytes));
                        break;
                    }
                    state.clean = false;
                    self.damage(path, offset, due, DamageKind::Frame { fault, next })?;
                    let Some((next_offset, next_sequence)) = next else {
                        break;
                    };
                    offset = next_offset;
                    state.last_sequence = next_sequence.saturating_sub(1);
                }
            }
        }
        self.report.last_sequence = state.last_sequence;
        self.report.frames += state.frames;
        self.report.records += state.records;
        self.report.files.push(state);
        Ok(())
    }

    fn damage(
        &mut self,
        path: &Path,
        offset: u64,
        sequence: Sequence,
        kind: DamageKind,
    ) -> Result<(), LogError> {
        let damage = Damage {
            path: path.to_owned(),
            offset,
            sequence,
            kind,
        };
        if self.at_damage == AtDamage::Stop {
            return Err(damage.into());
        }
        self.report.damages_total += 1;
        if self.report.damages.len() < DAMAGES_LISTED_MAX {
            self.report.damages.push(damage);
        }
        Ok(())
    }
}

impl FileReport {
    /// State of a newly created file.
    pub(crate) fn begun(path: PathBuf, first_sequence: Sequence, bytes: u64, crc: u32) -> FileReport {
        FileReport {
            path,
            first_sequence,
            last_sequence: first_sequence - 1,
            bytes,
            frames: 0,
            records: 0,
            last_offset: 0,
            crc,
            clean: true,
        }
    }

    /// Adds a frame that was read or written at the offset.
    pub(crate) fn push_frame(&mut self, offset: u64, frame_bytes: u64, records: u64, crc: u32) {
        self.frames += 1;
        self.records += records;
        self.last_sequence += records;
        self.last_offset = offset;
        self.crc = crc;
        self.bytes = offset + frame_bytes;
    }

    /// How the header of the next file identifies this one.
    pub(crate) fn predecessor(&self) -> Predecessor {
        Predecessor {
            first_sequence: self.first_sequence,
            bytes: self.bytes,
            crc: self.crc,
        }
    }
}
