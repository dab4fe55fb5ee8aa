//! TLS between nodes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::forwarding::elsewhere;
use crate::turn::in_own_world;
use crate::world::{NODES, Plan};

/// Time for an answer, on two busy cores.
const WITHIN: Duration = Duration::from_secs(20);

/// Files that the nodes are configured with.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const CA: &str = "ca.pem";

/// Makes an authority, writes its certificate, and returns what signs.
fn write_authority(dir: &Path) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join(CA), params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

/// Writes a certificate for the address of the nodes, and its key.
fn write_certificate(dir: &Path, authority: &Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    fs::write(dir.join(CERTIFICATE), certificate.pem()).unwrap();
    fs::write(dir.join(KEY), key.serialize_pem()).unwrap();
}

#[test]
fn nodes_speak_tls_with_those_whose_certificates_they_trust() {
    let dir = TempDir::new().unwrap();
    write_certificate(dir.path(), &write_authority(dir.path()));
    let file = |name: &str| dir.path().join(name).display().to_string();
    let plan = Plan {
        settings: vec![
            ("cluster.tls_certificate", file(CERTIFICATE)),
            ("cluster.tls_key", file(KEY)),
            ("cluster.tls_ca", file(CA)),
            ("server.request_timeout_seconds", "2".to_owned()),
        ],
        ..Plan::default()
    };
    in_own_world(&plan, |world| {
        let (tenant, other) = elsewhere(world);
        let owner = world.owners()[&tenant.shard];
        let to_owner = &world.nodes[owner].from_nodes;
        // Counted, and not changed.
        const NAMED: &[u8] = b"x-tidewatch-secret";
        to_owner.change(NAMED, NAMED);
        let path = format!("/api/buckets/{}", tenant.bucket.id);
        let ask = |node: usize| {
            let client = &world.nodes[node].server.client;
            client.get(&path).key(&tenant.bucket.admin).send()
        };
        ask(other).expect(200, "any node takes any request");
        assert_eq!(to_owner.changed(), 0, "the secret is encrypted");

        let mut plain = TcpStream::connect(("127.0.0.1", to_owner.port)).unwrap();
        plain.set_read_timeout(Some(WITHIN)).unwrap();
        plain
            .write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        // The connection may be reset; only what came before matters.
        let _ = plain.read_to_end(&mut answer);
        assert!(
            !answer.starts_with(b"HTTP"),
            "{}",
            String::from_utf8_lossy(&answer)
        );

        // A node that trusts another authority does not send its secret to the owner.
        write_authority(dir.path());
        assert!(
            world.nodes[other].server.stop().success(),
            "contract 9: SIGTERM: exit 0"
        );
        world.launch(other);
        world.settle();
        let owner = world.owners()[&tenant.shard];
        assert_ne!(owner, other, "a node that has just started owns no shard");
        let ask = |node: usize| {
            let client = &world.nodes[node].server.client;
            client.get(&path).key(&tenant.bucket.admin).send()
        };
        ask(other).expect(503, "the owner cannot prove that it is one");
        for node in (0..NODES).filter(|node| *node != other) {
            ask(node).expect(200, "the others go on");
        }
    });
}
