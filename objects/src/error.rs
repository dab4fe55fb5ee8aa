//! Why a call of an object store failed, and why a URL names none.

use std::error::Error;

/// The cause of an error, for the log.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why a call of an object store failed.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// There is no object of this name.
    #[error("the object {0} does not exist")]
    NotFound(String),
    /// There is an object of this name already.
    #[error("the object {0} exists already and is not replaced")]
    Exists(String),
    /// The store refuses the call and would refuse it again: credentials, permissions, a bucket that does not exist.
    #[error("the object store refuses {0}: {1}; check its credentials, its permissions and the URL")]
    Refused(String, #[source] Cause),
    /// The store cannot be reached, is too slow, has no space, or failed, also when tried again.
    #[error("the object store does not serve {0}: {1}")]
    Unavailable(String, #[source] Cause),
    /// The object has this many bytes, more than the caller accepts.
    #[error("the object {0} has {1} bytes, more than the {2} that are read")]
    TooLarge(String, u64, u64),
    /// The object ends before the range that was to be read.
    #[error("the object {0} ends before byte {1}")]
    Short(String, u64),
    /// More objects than a list returns.
    #[error("there are more than {max} objects under {0}", max = crate::LIST_MAX)]
    TooMany(String),
    /// Not a name of an object.
    #[error("{0:?} is not a name of an object")]
    Name(String),
}

impl ObjectError {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, ObjectError::Unavailable(..))
    }
}

/// Why a URL names no object store.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It does not parse.
    #[error("{0:?} is not a URL: {1}; write s3://bucket/prefix or file:///directory")]
    Syntax(String, url::ParseError),
    /// It has another scheme.
    #[error("{0:?} names no object store; write s3://bucket/prefix or file:///directory")]
    Scheme(String),
    /// It has parts that mean nothing here.
    #[error("{0:?} has {1}, which an object store's URL does not have")]
    Part(String, &'static str),
    /// Its path has characters that not every store takes.
    #[error("the path of {0:?} has other characters than letters, digits, '.', '-', '_' and '/'")]
    Path(String),
    /// The client cannot be configured.
    #[error("the object store {0:?} cannot be used: {1}")]
    Client(String, #[source] Cause),
}
