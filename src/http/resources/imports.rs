//! `POST /api/buckets/{id}/import`: files of rows, as long as they are.
//!
//! CSV and NDJSON are read as they arrive. What a Parquet file holds is written at its end, so that such a file is first
//! stored in the data directory, without a name; the disk's space is its limit.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Payload, block};
use serde::Serialize;
use serde_json::{Value, json};
use tabular::{ParquetReader, TextReader, Unreadable};
use utoipa::ToSchema;

use super::data::{REPLAYED_ROWS, idempotency_key, idempotency_key_header};
use crate::error::{Detail, EntryError, ErrorExtra, ServiceError};
use crate::http::body_stream::BodyStream;
use crate::http::docs::points::BatchError;
use crate::http::endpoint::{
    AgentWriter, Call, Components, Endpoint, ImportParams, RequestBody, Written, post,
};
use crate::http::inside;
use crate::http::respond;
use crate::http::server::request_context::lift_deadline;
use crate::http::shape::Faults;
use crate::ids::ObjectId;
use crate::service::data::{Import, ImportFormat, Imported};
use crate::service::{Caller, ShardService};

/// Memory of an import: a piece of the body, a batch of rows, and what is written of it.
const MEMORY_BYTES: usize = 8 << 20;
/// Bytes of a Parquet file that are written to the disk at once.
const SPOOL_BYTES: usize = 1 << 20;

const MEDIA_TYPES: [(&str, ImportFormat); 9] = [
    ("text/csv", ImportFormat::Csv),
    ("application/csv", ImportFormat::Csv),
    ("application/x-ndjson", ImportFormat::Ndjson),
    ("application/ndjson", ImportFormat::Ndjson),
    ("application/jsonl", ImportFormat::Ndjson),
    ("application/x-jsonlines", ImportFormat::Ndjson),
    ("application/vnd.apache.parquet", ImportFormat::Parquet),
    ("application/x-parquet", ImportFormat::Parquet),
    ("application/parquet", ImportFormat::Parquet),
];

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        post("/api/buckets/{bucketId}/import", "importFile", import)
            .forwarded(|route| route.is_streamed = true)
            .reads_header(idempotency_key_header(REPLAYED_ROWS))
            .status(StatusCode::CREATED)
            .answers::<PartialImportAnswer<'static>>(StatusCode::MULTI_STATUS)
            .answers::<BatchError>(StatusCode::BAD_REQUEST),
    ]
}

/// The response to a file whose rows were all stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportAnswer {
    /// Result in words.
    message: &'static str,
    /// Number of rows stored.
    inserted_count: u64,
    /// Number of rows that are stored already, by a source that does not take points twice.
    duplicate_count: u64,
    /// Number of rows not stored.
    failed_count: u64,
}

/// The response to a file of which only some rows were stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartialImportAnswer<'a> {
    /// Result in words.
    message: &'static str,
    /// Number of rows stored.
    inserted_count: u64,
    /// Number of rows that are stored already.
    duplicate_count: u64,
    /// Number of rows not stored.
    failed_count: u64,
    /// Rows not stored, by ascending index; the first 1,000.
    errors: &'a [EntryError],
}

/// A body that the handler reads as it arrives.
struct FileBody(BodyStream);

impl RequestBody<ShardService> for FileBody {
    /// Where points would be refused, their body is not read.
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        service: &ShardService,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        service.buckets.admit()?;
        let body = BodyStream::begin(request, payload, MEMORY_BYTES)?;
        Ok(Some(FileBody(body)))
    }

    fn describe(_: &mut Components) -> Option<Value> {
        Some(json!({
            "required": true,
            "content": {"text/csv": {}, "application/x-ndjson": {}, "application/vnd.apache.parquet": {}},
        }))
    }
}

async fn import(
    call: Call<AgentWriter, (ObjectId, ImportParams), FileBody>,
) -> Result<Written<ImportAnswer>, ServiceError> {
    let Call {
        caller,
        params: (bucket_id, params),
        body: FileBody(mut body),
        service,
        request,
    } = call;
    lift_deadline(&request);
    match import_body(&request, &service, &caller, bucket_id, params, &mut body).await {
        Ok(imported) => answer(&request, &imported).await,
        Err(error) => {
            // A node that passes a file on reads the answer when it has sent all of it.
            if inside::is_inside(&request) {
                body.skip().await;
            }
            Err(error)
        }
    }
}

async fn import_body(
    request: &HttpRequest,
    service: &ShardService,
    caller: &Caller,
    bucket_id: ObjectId,
    ImportParams { format, settings }: ImportParams,
    body: &mut BodyStream,
) -> Result<Imported, ServiceError> {
    let key = idempotency_key(request)?;
    let mut import = service.begin_import(caller, bucket_id, settings, key)?;
    let read = match format.map_or_else(|| format_of(request), Ok)? {
        ImportFormat::Csv => import_text(TextReader::new(tabular::Format::Csv), body, &mut import).await,
        ImportFormat::Ndjson => {
            import_text(TextReader::new(tabular::Format::Ndjson), body, &mut import).await
        }
        ImportFormat::Parquet => {
            let directory = service.config.storage.data_dir.clone();
            let spooled = block(move || tempfile::tempfile_in(directory));
            let file = spooled.await.map_err(ServiceError::internal)?;
            import_parquet(file.map_err(ServiceError::internal)?, body, &mut import).await
        }
    };
    let imported = import.into_imported();
    match read {
        Ok(()) => Ok(imported),
        Err(error) => Err(with_count(error, &imported)),
    }
}

/// Imports a file as it arrives.
async fn import_text(
    mut reader: TextReader,
    body: &mut BodyStream,
    import: &mut Import<'_>,
) -> Result<(), ServiceError> {
    while let Some(piece) = body.next().await? {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            rest = &rest[reader.read(rest).map_err(unreadable)?..];
            if reader.rows().is_full() {
                import.store(reader.rows()).await?;
                reader.clear();
            }
        }
    }
    reader.finish().map_err(unreadable)?;
    import.finish(reader.rows()).await
}

async fn import_parquet(
    mut file: File,
    body: &mut BodyStream,
    import: &mut Import<'_>,
) -> Result<(), ServiceError> {
    let mut held = Vec::with_capacity(SPOOL_BYTES);
    loop {
        let piece = body.next().await?;
        let is_end = piece.is_none();
        held.extend_from_slice(&piece.unwrap_or_default());
        if held.len() >= SPOOL_BYTES || is_end {
            import.admit()?;
            let write = move || {
                file.write_all(&held)?;
                if is_end {
                    file.seek(SeekFrom::Start(0))?;
                }
                held.clear();
                Ok::<_, std::io::Error>((file, held))
            };
            let written = block(write).await.map_err(ServiceError::internal)?;
            (file, held) = written.map_err(no_space)?;
        }
        if is_end {
            break;
        }
    }
    let opened = block(move || ParquetReader::open(file)).await;
    let mut reader = opened.map_err(ServiceError::internal)?.map_err(unreadable)?;
    loop {
        let read = block(move || {
            let read = reader.read().map(drop);
            read.map(|()| reader)
        });
        let read = read.await;
        reader = read.map_err(ServiceError::internal)?.map_err(unreadable)?;
        if reader.rows().is_empty() {
            return import.finish(reader.rows()).await;
        }
        import.store(reader.rows()).await?;
    }
}

fn format_of(request: &HttpRequest) -> Result<ImportFormat, ServiceError> {
    let sent = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|sent| sent.to_str().ok());
    let media_type = sent
        .and_then(|sent| sent.split(';').next())
        .unwrap_or_default()
        .trim();
    let known = MEDIA_TYPES
        .iter()
        .find(|(known, _)| media_type.eq_ignore_ascii_case(known));
    known.map(|(_, format)| *format).ok_or_else(|| {
        let message = format!("is required with the Content-Type {media_type:?}: csv, ndjson or parquet");
        ServiceError::faults(vec![Detail::at(&["format"], message)])
    })
}

async fn answer(request: &HttpRequest, imported: &Imported) -> Result<Written<ImportAnswer>, ServiceError> {
    let stored = imported.inserted + imported.duplicates;
    if imported.failed > 0 && stored == 0 {
        let error = ServiceError::validation("all rows of the file failed; see errors");
        let extra = ErrorExtra::Import(imported.failed, imported.errors.clone());
        return Err(error.with_extra(Some(extra)));
    }
    let (status, body) = match imported.failed {
        0 => {
            let answer = ImportAnswer {
                message: "file imported",
                inserted_count: imported.inserted,
                duplicate_count: imported.duplicates,
                failed_count: 0,
            };
            (StatusCode::CREATED, serde_json::to_vec(&answer))
        }
        failed => {
            let answer = PartialImportAnswer {
                message: "file imported in part; see errors",
                inserted_count: imported.inserted,
                duplicate_count: imported.duplicates,
                failed_count: failed,
                errors: &imported.errors,
            };
            (StatusCode::MULTI_STATUS, serde_json::to_vec(&answer))
        }
    };
    let response = respond::respond(request, status, body.map_err(ServiceError::internal)?).await?;
    Ok(response.into())
}

/// An error in the middle of a file, with what was stored of it.
fn with_count(mut error: ServiceError, imported: &Imported) -> ServiceError {
    let stored = imported.inserted + imported.duplicates;
    if stored > 0 {
        let rows = stored + imported.failed;
        error.message = format!(
            "{}; the {rows} rows before are imported ({stored} stored)",
            error.message
        );
    }
    error
}

fn unreadable(error: Unreadable) -> ServiceError {
    ServiceError::validation(error.0)
}

fn no_space(error: std::io::Error) -> ServiceError {
    let message =
        "the disk has no room for the file; send it again later, or as CSV or NDJSON, which need none";
    ServiceError::unavailable(message, 60).caused_by(error)
}
