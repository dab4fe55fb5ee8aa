//! One set of tests over all sides of the port: memory, a local directory, and an S3 server in this process.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

mod contract;
mod s3_server;

use std::sync::Arc;

use objects::sim::{Fault, SimObjects};
use objects::{Bytes, Existing, ObjectError, ObjectStore};
use s3_server::S3Server;

#[test]
fn memory_keeps_the_contract() {
    contract::check(&SimObjects::default());
}

#[test]
fn a_directory_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file://{}/a%20b", directory.path().display());
    let store = objects::open(&url, []).unwrap();
    let error = store
        .put("a", Bytes::new(), Existing::Refuse)
        .expect_err("it does not exist");
    assert!(error.to_string().contains("mount its volume"), "{error}");
    std::fs::create_dir(directory.path().join("a b")).unwrap();
    contract::check(&*store);
}

#[test]
fn an_s3_server_keeps_the_contract() {
    let server = S3Server::start();
    contract::check(&*server.open("s3://bucket/some/prefix"));
    contract::check(&*server.open("s3://bucket"));
}

#[test]
fn a_large_object_is_sent_in_parts() {
    let server = S3Server::start();
    let store = server.open("s3://bucket/parts");
    contract::check_large(&*store, 64 << 20);
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file://{}", directory.path().display());
    contract::check_large(&*objects::open(&url, []).unwrap(), 1 << 20);
}

#[test]
fn an_s3_store_that_refuses_says_so() {
    let server = S3Server::start();
    let store = server.open_as("s3://bucket", "key", "a wrong secret");
    let put = store.put("a", Bytes::from("a"), Existing::Refuse);
    assert!(matches!(put, Err(ObjectError::Refused(..))), "{put:?}");
}

#[test]
fn a_store_that_is_not_there_is_unavailable() {
    // Bound and never listened on, so that connections are refused.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let store = objects::open("s3://bucket", s3_server::environment(address, "key", "secret")).unwrap();
    let put = store.put("a", Bytes::from("a"), Existing::Refuse);
    assert!(matches!(put, Err(ObjectError::Unavailable(..))), "{put:?}");
}

/// Simulated faults do what they say.
#[test]
fn the_simulated_store_fails_as_told() {
    let store = SimObjects::default();
    let put = |name: &str, fault: Fault| {
        store.set_faults(move || fault);
        let put = store.put(name, Bytes::from("x"), Existing::Refuse);
        store.set_faults(|| Fault::None);
        (put, store.get(name, 1).is_ok())
    };
    assert!(matches!(
        put("a", Fault::Refused),
        (Err(ObjectError::Refused(..)), false)
    ));
    assert!(matches!(
        put("b", Fault::Full),
        (Err(ObjectError::Unavailable(..)), false)
    ));
    assert!(matches!(
        put("c", Fault::Lost),
        (Err(ObjectError::Unavailable(..)), true)
    ));
    assert!(matches!(put("d", Fault::Slow(5)), (Ok(()), true)));
    assert_eq!(store.counts().puts, 2);
    assert!(store.reused_names().is_empty());
}

/// Regression: a cluster's own part of a directory was not made, and nothing could be stored.
#[test]
fn a_part_of_a_directory_is_made_when_it_is_needed_and_the_directory_is_not() {
    let root = tempfile::tempdir().unwrap();
    let url = |directory: &str| format!("file://{}/{directory}", root.path().display());
    std::fs::create_dir(root.path().join("there")).unwrap();
    let own = objects::open_within(&url("there"), "own", []).unwrap();
    assert!(own.list("files").unwrap().is_empty());
    contract::check(&*own);
    own.put("files/kept", Bytes::new(), Existing::Refuse).unwrap();
    let whole = objects::open(&url("there"), []).unwrap();
    assert_eq!(whole.list("own").unwrap()[0].name, "own/files/kept");
    let unmounted = objects::open_within(&url("elsewhere"), "own", []).unwrap();
    let refused = unmounted.put("files/1", Bytes::new(), Existing::Refuse);
    assert!(
        matches!(refused, Err(ObjectError::Unavailable(..))),
        "{refused:?}"
    );
    assert!(!root.path().join("elsewhere").exists());
}

/// The S3 server of these tests is left out: unlike S3, it looks for the name first and writes afterwards.
#[test]
fn of_many_writers_of_one_name_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let file = objects::open(&format!("file://{}", directory.path().display()), []).unwrap();
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(SimObjects::default()), file];
    for store in stores {
        for name in ["race/1", "race/2", "race/3"] {
            let won = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..8u8)
                    .map(|writer| {
                        let store = &store;
                        scope.spawn(move || store.put(name, Bytes::from(vec![writer]), Existing::Refuse))
                    })
                    .collect();
                let done = writers.into_iter().map(|writer| writer.join().unwrap());
                let won = done.enumerate().filter(|(_, put)| put.is_ok());
                won.map(|(writer, _)| writer as u8).collect::<Vec<_>>()
            });
            assert_eq!(won.len(), 1, "{won:?} of {name}");
            assert_eq!(store.get(name, 1).unwrap()[..], won);
        }
    }
}
