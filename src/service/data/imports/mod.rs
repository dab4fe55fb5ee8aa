//! Rows of files (contract 13). Each batch of rows is stored as the entries of an agent are: a file is as long as it
//! likes, and what was stored before it broke off stays.
//!
//! With an idempotency key each batch has a key of its own, made of the key and the batch's place in the file: a file that
//! is sent again is stored once, wherever the first try ended.

mod columns;
mod row;

use std::cell::RefCell;
use std::sync::Arc;

use sha2::Digest as _;
use tabular::Rows;

use super::idempotency::Digests;
use super::writers::{EntrySink, Written};
use crate::catalog::{Bucket, Source, names};
use crate::error::{Detail, EntryError, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{OPEN_NAME_CHARS_MAX, REFUSALS_SHOWN_MAX};
use crate::service::concurrency::Place;
use crate::service::{Caller, Service};
use columns::Columns;
use row::RowWriter;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// RFC 4180, with a header line.
    Csv,
    /// A flat JSON object on each line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

names!(ImportFormat: Csv => "csv", Ndjson => "ndjson", Parquet => "parquet");

/// The unit of times that are numbers: nanoseconds of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochUnit(pub i64);

/// What a request says of a file.
#[derive(Clone, Debug, Default)]
pub struct ImportSettings {
    /// The source, by its id or name.
    pub source: String,
    /// The column with the time; otherwise `timestamp`, otherwise `time`.
    pub time: Option<String>,
    /// Columns that are dimensions.
    pub dimensions: Vec<String>,
    /// The unit of times that are numbers. Without it, times are ISO 8601.
    pub unit: Option<EpochUnit>,
}

/// What became of the rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of rows that are stored.
    pub inserted: u64,
    /// Number of rows that are there already.
    pub duplicates: u64,
    /// Number of rows that are refused.
    pub failed: u64,
    /// The first refused rows.
    pub errors: Vec<EntryError>,
}

/// A file that is being imported.
pub struct Import<'a> {
    service: &'a Service,
    caller: &'a Caller,
    bucket: Arc<Bucket>,
    settings: ImportSettings,
    key: Option<&'a [u8]>,
    /// Rows and batches that were stored.
    rows: u64,
    batches: u64,
    imported: Imported,
    /// The source that the rows of an export name.
    exported_source: Option<Box<str>>,
    _place: Place,
}

impl Service {
    /// Begins to import a file. `key`: the request's idempotency key.
    ///
    /// # Errors
    /// 403, 404; 503 if the organization has too many imports in progress.
    pub fn begin_import<'a>(
        &'a self,
        caller: &'a Caller,
        bucket_id: ObjectId,
        settings: ImportSettings,
        key: Option<&'a [u8]>,
    ) -> Result<Import<'a>, ServiceError> {
        let bucket = self.bucket(caller, bucket_id)?;
        let import = Import {
            service: self,
            caller,
            bucket,
            settings,
            key,
            rows: 0,
            batches: 0,
            imported: Imported::default(),
            exported_source: None,
            _place: self.imports.enter(caller.organization_id)?,
        };
        import.target()?;
        Ok(import)
    }
}

impl Import<'_> {
    /// The source and its name; `None` for one that has to be created.
    fn target(&self) -> Result<(String, Option<Arc<Source>>), ServiceError> {
        let named = self.settings.source.trim();
        let bucket_id = self.bucket.id;
        let fault = |message: String| ServiceError::faults(vec![Detail::at(&["source"], message)]);
        if named.is_empty() {
            return Err(fault("must be the name or id of a data source".to_owned()));
        }
        if named.chars().count() > OPEN_NAME_CHARS_MAX {
            return Err(fault(format!(
                "must have at most {OPEN_NAME_CHARS_MAX} characters"
            )));
        }
        self.service.catalog.read(|catalog| {
            let id = named.parse::<ObjectId>().ok();
            let by_id = id.and_then(|id| catalog.source(id).filter(|source| source.bucket_id == bucket_id));
            let source = by_id
                .or_else(|| catalog.source_by_name(bucket_id, named))
                .cloned();
            match (source, id) {
                (Some(source), _) => Ok((source.name.to_string(), Some(source))),
                (None, Some(_)) => Err(ServiceError::not_found("data source")),
                (None, None) => Ok((named.to_owned(), None)),
            }
        })
    }

    /// Whether the server takes points now.
    ///
    /// # Errors
    /// 503 if it does not, as when the disk is full.
    pub fn admit(&self) -> Result<(), ServiceError> {
        self.service.buckets.admit()
    }

    /// Stores the last rows of a file. A file without rows has columns nevertheless, but for NDJSON: they are checked.
    ///
    /// # Errors
    /// As [`Import::store`]; also 400 for the columns of a file without rows.
    pub async fn finish(&mut self, rows: &Rows) -> Result<(), ServiceError> {
        if rows.is_empty() && self.batches == 0 && rows.columns().len() > 0 {
            return self.check(&Columns::of(rows, &self.settings)?, rows);
        }
        self.store(rows).await
    }

    /// Stores a batch of rows, as far as they are valid.
    ///
    /// # Errors
    /// 400 for columns that are not there, at the first batch; 403, 404, 503: then nothing of the batch is stored.
    pub async fn store(&mut self, rows: &Rows) -> Result<(), ServiceError> {
        if rows.is_empty() {
            return Ok(());
        }
        let columns = Columns::of(rows, &self.settings)?;
        if self.batches == 0 {
            self.check(&columns, rows)?;
        }
        // What makes a batch what it is: its rows, and what the request says of them.
        let digests = self.key.map(|key| {
            Digests::of_part(key, self.batches, |digest| {
                digest.update(format!("{:?}", self.settings).as_bytes());
                rows.digest(|bytes| digest.update(bytes));
            })
        });
        let exported_source = RefCell::new(self.exported_source.take());
        let parse = |sink: &mut EntrySink<'_>| {
            let (name, source) = self.target()?;
            let mut exported_source = exported_source.borrow_mut();
            let schema = source.as_ref().map(|source| &*source.schema);
            let mut writer =
                RowWriter::new(&columns, &name, schema, self.settings.unit, &mut exported_source);
            for (index, row) in (0..).zip(rows.iter()) {
                if let Err(reason) = writer.write(index, &row, sink) {
                    sink.refuse_entry(index, reason);
                }
            }
            Ok(())
        };
        let bytes = rows.text_bytes();
        let bucket = Arc::clone(&self.bucket);
        let written = self
            .service
            .write_entries_once(self.caller, bucket, bytes, digests, parse)
            .await?;
        self.exported_source = exported_source.into_inner();
        self.add(rows, written);
        Ok(())
    }

    fn check(&self, columns: &Columns, rows: &Rows) -> Result<(), ServiceError> {
        columns.check(rows, self.target()?.1.as_deref())
    }

    fn add(&mut self, rows: &Rows, written: Written) {
        self.imported.inserted += written.values.saturating_sub(written.duplicates);
        self.imported.duplicates += written.duplicates;
        self.imported.failed += written.refused;
        let room = REFUSALS_SHOWN_MAX.saturating_sub(self.imported.errors.len());
        let refusals = written.refusals.into_iter().take(room);
        self.imported
            .errors
            .extend(refusals.map(|(entry, error)| EntryError {
                index: u32::try_from(self.rows + u64::from(entry)).unwrap_or(u32::MAX),
                line: rows.line(entry as usize),
                error,
            }));
        self.rows += rows.len() as u64;
        self.batches += 1;
    }

    /// What became of the rows so far.
    pub fn into_imported(self) -> Imported {
        self.imported
    }
}
