//! Bodies that real agents sent; `tests/data/README.md` says how they were recorded.

use protocols::line::{self, Precision};
use protocols::otlp::{self, Encoding};
use protocols::remote_write::{self, Version};

use crate::recorder::Recorder;

/// A recorded body.
pub fn data(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_influxdb_client_of_python() {
    let mut recorder = Recorder::default();
    line::parse(
        &data("influxdb-client-python.lines"),
        Precision::Nanoseconds,
        7,
        &mut recorder,
    );
    assert_eq!(
        recorder.events,
        [
            r#"1 cpu usage{"host":"web 1","region":"eu,central"} 1767225600000000000 busy=false cores=4 idle=97.5 note="say \"hi\" \\ bye\nnext line""#,
            r#"3 cpu usage{"host":"web 1","region":"eu,central"} 1767225601000000000 busy=true cores=4 idle=97.375 note="say \"hi\" \\ bye\nnext line""#,
            r#"5 cpu usage{"host":"web 1","region":"eu,central"} 1767225602000000000 busy=false cores=4 idle=97.25 note="say \"hi\" \\ bye\nnext line""#,
            r#"7 größe{"ort":"Köln=Süd"} 1767225600123456789 wert=0.000000001"#,
            "8 no_tags 7 value=-0",
        ]
    );
    assert_eq!(recorder.announced, 3);
}

fn written(name: &str) -> Vec<String> {
    let (mut recorder, mut buffer) = (Recorder::default(), Vec::new());
    let body = data(name);
    let message = remote_write::decompress(&body, 10_485_760, &mut buffer).unwrap();
    remote_write::parse(message, Version::V1, &mut recorder).unwrap();
    recorder.events
}

#[test]
fn samples_of_prometheus() {
    let events = written("prometheus-samples.snappy");
    assert!(!events.is_empty());
    for event in &events {
        assert!(
            event.contains(r#""instance":"127.0.0.1:19091","job":"prometheus""#),
            "{event}"
        );
        assert!(!event.contains("refused"), "{event}");
    }
    assert!(events.iter().any(|event| event.contains(" up{")), "{events:?}");
}

#[test]
fn metadata_of_prometheus() {
    let events = written("prometheus-metadata.snappy");
    let expected =
        r#"family go_goroutines help="Number of goroutines that currently exist." unit=""["value"] gauge"#;
    assert!(events.iter().any(|event| event == expected), "{events:?}");
    assert!(events.len() > 100 && events.iter().all(|event| event.starts_with("family ")));
}

fn exported(name: &str, encoding: Encoding) -> Vec<String> {
    let (mut recorder, mut buffer) = (Recorder::default(), Vec::new());
    let body = data(name);
    let message = otlp::message(&body, encoding, &mut buffer).unwrap();
    otlp::parse(message, &mut recorder).unwrap();
    // Without the time, in which the two recordings differ.
    let is_time = |word: &str| word.len() == 19 && word.bytes().all(|byte| byte.is_ascii_digit());
    let without = |event: &String| {
        let words: Vec<_> = event.split(' ').filter(|word| !is_time(word)).collect();
        words.join(" ")
    };
    recorder.events.iter().map(without).collect()
}

#[test]
fn the_exporters_of_opentelemetry_for_python() {
    let resource =
        r#""service.name":"shop","service.instance.id":"1","host.name":"web-1","k8s.pod.name":"shop-7f""#;
    let expected = [
        format!(r#"0 orders{{{resource},"shop":"a","vip":true}} value=3"#),
        format!(r#"0 orders{{{resource},"shop":"b","level":7,"ratio":0.25,"tags":["x","y"]}} value=4.5"#),
        r#"family orders help="Orders placed" unit="1"["value"] counter"#.to_owned(),
        format!("1 queue{{{resource}}} value=-2"),
        r#"family queue help="" unit=""["value"] gauge"#.to_owned(),
        format!(r#"2 histogram latency{{{resource},"route":"/"}} count=5 sum=9.801 min=0.001 max=9"#),
        format!(r#"2 histogram latency.bucket{{{resource},"route":"/","le":"0.005"}} value=1"#),
        format!(r#"2 histogram latency.bucket{{{resource},"route":"/","le":"0.1"}} value=3"#),
        format!(r#"2 histogram latency.bucket{{{resource},"route":"/","le":"1"}} value=4"#),
        format!(r#"2 histogram latency.bucket{{{resource},"route":"/","le":"2.5"}} value=4"#),
        format!(r#"2 histogram latency.bucket{{{resource},"route":"/","le":"+Inf"}} value=5"#),
        r#"family latency help="" unit="s"["sum", "min", "max"] histogram"#.to_owned(),
        r#"family latency.bucket help="" unit=""[] histogram"#.to_owned(),
        format!("3 histogram exp{{{resource}}} count=2 sum=103.5 min=3.5 max=100"),
        r#"family exp help="" unit=""["sum", "min", "max"] histogram"#.to_owned(),
        format!(r#"4 temperature{{{resource},"room":"é"}} value=21.5"#),
        r#"family temperature help="" unit="Cel"["value"] gauge"#.to_owned(),
    ];
    assert_eq!(exported("otlp-python.pb", Encoding::Protobuf), expected);
    assert_eq!(exported("otlp-python.json", Encoding::Json), expected);
}
