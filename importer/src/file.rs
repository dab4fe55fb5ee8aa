//! Imports a whole file.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;

use crate::parts::{Parts, Uncut, lines_of};
use crate::progress::Progress;
use crate::send::{Answer, Body, Target};
use crate::{Counts, Format, ImportError, Watcher};

/// Refused rows that are shown of a file.
const SHOWN_MAX: u64 = 20;

/// Imports a file, from where the last import of it to the same target has ended.
///
/// # Errors
/// The file cannot be read; the service refuses it, or does not answer for minutes.
pub async fn import_file(
    path: &Path,
    format: Option<Format>,
    target: &Target,
    watcher: &mut dyn Watcher,
) -> Result<Counts, ImportError> {
    let of_name = || Format::of(path.extension()?.to_str()?);
    let format = format
        .or_else(of_name)
        .ok_or_else(|| ImportError::Format(path.to_owned()))?;
    let failed = |cause| ImportError::File {
        path: path.to_owned(),
        cause,
    };
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mut progress = Progress::of(path, &metadata, &target.describe(format)).map_err(failed)?;
    if progress.bytes > 0 {
        watcher.note(&format!("going on behind row {}", progress.rows));
    }
    // Without a note, an import that is interrupted would store rows of a source that keeps duplicates twice.
    progress.note(path).map_err(failed)?;
    if format == Format::Parquet {
        let answer = target
            .send(format, &progress.id, &Body::File(path.to_owned()), watcher)
            .await?;
        add(&mut progress, &answer, metadata.len(), 0, watcher);
    } else {
        let header = match format {
            Format::Csv => header_of(&mut file, path)?,
            _ => Vec::new(),
        };
        if progress.bytes == 0 {
            progress.bytes = header.len() as u64;
            progress.lines = lines_of(&header);
        }
        watcher.at(progress.bytes, progress.size);
        file.seek(SeekFrom::Start(progress.bytes)).map_err(failed)?;
        let mut parts = Parts::new(&mut file, format);
        let mut is_first = progress.rows == 0;
        loop {
            let part = match parts
                .next()
                .map_err(|uncut| unreadable(uncut, path, progress.bytes))?
            {
                Some(part) => part,
                // The service says what is wrong with a file without rows.
                None if is_first => Vec::new(),
                None => break,
            };
            is_first = false;
            let key = format!("{}-{}", progress.id, progress.bytes);
            let body = Body::Part(Bytes::from([&header[..], &part[..]].concat()));
            let answer = target.send(format, &key, &body, watcher).await?;
            let header_lines = lines_of(&header);
            add(&mut progress, &answer, part.len() as u64, header_lines, watcher);
            progress.lines += lines_of(&part);
            progress.note(path).map_err(failed)?;
            watcher.at(progress.bytes, progress.size);
            if part.is_empty() {
                break;
            }
        }
    }
    watcher.at(progress.size, progress.size);
    Progress::forget(path).map_err(failed)?;
    Ok(progress.counts)
}

fn header_of(file: &mut File, path: &Path) -> Result<Vec<u8>, ImportError> {
    let header = Parts::new(file, Format::Csv).row();
    Ok(header
        .map_err(|uncut| unreadable(uncut, path, 0))?
        .unwrap_or_default())
}

/// Adds what was answered to a part of so many bytes. `header_lines`: lines that stood before the part's own.
fn add(progress: &mut Progress, answer: &Answer, bytes: u64, header_lines: u64, watcher: &mut dyn Watcher) {
    let counts = answer.counts();
    let shown = SHOWN_MAX.saturating_sub(progress.counts.failed) as usize;
    for error in answer.errors.iter().take(shown) {
        let row = progress.rows + error.index;
        let place = match error.line {
            Some(line) => format!("line {}", progress.lines + line - header_lines.min(line)),
            None => format!("row {row}"),
        };
        watcher.refused(&format!("{place}: {}", error.error));
    }
    progress.bytes += bytes;
    progress.rows += counts.inserted + counts.duplicates + counts.failed;
    progress.counts.inserted += counts.inserted;
    progress.counts.duplicates += counts.duplicates;
    progress.counts.failed += counts.failed;
}

fn unreadable(uncut: Uncut, path: &Path, at: u64) -> ImportError {
    match uncut {
        Uncut::Io(cause) => ImportError::File {
            path: path.to_owned(),
            cause,
        },
        Uncut::Row => ImportError::Row {
            path: path.to_owned(),
            at,
        },
    }
}
