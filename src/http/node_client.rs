//! Requests from node to node: they carry the cluster's secret, and go over TLS if that is configured.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use awc::error::{ConnectError, SendRequestError};
use awc::{Client, ClientRequest, Connector};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};

use super::bundle::Bundles;
use super::inside;
use super::server::{PemFile, Tls, TlsError};
use crate::config::ClusterConfig;

/// Connections of one thread to all other nodes; above it requests wait.
const CONNECTIONS_MAX: usize = 1_024;
/// A connection that was idle for longer is not used again.
pub const IDLE_MAX: Duration = Duration::from_secs(15);
/// Time for telling a node something.
const TELL_TIMEOUT: Duration = Duration::from_secs(1);

/// What nodes need for their connections with each other.
#[derive(Clone)]
pub struct NodeAccess {
    secret: Arc<str>,
    tls: Option<NodeTls>,
}

#[derive(Clone)]
struct NodeTls {
    /// Of the listener for other nodes.
    listener: Tls,
    /// Of connections to other nodes: whom they trust.
    client: Arc<ClientConfig>,
}

impl NodeAccess {
    /// Reads the files for TLS, if they are configured.
    ///
    /// # Errors
    /// As [`Tls::read`], also for the certificates of the authorities.
    pub fn read(config: &ClusterConfig) -> Result<Self, TlsError> {
        let read = |files: crate::config::NodeTlsConfig| {
            let listener = Tls::read(&files.listener)?;
            let ca = PemFile::new("cluster", "tls_ca", &files.ca);
            let client = Arc::new(client_config(&ca)?);
            Ok(NodeTls { listener, client })
        };
        Ok(NodeAccess {
            secret: config.secret.as_deref().unwrap_or_default().into(),
            tls: config.tls().map(read).transpose()?,
        })
    }

    /// TLS of the listener for other nodes.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref().map(|tls| &tls.listener)
    }
}

fn client_config(ca: &PemFile<'_>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in ca.certificates()? {
        let added = roots.add(certificate);
        added.map_err(|error| ca.error(format_args!("cannot be used: {error}")))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ca.error(format_args!("cannot be used: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A thread's connections to other nodes. Cheap to clone.
#[derive(Clone)]
pub struct NodeClient {
    client: Client,
    access: NodeAccess,
    /// Requests that are about to be sent together.
    pub bundles: Bundles,
}

/// Why there is no answer to a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{cause}")]
pub struct Unanswered {
    /// Whether nothing was sent.
    pub is_unsent: bool,
    cause: Cow<'static, str>,
}

impl Unanswered {
    /// What became of the request is not known.
    pub fn after_sending(cause: impl Into<Cow<'static, str>>) -> Self {
        Unanswered {
            is_unsent: false,
            cause: cause.into(),
        }
    }
}

impl From<SendRequestError> for Unanswered {
    fn from(error: SendRequestError) -> Self {
        // The library also calls it a failure to connect if a connection ends before the answer.
        let is_unsent = matches!(&error, SendRequestError::Connect(cause) if !matches!(cause, ConnectError::Disconnected));
        Unanswered {
            is_unsent,
            cause: error.to_string().into(),
        }
    }
}

impl NodeClient {
    /// No connections yet. Must be created on the thread that uses it.
    pub fn new(access: NodeAccess) -> Self {
        let connector = Connector::new().limit(CONNECTIONS_MAX).conn_keep_alive(IDLE_MAX);
        let connector = match &access.tls {
            Some(tls) => connector.rustls_0_23(Arc::clone(&tls.client)),
            None => connector,
        };
        let client = Client::builder().connector(connector).disable_redirects();
        let client = client.no_default_headers().finish();
        NodeClient {
            client,
            access,
            bundles: Bundles::default(),
        }
    }

    /// A request to the node at this address.
    pub fn request(&self, method: &Method, address: &str, target: &str) -> ClientRequest {
        let scheme = if self.access.tls.is_some() {
            "https"
        } else {
            "http"
        };
        self.client
            .request(method.clone(), format!("{scheme}://{address}{target}"))
            .insert_header((inside::SECRET.clone(), self.access.secret.as_bytes()))
    }

    /// Has the node at this address read the tables of the cluster, and waits until it has.
    ///
    /// # Errors
    /// The node does not answer. It reads the tables by itself, a little later.
    pub async fn tell_news(&self, address: &str) -> Result<(), SendRequestError> {
        let told = self.request(&Method::POST, address, inside::NEWS_PATH);
        told.timeout(TELL_TIMEOUT).send().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_file_without_usable_authorities_is_named() {
        let dir = TempDir::new().unwrap();
        let write = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).unwrap();
            Some(dir.path().join(name))
        };
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut config = Config::defaults().unwrap().cluster;
        assert!(NodeAccess::read(&config).unwrap().tls().is_none());
        config.tls_certificate = write("certificate.pem", &own.cert.pem());
        config.tls_key = write("key.pem", &own.signing_key.serialize_pem());
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (text, fault) in [("", "no certificate"), (nonsense, "cannot be used")] {
            config.tls_ca = write("ca.pem", text);
            let refused = NodeAccess::read(&config).err().unwrap().to_string();
            assert!(refused.starts_with("cluster.tls_ca ("), "{refused}");
            assert!(refused.contains(fault), "{refused}");
        }
        config.tls_ca = write("ca.pem", &own.cert.pem());
        assert!(NodeAccess::read(&config).unwrap().tls().is_some());
    }
}
