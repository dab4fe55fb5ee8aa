//! TLS of a listener: a certificate and its key from PEM files, read at start and again when the operator asks for it.
//! Open connections keep the certificate they began with.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::TlsConfig;

/// The certificate in use.
#[derive(Clone, Debug)]
pub struct Tls {
    files: TlsConfig,
    current: Arc<Current>,
}

#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

/// An unusable certificate or key; the text names the config key and the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, is not PEM, or the two do not belong together.
    pub fn read(files: &TlsConfig) -> Result<Self, TlsError> {
        Ok(Self {
            files: files.clone(),
            current: Arc::new(Current(RwLock::new(certified(files)?))),
        })
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    /// As [`Tls::read`]; the previous certificate stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        *self.current.0.write() = certified(&self.files)?;
        Ok(())
    }

    /// The configuration of a listener: TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// The provider lacks a protocol version.
    pub(super) fn server_config(&self) -> Result<rustls::ServerConfig, rustls::Error> {
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let resolver = Arc::clone(&self.current);
        Ok(builder
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(resolver))
    }
}

fn certified(files: &TlsConfig) -> Result<Arc<CertifiedKey>, TlsError> {
    let of_certificate = PemFile::new(files.section, "tls_certificate", &files.certificate);
    let of_key = PemFile::new(files.section, "tls_key", &files.key);
    let chain = of_certificate.certificates()?;
    let key = PrivateKeyDer::from_pem_slice(&of_key.read()?)
        .map_err(|error| of_key.error(format_args!("holds no private key in PEM: {error}")))?;
    let certified = CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => of_key.error(format_args!(
            "is not the key of {}.tls_certificate",
            files.section
        )),
        rustls::Error::InvalidCertificate(_) => of_certificate.error(format_args!("cannot be used: {error}")),
        error => of_key.error(format_args!("cannot be used: {error}")),
    })?;
    Ok(Arc::new(certified))
}

/// A file and the config key that names it.
pub(in crate::http) struct PemFile<'a> {
    section: &'static str,
    key: &'static str,
    path: &'a Path,
}

impl<'a> PemFile<'a> {
    /// The file that `section.key` names.
    pub(in crate::http) fn new(section: &'static str, key: &'static str, path: &'a Path) -> Self {
        PemFile { section, key, path }
    }

    /// Its certificates, at least one.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub(in crate::http) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let bytes = self.read()?;
        let read: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes).collect();
        let read = read.map_err(|error| self.error(format_args!("is not PEM: {error}")))?;
        if read.is_empty() {
            return Err(self.error("holds no certificate in PEM"));
        }
        Ok(read)
    }

    /// The error that it has this fault.
    pub(in crate::http) fn error(&self, fault: impl Display) -> TlsError {
        TlsError(format!(
            "{}.{} ({}) {fault}",
            self.section,
            self.key,
            self.path.display()
        ))
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        fs::read(self.path).map_err(|error| self.error(format_args!("cannot be read: {error}")))
    }
}
