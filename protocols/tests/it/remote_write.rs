//! Random series by `prost`.

use prost::Message;
use protocols::remote_write::{self, Version};

use crate::prometheus::{Count, Histogram, Sample, as_v2, v1};
use crate::recorder::Recorder;
use crate::{labels, metadata, number, random, text};

const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// A series, and what is read of it as the time series of this index.
fn series(random: &mut fastrand::Rng, entry: usize) -> (v1::TimeSeries, Vec<String>) {
    let (name, others) = (text(random), labels(random));
    let shown = format!("{name}{}", metadata(&others));
    let mut labels: Vec<_> = others
        .into_iter()
        .map(|(name, value)| v1::Label { name, value })
        .collect();
    let value = name;
    let name = "__name__".to_owned();
    labels.insert(random.usize(0..=labels.len()), v1::Label { name, value });
    let (mut samples, mut histograms, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..random.usize(0..5) {
        let timestamp = random.i64(-9_000_000_000_000..9_000_000_000_000);
        let ns = timestamp * 1_000_000;
        let value = match random.u8(0..8) {
            0 => f64::from_bits(STALE_BITS),
            1 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][random.usize(0..3)],
            _ => number(random),
        };
        expected.push(if value.is_finite() {
            format!("{entry} {shown} {ns} value={value}")
        } else if value.to_bits() == STALE_BITS {
            format!("{entry} stale {shown} {ns}")
        } else {
            format!("{entry} not stored")
        });
        samples.push(Sample { value, timestamp });
    }
    for _ in 0..random.usize(0..3) {
        let timestamp = random.i64(-9_000_000_000_000..9_000_000_000_000);
        let (count, shown_count) = match random.bool() {
            true => {
                let count = random.u64(..);
                (Count::Integer(count), (count as f64).to_string())
            }
            false => {
                let count = number(random);
                (Count::Float(count), count.to_string())
            }
        };
        let sum = number(random);
        let ns = timestamp * 1_000_000;
        expected.push(format!(
            "{entry} histogram {shown} {ns} count={shown_count} sum={sum}"
        ));
        histograms.push(Histogram {
            count: Some(count),
            sum,
            schema: random.i32(-4..9),
            positive_deltas: vec![random.i64(..); 3],
            timestamp,
        });
    }
    let exemplars = vec![v1::Exemplar::default(); random.usize(0..2)];
    let series = v1::TimeSeries {
        labels,
        samples,
        exemplars,
        histograms,
    };
    (series, expected)
}

#[test]
fn random_series_are_read_from_both_messages_as_they_were_written() {
    let mut random = random();
    let mut buffer = Vec::new();
    let mut remembering = Recorder::remembering();
    for _ in 0..300 {
        let (mut request, mut expected) = (v1::WriteRequest::default(), Vec::new());
        for entry in 0..random.usize(0..30) {
            let (series, events) = series(&mut random, entry);
            request.timeseries.push(series);
            expected.extend(events);
        }
        for (message, version) in [
            (request.encode_to_vec(), Version::V1),
            (as_v2(&request).encode_to_vec(), Version::V2),
        ] {
            let body = snap::raw::Encoder::new().compress_vec(&message).unwrap();
            let decompressed = remote_write::decompress(&body, 10_485_760, &mut buffer).unwrap();
            assert_eq!(decompressed, message);
            let mut recorder = Recorder::default();
            remote_write::parse(decompressed, version, &mut recorder).unwrap();
            assert_eq!(recorder.events, expected, "{version:?}");
            for _ in 0..2 {
                remote_write::parse(decompressed, version, &mut remembering).unwrap();
                let events = std::mem::take(&mut remembering.events);
                assert_eq!(events, expected, "{version:?}, remembered");
            }
        }
    }
    assert!(remembering.recalled > 300, "{} recalled", remembering.recalled);
}
