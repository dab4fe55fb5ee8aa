//! Requests of an import, with retries.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use awc::http::{Method, StatusCode};
use bytes::Bytes;
use evaluator::{Backoff, Client, Credential, Reply};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::{Counts, Format, ImportError, Watcher};

/// Requests that fail one after the other before an import ends: about five minutes.
const FAILURES_MAX: u32 = 16;
/// How long the service may take for a part.
const PART_WITHIN: Duration = Duration::from_secs(300);
/// The same for a file.
const FILE_WITHIN: Duration = Duration::from_secs(24 * 3_600);
const ASK_WITHIN: Duration = Duration::from_secs(30);
const BUCKETS_PAGE: u64 = 1_000;
const PIECE_BYTES: usize = 256 << 10;

/// Where files go.
pub struct Target {
    client: Client,
    url: String,
    bucket: String,
    source: String,
    /// Parameters of the request, but the format.
    parameters: Vec<(&'static str, String)>,
}

/// What the service has answered to a part.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub inserted_count: u64,
    #[serde(default)]
    pub duplicate_count: u64,
    #[serde(default)]
    pub failed_count: u64,
    #[serde(default)]
    pub errors: Vec<RowError>,
}

/// A row that is refused.
#[derive(Debug, Deserialize)]
pub struct RowError {
    pub index: u64,
    pub line: Option<u64>,
    pub error: String,
}

impl Answer {
    pub fn counts(&self) -> Counts {
        Counts {
            inserted: self.inserted_count,
            duplicates: self.duplicate_count,
            failed: self.failed_count,
        }
    }
}

/// The body of a request.
pub enum Body {
    Part(Bytes),
    /// A file, whose bytes are read as they are sent.
    File(PathBuf),
}

impl Target {
    /// Files go to a source, by its name or id, of a bucket, by its id or, with an admin key, by its name. `parameters`:
    /// those of the request that are not told otherwise.
    ///
    /// # Errors
    /// The address, the key or the bucket is not valid.
    pub async fn find(
        url: &str,
        key: &str,
        bucket: &str,
        source: &str,
        parameters: Vec<(&'static str, String)>,
    ) -> Result<Self, ImportError> {
        let client = Client::new(url, Credential::Key(key)).map_err(ImportError::Target)?;
        let is_id = bucket.len() == 24 && bucket.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bucket = match is_id {
            true => bucket.to_owned(),
            false => bucket_named(&client, bucket).await?,
        };
        Ok(Target {
            client,
            url: url.to_owned(),
            bucket,
            source: source.to_owned(),
            parameters,
        })
    }

    /// The path of the requests.
    pub(crate) fn path(&self, format: Format) -> String {
        let mut query = Serializer::new(String::new());
        query
            .append_pair("source", &self.source)
            .append_pair("format", format.name());
        query.extend_pairs(&self.parameters);
        format!("/api/buckets/{}/import?{}", self.bucket, query.finish())
    }

    /// What makes an import the same as another.
    pub(crate) fn describe(&self, format: Format) -> String {
        format!("{}{}", self.url, self.path(format))
    }

    /// Sends a body under a key until it is answered.
    pub(crate) async fn send(
        &self,
        format: Format,
        key: &str,
        body: &Body,
        watcher: &mut dyn Watcher,
    ) -> Result<Answer, ImportError> {
        let path = self.path(format);
        let mut failures = 0;
        loop {
            let sent = match body {
                Body::Part(part) => {
                    self.client
                        .post_bytes(&path, key, part.clone(), PART_WITHIN)
                        .await
                }
                Body::File(file) => {
                    let pieces = pieces(file).map_err(|cause| ImportError::File {
                        path: file.clone(),
                        cause,
                    })?;
                    self.client.post_stream(&path, key, pieces, FILE_WITHIN).await
                }
            };
            let (reason, retry_after) = match sent {
                Ok(reply) => match read(&reply) {
                    Ok(answer) => return Ok(answer),
                    Err(Fault::Refused(reason)) => return Err(ImportError::Refused(reason)),
                    Err(Fault::Busy(reason)) => (reason, reply.retry_after),
                },
                Err(error) => (error.to_string(), None),
            };
            failures += 1;
            if failures > FAILURES_MAX {
                return Err(ImportError::Unreachable(reason));
            }
            let delay = Backoff::default().delay(failures, retry_after, fastrand::f64());
            watcher.note(&format!(
                "{reason}; trying again in {:.0} s",
                delay.as_secs_f64().ceil()
            ));
            tokio::time::sleep(delay).await;
        }
    }
}

/// The bytes of a file, as they are asked for.
fn pieces(path: &Path) -> io::Result<impl Stream<Item = io::Result<Bytes>> + 'static> {
    let file = File::open(path)?;
    Ok(stream::try_unfold(file, |mut file| async move {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        Ok((read > 0).then(|| (Bytes::from(piece), file)))
    }))
}

enum Fault {
    /// It does not help to send it again.
    Refused(String),
    Busy(String),
}

fn read(reply: &Reply) -> Result<Answer, Fault> {
    match reply.status {
        StatusCode::CREATED | StatusCode::MULTI_STATUS | StatusCode::BAD_REQUEST => {
            serde_json::from_slice(&reply.body).map_err(|_| Fault::Refused(reply.describe()))
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Err(Fault::Busy(reply.describe())),
        status if status.is_server_error() => Err(Fault::Busy(reply.describe())),
        _ => Err(Fault::Refused(reply.describe())),
    }
}

/// The id of a bucket by its name.
async fn bucket_named(client: &Client, name: &str) -> Result<String, ImportError> {
    let mut offset = 0;
    loop {
        let path = format!("/api/buckets?limit={BUCKETS_PAGE}&offset={offset}");
        let reply = client.exchange(&Method::GET, &path, None, ASK_WITHIN).await;
        let reply = reply.map_err(|error| ImportError::Unreachable(error.to_string()))?;
        if !reply.status.is_success() {
            let message = format!(
                "the bucket {name:?} cannot be looked up ({}); give its id, which the key of a bucket can use",
                reply.describe()
            );
            return Err(ImportError::Refused(message));
        }
        let page: Value = serde_json::from_slice(&reply.body)
            .map_err(|error| ImportError::Refused(format!("the list of buckets is no JSON: {error}")))?;
        let buckets = page["buckets"].as_array().map_or(&[][..], Vec::as_slice);
        let found = buckets.iter().find(|bucket| bucket["name"] == name);
        if let Some(id) = found.and_then(|bucket| bucket["_id"].as_str()) {
            return Ok(id.to_owned());
        }
        if page["pagination"]["hasMore"] != true {
            return Err(ImportError::Refused(format!("there is no bucket {name:?}")));
        }
        offset += BUCKETS_PAGE;
    }
}
