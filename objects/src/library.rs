//! The port over the crate `object_store`, on a runtime of its own.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::local::LocalFileSystem;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, GetRange, ObjectStore as Library, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Cause, ObjectError, UrlError};
use crate::retry::{pause_after, time_for};
use crate::transfer::is_same;
use crate::{Bytes, Existing, LIST_MAX, Listed, Location, ObjectStore, check_name};

/// Objects of more bytes are sent to S3 in parts of at least this size.
const PART_BYTES: usize = 64 << 20;
/// Most parts of an object in S3.
const PARTS_MAX: usize = 10_000;
/// Time to establish a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Opens the store at a URL. The environment's variables that begin with `AWS_` configure S3: credentials, region,
/// `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`. Nothing is reached.
///
/// # Errors
/// The URL or the variables are invalid.
pub fn open(
    url: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, UrlError> {
    open_within(url, "", environment)
}

/// As [`open`], with names below `part` of the URL. A directory of the URL must exist, and the one of the part is made when
/// it is first needed.
///
/// # Errors
/// The URL or the variables are invalid.
pub fn open_within(
    url: &str,
    part: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, UrlError> {
    let within = |prefix: Path| prefix.parts().chain(Path::from(part).parts()).collect();
    let failed = |cause: Cause| UrlError::Client(url.to_owned(), cause);
    let side = match Location::parse(url)? {
        Location::S3 { bucket, prefix } => {
            let client = s3(&bucket, environment).map_err(|error| failed(error.into()))?;
            Side::S3(Arc::new(client), within(Path::from(prefix)))
        }
        Location::Directory(directory) => {
            let prefix = Path::from_absolute_path(&directory).map_err(|error| failed(error.into()))?;
            // Each object is durable when it is put: its bytes are synced, then its name.
            let client = LocalFileSystem::new().with_fsync(true);
            Side::Directory(Arc::new(client), within(prefix), directory)
        }
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    Ok(Arc::new(Opened {
        side,
        runtime: Some(runtime.map_err(|error| failed(error.into()))?),
    }))
}

fn s3(
    bucket: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<AmazonS3, object_store::Error> {
    // Fails if the process has chosen a provider before, which is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::new();
    for (name, value) in environment {
        // Other variables of this kind belong to other programs.
        if let (true, Ok(key)) = (name.starts_with("AWS_"), name.to_ascii_lowercase().parse()) {
            builder = builder.with_config(key, value);
        }
    }
    // Retries and time-outs are this crate's own: a put that is repeated must know that it is.
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let mut options = ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIME);
    if let Some(allowed) = builder.get_config_value(&object_store::aws::AmazonS3ConfigKey::Client(
        object_store::ClientConfigKey::AllowHttp,
    )) {
        options = options.with_config(object_store::ClientConfigKey::AllowHttp, allowed);
    }
    builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_client_options(options)
        .build()
}

/// A store of the library, the prefix of all names, and how it differs from the other kind.
enum Side {
    S3(Arc<AmazonS3>, Path),
    Directory(Arc<LocalFileSystem>, Path, PathBuf),
}

struct Opened {
    side: Side,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

/// Why an attempt failed.
enum Failed {
    Library(Error),
    TimedOut(Duration),
}

impl Opened {
    fn library(&self) -> Arc<dyn Library> {
        match &self.side {
            Side::S3(store, _) => Arc::clone(store) as Arc<dyn Library>,
            Side::Directory(store, ..) => Arc::clone(store) as Arc<dyn Library>,
        }
    }

    fn path(&self, name: &str) -> Path {
        let (Side::S3(_, prefix) | Side::Directory(_, prefix, _)) = &self.side;
        prefix.parts().chain(Path::from(name).parts()).collect()
    }

    /// Fails if a directory is missing, which may be a volume that is not mounted: creating it would store everything
    /// elsewhere.
    fn check_directory(&self) -> Result<(), ObjectError> {
        match &self.side {
            Side::Directory(_, _, path) if !path.is_dir() => {
                let message = format!(
                    "{} is not a directory; create it, or mount its volume",
                    path.display()
                );
                Err(ObjectError::Unavailable(
                    path.display().to_string(),
                    io::Error::new(io::ErrorKind::NotFound, message).into(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Runs one attempt.
    fn attempt<T>(&self, time: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failed> {
        let Some(runtime) = &self.runtime else {
            return Err(Failed::TimedOut(Duration::ZERO));
        };
        runtime.block_on(async {
            match tokio::time::timeout(time, work).await {
                Ok(done) => done.map_err(Failed::Library),
                Err(_) => Err(Failed::TimedOut(time)),
            }
        })
    }

    fn pause(&self, pause: Duration) {
        if let Some(runtime) = &self.runtime {
            // The timer is made within the runtime.
            runtime.block_on(async { tokio::time::sleep(pause).await });
        }
    }

    /// Makes attempts until one succeeds, fails for good, or there were enough.
    fn retry<T, F: Future<Output = Result<T, Error>>>(
        &self,
        name: &str,
        bytes: u64,
        work: impl Fn() -> F,
    ) -> Result<T, ObjectError> {
        let mut failed = 0;
        loop {
            let error = match self.attempt(time_for(bytes), work()) {
                Ok(done) => return Ok(done),
                Err(error) => of_library(name, error),
            };
            failed += 1;
            match pause_after(failed).filter(|_| error.is_transient()) {
                Some(pause) => self.pause(pause),
                None => return Err(error),
            }
        }
    }

    /// Stores the object with one request, which fails if the name is taken.
    fn put_whole(&self, name: &str, bytes: &Bytes) -> Result<(), Failed> {
        let (library, path) = (self.library(), self.path(name));
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(bytes.clone());
        let time = time_for(bytes.len() as u64);
        self.attempt(time, library.put_opts(&path, payload, options))
            .map(drop)
    }

    /// Stores the object in parts, after looking whether the name is taken. Each part is tried again by itself.
    fn put_parts(&self, store: &AmazonS3, name: &str, bytes: &Bytes) -> Result<(), ObjectError> {
        let path = self.path(name);
        match self.length(name) {
            Err(ObjectError::NotFound(_)) => {}
            Ok(_) => return Err(ObjectError::Exists(name.to_owned())),
            Err(error) => return Err(error),
        }
        let id = self.retry(name, 0, || store.create_multipart(&path))?;
        let part_bytes = PART_BYTES.max(bytes.len().div_ceil(PARTS_MAX));
        let sent: Result<Vec<_>, _> = (0..bytes.len())
            .step_by(part_bytes)
            .enumerate()
            .map(|(index, from)| {
                let part = bytes.slice(from..bytes.len().min(from + part_bytes));
                self.retry(name, part.len() as u64, || {
                    store.put_part(&path, &id, index, PutPayload::from(part.clone()))
                })
            })
            .collect();
        let done = sent.and_then(|parts| {
            self.retry(name, 0, || {
                let parts = parts.clone();
                async { store.complete_multipart(&path, &id, parts).await }
            })
        });
        match done {
            Ok(_) => Ok(()),
            // An earlier attempt may have completed it, and the answer was lost.
            Err(ObjectError::NotFound(_) | ObjectError::Unavailable(..))
                if self.length(name).is_ok_and(|stored| stored == bytes.len() as u64) =>
            {
                Ok(())
            }
            Err(error) => {
                // The error that is reported is the first one. What is left of the parts costs space until the bucket's
                // own rule removes incomplete uploads.
                let _ = self.attempt(time_for(0), store.abort_multipart(&path, &id));
                Err(error)
            }
        }
    }

    /// The length of an object.
    fn length(&self, name: &str) -> Result<u64, ObjectError> {
        let (library, path) = (self.library(), self.path(name));
        self.retry(name, 0, || async { Ok(library.head(&path).await?.size) })
    }

    fn range(&self, name: &str, range: Option<Range<u64>>, bytes_max: u64) -> Result<Bytes, ObjectError> {
        let (library, path) = (self.library(), self.path(name));
        let wanted = range.as_ref().map_or(bytes_max, |range| range.end - range.start);
        let read = self.retry(name, wanted, || {
            let options = GetOptions {
                range: range.clone().map(GetRange::Bounded),
                ..GetOptions::default()
            };
            async {
                let found = library.get_opts(&path, options).await?;
                let (stored, length) = (found.meta.size, found.range.end - found.range.start);
                match length > wanted {
                    true => Ok(Err(stored)),
                    false => Ok(Ok(found.bytes().await?)),
                }
            }
        })?;
        read.map_err(|stored| ObjectError::TooLarge(name.to_owned(), stored, bytes_max))
    }
}

impl ObjectStore for Opened {
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError> {
        check_name(name)?;
        self.check_directory()?;
        // Whether an attempt before this one may have stored the object.
        let (mut may_be_ours, mut failed) = (false, 0);
        loop {
            let error = match &self.side {
                Side::S3(store, _) if bytes.len() > PART_BYTES => self.put_parts(store, name, &bytes).err(),
                _ => self
                    .put_whole(name, &bytes)
                    .err()
                    .map(|error| match of_library(name, error) {
                        // To S3 this means that the bucket does not exist.
                        ObjectError::NotFound(name) => {
                            let missing = io::Error::from(io::ErrorKind::NotFound);
                            ObjectError::Refused(name, missing.into())
                        }
                        error => error,
                    }),
            };
            let error = match error {
                None => return Ok(()),
                Some(ObjectError::Exists(_)) => match self.length(name) {
                    Ok(stored) => {
                        let may_be_same = may_be_ours || existing == Existing::SameBytes;
                        return match may_be_same && is_same(self, name, stored, &bytes)? {
                            true => Ok(()),
                            false => Err(ObjectError::Exists(name.to_owned())),
                        };
                    }
                    // S3 reports a conflict also while another request for the name is under way.
                    Err(ObjectError::NotFound(_)) => ObjectError::Unavailable(
                        name.to_owned(),
                        io::Error::other("another request for this name is under way").into(),
                    ),
                    Err(error) => error,
                },
                Some(error) => error,
            };
            may_be_ours = true;
            failed += 1;
            match pause_after(failed).filter(|_| error.is_transient()) {
                Some(pause) => self.pause(pause),
                None => return Err(error),
            }
        }
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError> {
        check_name(name)?;
        self.check_directory()?;
        self.range(name, None, bytes_max)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        check_name(name)?;
        self.check_directory()?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let (end, wanted) = (range.end, range.end - range.start);
        let read = self.range(name, Some(range), wanted);
        match read {
            Ok(bytes) if (bytes.len() as u64) < wanted => Err(ObjectError::Short(name.to_owned(), end)),
            // A range beyond the end is an error of its own in every store.
            Err(error @ (ObjectError::Unavailable(..) | ObjectError::Refused(..))) => match self.length(name)
            {
                Ok(stored) if stored < end => Err(ObjectError::Short(name.to_owned(), end)),
                _ => Err(error),
            },
            read => read,
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError> {
        check_name(prefix)?;
        self.check_directory()?;
        let (library, path) = (self.library(), self.path(prefix));
        let skipped = self.path("x").as_ref().len() - 1;
        let found = self.retry(prefix, 0, || {
            let stream = library.list(Some(&path));
            stream.take(LIST_MAX + 1).try_collect::<Vec<_>>()
        })?;
        if found.len() > LIST_MAX {
            return Err(ObjectError::TooMany(prefix.to_owned()));
        }
        let mut listed: Vec<Listed> = found
            .into_iter()
            .filter_map(|meta| {
                Some(Listed {
                    name: meta.location.as_ref().get(skipped..)?.to_owned(),
                    bytes: meta.size,
                    stored_at_ns: meta.last_modified.timestamp_nanos_opt()?,
                })
            })
            .collect();
        listed.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(listed)
    }

    fn delete(&self, names: &[String]) -> Result<(), ObjectError> {
        let Some(first) = names.first() else { return Ok(()) };
        names.iter().try_for_each(|name| check_name(name))?;
        self.check_directory()?;
        let library = self.library();
        self.retry(first, 0, || {
            let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
            let mut deleted = library.delete_stream(futures_util::stream::iter(paths).boxed());
            async move {
                while let Some(one) = deleted.next().await {
                    match one {
                        Err(Error::NotFound { .. }) => {}
                        one => drop(one?),
                    }
                }
                Ok(())
            }
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A file system that does not answer must not hold up the end of the process.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn of_library(name: &str, failed: Failed) -> ObjectError {
    let name = name.to_owned();
    match failed {
        Failed::TimedOut(time) => {
            let message = format!("no answer within {} s", time.as_secs());
            ObjectError::Unavailable(name, io::Error::new(io::ErrorKind::TimedOut, message).into())
        }
        Failed::Library(Error::NotFound { .. }) => ObjectError::NotFound(name),
        Failed::Library(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
            ObjectError::Exists(name)
        }
        Failed::Library(
            error @ (Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::InvalidPath { .. }
            | Error::UnknownConfigurationKey { .. }),
        ) => ObjectError::Refused(name, error.into()),
        Failed::Library(error) => ObjectError::Unavailable(name, error.into()),
    }
}
