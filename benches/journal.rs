//! Benchmarks of the log:
//! - group commit: how long do waiting records take if a sync takes a millisecond?
//! - replay: how fast is the log of a crashed server replayed into its buckets?

#![expect(clippy::unwrap_used, reason = "a bench that cannot run says so by its panic")]

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use disk::{Bytes, Disk, DiskFile, StdDisk};
use engine::rows::RowsWriter;
use tempfile::TempDir;
use tidewatch::catalog::{Catalog, CatalogHandle};
use tidewatch::checkpoint::{self, Layout};
use tidewatch::journal::{
    IngestRecord, Journal, JournalHandle, JournalOptions, JournalWriter, LocalShard, ShardLog, THE_SHARD,
};
use wal::{LogOptions, SyncPolicy};

const SYNC_TIME: Duration = Duration::from_millis(1);
const BUCKET: u32 = 1;
const SECOND_NS: i64 = 1_000_000_000;
const OPTIONS: JournalOptions = JournalOptions {
    queue_bytes_max: 1 << 30,
    tail_bytes_max: 1 << 40,
};

/// The real disk with syncs of a fixed duration that have no other effect.
struct SlowDisk(StdDisk);

struct SlowFile(Box<dyn DiskFile>);

fn slow(file: io::Result<Box<dyn DiskFile>>) -> io::Result<Box<dyn DiskFile>> {
    Ok(Box::new(SlowFile(file?)))
}

impl Disk for SlowDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        slow(self.0.create(path))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        slow(self.0.open(path))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.open_read(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        self.0.map(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.remove_dir_all(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.0.len(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

impl DiskFile for SlowFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        thread::sleep(SYNC_TIME);
        Ok(())
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

fn directory() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn journal(disk: Arc<dyn Disk>, sync: SyncPolicy, data_dir: &Path) -> (JournalWriter, JournalHandle) {
    let log_dir = Layout {
        data_dir: data_dir.to_owned(),
    }
    .log_dir();
    disk.create_dir_all(&log_dir).unwrap();
    let options = LogOptions {
        sync,
        ..LogOptions::default()
    };
    let mut log = LocalShard::new(disk, log_dir, options);
    let replayed = log.replay(0, &mut |_, _| Ok(())).unwrap();
    let journal = Journal::start(log.into_log().unwrap()).unwrap();
    let catalog = CatalogHandle::new(Catalog::default());
    journal.open(THE_SHARD, replayed.tail(), catalog, OPTIONS, |_| ())
}

/// A request with rows of one source, one a second from second `first`.
fn record(first: usize, points: usize) -> IngestRecord {
    let mut rows = RowsWriter::new();
    for index in first..first + points {
        rows.begin(1);
        for (field, decimals) in [2, 1, 0].into_iter().enumerate() {
            let wave = (index as f64 / (50.0 + field as f64)).sin() * 100.0;
            let scale = 10f64.powi(decimals);
            rows.number(field as u16, (wave * scale).round() / scale, decimals as u8);
        }
        rows.commit(1_767_225_600 * SECOND_NS + index as i64 * SECOND_NS);
    }
    let mut record = IngestRecord::new(BUCKET, 0, points as u32, None, &[], |out| rows.encode(out));
    record.number(first as u64 + 1, b"000000000000000000000000");
    record
}

/// Submits the records; returns when all of them are durable.
fn commit(handle: &JournalHandle, records: impl Iterator<Item = IngestRecord>) {
    let (done, committed) = channel();
    let mut waiting = 0;
    for record in records {
        let done = done.clone();
        let completion = Box::new(move |outcome: Result<_, _>| done.send(outcome.is_ok()).unwrap());
        handle.submit_ingest(record, completion);
        waiting += 1;
    }
    assert!(committed.iter().take(waiting).all(|durable| durable));
}

fn group_commit(criterion: &mut Criterion) {
    let dir = directory();
    let (mut writer, handle) = journal(Arc::new(SlowDisk(StdDisk)), SyncPolicy::Always, dir.path());
    let mut group = criterion.benchmark_group("group commit, a sync takes 1 ms");
    for waiting in [1, 8, 64] {
        group.throughput(Throughput::Elements(waiting as u64));
        group.bench_function(format!("{waiting} waiting"), |bencher| {
            bencher.iter(|| commit(&handle, (0..waiting).map(|index| record(index, 1))));
        });
    }
    group.finish();
    writer.close().unwrap();
}

fn replay(criterion: &mut Criterion) {
    const REQUESTS: usize = 200;
    const POINTS: usize = 1_000;
    let dir = directory();
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let (mut writer, handle) = journal(Arc::clone(&disk), SyncPolicy::Never, dir.path());
    commit(
        &handle,
        (0..REQUESTS).map(|request| record(request * POINTS, POINTS)),
    );
    writer.close().unwrap();
    let layout = Layout {
        data_dir: dir.path().to_owned(),
    };
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(20);
    group.throughput(Throughput::Elements((REQUESTS * POINTS) as u64));
    group.bench_function("200 requests of 1,000 points", |bencher| {
        bencher.iter(|| {
            let opened = checkpoint::open(&disk, &layout).unwrap();
            assert_eq!(opened.recovered.points, (REQUESTS * POINTS) as u64);
        });
    });
    group.finish();
}

criterion_group!(benches, group_commit, replay);
criterion_main!(benches);
