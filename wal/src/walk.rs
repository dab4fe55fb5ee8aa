//! Walks the files of a log in order and decides, in this one place, what is valid, what is a torn tail and what is
//! damage. Never writes. Open, check and repair all use it, so they cannot disagree. `FORMAT.md` has the decision
//! table.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::error::{Damage, DamageKind, LogError};
use crate::file::{self, FILE_HEADER_BYTES, Predecessor};
use crate::frame;
use crate::reader::{FileReader, Found};
use crate::recover::TornTail;
use disk::{Disk, list_existing};

/// Receives what a walk over the log finds.
pub(crate) trait Visitor {
    type Error: From<LogError>;

    /// A valid record, in order. The bytes are borrowed from the read buffer.
    fn record(&mut self, sequence: Sequence, payload: &[u8]) -> Result<(), Self::Error>;

    /// The log differs from what was written. An error ends the walk; after `Ok` it continues behind the damage.
    fn damage(&mut self, damage: Damage) -> Result<(), Self::Error>;
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) files: Vec<FileState>,
    /// What a crash left behind the last complete frame.
    pub(crate) torn: Option<TornTail>,
    pub(crate) ignored: Vec<OsString>,
    /// Last sequence of the log; 0 if it has no records and none were trimmed.
    pub(crate) last_sequence: Sequence,
    /// Size of all log files in bytes, valid or not.
    pub(crate) bytes: u64,
}

/// A file with a valid header, or one behind damage that was read nevertheless.
#[derive(Debug, Clone)]
pub(crate) struct FileState {
    pub(crate) path: PathBuf,
    pub(crate) first_sequence: Sequence,
    /// Last sequence in the file; one before its first if it has no records.
    pub(crate) last_sequence: Sequence,
    /// End of its last valid frame.
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    pub(crate) records: u64,
    /// Offset of the last write, which may not have reached the disk: the last frame, or the header if there is none.
    pub(crate) last_offset: u64,
    /// Checksum of that frame or header.
    pub(crate) crc: u32,
    clean: bool,
}

/// Walks the log. `from`, if given, is the last sequence that its owner does not need.
pub(crate) fn walk<V: Visitor>(
    disk: &dyn Disk,
    dir: &Path,
    from: Option<Sequence>,
    visitor: &mut V,
) -> Result<Walk, V::Error> {
    let mut walk = Walk::default();
    let mut names = Vec::new();
    // Empty if the log was never opened.
    for name in list_existing(disk, dir).map_err(LogError::io("list", dir))? {
        match file::parse_name(&name) {
            Some(first_sequence) => names.push((first_sequence, dir.join(name))),
            None => walk.ignored.push(name),
        }
    }
    let mut window = Vec::new();
    // Digits are padded in the names, so their order is that of the sequences.
    for (index, (first_sequence, path)) in names.iter().enumerate() {
        let opened = disk.open_read(path).map_err(LogError::io("open", path))?;
        let mut reader = FileReader::new(opened, path, *first_sequence, window)?;
        walk.bytes += reader.file_bytes();
        let place = Place {
            first_sequence: *first_sequence,
            path,
            last: index + 1 == names.len(),
            due: (index > 0).then(|| walk.last_sequence.saturating_add(1)),
            from,
        };
        walk_file(&mut walk, &mut reader, &place, visitor)?;
        window = reader.into_window();
    }
    if let Some(covered) = from.filter(|covered| walk.last_sequence < *covered) {
        let (path, offset) = match walk.files.last() {
            Some(file) => (file.path.clone(), file.bytes),
            None => (dir.to_owned(), 0),
        };
        visitor.damage(Damage {
            path,
            offset,
            sequence: walk.last_sequence + 1,
            kind: DamageKind::EndsEarly { covered },
        })?;
    }
    Ok(walk)
}

struct Place<'a> {
    first_sequence: Sequence,
    path: &'a Path,
    last: bool,
    /// The sequence with which this file must begin; unknown for the first, because files before it may have been
    /// trimmed.
    due: Option<Sequence>,
    from: Option<Sequence>,
}

fn walk_file<V: Visitor>(
    walk: &mut Walk,
    reader: &mut FileReader<'_>,
    place: &Place<'_>,
    visitor: &mut V,
) -> Result<(), V::Error> {
    let Place {
        first_sequence, path, ..
    } = *place;
    let damage_at = |offset, sequence, kind| Damage {
        path: path.to_owned(),
        offset,
        sequence,
        kind,
    };
    let tail_at = |offset, file_bytes| TornTail {
        path: path.to_owned(),
        offset,
        bytes: file_bytes - offset,
    };
    let due = place.due.unwrap_or(match place.from {
        // Files are trimmed once covered, so the first may begin before `from + 1`, but never after it.
        Some(from) => first_sequence.min(from.saturating_add(1)),
        None => first_sequence,
    });
    let header = match reader.header()? {
        Ok(header) => Some(header),
        Err(fault) => {
            // A header is synced before the first frame is written, and a file is trimmed only after its successor's
            // header is synced. So only the last file can have been torn at its creation, with no byte behind its
            // header, and only if it begins where its predecessor ends.
            let short = reader.file_bytes() <= FILE_HEADER_BYTES;
            let begun_here = first_sequence == if place.due.is_none() { 1 } else { due };
            if place.last && short && begun_here && walk.clean() {
                walk.torn = Some(tail_at(0, reader.file_bytes()));
                return Ok(());
            }
            visitor.damage(damage_at(0, due, DamageKind::Header(fault)))?;
            None
        }
    };
    if first_sequence != due {
        let found = first_sequence;
        visitor.damage(damage_at(0, due, DamageKind::MissingFile { found }))?;
    } else if let (Some((header, _)), Some(before)) = (header, walk.files.last())
        && before.clean
        && header.predecessor != before.predecessor()
    {
        let kind = DamageKind::Predecessor {
            expected: header.predecessor.first_sequence,
            expected_bytes: header.predecessor.bytes,
            found: before.first_sequence,
            found_bytes: before.bytes,
        };
        visitor.damage(damage_at(0, due, kind))?;
    }
    let header_bytes = FILE_HEADER_BYTES.min(reader.file_bytes());
    let crc = header.map_or(0, |(_, crc)| crc);
    let mut state = FileState::begun(path.to_owned(), first_sequence, header_bytes, crc);
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
                    visitor.damage(damage_at(offset, due, DamageKind::Gap { found }))?;
                }
                // The frame's checksum is verified, so every record is complete.
                for (sequence, record) in (found..).zip(frame::records(payload).flatten()) {
                    visitor.record(sequence, record)?;
                }
                state.last_sequence = found.saturating_sub(1);
                let frame_bytes = header.frame_bytes();
                state.push_frame(offset, frame_bytes, u64::from(header.records), header.crc);
                offset += frame_bytes;
            }
            Found::Bad { fault, end } => {
                if place.last && state.clean && reader.is_zero_from(offset)? {
                    // Preallocated zeros.
                    break;
                }
                let next = reader.next_valid(offset + 1, due)?;
                // A frame that was being written is followed by nothing, or by zeros of a file that the file system has
                // extended. Anything else was written later, when this frame was complete.
                let nothing_behind =
                    next.is_none() && end.map_or(Ok(true), |end| reader.is_zero_from(end))?;
                if place.last && state.clean && nothing_behind {
                    walk.torn = Some(tail_at(offset, reader.file_bytes()));
                    break;
                }
                state.clean = false;
                visitor.damage(damage_at(offset, due, DamageKind::Frame { fault, next }))?;
                let Some((next_offset, next_sequence)) = next else {
                    break;
                };
                offset = next_offset;
                state.last_sequence = next_sequence.saturating_sub(1);
            }
        }
    }
    walk.last_sequence = state.last_sequence;
    walk.files.push(state);
    Ok(())
}

impl Walk {
    fn clean(&self) -> bool {
        self.files.last().is_none_or(|file| file.clean)
    }
}

impl FileState {
    /// State of a newly created file.
    pub(crate) fn begun(path: PathBuf, first_sequence: Sequence, bytes: u64, crc: u32) -> FileState {
        FileState {
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
