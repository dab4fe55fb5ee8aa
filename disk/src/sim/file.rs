//! An open file of the simulated disk: implements short writes and failed syncs.

use std::io;
use std::path::PathBuf;

use super::image::{Change, FileId};
use super::{Fault, Operation, SimDisk};
use crate::DiskFile;

pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl SimFile {
    fn writable(&self) -> io::Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is open to read", self.path.display()),
        ))
    }
}

impl DiskFile for SimFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writable()?;
        let mut state = self.disk.state();
        let fault = state.operate(Operation::Write)?;
        let grown = (offset + bytes.len() as u64).saturating_sub(state.live.bytes(self.id).len() as u64);
        let free = match state.budget_bytes {
            Some(budget_bytes) => budget_bytes.saturating_sub(state.live.used_bytes()),
            None => u64::MAX,
        };
        let (written, result) = match fault {
            Some(fault @ (Fault::Io | Fault::Descriptors)) => (0, Err(fault.error())),
            Some(full @ Fault::Full { bytes: written }) => (written, Err(full.error())),
            None if grown > free => {
                let written = (bytes.len() as u64).saturating_sub(grown - free);
                (written, Err(Fault::Full { bytes: written }.error()))
            }
            None => (bytes.len() as u64, Ok(())),
        };
        let bytes = bytes[..bytes.len().min(written as usize)].to_vec();
        if !bytes.is_empty() {
            state.change(Change::Write {
                id: self.id,
                offset,
                bytes,
            });
        }
        result
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        state.alive()?;
        let bytes = state
            .live
            .bytes(self.id)
            .get(offset as usize..)
            .and_then(|bytes| bytes.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        let fault = state.operate(Operation::Sync)?;
        let id = self.id;
        match fault {
            None => {
                state.commit(|change| change.file() == Some(id));
                Ok(())
            }
            Some(fault) => {
                state.pending.retain(|change| change.file() != Some(id));
                Err(fault.error())
            }
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.writable()?;
        let mut state = self.disk.state();
        state.operate_whole(Operation::Truncate)?;
        state.change(Change::Truncate { id: self.id, len });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.alive()?;
        Ok(state.live.bytes(self.id).len() as u64)
    }
}
