//! Routes of protocols that agents already speak (contract 13): InfluxDB line protocol, Prometheus remote write, OTLP.
//!
//! They take the key in the ways in which agents send it, and find their bucket by it or by name. Each protocol says in its
//! own way which entries were refused; the others are durable when the answer is sent.

use std::cell::Cell;
use std::fmt::Write;

use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use actix_web::web::Payload;
use protocols::Unreadable;
use protocols::line::{self, Dialect, Precision};
use protocols::otlp::{self, Encoding, PartialSuccess};
use protocols::remote_write::{self, Version};
use serde_json::{Value, json};

use crate::error::{Detail, ErrorExtra, ErrorKind, SamplesWritten, ServiceError};
use crate::http::body::{self, Body};
use crate::http::endpoint::{
    AgentWriter, Anyone, BucketParam, Call, Components, Endpoint, PrecisionParam, RequestBody, get, post,
};
use crate::http::error::write_samples_written;
use crate::http::shape::Faults;
use crate::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use crate::service::ShardService;
use crate::service::data::{EntrySink, Written};

/// What clients of InfluxDB take the server for: the last version of 1.x that has both of its write routes.
const INFLUXDB_VERSION: &str = "1.8.10";
const INFLUXDB_VERSION_HEADER: &str = "X-Influxdb-Version";

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        post("/write", "writeLines", write_lines_v1)
            .status(StatusCode::NO_CONTENT)
            .of_types(&[])
            .errors_with_code(),
        post("/api/v2/write", "writeLinesV2", write_lines_v2)
            .status(StatusCode::NO_CONTENT)
            .of_types(&[])
            .errors_with_code(),
        get("/ping", "ping", ping)
            .status(StatusCode::NO_CONTENT)
            .of_types(&[]),
        post("/query", "createDatabase", create_database).of_types(&[JSON]),
        post("/api/v1/write", "remoteWrite", remote_write_samples)
            .status(StatusCode::NO_CONTENT)
            .of_types(&[])
            .errors_with_counts(),
        post("/v1/metrics", "writeMetrics", write_metrics).of_types(&[JSON, PROTOBUF]),
    ]
}

/// The body of an agent's request, decompressed if it is gzip or zstd.
struct AgentBody<const TYPE: char>(Body);

/// Lines.
type Lines = AgentBody<'l'>;
/// A message of OTLP.
type Metrics = AgentBody<'m'>;
/// A form.
type Form = AgentBody<'f'>;

impl<const TYPE: char> RequestBody<ShardService> for AgentBody<TYPE> {
    /// Where points would be refused, their body is not read.
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        service: &ShardService,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let (admitted, bytes_max) = match TYPE {
            'f' => (Ok(()), BODY_BYTES_MAX),
            _ => (service.buckets.admit(), BATCH_BODY_BYTES_MAX),
        };
        let body = body::read(admitted, request, payload, bytes_max).await?;
        Ok(Some(Self(body)))
    }

    fn describe(_: &mut Components) -> Option<Value> {
        let media_types: &[&str] = match TYPE {
            'l' => &["text/plain"],
            'm' => &[JSON, PROTOBUF],
            _ => &["application/x-www-form-urlencoded"],
        };
        Some(described(media_types, TYPE != 'f'))
    }
}

fn described(media_types: &[&str], is_required: bool) -> Value {
    let content = media_types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({})));
    json!({"required": is_required, "content": Value::Object(content.collect())})
}

async fn write_lines_v1(
    call: Call<AgentWriter, (BucketParam, PrecisionParam), Lines>,
) -> Result<HttpResponse, ServiceError> {
    write_lines(call, Dialect::V1).await
}

async fn write_lines_v2(
    call: Call<AgentWriter, (BucketParam, PrecisionParam), Lines>,
) -> Result<HttpResponse, ServiceError> {
    write_lines(call, Dialect::V2).await
}

async fn write_lines(
    call: Call<AgentWriter, (BucketParam, PrecisionParam), Lines>,
    dialect: Dialect,
) -> Result<HttpResponse, ServiceError> {
    let (BucketParam(name), PrecisionParam(precision)) = &call.params;
    let Some(precision) = Precision::parse(precision, dialect) else {
        let names = match dialect {
            Dialect::V1 => "ns, us, ms, s, n, u, m or h",
            Dialect::V2 => "ns, us, ms or s",
        };
        let message = format!("must be {names}, not {precision:?}");
        return Err(ServiceError::faults(vec![Detail::at(&["precision"], message)]));
    };
    let bucket = call.service.named_bucket(&call.caller, name)?;
    let AgentBody(body) = &call.body;
    let parse = |sink: &mut EntrySink<'_>| {
        let now_ns = sink.now_ns();
        line::parse(body, precision, now_ns, sink);
        Ok(())
    };
    let written = call
        .service
        .write_entries(&call.caller, bucket, body.len(), parse)
        .await?;
    if written.refused == 0 {
        return Ok(HttpResponse::NoContent().finish());
    }
    let names = |entries: &[u32]| Ok(entries.iter().map(|entry| line::entry_name(*entry)).collect());
    Err(ServiceError::validation(refusals(
        &written,
        "the other lines are stored",
        names,
    )?))
}

async fn ping(_: Call<Anyone>) -> Result<HttpResponse, ServiceError> {
    let version = (INFLUXDB_VERSION_HEADER, INFLUXDB_VERSION);
    Ok(HttpResponse::NoContent().insert_header(version).finish())
}

/// Clients of InfluxDB 1.x create their database before they write.
async fn create_database(call: Call<AgentWriter, (), Form>) -> Result<HttpResponse, ServiceError> {
    let AgentBody(body) = &call.body;
    let of_url = url::form_urlencoded::parse(call.request.query_string().as_bytes());
    let of_form = url::form_urlencoded::parse(body);
    let query = of_url.chain(of_form).find(|(name, _)| name == "q");
    let query = query
        .map(|(_, query)| query.trim().to_ascii_uppercase())
        .unwrap_or_default();
    let mut words = query.split_ascii_whitespace();
    if (words.next(), words.next()) != (Some("CREATE"), Some("DATABASE")) {
        return Err(ServiceError::validation(
            "only CREATE DATABASE is understood here, and needs nothing to be done; query points with POST /api/data/query",
        ));
    }
    Ok(HttpResponse::Ok()
        .content_type(JSON)
        .body(r#"{"results":[{"statement_id":0}]}"#))
}

/// The body of a remote write, still in its Snappy block.
struct Snappy(Body);

impl RequestBody<ShardService> for Snappy {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        service: &ShardService,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        service.buckets.admit()?;
        let coding = request.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if !coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"snappy")) {
            return Err(ServiceError::new(
                ErrorKind::UnsupportedMediaType,
                "remote write is compressed with snappy; send Content-Encoding: snappy",
            ));
        }
        let body = body::read_sent(request, payload, BATCH_BODY_BYTES_MAX).await?;
        Ok(Some(Self(body)))
    }

    fn describe(_: &mut Components) -> Option<Value> {
        Some(described(&[PROTOBUF], true))
    }
}

async fn remote_write_samples(
    call: Call<AgentWriter, BucketParam, Snappy>,
) -> Result<HttpResponse, ServiceError> {
    let version = version_of(&call.request)?;
    let BucketParam(name) = &call.params;
    let bucket = call.service.named_bucket(&call.caller, name)?;
    let Snappy(body) = &call.body;
    let mut buffer = Vec::new();
    let _share = body.hold_more(&call.request, body.len().saturating_mul(4))?;
    let message = remote_write::decompress(body, BATCH_BODY_BYTES_MAX, &mut buffer)?;
    let parse = |sink: &mut EntrySink<'_>| Ok(remote_write::parse(message, version, sink)?);
    let written = call
        .service
        .write_entries(&call.caller, bucket, message.len(), parse)
        .await?;
    if written.refused == 0 {
        let mut response = HttpResponse::NoContent().finish();
        write_samples_written(samples(&written), response.headers_mut());
        return Ok(response);
    }
    let names = |entries: &[u32]| Ok(remote_write::entry_names(message, version, entries)?);
    let message = refusals(&written, "the other series are stored", names)?;
    let counts = ErrorExtra::SamplesWritten(samples(&written));
    Err(ServiceError::validation(message).with_extra(Some(counts)))
}

fn samples(written: &Written) -> SamplesWritten {
    SamplesWritten {
        values: written.values,
        histograms: written.histograms,
    }
}

/// The message that the type of the content names; that of 1.0 if it names none.
fn version_of(request: &HttpRequest) -> Result<Version, ServiceError> {
    let unsupported = |content_type: &str| {
        let message = format!(
            "remote write is application/x-protobuf, of 1.0 or with proto=io.prometheus.write.v2.Request, not {content_type:?}"
        );
        Err(ServiceError::new(ErrorKind::UnsupportedMediaType, message))
    };
    let Some(content_type) = request.headers().get(CONTENT_TYPE) else {
        return Ok(Version::V1);
    };
    let content_type = content_type.to_str().unwrap_or("?");
    let mut parts = content_type.split(';').map(str::trim);
    if !parts
        .next()
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case(PROTOBUF))
    {
        return unsupported(content_type);
    }
    let named = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("proto")
            .then(|| value.trim().trim_matches('"'))
    });
    match named.map(Version::of_message) {
        None => Ok(Version::V1),
        Some(Some(version)) => Ok(version),
        Some(None) => unsupported(content_type),
    }
}

async fn write_metrics(call: Call<AgentWriter, BucketParam, Metrics>) -> Result<HttpResponse, ServiceError> {
    let encoding = encoding_of(&call.request)?;
    let BucketParam(name) = &call.params;
    let bucket = call.service.named_bucket(&call.caller, name)?;
    let AgentBody(body) = &call.body;
    let mut buffer = Vec::new();
    let message = otlp::message(body, encoding, &mut buffer)?;
    let unreadable = Cell::new(None);
    let parse = |sink: &mut EntrySink<'_>| {
        otlp::parse(message, sink).map_err(|error| {
            unreadable.set(Some(error.to_string()));
            error.into()
        })
    };
    let written = call
        .service
        .write_entries(&call.caller, bucket, body.len(), parse)
        .await;
    if let (Encoding::Protobuf, Some(reason)) = (encoding, unreadable.take()) {
        // Of a request in JSON, the usual error has the member `message` of this status, too.
        return Ok(HttpResponse::BadRequest()
            .content_type(PROTOBUF)
            .insert_header((CACHE_CONTROL, "no-store"))
            .body(otlp::status(encoding, &reason)));
    }
    let written = written?;
    let names = |entries: &[u32]| Ok(otlp::entry_names(message, entries)?);
    let reasons = match written.refused {
        0 => String::new(),
        _ => refusals(&written, "the other data points are stored", names)?,
    };
    let partial = (written.refused > 0).then_some(PartialSuccess {
        rejected_data_points: written.refused,
        error_message: &reasons,
    });
    let content_type = match encoding {
        Encoding::Protobuf => PROTOBUF,
        Encoding::Json => JSON,
    };
    Ok(HttpResponse::Ok()
        .content_type(content_type)
        .body(otlp::success(encoding, partial)))
}

fn encoding_of(request: &HttpRequest) -> Result<Encoding, ServiceError> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type.to_ascii_lowercase().as_str() {
        PROTOBUF => Ok(Encoding::Protobuf),
        JSON => Ok(Encoding::Json),
        _ => Err(ServiceError::new(
            ErrorKind::UnsupportedMediaType,
            format!("OTLP metrics are {PROTOBUF} or {JSON}, not {content_type:?}"),
        )),
    }
}

/// The refused entries with the reasons, one to a line of the text.
fn refusals(
    written: &Written,
    others: &str,
    names: impl FnOnce(&[u32]) -> Result<Vec<String>, ServiceError>,
) -> Result<String, ServiceError> {
    let mut entries: Vec<u32> = written.refusals.iter().map(|(entry, _)| *entry).collect();
    entries.dedup();
    let names = names(&entries)?;
    let mut text = format!("{} refused; {others}", written.refused);
    for (entry, reason) in &written.refusals {
        let name = entries
            .binary_search(entry)
            .ok()
            .and_then(|index| names.get(index));
        // Writing to a text does not fail.
        let _ = write!(text, "\n{}: {reason}", name.map_or("an entry", String::as_str));
    }
    let more = written.refused.saturating_sub(written.refusals.len() as u64);
    if more > 0 && written.refusals.len() >= crate::limits::REFUSALS_SHOWN_MAX {
        let _ = write!(text, "\nand {more} more");
    }
    Ok(text)
}

impl From<Unreadable> for ServiceError {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::TooLarge { max } => Self::payload_too_large(max),
            error => Self::validation(error.to_string()),
        }
    }
}
