//! The log as its one writer sees it: append a group, sync, drop what is covered. Knows nothing of what the
//! records mean; never retries a sync; after a failure it stays poisoned until it is opened again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Sequence;
use crate::create::{self, OpenFile};
use crate::disk::{Disk, DiskFile, is_full};
use crate::error::{LogError, OpenError};

use crate::frame::{self, FRAME_BYTES_LIMIT, FrameKind, Position};
use crate::recover::{self, Recovered, Recovery, Replay};
use crate::walk::FileState;

/// Capacity the append buffer keeps between frames: a rare huge group must not hold its memory for good.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// A wholly covered active file is begun anew by `trim` from this part of `file_bytes_max` on: smaller ones
/// are cheaper to read again than to replace.
const TRIM_ACTIVE_DIVISOR: u64 = 16;

/// Bounds of a log's files and frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// A new file is begun when a frame would make the active one larger, in bytes. A larger frame gets a
    /// file of its own.
    pub file_bytes_max: u64,
    /// Bytes of one frame, header included; at most [`FRAME_BYTES_LIMIT`].
    pub frame_bytes_max: u32,
    /// Zeros written behind a small frame, in bytes, for the next frames to be written over; 0 for none. A sync that
    /// lengthens a file has its length and place to write too, which takes twice the time; where the bytes are there
    /// already it has only these. Large frames lengthen the file themselves: there it does not show.
    pub room_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            file_bytes_max: 64 << 20,
            frame_bytes_max: FRAME_BYTES_LIMIT,
            room_bytes: 256 << 10,
        }
    }
}

/// A frame is small when so many fit into the room: fewer would not be worth the zeros.
const ROOM_FRAMES_MIN: u64 = 8;

/// What a log has written since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames appended.
    pub frames: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes appended, frame headers included.
    pub bytes: u64,
    /// Syncs of frames that succeeded.
    pub syncs: u64,
    /// Files begun.
    pub files_begun: u64,
    /// Files dropped.
    pub files_dropped: u64,
}

/// A log, owned by its one writer.
///
/// At most one frame is ever written and not yet synced: [`Log::append`] syncs the one before when the
/// caller has not. That is why a crash can only tear the last frame.
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    /// Sealed files, oldest first, all synced.
    sealed: VecDeque<FileState>,
    active: FileState,
    file: Box<dyn DiskFile>,
    /// The active file may be this long, with zeros behind its frames.
    room_end: u64,
    durable_sequence: Sequence,
    /// Whether the active file has bytes that no sync has covered.
    unsynced: bool,
    buffer: Vec<u8>,
    counters: Counters,
    /// A file that was begun and is not to be used, for its name could not be synced: it goes before anything else.
    begun: Option<PathBuf>,
    poison: Option<Arc<LogError>>,
}

impl Log {
    /// Reads the log in `dir` (made when missing), hands each record after `from` to `replay`, in order,
    /// one frame in memory at a time, and is then ready to append. Everything handed over is durable when
    /// this returns.
    ///
    /// `from` is the last sequence the caller has elsewhere; 0 for none. A torn tail is cut off and told in
    /// [`Recovery`]. A log that is damaged, begins after `from + 1` or ends before `from` is refused and
    /// left as it is; what `replay` got until then has to be thrown away.
    pub fn open<E>(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: LogOptions,
        from: Sequence,
        replay: &mut Replay<'_, E>,
    ) -> Result<(Log, Recovery), OpenError<E>> {
        let Recovered {
            sealed,
            active,
            file,
            recovery,
        } = recover::recover(disk.as_ref(), dir, from, replay)?;
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
            buffer: Vec::new(),
            counters: Counters::default(),
            begun: None,
            poison: None,
        };
        Ok((log, recovery))
    }

    /// Writes the records as one frame and answers the sequence of the first. They are durable, and may be
    /// acknowledged, after the next [`Log::sync`] that returns `Ok`; until then a crash keeps all or none
    /// of them. No records write nothing and answer the sequence the next one will get.
    ///
    /// After [`LogError::Full`], [`LogError::Descriptors`] or [`LogError::FrameTooLarge`] nothing was written and the log
    /// stays usable.
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
        self.sync()?;
        if self.active.bytes + bytes > self.options.file_bytes_max && self.active.records > 0 {
            self.begin_file()?;
        }
        self.write_frame(FrameKind::Records, records)?;
        self.make_room(bytes)?;
        self.counters.records += records.len() as u64;
        Ok(first_sequence)
    }

    /// Makes all appended records durable. The first failure poisons the log: whether they are durable is
    /// then unknown until it is opened again, and asking the disk twice would not tell.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.usable()?;
        if self.unsynced {
            let synced = self
                .file
                .sync_data()
                .map_err(LogError::io("sync", &self.active.path));
            synced.map_err(|error| self.poison(error))?;
            self.unsynced = false;
            self.durable_sequence = self.active.last_sequence;
            self.counters.syncs += 1;
        }
        Ok(())
    }

    /// Sequence of the last record appended; 0 for none ever.
    pub fn last_sequence(&self) -> Sequence {
        self.active.last_sequence
    }

    /// Sequence of the last record known to be durable.
    pub fn durable_sequence(&self) -> Sequence {
        self.durable_sequence
    }

    /// Bytes of all live log files: what a restart has to read.
    pub fn tail_bytes(&self) -> u64 {
        self.sealed.iter().map(|file| file.bytes).sum::<u64>() + self.active.bytes
    }

    /// What was written since the log was opened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The first failure, when the log takes no more records.
    pub fn poisoned(&self) -> Option<&Arc<LogError>> {
        self.poison.as_ref()
    }

    /// Seals the active file and begins a new one, so that a later [`Log::trim`] can drop all that was
    /// appended until now. Does nothing when the active file has no records.
    pub fn rotate(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.remove_begun()?;
        if self.active.records == 0 {
            return Ok(());
        }
        self.begin_file()
    }

    /// Drops the files whose records are all at or before `covered`, oldest first, and answers how many.
    /// The active file stays, but is sealed and dropped when it is large and wholly covered.
    ///
    /// A failed removal leaves the log usable; the next call tries again.
    pub fn trim(&mut self, covered: Sequence) -> Result<usize, LogError> {
        self.usable()?;
        let mut dropped = self.drop_sealed(covered)?;
        let large = self.active.bytes >= self.options.file_bytes_max / TRIM_ACTIVE_DIVISOR;
        if large && self.active.records > 0 && self.active.last_sequence <= covered {
            match self.rotate() {
                Ok(()) => dropped += self.drop_sealed(covered)?,
                // What could be dropped was; the rest can wait for room.
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dropped)
    }

    /// Ends the log in order: syncs it and marks the end, so that later damage to its last frame can be
    /// told from a torn tail. A log that is only dropped loses nothing but that.
    pub fn close(mut self) -> Result<(), LogError> {
        self.sync()?;
        self.remove_begun()?;
        self.cut_room()?;
        self.write_frame(FrameKind::Closed, &[[0_u8; 0]; 0])?;
        self.sync()
    }

    fn write_frame(&mut self, kind: FrameKind, records: &[impl AsRef<[u8]>]) -> Result<(), LogError> {
        let offset = self.active.bytes;
        let position = Position {
            file_first_sequence: self.active.first_sequence,
            offset,
        };
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

    /// Writes zeros behind a small frame that has used up the room. They become durable with the frame; what a crash
    /// leaves of them is zeros, or a shorter file.
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
            // Then the next frames lengthen the file as long as there is any space.
            Err(error) if !is_full(&error) => {
                Err(self.poison(LogError::io("write", &self.active.path)(error)))
            }
            _ => Ok(()),
        }
    }

    /// Cuts off the room, so that nothing stands behind the last frame once the file is synced.
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

    /// Cuts off what a full disk took of a frame, durably, before anything else is written there.
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

    /// Begins the file for the next record. The active one is whole and synced; it ends with its last frame before the
    /// next one is there.
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
        let OpenFile { file, state } = match begun {
            Ok(begun) => begun,
            Err(passing) if passing.is_passing() => return Err(passing),
            Err(error) => return Err(self.poison(error)),
        };
        self.file = file;
        self.room_end = state.bytes;
        self.sealed.push_back(std::mem::replace(&mut self.active, state));
        self.counters.files_begun += 1;
        Ok(())
    }

    /// Removes the file that was begun last, durably, where it could not be used. Were it there after a crash, it would
    /// stand behind records that its predecessor got meanwhile.
    fn remove_begun(&mut self) -> Result<(), LogError> {
        let Some(path) = &self.begun else { return Ok(()) };
        match create::remove_file(self.disk.as_ref(), &self.dir, path) {
            Ok(()) => {
                self.begun = None;
                Ok(())
            }
            Err(passing) if passing.is_passing() => Err(passing),
            Err(error) => Err(self.poison(error)),
        }
    }

    /// One by one, each made durable before the next goes, so that no crash can leave a hole.
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
            match synced {
                // The next call goes on with this file.
                Err(passing) if passing.is_passing() => return Err(passing),
                synced => synced.map_err(|error| self.poison(error))?,
            }
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

    /// Keeps the first failure and answers it.
    fn poison(&mut self, error: LogError) -> LogError {
        let cause = self.poison.get_or_insert_with(|| Arc::new(error)).clone();
        LogError::Poisoned { cause }
    }
}
