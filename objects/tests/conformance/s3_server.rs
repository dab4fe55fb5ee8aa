//! An S3 server on a free port, within the test's process, over a temporary directory.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use objects::ObjectStore;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A running server with a bucket named `bucket`. Dropping it stops it.
pub struct S3Server {
    pub address: SocketAddr,
    _runtime: Runtime,
    _directory: TempDir,
}

impl S3Server {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("bucket")).unwrap();
        let service = {
            let mut builder = S3ServiceBuilder::new(FileSystem::new(directory.path()).unwrap());
            builder.set_auth(SimpleAuth::from_single("key", "secret"));
            builder.build()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let http = Builder::new(TokioExecutor::new());
                    let served = http.serve_connection(TokioIo::new(stream), service);
                    // A client that goes away is no fault of the server.
                    let _ = served.await;
                });
            }
        });
        S3Server {
            address,
            _runtime: runtime,
            _directory: directory,
        }
    }

    pub fn open(&self, url: &str) -> Arc<dyn ObjectStore> {
        self.open_as(url, "key", "secret")
    }

    pub fn open_as(&self, url: &str, key: &str, secret: &str) -> Arc<dyn ObjectStore> {
        objects::open(url, environment(self.address, key, secret)).unwrap()
    }
}

/// The variables that lead to a server at this address.
pub fn environment(address: SocketAddr, key: &str, secret: &str) -> Vec<(String, String)> {
    [
        ("AWS_ACCESS_KEY_ID", key.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", secret.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
