//! Random metrics by the official messages, as protobuf and as JSON.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, metric,
    number_data_point, summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use protocols::otlp::{self, Encoding};

use crate::recorder::Recorder;
use crate::{labels, metadata, number, random, text};

type Labels = Vec<(String, String)>;

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels
        .iter()
        .map(|(key, value)| KeyValue {
            key: key.clone(),
            value: Some(AnyValue {
                value: Some(any_value::Value::StringValue(value.clone())),
            }),
            ..KeyValue::default()
        })
        .collect()
}

/// What data points are made of, and what they are read as.
struct Made<'r> {
    random: &'r mut fastrand::Rng,
    resource: Labels,
    entry: usize,
    name: String,
    expected: Vec<String>,
}

impl Made<'_> {
    fn time(&mut self) -> u64 {
        self.random.u64(1..9_000_000_000_000_000_000)
    }

    fn expect(&mut self, suffix: &str, own: &Labels, more: Option<(&str, String)>, time: u64, fields: &str) {
        let mut all = self.resource.clone();
        all.extend(own.iter().cloned());
        all.extend(more.map(|(name, value)| (name.to_owned(), value)));
        let kind = if fields.starts_with("value") && suffix.is_empty() {
            ""
        } else {
            " histogram"
        };
        let (entry, name) = (self.entry, &self.name);
        self.expected.push(format!(
            "{entry}{kind} {name}{suffix}{} {time} {fields}",
            metadata(&all)
        ));
    }

    fn numbers(&mut self) -> Vec<NumberDataPoint> {
        (0..self.random.usize(0..4))
            .map(|_| {
                let (time, own) = (self.time(), labels(self.random));
                let (value, shown) = match self.random.bool() {
                    true => {
                        let integer = self.random.i64(..);
                        (
                            number_data_point::Value::AsInt(integer),
                            (integer as f64).to_string(),
                        )
                    }
                    false => {
                        let number = number(self.random);
                        (number_data_point::Value::AsDouble(number), number.to_string())
                    }
                };
                self.expect("", &own, None, time, &format!("value={shown}"));
                NumberDataPoint {
                    attributes: attributes(&own),
                    time_unix_nano: time,
                    start_time_unix_nano: 1,
                    value: Some(value),
                    ..NumberDataPoint::default()
                }
            })
            .collect()
    }

    /// `count`, and `sum`, `min` and `max` if they are sent.
    fn totals(&mut self) -> (u64, [Option<f64>; 3], String) {
        let count = self.random.u64(..);
        let others = [(); 3].map(|()| self.random.bool().then(|| number(self.random)));
        let mut fields = format!("count={}", count as f64);
        for (name, value) in ["sum", "min", "max"].iter().zip(others) {
            if let Some(value) = value {
                fields.push_str(&format!(" {name}={value}"));
            }
        }
        (count, others, fields)
    }

    fn histograms(&mut self) -> Vec<HistogramDataPoint> {
        (0..self.random.usize(0..4))
            .map(|_| {
                let (time, own) = (self.time(), labels(self.random));
                let (count, [sum, min, max], fields) = self.totals();
                self.expect("", &own, None, time, &fields);
                let bounds: Vec<f64> = (0..self.random.u32(0..6))
                    .map(|step| f64::from(step) * 0.5 - 1.0)
                    .collect();
                let counts: Vec<u64> = (0..=bounds.len()).map(|_| self.random.u64(0..1_000)).collect();
                let mut cumulative = 0;
                for (at, count) in counts.iter().enumerate() {
                    cumulative += count;
                    let le = bounds.get(at).map_or("+Inf".to_owned(), f64::to_string);
                    self.expect(
                        ".bucket",
                        &own,
                        Some(("le", le)),
                        time,
                        &format!("value={cumulative}"),
                    );
                }
                HistogramDataPoint {
                    attributes: attributes(&own),
                    time_unix_nano: time,
                    count,
                    sum,
                    min,
                    max,
                    bucket_counts: counts,
                    explicit_bounds: bounds,
                    ..HistogramDataPoint::default()
                }
            })
            .collect()
    }

    fn exponentials(&mut self) -> Vec<ExponentialHistogramDataPoint> {
        (0..self.random.usize(0..4))
            .map(|_| {
                let (time, own) = (self.time(), labels(self.random));
                let (count, [sum, min, max], fields) = self.totals();
                self.expect("", &own, None, time, &fields);
                ExponentialHistogramDataPoint {
                    attributes: attributes(&own),
                    time_unix_nano: time,
                    count,
                    sum,
                    min,
                    max,
                    scale: -3,
                    zero_count: 7,
                    ..ExponentialHistogramDataPoint::default()
                }
            })
            .collect()
    }

    fn summaries(&mut self) -> Vec<SummaryDataPoint> {
        (0..self.random.usize(0..4))
            .map(|_| {
                let (time, own, sum) = (self.time(), labels(self.random), number(self.random));
                let count = self.random.u64(..);
                self.expect("", &own, None, time, &format!("count={} sum={sum}", count as f64));
                let quantile_values = (0..self.random.u32(0..4))
                    .map(|step| {
                        let (quantile, value) = (f64::from(step) * 0.25, number(self.random));
                        let label = Some(("quantile", quantile.to_string()));
                        self.expect(".quantile", &own, label, time, &format!("value={value}"));
                        ValueAtQuantile { quantile, value }
                    })
                    .collect();
                SummaryDataPoint {
                    attributes: attributes(&own),
                    time_unix_nano: time,
                    count,
                    sum,
                    quantile_values,
                    ..SummaryDataPoint::default()
                }
            })
            .collect()
    }

    fn metric(&mut self) -> Metric {
        self.name = text(self.random);
        let data = match self.random.u8(0..5) {
            0 => metric::Data::Gauge(Gauge {
                data_points: self.numbers(),
            }),
            1 => metric::Data::Sum(Sum {
                data_points: self.numbers(),
                aggregation_temporality: 2,
                is_monotonic: true,
            }),
            2 => metric::Data::Histogram(Histogram {
                data_points: self.histograms(),
                aggregation_temporality: 2,
            }),
            3 => metric::Data::ExponentialHistogram(ExponentialHistogram {
                data_points: self.exponentials(),
                aggregation_temporality: 2,
            }),
            _ => metric::Data::Summary(Summary {
                data_points: self.summaries(),
            }),
        };
        self.entry += 1;
        Metric {
            name: self.name.clone(),
            description: text(self.random),
            unit: "s".to_owned(),
            metadata: Vec::new(),
            data: Some(data),
        }
    }
}

/// A request, and the points that are read of it.
fn request(random: &mut fastrand::Rng) -> (ExportMetricsServiceRequest, Vec<String>) {
    let mut made = Made {
        random,
        resource: Vec::new(),
        entry: 0,
        name: String::new(),
        expected: Vec::new(),
    };
    let mut resource_metrics = Vec::new();
    for _ in 0..made.random.usize(0..4) {
        made.resource = vec![("service.name".to_owned(), text(made.random))];
        let mut labels = made.resource.clone();
        labels.push(("os.type".to_owned(), text(made.random)));
        let scope_metrics = (0..made.random.usize(0..3))
            .map(|_| ScopeMetrics {
                metrics: (0..made.random.usize(0..4)).map(|_| made.metric()).collect(),
                ..ScopeMetrics::default()
            })
            .collect();
        resource_metrics.push(ResourceMetrics {
            resource: Some(Resource {
                attributes: attributes(&labels),
                ..Resource::default()
            }),
            scope_metrics,
            ..ResourceMetrics::default()
        });
    }
    (ExportMetricsServiceRequest { resource_metrics }, made.expected)
}

#[test]
fn random_metrics_are_read_from_protobuf_and_json_as_they_were_written() {
    let mut random = random();
    let mut remembering = Recorder::remembering();
    for _ in 0..300 {
        let (request, expected) = request(&mut random);
        for (body, encoding) in [
            (request.encode_to_vec(), Encoding::Protobuf),
            (serde_json::to_vec(&request).unwrap(), Encoding::Json),
        ] {
            let (mut recorder, mut buffer) = (Recorder::default(), Vec::new());
            let message = otlp::message(&body, encoding, &mut buffer).unwrap();
            otlp::parse(message, &mut recorder).unwrap();
            recorder.events.retain(|event| !event.starts_with("family "));
            assert_eq!(recorder.events, expected, "{encoding:?}");
            otlp::parse(message, &mut remembering).unwrap();
            let mut events = std::mem::take(&mut remembering.events);
            events.retain(|event| !event.starts_with("family "));
            assert_eq!(events, expected, "{encoding:?}, remembered");
        }
    }
    assert!(remembering.recalled > 300, "{} recalled", remembering.recalled);
}
