//! Errors in the API's terms. Only `http::error` turns them into a status and a body. The cause of an error is logged and
//! never sent to a client.

use std::error::Error;

use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::Standing;
use crate::limits::{FAULTS_SHOWN_MAX, NAMES_SHOWN_BYTES_MAX};

/// The API's list of error types; each has exactly one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400: the request's shape or values.
    Validation,
    /// 401: no valid credential.
    Unauthorized,
    /// 403: the credential does not allow this.
    Forbidden,
    /// 404: the route, or what the request names, does not exist for the caller.
    NotFound,
    /// 405: the route exists, this method of it does not.
    MethodNotAllowed,
    /// 409: the request contradicts what is stored.
    Conflict,
    /// 412: what is stored is not the version that the request is about.
    PreconditionFailed,
    /// 413: the body is over the route's limit.
    PayloadTooLarge,
    /// 415: the body's encoding is not supported.
    UnsupportedMediaType,
    /// 429: too many attempts, or the quota is used up.
    TooManyRequests,
    /// 500: a fault of the server.
    Internal,
    /// 503: overload, a timeout, or the log accepts no writes.
    Unavailable,
}

impl ErrorKind {
    /// All kinds, ordered by status.
    pub const ALL: [Self; 12] = [
        Self::Validation,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::TooManyRequests,
        Self::Internal,
        Self::Unavailable,
    ];
}

/// A fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
pub struct Detail {
    /// Path of the faulty value: member names from the outermost inward, array indexes as decimal strings.
    pub path: Vec<String>,
    /// Description of the fault.
    pub message: String,
}

impl Detail {
    /// A fault of the value at this path; the empty path is the body itself.
    pub fn at(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|member| (*member).to_owned()).collect(),
            message: message.into(),
        }
    }
}

/// Additional members of an error's body.
#[derive(Debug)]
pub enum ErrorExtra {
    /// The entries of a batch, which are all at fault.
    Batch(Vec<EntryError>),
    /// The rows of a file, which are all at fault: their number, and the first of them.
    Import(u64, Vec<EntryError>),
    /// The state of the rule whose verdict was refused.
    Standing(Box<Standing>),
    /// A word for the error that clients of another API expect.
    Code(&'static str),
    /// What a remote write has stored nevertheless.
    SamplesWritten(SamplesWritten),
}

/// Numbers of samples that a remote write has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplesWritten {
    pub values: u64,
    pub histograms: u64,
}

/// A batch entry that was not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EntryError {
    /// Index of the entry in the batch, or of the row in the file, from 0.
    pub index: u32,
    /// Line of the file, from 1; only of files of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<u64>,
    /// All faults of the entry.
    pub error: String,
}

/// A request that ends without success.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    /// The API's error type.
    pub kind: ErrorKind,
    /// What happened and what to change: shown to the client.
    pub message: String,
    /// The faults of the request, at most [`FAULTS_SHOWN_MAX`]; empty if they have no path.
    pub details: Vec<Detail>,
    /// Additional members of the body.
    pub extra: Option<ErrorExtra>,
    /// Value of `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ServiceError {
    /// An error of this kind; prefer the named constructors.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
            extra: None,
            retry_after_seconds: None,
            source: None,
        }
    }

    /// 400 without details.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Validation, message)
    }

    /// 400 with the faults found. One fault is the message itself; more are counted, and of very many only the
    /// first are listed: a small request must not cause a large answer.
    pub fn faults(details: Vec<Detail>) -> Self {
        let message = match details.as_slice() {
            [Detail { path, message }] if path.is_empty() => message.clone(),
            [Detail { path, message }] => format!("{}: {message}", path.join(".")),
            more if more.len() <= FAULTS_SHOWN_MAX => {
                format!("the request has {} faults, listed in details", more.len())
            }
            more => format!(
                "the request has {} faults; the first {FAULTS_SHOWN_MAX} are listed in details",
                more.len()
            ),
        };
        Self::new(ErrorKind::Validation, message).with_details(details)
    }

    /// 401.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthorized, message)
    }

    /// 403.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message)
    }

    /// 404; `what` names the resource, such as `bucket`.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{what} not found"))
    }

    /// 409.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// 412.
    pub fn precondition_failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PreconditionFailed, message)
    }

    /// 413; `body_bytes_max` is the route's limit after decompression.
    pub fn payload_too_large(body_bytes_max: usize) -> Self {
        Self::new(
            ErrorKind::PayloadTooLarge,
            format!(
                "the body is larger than the {body_bytes_max} bytes this route takes (counted after decompression)"
            ),
        )
    }

    /// 429 with the seconds to wait.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self {
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(ErrorKind::TooManyRequests, message)
        }
    }

    /// 503 with the seconds to wait.
    pub fn unavailable(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self {
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(ErrorKind::Unavailable, message)
        }
    }

    /// 500; the cause is logged, and the client gets the request's id to quote.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::Internal,
            "an unexpected error occurred; quote the requestId when you report it",
        )
        .caused_by(source)
    }

    /// Adds a cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the faults, at most [`FAULTS_SHOWN_MAX`].
    #[must_use]
    pub fn with_details(mut self, mut details: Vec<Detail>) -> Self {
        details.truncate(FAULTS_SHOWN_MAX);
        self.details = details;
        self
    }

    /// Adds members of the body.
    #[must_use]
    pub fn with_extra(mut self, extra: Option<ErrorExtra>) -> Self {
        self.extra = extra;
        self
    }

    /// The cause, for the log only.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

/// Lists names for a message: all, or the first ones within [`NAMES_SHOWN_BYTES_MAX`], but at least one, and the number of
/// the others.
pub fn shown_names<'a>(mut names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let Some(first) = names.next() else {
        return "none".to_owned();
    };
    let mut shown = first.to_owned();
    while let Some(name) = names.next() {
        if shown.len() + name.len() > NAMES_SHOWN_BYTES_MAX {
            return format!("{shown} and {} more", names.len() + 1);
        }
        shown += ", ";
        shown += name;
    }
    shown
}

impl From<crate::random::NoRandomness> for ServiceError {
    fn from(none: crate::random::NoRandomness) -> Self {
        Self::internal(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_faults_are_listed_and_all_are_counted() {
        let faults = |count: usize| {
            let detail = |index: usize| Detail {
                path: vec![index.to_string()],
                message: "is wrong".to_owned(),
            };
            ServiceError::faults((0..count).map(detail).collect())
        };
        assert_eq!(faults(1).message, "0: is wrong");
        let (all, more) = (faults(FAULTS_SHOWN_MAX), faults(20_000));
        assert_eq!(all.details.len(), FAULTS_SHOWN_MAX);
        assert_eq!(all.message, "the request has 100 faults, listed in details");
        assert_eq!(more.details, all.details);
        assert_eq!(
            more.message,
            "the request has 20000 faults; the first 100 are listed in details"
        );
    }

    #[test]
    fn names_are_shown_up_to_a_length() {
        let shown = |names: &[&str]| shown_names(names.iter().copied());
        assert_eq!(shown(&[]), "none");
        assert_eq!(shown(&["a", "b"]), "a, b");
        let long = "x".repeat(NAMES_SHOWN_BYTES_MAX);
        assert_eq!(shown(&[&long]), long);
        assert_eq!(shown(&["a", &long, "c"]), "a and 2 more");
        let many = vec!["a name"; NAMES_SHOWN_BYTES_MAX];
        let message = shown(&many);
        assert!(message.len() < NAMES_SHOWN_BYTES_MAX + 20, "{}", message.len());
        assert!(message.ends_with(" more"), "{message}");
    }
}
