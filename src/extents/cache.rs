//! The cache: finds extents in its file, or has them downloaded, each by one request however many readers want it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Disk, DiskFile};
use objects::{Bytes, ObjectError, ObjectStore};
use parking_lot::Mutex;

use super::load::Load;
use super::remote_file::LOAD_EXTENTS_MAX;
use super::slots::{Extent, Slots};
use super::{EXTENT_BYTES, ExtentFigures, count};
use crate::clock::{Clock, SECOND_NS};
use crate::pools::Workers;

/// How long a reader waits for a request. The request goes on, so that a later reader finds what it brought.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long no request is made after one that failed or was too slow: readers that would wait in vain occupy the threads
/// of queries that need no object store.
const PAUSE_NS: i64 = SECOND_NS;
/// Requests under way or waiting for a thread. More are refused.
const LOADS_MAX: usize = 64;
/// Threads that wait for the object store.
const THREADS: usize = 8;

/// What a cache works on.
pub struct CacheOptions {
    pub store: Arc<dyn ObjectStore>,
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    /// Limit of the cache's file in bytes. If it is less than an extent, nothing is cached.
    pub bytes_max: u64,
}

/// A cache of extents. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct ExtentCache(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    reading: Box<dyn DiskFile>,
    writing: Mutex<Box<dyn DiskFile>>,
    state: Mutex<State>,
    workers: Workers,
    figures: Arc<ExtentFigures>,
    next_file: AtomicU64,
}

struct State {
    slots: Slots,
    /// Extents that are being downloaded.
    loading: BTreeMap<Extent, Arc<Load>>,
    /// Requests under way or waiting for a thread.
    loads: usize,
    /// No request is made before this time, in monotonic nanoseconds.
    pause_until_ns: i64,
}

/// A file that is read through the cache.
pub(super) struct Source {
    number: u64,
    object: Arc<str>,
    pub(super) bytes: u64,
}

/// Says how many extents to download from one on, of which so many are read now.
pub(super) type Ahead<'a> = &'a dyn Fn(u64, u64) -> u64;

/// Where an extent is.
enum Place {
    Slot(u64),
    Load(Arc<Load>),
}

/// Holds an extent in its slot.
struct Hold<'a> {
    state: &'a Mutex<State>,
    extent: Extent,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.state.lock().slots.put_down(self.extent);
    }
}

impl ExtentCache {
    /// Creates the cache's file, in place of one that an earlier process has left, and starts the threads.
    ///
    /// # Errors
    /// A disk error, or no thread can be started.
    pub fn create(path: &Path, options: CacheOptions) -> io::Result<Self> {
        let CacheOptions {
            store,
            disk,
            clock,
            bytes_max,
        } = options;
        match disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let writing = disk.create(path)?;
        let figures = Arc::new(ExtentFigures::default());
        figures.bytes_max.store(bytes_max, Ordering::Relaxed);
        let state = State {
            slots: Slots::new(bytes_max / EXTENT_BYTES),
            loading: BTreeMap::new(),
            loads: 0,
            pause_until_ns: i64::MIN,
        };
        Ok(ExtentCache(Arc::new(Inner {
            store,
            clock,
            reading: disk.open_read(path)?,
            writing: Mutex::new(writing),
            state: Mutex::new(state),
            workers: Workers::start("download", THREADS, || ())?,
            figures,
            next_file: AtomicU64::new(0),
        })))
    }

    /// What the cache does.
    pub fn figures(&self) -> Arc<ExtentFigures> {
        Arc::clone(&self.0.figures)
    }

    pub(super) fn source(&self, object: String, bytes: u64) -> Source {
        Source {
            number: self.0.next_file.fetch_add(1, Ordering::Relaxed),
            object: object.into(),
            bytes,
        }
    }

    /// Reads a range of a file. With `again`, what the cache holds of it is replaced by what the object store has.
    ///
    /// # Errors
    /// The object store fails, or is too slow; the message names the object.
    pub(super) fn read(
        &self,
        source: &Source,
        range: Range<u64>,
        again: bool,
        ahead: Ahead<'_>,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            let index = at / EXTENT_BYTES;
            let to = range.end.min((index + 1) * EXTENT_BYTES);
            let wanted = (range.end.div_ceil(EXTENT_BYTES) - index).max(1);
            let part = Part {
                source,
                index,
                within: at..to,
            };
            self.0.read_part(&part, wanted, again, ahead, &mut bytes)?;
            at = to;
        }
        Ok(bytes)
    }

    /// Forgets a file that nobody reads any more.
    pub(super) fn forget(&self, source: &Source) {
        let mut state = self.0.state.lock();
        state.slots.forget_file(source.number);
        self.0.note_held(&state);
    }
}

/// What is read of an extent.
struct Part<'a> {
    source: &'a Source,
    index: u64,
    /// In the file.
    within: Range<u64>,
}

impl Part<'_> {
    fn extent(&self) -> Extent {
        Extent {
            file: self.source.number,
            index: self.index,
        }
    }
}

impl Inner {
    /// Appends a part of an extent to `bytes`.
    fn read_part(
        self: &Arc<Self>,
        part: &Part<'_>,
        wanted: u64,
        again: bool,
        ahead: Ahead<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut place = self.find(part, wanted, again, ahead)?;
        if let Place::Slot(slot) = place {
            match self.read_slot(part, slot, bytes) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "the block cache cannot be read; its content is downloaded again");
                    place = self.find(part, wanted, true, ahead)?;
                }
            }
        }
        let Place::Load(load) = place else {
            return Err("BUG: an extent to be downloaded again was found".to_owned());
        };
        let object = &part.source.object;
        let Some(outcome) = load.wait(WAIT_MAX) else {
            self.pause();
            let seconds = WAIT_MAX.as_secs();
            return Err(format!(
                "the object store did not send the object {object} within {seconds} s"
            ));
        };
        let loaded = outcome?;
        let in_load = |offset: u64| (offset - load.start) as usize;
        let found = loaded.get(in_load(part.within.start)..in_load(part.within.end));
        bytes.extend_from_slice(found.ok_or_else(|| format!("the object {object} is shorter than it was"))?);
        Ok(())
    }

    fn read_slot(&self, part: &Part<'_>, slot: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let _held = Hold {
            state: &self.state,
            extent: part.extent(),
        };
        let before = bytes.len();
        let Range { start, end } = part.within;
        bytes.resize(before + (end - start) as usize, 0);
        let at = slot * EXTENT_BYTES + start % EXTENT_BYTES;
        let read = self.reading.read_exact_at(at, &mut bytes[before..]);
        read.inspect_err(|_| bytes.truncate(before))
    }

    /// Finds an extent, and holds it in its slot; or joins or begins its download. `wanted` extents from this one on are
    /// read next.
    fn find(
        self: &Arc<Self>,
        part: &Part<'_>,
        wanted: u64,
        again: bool,
        ahead: Ahead<'_>,
    ) -> Result<Place, String> {
        let extent = part.extent();
        let mut state = self.state.lock();
        if again {
            state.slots.forget(extent);
            self.note_held(&state);
        } else if let Some(slot) = state.slots.hold(extent) {
            count(&self.figures.hits, 1);
            return Ok(Place::Slot(slot));
        }
        count(&self.figures.misses, 1);
        if let Some(load) = state.loading.get(&extent) {
            return Ok(Place::Load(Arc::clone(load)));
        }
        let is_paused = self.clock.monotonic_ns() < state.pause_until_ns;
        if is_paused || state.loads >= LOADS_MAX {
            count(&self.figures.failures, 1);
            let object = &part.source.object;
            return Err(format!("the object store does not serve {object} at the moment"));
        }
        let count_max = ahead(part.index, wanted).clamp(1, LOAD_EXTENTS_MAX);
        let extents = part.source.bytes.div_ceil(EXTENT_BYTES);
        let behind = (part.index + count_max).min(extents);
        let is_missing = |index: &u64| {
            let extent = Extent {
                index: *index,
                ..extent
            };
            !state.slots.contains(extent) && !state.loading.contains_key(&extent)
        };
        let more = (part.index + 1..behind).take_while(is_missing).count() as u64;
        let load = Arc::new(Load::new(part.index * EXTENT_BYTES));
        let indexes = part.index..part.index + 1 + more;
        for index in indexes.clone() {
            state
                .loading
                .insert(Extent { index, ..extent }, Arc::clone(&load));
        }
        state.loads += 1;
        drop(state);
        let (inner, under_way) = (Arc::clone(self), Arc::clone(&load));
        let (object, file_bytes) = (Arc::clone(&part.source.object), part.source.bytes);
        self.workers.run(move || {
            let end = (indexes.end * EXTENT_BYTES).min(file_bytes);
            let loaded = inner.load(&object, &under_way, end);
            inner.end(extent.file, indexes, &under_way, loaded);
        });
        Ok(Place::Load(load))
    }

    /// Downloads extents.
    fn load(&self, object: &str, load: &Load, end: u64) -> Result<Bytes, String> {
        count(&self.figures.requests, 1);
        let loaded = self.store.get_range(object, load.start..end);
        match &loaded {
            Ok(bytes) => count(&self.figures.loaded_bytes, bytes.len() as u64),
            Err(error) => {
                count(&self.figures.failures, 1);
                tracing::warn!(%error, "blocks cannot be read from the object store");
                let is_missing = matches!(error, ObjectError::NotFound(_) | ObjectError::Short(..));
                if !is_missing {
                    self.pause();
                }
            }
        }
        loaded.map_err(|error| error.to_string())
    }

    /// Hands the outcome to the readers that wait, and writes downloaded extents to slots. A reader finds them in the
    /// download until they are there.
    fn end(&self, file: u64, indexes: Range<u64>, load: &Load, loaded: Result<Bytes, String>) {
        self.state.lock().loads -= 1;
        let extents = indexes.map(|index| Extent { file, index });
        match loaded {
            Ok(bytes) => {
                load.end(Ok(bytes.clone()));
                for extent in extents {
                    let kept = self.write(&bytes, extent.index * EXTENT_BYTES - load.start);
                    let mut state = self.state.lock();
                    if let Some(slot) = kept {
                        state.slots.fill(slot, extent);
                    }
                    state.loading.remove(&extent);
                    self.note_held(&state);
                }
            }
            Err(error) => {
                // First, so that whoever tries again makes a request of its own.
                let mut state = self.state.lock();
                extents.for_each(|extent| drop(state.loading.remove(&extent)));
                drop(state);
                load.end(Err(error));
            }
        }
    }

    /// Writes an extent, which begins at `from` in these bytes, to a slot.
    fn write(&self, bytes: &Bytes, from: u64) -> Option<u64> {
        let end = bytes.len().min((from + EXTENT_BYTES) as usize);
        let extent = bytes.get(from as usize..end)?;
        let slot = self.state.lock().slots.take()?;
        let written = self.writing.lock().write_all_at(slot * EXTENT_BYTES, extent);
        match written {
            Ok(()) => Some(slot),
            Err(error) => {
                tracing::warn!(%error, "the block cache cannot be written; blocks are downloaded each time they are read");
                self.state.lock().slots.give_back(slot);
                None
            }
        }
    }

    fn pause(&self) {
        let until_ns = self.clock.monotonic_ns().saturating_add(PAUSE_NS);
        self.state.lock().pause_until_ns = until_ns;
    }

    fn note_held(&self, state: &State) {
        let bytes = state.slots.len() * EXTENT_BYTES;
        self.figures.held_bytes.store(bytes, Ordering::Relaxed);
    }
}
