//! Bodies that are the same for everybody: they are kept once in each coding, however many clients take them, and however
//! slowly.

use std::sync::OnceLock;

use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use listener::Kept;

use super::respond::{Coding, Encoded, coding_of, encode, respond_encoded};
use crate::error::ServiceError;

/// A body and its compressed forms, which are made when the first client asks for them.
pub struct KeptBody {
    plain: Bytes,
    gzip: OnceLock<Form>,
    zstd: OnceLock<Form>,
}

/// A form, or the reason why there is none.
type Form = Result<Encoded, String>;

impl KeptBody {
    pub fn new(plain: Bytes) -> Self {
        KeptBody {
            plain,
            gzip: OnceLock::new(),
            zstd: OnceLock::new(),
        }
    }

    /// Responds with the form that the client prefers.
    ///
    /// # Errors
    /// 500 if it cannot be compressed.
    pub fn respond(&self, request: &HttpRequest) -> Result<HttpResponse, ServiceError> {
        let mut response = respond_encoded(StatusCode::OK, self.form(coding_of(request))?);
        response.extensions_mut().insert(Kept);
        Ok(response)
    }

    fn form(&self, coding: Coding) -> Result<Encoded, ServiceError> {
        let make = || encode(coding, self.plain.clone());
        let kept = match coding {
            Coding::Identity => return make(),
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        };
        let form = kept.get_or_init(|| make().map_err(|error| error.to_string()));
        form.clone().map_err(ServiceError::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_the_same_bytes_of_memory() {
        let body = KeptBody::new(Bytes::from(vec![b'x'; 100_000]));
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
            let [first, second] = [(); 2].map(|()| body.form(coding).unwrap());
            assert_eq!((first.coding, second.coding), (coding, coding));
            assert_eq!(first.bytes.as_ptr(), second.bytes.as_ptr());
            assert_eq!(first.bytes.len() < 100_000, coding != Coding::Identity);
        }
    }

    #[test]
    fn what_compression_does_not_save_is_plain() {
        let body = KeptBody::new(Bytes::from_static(b"short"));
        let form = body.form(Coding::Zstd).unwrap();
        assert_eq!(
            (form.coding, form.bytes),
            (Coding::Identity, Bytes::from_static(b"short"))
        );
    }
}
