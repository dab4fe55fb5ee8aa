//! Whom to trust on an encrypted connection.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::BridgeError;
use crate::config::Encryption;

/// A TLS client that trusts the certificates of the file `ca`, else the web's authorities.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn client(encryption: &Encryption) -> Result<ClientConfig, BridgeError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &encryption.ca {
        let fault = |cause: String| BridgeError::Config(format!("[broker] ca {}: {cause}", path.display()));
        for certificate in CertificateDer::pem_file_iter(path).map_err(|cause| fault(cause.to_string()))? {
            let certificate = certificate.map_err(|cause| fault(cause.to_string()))?;
            roots.add(certificate).map_err(|cause| fault(cause.to_string()))?;
        }
        if roots.is_empty() {
            return Err(fault("there is no certificate in PEM in it".to_owned()));
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| BridgeError::Config(cause.to_string()))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}
