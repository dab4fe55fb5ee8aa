//! What a sample costs to read, at 1,000 series of one sample in a request: the target of the whole server is 0.33 µs.
//!
//! A round reads one body. The shortest of many rounds is shown, which a busy machine does not change.

use std::hint::black_box;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use protocols::line::{self, Precision};
use protocols::otlp::{self, Encoding};
use protocols::remote_write::{self, Version};
use protocols::{Family, Field, Refusal, Sample, Sink};

#[path = "../tests/it/prometheus.rs"]
mod prometheus;
use prometheus::{as_v2, v1};

const SERIES: usize = 1_000;

/// Looks at everything and keeps a sum of it.
#[derive(Default)]
struct Sum(u64);

impl Sink for Sum {
    fn series(&mut self, source: &str, metadata: &str) {
        self.0 += (source.len() + metadata.len()) as u64;
    }

    fn point(&mut self, _: Sample, timestamp_ns: i64, fields: &[Field<'_>]) {
        self.0 += timestamp_ns as u64 + fields.len() as u64;
    }

    fn stale(&mut self, _: Sample, timestamp_ns: i64) {
        self.0 += timestamp_ns as u64;
    }

    fn not_stored(&mut self, _: Sample) {
        self.0 += 1;
    }

    fn refuse(&mut self, entry: u32, _: u32, reason: Refusal<'_>) {
        panic!("entry {entry}: {reason}");
    }

    fn family(&mut self, source: &str, _: Family<'_>) {
        self.0 += source.len() as u64;
    }
}

fn host(number: usize) -> String {
    format!("host-{:04}.rack-{:02}.example.com", number, number % 20)
}

fn lines(fields: &str) -> String {
    (0..SERIES)
        .map(|number| {
            let value = 20.15 + number as f64 * 0.01;
            format!(
                "cpu,cpu=cpu{},host={},region=eu-central-1 {} 1767225600{:09}\n",
                number % 16,
                host(number),
                fields.replace('?', &format!("{value:.2}")),
                number
            )
        })
        .collect()
}

fn write_request() -> v1::WriteRequest {
    let timeseries = (0..SERIES)
        .map(|number| v1::TimeSeries {
            labels: [
                ("__name__", "node_cpu_seconds_total".to_owned()),
                ("cpu", (number % 16).to_string()),
                ("instance", host(number)),
                ("job", "node".to_owned()),
                ("mode", "idle".to_owned()),
            ]
            .map(|(name, value)| v1::Label {
                name: name.to_owned(),
                value,
            })
            .to_vec(),
            samples: vec![prometheus::Sample {
                value: 20.15 + number as f64 * 0.01,
                timestamp: 1_767_225_600_000,
            }],
            ..v1::TimeSeries::default()
        })
        .collect();
    v1::WriteRequest {
        timeseries,
        ..v1::WriteRequest::default()
    }
}

fn attributes<const N: usize>(attributes: [(&str, String); N]) -> Vec<KeyValue> {
    let attribute = |(key, value): (&str, String)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    };
    attributes.map(attribute).to_vec()
}

/// One resource with ten gauges, whose data points have different attributes.
fn export_request() -> ExportMetricsServiceRequest {
    const METRICS: usize = 10;
    let points = |metric: usize| {
        (0..SERIES / METRICS).map(move |number| NumberDataPoint {
            attributes: attributes([
                ("cpu", (number % 16).to_string()),
                ("core.host", host(number)),
                ("state", "idle".to_owned()),
            ]),
            time_unix_nano: 1_767_225_600_000_000_000,
            value: Some(number_data_point::Value::AsDouble(
                number as f64 + metric as f64 * 0.01,
            )),
            ..NumberDataPoint::default()
        })
    };
    let metrics = (0..METRICS).map(|metric| Metric {
        name: format!("system.cpu.metric.{metric}"),
        unit: "s".to_owned(),
        data: Some(metric::Data::Gauge(Gauge {
            data_points: points(metric).collect(),
        })),
        ..Metric::default()
    });
    let resource = Resource {
        attributes: attributes([
            ("service.name", "shop".to_owned()),
            ("host.name", host(1)),
            ("os.type", "linux".to_owned()),
        ]),
        ..Resource::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                metrics: metrics.collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn measure_otlp() {
    let request = export_request();
    let protobuf = request.encode_to_vec();
    let json = serde_json::to_vec(&request).unwrap_or_else(|error| panic!("{error}"));
    for (name, body, encoding) in [
        ("OTLP as protobuf", &protobuf, Encoding::Protobuf),
        ("OTLP as JSON", &json, Encoding::Json),
    ] {
        let mut buffer = Vec::new();
        measure(name, SERIES, body.len(), |sum| {
            let read = otlp::message(black_box(body), encoding, &mut buffer)
                .and_then(|message| otlp::parse(message, sum));
            if let Err(error) = read {
                panic!("{error}");
            }
        });
    }
    measure(
        "OTLP as protobuf, only decoded by prost",
        SERIES,
        protobuf.len(),
        |sum| match ExportMetricsServiceRequest::decode(black_box(&protobuf[..])) {
            Ok(request) => sum.0 += request.resource_metrics.len() as u64,
            Err(error) => panic!("{error}"),
        },
    );
}

/// Prints the shortest time that `read` takes for a sample.
fn measure(name: &str, samples: usize, bytes: usize, mut read: impl FnMut(&mut Sum)) {
    const ROUNDS: u32 = 5_000;
    // Cargo's own argument begins with a dash.
    if std::env::args()
        .skip(1)
        .any(|words| !words.starts_with('-') && !name.contains(&words))
    {
        return;
    }
    let mut shortest = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut sum = Sum::default();
        let start = Instant::now();
        read(&mut sum);
        shortest = shortest.min(start.elapsed());
        black_box(sum.0);
    }
    let nanoseconds = shortest.as_nanos() as f64 / samples as f64;
    println!(
        "{name:<44} {nanoseconds:>6.1} ns a sample, {} bytes",
        bytes / samples
    );
}

fn main() {
    for (name, fields, samples) in [
        ("line protocol, lines of one field", "usage_idle=?", SERIES),
        (
            "line protocol, lines of three fields",
            "usage_idle=?,usage_user=?,usage_system=?",
            3 * SERIES,
        ),
    ] {
        let body = lines(fields);
        measure(name, samples, body.len(), |sum| {
            line::parse(black_box(body.as_bytes()), Precision::Nanoseconds, 0, sum);
        });
    }
    let request = write_request();
    for (name, message, version) in [
        ("remote write 1.0", request.encode_to_vec(), Version::V1),
        ("remote write 2.0", as_v2(&request).encode_to_vec(), Version::V2),
    ] {
        let read = |sum: &mut Sum, message: &[u8]| {
            if let Err(error) = remote_write::parse(message, version, sum) {
                panic!("{error}");
            }
        };
        measure(name, SERIES, message.len(), |sum| read(sum, black_box(&message)));
        let mut compressed = vec![0; snap::raw::max_compress_len(message.len())];
        let length = snap::raw::Encoder::new()
            .compress(&message, &mut compressed)
            .unwrap_or_else(|error| panic!("{error}"));
        compressed.truncate(length);
        let mut buffer = Vec::new();
        measure(
            &format!("{name}, with Snappy"),
            SERIES,
            length,
            |sum| match remote_write::decompress(black_box(&compressed), 10_485_760, &mut buffer) {
                Ok(message) => read(sum, message),
                Err(error) => panic!("{error}"),
            },
        );
    }
    let message = request.encode_to_vec();
    measure(
        "remote write 1.0, only decoded by prost",
        SERIES,
        message.len(),
        |sum| match v1::WriteRequest::decode(black_box(&message[..])) {
            Ok(request) => sum.0 += request.timeseries.len() as u64,
            Err(error) => panic!("{error}"),
        },
    );
    measure_otlp();
}
