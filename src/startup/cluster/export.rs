//! `tidewatch cluster export`: a shard of a cluster becomes the data directory of a server on one machine.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, StdDisk};
use log_store::{LogStore, Node, Postgres, Shard, ShardRow, Timeouts};
use wal::{Log, LogOptions, Sequence};

use super::Failure;
use crate::backup;
use crate::checkpoint::{Layout, Restoring};
use crate::config::ClusterConfig;
use crate::remote;

/// Records of one frame of the new log.
const FRAME_RECORDS: usize = 256;
/// Bytes of one frame, unless a single record is larger.
const FRAME_BYTES: usize = 1 << 20;

/// What was exported.
pub struct Exported {
    /// The last record.
    pub last: Sequence,
    /// Records that were in the log store only.
    pub records: u64,
}

/// Copies a shard that no node owns to a directory that is empty or does not exist: its last checkpoint, and the log after
/// it. The shard stays in the cluster.
///
/// # Errors
/// A node owns the shard, or has owned it meanwhile; the directory is not empty; an object is damaged; the stores do not
/// answer. Then nothing is left in the directory.
pub fn export(config: &ClusterConfig, shard: u16, data_dir: &Path) -> Result<Exported, Failure> {
    let shard = Shard(shard);
    let url = config.log.as_deref().unwrap_or_default();
    let mut store = Postgres::new(url, Timeouts::default())?;
    remove_dead_owner(&mut store, shard)?;
    let before = unowned(&mut store, shard)?;
    let objects = super::open_objects(config, &store.cluster()?)?;
    let _lock = backup::take_empty(data_dir)?;
    let (disk, layout) = (StdDisk, Layout::of(data_dir));
    let mut copy = || -> Result<Exported, Failure> {
        if let Some(root) = &before.root {
            remote::fetch(&*objects, shard.0, root, &disk, &layout)?;
        }
        let exported = copy_log(&mut store, &before, &layout)?;
        // A node that has owned it meanwhile may have written more.
        if unowned(&mut store, shard)?.epoch != before.epoch {
            return Err("a node has opened the shard meanwhile; stop all nodes before".into());
        }
        Ok(exported)
    };
    let restoring = Restoring::begin(&disk, &layout)?;
    let exported = copy().inspect_err(|_| Restoring::discard(&disk, &layout))?;
    restoring.finish()?;
    Ok(exported)
}

/// Removes the shard's owner if it does not renew its lease, as another node would: all nodes may have been killed.
fn remove_dead_owner(store: &mut Postgres, shard: Shard) -> Result<(), Failure> {
    let (row, Some(owner)) = owner(store, shard)? else {
        return Ok(());
    };
    std::thread::sleep(owner.lease);
    // Fails if the node has renewed it meanwhile.
    if store.remove(owner.id, owner.beat)? {
        // It may only be frozen: from now on it writes nothing more.
        store.release(shard, row.epoch)?;
    }
    Ok(())
}

/// The row of a shard that no node owns.
fn unowned(store: &mut Postgres, shard: Shard) -> Result<ShardRow, Failure> {
    match owner(store, shard)? {
        (row, None) => Ok(row),
        (_, Some(owner)) => Err(format!(
            "the node at {} owns shard {shard}; stop all nodes before",
            owner.address
        )
        .into()),
    }
}

/// A shard, and the node that owns it.
fn owner(store: &mut Postgres, shard: Shard) -> Result<(ShardRow, Option<Node>), Failure> {
    let (nodes, rows) = (store.nodes()?, store.shards()?);
    let row = rows.into_iter().find(|row| row.shard == shard);
    let row = row.ok_or_else(|| format!("the cluster has no shard {shard}"))?;
    let owner = nodes.into_iter().find(|node| Some(node.id) == row.node);
    Ok((row, owner))
}

/// Writes the records behind the checkpoint to a new log.
fn copy_log(store: &mut Postgres, row: &ShardRow, layout: &Layout) -> Result<Exported, Failure> {
    let (disk, dir): (Arc<dyn Disk>, _) = (Arc::new(StdDisk), layout.log_dir());
    wal::begin(&*disk, &dir, row.covered + 1)?;
    let none = &mut |_, _: &[u8]| Ok::<(), Failure>(());
    let opened = Log::open(disk, &dir, LogOptions::default(), row.covered, none);
    let (mut log, _) = opened.map_err(|error| error.to_string())?;
    let (mut frame, mut bytes): (Vec<Vec<u8>>, _) = (Vec::new(), 0);
    let mut each = |_, record: &[u8]| -> Result<(), Failure> {
        if frame.len() == FRAME_RECORDS || (bytes > 0 && bytes + record.len() > FRAME_BYTES) {
            log.append(&frame)?;
            frame.clear();
            bytes = 0;
        }
        bytes += record.len();
        frame.push(record.to_vec());
        Ok(())
    };
    let replayed = store.replay(row.shard, row.epoch, row.covered, &mut each)?;
    log.append(&frame)?;
    log.sync()?;
    log.close()?;
    Ok(Exported {
        last: replayed.last,
        records: replayed.records,
    })
}
