//! Several hosts, of which some do not answer.

use std::net::TcpListener;

use log_store::{LogStore, Postgres, StoreError, Timeouts};

use crate::postgres;
use crate::sides::{cluster, store};

/// Accepts connections, and says nothing.
fn black_hole() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn a_host_that_accepts_and_stays_silent_does_not_hide_the_next() {
    let (database, _) = cluster(2);
    let ((_one, hole), (_other, second)) = (black_hole(), black_hole());
    let port = postgres::shared().port;
    let hosts = format!("127.0.0.1:{hole},127.0.0.1:{second},127.0.0.1:{port}");
    let mut store = store(&format!("postgres://tidewatch@{hosts}/{database}"));
    assert_eq!(store.cluster().unwrap().shards, 2);
    let ports = format!("{hole},{port}");
    let pairs = format!("host=127.0.0.1,127.0.0.1 port={ports} user=tidewatch dbname={database}");
    let mut by_pairs = Postgres::new(&pairs, Timeouts::default()).unwrap();
    assert_eq!(by_pairs.shards().unwrap().len(), 2);
}

#[test]
fn hosts_that_all_fail_are_named() {
    let (_listener, hole) = black_hole();
    let timeouts = Timeouts::of_membership(std::time::Duration::from_secs(2));
    let url = format!("postgres://tidewatch@127.0.0.1:{hole},127.0.0.1:1/none");
    let failed = Postgres::new(&url, timeouts).unwrap().shards().unwrap_err();
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed}");
    let said = failed.to_string();
    assert!(said.contains(&format!("127.0.0.1:{hole}: ")), "{said}");
    assert!(said.contains("127.0.0.1:1: "), "{said}");
}

#[test]
fn an_address_that_cannot_work_is_refused_at_once() {
    let many = vec!["h"; 17].join(",");
    for (url, part) in [
        (format!("postgres://u@{many}/d"), "17 hosts"),
        ("user=u".to_owned(), "0 hosts"),
        ("host=a,b port=1,2,3".to_owned(), "ports"),
        ("host=a target_session_attrs=read-only".to_owned(), "read-only"),
        ("host=a what=ever".to_owned(), "what"),
    ] {
        let refused = Postgres::new(&url, Timeouts::default())
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains(part), "{url}: {refused}");
    }
}
