//! What the URL of an object store may say.

use std::path::PathBuf;

use url::Url;

use crate::error::UrlError;
use crate::is_name_byte;

/// A parsed URL of an object store. Nothing is opened or reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `s3://bucket/prefix`
    S3 {
        /// The bucket.
        bucket: String,
        /// What the names of all objects begin with; may be empty.
        prefix: String,
    },
    /// `file:///directory`: a local directory, or one that is mounted from elsewhere.
    Directory(PathBuf),
}

impl Location {
    /// Whether a text is meant as the URL of an object store rather than as a path.
    pub fn is_url(text: &str) -> bool {
        text.contains("://")
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text).map_err(|error| UrlError::Syntax(text.to_owned(), error))?;
        let part = |what| UrlError::Part(text.to_owned(), what);
        if !url.username().is_empty() || url.password().is_some() {
            return Err(part("a user or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(part("a query or a fragment"));
        }
        if url.port().is_some() {
            return Err(part("a port"));
        }
        match url.scheme() {
            "s3" => s3(text, &url),
            "file" => directory(text, &url),
            _ => Err(UrlError::Scheme(text.to_owned())),
        }
    }
}

fn s3(text: &str, url: &Url) -> Result<Location, UrlError> {
    let bucket = url.host_str().unwrap_or_default();
    if bucket.is_empty() {
        return Err(UrlError::Part(text.to_owned(), "no bucket"));
    }
    let prefix = url.path().trim_matches('/');
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_name_byte);
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err(UrlError::Path(text.to_owned()));
    }
    Ok(Location::S3 {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
    })
}

fn directory(text: &str, url: &Url) -> Result<Location, UrlError> {
    if url.host_str().is_some_and(|host| !host.is_empty()) {
        return Err(UrlError::Part(
            text.to_owned(),
            "a host; write three slashes after file:",
        ));
    }
    let path = url.to_file_path();
    let path = path.map_err(|()| UrlError::Path(text.to_owned()))?;
    if path.parent().is_none() {
        return Err(UrlError::Part(text.to_owned(), "no directory"));
    }
    Ok(Location::Directory(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_both_kinds_are_parsed() {
        let s3 = |bucket: &str, prefix: &str| Location::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        for (text, location) in [
            ("s3://plant/tidewatch/a", s3("plant", "tidewatch/a")),
            ("s3://plant", s3("plant", "")),
            ("s3://plant/a/", s3("plant", "a")),
            ("file:///var/store", Location::Directory("/var/store".into())),
            (
                "file:///var/my%20store/",
                Location::Directory("/var/my store/".into()),
            ),
        ] {
            assert_eq!(Location::parse(text).unwrap(), location, "{text}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_what_to_write() {
        for text in [
            "",
            "plant",
            "/var/store",
            "https://plant/a",
            "s3://",
            "s3:///a",
            "s3://plant/a//b",
            "s3://plant/ä",
            "s3://key:secret@plant/a",
            "s3://plant/a?b=c",
            "s3://plant:9000/a",
            "file://host/var",
            "file:///",
        ] {
            let error = Location::parse(text).expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
