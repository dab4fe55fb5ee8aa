//! Encryption of the connection to the database, as libpq's `sslmode` and `sslrootcert` ask for it. What is not supported is
//! refused: a mode must not be weaker than its name says.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

/// The value of `sslrootcert` that means the certificate authorities of the web.
const SYSTEM: &str = "system";

/// What an address says about encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
}

/// How much of the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Nothing,
    /// Who has signed it.
    Authority,
    /// Also the host's name.
    Name,
}

impl Wanted {
    /// The driver's mode, and how it connects.
    pub(super) fn prepare(&self) -> Result<(SslMode, MakeRustlsConnect), StoreError> {
        let root = self.sslrootcert.as_deref().filter(|root| !root.is_empty());
        let (mode, check) = match (self.sslmode.as_deref().unwrap_or("prefer"), root) {
            ("disable", _) => (SslMode::Disable, Check::Nothing),
            ("prefer", _) => (SslMode::Prefer, Check::Nothing),
            ("require" | "verify-ca", Some(SYSTEM)) | ("verify-ca", None) => {
                return Err(refused(
                    "anybody can have a certificate from the authorities of the web, so sslmode=verify-full is needed with them; or name your own authority with sslrootcert=FILE",
                ));
            }
            ("require", None) => (SslMode::Require, Check::Nothing),
            // As libpq has it: whoever names an authority wants it checked.
            ("require" | "verify-ca", Some(_)) => (SslMode::Require, Check::Authority),
            ("verify-full", _) => (SslMode::Require, Check::Name),
            (other, _) => {
                return Err(refused(&format!(
                    "sslmode={other} is not supported; it is disable, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        Ok((mode, MakeRustlsConnect::new(client(check, root)?)))
    }
}

fn refused(why: &str) -> StoreError {
    StoreError::Failed(format!("the address of the log store is refused: {why}").into())
}

fn client(check: Check, root: Option<&str>) -> Result<ClientConfig, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StoreError::Failed(error.into()))?;
    let authorities = match check {
        Check::Name => return Ok(builder.with_root_certificates(roots(root)?).with_no_client_auth()),
        Check::Authority => Some(roots(root)?),
        Check::Nothing => None,
    };
    let verifier = AnyName {
        authorities,
        provider,
    };
    // It checks as much as libpq does in the modes that come here.
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

/// The authorities that may sign a server's certificate.
fn roots(file: Option<&str>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file.filter(|file| *file != SYSTEM) else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let unreadable = |why: String| refused(&format!("sslrootcert={file} cannot be used: {why}"));
    let certificates = CertificateDer::pem_file_iter(Path::new(file));
    for certificate in certificates.map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("it holds no certificate in PEM".to_owned()));
    }
    Ok(roots)
}

/// Takes a certificate for any host.
#[derive(Debug)]
struct AnyName {
    /// Who may have signed it. Without any, the connection is encrypted, and who is at its other end is not known.
    authorities: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                authorities,
                intermediates,
                now,
                algorithms,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
