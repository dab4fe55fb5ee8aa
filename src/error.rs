//! What can go wrong, in the API's terms. Rooms answer with it; `http::error` alone turns it into a
//! status and a body. The private cause reaches only the log, never a client.

use std::error::Error;
use std::fmt;

use crate::catalog::Standing;
use crate::limits::{FAULTS_SHOWN_MAX, NAMES_SHOWN_MAX};

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
    /// 409: it contradicts what is stored.
    Conflict,
    /// 413: the body is over the route's limit.
    PayloadTooLarge,
    /// 415: the body's encoding is not understood.
    UnsupportedMediaType,
    /// 429: too many attempts, or the quota is used up.
    TooManyRequests,
    /// 500: a fault of the server.
    Internal,
    /// 503: saturated, out of time, or the log takes no writes.
    Unavailable,
}

impl ErrorKind {
    /// All of them, by status.
    pub const ALL: [Self; 11] = [
        Self::Validation,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::TooManyRequests,
        Self::Internal,
        Self::Unavailable,
    ];
}

/// One fault of a request, at the place it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Member names from the outside in, array indexes as decimal strings; empty for the body itself.
    pub path: Vec<String>,
    /// What is wrong and what to send instead.
    pub message: String,
}

/// What an error tells beside its message.
#[derive(Debug)]
pub enum ErrorExtra {
    /// All entries of a batch are at fault.
    Batch(Vec<EntryError>),
    /// Where the rule of a refused verdict stands.
    Standing(Box<Standing>),
}

/// An entry of a batch that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryError {
    /// Its place in the batch, from 0.
    pub index: u32,
    /// All its faults.
    pub error: String,
}

/// A request that ends without success.
#[derive(Debug)]
pub struct ServiceError {
    /// Which of the API's error types.
    pub kind: ErrorKind,
    /// What happened and what to change: shown to the client.
    pub message: String,
    /// The faults of the request together, [`FAULTS_SHOWN_MAX`] at most; empty when there is no single place.
    pub details: Vec<Detail>,
    /// What else the client is told.
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

    /// 400 without a place.
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

    /// 404; `what` is the resource's word, as in `bucket`.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{what} not found"))
    }

    /// 409.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
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

    /// 500; the cause goes to the log, the client gets the request's id to quote.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::Internal,
            "an unexpected error occurred; quote the requestId when you report it",
        )
        .caused_by(source)
    }

    /// The same with a private cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same with the places that it is about, of very many the first.
    #[must_use]
    pub fn with_details(mut self, mut details: Vec<Detail>) -> Self {
        details.truncate(FAULTS_SHOWN_MAX);
        self.details = details;
        self
    }

    /// The same telling more.
    #[must_use]
    pub fn with_extra(mut self, extra: Option<ErrorExtra>) -> Self {
        self.extra = extra;
        self
    }

    /// The private cause.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

/// Names that a client could have meant, in a message: the first few, and how many more there are.
pub fn shown_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let shown: Vec<&str> = names.take(NAMES_SHOWN_MAX).collect();
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|cause| cause as &(dyn Error + 'static))
    }
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
    fn of_very_many_faults_the_first_are_listed_and_all_are_counted() {
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
    fn of_many_names_the_first_are_shown() {
        let names: Vec<String> = (0..NAMES_SHOWN_MAX + 3).map(|n| n.to_string()).collect();
        let shown = |count: usize| shown_names(names[..count].iter().map(String::as_str));
        assert_eq!(shown(0), "none");
        assert_eq!(shown(2), "0, 1");
        assert_eq!(shown(NAMES_SHOWN_MAX + 3), "0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
    }
}
