//! The configuration file.

use std::path::Path;
use std::time::Duration;

use crate::batch::Bounds;
use crate::config::{Config, ConfigError, Version};

const API: &str = "[api]\nurl = 'http://127.0.0.1:8080'\nkey = 'svc_w_secret'\n";
const BROKER: &str = "[broker]\nurl = 'mqtt://broker.example'\nclient_id = 'bridge'\n";
const TOPIC: &str = "[[topics]]\ntopic = 'plant/{site}/{source}'\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, None, Path::new("bridge.toml"))
}

#[test]
fn a_few_lines_are_enough() {
    let config = parse(&[API, BROKER, TOPIC].concat()).unwrap();
    assert_eq!(config.api.url, "http://127.0.0.1:8080");
    assert_eq!(config.api.key, "svc_w_secret");
    let broker = &config.broker;
    assert_eq!((broker.host.as_str(), broker.port), ("broker.example", 1883));
    assert_eq!(broker.version, Version::V5);
    assert!(broker.encryption.is_none() && broker.credentials.is_none());
    assert_eq!(config.topics.len(), 1);
    let bounds = Bounds {
        messages: 5_000,
        bytes: 1 << 20,
    };
    assert_eq!(config.batch, bounds);
    assert_eq!(config.linger, Duration::from_millis(5));
}

#[test]
fn all_members() {
    let text = "[api]\nurl = 'https://a'\nkey = 'k'\nbucket = 'plant'\n\
                [broker]\nurl = 'mqtts://b:1'\nclient_id = 'c'\nversion = '3.1.1'\nuser = 'u'\npassword = 'p'\n\
                ca = 'ca.pem'\nin_flight = 20\n\
                [[topics]]\ntopic = 'plant/+/t'\nsource = 't'\n\
                [[topics]]\ntopic = 'lab/{source}'\n\
                [batch]\nmessages = 1\nbytes = 1024\nlinger_ms = 0\n";
    let config = parse(text).unwrap();
    assert_eq!(config.api.bucket.as_deref(), Some("plant"));
    let broker = &config.broker;
    assert_eq!((broker.host.as_str(), broker.port), ("b", 1));
    assert_eq!((broker.version, broker.in_flight), (Version::V3, 20));
    assert_eq!(broker.credentials.as_ref().unwrap().password, "p");
    assert_eq!(
        broker.encryption.as_ref().unwrap().ca.as_deref(),
        Some(Path::new("ca.pem"))
    );
    let filters: Vec<String> = config.topics.iter().map(|topic| topic.filter()).collect();
    assert_eq!(filters, ["plant/+/t", "lab/+"]);
}

#[test]
fn the_environment_has_the_key_if_the_file_has_none() {
    let text = ["[api]\nurl = 'http://a'\n", BROKER, TOPIC].concat();
    let read = |key: Option<&str>| Config::parse(&text, key.map(str::to_owned), Path::new("bridge.toml"));
    assert_eq!(
        read(Some("from-environment")).unwrap().api.key,
        "from-environment"
    );
    assert!(matches!(read(Some("")), Err(ConfigError::NoKey)));
    assert!(matches!(read(None), Err(ConfigError::NoKey)));
}

#[test]
fn faults_are_named() {
    let broker = |members: &str| format!("{API}[broker]\nclient_id = 'c'\n{members}\n{TOPIC}");
    let cases = [
        (API.to_owned(), "broker"),
        ([API, BROKER].concat(), "[[topics]]"),
        ([API, BROKER, "[[topics]]\ntopic = 'a'\n"].concat(), "source"),
        ([API, BROKER, TOPIC, "sauce = 'x'\n"].concat(), "sauce"),
        (
            [API, BROKER, TOPIC, "[batch]\nlinger_ms = 60001\n"].concat(),
            "linger_ms",
        ),
        (
            [API, BROKER, TOPIC, "[batch]\nbytes = 10485761\n"].concat(),
            "bytes",
        ),
        (
            [API, BROKER, TOPIC, "[batch]\nmessages = 0\n"].concat(),
            "messages",
        ),
        (broker("url = 'mqtt://b'\nversion = '3.1'"), "version"),
        (broker("url = 'mqtt://b'\nin_flight = 65536"), "in_flight"),
        (broker("url = 'mqtt://b'\npassword = 'p'"), "user"),
        (broker("url = 'mqtt://b'\nca = 'x'"), "mqtts"),
        (broker("url = 'tcp://b'"), "mqtt://"),
        (broker("url = 'mqtt://u:p@b'"), "user"),
        (broker("url = 'mqtt://b/path'"), "mqtt://"),
        (broker("url = 'b:1883'"), "mqtt://"),
        (
            format!("{API}[broker]\nurl = 'mqtt://b'\nclient_id = ''\n{TOPIC}"),
            "client_id",
        ),
    ];
    for (text, word) in cases {
        let fault = parse(&text).unwrap_err().to_string();
        assert!(fault.contains(word), "{text}\n{fault}");
    }
    let missing = Config::read(Path::new("/nowhere/bridge.toml"), None);
    assert!(missing.unwrap_err().to_string().contains("/nowhere/bridge.toml"));
}

#[test]
fn the_example_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/mqtt/bridge.toml");
    let config = Config::read(&path, Some("key".to_owned())).unwrap();
    assert!(!config.topics.is_empty());
}

#[test]
fn secrets_do_not_reach_the_log() {
    let text = format!("{API}{BROKER}user = 'u'\npassword = 'hidden'\n{TOPIC}");
    let shown = format!("{:?}", parse(&text).unwrap());
    assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
}
