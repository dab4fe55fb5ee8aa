//! The machine and the latency of its disk: figures of two runs are comparable only if these agree.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use crate::Outcome;
use crate::server::data_root;
use crate::table::quantile;

/// Number of measured syncs.
const SYNCS: u64 = 300;
const SYNC_BYTES: usize = 4_096;

pub fn describe() -> Outcome<()> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cores = std::thread::available_parallelism()?;
    let model = model.map_or("of unknown model", |(_, model)| model.trim());
    println!(
        "machine   {cores} cores, {model}, Linux {}",
        fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()
    );
    println!("load      {}", fs::read_to_string("/proc/loadavg")?.trim());
    println!("{}", disk_floor()?);
    Ok(())
}

/// Latency of writing and syncing 4 KiB, measured now.
pub fn disk_floor() -> Outcome<String> {
    let dir = data_root()?;
    let file = File::create(dir.path().join("floor"))?;
    let mut took_ms = Vec::new();
    for index in 0..SYNCS {
        file.write_all_at(&[index as u8; SYNC_BYTES], index * SYNC_BYTES as u64)?;
        let started = Instant::now();
        file.sync_data()?;
        took_ms.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let (half, most) = (quantile(&mut took_ms, 0.5), quantile(&mut took_ms, 0.99));
    Ok(format!(
        "disk      write 4 KiB + fdatasync: p50 {half:.2} ms, p99 {most:.2} ms"
    ))
}
