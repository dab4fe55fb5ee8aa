//! Records of buckets that are set apart (quarantined). The log is trimmed for all buckets at once. Records of a bucket
//! that cannot write them to segments are therefore copied to files of their own, and applied, before the log, when the
//! bucket opens again. The format is described in src/journal/FORMAT.md, "Carried records".

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use disk::{Disk, list_existing};
use wal::{Flip, Sequence};

use crate::sealed_file::FileWriter;

const MAGIC: &[u8; 8] = b"TWCARR01";
const SUFFIX: &str = ".records";
/// Extension of a file that is being written, instead of [`SUFFIX`].
const TEMPORARY: &str = "tmp";
/// Sequence, length and checksum of a record.
const RECORD_HEADER_BYTES: usize = 8 + 4 + 4;
/// Marks the end, in place of a sequence; the number of records follows.
const END: Sequence = 0;
/// Maximum number of files written at the same time: each needs a descriptor.
pub const CARRIED_AT_ONCE_MAX: usize = 64;

/// The directory of the carried files.
#[derive(Clone, Debug)]
pub struct CarriedDir(PathBuf);

/// One file of carried records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CarriedFile {
    /// The bucket's ordinal.
    pub bucket: u32,
    /// Sequence of its first record.
    pub first: Sequence,
    /// Path of the file.
    pub path: PathBuf,
}

impl CarriedDir {
    /// The directory within a data directory.
    pub fn of(data_dir: &Path) -> Self {
        CarriedDir(data_dir.join("carried"))
    }

    /// Lists the files by bucket, oldest first.
    ///
    /// # Errors
    /// I/O errors.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Vec<CarriedFile>> {
        let names = list_existing(disk, &self.0)?;
        let mut files: Vec<CarriedFile> = names.iter().filter_map(|name| self.file(name)).collect();
        files.sort_unstable();
        Ok(files)
    }

    fn file(&self, name: &OsString) -> Option<CarriedFile> {
        let (bucket, first) = name.to_str()?.strip_suffix(SUFFIX)?.split_once('-')?;
        Some(CarriedFile {
            bucket: bucket.parse().ok()?,
            first: first.parse().ok()?,
            path: self.0.join(name),
        })
    }

    /// Removes unfinished files left by a crash or a full disk. If one cannot be removed, that is only logged.
    ///
    /// # Errors
    /// I/O errors.
    fn remove_unfinished(&self, disk: &dyn Disk) -> io::Result<()> {
        let names = list_existing(disk, &self.0)?;
        let paths = names.iter().map(|name| self.0.join(name));
        for path in paths.filter(|path| path.extension().is_some_and(|it| it == TEMPORARY)) {
            if let Err(error) = disk.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "an unfinished file could not be removed; it is retried later");
            }
        }
        Ok(())
    }

    /// Writes the files of several buckets in one pass over the log.
    ///
    /// # Errors
    /// I/O errors.
    pub fn writer<'a>(&self, disk: &'a dyn Disk) -> io::Result<CarriedWriter<'a>> {
        disk.create_dir_all(&self.0)?;
        self.remove_unfinished(disk)?;
        Ok(CarriedWriter {
            disk,
            dir: self.clone(),
            open: BTreeMap::new(),
        })
    }

    /// Removes all files except those selected by `counts`. If one cannot be removed, that is only logged, because its
    /// records are covered.
    ///
    /// # Errors
    /// I/O errors.
    pub fn remove_others(&self, disk: &dyn Disk, counts: impl Fn(&CarriedFile) -> bool) -> io::Result<()> {
        self.remove_unfinished(disk)?;
        for file in self.list(disk)?.iter().filter(|file| !counts(file)) {
            match disk.remove(&file.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %file.path.display(), %error, "an obsolete file could not be removed; it is retried later");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The file of a bucket whose first record is `first`.
    pub fn named(&self, bucket: u32, first: Sequence) -> CarriedFile {
        CarriedFile {
            bucket,
            first,
            path: self.0.join(format!("{bucket:08}-{first:020}{SUFFIX}")),
        }
    }
}

/// Files being written. If this is dropped before [`CarriedWriter::finish`], none of them takes effect.
pub struct CarriedWriter<'a> {
    disk: &'a dyn Disk,
    dir: CarriedDir,
    open: BTreeMap<u32, Open>,
}

struct Open {
    temporary: PathBuf,
    path: PathBuf,
    out: FileWriter,
    records: u64,
}

impl Open {
    fn write(&mut self, sequence: Sequence, record: &[u8]) -> io::Result<()> {
        let length = u32::try_from(record.len()).map_err(io::Error::other)?;
        self.out.write_all(&sequence.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&checksum(sequence, record).to_le_bytes())?;
        self.out.write_all(record)
    }
}

impl CarriedWriter<'_> {
    /// Appends a record to its bucket's file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, bucket: u32, sequence: Sequence, record: &[u8]) -> io::Result<()> {
        let open = match self.open.entry(bucket) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = self.dir.named(bucket, sequence).path;
                let temporary = path.with_extension(TEMPORARY);
                match self.disk.remove(&temporary) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let mut out = FileWriter::new(self.disk.create(&temporary)?);
                out.write_all(MAGIC)?;
                entry.insert(Open {
                    temporary,
                    path,
                    out,
                    records: 0,
                })
            }
        };
        open.records += 1;
        open.write(sequence, record)
    }

    /// Makes the files durable. After a crash before that, any file under its final name is complete.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish(self) -> io::Result<()> {
        let named = !self.open.is_empty();
        for (_, mut open) in self.open {
            open.write(END, &open.records.to_le_bytes())?;
            open.out.finish()?;
            self.disk.rename(&open.temporary, &open.path)?;
        }
        if named {
            self.disk.sync_dir(&self.dir.0)?;
        }
        Ok(())
    }
}

impl CarriedFile {
    /// Passes each record to `each`, in order.
    ///
    /// # Errors
    /// Why the file could not be read, or the error of `each`, as text for people.
    pub fn read(
        &self,
        disk: &dyn Disk,
        mut each: impl FnMut(Sequence, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let fault = |what: &dyn std::fmt::Display| format!("{}: {what}", self.path.display());
        let bytes = disk.map(&self.path).map_err(|error| fault(&error))?;
        let mut rest = (*bytes)
            .as_ref()
            .strip_prefix(MAGIC)
            .ok_or_else(|| fault(&"not a file of carried records of this version"))?;
        let mut records = 0u64;
        loop {
            let (sequence, record, behind) =
                split_record(rest).ok_or_else(|| fault(&"a record does not match its checksum"))?;
            if sequence == END {
                let whole = behind.is_empty() && *record == records.to_le_bytes();
                return whole.then_some(()).ok_or_else(|| fault(&"records are missing"));
            }
            each(sequence, record)?;
            records += 1;
            rest = behind;
        }
    }
}

/// The first bit that must be flipped so that a file of carried records is valid up to other damage; `None` if there is
/// no such bit.
pub fn flip_of_carried(bytes: &[u8]) -> Option<Flip> {
    let magic = bytes.first_chunk::<{ MAGIC.len() }>()?;
    if magic != MAGIC {
        return Flip::by_trial(magic, |magic| magic == MAGIC);
    }
    let mut offset = MAGIC.len();
    while let Some((_, record, _)) = split_record(&bytes[offset..]) {
        offset += RECORD_HEADER_BYTES + record.len();
    }
    let (header, rest) = bytes[offset..].split_first_chunk::<RECORD_HEADER_BYTES>()?;
    let is_record = |header: &[u8; RECORD_HEADER_BYTES]| record(header, rest).is_some();
    let flip = Flip::by_trial(header, is_record).or_else(|| {
        let length = u32::from_le_bytes(*header[8..].first_chunk()?) as usize;
        let checksum = u32::from_le_bytes(*header[12..].first_chunk()?);
        let mut checked = header[..8].to_vec();
        checked.extend_from_slice(rest.get(..length)?);
        let flip = Flip::by_checksum(&checked, checksum)?;
        // Skips length and checksum, which follow the sequence and are not part of the checksum.
        Some(flip.behind(RECORD_HEADER_BYTES - 8))
    });
    flip.map(|flip| flip.behind(offset))
}

fn split_record(bytes: &[u8]) -> Option<(Sequence, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk()?;
    record(header, rest)
}

/// The record that begins with this header, and the bytes after it.
fn record<'a>(header: &[u8; RECORD_HEADER_BYTES], rest: &'a [u8]) -> Option<(Sequence, &'a [u8], &'a [u8])> {
    let (sequence, header) = header.split_first_chunk()?;
    let (length, crc) = header.split_first_chunk()?;
    let sequence = u64::from_le_bytes(*sequence);
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (checksum(sequence, record).to_le_bytes() == *crc).then_some((sequence, record, rest))
}

fn checksum(sequence: Sequence, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sequence.to_le_bytes());
    hasher.update(record);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use disk::sim::SimDisk;

    use super::*;

    fn read(disk: &SimDisk, file: &CarriedFile) -> Result<Vec<(Sequence, Vec<u8>)>, String> {
        let mut found = Vec::new();
        file.read(disk, |sequence, record| {
            found.push((sequence, record.to_vec()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn records_are_read_by_bucket_in_order() {
        let disk = SimDisk::new(1);
        let dir = CarriedDir::of(Path::new("/data"));
        assert_eq!(dir.list(&disk).unwrap(), []);
        let mut writer = dir.writer(&disk).unwrap();
        for sequence in 5..50 {
            writer
                .push(sequence as u32 % 2 + 1, sequence, &vec![7; sequence as usize])
                .unwrap();
        }
        writer.finish().unwrap();
        drop(dir.writer(&disk).unwrap().push(9, 1, b"dropped"));
        let files = dir.list(&disk).unwrap();
        let firsts: Vec<_> = files.iter().map(|file| (file.bucket, file.first)).collect();
        assert_eq!(firsts, [(1, 6), (2, 5)]);
        let records = read(&disk, &files[0]).unwrap();
        assert!(
            records
                .iter()
                .map(|(sequence, _)| *sequence)
                .eq((6..50).step_by(2))
        );
        assert!(
            records
                .iter()
                .all(|(sequence, record)| record.len() as u64 == *sequence)
        );
        assert_eq!(read(&disk, &files[1]).unwrap().last().unwrap().0, 49);
        dir.remove_others(&disk, |_| false).unwrap();
        assert_eq!(dir.list(&disk).unwrap(), []);
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let disk = SimDisk::new(1);
        let dir = CarriedDir::of(Path::new("/data"));
        let mut writer = dir.writer(&disk).unwrap();
        for (sequence, record) in [(1, &b"one"[..]), (2, b""), (300, b"three hundred")] {
            writer.push(1, sequence, record).unwrap();
        }
        writer.finish().unwrap();
        let whole = disk.files().into_values().next().unwrap();
        assert_eq!(flip_of_carried(&whole), None);
        for bit in 0..whole.len() * 8 {
            let flip = Flip::of_bit(bit);
            let mut damaged = whole.clone();
            flip.turn(&mut damaged);
            assert_eq!(flip_of_carried(&damaged), Some(flip));
        }
    }

    #[test]
    fn damage_is_detected_at_every_offset() {
        let disk = SimDisk::new(1);
        let dir = CarriedDir::of(Path::new("/data"));
        let mut writer = dir.writer(&disk).unwrap();
        writer.push(1, 1, b"one").unwrap();
        writer.push(1, 2, b"two").unwrap();
        writer.finish().unwrap();
        let file = dir.list(&disk).unwrap().remove(0);
        let bytes = disk.files()[&file.path].len() as u64;
        for byte in 0..bytes {
            disk.flip_bit(&file.path, byte, 0);
            read(&disk, &file).unwrap_err();
            disk.flip_bit(&file.path, byte, 0);
        }
        assert_eq!(read(&disk, &file).unwrap().len(), 2);
    }
}
