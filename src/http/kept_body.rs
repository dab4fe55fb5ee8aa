//! Bodies that are the same for everybody: they are kept once in each coding, however many clients take them, and however
//! slowly.

use std::sync::OnceLock;

use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use listener::Kept;

use super::respond::{Coding, coding_of, encode, head};
use crate::error::ServiceError;

/// A body and its compressed forms, which are made when the first client asks for them.
pub struct KeptBody {
    plain: Bytes,
    gzip: OnceLock<Encoding>,
    zstd: OnceLock<Encoding>,
}

/// A form in the coding that saves something, or the reason why there is none.
type Encoding = Result<(Coding, Bytes), String>;

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
        let (coding, body) = self.form(coding_of(request))?;
        let mut response = head(StatusCode::OK, coding).body(body);
        response.extensions_mut().insert(Kept);
        Ok(response)
    }

    fn form(&self, coding: Coding) -> Result<(Coding, Bytes), ServiceError> {
        let kept = match coding {
            Coding::Identity => return Ok((coding, self.plain.clone())),
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        };
        let form = kept.get_or_init(|| {
            let encoded = encode(coding, self.plain.to_vec()).map_err(|error| error.to_string())?;
            Ok((encoded.coding, encoded.bytes.into()))
        });
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
            let [(one, first), (other, second)] = [(); 2].map(|()| body.form(coding).unwrap());
            assert_eq!((one, other), (coding, coding));
            assert_eq!(first.as_ptr(), second.as_ptr());
            assert_eq!(first.len() < 100_000, coding != Coding::Identity);
        }
    }

    #[test]
    fn what_compression_does_not_save_is_plain() {
        let body = KeptBody::new(Bytes::from_static(b"short"));
        assert_eq!(
            body.form(Coding::Zstd).unwrap(),
            (Coding::Identity, Bytes::from_static(b"short"))
        );
    }
}
