//! Encryption of the connection, with a server whose certificate an authority of the test's own has signed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use log_store::{Postgres as Store, StoreError, Timeouts};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::postgres;
use crate::server::{Postgres, account};
use crate::sides::{OPTIONS, store};

/// A server with a certificate for `localhost`, and files of two authorities: the one that has signed it, and another one.
struct World {
    server: Vec<Postgres>,
    database: String,
    dir: TempDir,
}

fn authority(file: &Path) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(file, params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        let issuer = authority(&at("ca.pem"));
        authority(&at("other.pem"));
        fs::write(at("empty.pem"), "").unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(at("server.pem"), certificate.pem()).unwrap();
        fs::write(at("server.key"), key.serialize_pem()).unwrap();
        fs::set_permissions(at("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
        for path in [dir.path().to_owned(), at("server.pem"), at("server.key")] {
            if let Some((uid, gid)) = account() {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        let file = |setting: &str, name: &str| format!("{setting}={}", at(name).display());
        let (cert, key) = (
            file("ssl_cert_file", "server.pem"),
            file("ssl_key_file", "server.key"),
        );
        let server = Postgres::start(0, &["fsync=off", "ssl=on", &cert, &key]);
        let database = server[0].database();
        store(&server[0].url(&database, server[0].port))
            .init(2, OPTIONS)
            .unwrap();
        World {
            server,
            database,
            dir,
        }
    }

    /// Connects; returns whether the connection is encrypted.
    fn connect(&self, host: &str, parameters: &str) -> Result<bool, StoreError> {
        let server = &self.server[0];
        let dir = self.dir.path().display().to_string();
        let parameters = parameters.replace("DIR", &dir);
        let url = format!(
            "postgres://tidewatch@{host}:{}/{}?{parameters}",
            server.port, self.database
        );
        let mut store = Store::new(&url, Timeouts::default())?;
        store.cluster()?;
        let sessions = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                        WHERE application_name = 'tidewatch' ORDER BY backend_start DESC LIMIT 1";
        Ok(server.sql(&self.database, sessions) == "t")
    }
}

#[test]
fn each_mode_checks_what_its_name_says() {
    let world = World::new();
    let (named, unnamed) = ("localhost", "127.0.0.1");
    let (ours, others) = ("sslrootcert=DIR/ca.pem", "sslrootcert=DIR/other.pem");
    let connect = |host, mode, root| world.connect(host, &format!("sslmode={mode}&{root}"));
    assert!(!connect(named, "disable", "").unwrap());
    assert!(connect(named, "prefer", "").unwrap());
    assert!(world.connect(unnamed, "").unwrap(), "as with prefer");
    assert!(connect(unnamed, "require", "").unwrap(), "nobody is checked");
    for host in [named, unnamed] {
        assert!(connect(host, "verify-ca", ours).unwrap(), "for any host");
        assert!(connect(host, "require", ours).unwrap(), "as with verify-ca");
        assert!(connect(host, "verify-ca", others).is_err(), "another authority");
        assert!(connect(host, "require", others).is_err(), "another authority");
        assert!(connect(host, "verify-full", others).is_err(), "another authority");
        assert!(
            connect(host, "verify-full", "").is_err(),
            "no authority of the web"
        );
        assert!(connect(host, "verify-full", "sslrootcert=system").is_err());
    }
    assert!(connect(named, "verify-full", ours).unwrap());
    let refused = connect(unnamed, "verify-full", ours).unwrap_err().to_string();
    assert!(refused.contains("not valid for name"), "{refused}");
}

#[test]
fn a_server_without_encryption_is_refused_where_it_is_required() {
    let postgres = postgres::shared();
    let url = postgres.url(&postgres.database(), postgres.port);
    store(&url).init(1, OPTIONS).unwrap();
    for mode in ["require", "verify-full"] {
        let refused = store(&format!("{url}?sslmode={mode}")).cluster().unwrap_err();
        assert!(refused.to_string().contains("TLS"), "{refused}");
    }
    for mode in ["disable", "prefer"] {
        assert_eq!(
            store(&format!("{url}?sslmode={mode}")).cluster().unwrap().shards,
            1
        );
    }
}

#[test]
fn what_would_be_weaker_than_it_says_is_refused() {
    let dir = TempDir::new().unwrap();
    let empty = dir.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    for (parameters, part) in [
        ("sslmode=verify-ca".to_owned(), "verify-full"),
        ("sslmode=verify-ca&sslrootcert=system".to_owned(), "verify-full"),
        ("sslmode=require&sslrootcert=system".to_owned(), "verify-full"),
        ("sslmode=allow".to_owned(), "allow is not supported"),
        ("sslmode=verify_full".to_owned(), "verify_full is not supported"),
        ("sslcert=x".to_owned(), "sslcert is not supported"),
        ("sslmode=verify-full&sslrootcert=/nowhere".to_owned(), "/nowhere"),
        (
            format!("sslmode=verify-full&sslrootcert={}", empty.display()),
            "no certificate",
        ),
    ] {
        let url = format!("postgres://u@h/d?{parameters}");
        let refused = Store::new(&url, Timeouts::default()).err().unwrap().to_string();
        assert!(refused.contains(part), "{parameters}: {refused}");
    }
}
