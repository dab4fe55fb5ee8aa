//! Whose key a call uses. Pure.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Where the keys of calls come from.
#[derive(Clone)]
pub struct Keys {
    own: Option<String>,
    /// Whether a caller's key counts; it goes before the own one.
    of_callers: bool,
}

impl Keys {
    /// One client with this server's key.
    pub fn own(key: String) -> Self {
        Self {
            own: Some(key),
            of_callers: false,
        }
    }

    /// Callers with their own keys; `key` is for those without.
    pub fn of_callers(key: Option<String>) -> Self {
        Self {
            own: key,
            of_callers: true,
        }
    }

    /// The key of a call with these headers, or none if it has to bring one. A credential of another kind than `Bearer`
    /// is none, and is not replaced by the own key.
    pub fn of_call(&self, headers: Option<&HeaderMap>) -> Option<String> {
        let credential = match headers {
            Some(headers) if self.of_callers => headers.get(AUTHORIZATION),
            _ => None,
        };
        match credential {
            None => self.own.clone(),
            Some(credential) => {
                let (scheme, key) = credential.to_str().ok()?.split_once(' ')?;
                let key = key.trim();
                let is_key = scheme.eq_ignore_ascii_case("bearer") && !key.is_empty();
                is_key.then(|| key.to_owned())
            }
        }
    }
}

/// What kind of key this is, by its prefix.
pub fn kind(key: &str) -> &'static str {
    match key.get(..6) {
        Some("svc_a_") => "an admin key",
        Some("svc_w_") => "a write key",
        Some("svc_r_") => "a read key",
        Some("svc_i_") => "an integration key",
        _ => "a key of no known kind",
    }
}
