//! Whose key a call uses.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use crate::keys::{Keys, kind};

fn headers(credential: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(credential) = credential {
        headers.insert(AUTHORIZATION, HeaderValue::from_str(credential).unwrap());
    }
    headers
}

#[test]
fn a_caller_s_own_key_goes_before_the_server_s() {
    let keys = Keys::of_callers(Some("own".to_owned()));
    let used = |credential| keys.of_call(Some(&headers(credential)));
    assert_eq!(used(Some("Bearer theirs")).as_deref(), Some("theirs"));
    assert_eq!(used(Some("bearer  theirs ")).as_deref(), Some("theirs"));
    assert_eq!(used(None).as_deref(), Some("own"));
    // Whoever sends a credential does not get another one's.
    for other in ["Basic dTpw", "Bearer", "Bearer ", "theirs"] {
        assert_eq!(used(Some(other)), None, "{other}");
    }
}

#[test]
fn without_a_key_of_its_own_the_server_lends_none() {
    let keys = Keys::of_callers(None);
    assert_eq!(keys.of_call(Some(&headers(None))), None);
    assert_eq!(keys.of_call(None), None);
    assert_eq!(
        keys.of_call(Some(&headers(Some("Bearer theirs")))).as_deref(),
        Some("theirs")
    );
}

#[test]
fn one_client_uses_the_server_s_key() {
    let keys = Keys::own("own".to_owned());
    assert_eq!(keys.of_call(None).as_deref(), Some("own"));
    assert_eq!(
        keys.of_call(Some(&headers(Some("Bearer theirs")))).as_deref(),
        Some("own")
    );
}

#[test]
fn a_key_s_kind_is_its_prefix() {
    let cases = [
        ("svc_a_x", "an admin key"),
        ("svc_w_x", "a write key"),
        ("svc_r_x", "a read key"),
        ("svc_i_x", "an integration key"),
        ("svc_", "a key of no known kind"),
        ("éééé", "a key of no known kind"),
    ];
    for (key, expected) in cases {
        assert_eq!(kind(key), expected, "{key}");
    }
}
