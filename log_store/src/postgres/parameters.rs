//! The parameters about encryption, taken out of an address: the driver knows fewer values of them than libpq does.

use crate::error::StoreError;

/// An address without `sslmode` and `sslrootcert`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    /// What the driver reads.
    pub(super) rest: String,
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
}

/// Parameters of libpq that would make the connection weaker if they were ignored, or could not work.
const UNSUPPORTED: [&str; 9] = [
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslcertmode",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "require_auth",
];

/// Reads both forms: `postgres://host/database?sslmode=...` and `host=... sslmode=...`.
pub(super) fn split(text: &str) -> Result<Parameters, StoreError> {
    let mut parameters = Parameters::default();
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_ours = parameters.take(&decoded(name)?, &decoded(value)?)?;
            if !is_ours {
                rest.push(pair);
            }
        }
        parameters.rest = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        return Ok(parameters);
    }
    let mut characters = text.trim_start();
    while !characters.is_empty() {
        let (name, value, following) = pair(characters)?;
        let is_ours = parameters.take(name, &value)?;
        if !is_ours {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            parameters.rest.push_str(&format!("{name}='{value}' "));
        }
        characters = following.trim_start();
    }
    Ok(parameters)
}

impl Parameters {
    /// Keeps the parameter if it is about encryption.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, StoreError> {
        match name {
            "sslmode" => self.sslmode = Some(value.to_owned()),
            "sslrootcert" => self.sslrootcert = Some(value.to_owned()),
            unsupported if UNSUPPORTED.contains(&unsupported) => {
                return Err(malformed(&format!("{unsupported} is not supported")));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The first `name = value` of a text, and what follows. A value in single quotes may have blanks; a backslash stands before
/// a quote or a backslash.
fn pair(text: &str) -> Result<(&str, String, &str), StoreError> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| malformed("a name without a value"))?;
    let value = value.trim_start();
    let (is_quoted, value) = match value.strip_prefix('\'') {
        Some(value) => (true, value),
        None => (false, value),
    };
    let mut read = String::new();
    let mut characters = value.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => read.extend(characters.next().map(|(_, next)| next)),
            '\'' if is_quoted => return Ok((name.trim(), read, &value[at + 1..])),
            blank if blank.is_whitespace() && !is_quoted => return Ok((name.trim(), read, &value[at..])),
            other => read.push(other),
        }
    }
    match is_quoted {
        true => Err(malformed("a quote that does not end")),
        false => Ok((name.trim(), read, "")),
    }
}

/// A part of a URL, whose bytes may be written as `%` and two hexadecimal digits.
fn decoded(text: &str) -> Result<String, StoreError> {
    let wrong = || malformed("a % that no two hexadecimal digits follow, or bytes that are not UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, following)) = rest.split_first() {
        rest = following;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, following) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = following;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn malformed(why: &str) -> StoreError {
    StoreError::Failed(format!("the address of the log store is refused: {why}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> (String, Option<String>, Option<String>) {
        let Parameters {
            rest,
            sslmode,
            sslrootcert,
        } = split(text).unwrap();
        (rest, sslmode, sslrootcert)
    }

    #[test]
    fn what_is_about_encryption_is_taken_out_of_a_url() {
        let some = |text: &str| Some(text.to_owned());
        let url = "postgres://u:p%40@a:1,b:2/d";
        assert_eq!(parameters(url), (url.to_owned(), None, None));
        let full = format!("{url}?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fetc%2Fca%20file.pem");
        assert_eq!(
            parameters(&full),
            (
                format!("{url}?connect_timeout=3"),
                some("verify-full"),
                some("/etc/ca file.pem")
            )
        );
        let only = format!("{url}?%73slmode=require");
        assert_eq!(parameters(&only), (url.to_owned(), some("require"), None));
    }

    #[test]
    fn what_is_about_encryption_is_taken_out_of_pairs() {
        let some = |text: &str| Some(text.to_owned());
        let pairs = r"host=a,b  user = 'it\'s \\ me' sslmode=verify-ca sslrootcert='/a b' dbname=";
        let rest = r"host='a,b' user='it\'s \\ me' dbname='' ";
        assert_eq!(
            parameters(pairs),
            (rest.to_owned(), some("verify-ca"), some("/a b"))
        );
        let config: tokio_postgres::Config = rest.parse().unwrap();
        assert_eq!(config.get_user(), Some(r"it's \ me"));
        assert_eq!(config.get_hosts().len(), 2);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        for (text, part) in [
            ("postgres://a/d?sslcert=x", "sslcert is not supported"),
            ("host=a sslcrl=x", "sslcrl is not supported"),
            ("postgres://a/d?sslrootcert=%2", "hexadecimal"),
            ("host=a sslrootcert='x", "quote"),
            ("host", "without a value"),
        ] {
            let refused = split(text).unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}
