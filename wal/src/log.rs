//! Appending to a log: write a group of records, sync, delete files that are no longer needed. There is one writer. A
//! sync is never retried: after a failure the log stays poisoned until it is opened again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Sequence;
use crate::check::FileReport;
use crate::create::{self, OpenFile};
use crate::error::{LogError, OpenError};
use disk::{Disk, DiskFile, is_full};

use crate::frame::{self, FRAME_BYTES_LIMIT, FrameKind, Position};
use crate::recover::{self, Recovery, Replay};

/// Capacity that the append buffer keeps between frames, so that one huge group does not hold its memory forever.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// `trim` replaces a fully covered active file only from this fraction of `file_bytes_max` on: rereading a smaller file
/// at the next start is cheaper than replacing it.
const TRIM_ACTIVE_DIVISOR: u64 = 16;

/// When [`Log::sync_if_due`] syncs the file.
///
/// The other policies than [`SyncPolicy::Always`] trade the last records before a power loss for speed. A killed process
/// loses nothing under any policy, because the writes were made. The loss is bounded: a file is synced before the next
/// one is created, and [`Log::sync`] syncs in any case. However, several frames may be unsynced at once. A disk that
/// writes them out of order can leave a state that looks like damage, which [`Log::open`] refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// With each call.
    #[default]
    Always,
    /// If the last call that synced was at least this long ago.
    Interval(Duration),
    /// Only with the first call after [`Log::open`].
    Never,
}

/// Limits of a log's files and frames, and its sync policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// When records become durable.
    pub sync: SyncPolicy,
    /// Maximum size of a file in bytes. A frame that would exceed it goes into a new file; a frame that is larger by
    /// itself gets a file of its own.
    pub file_bytes_max: u64,
    /// Maximum size of a frame in bytes, header included; at most [`FRAME_BYTES_LIMIT`].
    pub frame_bytes_max: u32,
    /// Zeros preallocated behind a small frame, in bytes, which the next frames overwrite; 0 disables this. A sync that
    /// extends a file also has to write the file's length and block map, which doubles its time; overwriting existing
    /// bytes avoids that. Large frames extend the file themselves, because there the difference does not matter.
    pub room_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            sync: SyncPolicy::Always,
            file_bytes_max: 64 << 20,
            frame_bytes_max: FRAME_BYTES_LIMIT,
            room_bytes: 256 << 10,
        }
    }
}

/// A frame counts as small if at least this many of its size fit into the preallocated room; preallocating for fewer
/// frames is not worth writing the zeros.
const ROOM_FRAMES_MIN: u64 = 8;

/// Statistics of a log since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames appended.
    pub frames: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes appended, frame headers included.
    pub bytes: u64,
    /// Successful syncs of frames.
    pub syncs: u64,
    /// Files created.
    pub files_begun: u64,
    /// Files deleted.
    pub files_dropped: u64,
}

/// A write-ahead log, owned by its only writer.
///
/// With [`SyncPolicy::Always`], at most one frame is written but not synced at any time: [`Log::append`] syncs the
/// previous frame if the caller has not. A crash can therefore tear only the last frame.
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    /// Closed files, oldest first, all synced.
    sealed: VecDeque<FileReport>,
    active: FileReport,
    file: Box<dyn DiskFile>,
    /// End of the preallocated zeros: the active file may be this long.
    room_end: u64,
    durable_sequence: Sequence,
    /// Whether the active file has bytes that are not synced.
    unsynced: bool,
    /// When [`Log::sync_if_due`] last synced; `None` before the first time.
    synced_at: Option<Instant>,
    buffer: Vec<u8>,
    counters: Counters,
    /// A newly created file that must not be used because its name could not be synced. It is removed before any other
    /// operation.
    begun: Option<PathBuf>,
    poison: Option<Arc<LogError>>,
}

impl Log {
    /// Opens the log in `dir`, which is created if missing. Passes each record after `from` to `replay`, in order, with
    /// one frame in memory at a time. All records that were passed are durable when this returns, and the log is ready
    /// for appends.
    ///
    /// `from` is the last sequence that the caller has stored elsewhere; 0 for none. A torn tail is cut off and
    /// reported in [`Recovery`]. A log that is damaged, begins after `from + 1` or ends before `from` is rejected and
    /// not modified; the caller must then discard what `replay` received.
    pub fn open<E>(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: LogOptions,
        from: Sequence,
        replay: &mut Replay<'_, E>,
    ) -> Result<(Log, Recovery), OpenError<E>> {
        let (sealed, active, recovery) = recover::recover(disk.as_ref(), dir, from, replay)?;
        let OpenFile { file, state: active } = active;
        let log = Log {
            disk,
            dir: dir.to_owned(),
            options,
            sealed: sealed.into(),
            durable_sequence: active.last_sequence,
            room_end: active.bytes,
            active,
            file,
            unsynced: false,
            synced_at: None,
            buffer: Vec::new(),
            counters: Counters::default(),
            begun: None,
            poison: None,
        };
        Ok((log, recovery))
    }

    /// Writes the records as one frame and returns the sequence of the first. They are durable, and may be
    /// acknowledged, after the next [`Log::sync`] that returns `Ok`; until then a crash keeps all or none of them. An
    /// empty slice writes nothing and returns the sequence that the next record will get.
    ///
    /// After [`LogError::Full`], [`LogError::Descriptors`] or [`LogError::FrameTooLarge`] nothing has been written and
    /// the log stays usable.
    pub fn append(&mut self, records: &[impl AsRef<[u8]>]) -> Result<Sequence, LogError> {
        self.usable()?;
        self.remove_begun()?;
        let first_sequence = self.last_sequence() + 1;
        if records.is_empty() {
            return Ok(first_sequence);
        }
        let bytes = frame::frame_bytes(records);
        let bytes_max = self.options.frame_bytes_max.min(FRAME_BYTES_LIMIT);
        if bytes > u64::from(bytes_max) {
            return Err(LogError::FrameTooLarge { bytes, bytes_max });
        }
        if self.options.sync == SyncPolicy::Always {
            self.sync()?;
        }
        if self.active.bytes + bytes > self.options.file_bytes_max && self.active.records > 0 {
            self.begin_file()?;
        }
        self.write_frame(FrameKind::Records, records)?;
        self.make_room(bytes)?;
        self.counters.records += records.len() as u64;
        Ok(first_sequence)
    }

    /// Makes all appended records durable if the sync policy says so at this time; the records may be acknowledged in
    /// any case. Fails like [`Log::sync`].
    pub fn sync_if_due(&mut self, now: Instant) -> Result<(), LogError> {
        let is_due = match (self.options.sync, self.synced_at) {
            (SyncPolicy::Always, _) | (_, None) => true,
            (SyncPolicy::Interval(interval), Some(at)) => now.saturating_duration_since(at) >= interval,
            (SyncPolicy::Never, Some(_)) => false,
        };
        if is_due {
            self.sync()?;
            self.synced_at = Some(now);
        }
        self.usable()?;
        self.durable_sequence = self.active.last_sequence;
        Ok(())
    }

    /// Makes all appended records durable, under any sync policy. Required before anything else relies on a part of the
    /// log. The first failure poisons the log: whether the records are durable is unknown until the log is opened again,
    /// and a second sync would not tell.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.usable()?;
        if self.unsynced {
            let synced = self
                .file
                .sync_data()
                .map_err(LogError::io("sync", &self.active.path));
            synced.map_err(|error| self.poison(error))?;
            self.unsynced = false;
            self.counters.syncs += 1;
        }
        self.durable_sequence = self.active.last_sequence;
        Ok(())
    }

    /// Sequence of the last record appended; 0 if there never was one.
    pub fn last_sequence(&self) -> Sequence {
        self.active.last_sequence
    }

    /// Sequence of the last record that a sync has covered, or that was left unsynced by the sync policy.
    pub fn durable_sequence(&self) -> Sequence {
        self.durable_sequence
    }

    /// Size of all log files in bytes: what a restart has to read.
    pub fn tail_bytes(&self) -> u64 {
        self.sealed.iter().map(|file| file.bytes).sum::<u64>() + self.active.bytes
    }

    /// Statistics since the log was opened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The failure that poisoned the log, if it is poisoned.
    pub fn poisoned(&self) -> Option<&Arc<LogError>> {
        self.poison.as_ref()
    }

    /// Closes the active file and creates a new one, so that a later [`Log::trim`] can delete everything appended so
    /// far. Does nothing if the active file has no records.
    pub fn rotate(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.remove_begun()?;
        if self.active.records == 0 {
            return Ok(());
        }
        self.begin_file()
    }

    /// Deletes the files whose records are all at or before `covered`, oldest first, and returns their number. The
    /// active file is kept, unless it is large and fully covered: then it is closed, replaced and deleted.
    ///
    /// A failed removal leaves the log usable; the next call tries again.
    pub fn trim(&mut self, covered: Sequence) -> Result<usize, LogError> {
        self.usable()?;
        let mut dropped = self.drop_sealed(covered)?;
        let large = self.active.bytes >= self.options.file_bytes_max / TRIM_ACTIVE_DIVISOR;
        if large && self.active.records > 0 && self.active.last_sequence <= covered {
            match self.rotate() {
                Ok(()) => dropped += self.drop_sealed(covered)?,
                // What could be deleted is deleted; the rest can wait until there is space.
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dropped)
    }

    /// Closes the log cleanly: syncs it and writes an end marker, so that later damage to the last frame can be
    /// distinguished from a torn tail. A log that is dropped without this loses only that ability.
    pub fn close(mut self) -> Result<(), LogError> {
        self.sync()?;
        self.remove_begun()?;
        self.cut_room()?;
        self.write_frame(FrameKind::Closed, &[[0_u8; 0]; 0])?;
        self.sync()
    }

    fn write_frame(&mut self, kind: FrameKind, records: &[impl AsRef<[u8]>]) -> Result<(), LogError> {
        let offset = self.active.bytes;
        let position = Position(self.active.first_sequence, offset);
        let first_sequence = self.last_sequence() + 1;
        let crc = frame::encode(&mut self.buffer, position, kind, first_sequence, records);
        let written = self.file.write_all_at(offset, &self.buffer);
        let bytes = self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        if let Err(error) = written {
            return Err(match create::passing_or_io("write", &self.active.path)(error) {
                full @ LogError::Full { .. } => self.cut_back(full),
                error => self.poison(error),
            });
        }
        self.unsynced = true;
        self.active.push_frame(offset, bytes, records.len() as u64, crc);
        self.counters.frames += 1;
        self.counters.bytes += bytes;
        Ok(())
    }

    /// Appends zeros behind a small frame when the preallocated room is used up. They become durable together with the
    /// frame; a crash leaves zeros or a shorter file.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), LogError> {
        let end = self.active.bytes;
        if end <= self.room_end {
            return Ok(());
        }
        self.room_end = end;
        let LogOptions {
            room_bytes,
            file_bytes_max,
            ..
        } = self.options;
        if frame_bytes > room_bytes / ROOM_FRAMES_MIN || end >= file_bytes_max {
            return Ok(());
        }
        let room_bytes = room_bytes.min(file_bytes_max - end);
        self.room_end = end + room_bytes;
        match self.file.write_all_at(end, &vec![0; room_bytes as usize]) {
            // On a full disk, the next frames extend the file as long as there is any space.
            Err(error) if !is_full(&error) => {
                Err(self.poison(LogError::io("write", &self.active.path)(error)))
            }
            _ => Ok(()),
        }
    }

    /// Truncates the preallocated zeros, so that the file ends with its last frame once it is synced.
    fn cut_room(&mut self) -> Result<(), LogError> {
        if self.room_end > self.active.bytes {
            let path = &self.active.path;
            let cut = self
                .file
                .truncate(self.active.bytes)
                .map_err(LogError::io("truncate", path));
            cut.map_err(|error| self.poison(error))?;
            self.room_end = self.active.bytes;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Truncates, durably, what a full disk accepted of a frame, before anything else is written there.
    fn cut_back(&mut self, full: LogError) -> LogError {
        let path = &self.active.path;
        self.room_end = self.active.bytes;
        let cut = self
            .file
            .truncate(self.active.bytes)
            .map_err(LogError::io("truncate", path));
        match cut.and_then(|()| self.file.sync_data().map_err(LogError::io("sync", path))) {
            Ok(()) => full,
            Err(error) => self.poison(error),
        }
    }

    /// Creates the file for the next record. The active file is trimmed to its last frame and synced before the new one
    /// exists.
    fn begin_file(&mut self) -> Result<(), LogError> {
        self.cut_room()?;
        self.sync()?;
        let begun = create::create_file(
            self.disk.as_ref(),
            &self.dir,
            self.last_sequence() + 1,
            self.active.predecessor(),
            &mut self.begun,
        );
        let OpenFile { file, state } = begun.map_err(|error| self.poison_unless_passing(error))?;
        self.file = file;
        self.room_end = state.bytes;
        self.sealed.push_back(std::mem::replace(&mut self.active, state));
        self.counters.files_begun += 1;
        Ok(())
    }

    /// Removes, durably, the last created file if it could not be used. If it still existed after a crash, it would
    /// follow records that were added to its predecessor in the meantime.
    fn remove_begun(&mut self) -> Result<(), LogError> {
        let Some(path) = &self.begun else { return Ok(()) };
        let removed = create::remove_file(self.disk.as_ref(), &self.dir, path);
        removed.map_err(|error| self.poison_unless_passing(error))?;
        self.begun = None;
        Ok(())
    }

    /// Deletes files one by one and makes each removal durable before the next, so that no crash can leave a gap.
    fn drop_sealed(&mut self, covered: Sequence) -> Result<usize, LogError> {
        let mut dropped = 0;
        while let Some(file) = self.sealed.front().filter(|file| file.last_sequence <= covered) {
            match self.disk.remove(&file.path) {
                // An earlier call removed it and then failed.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(LogError::io("remove", &file.path))?,
            }
            let synced = self
                .disk
                .sync_dir(&self.dir)
                .map_err(create::descriptors_or_io("sync", &self.dir));
            // After an error that passes, the next call continues with this file.
            synced.map_err(|error| self.poison_unless_passing(error))?;
            self.sealed.pop_front();
            self.counters.files_dropped += 1;
            dropped += 1;
        }
        Ok(dropped)
    }

    fn usable(&self) -> Result<(), LogError> {
        match &self.poison {
            None => Ok(()),
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
        }
    }

    fn poison_unless_passing(&mut self, error: LogError) -> LogError {
        if error.is_passing() {
            error
        } else {
            self.poison(error)
        }
    }

    /// Records the first failure and returns an error that refers to it.
    fn poison(&mut self, error: LogError) -> LogError {
        let cause = self.poison.get_or_insert_with(|| Arc::new(error)).clone();
        LogError::Poisoned { cause }
    }
}
